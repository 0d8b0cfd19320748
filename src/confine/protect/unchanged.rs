//! Asking every directory of an earlier walk whether it is as it was.
//!
//! In a quiet tree this is nearly all that a walk does, and nearly all of it is the kernel's: one look at each
//! directory. No look depends on another, so the table is cut into pieces that are asked side by side.
//! The order does not matter either. A symlink on the way cannot deceive a look, because it is the identity
//! of what is reached that is compared; and a directory that something was put in the way of has lost an
//! entry, so it is itself no longer as it was.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use nix::fcntl::AtFlags;
use nix::sys::stat::{fstat, fstatat};

use super::at::{self, Identity};
use super::roots::Root;
use super::sight::{NONE, Sight};
use super::stamp::Stamp;
use crate::confine::spread::Processors;

/// How many directories are worth a thread: starting one costs as much as a hundred looks.
const WORTH: usize = 512;
/// Threads at most; the looks of more would stand in each other's way in the kernel.
const THREADS: usize = 4;
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
    let processors = company.leaves(Processors::mine().count());
    ask_in(processors.min(THREADS).min(earlier.len() / WORTH), roots, earlier)
}

fn ask_in(pieces: usize, roots: &[Root], earlier: &Sight) -> Vec<bool> {
    let mut same = vec![false; earlier.len()];
    let piece = same.len().div_ceil(pieces.max(1)).max(1);
    thread::scope(|scope| {
        let mut processors = Processors::mine();
        let mut parts = same.chunks_mut(piece).zip((0..).step_by(piece));
        let own = parts.next();
        for (part, start) in parts {
            let builder = thread::Builder::new().stack_size(128 * 1024);
            // Without a thread its part stays unasked, and is read instead.
            let _unasked = processors.start(builder, scope, move || ask(part, start, roots, earlier, Through::Own));
        }
        if let Some((part, start)) = own {
            ask(part, start, roots, earlier, Through::Shared);
        }
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

/// Asks the directories from number `start` on.
fn ask(part: &mut [bool], start: usize, roots: &[Root], earlier: &Sight, through: Through) {
    let mut path = Vec::new();
    let mut own: Option<(u16, OwnedFd)> = None;
    // Children of one directory lie side by side: the way to them is put together once.
    let mut way = (NONE, 0);
    for (same, directory) in part.iter_mut().zip(&earlier.directories[start..]) {
        let (Some(stamp), Some(root)) = (directory.stamp, roots.get(usize::from(directory.root))) else {
            continue;
        };
        if directory.depth == 0 {
            path.clear();
            way = (NONE, 0);
        } else {
            if way.0 != directory.parent {
                path = earlier.path(directory.parent);
                if !path.is_empty() {
                    path.push(b'/');
                }
                way = (directory.parent, path.len());
            }
            path.truncate(way.1);
            path.extend_from_slice(earlier.name(directory.name));
        }
        if through == Through::Own && own.as_ref().is_none_or(|own| own.0 != directory.root) {
            own = at::open_place(&root.fd, b"").ok().map(|fd| (directory.root, fd));
        }
        let base = own.as_ref().map_or(root.fd.as_fd(), |own| own.1.as_fd());
        let found = match path.len() {
            0 => fstat(base),
            1..PIECE => fstatat(base, path.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW),
            _ => at::stat(base, &path),
        };
        *same = found.is_ok_and(|found| {
            Identity::of(&found) == directory.identity
                && Stamp::of(&found) == stamp
                && at::kind(&found) == libc::S_IFDIR
        });
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::time::Duration;

    use super::super::place::Patterns;
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
        let mut patterns = Patterns::new();
        let roots = open_roots(&paths, &[], &mut patterns).unwrap();
        let sight = walk(&roots, &patterns, None, Company::Nobody).unwrap();
        (roots, sight)
    }

    #[test]
    fn every_directory_is_asked_however_many_share_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, sight) = seen(folder.path());
        assert_eq!(sight.len(), 56);
        for pieces in 0..60 {
            assert_eq!(ask_in(pieces, &roots, &sight), vec![true; 56], "{pieces}");
        }
        for index in 0..sight.len() {
            let directory = &sight.directories[index];
            let root = &roots[usize::from(directory.root)].path;
            let path = root.join(OsStr::from_bytes(&sight.path(u32::try_from(index).unwrap())));
            fs::write(path.join("new"), "").unwrap();
            for pieces in [1, 2, 3, 7, 56] {
                let same = ask_in(pieces, &roots, &sight);
                let expected: Vec<bool> = (0..56).map(|other| other > index).collect();
                assert_eq!(same, expected, "{pieces} {}", path.display());
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
