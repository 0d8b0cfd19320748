//! What the refs of a repository name, read from files that a command may have left in any state.
//!
//! No link is followed, nothing is waited for, and what is read is bounded. What is not understood is `odd`, and stays
//! suspect until it has been a plain ref for once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{fstat, fstatat};
use nix::sys::statfs::fstatfs;

use super::super::entry::nofollow::{self, join};
use super::super::tree::stamp::{FileSystem, Stamp, classify};
use super::id::Id;
use crate::policy::hex::hex;

/// Refs of one repository.
const MAX_REFS: usize = 20_000;
/// Longest file with one ref, in bytes.
const LONGEST: u64 = 1024;
/// Longest `packed-refs`, in bytes.
const LONGEST_PACKED: u64 = 8 * 1024 * 1024;
/// Levels of directories below `refs`.
const DEEPEST: usize = 16;
/// The coarsest clock by which a local file system stamps changes, with room, as the walk has it.
const TICK: Duration = Duration::from_millis(20);

/// A ref and what it names.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Ref {
    pub(super) name: Vec<u8>,
    /// `None` where that is odd.
    pub(super) value: Option<Id>,
    /// Inode, size and stamp of its file, where a later write would show.
    file: Option<(u64, i64, Stamp)>,
}

/// All refs of a git directory by name, HEAD among them as what it comes to. `None` where that cannot be told.
///
/// Files that are as they were in `earlier` are not read again.
pub(super) fn read(git: &OwnedFd, earlier: &[Ref]) -> Option<Vec<Ref>> {
    // With reftable, the files here are no refs.
    if nofollow::stat(git, b"reftable").is_ok() {
        return None;
    }
    let is_stamped = fstatfs(git).is_ok_and(|found| classify(found.filesystem_type()) == FileSystem::Stamped);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut reader = Reader {
        earlier,
        trusted_until: is_stamped.then(|| now.saturating_sub(TICK)),
        refs: BTreeMap::new(),
    };
    reader.packed(git)?;
    match nofollow::open_directory(git, b"refs") {
        Ok(refs) => reader.loose(refs, b"refs", 0)?,
        Err(Errno::ENOENT) => {}
        Err(_) => return None,
    }
    reader.heads(git)?;
    Some(reader.refs.into_values().collect())
}

/// The ref of that name.
pub(super) fn find<'a>(refs: &'a [Ref], name: &[u8]) -> Option<&'a Ref> {
    let found = refs.binary_search_by(|one| one.name.as_slice().cmp(name)).ok()?;
    refs.get(found)
}

struct Reader<'a> {
    earlier: &'a [Ref],
    /// Stamps from before this time tell of every later change; `None` where none does.
    trusted_until: Option<Duration>,
    refs: BTreeMap<Vec<u8>, Ref>,
}

