//! Whoever has tools for an agent: a config's own, or a third party's behind a guard.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::call::ToolError;
use super::deciding::ExtraApprover;
use super::output::Output;
use super::set::ToolInfo;
use super::tool::{ApprovalContext, Boxed};
use crate::approval::{Approver, CancelHandle};

/// Whoever has tools, and carries out calls of them: several at once.
pub trait Provider: Send + Sync {
    /// The tools, always in the same order.
    fn list(&self) -> Vec<ToolInfo>;

    /// Another number whenever [`list`](Self::list) may have become another.
    fn revision(&self) -> u64 {
        0
    }

    /// What an agent is told of all of them together.
    fn instructions(&self) -> &'static str {
        "Tools of one workspace, confined by the operating system. Paths are `root:path`, absolute, or relative to the \
         working directory. Some calls need a person's yes; a denial says which rule would allow the call."
    }

    /// Carries out one call, behind the guard.
    fn call(&self, call: ProvidedCall) -> Boxed<'_, Result<Output, ToolError>>;

    /// Ends whatever is under way, and waits until nothing of it is left.
    fn finish(&self) -> Boxed<'_, ()>;
}

/// Called with a line about how far a call has come.
pub type Progress = Arc<dyn Fn(String) + Send + Sync>;

/// One call.
pub struct ProvidedCall {
    /// What is called, and by whom.
    pub context: ApprovalContext,
    /// Who is asked about it.
    pub approver: Box<dyn Approver + Send>,
    /// Withdraws what it asks.
    pub withdraw: Option<CancelHandle>,
    /// Who is asked while its command runs.
    pub extra_approver: Option<ExtraApprover>,
    /// Whoever called wants no answer any more: the call is stopped, and what it started is killed.
    pub cancelled: CancellationToken,
    /// Told how far it has come, where a tool can say.
    pub progress: Option<Progress>,
}

impl fmt::Debug for ProvidedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvidedCall")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
