//! The parent's side of a command's standard streams.
//!
//! [`stdio`] decides what each stream of the command is and makes both ends; [`pump`] moves bytes between the
//! command and the caller's own streams, with back-pressure, until the command's tree is dead and its output
//! is drained; [`capture`] bounds what is kept or shown of a long output; [`terminal`] is Stockade's own
//! pseudo-terminal, for a person at a keyboard. [`held`] is for a command that Stockade itself talks with.
//! [`channel`] is a pipe or terminal that Stockade made; [`host`] and [`socket`] read and write the caller's own descriptors without ever changing their flags, which other
//! processes share. [`keyboard`] is whose the user's keys are; [`end_key`] is the one that the command cannot keep. [`pause`] holds all of it up while somebody is asked something.
//! [`delivery`] counts what a reader who was given up has not got.
//!
//! The command never holds a descriptor of the caller's that could write to the host.

pub mod capture;
mod channel;
mod delivery;
mod end_key;
pub mod held;
mod host;
mod keyboard;
pub mod pause;
pub mod pump;
mod socket;
pub mod stdio;
pub mod terminal;

use std::io;

pub use capture::{Captured, HeadTail, StreamCap};
pub use delivery::Delivery;
pub use held::{HeldEnds, Pipe, hold};
pub use pause::{Held, Hold};
pub use pump::{Cut, Relayed};
pub use socket::HostSocket;
pub use stdio::{ChildEnds, InputKind, OutputMode, ParentEnds, Stdin, prepare};

/// Why a command's streams could not be made or served.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// A pipe could not be made.
    #[error("failed to make a pipe for a command: {0}")]
    Pipe(#[source] io::Error),
    /// `/dev/null` could not be opened.
    #[error("failed to open /dev/null: {0}")]
    Null(#[source] io::Error),
    /// A descriptor of Stockade's own could not be copied.
    #[error("failed to copy a standard stream: {0}")]
    Copy(#[source] io::Error),
    /// The pseudo-terminal could not be made or set up.
    #[error("failed to make a terminal for a command: {step}: {source}")]
    Terminal {
        /// The step that failed.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A descriptor could not be watched.
    #[error("failed to watch a command's streams: {0}")]
    Watch(#[source] io::Error),
    /// The command's output could not be read.
    #[error("failed to read a command's output: {0}")]
    Read(#[source] io::Error),
    /// Stockade's own output could not be written; a closed pipe is not an error but a [cut](Relayed::cut).
    #[error("failed to write a command's output: {0}")]
    Write(#[source] io::Error),
}
