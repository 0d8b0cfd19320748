//! Where session directories lie: in a base, a directory of this user alone in one of the system's temporary ones.
//!
//! The name of the base is predictable, so in a directory that everybody may write somebody else can take it. Then one with a random
//! name is made, which later starts recognise by its owner.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::confine::error::ConfineError;
use crate::policy::path::{AbsPath, display};

/// The bit of a directory in which only the owner of a thing may rename or remove it.
const STICKY: u32 = 0o1000;
/// The group or everybody may write.
const BY_OTHERS: u32 = 0o022;

/// The system's temporary directories, in the order they are tried.
pub(super) fn temporary() -> Vec<PathBuf> {
    let mut all = vec![std::env::temp_dir()];
    for usual in ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from) {
        if !all.contains(&usual) {
            all.push(usual);
        }
    }
    all
}

/// Whether a base may lie in a directory around this path.
pub(super) fn may_lie_around(path: &AbsPath) -> bool {
    let lies_in = |parent: &PathBuf| {
        path.as_path()
            .starts_with(fs::canonicalize(parent).as_ref().unwrap_or(parent))
    };
    temporary().iter().any(lies_in)
}

/// A base in the first of the directories where there can be one; it exists.
pub(super) fn choose(parents: Vec<PathBuf>, acceptable: impl Fn(&AbsPath) -> bool) -> Result<PathBuf, ConfineError> {
    let mut refused = Vec::new();
    for parent in parents {
        match fs::canonicalize(&parent).and_then(|parent| base_in(&parent, &acceptable)) {
            Ok(base) => return Ok(base),
            Err(error) => refused.push(format!("{}: {error}", display(&parent))),
        }
    }
    Err(ConfineError::NoPrivateDirectory(refused.join("; ")))
}

/// Whether there can be one; nothing is made.
pub(super) fn find(parents: Vec<PathBuf>, acceptable: impl Fn(&AbsPath) -> bool) -> Result<(), ConfineError> {
    let mut refused = Vec::new();
    for parent in parents {
        match fs::canonicalize(&parent).and_then(|parent| default_base_in(&parent, &acceptable)) {
            Ok(_) => return Ok(()),
            Err(error) => refused.push(format!("{}: {error}", display(&parent))),
        }
    }
    Err(ConfineError::NoPrivateDirectory(refused.join("; ")))
}

/// The name that a base has first in a directory, where one may lie.
fn default_base_in(parent: &Path, acceptable: &impl Fn(&AbsPath) -> bool) -> io::Result<PathBuf> {
    check_not_replaceable(parent)?;
    let usual = parent.join(format!("stockade-{}", geteuid()));
    if AbsPath::new(&usual).is_ok_and(|path| acceptable(&path)) {
        return Ok(usual);
    }
    Err(io::Error::other(
        "commands are granted it, or have a directory of their own in its place",
    ))
}

/// Refuses a directory that another user could replace: a session is removed by its path, and the replacement would be removed.
fn check_not_replaceable(parent: &Path) -> io::Result<()> {
    for directory in parent.ancestors() {
        let meta = fs::symlink_metadata(directory)?;
        let refused = |why: &str| Err(io::Error::other(format!("{}: {why}", display(directory))));
        // Directories further up matter for root only; for others they could be moved away anyway, and a Kubernetes volume is such a
        // directory.
        let counts = directory == parent || geteuid().is_root();
        if counts && meta.mode() & BY_OTHERS != 0 && meta.mode() & STICKY == 0 {
            return refused("others than its owner may rename what is there");
        }
        if meta.uid() != 0 && meta.uid() != geteuid().as_raw() && !may_be_root(meta.uid())? {
            return refused("it is another user's, who may rename what is there");
        }
    }
    Ok(())
}

/// Whether an owner is nobody that this user namespace knows, as root is where it knows only some; see `user_namespaces(7)`.
fn may_be_root(owner: u32) -> io::Result<bool> {
    let unknown = fs::read_to_string("/proc/sys/kernel/overflowuid")?;
    let map = fs::read_to_string("/proc/self/uid_map")?;
    let knows_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    Ok(unknown.trim() == owner.to_string() && !knows_all)
}

fn base_in(parent: &Path, acceptable: &impl Fn(&AbsPath) -> bool) -> io::Result<PathBuf> {
    let usual = default_base_in(parent, acceptable)?;
    let admitted = |base: &PathBuf| AbsPath::new(base).is_ok_and(|path| acceptable(&path));
    match make(&usual) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done.map(|()| usual),
    }
    let mut others = others(parent, &usual)?;
    others.sort();
    let other = if let Some(known) = others.into_iter().find(admitted) {
        known
    } else {
        let mut name = usual.into_os_string();
        name.push(format!("-{}", random()?));
        PathBuf::from(name)
    };
    make(&other).map(|()| other)
}

