//! The file of a config: read once, replaced atomically, or created.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::AmendError;
use crate::config::file::{self, ConfigFile, Links};
use crate::config::loaded::Loaded;

/// The mode of a new config.
const MODE: u32 = 0o644;

/// The file that a config was loaded from.
#[derive(Debug)]
pub struct Original {
    /// The absolute path that was named.
    path: PathBuf,
    /// The path with links resolved.
    target: PathBuf,
    sha256: [u8; 32],
    text: String,
}

impl Original {
    /// The file that a config was loaded from, if any; an error if its bytes have changed since.
    pub fn of(loaded: &Loaded) -> Result<Option<Self>, AmendError> {
        let Some(named) = loaded.files.first() else {
            return Ok(None);
        };
        let (file, target) = read(&named.path)?;
        if file.file.sha256 != named.sha256 {
            return Err(AmendError::Changed(named.path.clone()));
        }
        let text = String::from_utf8(file.bytes).map_err(|_| AmendError::Changed(named.path.clone()))?;
        Ok(Some(Self {
            path: named.path.clone(),
            target,
            sha256: named.sha256,
            text,
        }))
    }

    /// The path that was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the file atomically, with the same owner and mode, if it has not changed since it was read.
    pub fn replace(&self, text: &str) -> Result<(), AmendError> {
        let failed = |step| {
            let path = self.target.clone();
            move |source| AmendError::Io { step, path, source }
        };
        let metadata = self.verify_unchanged()?;
        let mut file = temporary_beside(&self.target)?;
        let write = |file: &mut NamedTempFile| {
            file.write_all(text.as_bytes())?;
            let made = file.as_file().metadata()?;
            if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
            }
            file.as_file()
                .set_permissions(Permissions::from_mode(metadata.mode() & 0o7777))?;
            file.as_file().sync_all()
        };
        write(&mut file).map_err(failed("write"))?;
        self.verify_unchanged()?;
        file.persist(&self.target)
            .map_err(|error| failed("replace")(error.error))?;
        sync_directory(&self.target)?;
        verify_content(&self.target, text)
    }

    /// The metadata of the file, if it has not changed since it was read.
    fn verify_unchanged(&self) -> Result<Metadata, AmendError> {
        let (file, target) = read(&self.path)?;
        if target != self.target || file.file.sha256 != self.sha256 {
            return Err(AmendError::Changed(self.path.clone()));
        }
        let metadata = std::fs::symlink_metadata(&self.target).map_err(|source| AmendError::Io {
            step: "look at",
            path: self.target.clone(),
            source,
        })?;
        if metadata.nlink() == 1 {
            return Ok(metadata);
        }
        Err(AmendError::NotReplaced {
            path: self.path.clone(),
            why: "it has another name as well (a hard link), which would go on saying what it says now; \
                  `--out FILE` writes a new config"
                .to_owned(),
        })
    }
}

/// Creates a config; an existing file is never overwritten.
pub fn create(path: &Path, text: &str) -> Result<(), AmendError> {
    let failed = |step| {
        move |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => AmendError::NotReplaced {
                path: path.to_owned(),
                why: "something is there already".to_owned(),
            },
            _ => AmendError::Io {
                step,
                path: path.to_owned(),
                source,
            },
        }
    };
    let mut file = temporary_beside(path)?;
    let write = |file: &mut NamedTempFile| {
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(Permissions::from_mode(MODE))?;
        file.as_file().sync_all()
    };
    write(&mut file).map_err(failed("write"))?;
    file.persist_noclobber(path)
        .map_err(|error| failed("make")(error.error))?;
    sync_directory(path)?;
    verify_content(path, text)
}

/// Verifies that the file has this text: whoever can write in the directory could swap the temporary file before it was
/// renamed.
fn verify_content(path: &Path, text: &str) -> Result<(), AmendError> {
    let (file, _) = read(path)?;
    if file.bytes == text.as_bytes() {
        Ok(())
    } else {
        Err(AmendError::Changed(path.to_owned()))
    }
}

fn read(path: &Path) -> Result<(ConfigFile, PathBuf), AmendError> {
    let failed = |source| AmendError::Io {
        step: "read",
        path: path.to_owned(),
        source,
    };
    let target = std::fs::canonicalize(path).map_err(failed)?;
    let file = file::read(&target, Links::Refuse).map_err(|error| failed(io::Error::other(error)))?;
    Ok((file, target))
}

/// A temporary file in the same directory, removed unless it is renamed.
fn temporary_beside(path: &Path) -> Result<NamedTempFile, AmendError> {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or(OsStr::new("config")));
    tempfile::Builder::new()
        .prefix(&prefix)
        .tempfile_in(directory(path))
        .map_err(|source| AmendError::Io {
            step: "write beside",
            path: path.to_owned(),
            source,
        })
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Syncs the directory, so that the name survives a power cut.
fn sync_directory(path: &Path) -> Result<(), AmendError> {
    let synced = File::open(directory(path)).and_then(|dir| dir.sync_all());
    synced.map_err(|source| AmendError::Io {
        step: "sync",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_to_be_there_is_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap().join("agent.yaml");
        create(&path, "a: 1\n").unwrap();
        assert!(verify_content(&path, "a: 1\n").is_ok());
        std::fs::write(&path, "a: 2\n").unwrap();
        assert!(matches!(verify_content(&path, "a: 1\n"), Err(AmendError::Changed(_))));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(directory.path().join("other"), &path).unwrap();
        assert!(verify_content(&path, "a: 1\n").is_err());
    }
}
