//! Denials, each once: how often it was noted, and how often the kernel recorded it.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::{Layer, Seer, Wanted};
use crate::confine::attempted::{Arguments, Node};
use crate::policy::AbsPath;

/// A denial, not explained yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
    /// Of something with a file.
    File {
        wanted: Wanted,
        path: AbsPath,
        /// The path that the clauses are asked about: another name beside it where its directory stood in the way.
        asked: AbsPath,
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
    /// Of something with a name in a directory; which name is not known.
    Inside {
        wanted: Wanted,
        directory: AbsPath,
        /// The path that the clauses are asked about.
        asked: AbsPath,
    },
    /// Of something that Landlock keeps to the sandbox, whatever the clauses say.
    Scoped { wanted: Wanted, what: String },
}

/// A denial, and how often it was noted and recorded.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) denial: Denial,
    pub(super) noted: u64,
    pub(super) recorded: u64,
}

/// Denials, each once, in the order of the first time.
#[derive(Debug, Default)]
pub(super) struct Denials {
    pub(super) all: Vec<Counted>,
    known: HashMap<(Wanted, Vec<u8>), usize>,
    /// Those of names, by what was wanted of them and their directory.
    within: HashMap<(Wanted, AbsPath), Vec<usize>>,
}

impl Denial {
    /// What two denials have in common that are told as one.
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
            // No path ends like that, so it is told from what was noted.
            Self::Inside { wanted, directory, .. } => (*wanted, [directory.as_bytes(), b"/"].concat()),
            Self::Scoped { wanted, what } => (*wanted, what.clone().into_bytes()),
        }
    }
}

impl Denial {
    /// The directory that it hangs on, where it is about a name in one.
    fn hangs_on(&self) -> Option<(Wanted, AbsPath)> {
        let (wanted, path) = match self {
            Self::File { wanted, path, .. } if by_directory(*wanted) => (*wanted, path),
            Self::Node { path, .. } => (Wanted::Make, path),
            Self::File { .. }
            | Self::Unix(_)
            | Self::Address(_)
            | Self::Call { .. }
            | Self::Inside { .. }
            | Self::Scoped { .. } => return None,
        };
        Some((wanted, path.parent()?))
    }
}

impl Counted {
    /// Takes in how often the kernel says that Landlock denied it.
    const fn confirm(&mut self, times: u64) {
        self.recorded = times;
        if let Denial::File { by, .. } = &mut self.denial {
            *by = Layer::Landlock;
        }
    }

    pub(super) fn seen_by(&self) -> Vec<Seer> {
        let notification = (self.noted > 0).then_some(Seer::Notification);
        let audit = (self.recorded > 0).then_some(Seer::Audit);
        [notification, audit].into_iter().flatten().collect()
    }
}

impl Denials {
    fn counted(&mut self, denial: Denial) -> Option<&mut Counted> {
        let at = *self.known.entry(denial.key()).or_insert(self.all.len());
        if at == self.all.len() {
            if let Some(place) = denial.hangs_on() {
                self.within.entry(place).or_default().push(at);
            }
            self.all.push(Counted {
                denial,
                noted: 0,
                recorded: 0,
            });
        }
        self.all.get_mut(at)
    }

    pub(super) fn noted(&mut self, denial: Denial, times: u64) {
        if let Some(counted) = self.counted(denial) {
            counted.noted = counted.noted.saturating_add(times);
        }
    }

    /// Takes in what the kernel says was denied.
    pub(super) fn recorded(&mut self, denial: Denial, times: u64) {
        if let Some(counted) = self.counted(denial) {
            counted.confirm(counted.recorded.saturating_add(times));
        }
    }

    /// Takes in what the kernel says was denied, if it was noted.
    pub(super) fn confirmed(&mut self, denial: &Denial, times: u64) {
        let at = self.known.get(&denial.key());
        if let Some(counted) = at.and_then(|at| self.all.get_mut(*at)) {
            counted.confirm(counted.recorded.saturating_add(times));
        }
    }

    /// Takes in that the kernel denied something of names in this directory; whether that was noted.
    pub(super) fn recorded_in(&mut self, wanted: Wanted, directory: &AbsPath, times: u64) -> bool {
        // Who gives something another directory makes a name there, or removes one.
        let alike: &[Wanted] = match wanted {
            Wanted::Link => &[Wanted::Make, Wanted::Remove, Wanted::Link],
            _ => &[wanted],
        };
        let meant: Vec<usize> = alike
            .iter()
            .filter_map(|wanted| self.within.get(&(*wanted, directory.clone())))
            .flatten()
            .copied()
            .collect();
        let noted = meant
            .iter()
            .filter_map(|at| self.all.get(*at))
            .fold(0u64, |sum, counted| sum.saturating_add(counted.noted));
        if times >= noted {
            for at in &meant {
                if let Some(counted) = self.all.get_mut(*at) {
                    counted.confirm(counted.recorded.max(counted.noted));
                }
            }
        }
        !meant.is_empty()
    }
}

/// Whether it hangs on the directory of a name.
pub(super) const fn by_directory(wanted: Wanted) -> bool {
    matches!(wanted, Wanted::Make | Wanted::Remove | Wanted::Link)
}
