//! Checks every directory of an earlier walk for changes.
//!
//! In a quiet tree this is nearly all that a walk does, and nearly all of it is the kernel's: one look at each
//! directory. The order of the looks does not matter. A symlink on the way cannot deceive a look, because it is the identity
//! of what is reached that is compared; and a directory that something was put in the way of has lost an
//! entry, so it is itself no longer as it was.

use std::os::fd::AsFd;

use nix::fcntl::AtFlags;
use nix::sys::stat::{fstat, fstatat};

use super::super::entry::nofollow::{self, Identity, MAX_PIECE};
use super::super::roots::Root;
use super::inventory::{Directory, Inventory, NONE};
use super::stamp::Stamp;

/// For each directory of `earlier`, whether it is certain that nothing was put into it, taken out or renamed in it.
///
/// A directory that cannot be checked, or has no stamp, counts as changed.
pub(crate) fn unchanged(roots: &[Root], earlier: &Inventory) -> Vec<bool> {
    let mut checker = Checker {
        roots,
        earlier,
        path: Vec::new(),
        prefix: (NONE, 0),
    };
    earlier
        .directories
        .iter()
        .map(|directory| checker.is_unchanged(directory))
        .collect()
}

/// The check, and the prefix for the next one.
struct Checker<'a> {
    roots: &'a [Root],
    earlier: &'a Inventory,
    path: Vec<u8>,
    /// The children of a directory are adjacent, so their prefix is built once.
    prefix: (u32, usize),
}

impl Checker<'_> {
    fn is_unchanged(&mut self, directory: &Directory) -> bool {
        let (Some(stamp), Some(root)) = (directory.stamp, self.roots.get(usize::from(directory.root))) else {
            return false;
        };
        self.set_path(directory);
        let found = match self.path.len() {
            0 => fstat(root.fd.as_fd()),
            1..MAX_PIECE => fstatat(root.fd.as_fd(), self.path.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW),
            _ => nofollow::stat(&root.fd, &self.path),
        };
        found.is_ok_and(|found| {
            Identity::of(&found) == directory.identity
                && Stamp::of(&found) == stamp
                && nofollow::kind(&found) == libc::S_IFDIR
        })
    }

    fn set_path(&mut self, directory: &Directory) {
        if directory.depth == 0 {
            self.path.clear();
            self.prefix = (NONE, 0);
            return;
        }
        if self.prefix.0 != directory.parent {
            self.path = self.earlier.path(directory.parent);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.prefix = (directory.parent, self.path.len());
        }
        self.path.truncate(self.prefix.1);
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

    use super::super::super::naming::names::Names;
    use super::super::super::naming::patterns::Patterns;
    use super::super::super::roots::open_roots;
    use super::super::walk::walk;
    use super::*;

    /// Two roots with a few directories each, some deep, seen once their stamps can be relied on.
    fn scanned(folder: &Path) -> (Vec<Root>, Inventory) {
        let paths = ["one", "two"].map(|name| folder.join(name));
        for path in &paths {
            for number in 0..9 {
                fs::create_dir_all(path.join(format!("d{number}/e/f{number}"))).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(60));
        let mut patterns = Patterns::new(&Names::default());
        let roots = open_roots(&paths, &[], &mut patterns).unwrap();
        let inventory = walk(&roots, &patterns, None).unwrap();
        (roots, inventory)
    }

    #[test]
    fn every_directory_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, inventory) = scanned(folder.path());
        assert_eq!(unchanged(&roots, &inventory), vec![true; 56]);
        for index in 0..inventory.len() {
            let directory = &inventory.directories[index];
            let root = &roots[usize::from(directory.root)].path;
            let path = root.join(OsStr::from_bytes(&inventory.path(u32::try_from(index).unwrap())));
            fs::write(path.join("new"), "").unwrap();
            let expected: Vec<bool> = (0..56).map(|other| other > index).collect();
            assert_eq!(unchanged(&roots, &inventory), expected, "{}", path.display());
        }
    }

    #[test]
    fn another_directory_in_its_place_is_not_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (roots, inventory) = scanned(folder.path());
        let original = folder.path().join("one/d3");
        fs::rename(&original, folder.path().join("aside")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("aside"), &original).unwrap();
        let same = unchanged(&roots, &inventory);
        let at = |path: &[u8]| {
            let found =
                (0..56).find(|&index| inventory.directories[index as usize].root == 0 && inventory.path(index) == path);
            same[found.unwrap() as usize]
        };
        assert!(!at(b"") && !at(b"d3"));
        assert!(at(b"d4") && at(b"d4/e"));
    }
}
