//! The third arrow: workers are really started, and try what their plans forbid.

use super::Inspection;
use crate::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation};
use crate::confine::ForkerFor;
use crate::policy::{Audit, Mode};
use crate::profile::{Asked, Profile};
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::places::Places;
use crate::tools::restored::Recovery;

/// Nobody is asked when nothing is run.
struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::EndOfInput)
    }
}

impl Inspection {
    /// Starts a worker under each of the profiles and waits for its self-test. Nothing is run in it. What was put back before.
    pub async fn self_test(&self, places: Places) -> Result<Recovery, ToolError> {
        let (mut policy, narrowing) = (self.policy.clone(), self.narrowing.clone());
        // Nothing happens that would be worth a record.
        policy.audit = Audit::default();
        let mut executor = Executor::new(policy, narrowing, Mode::Strict, Box::new(Nobody), places)?;
        if executor.is_unconfined() {
            return Err(ToolError::Refused("nothing here can confine a worker".to_owned()));
        }
        let mut tested = test(&mut executor, &self.approved).await;
        if tested.is_ok() && self.unasked != self.approved {
            tested = test(&mut executor, &self.unasked).await;
        }
        let tested = match tested {
            Ok(()) => Ok(executor.recovered.take().unwrap_or_default()),
            Err(error) => Err(executor.with_recovery(error).await),
        };
        executor.finish().await.and(tested)
    }
}

async fn test(executor: &mut Executor, profile: &Profile) -> Result<(), ToolError> {
    let start = executor.start_worker(profile, ForkerFor::Others, &Asked::Nobody);
    let mut worker = start.await?;
    let ready = worker.ready().await;
    worker.finish().await;
    Ok(ready?)
}
