//! The approver: a person at a terminal, or a program in their place.

use std::path::PathBuf;
use std::time::Duration;

use super::request::{ApprovalDecision, ApprovalRequest, Presentation};
use crate::policy::Channel;
use crate::policy::path::display;

/// Answers one request at a time.
pub trait Approver {
    /// Asks; returns only with an answer or a reason why there is none, which denies the request.
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError>;

    /// Where it asks, for the record.
    fn channel(&self) -> Channel {
        Channel::Program
    }
}

/// The error of opening the terminal as text; empty where the process has no terminal.
fn unusual(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENXIO) => String::new(),
        Some(_) | None => format!(" ({error})"),
    }
}

/// Why nobody answered.
#[derive(Debug, thiserror::Error)]
pub enum ApproverError {
    /// There is no terminal to ask on.
    #[error(
        "there is no terminal to ask on{}; run it at one, choose another `--mode`, or let somebody else answer \
         (`--approver-program`, or `--approvals-socket` and `stockade approvals`)",
        unusual(.0)
    )]
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
    /// Another process had the keys of the terminal all the time.
    #[error("another command of Stockade's had the keys of the terminal for {0:?}, so nobody was asked")]
    Busy(Duration),
    /// What was typed is not an answer.
    #[error("the answer was not understood")]
    Unreadable,
    /// The question is larger than any approver is sent.
    #[error(
        "the question is too large to be asked here, where it could not be shown whole; `stockade approvals` or a terminal can show it"
    )]
    TooLarge,
    /// The approver program cannot be used at all.
    #[error("the approver program {} cannot be used: {why}", display(.program))]
    Program {
        /// The program.
        program: PathBuf,
        /// Why.
        why: String,
    },
    /// Nobody can be asked at this socket.
    #[error("the approvals socket {} cannot be used: {why}", display(.path))]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The question was handed on; its answer comes with another call of the same.
    #[error("the question was handed on, and is not answered yet")]
    Deferred,
    /// Nobody may be asked, or nobody is there to be asked.
    #[error("nobody can be asked: {0}")]
    Nobody(String),
    /// Whoever was asked gave no decision.
    #[error("there was no decision: {0}")]
    NoDecision(String),
}
