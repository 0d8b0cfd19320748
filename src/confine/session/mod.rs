//! The session directory: the private HOME and TMPDIR of one profile, the canaries, and nothing after the session.
//!
//! The parent makes and locks it; the supervisor locks it too, at the first request or when the parent ends, and removes it. A crash
//! of all processes leaves an unlocked directory, which the next start removes.

mod base;
mod names;
mod remove;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg, OFlag};

use super::error::ConfineError;
use crate::policy::path::AbsPath;
use base::make_directory;
pub(crate) use names::{CLOSED, LOCK, READABLE};
use names::{HOME, TMP};
pub(crate) use remove::{prune, remove, sweep_stale};

/// A session directory, made by the parent.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    // Held, never used: dropping it lets the next start sweep the directory.
    #[expect(dead_code, reason = "a lock is held by existing")]
    lock: Flock<File>,
}

/// The two private directories of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateDirectories {
    /// HOME.
    pub home: PathBuf,
    /// TMPDIR.
    pub tmp: PathBuf,
}

/// The name of a session directory that is not made yet. The supervisor gets the name first, so that it can remove the directory if
/// the parent dies.
#[derive(Debug)]
pub struct SessionName {
    path: PathBuf,
}

impl SessionName {
    /// A fresh name in the first of the system's temporary directories that `acceptable` admits and that can be
    /// written. The caller admits only what lies outside every grant.
    pub fn choose(acceptable: impl Fn(&AbsPath) -> bool) -> Result<Self, ConfineError> {
        let base = base::choose(base::temporary(), acceptable)?;
        match base::name_below(&base) {
            Ok(path) => Ok(Self { path }),
            Err(source) => Err(ConfineError::SessionDirectory { path: base, source }),
        }
    }

    /// Whether there could be one; nothing is made.
    pub fn check_available(acceptable: impl Fn(&AbsPath) -> bool) -> Result<(), ConfineError> {
        base::find(base::temporary(), acceptable)
    }

    /// Whether a session may lie somewhere around this path.
    pub fn may_lie_around(path: &AbsPath) -> bool {
        base::may_lie_around(path)
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it.
    pub fn create(self) -> Result<Session, ConfineError> {
        let Self { path } = self;
        let mut attempts = 0;
        loop {
            match make_session(&path) {
                // A supervisor that just ended may have removed the base in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < 8 => attempts += 1,
                Err(source) => return Err(ConfineError::SessionDirectory { path, source }),
                Ok(lock) => return Ok(Session { path, lock }),
            }
        }
    }
}

/// A file for its owner alone, whatever the umask takes or leaves.
fn make_file(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

fn make_session(path: &Path) -> io::Result<Flock<File>> {
    if let Some(base) = path.parent() {
        base::make(base)?;
    }
    if let Err(error) = make_directory(path) {
        // There is nothing of ours in the base; what others have there stays.
        let _others = path.parent().map(fs::remove_dir);
        return Err(error);
    }
    let made = (|| {
        make_file(&path.join(LOCK))?;
        let lock = lock(path)?;
        for private in [HOME, TMP] {
            make_directory(&path.join(private))?;
        }
        for canary in [CLOSED, READABLE] {
            make_file(&path.join(canary))?;
        }
        Ok(lock)
    })();
    if made.is_err() {
        remove(path);
    }
    made
}

impl Session {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The canary that every profile must grant for reading.
    pub fn readable(&self) -> PathBuf {
        self.path.join(READABLE)
    }

    /// The canary that no profile grants.
    pub fn closed(&self) -> PathBuf {
        self.path.join(CLOSED)
    }

    /// HOME and TMPDIR.
    pub fn private(&self) -> PrivateDirectories {
        PrivateDirectories {
            home: self.path.join(HOME),
            tmp: self.path.join(TMP),
        }
    }
}

fn lock(session: &Path) -> io::Result<Flock<File>> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(session.join(LOCK))?;
    Flock::lock(file, FlockArg::LockSharedNonblock).map_err(|(_, errno)| errno.into())
}

/// Locks a session that the parent has made; `None` before that.
pub(crate) fn lock_existing(session: &Path) -> Option<Flock<File>> {
    session.join(READABLE).exists().then(|| lock(session).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::remove::MIN_AGE;
    use super::*;

    #[test]
    fn locking_makes_no_directory_and_keeps_one_whose_maker_is_dead() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("stockade-test");
        base::make(&base).unwrap();
        let named = |base| SessionName {
            path: base::name_below(base).unwrap(),
        };
        let absent = named(&base);
        assert!(lock_existing(absent.path()).is_none());
        assert!(!absent.path().exists());
        let (ours, other) = (named(&base).create().unwrap(), absent.create().unwrap());
        let path = other.path().to_owned();
        let lock = lock_existing(&path).unwrap();
        let time = std::time::SystemTime::now() - MIN_AGE * 2;
        File::open(&path).unwrap().set_modified(time).unwrap();
        drop(other);
        sweep_stale(ours.path());
        assert!(path.exists());
        drop(lock);
        sweep_stale(ours.path());
        assert!(!path.exists());
    }

    #[test]
    fn pruning_leaves_the_lock_and_what_somebody_put_there() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("stockade-test");
        base::make(&base).unwrap();
        let path = base::name_below(&base).unwrap();
        let session = SessionName { path }.create().unwrap();
        let PrivateDirectories { home, tmp } = session.private();
        fs::write(home.join("left"), "x").unwrap();
        prune(session.path());
        assert!(!tmp.exists() && !session.readable().exists());
        assert!(session.path().join(LOCK).exists() && home.join("left").exists());
        remove(session.path());
        assert!(!session.path().exists());
    }

    #[test]
    fn an_unlocked_session_is_swept_and_a_locked_one_is_not() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("stockade-test");
        let made = || {
            base::make(&base).unwrap();
            SessionName {
                path: base::name_below(&base).unwrap(),
            }
            .create()
            .unwrap()
        };
        let make_old = |session: &Session| {
            let time = std::time::SystemTime::now() - MIN_AGE * 2;
            File::open(session.path()).unwrap().set_modified(time).unwrap();
        };
        let (ours, other) = (made(), made());
        make_old(&ours);
        make_old(&other);
        sweep_stale(ours.path());
        assert!(other.path().exists());
        let dead = other.path().to_owned();
        drop(other);
        sweep_stale(ours.path());
        assert!(!dead.exists());
        assert!(ours.path().exists());
        let young = made().path().to_owned();
        sweep_stale(ours.path());
        assert!(young.exists(), "a session that is just being made was swept");
    }
}
