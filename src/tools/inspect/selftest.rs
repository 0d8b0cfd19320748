//! The third arrow: a worker is really started, and tries what its plan forbids.

use crate::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation};
use crate::policy::Mode;
use crate::tools::call::ToolError;
use crate::tools::executor::{Executor, Places, Terminal};

use super::Inspection;

/// Nobody is asked when nothing is run.
struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::EndOfInput)
    }
}

impl Inspection {
    /// Starts a worker under the approved profile and waits for its self-test. Nothing is run in it.
    pub async fn self_test(&self, places: Places) -> Result<(), ToolError> {
        let (policy, narrowing) = (self.policy.clone(), self.narrowing.clone());
        let mut executor = Executor::new(policy, narrowing, Mode::Strict, Box::new(Nobody), places)?;
        if executor.is_unconfined() {
            return Err(ToolError::Refused("nothing here can confine a worker".to_owned()));
        }
        let tested = match executor.start_session(Terminal::None).await {
            Ok(()) => match &mut executor.session {
                Some(live) => live.confinement.ready().await.map_err(ToolError::from),
                None => Ok(()),
            },
            Err(error) => Err(error),
        };
        executor.finish().await;
        tested
    }
}
