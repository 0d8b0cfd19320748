//! File operations in a confined child: the parent never opens a path that an agent chose.
//!
//! [`protocol`] has the messages and [`serve()`] answers them. An agent's path is resolved once, by [`look`];
//! the parent judges the result, and from then on every path is opened without following a symlink ([`location`]), so one that was put
//! there since makes the operation fail. [`effect`] computes what a change amounts to and changes nothing; preparing, showing and
//! applying all start from it, so that what is applied can be held against what was shown. [`apply`] makes
//! changes, all or none. The rest reads.
//!
//! It runs single-threaded, on the file system that an agent's commands change meanwhile: everything that is read is
//! bounded, and what is not a regular file is never opened for reading.

mod apply;
mod clock;
mod contents;
mod edit;
mod effect;
mod exchange;
mod failure;
mod ignored;
mod journal;
mod list;
mod location;
mod look;
mod magic;
mod near;
mod patch;
pub mod protocol;
mod read;
mod scan;
mod search;
mod select;
mod serve;
pub mod server;
mod show;
mod spelling;
mod state;
mod stream;
mod temporary;
mod tree;
mod walk;

pub use exchange::Take;
pub use serve::serve;
pub use server::{FileServer, Pending, Progress};

#[cfg(test)]
mod tests;
