//! The journal: what a crash must not lose.
//!
//! One file per command under way, in `journal/` of the store: the protected entries with their content
//! and who the directories around them are. It is written beside its name, locked, then renamed to it,
//! so a journal that can be seen is whole and, while its owner lives, locked. The kernel drops the lock
//! with the owner's last descriptor. There is no fsync: it is the crash of a process that must not lose
//! the journal, and what a process has written outlives it; after a power cut the tree may have lost as
//! much as the journal has.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::entry::access::Access;
use super::super::entry::nofollow::Identity;
use super::super::entry::state::{LinkCount, State};
use super::super::error::ProtectError;
use super::super::record::Record;
use super::store::{in_folder, unique_name};

/// First bytes of a journal; the last one is the version of the format.
const MAGIC: &[u8] = b"stockade protect journal 1\n";
/// Begins the name of a journal that counts for nobody: it is being written, or no command has come for it.
const PENDING: &[u8] = b".";
/// The folder of journals.
pub(crate) const JOURNAL: &str = "journal";

/// A journal on disk and its lock.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    #[expect(dead_code, reason = "a lock is held by existing")]
    lock: File,
}

impl Journal {
    /// Writes a journal that counts for nobody before it is [activated](Self::activate).
    pub(crate) fn prepare(store: &Path, record: &Record) -> Result<Self, ProtectError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(".{}-{}", unique_name(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = store.join(JOURNAL).join(&name);
        let fail = |step| ProtectError::failed(step, &path);
        let links: Vec<u64> = record.entries.iter().map(|kept| kept.state.links().0).collect();
        let access: Vec<&Option<Access>> = record.entries.iter().map(|kept| &kept.access).collect();
        let modes: Vec<Option<u32>> = record.ancestors.iter().map(|ancestor| ancestor.mode).collect();
        let broken = |_| ProtectError::Journal(path.clone());
        let bytes = postcard::to_extend(record, MAGIC.to_vec()).map_err(broken)?;
        let bytes = postcard::to_extend(
            &(
                &record.modes,
                links,
                &record.created,
                &record.names,
                &record.program,
                access,
                modes,
                &record.hooks,
                &record.ways,
            ),
            bytes,
        )
        .map_err(broken)?;
        let create = |folder: PathBuf| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            options.open(folder.join(&name))
        };
        let mut file = in_folder(store, JOURNAL, create)?.map_err(fail("create"))?;
        file.lock().map_err(fail("lock"))?;
        file.write_all(&bytes).map_err(fail("write"))?;
        Ok(Self { path, lock: file })
    }

    /// What it is called once it counts.
    pub(crate) fn name(&self) -> OsString {
        let name = self.path.file_name().map(OsStr::as_bytes).unwrap_or_default();
        OsStr::from_bytes(name.strip_prefix(PENDING).unwrap_or(name)).to_owned()
    }

    /// Activates it: from now on [`abandoned`] finds it if this process dies.
    pub(crate) fn activate(&mut self) -> Result<(), ProtectError> {
        let name = self.path.file_name().map(OsStr::as_bytes).unwrap_or_default();
        let Some(name) = name.strip_prefix(PENDING) else {
            return Ok(());
        };
        let finished = self.path.with_file_name(OsStr::from_bytes(name));
        std::fs::rename(&self.path, &finished).map_err(ProtectError::failed("rename", &self.path))?;
        self.path = finished;
        Ok(())
    }

    /// Removes the journal, which is settled.
    pub(crate) fn remove(self) -> Result<(), ProtectError> {
        std::fs::remove_file(&self.path).map_err(ProtectError::failed("remove", &self.path))
    }
}

/// A journal locked by us, or why it could not be read.
pub(crate) type LockedJournal = Result<(Journal, Record), ProtectError>;

/// The journals whose owner is gone, now locked by us. Removes those that never were finished: their
/// command did not start.
pub(crate) fn abandoned(store: &Path) -> Result<Vec<LockedJournal>, ProtectError> {
    let found = paths(store)?;
    Ok(found
        .into_iter()
        .filter_map(|path| lock_abandoned(path).transpose())
        .collect())
}

