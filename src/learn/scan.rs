//! Scans a directory for secrets and outward links. Opens only directories, and follows no links.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::secrets::is_secret;
use crate::confine::sys::attributes::mount_at;
use crate::policy::AbsPath;
use crate::policy::path::display;

/// The most entries of one directory, and of those in it, that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// The findings of a scan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Something whose name or mode says that it is secret.
    pub(super) secret: Option<String>,
    /// Something that leads out of the directory: another name of a file, or something that is mounted there.
    pub(super) outward: Option<String>,
    /// Why the scan is incomplete.
    pub(super) incomplete: Option<String>,
}

/// Scans a directory; `entries_left` is decremented per entry.
pub(super) fn scan(directory: &AbsPath, entries_left: &Cell<usize>) -> Found {
    let most = entries_left.get().min(MAX_ENTRIES);
    let mut found = Found::default();
    let Ok(about) = std::fs::symlink_metadata(directory) else {
        return found.stop("it cannot be looked at".to_owned());
    };
    let mut names: HashMap<(u64, u64), (u64, u64, PathBuf)> = HashMap::new();
    let (mut left, mut count) = (vec![directory.as_path().to_owned()], 0);
    while let Some(next) = left.pop() {
        let entries = match std::fs::read_dir(&next) {
            Ok(entries) => entries,
            // Who cannot list a directory may still know a name in it, or be its owner and change its mode.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let reason = || format!("{} cannot be listed", display(&next));
                found.incomplete.get_or_insert_with(reason);
                continue;
            }
            Err(error) => return found.stop(format!("{} cannot be listed: {error}", display(&next))),
        };
        for entry in entries {
            count += 1;
            entries_left.set(entries_left.get().saturating_sub(1));
            if count > most {
                return found.stop("it holds too much to be looked through".to_owned());
            }
            let Ok(entry) = entry else {
                return found.stop(format!("{} cannot be listed", display(&next)));
            };
            let path = entry.path();
            let meta = match std::fs::symlink_metadata(&path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                // A directory can be listed by who may not look at what is in it.
                Err(_) => {
                    let reason = || format!("{} cannot be looked at", display(&path));
                    found.incomplete.get_or_insert_with(reason);
                    continue;
                }
            };
            found.secret(&path, entry.file_name().as_os_str(), &meta);
            if !is_of_one_mount((directory.as_path(), &about), (&path, &meta)) {
                let reason = format!("{} is another file system, or mounted from elsewhere", display(&path));
                found.outward.get_or_insert(reason);
            } else if meta.is_dir() {
                left.push(path);
            } else if meta.is_file() && meta.nlink() > 1 {
                names
                    .entry((meta.dev(), meta.ino()))
                    .or_insert((meta.nlink(), 0, path))
                    .1 += 1;
            }
        }
    }
    if let Some((.., path)) = names.into_values().find(|(links, here, _)| here < links) {
        let reason = format!("{} has another name elsewhere (a hard link)", display(&path));
        found.outward.get_or_insert(reason);
    }
    found
}

/// Whether nothing is mounted between one and the other: a directory of the same file system can be, from anywhere in it.
pub(super) fn is_of_one_mount(one: (&Path, &Metadata), other: (&Path, &Metadata)) -> bool {
    let mount = |path| mount_at(path).ok();
    one.1.dev() == other.1.dev() && mount(one.0).is_some_and(|mounted| mount(other.0) == Some(mounted))
}

/// Whether only the owner has access.
pub(super) fn is_private(meta: &Metadata) -> bool {
    let others = meta.mode() & 0o077;
    others == 0
}

impl Found {
    fn stop(mut self, why: String) -> Self {
        self.incomplete = Some(why);
        self
    }

    fn secret(&mut self, path: &std::path::Path, name: &OsStr, meta: &Metadata) {
        let kind = meta.file_type();
        let why = if is_secret(name) {
            "is a name of something secret"
        } else if meta.is_file() && is_private(meta) {
            "may be read by its owner alone"
        } else if kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
            "is a socket or device"
        } else {
            return;
        };
        self.secret.get_or_insert_with(|| format!("{} {why}", display(path)));
    }
}
