//! The executor: one policy, one regime, any number of calls.
//!
//! It puts together what carries out a call: the [profiles](Profiles) of calls, the [pool](Pool) of confined forkers, the
//! [assessor](Assessor) that says what a call needs, and who decides. `shell` carries out a command with it.

use std::sync::Arc;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::assessor::Assessor;
use super::call::{ShellCall, ToolError};
use super::covered_names::CoveredNames;
use super::deciding::{Deciding, ExtraApprover, decide};
use super::enforcement::Enforcement;
use super::fallback;
use super::files::{Files, Judge};
use super::git;
use super::narrowing::Narrowing;
use super::on_record::{end, failed, record_unreported};
use super::plan;
use super::pool::Pool;
use super::profiles::Profiles;
use super::recorder::Recorder;
use super::regime::RegimeLine;
use super::restored::{Recovered, Recovery};
use super::session_policy::SessionPolicy;
use super::starter::Starter;
use super::user_paths::UserPaths;
use crate::approval::{ApprovalRequest, Approver, CancelHandle, Controller, Verdict};
use crate::config::NamedFile;
use crate::confine::ForkerFor;
use crate::policy::{AbsPath, Mode, Policy};
use crate::profile::{ApprovedRoots, Call, Profile};

/// Runs calls of one session under one policy.
#[derive(Debug)]
pub struct Executor {
    pub(super) profiles: Profiles,
    pub(super) pool: Pool,
    pub(super) deciding: Deciding,
    /// What was put back before a call that has not ended.
    pub(super) recovered: Recovered,
    /// Whether a yes to a command can be remembered.
    pub(super) lasting: Lasting,
    /// How often something was to be changed that cannot be told from another.
    pub(super) unknown: u64,
}

/// How long a yes to a command can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    /// As long as the session.
    Session,
    /// For this command: the session runs no other.
    OneCommand,
}

impl Executor {
    /// An executor for this policy; where the policy wants a log, one that records. On a machine that cannot confine this fails, or gives an executor
    /// that refuses every call, as the policy says.
    pub fn new(
        policy: Policy,
        narrowing: Narrowing,
        mode: Mode,
        approver: Box<dyn Approver + Send>,
        user_paths: UserPaths,
    ) -> Result<Self, ToolError> {
        let session = SessionPolicy::of(policy, narrowing);
        let SessionPolicy { policy, envelope, .. } = &session;
        let chosen = Enforcement::choose(policy, &user_paths.state).map_err(ToolError::Refused)?;
        let chosen = fallback::choose(chosen, policy, envelope);
        plan::check_against(policy, &Call::of(ApprovedRoots::All), envelope)?;
        if let Enforcement::Confined(options) = &chosen.enforcement {
            fallback::can_protect(policy, *options)?;
        }
        let mode = mode.min(policy.loosest_mode());
        let recorder = Recorder::open(policy, mode, &user_paths)?;
        let mut controller = Controller::new(mode, approver);
        if let Some(recorder) = recorder.clone() {
            controller = controller.recorded_by(Box::new(move |record| recorder.decided(record)));
        }
        let session = Arc::new(session);
        let recovered = Recovered::default();
        let starter = Starter {
            session: Arc::clone(&session),
            chosen,
            user_paths,
            recorder: recorder.clone(),
            recovered: recovered.clone(),
            covered: CoveredNames::default(),
            start: None,
        };
        Ok(Self {
            profiles: Profiles::new(session),
            pool: Pool::of(starter),
            deciding: Deciding {
                recorder,
                ..Deciding::by(Arc::new(controller))
            },
            recovered,
            lasting: Lasting::Session,
            unknown: 0,
        })
    }

    /// An executor beside this one, with forkers of its own: both run calls at once. They share who decides.
    pub(super) fn beside(&self) -> Self {
        let pool = self.pool.beside();
        Self {
            profiles: self.profiles.beside(),
            deciding: Deciding {
                recorder: pool.recorder().cloned(),
                ..self.deciding.clone()
            },
            pool,
            recovered: self.recovered.clone(),
            lasting: self.lasting,
            unknown: 0,
        }
    }

    /// Offers no yes for the session: it runs one command.
    #[must_use]
    pub fn for_one_command(mut self) -> Self {
        self.lasting = Lasting::OneCommand;
        self
    }

