//! The stage for each claim: a directory with an inside and an outside, a runner, a command.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, mpsc};

use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stockade::backend::attributes::{AttributePlan, Denied, Writable};
use stockade::confine::broker::{Attempts, Broker, Origin, Served};

/// Whom the runner and the command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Root without capabilities.
    BareRoot,
    /// This ordinary user.
    User(u32),
    /// Whoever runs the tests.
    Self_,
}

impl Who {
    /// Everyone the tests can be.
    pub(crate) fn all() -> Vec<Self> {
        if nix::unistd::geteuid().is_root() {
            vec![Self::BareRoot, Self::User(1000)]
        } else {
            vec![Self::Self_]
        }
    }

    pub(crate) fn uid(self) -> u32 {
        match self {
            Self::BareRoot => 0,
            Self::User(uid) => uid,
            Self::Self_ => nix::unistd::geteuid().as_raw(),
        }
    }

    pub(crate) fn gid(self) -> u32 {
        match self {
            Self::BareRoot => 0,
            Self::User(uid) => uid,
            Self::Self_ => nix::unistd::getegid().as_raw(),
        }
    }

    /// Makes this thread, and no other, be that one.
    fn enter(self) {
        match self {
            Self::BareRoot => {
                for set in [
                    caps::CapSet::Effective,
                    caps::CapSet::Permitted,
                    caps::CapSet::Inheritable,
                ] {
                    caps::clear(None, set).unwrap();
                }
            }
            Self::User(uid) => {
                // The wrappers of libc would change all threads.
                assert_eq!(call(libc::SYS_setgroups, [0; 6]), 0);
                let id = u64::from(uid);
                assert_eq!(call(libc::SYS_setresgid, [id, id, id, 0, 0, 0]), 0);
                assert_eq!(call(libc::SYS_setresuid, [id, id, id, 0, 0, 0]), 0);
            }
            Self::Self_ => {}
        }
    }
}

/// A directory with `in` and `out`, each holding the same things, owned by `who`.
pub(crate) struct Fixture {
    dir: tempfile::TempDir,
    pub(crate) who: Who,
    pub(crate) root: PathBuf,
}

impl Fixture {
    pub(crate) fn new(who: Who) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let world = Self { dir, who, root };
        for place in ["in", "out"] {
            let at = world.root.join(place);
            std::fs::create_dir(&at).unwrap();
            std::fs::create_dir_all(at.join("dir/sub")).unwrap();
            for file in ["file", "dir/file", "other"] {
                std::fs::write(at.join(file), "text").unwrap();
            }
            for (name, to) in [
                ("link", "file"),
                ("dirlink", "dir"),
                ("dangling", "missing"),
                ("loop", "loop"),
                ("up", ".."),
            ] {
                symlink(to, at.join(name)).unwrap();
            }
            nix::unistd::mkfifo(&at.join("fifo"), nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
        }
        symlink(world.root.join("out/file"), world.root.join("in/escape")).unwrap();
        symlink(world.root.join("out"), world.root.join("in/escapedir")).unwrap();
        world.give_away();
        world
    }

    /// Gives everything that is there now to `who`.
    pub(crate) fn give_away(&self) {
        if let Who::User(id) = self.who {
            for path in walk(&self.root).into_iter().chain([self.root.clone()]) {
                std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
            }
        }
    }

    /// `name` in the world, for a call.
    pub(crate) fn c(&self, name: &str) -> CString {
        c(self.root.join(name))
    }

    /// Write access to `in` alone.
    pub(crate) fn plan(&self) -> AttributePlan {
        AttributePlan {
            writable: vec![Writable::Tree(self.root.join("in").into())],
            denied: vec![Denied::Tree(self.root.join("in/denied").into())],
        }
    }

    /// Write access to everything in the world.
    pub(crate) fn open_plan(&self) -> AttributePlan {
        AttributePlan {
            writable: vec![Writable::Tree(self.root.clone().into())],
            denied: vec![],
        }
    }

    /// Every attribute of everything in the world; times only where a call set them to a remembered one.
    pub(crate) fn attributes(&self) -> BTreeMap<PathBuf, String> {
        walk(&self.root)
            .into_iter()
            .map(|path| {
                let meta = std::fs::symlink_metadata(&path).unwrap();
                let time = |secs: i64, nanos: i64| {
                    if secs < 1_000_000 {
                        format!("{secs}.{nanos}")
                    } else {
                        "recent".to_owned()
                    }
                };
                let link = meta.file_type().is_symlink();
                let shown = format!(
                    "{:o} {}:{} a={} m={} x={:?}",
                    meta.mode(),
                    meta.uid(),
                    meta.gid(),
                    if link {
                        "read".to_owned()
                    } else {
                        time(meta.atime(), meta.atime_nsec())
                    },
                    time(meta.mtime(), meta.mtime_nsec()),
                    xattr(&path, c"user.test"),
                );
                (path.strip_prefix(&self.root).unwrap().to_owned(), shown)
            })
            .collect()
    }

