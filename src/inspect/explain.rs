//! One path: which clause decides about it, what each backend makes of that, and what would change it.

use serde::Serialize;

use super::backend::HostBackends;
use super::inspection::Inspection;
use crate::backend::Regime;
use crate::config::amend::Writing;
use crate::policy::{AbsPath, Operation};
use crate::tools::checked_plan::CheckedPlan;
use crate::tools::explain::{Answer, Permitted};
use crate::tools::plan::PlanError;

/// The answers about one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathReport {
    /// The path, its links resolved.
    pub path: String,
    /// Each operation that was asked about.
    pub answers: Vec<Answer>,
}

impl PathReport {
    /// Whether anything that was asked about is permitted, be it after a yes, and stays.
    pub fn permits(&self) -> bool {
        let lasts = |answer: &Answer| answer.permitted != Permitted::No && answer.protected.is_none();
        self.answers.iter().any(lasts)
    }
}

impl Inspection {
    /// Explains the operations on a path. Nothing need be there.
    pub fn explain(&self, path: &AbsPath, operations: &[Operation]) -> PathReport {
        let on_host = HostBackends::probe(self, &self.backends);
        let each = on_host.all.iter();
        let plans: Vec<(Regime, Result<CheckedPlan, PlanError>)> = each
            .map(|candidate| (candidate.backend, candidate.lower(&self.approved)))
            .collect();
        // It is unknown which commands are asked about, so each suggested change permits it to all.
        let answer = |operation: &Operation| self.permissions().answer(*operation, path, Writing::Free, &plans);
        let answers = operations.iter().map(answer);
        PathReport {
            path: path.to_string(),
            answers: answers.collect(),
        }
    }
}