/// Bases of this user beside the usual one.
fn others(parent: &Path, usual: &Path) -> io::Result<Vec<PathBuf>> {
    let mut prefix = usual.file_name().unwrap_or_default().to_owned();
    prefix.push("-");
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) && is_private(&entry.path()).unwrap_or(false) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Makes a base that is not there; one that is must be this user's alone, or it is somebody else's
/// ([`io::ErrorKind::AlreadyExists`]).
pub(super) fn make(base: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match make_directory(base)
            .or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })
            .and_then(|()| is_private(base))
        {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let why = "it exists and is not a private directory of this user";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            // The last session in it has just ended, and removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 64 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

fn is_private(base: &Path) -> io::Result<bool> {
    let meta = fs::symlink_metadata(base)?;
    Ok(meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o777 == 0o700)
}

/// A fresh name for a session.
pub(super) fn name_below(base: &Path) -> io::Result<PathBuf> {
    Ok(base.join(format!("s-{}", random()?)))
}

fn random() -> io::Result<String> {
    let mut bytes = [0u8; 9];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes
        .iter()
        .fold(String::new(), |name, byte| format!("{name}{byte:02x}")))
}

/// A directory for its owner alone, whatever the umask takes or leaves.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_base_that_somebody_else_took_is_passed_by_and_the_other_is_found_again() {
        let top = tempfile::tempdir().unwrap();
        let usual = choose(vec![top.path().to_owned()], |_| true).unwrap();
        assert!(usual.ends_with(format!("stockade-{}", geteuid())));
        assert_eq!(choose(vec![top.path().to_owned()], |_| true).unwrap(), usual);
        // As one that others may write, a file, or a link.
        mode(&usual, 0o777);
        let other = choose(vec![top.path().to_owned()], |_| true).unwrap();
        assert_ne!(other, usual);
        assert!(is_private(&other).unwrap());
        fs::remove_dir(&usual).unwrap();
        fs::write(&usual, "").unwrap();
        assert_eq!(choose(vec![top.path().to_owned()], |_| true).unwrap(), other);
        fs::remove_file(&usual).unwrap();
        std::os::unix::fs::symlink(&other, &usual).unwrap();
        assert_eq!(choose(vec![top.path().to_owned()], |_| true).unwrap(), other);
        // What others left under such a name is not taken for it.
        mode(&other, 0o755);
        let third = choose(vec![top.path().to_owned()], |_| true).unwrap();
        assert!(third != other && third != usual);
    }

    #[test]
    fn a_directory_whose_entries_others_may_rename_is_not_used() {
        let top = tempfile::tempdir().unwrap();
        for open in [0o777, 0o775] {
            mode(top.path(), open);
            let refused = choose(vec![top.path().to_owned()], |_| true).unwrap_err().to_string();
            assert!(refused.contains("others than its owner may rename"), "{refused}");
        }
        mode(top.path(), 0o1777);
        choose(vec![top.path().to_owned()], |_| true).unwrap();
    }

    #[test]
    fn root_uses_no_directory_below_one_whose_entries_others_may_rename() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("open/below");
        fs::create_dir_all(&below).unwrap();
        mode(&top.path().join("open"), 0o777);
        match choose(vec![below.clone()], |_| true) {
            Err(refused) if geteuid().is_root() => {
                let refused = refused.to_string();
                assert!(refused.contains("open: others than its owner may rename"), "{refused}");
            }
            done => assert!(!geteuid().is_root() && done.is_ok(), "{done:?}"),
        }
        mode(&top.path().join("open"), 0o1777);
        choose(vec![below], |_| true).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_is_not_used_nor_what_lies_in_it() {
        let top = tempfile::tempdir().unwrap();
        let theirs = top.path().join("theirs");
        let below = theirs.join("below");
        fs::create_dir_all(&below).unwrap();
        choose(vec![theirs.clone(), below.clone()], |_| true).unwrap();
        // Only root can give a directory away, and these tests run as root first.
        if !geteuid().is_root() {
            return;
        }
        std::os::unix::fs::chown(&theirs, Some(1001), Some(1001)).unwrap();
        for base in [&theirs, &below] {
            let refused = choose(vec![base.clone()], |_| true).unwrap_err().to_string();
            assert!(refused.contains("theirs: it is another user's"), "{refused}");
        }
    }

    #[test]
    fn a_base_that_goes_while_it_is_made_is_made_again() {
        let top = tempfile::tempdir().unwrap();
        let base = top.path().join("base");
        let ended = std::sync::atomic::AtomicBool::new(false);
        // A session that ends removes it once: each try to make it may lose it, and no try loses it for ever.
        let is_due = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    if is_due.load(std::sync::atomic::Ordering::Relaxed) && fs::remove_dir(&base).is_ok() {
                        is_due.store(false, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
            let made: Vec<_> = (0..2000)
                .map(|_| {
                    is_due.store(true, std::sync::atomic::Ordering::Relaxed);
                    make(&base)
                })
                .collect();
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(
                made.iter().all(Result::is_ok),
                "{:?}",
                made.iter().find(|one| one.is_err())
            );
        });
    }

    #[test]
    fn where_no_base_can_be_every_directory_that_was_tried_is_named_with_its_reason() {
        let top = tempfile::tempdir().unwrap();
        let (granted, absent) = (top.path().to_owned(), top.path().join("absent"));
        let refused = choose(vec![granted.clone(), absent.clone()], |_| false)
            .unwrap_err()
            .to_string();
        for part in [
            granted.to_str().unwrap(),
            absent.to_str().unwrap(),
            "granted",
            "No such file",
            "TMPDIR",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
}