/// What all finished journals say, oldest first, whether their owners live or not. One that nobody holds and that waits for
/// roots that are missing says nothing of what is there.
pub(crate) fn all(store: &Path) -> Result<Vec<Record>, ProtectError> {
    let finished = paths(store)?.into_iter().filter(|path| !is_pending(path));
    let mut records = Vec::new();
    for path in finished {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(source) => {
                let step = "open";
                return Err(ProtectError::Io { step, path, source });
            }
        };
        let record = read(&mut file, &path)?;
        let is_missing = !record.roots.is_empty() && record.missing().len() == record.roots.len();
        // The command of a session under way may have moved its root.
        if !(is_missing && file.try_lock().is_ok()) {
            records.push(record);
        }
    }
    Ok(records)
}

/// The roots of a record: path, and who is there.
type Roots = Vec<(Vec<u8>, Identity)>;

/// The finished journals, each with its roots, which stand first in it.
pub(crate) fn roots(store: &Path) -> Vec<(PathBuf, Roots)> {
    /// Bytes that are read of each.
    const HEAD: u64 = 1 << 20;
    let Ok(entries) = std::fs::read_dir(store.join(JOURNAL)) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let finished = paths.filter(|path| !is_pending(path));
    let read = |path: PathBuf| {
        let mut head = Vec::new();
        File::open(&path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
        let (roots, _) = postcard::take_from_bytes(head.strip_prefix(MAGIC)?).ok()?;
        Some((path, roots))
    };
    finished.filter_map(read).collect()
}

/// What the journal folder holds, the oldest first.
fn paths(store: &Path) -> Result<Vec<PathBuf>, ProtectError> {
    let fail = ProtectError::failed("list", store.join(JOURNAL));
    let mut paths = Vec::new();
    for entry in in_folder(store, JOURNAL, std::fs::read_dir)?.map_err(&fail)? {
        paths.push(entry.map_err(&fail)?.path());
    }
    // Names begin with a time.
    paths.sort();
    Ok(paths)
}

/// Locks and reads a journal, unless it is not abandoned.
fn lock_abandoned(path: PathBuf) -> Result<Option<(Journal, Record)>, ProtectError> {
    let fail = |step| ProtectError::failed(step, &path);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(fail("open")(source)),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(source)) => return Err(fail("lock")(source)),
    }
    // Settled, or finished under another name, between the listing and the lock.
    let open = file.metadata().map_err(fail("look at"))?;
    match std::fs::symlink_metadata(&path) {
        Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => {}
        Ok(_) | Err(_) => return Ok(None),
    }
    if is_pending(&path) {
        // Created but not yet locked looks the same for an instant: only one with age is rubbish.
        if open
            .modified()
            .is_ok_and(|then| then.elapsed().is_ok_and(|age| age.as_secs() > 60))
        {
            std::fs::remove_file(&path).map_err(fail("remove"))?;
        }
        return Ok(None);
    }
    let record = read(&mut file, &path)?;
    Ok(Some((Journal { path, lock: file }, record)))
}

fn is_pending(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(PENDING))
}

fn read(file: &mut File, path: &Path) -> Result<Record, ProtectError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(ProtectError::failed("read", &path))?;
    let broken = || ProtectError::Journal(path.to_owned());
    let body = bytes.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (mut record, mut added): (Record, &[u8]) = postcard::take_from_bytes(body).map_err(|_| broken())?;
    let added = &mut added;
    record.modes = next(added).ok_or_else(broken)?;
    let links: Vec<u64> = next(added).ok_or_else(broken)?;
    record.created = next(added).ok_or_else(broken)?;
    record.names = next(added).ok_or_else(broken)?;
    record.program = next(added).ok_or_else(broken)?;
    let access: Vec<Option<Access>> = next(added).ok_or_else(broken)?;
    let modes: Vec<Option<u32>> = next(added).ok_or_else(broken)?;
    record.hooks = next(added).ok_or_else(broken)?;
    record.ways = next(added).ok_or_else(broken)?;
    for (kept, value) in record.entries.iter_mut().zip(links) {
        if let State::File { links, .. } = &mut kept.state {
            *links = LinkCount(value);
        }
    }
    for (kept, value) in record.entries.iter_mut().zip(access) {
        kept.access = value;
    }
    for (ancestor, value) in record.ancestors.iter_mut().zip(modes) {
        ancestor.mode = value;
    }
    Ok(record)
}

/// The next value behind a record; its default where an earlier version ended there, `None` where it is broken.
fn next<T: serde::de::DeserializeOwned + Default>(added: &mut &[u8]) -> Option<T> {
    if added.is_empty() {
        return Some(T::default());
    }
    let (value, rest) = postcard::take_from_bytes(added).ok()?;
    *added = rest;
    Some(value)
}
