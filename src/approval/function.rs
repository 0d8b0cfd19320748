//! Functions as approvers: a closure that returns a decision, and an async one.

use std::fmt;

use tokio::runtime::Handle;

use super::approver::{Approver, ApproverError};
use super::presentation::Presentation;
use super::request::{ApprovalDecision, ApprovalRequest};

/// What a function that answers questions may return: a decision, or a reason why there is none.
type Answer = Result<ApprovalDecision, ApproverError>;

impl From<ApprovalDecision> for Answer {
    fn from(decision: ApprovalDecision) -> Self {
        Ok(decision)
    }
}

/// A closure answers. [`Lazy::build`](super::Lazy::build) makes what a person would be shown, where it wants to see that.
impl<F, A> Approver for F
where
    F: FnMut(&ApprovalRequest) -> A,
    A: Into<Answer>,
{
    fn ask(&mut self, request: &ApprovalRequest, _presentation: &Presentation) -> Answer {
        self(request).into()
    }
}

/// An async function that answers questions.
///
/// Use it where the answer comes over a connection or a channel. It runs to its end on the runtime of the session, which must
/// have its drivers enabled; questions wait for one another. An ordinary closure needs no wrapper: it is an [`Approver`]
/// itself. The function returns an [`ApprovalDecision`], or a `Result` with an [`ApproverError`], which denies. After a
/// panic, this question and every later one is denied.
///
/// ```
/// use serde_json::json;
/// use stockade::{ApprovalDecision, ApprovalRequest, AsyncApprover, FunctionTool, ToolSet};
/// use tokio::sync::{mpsc, oneshot};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// // Somebody elsewhere in the program, who is sent a question and a way to answer it.
/// let (questions, mut inbox) = mpsc::channel::<(String, oneshot::Sender<bool>)>(1);
/// tokio::spawn(async move {
///     while let Some((question, answer)) = inbox.recv().await {
///         let _gone = answer.send(question == "call publish");
///     }
/// });
///
/// let approver = AsyncApprover::new(async move |request: &ApprovalRequest| {
///     let (answer, answered) = oneshot::channel();
///     let _gone = questions.send((request.description.clone(), answer)).await;
///     match answered.await {
///         Ok(true) => ApprovalDecision::approve(),
///         Ok(false) | Err(_) => ApprovalDecision::deny("not today"),
///     }
/// });
/// let mut tools = ToolSet::builder().approver(approver).build();
/// tools.add(Box::new(FunctionTool::new("publish", "Publish.", json!({}), |_| async { Ok(json!("published")) })));
/// assert_eq!(tools.call("publish", json!({})).await?.text, "published");
/// # Ok::<(), stockade::ToolError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AsyncApprover<F>(F);

impl<F> AsyncApprover<F> {
    /// An approver that waits for what this function returns.
    pub fn new<A>(function: F) -> Self
    where
        F: AsyncFnMut(&ApprovalRequest) -> A,
        A: Into<Result<ApprovalDecision, ApproverError>>,
    {
        Self(function)
    }
}

impl<F, A> Approver for AsyncApprover<F>
where
    F: AsyncFnMut(&ApprovalRequest) -> A,
    A: Into<Answer>,
{
    fn ask(&mut self, request: &ApprovalRequest, _presentation: &Presentation) -> Answer {
        let runtime = Handle::try_current()
            .map_err(|error| ApproverError::Nobody(format!("an async approver needs a tokio runtime: {error}")))?;
        runtime.block_on((self.0)(request)).into()
    }
}

impl<F> fmt::Debug for AsyncApprover<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncApprover").finish_non_exhaustive()
    }
}
