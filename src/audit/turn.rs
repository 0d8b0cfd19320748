//! One writer's turn among several processes.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::error::AuditError;
use crate::config::kept;

/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The lock file of a log.
#[derive(Debug)]
pub(super) struct Turns {
    path: PathBuf,
    file: File,
}

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a File);

impl Turns {
    pub(super) fn at(path: PathBuf) -> Result<Self, AuditError> {
        let file = kept::to_lock(&path).map_err(AuditError::io(&path, "opening"))?;
        Ok(Self { path, file })
    }

    /// Waits for the turn, for a while.
    pub(super) fn take(&mut self) -> Result<Turn<'_>, AuditError> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match self.file.try_lock() {
                Ok(()) if self.is_in_place() => return Ok(Turn(&self.file)),
                // Somebody removed it while it was waited for: whoever comes now locks another.
                Ok(()) => self.file = kept::to_lock(&self.path).map_err(AuditError::io(&self.path, "opening"))?,
                Err(TryLockError::WouldBlock) => {
                    let waited = started.elapsed();
                    if waited >= PATIENCE {
                        let path = self.path.clone();
                        return Err(AuditError::Busy { path, waited });
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Err(TryLockError::Error(error)) => return Err(AuditError::io(&self.path, "locking")(error)),
            }
        }
    }

    fn is_in_place(&self) -> bool {
        let there = std::fs::symlink_metadata(&self.path);
        let ours = self.file.metadata();
        there.is_ok_and(|there| ours.is_ok_and(|ours| there.dev() == ours.dev() && there.ino() == ours.ino()))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The lock goes with the file at the latest.
        let _unlocked = self.0.unlock();
    }
}

/// Reads while nobody writes, where there is a lock file that may be opened; a copy of a log has none.
pub(super) fn while_nobody_writes<T>(path: PathBuf, read: impl FnOnce() -> T) -> Result<T, AuditError> {
    let Ok(file) = kept::to_look(&path) else {
        return Ok(read());
    };
    let started = Instant::now();
    loop {
        match file.try_lock_shared() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(AuditError::io(&path, "locking")(error)),
        }
        let waited = started.elapsed();
        if waited >= PATIENCE {
            return Err(AuditError::Busy { path, waited });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(read())
}
