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
use super::git;
use super::guarded::{Guard, Guarded, Hook};
use super::narrowing::Narrowing;
use super::offered_tools::{OfferedTool, OfferedTools};
use super::on_record::{end, record_unreported};
use super::regime::RegimeLine;
use super::session_shared::Shared;
use super::set::ToolSet;
use super::shell_tool::ShellTool;
use super::tool::{ApprovalContext, Output, Reach, Tool};
use super::user_paths::UserPaths;
use crate::approval::{Approval, Approver, CancelHandle, Record};
use crate::config::{self, ConfigError, Context, Loaded, Matchers, PresetChanges};
use crate::confine;
use crate::policy::shell::{rule_covers, rule_matches};
use crate::policy::{AbsPath, Mode, Network, ToolRule};

/// One config, its tools, and whoever answers questions.
///
/// Every tool of a session is confined by the same policy and guarded by the same controller: what is approved for the
/// session holds for all of them, and is gone with it.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
    guard: Guard,
    offered: Arc<OfferedTools>,
    stopper: mpsc::Sender<Signal>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The config is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// This machine cannot confine what the config permits.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The program did not call [`init`](crate::init).
    #[error(
        "commands cannot be confined: the confined child is this program, started again, and `main` does not say so. Make \
         `stockade::init();` the first line of `main`"
    )]
    NotInitialized,
    /// The user has no home in the passwd database, so there is no place for the journal.
    #[error("this user has no home directory in the passwd database, so there is no place for the journal")]
    NoHome,
}

impl Session {
    /// A session under a config that the caller trusts, with this directory as the working directory and as `$CWD` in the config.
    pub fn with_config(
        file: &Path,
        directory: &Path,
        approver: Box<dyn Approver + Send>,
    ) -> Result<Self, SessionError> {
        let mut context = host();
        // To the config this is where Stockade was started; where it cannot be resolved, `$CWD` is an error.
        let started = std::fs::canonicalize(directory).ok();
        context.start = started.and_then(|start| AbsPath::new(start).ok());
        let loaded = config::load(file, &context)?;
        Self::open(loaded, Narrowing::default(), directory, approver, &context)
    }

    /// A session under a shipped preset, such as `workspace-write`, with this directory as the workspace.
    pub fn with_preset(name: &str, directory: &Path, approver: Box<dyn Approver + Send>) -> Result<Self, SessionError> {
        let context = host();
        let loaded = git::preset(name, directory, &PresetChanges::default(), &context)?;
        Self::open(loaded, Narrowing::default(), directory, approver, &context)
    }

