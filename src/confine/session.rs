//! The session directory: the private HOME and TMPDIR of one profile, the canaries, and nothing after the session.
//!
//! The parent makes it; the keeper holds its lock and removes it, whoever dies. Directories that a
//! crash left (all processes killed at once) have an unheld lock and go at the next start.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use super::error::ConfineError;
use super::selftest::{CLOSED, READABLE};
use crate::policy::path::AbsPath;

/// The file whose lock says that a session is alive.
pub(crate) const LOCK: &str = "lock";
/// How old a directory must be for its lock to tell whether anybody holds it.
const SETTLED: Duration = Duration::from_secs(5);
/// How old a directory without a lock must be to be somebody's remains.
const STALE: Duration = Duration::from_mins(1);
/// The private HOME.
const HOME: &str = "home";
/// The private TMPDIR.
const TMP: &str = "tmp";

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

/// A session directory that is named and not made yet: the stage is told the name first, so that it can
/// remove the directory whatever becomes of the parent.
#[derive(Debug)]
pub struct Named {
    path: PathBuf,
}

impl Named {
    /// A fresh name below the first base that `acceptable` admits and that can be written: the system's
    /// temporary directories, in order. The caller admits only what lies outside every grant.
    pub fn choose(acceptable: impl Fn(&AbsPath) -> bool) -> Result<Self, ConfineError> {
        let mut refused = None;
        for parent in [
            std::env::temp_dir(),
            "/tmp".into(),
            "/var/tmp".into(),
            "/dev/shm".into(),
        ] {
            let Ok(parent) = fs::canonicalize(&parent) else {
                continue;
            };
            let base = parent.join(format!("stockade-{}", geteuid()));
            let tried = match AbsPath::new(&base) {
                Ok(path) if acceptable(&path) => make_base(&base).and_then(|()| name_below(&base)),
                Ok(_) => Err(io::Error::other(
                    "it lies inside a granted root; set TMPDIR to a place that does not",
                )),
                Err(error) => Err(io::Error::other(error)),
            };
            match tried {
                Ok(path) => return Ok(Self { path }),
                Err(source) => refused = refused.or(Some(ConfineError::SessionDirectory { path: base, source })),
            }
        }
        Err(refused.unwrap_or_else(|| ConfineError::SessionDirectory {
            path: std::env::temp_dir(),
            source: io::ErrorKind::NotFound.into(),
        }))
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it.
    pub fn create(self) -> Result<Session, ConfineError> {
        let Self { path } = self;
        let mut tries = 0;
        loop {
            match make_session(&path) {
                // A keeper that just ended may have removed the base in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 8 => tries += 1,
                Err(source) => return Err(ConfineError::SessionDirectory { path, source }),
                Ok(lock) => return Ok(Session { path, lock }),
            }
        }
    }
}

fn make_base(base: &Path) -> io::Result<()> {
    match make_directory(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let meta = fs::symlink_metadata(base)?;
    if !meta.is_dir() || meta.uid() != geteuid().as_raw() || meta.mode() & 0o777 != 0o700 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it exists and is not a private directory of this user; remove it or set TMPDIR",
        ));
    }
    Ok(())
}

/// A directory for its owner alone, whatever the umask takes or leaves.
fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

