//! A session: one config, its tools, and whoever answers questions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nix::sys::signal::Signal;
use tokio::sync::{Mutex, mpsc};

use super::approval_authority::ApprovalAuthority;
use super::call::ToolError;
use super::command_slots::CommandSlots;
use super::custom::CommandTool;
use super::deciding::{Deciding, ExtraApprover};
use super::executor::Executor;
use super::files::FileTool;
use super::guarded::{Guard, Guarded};
use super::hook::Hook;
use super::narrowing::Narrowing;
use super::offered_tools::{OfferedTool, OfferedTools};
use super::on_record::{end, record_unreported};
use super::output::Output;
use super::overriding::Loosening;
use super::regime::RegimeLine;
use super::session_error::SessionError;
use super::session_shared::Shared;
use super::set::ToolSet;
use super::shell_tool::ShellTool;
use super::tool::{ApprovalContext, Reach, Tool};
use super::user_paths::UserPaths;
use crate::approval::{Approval, Approver, CancelHandle, Record};
use crate::config::{Context, Diagnostic, Loaded};
use crate::confine::{self, Initialized};
use crate::policy::{AbsPath, Mode, Network, Right, ToolRule};

/// One config, its tools, and the approver who answers questions.
///
/// [`Session::builder`] makes one. All tools of a session are confined by one policy and share one memory: what is approved for
/// the session holds for all of them, and ends with it. A clone is the same session. Commands of one session run one after the
/// other.
///
/// Commands run in a child that is this program, started again, so `main` must call [`init`](crate::init) first. Its async
/// methods need a tokio runtime. What confines the child: landlock(7), seccomp(2), `user_namespaces(7)`.
///
/// ```no_run
/// use serde_json::json;
/// use stockade::{Session, TerminalApprover};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     stockade::init();
///     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
///     runtime.block_on(async {
///         let (approver, handle) = TerminalApprover::new().cancellable()?;
///         let session = Session::builder()
///             .preset("workspace-write")
///             .directory("/srv/project")
///             .approver(approver)
///             .open()?
///             .withdrawing_with(handle);
///         println!("{}", session.regime_line().await?);
///         let output = session.tools().call("shell", json!({"command": "make test"})).await?;
///         println!("{}", output.text);
///         session.finish().await;
///         Ok(())
///     })
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
    guard: Guard,
    offered: Arc<OfferedTools>,
    stopper: mpsc::Sender<Signal>,
}

impl Session {
    /// An error where a child that this program starts would not become the confined child.
    pub(super) fn require_init() -> Result<(), SessionError> {
        match confine::initialized() {
            Initialized::Yes => Ok(()),
            Initialized::No => Err(SessionError::NotInitialized),
            Initialized::Late(threads) => Err(SessionError::InitializedLate(threads)),
        }
    }

    /// A session under a config that was loaded. The mode is that of its policy.
    pub(crate) fn open(
        loaded: Loaded,
        narrowing: Narrowing,
        directory: &Path,
        mut approver: Box<dyn Approver + Send>,
        context: &Context,
    ) -> Result<Self, SessionError> {
        Self::require_init()?;
        let user_paths = UserPaths::of_user(context).ok_or(SessionError::NoHome)?;
        let Loaded {
            policy,
            custom_tools,
            files,
            warnings,
            ..
        } = loaded;
        let writable = policy.roots.iter().filter(|root| root.rights.has(Right::Write));
        let writable: Vec<_> = writable.map(|root| root.path.as_path().to_owned()).collect();
        approver.begin(&writable)?;
        let mode = policy.mode;
        let closed = |network: &Network| match network {
            Network::Off => true,
            Network::Hosts(_) | Network::Full => false,
        };
        let reach = if policy.networks().all(closed) {
            Reach::Files
        } else {
            Reach::World
        };
        let offered = OfferedTools::by(&policy, custom_tools);
        let rules = Arc::new(policy.tools.clone());
        let mut executor = Executor::new(policy, narrowing, mode, approver, user_paths)?;
        if let Ok(directory) = AbsPath::new(directory) {
            executor.pool.start_in(&directory);
        }
        executor.named_in_record(&files);
        let policy = executor.profiles.session_policy();
        executor.recovered.told_to_an_agent(move |path| policy.may_tell(path));
        let (stopper, stops) = mpsc::channel(8);
        let stops = Arc::new(Mutex::new(stops));
        let guard = Guard {
            deciding: executor.deciding.clone(),
            rules,
            loosening: Loosening::ByConfig,
            hook: None,
            caller: None,
            stops: Arc::clone(&stops),
            recovered: executor.recovered.clone(),
        };
        Ok(Self {
            shared: Arc::new(Shared {
                executor: Mutex::new(executor),
                stops,
                directory: directory.to_owned(),
                reach,
                slots: CommandSlots::new(1),
                warnings: warnings.into(),
            }),
            guard,
            offered: Arc::new(offered),
            stopper,
        })
    }

