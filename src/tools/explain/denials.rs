//! Denials, each once, and how often it was noted.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::explained::{Layer, Wanted};
use crate::confine::wire::attempted::{Arguments, Node};
use crate::policy::AbsPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
    /// Of something with a file.
    File {
        wanted: Wanted,
        path: AbsPath,
        /// The path that the clauses are asked about: another name beside it where its directory stood in the way.
        checked_path: AbsPath,
        by: Layer,
    },
    /// Of a node that no clause could permit.
    Node { node: Node, path: AbsPath, by: Layer },
    /// Of a socket with a path.
    Unix(AbsPath),
    /// Of an address.
    Address(SocketAddr),
    /// Of a call.
    Call { number: u32, arguments: Arguments },
}

/// Denials, each once, in the order of the first time.
#[derive(Debug, Default)]
pub(super) struct Denials {
    pub(super) all: Vec<(Denial, u64)>,
    known: HashMap<(Wanted, Vec<u8>), usize>,
}

impl Denial {
    /// The key under which equal denials are counted.
    fn key(&self) -> (Wanted, Vec<u8>) {
        match self {
            Self::File { wanted, path, .. } => (*wanted, path.as_bytes().to_vec()),
            // To make something else under that name may be permitted, and is told by itself where it is not.
            Self::Node { node, path, .. } => (
                Wanted::Make,
                // No path has two in a row.
                [path.as_bytes(), format!("//{node:?}").as_bytes()].concat(),
            ),
            Self::Unix(path) => (Wanted::Connect, path.as_bytes().to_vec()),
            Self::Address(address) => (Wanted::Connect, address.to_string().into_bytes()),
            Self::Call { number, arguments } => (Wanted::Call, format!("{number} {arguments:?}").into_bytes()),
        }
    }
}

impl Denials {
    pub(super) fn add(&mut self, denial: Denial, times: u64) {
        let at = *self.known.entry(denial.key()).or_insert(self.all.len());
        match self.all.get_mut(at) {
            Some((_, add)) => *add = add.saturating_add(times),
            None => self.all.push((denial, times)),
        }
    }
}

/// Whether the operation depends on the directory of the name.
pub(super) const fn by_directory(wanted: Wanted) -> bool {
    matches!(wanted, Wanted::Make | Wanted::Remove | Wanted::Link)
}
