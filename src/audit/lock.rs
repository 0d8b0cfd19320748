//! The lock of a log, for writers in several processes.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::AuditError;
use crate::config::state_files;

/// The longest wait for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The lock file of a log.
#[derive(Debug)]
pub(super) struct LogLock {
    path: PathBuf,
    file: File,
}

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct LockGuard<'a>(&'a File);

impl LogLock {
    pub(super) fn at(path: PathBuf) -> Result<Self, AuditError> {
        let file = state_files::open_lock(&path).map_err(AuditError::io(&path, "opening"))?;
        Ok(Self { path, file })
    }

    /// Acquires the lock, within [`LOCK_TIMEOUT`].
    pub(super) fn acquire(&mut self) -> Result<LockGuard<'_>, AuditError> {
        loop {
            wait(&self.path, || self.file.try_lock())?;
            if state_files::is_same_file(&self.file, &self.path) {
                return Ok(LockGuard(&self.file));
            }
            // The file was removed meanwhile, and another process may lock a new one.
            self.file = state_files::open_lock(&self.path).map_err(AuditError::io(&self.path, "opening"))?;
        }
    }
}

/// Retries until the lock is acquired or the time is over.
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
        if waited >= LOCK_TIMEOUT {
            let path = path.to_owned();
            return Err(AuditError::Busy { path, waited });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        // The lock goes with the file at the latest.
        let _unlocked = self.0.unlock();
    }
}

/// Reads under a shared lock, if the lock file can be opened; a copy of a log has none.
pub(super) fn with_shared_lock<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T, AuditError> {
    let Ok(file) = state_files::open_to_read(path) else {
        return Ok(read());
    };
    wait(path, || file.try_lock_shared())?;
    Ok(read())
}