    /// Runs `body` as a command with a broker for `plan`.
    pub(crate) fn brokered<T: Send>(&self, plan: &AttributePlan, body: impl FnOnce() -> T + Send) -> T {
        let at = self.root.join("in");
        let who = self.who;
        on_own_thread(move || {
            who.enter();
            restrict();
            serve(plan.clone(), move || {
                enter(&at);
                body()
            })
        })
    }

    /// Runs `body` as the same user with neither filter nor broker.
    pub(crate) fn bare<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        let at = self.root.join("in");
        let who = self.who;
        on_own_thread(move || {
            who.enter();
            enter(&at);
            body()
        })
    }

    /// Keeps the directory until here.
    pub(crate) fn end(self) {
        self.dir.close().unwrap();
    }
}

fn on_own_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(body).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// A working directory of this thread's own.
fn enter(at: &Path) {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).unwrap();
    std::env::set_current_dir(at).unwrap();
}

/// What stands in `/`, but for `/proc`.
static TOP: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let entries = std::fs::read_dir("/").unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path != Path::new("/proc")).collect()
});

/// A Landlock layer that permits everything but `/proc`.
fn restrict() {
    let access = AccessFs::from_all(ABI::V5);
    Ruleset::default()
        .handle_access(access)
        .unwrap()
        .scope(Scope::Signal)
        .unwrap()
        .create()
        .unwrap()
        .add_rules(path_beneath_rules(TOP.iter(), access))
        .unwrap()
        .restrict_self()
        .unwrap();
}

/// The runner: starts `body` on a thread with the filter and serves until it is done.
fn serve<T: Send>(plan: AttributePlan, body: impl FnOnce() -> T + Send) -> T {
    let (give, take) = mpsc::channel::<OwnedFd>();
    std::thread::scope(|scope| {
        let command = scope.spawn(move || {
            restrict();
            give.send(listen()).unwrap();
            body()
        });
        let mut broker = Broker::new(take.recv().unwrap(), plan).unwrap();
        while !command.is_finished() {
            let ready = {
                let mut fds = [PollFd::new(broker.as_fd(), PollFlags::POLLIN)];
                poll(&mut fds, PollTimeout::from(5_u8)).unwrap() > 0
            };
            if ready {
                match unwatched(&mut broker) {
                    Served::Answered | Served::CallerExited | Served::Idle => {}
                    Served::NoCallers => break,
                    Served::Broken(errno) => panic!("the broker broke: {errno}"),
                }
            }
        }
        match command.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// One round of a broker that notes nothing.
pub(crate) fn unwatched(broker: &mut Broker) -> Served {
    broker.serve(&mut Attempts::of(None), Origin::No)
}

/// The calls of the broker, as a filter would list them.
const NOTIFIED: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
];

pub(crate) const SYS_SETXATTRAT: i64 = 463;
pub(crate) const SYS_REMOVEXATTRAT: i64 = 466;

/// Installs the notify filter on this thread.
pub(crate) fn listen() -> OwnedFd {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![step(0x20, 0, 0, 0)];
    for number in NOTIFIED {
        program.push(step(0x15, 0, 1, u32::try_from(*number).unwrap()));
        program.push(step(0x06, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    nix::sys::prctl::set_no_new_privs().unwrap();
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let fd = call(libc::SYS_seccomp, [1, flags, (&raw const filter) as u64, 0, 0, 0]);
    let fd = i32::try_from(fd).unwrap();
    assert!(fd >= 0, "seccomp: {fd}");
    // SAFETY: seccomp just returned it as a new descriptor.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// One raw system call: its value, or minus its errno.
pub(crate) fn call(number: i64, args: [u64; 6]) -> i64 {
    let args = args.map(|arg| arg as i64);
    // SAFETY: the tests pass valid pointers, or ones that the kernel is meant to refuse.
    let result = unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) };
    if result == -1 {
        -i64::from(nix::errno::Errno::last_raw())
    } else {
        result
    }
}

/// A path for a call.
pub(crate) fn c(path: impl Into<OsString>) -> CString {
    CString::new(path.into().as_bytes()).unwrap()
}

fn xattr(path: &Path, name: &std::ffi::CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; 65536];
    let path = c(path);
    // SAFETY: both strings are NUL-terminated and the buffer has the length given.
    let got = unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    value.truncate(usize::try_from(got).ok()?);
    Some(value)
}

fn walk(at: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut open = vec![at.to_owned()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}
