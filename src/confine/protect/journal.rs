//! The journal: what a crash must not lose.
//!
//! One file per command under way, in `journal/` of the store: the protected entries with their content
//! and who the directories around them are. It is written beside its name, locked, then renamed to it,
//! so a journal that can be seen is whole and, while its owner lives, locked. The kernel drops the lock
//! with the owner's last descriptor. There is no fsync: it is the crash of a process that must not lose
//! the journal, and what a process has written outlives it; after a power cut the tree may have lost as
//! much as the journal has.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::ProtectError;
use super::at::Identity;
use super::state::State;

/// First bytes of a journal; the last one is the version of the format.
const MAGIC: &[u8] = b"stockade protect journal 1\n";
/// Begins the name of a journal that is being written.
const UNFINISHED: &[u8] = b".";

/// Everything needed to put protected entries back.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Record {
    /// The roots: absolute path and who is there.
    pub(super) roots: Vec<(Vec<u8>, Identity)>,
    /// The files protected by path.
    pub(super) extra: Vec<Vec<u8>>,
    /// The protected entries, holders before what they hold.
    pub(super) entries: Vec<Kept>,
    /// The directories on the way to them, outer ones first.
    pub(super) holders: Vec<super::sight::Holder>,
}

/// A protected entry as it was.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Kept {
    pub(super) root: u16,
    pub(super) path: Vec<u8>,
    pub(super) role: super::place::Role,
    pub(super) anchor: Vec<u8>,
    pub(super) state: State,
}

/// A journal on disk and its lock.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    _lock: File,
}

impl Journal {
    /// Writes a journal; when this returns, [`abandoned`] would find it if this process died.
    pub(super) fn write(store: &Path, record: &Record) -> Result<Self, ProtectError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = folder(store, "journal")?;
        let name = format!("{}-{}", super::stamp(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(&name);
        let unfinished = folder.join(format!(".{name}"));
        let fail = |step, path: &Path| {
            let path = path.to_owned();
            move |source| ProtectError::Io { step, path, source }
        };
        let body = postcard::to_stdvec(record).map_err(|_| ProtectError::Journal(path.clone()))?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(fail("create", &unfinished))?;
        file.lock().map_err(fail("lock", &unfinished))?;
        file.write_all(MAGIC).map_err(fail("write", &unfinished))?;
        file.write_all(&body).map_err(fail("write", &unfinished))?;
        std::fs::rename(&unfinished, &path).map_err(fail("rename", &unfinished))?;
        Ok(Self { path, _lock: file })
    }

    /// Removes the journal: everything in it has been seen to.
    pub(super) fn remove(self) -> Result<(), ProtectError> {
        std::fs::remove_file(&self.path).map_err(|source| ProtectError::Io {
            step: "remove",
            path: self.path.clone(),
            source,
        })
    }
}

/// The journals whose owner is gone, now locked by us. Removes those that never were finished: their
/// command did not start.
pub(super) fn abandoned(store: &Path) -> Result<Vec<(Journal, Record)>, ProtectError> {
    let folder = folder(store, "journal")?;
    let fail = |step, path: &Path| {
        let path = path.to_owned();
        move |source| ProtectError::Io { step, path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(fail("list", &folder))? {
        paths.push(entry.map_err(fail("list", &folder))?.path());
    }
    // Names begin with a time: the oldest first.
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(fail("open", &path)(source)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(source)) => return Err(fail("lock", &path)(source)),
        }
        // Settled, or finished under another name, between the listing and the lock.
        let open = file.metadata().map_err(fail("look at", &path))?;
        match std::fs::symlink_metadata(&path) {
            Ok(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => {}
            Ok(_) | Err(_) => continue,
        }
        if path
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(UNFINISHED))
        {
            // Created but not yet locked looks the same for an instant: only one with age is rubbish.
            if open
                .modified()
                .is_ok_and(|then| then.elapsed().is_ok_and(|age| age.as_secs() > 60))
            {
                std::fs::remove_file(&path).map_err(fail("remove", &path))?;
            }
            continue;
        }
        let record = read(&mut file, &path)?;
        found.push((Journal { path, _lock: file }, record));
    }
    Ok(found)
}

/// What all finished journals say, oldest first, whether their owners live or not.
pub(super) fn all(store: &Path) -> Result<Vec<Record>, ProtectError> {
    let folder = folder(store, "journal")?;
    let fail = |step, path: &Path| {
        let path = path.to_owned();
        move |source| ProtectError::Io { step, path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(fail("list", &folder))? {
        let entry = entry.map_err(fail("list", &folder))?;
        if !entry.file_name().as_bytes().starts_with(UNFINISHED) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| read(&mut File::open(&path).map_err(fail("open", &path))?, &path))
        .collect()
}

fn read(file: &mut File, path: &Path) -> Result<Record, ProtectError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| ProtectError::Io {
        step: "read",
        path: path.to_owned(),
        source,
    })?;
    let body = bytes.strip_prefix(MAGIC);
    let body = body.ok_or_else(|| ProtectError::Journal(path.to_owned()))?;
    postcard::from_bytes(body).map_err(|_| ProtectError::Journal(path.to_owned()))
}

/// A private folder of the store.
pub(super) fn folder(store: &Path, name: &str) -> Result<PathBuf, ProtectError> {
    let path = store.join(name);
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    created.map_err(|source| ProtectError::Io {
        step: "create",
        path: path.clone(),
        source,
    })?;
    Ok(path)
}
