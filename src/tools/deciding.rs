//! Waiting for a decision.

use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::call::ToolError;
use crate::approval::{ApprovalRequest, CancelHandle, Controller, Verdict};

/// A controller that a session, its guarded tools and everybody they delegate to share. Questions wait for one another.
pub type SharedController = Arc<Mutex<Controller>>;

/// Waits for a decision on a thread of its own, so that a signal still stops the call: the question is
/// withdrawn then, and an answer that comes all the same counts for nothing.
pub(super) async fn decide(
    controller: &SharedController,
    withdraw: Option<&CancelHandle>,
    request: ApprovalRequest,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Verdict, ToolError> {
    let mut verdicts = decide_all(controller, withdraw, vec![request], stops).await?;
    verdicts.pop().ok_or_else(lost)
}

pub(super) fn lost() -> ToolError {
    ToolError::Denied("the question was lost; nothing was run".to_owned())
}

/// The same for several requests; those of one group are one question. As many verdicts as requests, in their order.
pub(super) async fn decide_all(
    controller: &SharedController,
    withdraw: Option<&CancelHandle>,
    requests: Vec<ApprovalRequest>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Vec<Verdict>, ToolError> {
    let count = requests.len();
    let controller = Arc::clone(controller);
    let mut asking = tokio::task::spawn_blocking(move || {
        // A controller whose approver broke down answers nothing any more.
        controller
            .lock()
            .ok()
            .map(|mut controller| controller.decide_all(&requests))
    });
    let mut stopped = None;
    let answered = loop {
        tokio::select! {
            biased;
            Some(signal) = stops.recv(), if stopped.is_none() => {
                stopped = Some(signal);
                if let Some(withdraw) = withdraw {
                    withdraw.cancel();
                }
            }
            answered = &mut asking => break answered,
        }
    };
    let verdicts = answered.ok().flatten().filter(|verdicts| verdicts.len() == count);
    let verdicts = verdicts.ok_or_else(lost)?;
    stopped.map_or(Ok(verdicts), |signal| Err(ToolError::Stopped(signal)))
}
