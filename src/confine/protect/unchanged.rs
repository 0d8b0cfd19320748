//! Asking every directory of an earlier walk whether it is as it was.
//!
//! In a quiet tree this is nearly all that a walk does, and nearly all of it is the kernel's: one look at each
//! directory. No look depends on another, so the table is cut into parts that are asked side by side.
//! The order does not matter either. A symlink on the way cannot deceive a look, because it is the identity
//! of what is reached that is compared; and a directory that something was put in the way of has lost an
//! entry, so it is itself no longer as it was.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::thread;

use nix::fcntl::AtFlags;
use nix::sys::stat::{fstat, fstatat};

use super::at::{self, Identity};
use super::roots::Root;
use super::sight::{Directory, NONE, Sight};
use super::stamp::Stamp;
use crate::confine::linger::processors;

/// How many directories are worth a thread: starting one costs as much as a hundred looks.
const WORTH: usize = 512;
/// Threads at most; the looks of more would stand in each other's way in the kernel.
const THREADS: usize = 4;
/// Directories in a part.
const PART: usize = 64;
/// Longest path the kernel is given in one piece.
const PIECE: usize = 3500;

/// Who else has work to do while the directories are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// Whoever waits for the answer waits for nothing else.
    Nobody,
    /// The parent, which makes the plan meanwhile. It is left a processor: taking that one too would save
    /// nothing here that is not lost there.
    Parent,
}

impl Company {
    /// How many processors are left of so many.
    fn leaves(self, processors: usize) -> usize {
        match self {
            Self::Nobody => processors,
            Self::Parent => processors.saturating_sub(1),
        }
    }
}

/// For each directory of `earlier`, whether it is certain that nothing was put into it, taken out or renamed in it.
///
/// What could not be asked counts as changed, and so does one whose stamp tells nothing.
pub(super) fn unchanged(roots: &[Root], earlier: &Sight, company: Company) -> Vec<bool> {
    let processors = company.leaves(processors());
    ask_in(processors.min(THREADS).min(earlier.len() / WORTH), PART, roots, earlier)
}

fn ask_in(askers: usize, part: usize, roots: &[Root], earlier: &Sight) -> Vec<bool> {
    let mut same = vec![false; earlier.len()];
    let parts = Mutex::new(same.chunks_mut(part).zip((0..).step_by(part)));
    // Each takes the next part when it has done one: nobody waits for one whose processor somebody else took.
    let take_turns = |through| {
        let mut asker = Asker::new(roots, earlier, through);
        loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((part, start)) = next else { break };
            asker.ask(part, start);
        }
    };
    thread::scope(|scope| {
        for _ in 1..askers {
            let builder = thread::Builder::new().stack_size(128 * 1024);
            // Without a thread the others do its share.
            let _alone = builder.spawn_scoped(scope, || take_turns(Through::Own));
        }
        take_turns(Through::Shared);
    });
    same
}

/// Which descriptor of a root a thread asks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    /// That of everybody.
    Shared,
    /// One of its own: threads that count users of the same one slow each other down.
    Own,
}

/// Who asks, and what helps with the next question.
struct Asker<'a> {
    roots: &'a [Root],
    earlier: &'a Sight,
    through: Through,
    own: Option<(u16, OwnedFd)>,
    path: Vec<u8>,
    /// Children of one directory lie side by side: the way to them is put together once.
    way: (u32, usize),
}

impl<'a> Asker<'a> {
    fn new(roots: &'a [Root], earlier: &'a Sight, through: Through) -> Self {
        Self {
            roots,
            earlier,
            through,
            own: None,
            path: Vec::new(),
            way: (NONE, 0),
        }
    }

    /// Asks the directories from number `start` on.
    fn ask(&mut self, part: &mut [bool], start: usize) {
        for (same, directory) in part.iter_mut().zip(&self.earlier.directories[start..]) {
            let (Some(stamp), Some(root)) = (directory.stamp, self.roots.get(usize::from(directory.root))) else {
                continue;
            };
            self.go_to(directory);
            if self.through == Through::Own && self.own.as_ref().is_none_or(|own| own.0 != directory.root) {
                self.own = at::open_place(&root.fd, b"").ok().map(|fd| (directory.root, fd));
            }
            let base = self.own.as_ref().map_or(root.fd.as_fd(), |own| own.1.as_fd());
            let found = match self.path.len() {
                0 => fstat(base),
                1..PIECE => fstatat(base, self.path.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW),
                _ => at::stat(base, &self.path),
            };
            *same = found.is_ok_and(|found| {
                Identity::of(&found) == directory.identity
                    && Stamp::of(&found) == stamp
                    && at::kind(&found) == libc::S_IFDIR
            });
        }
    }

    fn go_to(&mut self, directory: &Directory) {
        if directory.depth == 0 {
            self.path.clear();
            self.way = (NONE, 0);
            return;
        }
        if self.way.0 != directory.parent {
            self.path = self.earlier.path(directory.parent);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.way = (directory.parent, self.path.len());
        }
        self.path.truncate(self.way.1);
        self.path.extend_from_slice(self.earlier.name(directory.name));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::time::Duration;

    use super::super::names::Names;
    use super::super::patterns::Patterns;
    use super::super::roots::open_roots;
    use super::super::walk::walk;
    use super::*;

    /// Two roots with a few directories each, some deep, seen once their stamps can be relied on.
    fn seen(folder: &Path) -> (Vec<Root>, Sight) {
        let paths = ["one", "two"].map(|name| folder.join(name));
        for path in &paths {
            for number in 0..9 {
                fs::create_dir_all(path.join(format!("d{number}/e/f{number}"))).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(60));
        let mut patterns = Patterns::new(&Names::default());
        let roots = open_roots(&paths, &[], &mut patterns).unwrap();
        let sight = walk(&roots, &patterns, None, Company::Nobody).unwrap();
        (roots, sight)
    }

    #[test]
    fn every_directory_is_asked_however_many_share_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, sight) = seen(folder.path());
        assert_eq!(sight.len(), 56);
        for (askers, part) in (0..9).flat_map(|askers| [1, 3, 7, 56, 99].map(|part| (askers, part))) {
            let same = ask_in(askers, part, &roots, &sight);
            assert_eq!(same, vec![true; 56], "{askers} {part}");
        }
        for index in 0..sight.len() {
            let directory = &sight.directories[index];
            let root = &roots[usize::from(directory.root)].path;
            let path = root.join(OsStr::from_bytes(&sight.path(u32::try_from(index).unwrap())));
            fs::write(path.join("new"), "").unwrap();
            for (askers, part) in [(1, 56), (2, 9), (3, 1), (7, 5)] {
                let same = ask_in(askers, part, &roots, &sight);
                let expected: Vec<bool> = (0..56).map(|other| other > index).collect();
                assert_eq!(same, expected, "{askers} {part} {}", path.display());
            }
        }
    }

    #[test]
    fn another_directory_in_its_place_is_not_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, sight) = seen(folder.path());
        let place = folder.path().join("one/d3");
        fs::rename(&place, folder.path().join("aside")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("aside"), &place).unwrap();
        let same = unchanged(&roots, &sight, Company::Nobody);
        let at = |path: &[u8]| {
            let found = (0..56).find(|&index| sight.directories[index as usize].root == 0 && sight.path(index) == path);
            same[found.unwrap() as usize]
        };
        assert!(!at(b"") && !at(b"d3"));
        assert!(at(b"d4") && at(b"d4/e"));
    }
}
