//! A file, directory or other node of the file system.

use crate::policy::Identity;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A character or block device.
    Device,
    /// A symbolic link; never followed and never ruled.
    Symlink,
    /// A FIFO.
    Fifo,
    /// A Unix socket.
    Socket,
}

/// A file, directory or other node of the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Which inode it is.
    pub identity: Identity,
    /// The number of hard links.
    pub links: u64,
}
