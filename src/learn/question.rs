//! Questions to a person about proposed changes: all in one, but secret or broad ones one by one.

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::proposal::Proposal;
use super::risk::Risk;
use crate::approval::{AnswerOf, ApprovalRequest, DecidedBy, Lazy, Presentation};
use crate::tools::{Executor, ToolError};

/// The name of the questions.
const NAME: &str = "learn";

/// A question about a config.
#[derive(Debug, Clone)]
pub struct ConfigQuestion {
    /// What is asked, in a line.
    pub description: String,
    /// The change to the text.
    pub diff: String,
    /// Why it is a question.
    pub why: Vec<String>,
}

impl ConfigQuestion {
    /// Asks a person. Modes and remembered approvals do not count.
    ///
    /// # Errors
    /// A signal came while it was asked.
    pub async fn ask(self, executor: &Executor, stops: &mut mpsc::Receiver<Signal>) -> Result<Answer, ToolError> {
        let Some(verdict) = executor.ask(request(self), stops).await? else {
            return Ok(Answer::Nobody);
        };
        Ok(match verdict.by {
            DecidedBy::Approver if verdict.decision.approved => Answer::Yes,
            DecidedBy::Approver => Answer::No,
            DecidedBy::Mode(_)
            | DecidedBy::Memory
            | DecidedBy::Failure(_)
            | DecidedBy::Unrecorded(_)
            | DecidedBy::Pending => Answer::Nobody,
        })
    }
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// There was no valid answer.
    Nobody,
}

fn request(question: ConfigQuestion) -> ApprovalRequest {
    let ConfigQuestion { description, diff, why } = question;
    let reasons = why.join("\n");
    let payload = [description.as_bytes(), diff.as_bytes()].join(&0);
    ApprovalRequest {
        answer: AnswerOf::ApproverOnly,
        payload,
        presentation: Lazy::new(move || {
            let change = ("the change".to_owned(), Presentation::Diff(diff.clone()));
            let reasons = ("why".to_owned(), Presentation::Text(reasons.clone()));
            Ok(Presentation::Several(vec![reasons, change]))
        }),
        allowed_by: "`--include` accepts one change by name".to_owned(),
        why,
        ..ApprovalRequest::new(NAME, description)
    }
}

/// The proposals of each question: all together, but what is secret or broad, each alone.
pub fn questions(proposals: &[Proposal]) -> Vec<Vec<&Proposal>> {
    let (secret, rest): (Vec<_>, Vec<_>) = proposals
        .iter()
        .partition(|proposal| proposal.rating.risk == Risk::Secret);
    let together = std::iter::once(rest).filter(|all| !all.is_empty());
    together.chain(secret.into_iter().map(|one| vec![one])).collect()
}