impl Reader<'_> {
    fn add(&mut self, one: Ref) -> Option<()> {
        self.refs.insert(one.name.clone(), one);
        (self.refs.len() <= MAX_REFS).then_some(())
    }

    fn packed(&mut self, git: &OwnedFd) -> Option<()> {
        let text = match nofollow::open_file(git, b"packed-refs") {
            Ok(file) => content(file, LONGEST_PACKED)?,
            Err(Errno::ENOENT) => return Some(()),
            Err(_) => return None,
        };
        for line in text.split(|byte| *byte == b'\n') {
            if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") {
                continue;
            }
            let space = line.iter().position(|byte| *byte == b' ')?;
            let (value, name) = line.split_at_checked(space)?;
            self.add(Ref {
                name: name.get(1..)?.to_vec(),
                value: Id::from_hex(value),
                file: None,
            })?;
        }
        Some(())
    }

    /// Those in files of their own, which win over packed ones.
    fn loose(&mut self, directory: OwnedFd, path: &[u8], depth: usize) -> Option<()> {
        let fd = directory.try_clone().ok()?;
        let mut listing = Dir::from_fd(directory).ok()?;
        for entry in listing.iter() {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            // A lock is no ref: git is at work, or was.
            if name == b"." || name == b".." || name.ends_with(b".lock") {
                continue;
            }
            let below = join(path, name);
            if entry.file_type() == Some(Type::Directory) {
                if depth >= DEEPEST {
                    return None;
                }
                self.loose(nofollow::open_directory(&fd, name).ok()?, &below, depth + 1)?;
            } else {
                let one = self.file(&fd, name, below);
                self.add(one)?;
            }
        }
        Some(())
    }

    fn file(&self, directory: &OwnedFd, name: &[u8], path: Vec<u8>) -> Ref {
        let stamped = |stat: &nix::sys::stat::FileStat| {
            let stamp = Stamp::of(stat);
            let changed = Duration::new(
                u64::try_from(stamp.changed.0).ok()?,
                u32::try_from(stamp.changed.1).ok()?,
            );
            (changed < self.trusted_until?).then_some((stat.st_ino, stat.st_size, stamp))
        };
        let odd = |path| Ref {
            name: path,
            value: None,
            file: None,
        };
        let Ok(found) = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
            return odd(path);
        };
        if nofollow::kind(&found) != libc::S_IFREG {
            return odd(path);
        }
        if let Some(file) = stamped(&found)
            && let Some(earlier) = find(self.earlier, &path)
            && earlier.file == Some(file)
        {
            return earlier.clone();
        }
        let Ok(file) = nofollow::open_file(directory, name) else {
            return odd(path);
        };
        let stamp = fstat(&file).ok().and_then(|stat| stamped(&stat));
        Ref {
            name: path,
            value: content(file, LONGEST).and_then(|text| value(&text)),
            file: stamp,
        }
    }

    /// HEAD, and that of each further work tree.
    fn heads(&mut self, git: &OwnedFd) -> Option<()> {
        let mut all = vec![b"HEAD".to_vec()];
        match nofollow::open_directory(git, b"worktrees").and_then(Dir::from_fd) {
            Ok(mut listing) => {
                for entry in listing.iter() {
                    let entry = entry.ok()?;
                    let name = entry.file_name().to_bytes();
                    if name != b"." && name != b".." {
                        all.push([b"worktrees/", name, b"/HEAD"].concat());
                    }
                }
            }
            Err(Errno::ENOENT) => {}
            Err(_) => return None,
        }
        for name in all {
            let value = self.head(git, &name);
            self.add(Ref {
                name,
                value,
                file: None,
            })?;
        }
        Some(())
    }

    fn head(&self, git: &OwnedFd, name: &[u8]) -> Option<Id> {
        let text = content(nofollow::open_file(git, name).ok()?, LONGEST)?;
        match text.strip_prefix(b"ref:") {
            Some(other) => self.refs.get(other.trim_ascii())?.value,
            None => value(&text),
        }
    }
}

/// As git reads it: what follows white space does not count.
fn value(text: &[u8]) -> Option<Id> {
    Id::from_hex(text.split(u8::is_ascii_whitespace).next()?)
}

fn content(file: OwnedFd, longest: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut file = File::from(file).take(longest + 1);
    file.read_to_end(&mut text).ok()?;
    (text.len() as u64 <= longest).then_some(text)
}

/// Who is at a git directory: a repository that is moved, or that is mounted anew, is the same, and one in whose place
/// another was made is not.
pub(super) fn key(git: impl AsFd, path: &[u8]) -> Option<String> {
    use sha2::{Digest as _, Sha256};

    let stat = fstat(&git).ok()?;
    let mut hash = Sha256::new();
    hash.update(b"stockade tips 1\n");
    hash.update(stat.st_ino.to_le_bytes());
    match super::super::tree::inventory::root_creation_time(&git) {
        // The number of a device may be another after each start of the machine. Time and number together have no second.
        Some((seconds, nanoseconds)) => {
            hash.update(seconds.to_le_bytes());
            hash.update(nanoseconds.to_le_bytes());
        }
        None => hash.update(path),
    }
    let digest: [u8; 32] = hash.finalize().into();
    Some(hex(&digest[..16]))
}
