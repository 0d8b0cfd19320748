//! The approver: a person at a terminal, or a program in their place.

use std::path::PathBuf;
use std::time::Duration;

use super::presentation::Presentation;
use super::request::{ApprovalDecision, ApprovalRequest};
use crate::policy::Channel;
use crate::policy::path::display;

/// A person, or a program in their place, who answers one request at a time.
///
/// Give one to [`SessionBuilder::approver`](crate::SessionBuilder::approver) or
/// [`ToolSetBuilder::approver`](crate::ToolSetBuilder::approver). A closure from a request to a decision is one, and so is what
/// [`AsyncApprover`](crate::AsyncApprover) makes of an async function. Three ask elsewhere:
/// [`TerminalApprover`](crate::TerminalApprover), [`ProgramApprover`](crate::ProgramApprover) and
/// [`SocketApprover`](crate::SocketApprover). Implement it for a type of your own where more than the request is needed: what a
/// person would be shown, or the roots of the session.
///
/// ```
/// use stockade::{ApprovalDecision, ApprovalRequest, Approver, ApproverError, Presentation};
///
/// /// Approves short texts, and nothing else.
/// struct Short;
///
/// impl Approver for Short {
///     fn ask(&mut self, _: &ApprovalRequest, shown: &Presentation) -> Result<ApprovalDecision, ApproverError> {
///         Ok(match shown {
///             Presentation::Text(text) if text.len() < 80 => ApprovalDecision::approve(),
///             _ => ApprovalDecision::deny("too long for me"),
///         })
///     }
/// }
///
/// fn take(approver: impl Approver) {
///     // …
/// }
/// take(Short);
/// take(|request: &ApprovalRequest| match request.tool_name.as_str() {
///     "read_file" => ApprovalDecision::approve(),
///     _ => ApprovalDecision::deny("this session only reads"),
/// });
/// ```
pub trait Approver {
    /// Asks, and blocks until there is an answer or a reason why there is none.
    ///
    /// It runs on a thread of its own, never on the runtime.
    ///
    /// # Errors
    /// Nobody answered. The request is denied, and the agent is told why.
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError>;

    /// Learns, before the first question, which directories and files commands of the session may write.
    ///
    /// An approver that runs or reads files refuses here what lies there: commands could approve themselves. The default
    /// refuses nothing.
    ///
    /// # Errors
    /// It cannot be trusted in this session. The session does not open.
    fn begin(&mut self, _writable: &[PathBuf]) -> Result<(), ApproverError> {
        Ok(())
    }

    /// The channel on which it asks, for the audit log.
    fn channel(&self) -> Channel {
        Channel::Program
    }
}

impl Approver for Box<dyn Approver + Send> {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        (**self).ask(request, presentation)
    }

    fn begin(&mut self, writable: &[PathBuf]) -> Result<(), ApproverError> {
        (**self).begin(writable)
    }

    fn channel(&self) -> Channel {
        (**self).channel()
    }
}

/// The error of opening the terminal as text; empty where the process has no terminal.
fn unusual(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENXIO) => String::new(),
        Some(_) | None => format!(" ({error})"),
    }
}

/// The reason why nobody answered.
///
/// An [`Approver`] returns it; every variant denies the request. It prints as one sentence for the agent. An approver of
/// your own has [`Nobody`](Self::Nobody) and [`NoDecision`](Self::NoDecision) for its reasons.
///
/// ```
/// use stockade::ApproverError;
///
/// let error = ApproverError::Nobody("it is night".to_owned());
/// assert_eq!(error.to_string(), "nobody can be asked: it is night");
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ApproverError {
    /// The process has no controlling terminal: `/dev/tty` cannot be opened (tty(4)).
    #[error(
        "there is no terminal to ask on{} (`--approver-program` and `--approvals-socket` let somebody else answer)",
        unusual(.0)
    )]
    NoTerminal(#[source] std::io::Error),
    /// The process is in the background: another job has the terminal.
    #[error("the terminal belongs to another job; Stockade runs in the background")]
    Background,
    /// The terminal could not be read or written.
    #[error("asking on the terminal failed while {step}: {source}")]
    Terminal {
        /// The step that failed.
        step: &'static str,
        /// The error of the system.
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
    /// Nobody answered within this time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Another process of Stockade read the keys of the terminal for all of this time.
    #[error("another command of Stockade's had the keys of the terminal for {0:?}, so nobody was asked")]
    Busy(Duration),
    /// What was typed is not an answer.
    #[error("the answer was not understood")]
    Unreadable,
    /// The question is larger than a message to an approver may be.
    #[error(
        "the question is too large to be asked here, where it could not be shown whole; `stockade approvals` or a terminal can show it"
    )]
    TooLarge,
    /// The approver program cannot be used at all.
    #[error("the approver program {} cannot be used: {why}", display(.program))]
    Program {
        /// The path of the program.
        program: PathBuf,
        /// The reason.
        why: String,
    },
    /// The approvals socket cannot be used.
    #[error("the approvals socket {} cannot be used: {why}", display(.path))]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The question was handed to the caller of the tool, who answers it with a second call.
    #[error("the question was handed on, and is not answered yet")]
    Deferred,
    /// Nobody may be asked, or nobody is there, for this reason.
    #[error("nobody can be asked: {0}")]
    Nobody(String),
    /// Somebody was asked and gave no decision, for this reason.
    #[error("there was no decision: {0}")]
    NoDecision(String),
}
