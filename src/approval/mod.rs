//! Request → decision: whether this call, with exactly these arguments, should happen.
//!
//! A tool that needs a yes makes an [`ApprovalRequest`]; the [`Controller`] answers it from the
//! mode, from what was approved for the session ([`Memory`]), or by asking an [`Approver`]. The
//! presentation is built only when somebody is really asked. Everything that goes wrong on the way
//! is a denial, and every decision is kept in the history.
//!
//! Knows no kernel: what confinement does is told to the person, never decided here.

mod answer;
mod approver;
mod asked;
mod cancel;
mod controller;
mod group;
mod keys;
mod memory;
mod note;
mod pager;
mod program;
mod random;
mod raw;
mod replied;
mod request;
mod screen;
mod socket;
mod terminal;
mod token;
mod tty;
mod verdict;

#[cfg(test)]
mod decisions;
#[cfg(test)]
mod on_a_terminal;

pub use approver::{Approver, ApproverError};
pub use asked::Asked;
pub use cancel::CancelHandle;
pub use controller::{Controller, SharedApprover};
pub use memory::{Approval, Memory};
pub use program::{Answered, Asking, ProgramApprover, RunProgram};
pub use random::random;
pub use request::{
    AnswerOf, ApprovalDecision, ApprovalRequest, CommandView, Content, FileView, Fingerprint, Lazy, Presentation,
    Remember,
};
pub use socket::{
    ApprovalsClient, ApprovalsEvent, ApprovalsPlace, ApprovalsReply, ApprovalsRequest, ClientError, Following,
    Happening, Listed, SocketApprover, Waiting, Watching,
};
pub use terminal::TerminalApprover;
pub use token::Token;
pub use verdict::{DecidedBy, Record, Verdict, Witness};
