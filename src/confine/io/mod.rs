//! The parent's side of a command's standard streams.
//!
//! [`stdio`] decides what each stream of the command is and makes both ends; [`pump`] moves bytes between the
//! command and the caller's own streams, with back-pressure, until the command's tree is dead and its output
//! is drained; [`capture`] bounds what is kept or shown of a long output; [`terminal`] is Stockade's own
//! pseudo-terminal, for a person at a keyboard. [`pipes`] is for a command that Stockade itself writes to and reads.
//! [`channel`] is a pipe or terminal that Stockade made; [`host`] and [`socket`] read and write the caller's own descriptors without ever changing their flags, which other
//! processes share. [`keyboard`] is the lock of the user's keyboard; [`end_key`] is the key that ends a command; [`pause`] pauses the relay during a question.
//! [`delivery`] counts what a stuck reader has not got.
//!
//! The command never holds a descriptor of the caller's that could write to the host.

pub mod capture;
mod channel;
mod delivery;
mod end_key;
mod error;
mod host;
mod keyboard;
pub mod pause;
pub mod pipes;
pub mod pump;
mod socket;
pub mod stdio;
pub mod terminal;

pub use capture::{Captured, HeadTail, StreamCap};
pub use delivery::Delivery;
pub use error::IoError;
pub use pause::{Pause, Paused};
pub use pipes::{Pipe, PipeEnds, make_pipes};
pub use pump::{Cut, Relayed};
pub use socket::HostSocket;
pub use stdio::{ChildEnds, InputKind, OutputMode, ParentEnds, Stdin, prepare};
