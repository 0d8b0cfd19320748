//! Whoever answers: a person at a terminal, or a program in their place.

use std::time::Duration;

use super::request::{ApprovalDecision, ApprovalRequest, Presentation};

/// Answers one request at a time.
pub trait Approver {
    /// Asks; returns only with an answer or a reason why there is none, which denies the request.
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError>;
}

/// Why nobody answered.
#[derive(Debug, thiserror::Error)]
pub enum ApproverError {
    /// There is no terminal to ask on.
    #[error("there is no terminal to ask on: {0}")]
    NoTerminal(#[source] std::io::Error),
    /// Another job holds the terminal.
    #[error("the terminal belongs to another job; Stockade runs in the background")]
    Background,
    /// The terminal could not be read or written.
    #[error("asking on the terminal failed while {step}: {source}")]
    Terminal {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The terminal was closed, or Ctrl-D pressed.
    #[error("the terminal gave no answer (end of input)")]
    EndOfInput,
    /// Ctrl-C or Ctrl-\ was pressed.
    #[error("the question was interrupted")]
    Interrupted,
    /// The question was withdrawn through a [`CancelHandle`](super::CancelHandle).
    #[error("the question was withdrawn before it was answered")]
    Cancelled,
    /// No answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// What was typed is not an answer.
    #[error("the answer was not understood")]
    Unreadable,
}
