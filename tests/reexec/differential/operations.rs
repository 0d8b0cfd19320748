//! Random operations: how they are spelled for the program inside, and what they mean on canonical paths.
//!
//! All operations of a case share one tree. What one of them may remove, move or replace no later one names, so that
//! each is judged on the state that the tree had at the start.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stockade::policy::{AbsPath, Grant, Operation};

use super::places::Planner;
use super::random::Random;
use super::tree::{Kind, Tree, abs};

/// What an operation asks of the model.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// Reaches the content of an object that is no folder.
    Content {
        operations: Vec<Operation>,
        object: AbsPath,
    },
    /// Lists a folder.
    List { folder: AbsPath },
    /// Makes or removes a name.
    Entry { entry: AbsPath },
    /// Makes a symbolic link and writes through it.
    Through { entry: AbsPath, object: AbsPath },
    /// Renames, or gives a second name.
    Move { from: AbsPath, to: AbsPath, kind: Kind },
    /// Exchanges two files.
    Exchange { one: AbsPath, other: AbsPath },
    /// Changes mode, owner, times or extended attributes.
    Attributes { object: AbsPath },
    /// Connects to somebody who listens on the host.
    Internet,
    /// Makes a Unix socket.
    UnixSocket,
    /// Signals, traces or reads a process outside.
    ProcessOutside,
    /// Signals a child of its own.
    OwnProcess,
}

/// One operation.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// What the program inside is told.
    pub(crate) letter: u8,
    pub(crate) arguments: [Vec<u8>; 2],
    pub(crate) deed: Deed,
    /// Every folder and link that the arguments lead through.
    pub(crate) way: Vec<PathBuf>,
}

impl Attempt {
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let [a, b] = &self.arguments;
        [&[self.letter], a.as_slice(), b.as_slice()]
            .map(|part| [part, b"\0"].concat())
            .concat()
    }

    fn one(letter: u8, path: &Path, deed: Deed) -> Self {
        Self::two(letter, path, Path::new(""), deed)
    }

    fn two(letter: u8, a: &Path, b: &Path, deed: Deed) -> Self {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        // What is done to a name is done to the link itself.
        let follows = match deed {
            Deed::Content { .. } | Deed::List { .. } | Deed::Attributes { .. } => [true, false],
            Deed::Through { .. } => [false, true],
            Deed::Entry { .. }
            | Deed::Move { .. }
            | Deed::Exchange { .. }
            | Deed::Internet
            | Deed::UnixSocket
            | Deed::ProcessOutside
            | Deed::OwnProcess => [false, false],
        };
        let ways = [(a, follows[0]), (b, follows[1])];
        let way = ways.into_iter().flat_map(|(path, follow)| way(path, follow));
        Self {
            letter,
            arguments: [bytes(a), bytes(b)],
            way: way.collect(),
            deed,
        }
    }
}

/// What is there beside files.
#[derive(Debug)]
pub(crate) struct Beyond {
    /// Where somebody listens on the host's loopback.
    pub(crate) port: u16,
    /// Processes outside the command, by the numbers that it would know them by.
    pub(crate) processes: Vec<u32>,
}

/// The folders and links that a path leads through, and what it leads to in the end.
fn way(path: &Path, follow: bool) -> Vec<PathBuf> {
    let (mut seen, mut at) = (Vec::new(), PathBuf::from("/"));
    let below = path.strip_prefix("/proc/self/root").or_else(|_| path.strip_prefix("/"));
    let Ok(below) = below else {
        return seen;
    };
    let mut rest: Vec<_> = below.iter().map(ToOwned::to_owned).rev().collect();
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        at.push(name);
        match fs::read_link(&at) {
            Ok(target) if follow || !rest.is_empty() => {
                seen.push(at.clone());
                rest.extend(
                    target
                        .iter()
                        .skip(1)
                        .map(ToOwned::to_owned)
                        .collect::<Vec<_>>()
                        .into_iter()
                        .rev(),
                );
                at = "/".into();
            }
            Ok(_) | Err(_) => {
                if !rest.is_empty() {
                    seen.push(at.clone());
                }
            }
        }
    }
    seen
}

/// `count` operations on the tree as it is now, more of them where a profile grants something than elsewhere.
pub(crate) fn attempts(
    random: &mut Random,
    tree: &Tree,
    granted: &[Grant],
    beyond: &Beyond,
    count: usize,
) -> Vec<Attempt> {
    let named = |path: &Path| granted.iter().any(|grant| grant.path.as_path() == path);
    let within = |path: &Path| granted.iter().any(|grant| path.starts_with(&grant.path));
    let of = |hit: &dyn Fn(&Path) -> bool| tree.entries.iter().filter(|(path, _)| hit(path)).cloned().collect();
    let mut planner = Planner {
        random,
        tree,
        named: of(&|path| named(path) || !tree.other_names(&abs(path)).is_empty()),
        within: of(&within),
        beyond,
        used_up: BTreeSet::new(),
        fresh: 0,
    };
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(planner.next());
    }
    all
}

