//! What happens in a session, on record: where the policy says that a log is kept.
//!
//! A call is on record before it acts, a decision before it takes effect; an error on the way to the log refuses the one and
//! turns the other into a no. Without a log nothing here costs anything. `to_event` has the words.

mod command;
mod events;
mod log;
mod open;
mod to_event;

pub(super) use command::{CallId, CommandEnd};
pub(super) use events::{call_of_a_command, command_end, violations};
pub(super) use log::Recorder;
pub use log::log_stays_out_of_reach;
pub(super) use open::OpenCall;
pub(super) use to_event::{assessment, command_start};
