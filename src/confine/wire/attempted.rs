//! What a command attempted, as its runner reports it. It decides nothing.

use std::ffi::OsString;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What a command attempted: each thing once, in the order of the first time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attempted {
    /// What, and how often.
    pub all: Vec<(Attempt, u64)>,
    /// How many attempts were not examined, because there was no room or the caller had ended.
    pub unexamined: u64,
}

/// The first arguments of a call: all that its answer may depend on.
pub type Arguments = [u64; 4];

/// One thing that a command attempted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Attempt {
    /// Something with a file.
    File {
        /// What.
        access: FileAccess,
        /// The path, its links resolved as far as they lead somewhere in there.
        path: OsString,
        /// What there was in there.
        found: Found,
    },
    /// A connection, or a datagram.
    Reach(SocketAddr),
    /// A call that is refused whatever is in there.
    Call {
        /// Its number.
        number: u32,
        /// Its first arguments, as far as they may say what it is.
        arguments: Arguments,
    },
    /// A node that Landlock lets nobody make; its path and what there was, as for a file.
    Node {
        /// Which.
        node: Node,
        /// Where it was to be.
        path: OsString,
        /// What there was in there.
        found: Found,
    },
    /// Two files that were to be exchanged; path and state of each, as for a file.
    Exchange([(OsString, Found); 2]),
}

/// A kind of device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Node {
    /// A device, of characters or of blocks.
    Device,
    /// The device with which an overlay hides a name of a lower layer. The kernel lets everybody make it.
    Whiteout,
}

/// What a call does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileAccess {
    /// Its content.
    Read,
    /// The names in a directory.
    List,
    /// To change its content.
    Write,
    /// To create it.
    Make,
    /// To remove its name.
    Remove,
    /// To give it a name in another directory as well.
    Link,
    /// To run it.
    Execute,
    /// To change its attributes; it was refused.
    Attributes,
    /// To know whether it is there, and what it is.
    Look,
    /// To connect to the socket that it is.
    Connect,
}

/// What there was at a path, seen from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Found {
    /// It was there.
    There,
    /// Its directory was.
    Absent,
    /// Not even that; the path is as the command wrote it, made absolute.
    Nothing,
}
