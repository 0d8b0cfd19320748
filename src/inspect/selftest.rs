//! The third arrow: forkers are really started, and try what their plans forbid.

use super::inspection::Inspection;
use crate::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation};
use crate::policy::{Audit, Mode};
use crate::tools::{Executor, Recovery, ToolError, UserPaths};

/// Denies: nothing runs, so nothing is asked.
struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::EndOfInput)
    }
}

impl Inspection {
    /// Starts a forker under each profile and waits for its self-test; runs nothing. Returns what was restored before.
    pub async fn self_test(&self, places: UserPaths) -> Result<Recovery, ToolError> {
        let (mut policy, narrowing) = (self.policy.clone(), self.narrowing.clone());
        // A self-test is not recorded.
        policy.audit = Audit::default();
        let executor = Executor::new(policy, narrowing, Mode::Strict, Box::new(Nobody), places)?;
        if executor.is_unconfined() {
            return Err(ToolError::Refused("no regime here can confine commands".to_owned()));
        }
        let mut profiles = vec![&self.approved];
        if self.unasked != self.approved {
            profiles.push(&self.unasked);
        }
        executor.self_test(&profiles).await
    }
}
