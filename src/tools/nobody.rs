//! The approver of whoever gave none.

use crate::approval::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation};

/// Denies every question.
#[derive(Debug)]
pub(super) struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::Nobody(
            "the program gave no approver: `.approver(…)` on the builder takes one".to_owned(),
        ))
    }
}