    /// The same session, which withdraws open questions with this handle when it is stopped.
    #[must_use]
    pub fn withdrawing_with(mut self, handle: CancelHandle) -> Self {
        self.guard.deciding.withdraw = Some(handle);
        self
    }

    /// The same session, which makes an approver with `another` for each question that comes up while a command runs:
    /// whether it may connect to a host that is not listed.
    ///
    /// Without it the session's approver is asked, and such a question cannot be withdrawn.
    #[must_use]
    pub(crate) fn asking_meanwhile(mut self, another: ExtraApprover) -> Self {
        self.guard.deciding.extra_approver = Some(another);
        self
    }

    /// The same session with a [`Hook`], for the tools that it makes from now on.
    #[must_use]
    pub fn overridden_by(mut self, hook: Hook) -> Self {
        self.guard.hook = Some(hook);
        self
    }

    /// The same session for a worker or agent that the agent delegates to. Questions name it as the caller.
    #[must_use]
    pub fn delegate(&self, name: &str) -> Self {
        Self {
            guard: self.guard.delegate(name),
            ..self.clone()
        }
    }

    /// A session beside this one, so that calls of both are under way at once; their commands and changes share one room.
    ///
    /// It has the same config, controller and memory; its forkers are its own, with a HOME and a TMPDIR of their own,
    /// and what stops this one does not stop it.
    pub(crate) async fn beside(&self) -> Self {
        self.beside_in(self.shared.slots.clone()).await
    }

    /// The same, sharing this room with whoever else has it.
    pub(super) async fn beside_in(&self, slots: CommandSlots) -> Self {
        let executor = self.shared.executor.lock().await.beside();
        let (stopper, stops) = mpsc::channel(8);
        let stops = Arc::new(Mutex::new(stops));
        Self {
            shared: Arc::new(Shared {
                executor: Mutex::new(executor),
                stops: Arc::clone(&stops),
                directory: self.shared.directory.clone(),
                reach: self.shared.reach,
                slots,
                warnings: Arc::clone(&self.shared.warnings),
            }),
            guard: Guard {
                stops,
                ..self.guard.clone()
            },
            offered: Arc::clone(&self.offered),
            stopper,
        }
    }

    /// The same session with another approver, for the tools that it makes from now on.
    ///
    /// `withdraw` withdraws the questions of that approver. `another` makes the approvers for questions that come up while a
    /// command runs.
    #[must_use]
    pub(crate) fn asking(
        &self,
        approver: Box<dyn Approver + Send>,
        withdraw: Option<CancelHandle>,
        another: Option<ExtraApprover>,
    ) -> Self {
        let mut asking = self.clone();
        asking.guard.deciding = self.guard.deciding.asking(approver, withdraw, another);
        asking
    }

    /// Forgets the signals that came too late for the call they were meant for.
    pub(super) async fn forget_stops(&self) {
        let mut stops = self.shared.stops.lock().await;
        while stops.try_recv().is_ok() {}
    }

    /// The tools that the config can allow, each behind the guard of the session.
    pub fn tools(&self) -> ToolSet {
        let mut set = ToolSet::new(self.guard.clone());
        for tool in self.made(Some(&self.guard.deciding)) {
            set.add(tool);
        }
        set
    }

    /// The same tools without approval: they are confined, and nobody is asked. What is blocked stays blocked.
    pub fn bare_tools(&self) -> Vec<Box<dyn Tool>> {
        self.made(None)
    }

    /// The tools. `deciding` answers questions that come up while their commands run.
    fn made(&self, deciding: Option<&Deciding>) -> Vec<Box<dyn Tool>> {
        self.offered.all().map(|offer| self.make(offer, deciding)).collect()
    }

    fn make(&self, offer: OfferedTool<'_>, deciding: Option<&Deciding>) -> Box<dyn Tool> {
        let authority = match self.guard.hook {
            Some(_) => ApprovalAuthority::Hook,
            None => ApprovalAuthority::Config,
        };
        let shared = Arc::clone(&self.shared);
        match offer {
            OfferedTool::File(kind) => Box::new(FileTool::new(kind, shared, authority)),
            OfferedTool::Shell => Box::new(ShellTool::new(shared, authority, deciding.cloned())),
            OfferedTool::Custom(tool) => Box::new(CommandTool::new(tool.clone(), shared, authority, deciding.cloned())),
        }
    }

