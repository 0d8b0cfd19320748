//! What the quarantine may hold: where it is full no further command starts, because what that one makes may have to be kept,
//! and nothing is dropped for it.
//!
//! `total` in the quarantine says what was put into it, so that a start reads one line. What a person has removed since is not
//! taken off that: where the line says full, everything is counted anew. `usage` in a batch says what its directories hold, which
//! are shut.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::super::error::ProtectError;

/// The folder of the store where the quarantine lies.
pub(crate) const QUARANTINE: &str = "quarantine";
/// The list of a batch: where each item came from.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The file with the total.
const TOTAL: &str = "total";
/// The file with the usage of a batch's directories.
const BATCH_USAGE: &str = "held";
/// The most entries of one directory that are counted.
const COUNTED: u64 = 100_000;

/// Entries, and bytes of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// The limit of a quarantine.
pub(crate) const MAX_USAGE: Usage = Usage {
    entries: 100_000,
    bytes: 1 << 30,
};

impl Usage {
    /// The usage of an item, with everything in it.
    pub(crate) fn of(path: &Path) -> Self {
        let mut all = Self::default();
        let mut paths = vec![path.to_owned()];
        while let Some(path) = paths.pop() {
            let Ok(found) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            all.add(Self::of_entry(&found));
            if found.is_dir() && all.entries < COUNTED {
                // One that cannot be looked into is one entry.
                let below = std::fs::read_dir(&path).into_iter().flatten().flatten();
                let room = usize::try_from(COUNTED - all.entries).unwrap_or(usize::MAX);
                paths.extend(below.map(|entry| entry.path()).take(room));
            }
        }
        all
    }

    fn of_entry(found: &Metadata) -> Self {
        Self {
            entries: 1,
            // Of a file with holes only what takes room.
            bytes: if found.is_dir() {
                0
            } else {
                found.len().min(found.blocks() * 512)
            },
        }
    }

    pub(crate) const fn add(&mut self, more: Self) {
        self.entries = self.entries.saturating_add(more.entries);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    const fn is_below(self, most: Self) -> bool {
        self.entries < most.entries && self.bytes < most.bytes
    }

    fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let (entries, bytes) = text.strip_suffix('\n')?.split_once(' ')?;
        Some(Self {
            entries: entries.parse().ok()?,
            bytes: bytes.parse().ok()?,
        })
    }

    /// Best effort: without it everything is counted.
    fn write(self, path: &Path) {
        let _unwritten = std::fs::write(path, format!("{} {}\n", self.entries, self.bytes));
    }
}

/// Notes what the directories of a batch hold.
pub(crate) fn write_batch_usage(batch: &Path, directories: Usage) {
    directories.write(&batch.join(BATCH_USAGE));
}

/// Adds to the total; the store is locked.
pub(crate) fn add(store: &Path, more: Usage) {
    let path = store.join(QUARANTINE).join(TOTAL);
    // Where there is none, the next start counts.
    if let Some(mut total) = Usage::read(&path) {
        total.add(more);
        total.write(&path);
    }
}

/// Refuses a command where the quarantine is full; the store is locked.
pub(crate) fn check(store: &Path, most: Usage) -> Result<(), ProtectError> {
    let path = store.join(QUARANTINE);
    let total = path.join(TOTAL);
    if Usage::read(&total).is_some_and(|usage| usage.is_below(most)) {
        return Ok(());
    }
    let usage = match count(&path) {
        Ok(usage) => usage,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(ProtectError::Io {
                step: "look at",
                path,
                source,
            });
        }
    };
    usage.write(&total);
    if usage.is_below(most) {
        return Ok(());
    }
    Err(ProtectError::Full {
        path,
        entries: usage.entries,
        bytes: usage.bytes,
        most_entries: most.entries,
        most_bytes: most.bytes,
    })
}

/// Counts what is there now.
fn count(quarantine: &Path) -> io::Result<Usage> {
    let mut all = Usage::default();
    for batch in std::fs::read_dir(quarantine)? {
        let batch = batch?.path();
        let mut has_directories = false;
        // A person may be removing it just now.
        for item in std::fs::read_dir(&batch).into_iter().flatten().flatten() {
            if item.file_name() == MANIFEST || item.file_name() == BATCH_USAGE {
                continue;
            }
            let Ok(found) = item.metadata() else { continue };
            if found.is_dir() {
                has_directories = true;
            } else {
                all.add(Usage::of_entry(&found));
            }
        }
        if has_directories {
            // Without that file, there is at least one.
            all.add(Usage::read(&batch.join(BATCH_USAGE)).unwrap_or(Usage { entries: 1, bytes: 0 }));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FEW: Usage = Usage { entries: 5, bytes: 100 };

    fn full(store: &Path) -> bool {
        match check(store, FEW) {
            Ok(()) => false,
            Err(ProtectError::Full { .. }) => true,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_put_in_counts_by_entries_and_by_bytes_and_what_is_removed_makes_room() {
        for (name, length) in [("entries", 0), ("bytes", 60)] {
            let store = tempfile::tempdir().unwrap();
            let store = store.path();
            assert!(!full(store), "{name}");
            let batch = store.join("quarantine/1");
            fs::create_dir_all(&batch).unwrap();
            fs::write(batch.join(MANIFEST), "[]").unwrap();
            assert!(!full(store), "{name}");
            for item in 0..5 {
                let path = batch.join(item.to_string());
                fs::write(&path, vec![b'x'; length]).unwrap();
                add(store, Usage::of(&path));
            }
            assert!(full(store), "{name}");
            // Also where nobody has written down how much there is.
            fs::remove_file(store.join("quarantine/total")).unwrap();
            assert!(full(store), "{name}");
            // Nothing was dropped, and what a person removes is free.
            assert_eq!(fs::read_dir(&batch).unwrap().count(), 6);
            fs::remove_dir_all(&batch).unwrap();
            assert!(!full(store), "{name}");
        }
    }

    #[test]
    fn a_directory_counts_with_what_it_holds_also_when_it_is_shut() {
        let store = tempfile::tempdir().unwrap();
        let batch = store.path().join("quarantine/1");
        fs::create_dir_all(batch.join("0/deep")).unwrap();
        fs::write(batch.join("0/deep/file"), [b'x'; 99]).unwrap();
        let usage = Usage::of(&batch.join("0"));
        assert_eq!((usage.entries, usage.bytes), (3, 99));
        write_batch_usage(&batch, usage);
        let shut = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(batch.join("0"), shut).unwrap();
        assert!(!full(store.path()));
        fs::write(batch.join("1"), "x").unwrap();
        fs::remove_file(store.path().join("quarantine/total")).unwrap();
        assert!(full(store.path()));
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(batch.join("0"), open).unwrap();
    }
}
