//! Call → assess → approve → confine → [`Outcome`]: the only floor that sees both approval and confine.
//!
//! [`plan`] lowers a profile and holds each arrow of the never-weaker promise before anything
//! starts; [`environment`] makes the environment of a command; [`shell`] is the shell tool: it judges
//! the line, asks, confines, runs and reports. [`regime`] says in one line what holds, [`inspect`] in full,
//! without running anything. [`footing`] finds the regime to hold commands in: `remembered` knows that namespaces
//! worked, and `fall` takes the regime below where they do not, or cannot hold the config.

mod approvals;
pub mod call;
pub mod doctor;
pub mod environment;
pub mod executor;
mod fall;
pub mod footing;
pub mod identity;
pub mod inspect;
pub mod narrowing;
mod offers;
pub mod outcome;
pub mod plan;
pub mod regime;
mod remembered;
pub mod shell;
mod workers;

pub use crate::approval::TerminalApprover;
pub use crate::confine::io::terminal::columns as terminal_columns;
pub use crate::confine::io::{OutputMode, Stdin};
pub use call::{ShellCall, ShellCommand, ToolError};
pub use executor::{Executor, Places};
pub use narrowing::Narrowing;
pub use outcome::{Outcome, Restored, Status, Then};
pub use plan::PlanError;