    /// Calls the tool that the context names, as the set of all tools does, and makes no other.
    pub(super) async fn call_in(&self, context: &ApprovalContext) -> Result<Output, ToolError> {
        let named = self.offered.all().filter(|offer| offer.name() == context.tool_name);
        // The error of the whole set lists the tools that there are.
        let Some(offer) = named.last() else {
            return self.tools().call_in(context).await;
        };
        let tool = self.make(offer, Some(&self.guard.deciding));
        ToolSet::new(self.guard.clone()).add(tool).call_in(context).await
    }

    /// The tool behind the guard of the session. The example of [`Guarded`] makes one.
    pub fn guarded(&self, tool: Box<dyn Tool>) -> Guarded {
        Guarded::new(tool, self.guard.clone())
    }

    /// The same, where an entry of `tools:` that pre-approves the tool does not count: the tool has changed since the entry
    /// was written.
    pub(crate) fn guarded_anew(&self, tool: Box<dyn Tool>) -> Guarded {
        let guard = self.guard.clone().without_pre_approval(tool.name());
        Guarded::new(tool, guard)
    }

    /// The lines of the policy that may not mean what their writer thinks.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.shared.warnings
    }

    /// The entries of `tools:` in the config, by tool name.
    pub fn rules(&self) -> &BTreeMap<String, ToolRule> {
        &self.guard.rules
    }

    /// The names of the tools that the config defines itself (`custom_tools`).
    pub(crate) fn custom_names(&self) -> Vec<String> {
        self.offered.custom_names()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// A channel that stops the current call: a command gets the signal that is sent on it, an open question is withdrawn.
    ///
    /// The first signal is passed on, and the command's processes are killed after a grace period. A second one kills at once.
    pub fn stopper(&self) -> mpsc::Sender<Signal> {
        self.stopper.clone()
    }

    /// The confinement of the session's commands.
    ///
    /// # Errors
    /// This machine cannot confine, and the config does not permit commands without confinement.
    pub async fn regime_line(&self) -> Result<RegimeLine, ToolError> {
        self.shared.executor.lock().await.regime_line()
    }

    /// Whether commands of this session run unconfined.
    pub async fn is_unconfined(&self) -> bool {
        self.shared.executor.lock().await.is_unconfined()
    }

    /// The approvals that hold for the session, oldest first. At most 10,000 are kept.
    pub fn approvals(&self) -> Vec<Approval> {
        self.guard.deciding.controller.approvals()
    }

    /// Takes back the approval with this [`id`](Approval::id), and returns it. The same call is asked about again.
    pub fn revoke(&self, id: u64) -> Option<Approval> {
        self.guard.deciding.controller.revoke(id)
    }

    /// Takes back every approval.
    pub fn forget_approvals(&self) {
        self.guard.deciding.controller.forget_approvals();
    }

    /// The latest decisions, oldest first. At most 10,000 are kept.
    pub fn history(&self) -> Vec<Record> {
        self.guard.deciding.controller.history()
    }

    /// The mode in which questions are answered.
    pub fn mode(&self) -> Mode {
        self.guard.deciding.controller.mode()
    }

    /// Logs the beginning of the session, where there is an audit log. Without it the first call does.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(crate) async fn begin_record(&self) -> Result<(), ToolError> {
        let recorder = self.shared.executor.lock().await.deciding.recorder.clone();
        match recorder {
            Some(recorder) => recorder.begin().await,
            None => Ok(()),
        }
    }

    /// Ends every child of the session, and waits until all of their processes are gone.
    ///
    /// Call it before the program ends. Tools that are still held keep the memory of the session; their children end all the
    /// same.
    pub async fn finish(&self) {
        let mut executor = self.shared.executor.lock().await;
        executor.pool.end_all().await;
        let _recorded = record_unreported(executor.deciding.recorder.as_ref(), &executor.recovered).await;
        // Everything else that had to be on record is; that the session ended is the one thing that may be missing.
        let _recorded = end(executor.deciding.recorder.as_ref()).await;
    }
}

impl Session {
    /// What the starts of this session put back in other directories, a line each: a person is told, and not the agent.
    pub(crate) fn restored_elsewhere(&self) -> Vec<String> {
        self.guard.recovered.elsewhere()
    }
}
