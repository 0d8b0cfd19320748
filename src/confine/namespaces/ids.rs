//! User namespaces: the one that mounts belong to, and the one that the forker runs in.
//!
//! To mount a /dev with terminals, root must exist in the namespace; the forker keeps its own number. Where these
//! differ it runs in a second namespace inside the first. No capability that it could ever have in there is one over
//! the mounts. Groups can be set in neither.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, getegid, geteuid};

use crate::confine::layers::privilege;
use crate::confine::wire::protocol::{StartFailure, Step};

/// The ids of this process on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ids {
    user: Uid,
    group: Gid,
}

impl Ids {
    pub(super) fn current() -> Self {
        Self {
            user: geteuid(),
            group: getegid(),
        }
    }

    /// Enters a user namespace in which this user is root, and one for the PIDs of what is forked from here on.
    pub(super) fn enter_as_root(self) -> Result<(), StartFailure> {
        privilege::raise_for_namespaces()?;
        // A process that is not dumpable does not own its files in /proc, the id maps among them.
        prctl::set_dumpable(true).map_err(failed("dumping"))?;
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID).map_err(failed("a user namespace"))?;
        let proc = directory("/proc")?;
        write(&proc, "setgroups", "deny")?;
        write(&proc, "uid_map", &format!("0 {} 1\n", self.user))?;
        write(&proc, "gid_map", &format!("0 {} 1\n", self.group))?;
        prctl::set_dumpable(false).map_err(failed("dumping"))
    }

    /// Enters another one with the user's own ids; does nothing for root. `proc` is a writable /proc, which no other process here has.
    pub(super) fn enter_as_user(self, proc: &OwnedFd) -> Result<(), StartFailure> {
        if self.user.is_root() && self.group.as_raw() == 0 {
            return Ok(());
        }
        prctl::set_dumpable(true).map_err(failed("dumping"))?;
        unshare(CloneFlags::CLONE_NEWUSER).map_err(failed("the inner user namespace"))?;
        write(proc, "uid_map", &format!("{} 0 1\n", self.user))?;
        write(proc, "gid_map", &format!("{} 0 1\n", self.group))?;
        prctl::set_dumpable(false).map_err(failed("dumping"))
    }
}

fn failed(what: &'static str) -> impl Fn(Errno) -> StartFailure {
    move |errno| StartFailure::new(Step::Namespaces, errno, what)
}

/// Writes one of this process's files that map ids, in one call, as the kernel requires.
fn write(proc: &OwnedFd, name: &str, text: &str) -> Result<(), StartFailure> {
    let path = format!("self/{name}");
    let failed = |errno| StartFailure::new(Step::Namespaces, errno, format!("/proc/{path}"));
    let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = openat(proc, path.as_str(), flags, Mode::empty()).map_err(failed)?;
    let written = File::from(file).write_all(text.as_bytes());
    written.map_err(|error| failed(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)))
}

fn directory(path: &'static str) -> Result<OwnedFd, StartFailure> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(path, flags, Mode::empty()).map_err(failed(path))
}