    /// A session under what was loaded; it answers questions in the mode of the policy.
    pub fn open(
        loaded: Loaded,
        narrowing: Narrowing,
        directory: &Path,
        approver: Box<dyn Approver + Send>,
        context: &Context,
    ) -> Result<Self, SessionError> {
        if !confine::is_initialized() {
            return Err(SessionError::NotInitialized);
        }
        let user_paths = UserPaths::of_user(context).ok_or(SessionError::NoHome)?;
        let Loaded {
            policy,
            custom_tools,
            files,
            ..
        } = loaded;
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
        let (stopper, stops) = mpsc::channel(8);
        let stops = Arc::new(Mutex::new(stops));
        let guard = Guard {
            deciding: executor.deciding.clone(),
            rules,
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
            }),
            guard,
            offered: Arc::new(offered),
            stopper,
        })
    }

    /// Withdraws open questions through this handle of the approver when the session is stopped.
    #[must_use]
    pub fn withdrawing_with(mut self, handle: CancelHandle) -> Self {
        self.guard.deciding.withdraw = Some(handle);
        self
    }

    /// Asks one of these for each question that comes up while a command runs: whether it may connect to a host that is
    /// not listed. Without it the session's approver is asked, and such a question cannot be withdrawn.
    #[must_use]
    pub fn asking_meanwhile(mut self, another: ExtraApprover) -> Self {
        self.guard.deciding.extra_approver = Some(another);
        self
    }

    /// Asks this what becomes of each assessment; it may tighten or loosen, and never un-block. For the tools that
    /// the session is asked for afterwards.
    #[must_use]
    pub fn overridden_by(mut self, hook: Hook) -> Self {
        self.guard.hook = Some(hook);
        self
    }

    /// The same session for somebody that the agent delegates to: the same controller, the same memory, the same
    /// confinement. Questions name the caller.
    #[must_use]
    pub fn delegate(&self, name: &str) -> Self {
        let mut delegate = self.clone();
        delegate.guard.caller = Some(match &self.guard.caller {
            Some(caller) => format!("{caller} › {name}"),
            None => name.to_owned(),
        });
        delegate
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
            }),
            guard: Guard {
                stops,
                ..self.guard.clone()
            },
            offered: Arc::clone(&self.offered),
            stopper,
        }
    }

    /// The same session, where questions go to this approver; the handle withdraws them. Those that come up while a command
    /// runs go to one of `another`. For the tools that the session is asked for afterwards.
    #[must_use]
    pub fn asking(
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

    /// The tools that the config can allow, guarded.
    pub fn tools(&self) -> ToolSet {
        let mut set = ToolSet::new(self.guard.clone());
        for tool in self.made(Some(&self.guard.deciding)) {
            set.add(tool);
        }
        set
    }

    /// The same tools without any approval: confined, and nobody is asked.
    pub fn bare_tools(&self) -> Vec<Box<dyn Tool>> {
        self.made(None)
    }

    /// The tools; while their commands run, this one decides what comes up.
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
        // Which there are is told by all of them.
        let Some(offer) = named.last() else {
            return self.tools().call_in(context).await;
        };
        let tool = self.make(offer, Some(&self.guard.deciding));
        ToolSet::new(self.guard.clone()).add(tool).call_in(context).await
    }

    /// This tool, behind the guard of the session.
    pub fn guarded(&self, tool: Box<dyn Tool>) -> Guarded {
        Guarded::new(tool, self.guard.clone())
    }

    /// The same, where the config pre-approves nothing of the tool's name: what it spoke of is not what it was.
    pub fn guarded_anew(&self, tool: Box<dyn Tool>) -> Guarded {
        let guard = self.guard.clone().without_pre_approval(tool.name());
        Guarded::new(tool, guard)
    }

    /// What the config says of tools, by name.
    pub fn rules(&self) -> &BTreeMap<String, ToolRule> {
        &self.guard.rules
    }

    /// The names of the config's own tools.
    pub fn custom_names(&self) -> Vec<String> {
        self.offered.custom_names()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Stops what is under way: commands get the signal, open questions are withdrawn.
    pub fn stopper(&self) -> mpsc::Sender<Signal> {
        self.stopper.clone()
    }

    /// What holds, in one line.
    pub async fn regime_line(&self) -> Result<RegimeLine, ToolError> {
        self.shared.executor.lock().await.regime_line()
    }

    /// Whether commands of this session run unconfined.
    pub async fn is_unconfined(&self) -> bool {
        self.shared.executor.lock().await.is_unconfined()
    }

    /// What is approved for the session, oldest first.
    pub fn approvals(&self) -> Vec<Approval> {
        self.guard.deciding.controller.approvals()
    }

    /// Takes one approval back; the same call is asked about again.
    pub fn revoke(&self, id: u64) -> Option<Approval> {
        self.guard.deciding.controller.revoke(id)
    }

    /// Takes every approval back.
    pub fn forget_approvals(&self) {
        self.guard.deciding.controller.forget_approvals();
    }

    /// The latest decisions, oldest first.
    pub fn history(&self) -> Vec<Record> {
        self.guard.deciding.controller.history()
    }

    /// How questions are answered.
    pub fn mode(&self) -> Mode {
        self.guard.deciding.controller.mode()
    }

    /// Records that the session began, where there is a log; the first call does it otherwise.
    pub async fn begin_record(&self) -> Result<(), ToolError> {
        let recorder = self.shared.executor.lock().await.deciding.recorder.clone();
        match recorder {
            Some(recorder) => recorder.begin().await,
            None => Ok(()),
        }
    }

    /// Ends every forker and waits until nothing of them is left.
    ///
    /// Tools of the session that are still held keep it alive; their forkers end with this all the same.
    pub async fn finish(&self) {
        let mut executor = self.shared.executor.lock().await;
        executor.pool.end_all().await;
        let _recorded = record_unreported(executor.deciding.recorder.as_ref(), &executor.recovered).await;
        // Everything else that had to be on record is; that the session ended is the one thing that may be missing.
        let _recorded = end(executor.deciding.recorder.as_ref()).await;
    }
}

/// The context of this process.
fn host() -> Context {
    Context::host(Matchers {
        matches: rule_matches,
        covers: rule_covers,
    })
}
