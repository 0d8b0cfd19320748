//! Events → one hash-chained log that the parent writes and anybody can check.
//!
//! The story, file by file: [`event`] is what may be said, within bounds (`bounded`); `chain` makes a line of
//! it that carries the hash of the line before and its own, and follows such lines, `group` writes several at
//! once; `place` knows where the files of a log lie beside one another, and `files` which of them belong to
//! it; `lines` reads them, `step` takes the next one for a record, or for what a crash left; `head` keeps,
//! outside the log, how far it was certainly written; `turn` is one writer's turn among several; `cursor`
//! finds the end of a log, and holds it against the head; [`AuditLog`] (`log`) appends, makes durable and
//! rotates, and mends what a crash left half written. [`verify()`] walks all of it and names the first record
//! that is wrong (`fault`); [`records`] reads it for people.

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
mod log;
mod place;
mod read;
mod report;
mod step;
#[cfg(test)]
mod tests;
mod turn;
mod verify;

pub use bounded::{MOST_BYTES, Text, bounded};
pub use chain::Hash;
pub use error::AuditError;
pub use event::Event;
pub use fault::{Fault, Wrong};
pub use log::{AuditLog, Durability, Keeping};
pub use place::{Place, Reached};
pub use read::{Entry, records};
pub use report::{Report, Tail};
pub use verify::verify;