/// A file for its owner alone, whatever the umask takes or leaves.
fn make_file(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

fn name_below(base: &Path) -> io::Result<PathBuf> {
    let mut random = [0u8; 9];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut random)?;
    let name = random
        .iter()
        .fold("s-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    Ok(base.join(name))
}

fn make_session(path: &Path) -> io::Result<Flock<File>> {
    if let Some(base) = path.parent() {
        make_base(base)?;
    }
    make_directory(path)?;
    let made = (|| {
        make_file(&path.join(LOCK))?;
        let held = lock(path)?;
        for private in [HOME, TMP] {
            make_directory(&path.join(private))?;
        }
        for canary in [CLOSED, READABLE] {
            make_file(&path.join(canary))?;
        }
        Ok(held)
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

/// The keeper's hold on the session's lock. The parent makes the directory while the stage starts.
pub(crate) fn hold(session: &Path) -> Option<Flock<File>> {
    for _ in 0..50 {
        if session.join(READABLE).exists() {
            return lock(session).ok();
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    None
}

/// Removes the sessions beside this one that nobody holds.
pub(crate) fn sweep_stale(session: &Path) {
    let Some(entries) = session.parent().and_then(|base| fs::read_dir(base).ok()) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // A session is made, locked and filled in several steps: a young one is left alone whatever its lock says.
        if path == session || !is_older(&path, SETTLED) {
            continue;
        }
        let Ok(file) = OpenOptions::new()
            .write(true)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path.join(LOCK))
        else {
            // Without a lock file it is a session that is just being made, or one half removed.
            if is_older(&path, STALE) {
                remove(&path);
            }
            continue;
        };
        if let Ok(_held) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            remove(&path);
        }
    }
}

fn is_older(path: &Path, least: Duration) -> bool {
    let age = fs::symlink_metadata(path)
        .and_then(|meta| meta.modified())
        .map(|made| made.elapsed());
    matches!(age, Ok(Ok(age)) if age > least)
}

/// Removes what nobody has put anything into, while the last processes of a session are still ending.
///
/// It tries each thing once: whoever still lives could keep it busy for ever. [`remove`] does the rest when
/// they are dead.
pub(crate) fn prune(session: &Path) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(top) = nix::fcntl::open(session, flags, Mode::empty()) else {
        return;
    };
    for canary in [CLOSED, READABLE] {
        let _stays = unlinkat(&top, canary, UnlinkatFlags::NoRemoveDir);
    }
    for private in [HOME, TMP] {
        let _stays = unlinkat(&top, private, UnlinkatFlags::RemoveDir);
    }
}

/// Removes a session whose processes are dead, and its base when it was the last.
///
/// What cannot be removed stays for the next sweep; there is nobody left to tell.
pub(crate) fn remove(session: &Path) {
    let _left = remove_tree(session);
    if let Some(base) = session.parent() {
        let _others = fs::remove_dir(base);
    }
}

/// Removes a tree of any depth with two descriptors: each directory found is moved up to the top
/// first. Directories the command made unreadable are made readable again.
fn remove_tree(top: &Path) -> nix::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let root = nix::fcntl::open(top, flags, Mode::empty())?;
    let mut serial: u64 = 0;
    loop {
        let entries = list(&root)?;
        if entries.is_empty() {
            break;
        }
        // The lock goes last: without it nobody sweeps what is left when this is interrupted.
        let only_the_lock = entries.len() == 1;
        for name in entries
            .iter()
            .filter(|name| only_the_lock || name.as_bytes() != LOCK.as_bytes())
        {
            if unlinkat(&root, name.as_c_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
                continue;
            }
            fchmodat(&root, name.as_c_str(), Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
            let directory = openat(&root, name.as_c_str(), flags, Mode::empty())?;
            for child in list(&directory)? {
                if unlinkat(&directory, child.as_c_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
                    continue;
                }
                // Moving a directory changes its `..`, so it must be writable itself.
                fchmodat(
                    &directory,
                    child.as_c_str(),
                    Mode::S_IRWXU,
                    FchmodatFlags::NoFollowSymlink,
                )?;
                serial += 1;
                renameat(
                    &directory,
                    child.as_c_str(),
                    &root,
                    format!("r-{serial}-{}", std::process::id()).as_str(),
                )?;
            }
            unlinkat(&root, name.as_c_str(), UnlinkatFlags::RemoveDir)?;
        }
    }
    nix::unistd::unlinkat(nix::fcntl::AT_FDCWD, top, UnlinkatFlags::RemoveDir)
}

fn list(directory: &impl AsFd) -> nix::Result<Vec<std::ffi::CString>> {
    let copy = openat(
        directory,
        ".",
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    let mut names = Vec::new();
    for entry in nix::dir::Dir::from_fd(copy)?.iter() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_deeper_than_the_descriptor_limit_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("s");
        fs::create_dir(&top).unwrap();
        std::thread::spawn({
            let top = top.clone();
            move || {
                let mut at = nix::fcntl::open(&top, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
                for _ in 0..3000 {
                    nix::sys::stat::mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
                    at = openat(&at, "d", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
                }
            }
        })
        .join()
        .unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_link_in_the_tree_is_removed_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let (top, outside) = (base.path().join("s"), base.path().join("outside"));
        fs::create_dir(&top).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o750)).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("link")).unwrap();
        fs::create_dir(top.join("dir")).unwrap();
        std::os::unix::fs::symlink(&outside, top.join("dir/link")).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists());
        assert_eq!(fs::metadata(&outside).unwrap().mode() & 0o777, 0o750);
    }

    #[test]
    fn pruning_leaves_the_lock_and_what_somebody_put_there() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("stockade-test");
        make_base(&base).unwrap();
        let path = name_below(&base).unwrap();
        let session = Named { path }.create().unwrap();
        let PrivateDirectories { home, tmp } = session.private();
        fs::write(home.join("left"), "x").unwrap();
        prune(session.path());
        assert!(!tmp.exists() && !session.readable().exists());
        assert!(session.path().join(LOCK).exists() && home.join("left").exists());
        remove(session.path());
        assert!(!session.path().exists());
    }

    #[test]
    fn a_session_that_nobody_holds_is_swept_and_a_live_one_is_not() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("stockade-test");
        let made = || {
            make_base(&base).unwrap();
            Named {
                path: name_below(&base).unwrap(),
            }
            .create()
            .unwrap()
        };
        let aged = |session: &Session| {
            let then = std::time::SystemTime::now() - SETTLED * 2;
            File::open(session.path()).unwrap().set_modified(then).unwrap();
        };
        let (ours, other) = (made(), made());
        aged(&ours);
        aged(&other);
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
