//! Sessions under way beside ours in the same tree.
//!
//! Where another session has written down how a tree was, that is the state to keep, and not what its
//! command has made of the tree meanwhile: a snapshot of that would put an intruder back after the other
//! session took it away. A [`StoreLock`] lets one session at a time write down or put back, so that whatever a
//! command changed belongs to a journal that can be seen.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::super::entry::nofollow::{self, Identity, is_within, join};
use super::super::error::ProtectError;
use super::super::naming::lookup::protected_by;
use super::super::record::{Record, SavedEntry};
use super::super::tree::inventory::Ancestor;
use super::journal::JOURNAL;
use super::store::in_folder;

/// The lock on the store, held while a tree is written down or put back. The kernel drops it with its holder.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _lock: File,
}

impl StoreLock {
    /// Waits for the lock.
    pub(crate) fn enter(store: &Path) -> Result<Self, ProtectError> {
        let path = store.join("gate");
        let fail = |step| ProtectError::failed(step, &path);
        let open = |_: PathBuf| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            options.custom_flags(libc::O_NOFOLLOW).open(&path)
        };
        let file = in_folder(store, JOURNAL, open)?.map_err(fail("open"))?;
        file.lock().map_err(fail("lock"))?;
        Ok(Self { _lock: file })
    }
}

/// Replaces what overlaps with one of `others` (oldest first) by what that one recorded.
pub(crate) fn merge(record: &mut Record, others: Vec<Record>) {
    // The oldest comes last, because its state is the original one.
    for other in others.into_iter().rev() {
        merge_one(record, other);
    }
}

fn merge_one(record: &mut Record, mut other: Record) {
    // Where its roots are now, under our names for them.
    let created = other.created.iter().copied().chain(std::iter::repeat(None));
    let now: Vec<Option<Vec<u8>>> = other
        .roots
        .iter()
        .zip(created)
        .map(|(root, created)| current_path(root, created, record))
        .collect();
    let is_present = |root: u16| now.get(usize::from(root)).is_some_and(Option::is_some);
    other.entries.retain(|kept| is_present(kept.root));
    other.ancestors.retain(|ancestor| is_present(ancestor.root));
    for ((path, _), now) in other.roots.iter_mut().zip(&now) {
        if let Some(now) = now {
            path.clone_from(now);
        }
    }
    // Its program was this one, as it was before its command.
    if let (Some(own), Some(theirs)) = (&mut record.program, other.program.take())
        && own.is_same_path(&theirs)
    {
        *own = theirs;
    }
    // A journal has no entry for a root itself.
    let covered = |path: &[u8]| now.iter().flatten().any(|root| root != path && is_within(path, root));
    // A file that only this session protects by its path is not in the other's journal however it was.
    let extra: HashSet<&Vec<u8>> = other.extra.iter().collect();
    let own: Vec<&Vec<u8>> = record.extra.iter().filter(|path| !extra.contains(path)).collect();
    // Nor one whose name only this session's config protects.
    let is_other = record.names != other.names;
    let is_unknown_to =
        |path: &[u8]| is_other && protected_by(&other.names, Path::new(OsStr::from_bytes(path))).is_none();
    let roots = &record.roots;
    record.entries.retain(|kept| {
        let path = absolute(roots, kept.root, &kept.path);
        !covered(&path) || own.iter().any(|own| is_within(&path, own)) || is_unknown_to(&kept.path)
    });
    record
        .ancestors
        .retain(|ancestor| !covered(&absolute(roots, ancestor.root, &ancestor.path)));
    let (their_roots, their_entries, their_ancestors) = (other.roots, other.entries, other.ancestors);
    for kept in their_entries {
        let Some((root, path)) = location(roots, &absolute(&their_roots, kept.root, &kept.path)) else {
            continue;
        };
        let anchor = absolute(&their_roots, kept.root, &kept.anchor);
        // One above our root is there as long as our root is.
        let anchor = location(roots, &anchor).map_or_else(Vec::new, |(_, anchor)| anchor);
        record.entries.push(SavedEntry {
            root,
            path,
            anchor,
            ..kept
        });
    }
    for ancestor in their_ancestors {
        if let Some((root, path)) = location(roots, &absolute(&their_roots, ancestor.root, &ancestor.path)) {
            record.ancestors.push(Ancestor { root, path, ..ancestor });
        }
    }
    // Parents first.
    record.entries.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
    record.entries.dedup_by(|b, a| (a.root, &a.path) == (b.root, &b.path));
    record
        .ancestors
        .sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
}

