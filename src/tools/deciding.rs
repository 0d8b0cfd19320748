//! Waiting for a decision.

use std::fmt;
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::call::ToolError;
use super::recorder::Recorder;
use crate::approval::{ApprovalRequest, Approver, ApproverError, CancelHandle, Controller, SharedApprover, Verdict};

/// A controller that a session, its guarded tools and everybody they delegate to share. Questions wait for one another.
pub type SharedController = Arc<Controller>;

/// Who decides, and what withdraws an open question.
#[derive(Clone)]
pub(super) struct Deciding {
    pub(super) controller: SharedController,
    /// Who is asked in place of the session's own approver.
    pub(super) approver: Option<Arc<SharedApprover>>,
    pub(super) withdraw: Option<CancelHandle>,
    /// Makes the approver for questions while a command runs.
    pub(super) extra_approver: Option<ExtraApprover>,
    /// What puts on record what happens; the controller puts decisions there itself.
    pub(super) recorder: Option<Recorder>,
}

/// One more approver, for a question beside the others, and what withdraws that question alone.
pub type ExtraApprover =
    Arc<dyn Fn() -> Result<(Box<dyn Approver + Send>, Option<CancelHandle>), ApproverError> + Send + Sync>;

impl Deciding {
    /// The session's own approver is asked.
    pub(super) const fn by(controller: SharedController) -> Self {
        Self {
            controller,
            approver: None,
            withdraw: None,
            extra_approver: None,
            recorder: None,
        }
    }

    /// The same session, where somebody else is asked.
    pub(super) fn asking(
        &self,
        approver: Box<dyn Approver + Send>,
        withdraw: Option<CancelHandle>,
        extra_approver: Option<ExtraApprover>,
    ) -> Self {
        Self {
            controller: Arc::clone(&self.controller),
            approver: Some(Arc::new(Mutex::new(approver))),
            withdraw,
            extra_approver,
            recorder: self.recorder.clone(),
        }
    }
}

/// Waits for a decision on a thread of its own, so that a signal still stops the call: the question is
/// withdrawn then, and an answer that comes all the same counts for nothing.
pub(super) async fn decide(
    deciding: &Deciding,
    request: ApprovalRequest,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Verdict, ToolError> {
    let mut verdicts = decide_all(deciding, vec![request], stops).await?;
    verdicts.pop().ok_or_else(lost)
}

pub(super) fn lost() -> ToolError {
    ToolError::Denied("the question was lost; nothing was run".to_owned())
}

/// The same for several requests; those of one group are one question. As many verdicts as requests, in their order.
pub(super) async fn decide_all(
    deciding: &Deciding,
    requests: Vec<ApprovalRequest>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Vec<Verdict>, ToolError> {
    let count = requests.len();
    let (controller, approver) = (Arc::clone(&deciding.controller), deciding.approver.clone());
    let mut asking = tokio::task::spawn_blocking(move || match approver {
        Some(approver) => controller.decide_all_by(&requests, &approver),
        None => controller.decide_all(&requests),
    });
    let mut stopped = None;
    let answered = loop {
        tokio::select! {
            biased;
            Some(signal) = stops.recv(), if stopped.is_none() => {
                stopped = Some(signal);
                if let Some(withdraw) = &deciding.withdraw {
                    withdraw.cancel();
                }
            }
            answered = &mut asking => break answered,
        }
    };
    let verdicts = answered.ok().filter(|verdicts| verdicts.len() == count);
    let verdicts = verdicts.ok_or_else(lost)?;
    stopped.map_or(Ok(verdicts), |signal| Err(ToolError::Stopped(signal)))
}

impl fmt::Debug for Deciding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding")
            .field("controller", &self.controller)
            .finish_non_exhaustive()
    }
}