    /// Withdraws an open question through this handle of the approver when the call is stopped.
    #[must_use]
    pub fn withdrawing_with(mut self, handle: CancelHandle) -> Self {
        self.deciding.withdraw = Some(handle);
        self
    }

    /// Asks one of these for each question that comes up while a command runs.
    #[must_use]
    pub fn asking_meanwhile(mut self, another: ExtraApprover) -> Self {
        self.deciding.extra_approver = Some(another);
        self
    }

    /// Whether commands of this session run unconfined.
    pub fn is_unconfined(&self) -> bool {
        self.pool.chosen().is_unconfined()
    }

    /// What holds, in one line.
    pub fn regime_line(&self) -> Result<RegimeLine, ToolError> {
        RegimeLine::of_session(self.pool.chosen(), self.session(), self.profiles.unasked())
    }

    /// What of the user's git settings a call misses, in one line.
    pub fn git_settings_missed_by(&self, call: &ShellCall) -> Option<String> {
        let directory = AbsPath::new(&call.directory).ok()?;
        let session = self.session();
        let settings = &self.pool.user_paths().git;
        git::missed(session, settings, &call.command, &directory, &session.envelope)
    }

    /// Has the record of the session, where there is one, name these files. Before anything is recorded.
    pub fn named_in_record(&self, files: &[NamedFile]) {
        if let Some(recorder) = &self.deciding.recorder {
            let line = self.regime_line();
            let line = line.map_or_else(|error| error.to_string(), |line| line.to_string());
            recorder.begins_with(files, &line);
        }
    }

    /// The session's name in the audit log, if there is one.
    pub fn audit_session(&self) -> Option<&str> {
        self.deciding.recorder.as_ref().map(Recorder::session)
    }

    /// Ends every forker and waits until nothing of them is left; an error says that the end is not on record.
    pub async fn finish(mut self) -> Result<(), ToolError> {
        let unreported = record_unreported(self.deciding.recorder.as_ref(), &self.recovered).await;
        self.pool.end_all().await;
        unreported.and(end(self.deciding.recorder.as_ref()).await)
    }

    /// Starts a forker under each of these profiles and waits for its self-test; nothing is run in it. What was put back before.
    pub(crate) async fn self_test(mut self, profiles: &[&Profile]) -> Result<Recovery, ToolError> {
        let mut tested = Ok(());
        for profile in profiles {
            tested = self.start_and_end(profile).await;
            if tested.is_err() {
                break;
            }
        }
        let tested = match tested {
            Ok(()) => Ok(self.recovered.take().unwrap_or_default()),
            Err(error) => Err(failed(self.deciding.recorder.as_ref(), &self.recovered, error).await),
        };
        self.finish().await.and(tested)
    }

    async fn start_and_end(&mut self, profile: &Profile) -> Result<(), ToolError> {
        let start = self.pool.start(profile, ForkerFor::Others, &ApprovedRoots::None);
        let mut forker = start.await?;
        let ready = forker.ready().await;
        forker.finish().await;
        Ok(ready?)
    }

    /// Puts a question that neither a mode nor an earlier yes answers; `None` where the mode asks nobody.
    ///
    /// # Errors
    /// A signal came while it was asked.
    pub(crate) async fn ask(
        &self,
        request: ApprovalRequest,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Option<Verdict>, ToolError> {
        match self.deciding.controller.mode() {
            Mode::Interactive => decide(&self.deciding, request, stops).await.map(Some),
            Mode::ApproveAll | Mode::Strict => Ok(None),
        }
    }

    /// Whether what is permitted this call could be held under another policy of the same settings, where this one's is; nothing
    /// is started.
    ///
    /// # Errors
    /// What cannot be held.
    pub(crate) fn can_enforce_call(&self, policy: &Policy, call: &Call) -> Result<(), ToolError> {
        fallback::can_enforce_call(self.pool.chosen(), &self.session().narrowing, policy, call)
    }

    pub(super) fn session(&self) -> &SessionPolicy {
        self.pool.session()
    }

    pub(super) fn assessor(&self) -> Assessor<'_> {
        Assessor(self.session())
    }

    pub(super) fn judge(&self) -> Judge<'_> {
        Judge(self.session())
    }

    /// The files of the session, until one of these signals comes.
    pub(super) const fn files<'a>(&'a mut self, stops: &'a mut mpsc::Receiver<Signal>) -> Files<'a> {
        Files {
            profiles: &mut self.profiles,
            pool: &mut self.pool,
            stops,
        }
    }
}
