//! One writer's turn among several processes.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::AuditError;
use crate::config::state_files;

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
        let file = state_files::open_lock(&path).map_err(AuditError::io(&path, "opening"))?;
        Ok(Self { path, file })
    }

    /// Waits for the turn, for a while.
    pub(super) fn take(&mut self) -> Result<Turn<'_>, AuditError> {
        loop {
            wait(&self.path, || self.file.try_lock())?;
            if state_files::is_same_file(&self.file, &self.path) {
                return Ok(Turn(&self.file));
            }
            // Somebody removed it while it was waited for: whoever comes now locks another.
            self.file = state_files::open_lock(&self.path).map_err(AuditError::io(&self.path, "opening"))?;
        }
    }
}

/// Tries until the lock is had, for a while.
fn wait(path: &Path, attempt: impl Fn() -> Result<(), TryLockError>) -> Result<(), AuditError> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(AuditError::io(path, "locking")(error)),
        }
        let waited = started.elapsed();
        if waited >= PATIENCE {
            let path = path.to_owned();
            return Err(AuditError::Busy { path, waited });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The lock goes with the file at the latest.
        let _unlocked = self.0.unlock();
    }
}

/// Reads while nobody writes, where there is a lock file that may be opened; a copy of a log has none.
pub(super) fn while_nobody_writes<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T, AuditError> {
    let Ok(file) = state_files::open_to_read(path) else {
        return Ok(read());
    };
    wait(path, || file.try_lock_shared())?;
    Ok(read())
}