/// Where a root of another session is now, by our names where it or one around it is ours as well: a mount gives a
/// directory a second path, and a command may have moved it. None where another directory has taken its place.
fn current_path((path, identity): &(Vec<u8>, Identity), created: Born, record: &Record) -> Option<Vec<u8>> {
    let ours = &record.roots;
    let is_same = |other: Born| created.is_none() || other.is_none() || created == other;
    let births = record.created.iter().copied().chain(std::iter::repeat(None));
    if let Some(((own, _), of_own)) = ours.iter().zip(births).find(|((_, own), _)| own == identity) {
        return is_same(of_own).then(|| own.clone());
    }
    // Our own walk has found it.
    let walked = |ancestor: &&Ancestor| ancestor.identity == *identity && is_same(ancestor.created);
    if let Some(ancestor) = record.ancestors.iter().find(walked) {
        return Some(absolute(ours, ancestor.root, &ancestor.path));
    }
    let theirs = Path::new(OsStr::from_bytes(path));
    let is = |wanted: Identity| move |location: &&Path| at_path(location) == AtPath::Is(wanted);
    for (own, who) in ours {
        let own = Path::new(OsStr::from_bytes(own));
        let above = own.ancestors().skip(1).find(is(*identity));
        if let Some(above) = above.filter(|_| at_path(own) == AtPath::Is(*who)) {
            return Some(above.as_os_str().as_bytes().to_vec());
        }
    }
    match at_path(theirs) {
        AtPath::Is(now) if now == *identity => {}
        // What cannot be looked at may still be what it was.
        AtPath::Unknown => return Some(path.clone()),
        AtPath::Is(_) | AtPath::Absent => return None,
    }
    for (own, who) in ours {
        let above = theirs.ancestors().skip(1).find(is(*who));
        if let Some(rest) = above.and_then(|above| theirs.strip_prefix(above).ok()) {
            let location = Path::new(OsStr::from_bytes(own)).join(rest);
            if at_path(&location) == AtPath::Is(*identity) {
                return Some(location.into_os_string().into_vec());
            }
        }
    }
    Some(path.clone())
}

type Born = Option<(i64, u32)>;

#[derive(Debug, PartialEq, Eq)]
enum AtPath {
    Is(Identity),
    Absent,
    Unknown,
}

/// What is at an absolute path, to which no link may lead: whoever can make one must not say where a root is.
fn at_path(path: &Path) -> AtPath {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let path = path.as_os_str().as_bytes();
    let looked =
        open("/", flags, Mode::empty()).and_then(|top| nofollow::stat(top, path.strip_prefix(b"/").unwrap_or(path)));
    match looked {
        Ok(stat) => AtPath::Is(Identity::of(&stat)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => AtPath::Absent,
        Err(_) => AtPath::Unknown,
    }
}

type Roots = [(Vec<u8>, Identity)];

fn absolute(roots: &Roots, root: u16, path: &[u8]) -> Vec<u8> {
    roots
        .get(usize::from(root))
        .map_or_else(Vec::new, |(root, _)| join(root, path))
}

/// The root an absolute path lies in, the innermost, and the path in it. A root itself has none: who may write in it can
/// neither remove nor replace it, and no entry can be looked at by an empty path.
fn location(roots: &Roots, path: &[u8]) -> Option<(u16, Vec<u8>)> {
    let is_below = |root: &[u8]| root != path && is_within(path, root);
    let inside = roots.iter().zip(0_u16..).filter(|((root, _), _)| is_below(root));
    let ((root, _), number) = inside.max_by_key(|((root, _), _)| root.len())?;
    let rest = &path[root.len()..];
    Some((number, rest.strip_prefix(b"/").unwrap_or(rest).to_vec()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bytes(path: &Path) -> Vec<u8> {
        path.as_os_str().as_bytes().to_vec()
    }

    fn who(path: &Path) -> Identity {
        match at_path(path) {
            AtPath::Is(identity) => identity,
            AtPath::Absent | AtPath::Unknown => Identity { device: 0, inode: 0 },
        }
    }

    #[test]
    fn a_root_of_another_session_is_known_by_what_it_is_and_not_by_its_path() {
        let scene = tempfile::tempdir().unwrap();
        let top = scene.path().canonicalize().unwrap();
        let at = |path: &str| top.join(path);
        for folder in ["x/in", "other", "w/sub2/deep", "p/deep"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        symlink(at("p"), at("w/sub")).unwrap();
        let record = |path: &str| Record {
            roots: vec![(bytes(&at(path)), who(&at(path)))],
            created: vec![Some((2, 2))],
            ..Record::default()
        };
        let is_present = |path: &str, is: &str, created, ours: &str| {
            let root = (bytes(&at(path)), who(&at(is)));
            current_path(&root, created, &record(ours))
        };
        let at_path = |path: &str| Some(bytes(&at(path)));
        for (path, is, created, ours, now) in [
            ("x", "x", Some((2, 2)), "x", at_path("x")),
            ("x", "x", None, "x", at_path("x")),
            ("elsewhere", "x", None, "x", at_path("x")),
            ("x", "x", None, "x/in", at_path("x")),
            ("x/in", "x/in", None, "x", at_path("x/in")),
            ("other", "other", None, "x", at_path("other")),
            // The number of the inode was used again.
            ("x", "x", Some((1, 1)), "x", None),
            // Another directory now, and none; whoever holds that place knows nothing of the one that was there.
            ("x", "other", None, "x/in", None),
            ("x", "other", None, "", None),
            ("gone", "x", None, "other", None),
            // A link in its place, which says that another session's directory is it.
            ("w/sub/deep", "w/sub2/deep", None, "p", None),
            ("w/sub/deep", "w/sub2/deep", None, "w", None),
        ] {
            assert_eq!(
                is_present(path, is, created, ours),
                now,
                "{path}, which is {is}, beside {ours}"
            );
        }
    }
}