impl Planner<'_> {
    fn next(&mut self) -> Option<Attempt> {
        match self.random.below(100) {
            0..35 => self.content(),
            35..43 => self.list(),
            43..56 => self.make(),
            56..64 => self.remove(),
            64..80 => self.relocate(),
            80..82 => self.exchange(),
            82..85 => self.through(),
            85..96 => self.attributes(),
            _ => Some(self.beyond_files()),
        }
    }

    fn content(&mut self) -> Option<Attempt> {
        use Operation::{Execute, Read, Write};
        let ways: [(u8, &[Operation]); 12] = [
            (b'r', &[Read]),
            (b'p', &[Read]),
            (b'h', &[Read]),
            (b'w', &[Write]),
            (b'a', &[Write]),
            (b't', &[Write]),
            (b'T', &[Write]),
            (b'P', &[Write]),
            (b'H', &[Write]),
            (b'b', &[Read, Write]),
            (b'x', &[Execute]),
            (b'x', &[Execute]),
        ];
        let (letter, operations) = *self.random.pick(&ways);
        let (path, object) = self.spelled(Kind::File)?;
        let path = self.through_own_root(path);
        let operations = operations.to_vec();
        Some(Attempt::one(letter, &path, Deed::Content { operations, object }))
    }

    fn list(&mut self) -> Option<Attempt> {
        let kind = if self.random.chance(80) {
            Kind::Folder
        } else {
            Kind::Empty
        };
        let (path, folder) = self.spelled(kind)?;
        let path = self.through_own_root(path);
        Some(Attempt::one(b'l', &path, Deed::List { folder }))
    }

    fn make(&mut self) -> Option<Attempt> {
        let letter = *self.random.pick(b"ccCdsfz");
        let (path, entry) = self.new_name()?;
        Some(Attempt::one(letter, &path, Deed::Entry { entry }))
    }

    fn remove(&mut self) -> Option<Attempt> {
        let (letter, kind) = *self
            .random
            .pick(&[(b'u', Kind::File), (b'u', Kind::Link), (b'D', Kind::Empty)]);
        let path = self.existing(kind)?;
        self.used_up.insert(path.clone());
        Some(Attempt::one(letter, &path, Deed::Entry { entry: abs(&path) }))
    }

    fn relocate(&mut self) -> Option<Attempt> {
        let kinds = [
            Kind::File,
            Kind::File,
            Kind::File,
            Kind::Link,
            Kind::Empty,
            Kind::Folder,
            Kind::Folder,
        ];
        let kind = *self.random.pick(&kinds);
        let from = self.existing(kind)?;
        let (path, to) = match self.random.below(10) {
            0 if kind == Kind::File => {
                let to = self.existing(Kind::File)?;
                (to.clone(), abs(&to))
            }
            0..3 => self.new_name_in(from.parent()?),
            _ => self.new_name()?,
        };
        let own_top = kind == Kind::Folder && from.parent() == self.tree.area[0].parent();
        if to.is_within(&abs(&from)) || own_top {
            return None;
        }
        let (letter, link) = if kind == Kind::File && self.random.chance(40) {
            (b'k', true)
        } else {
            (b'm', false)
        };
        // A second name cannot take the place of a first one.
        if self.is_same(&from, &to) || link && fs::symlink_metadata(&to).is_ok() {
            return None;
        }
        if !link {
            self.used_up.insert(from.clone());
        }
        self.used_up.insert(to.as_path().to_owned());
        let deed = Deed::Move {
            from: abs(&from),
            to,
            kind,
        };
        Some(Attempt::two(letter, &from, &path, deed))
    }

    fn exchange(&mut self) -> Option<Attempt> {
        let (one, other) = (self.existing(Kind::File)?, self.existing(Kind::File)?);
        if self.is_same(&one, &abs(&other)) {
            return None;
        }
        self.used_up.extend([one.clone(), other.clone()]);
        let deed = Deed::Exchange {
            one: abs(&one),
            other: abs(&other),
        };
        Some(Attempt::two(b'e', &one, &other, deed))
    }

    /// To move one name of a file to another one of the same file, or to exchange them, does nothing at all.
    fn is_same(&self, one: &Path, other: &AbsPath) -> bool {
        one == other.as_path() || self.tree.other_names(other).contains(&abs(one))
    }

    fn through(&mut self) -> Option<Attempt> {
        let (path, entry) = self.new_name()?;
        let (target, object) = self.spelled(Kind::File)?;
        Some(Attempt::two(b'S', &path, &target, Deed::Through { entry, object }))
    }

    fn attributes(&mut self) -> Option<Attempt> {
        let letter = *self.random.pick(b"oOig");
        let kind = *self.random.pick(&[Kind::File, Kind::File, Kind::Folder, Kind::Empty]);
        let (path, object) = self.spelled(kind)?;
        Some(Attempt::one(letter, &path, Deed::Attributes { object }))
    }

    fn beyond_files(&mut self) -> Attempt {
        let port = u32::from(self.beyond.port);
        let process = *self.random.pick(&self.beyond.processes);
        let (letter, number, deed) = match self.random.below(6) {
            0 => (b'n', port, Deed::Internet),
            1 => (b'N', 0, Deed::UnixSocket),
            2 => (b'K', process, Deed::ProcessOutside),
            3 => (b'Y', process, Deed::ProcessOutside),
            4 => (b'V', process, Deed::ProcessOutside),
            _ => (b'j', 0, Deed::OwnProcess),
        };
        Attempt::one(letter, Path::new(&number.to_string()), deed)
    }
}
