//! Request → decision: whether this call, with exactly these arguments, should happen.
//!
//! A tool that needs a yes makes an [`ApprovalRequest`]; the [`Controller`] answers it from the
//! mode, from what was approved for the session ([`memory`]), or by asking an [`Approver`]. The
//! presentation is built only when somebody is really asked. Everything that goes wrong on the way
//! is a denial, and every decision is kept in the history.
//!
//! Knows no kernel: a question shows what confinement permits; nothing here decides that.

mod answer;
mod approver;
mod cancel;
mod controller;
mod decision_message;
mod function;
mod group;
mod json_bytes;
mod keys;
mod memory;
mod note;
mod pager;
mod presentation;
mod program;
mod random;
mod removal;
mod request;
mod request_message;
mod scope;
mod screen;
mod socket;
mod terminal;
mod token;
mod tty;
mod verdict;

#[cfg(test)]
mod controller_tests;
#[cfg(test)]
mod terminal_tests;

pub use approver::{Approver, ApproverError};
pub use cancel::CancelHandle;
pub use controller::{Controller, SharedApprover};
pub use function::AsyncApprover;
pub use memory::Approval;
pub use presentation::{CommandView, Content, FileView, Lazy, Presentation};
pub use program::{ProgramApprover, ProgramOutput, ProgramRun, RunProgram};
pub use random::random;
pub use removal::{RemovalView, Removed};
pub use request::{AnswerOf, ApprovalDecision, ApprovalRequest, Fact, Fingerprint};
pub use request_message::RequestMessage;
pub use scope::{Remember, SessionScope};
pub use socket::{
    ApprovalsAddress, ApprovalsClient, ApprovalsEvent, ApprovalsReply, ApprovalsRequest, ClientError, EventStream,
    RequestSummary, SessionEvent, SessionEvents, SessionRequests, SocketApprover,
};
pub use terminal::TerminalApprover;
pub use token::Token;
pub use verdict::{DecidedBy, Record, RecordDecision, Verdict};
