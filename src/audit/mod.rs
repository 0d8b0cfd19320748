//! Events → one hash-chained log that the parent writes and anybody can check.
//!
//! [`event`] defines the events, with bounded texts (`bounded`). `chain` makes each a line with the hash of the line
//! before and its own, and checks such lines; `group` writes several at once. `log_paths` has the paths of the files of
//! a log, and `files` finds those that exist. `lines` reads lines, and `step` the next record, or what a crash left.
//! `head` is a file that says how far the log is durable. `lock` is the lock of writers. `cursor` finds the end of a
//! log and verifies it against the head. [`AuditLog`] (`log`) appends, syncs, rotates, and repairs what a crash left.
//! [`verify()`] checks a log and reports the first fault (`fault`); [`records`] reads it for people.

mod bounded;
mod chain;
mod cursor;
mod error;
pub mod event;
mod fault;
mod files;
mod group;
mod head;
mod lines;
mod lock;
mod log;
mod log_paths;
mod read;
mod report;
mod step;
#[cfg(test)]
mod tests;
mod verify;

pub use bounded::{MOST_BYTES, Text, bounded};
pub use chain::Hash;
pub use error::AuditError;
pub use event::Event;
pub use fault::{Fault, Wrong};
pub use log::{AuditLog, Durability, Keeping};
pub use log_paths::{LogPaths, ReachCheck};
pub use read::{Entry, records};
pub use report::{Report, Tail};
pub use verify::verify;
