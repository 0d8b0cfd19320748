//! The self-test: what must fail is really tried, each time.
//!
//! Two canaries lie in the session directory. `closed` is granted to nobody; `readable` is granted for
//! reading. They belong to this user and their modes permit everything, so a refusal can only come
//! from the layer under test; and reading `readable` must work, or the test proves nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::kill;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, fstatat};
use nix::unistd::Pid;

use crate::backend::landlock::LandlockPlan;
use crate::backend::seccomp::{Attributes, Call, Filter, NATIVE_ARCH, Role, Verdict, stacked};
use crate::backend::{NamespacePlan, Plan};
use crate::confine::forker::forker_parent::ForkerParent;
use crate::confine::layers::ruleset;
use crate::confine::session::{CLOSED, LOCK, READABLE};
use crate::confine::sys;
use crate::policy::path::display;

/// Where the canaries lie.
#[derive(Debug, Clone, Default)]
pub(crate) struct Canaries {
    closed: PathBuf,
    readable: PathBuf,
    /// On the host beside them, and shown nowhere.
    absent: Option<PathBuf>,
}

impl Canaries {
    /// The canaries of a session directory.
    pub(crate) fn of(session: &Path, parent: ForkerParent) -> Self {
        Self {
            closed: session.join(CLOSED),
            readable: session.join(READABLE),
            absent: match parent {
                ForkerParent::Supervisor(_) => None,
                ForkerParent::Hidden => Some(session.join(LOCK)),
            },
        }
    }

    /// Tries all three; the error text names the one with a wrong result.
    fn files(&self) -> Result<(), String> {
        let try_open = |path: &Path, flags: OFlag| -> Result<OwnedFd, Errno> {
            open(path, flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())
        };
        try_open(&self.readable, OFlag::O_RDONLY)
            .map_err(|errno| format!("a file that is granted cannot be read ({})", errno.desc()))?;
        // A read-only mount answers before the layer does.
        let unwritable_root_warning = if self.absent.is_some() {
            Errno::EROFS
        } else {
            Errno::EACCES
        };
        match try_open(&self.readable, OFlag::O_WRONLY) {
            Err(errno) if errno == unwritable_root_warning => {}
            Ok(_) => return Err("a file that is granted for reading can be written".to_owned()),
            Err(errno) => {
                return Err(format!(
                    "writing a read-only file fails for another reason: {}",
                    errno.desc()
                ));
            }
        }
        if let Some(absent) = &self.absent {
            match try_open(absent, OFlag::O_PATH) {
                Err(Errno::ENOENT) => {}
                Ok(_) => return Err("a file of the host that is granted to nobody can be seen".to_owned()),
                Err(errno) => return Err(format!("a file of the host is not absent: {}", errno.desc())),
            }
        }
        match try_open(&self.closed, OFlag::O_RDONLY) {
            Err(Errno::EACCES) => Ok(()),
            Ok(_) => Err("a file outside every grant can be read".to_owned()),
            Err(errno) => Err(format!(
                "reading a file outside fails for another reason: {}",
                errno.desc()
            )),
        }
    }
}

/// Whether a signal to a process outside this layer is refused. It has the same user, so only the scope can refuse it.
pub(crate) fn signals_are_scoped(outside: Pid) -> bool {
    kill(outside, None) == Err(Errno::EPERM)
}

/// Tries what the forker must not be able to do.
pub(crate) fn forker(canaries: &Canaries, parent: ForkerParent, plan: &Plan) -> Result<(), String> {
    canaries.files()?;
    match parent {
        ForkerParent::Supervisor(supervisor) => {
            if ruleset::has_scopes(&plan.landlock) && !signals_are_scoped(supervisor) {
                return Err("a process outside can be signalled".to_owned());
            }
            if !sys::ptrace_attach_fails(supervisor) {
                return Err("a process outside can be traced".to_owned());
            }
        }
        // Its runners try both with the forker.
        ForkerParent::Hidden => {}
    }
    if let Some(namespace_plan) = &plan.namespaces {
        // In that filter these calls go to a listener, and without one they fail with ENOSYS.
        let refused = if plan.watched.is_some() {
            Errno::ENOSYS
        } else {
            Errno::EPERM
        };
        namespaces(namespace_plan, refused)?;
    }
    for family in [
        AddressFamily::Inet,
        AddressFamily::Inet6,
        AddressFamily::Unix,
        AddressFamily::Packet,
    ] {
        let opened = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).is_ok();
        if opened && !opens_socket(plan, family) {
            return Err(format!("a {family:?} socket can be opened"));
        }
    }
    Ok(())
}

/// Tries what must fail in namespaces: to change them, and to change what they protect.
fn namespaces(namespace_plan: &NamespacePlan, refused: Errno) -> Result<(), String> {
    let none = None::<&Path>;
    match mount(none, Path::new("/"), none, MsFlags::MS_REMOUNT | MsFlags::MS_BIND, none) {
        Err(errno) if errno == refused => {}
        Ok(()) => return Err("mounts can be changed".to_owned()),
        Err(errno) => return Err(format!("changing mounts fails for another reason: {}", errno.desc())),
    }
    match unshare(CloneFlags::CLONE_NEWUSER) {
        Err(errno) if errno == refused => {}
        Ok(()) => return Err("another user namespace can be made".to_owned()),
        Err(errno) => {
            return Err(format!(
                "making a user namespace fails for another reason: {}",
                errno.desc()
            ));
        }
    }
    let copies: Vec<_> = namespace_plan.mounts.copies().collect();
    for path in &namespace_plan.protected {
        if let Some((_, identity, _)) = copies.iter().find(|(at, ..)| *at == path.as_os_str()) {
            let stat = fstatat(AT_FDCWD, path.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            match stat.map(|stat| (stat.st_dev, stat.st_ino)) {
                Ok(found) if found == *identity => continue,
                // What somebody on the host has removed since took its copy along.
                Err(Errno::ENOENT) => continue,
                Ok(_) => return Err(format!("{} is protected, and no copy is in its place", display(path))),
                Err(errno) => return Err(format!("{} fails for another reason: {}", display(path), errno.desc())),
            }
        }
        match open(path.as_os_str(), OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
            // A directory; or what somebody on the host has removed since.
            Err(Errno::EROFS | Errno::EACCES | Errno::EISDIR | Errno::ENOENT) => {}
            Ok(_) => return Err(format!("{} is protected and can be written", display(path))),
            Err(errno) => return Err(format!("{} fails for another reason: {}", display(path), errno.desc())),
        }
    }
    Ok(())
}

/// Whether the plan's own filters let a datagram socket of this family be opened. A plan that cannot be
/// read opens nothing.
fn opens_socket(plan: &Plan, family: AddressFamily) -> bool {
    let programs = plan.filters.of(Role::Forker).programs();
    let Ok(filters) = programs.map(Filter::read).collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    let Ok(number) = u32::try_from(libc::SYS_socket) else {
        return false;
    };
    let flags = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
    let call = Call {
        arch: NATIVE_ARCH,
        nr: number,
        args: [family as u64, flags, 0, 0, 0, 0],
    };
    stacked(&filters, &call) == Verdict::Allow
}

/// Tries what nothing behind the layer of a command may be able to do.
pub(crate) fn layer(canaries: &Canaries, runner: Pid, plan: &LandlockPlan) -> Result<(), String> {
    canaries.files()?;
    if ruleset::has_scopes(plan) && !signals_are_scoped(runner) {
        return Err("the runner can be signalled".to_owned());
    }
    Ok(())
}

/// Tries what a command must not be able to do, in its own layer, before it is executed: nothing is put on afterwards.
pub(crate) fn command(
    canaries: &Canaries,
    runner: Pid,
    plan: &LandlockPlan,
    attributes: Attributes,
) -> Result<(), String> {
    layer(canaries, runner, plan)?;
    let readable = open(&canaries.readable, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|errno| format!("a file that is granted cannot be read ({})", errno.desc()))?;
    let refused = match attributes {
        Attributes::Brokered => Errno::EPERM,
        Attributes::Mounted => Errno::EROFS,
    };
    fails_with(
        refused,
        fchmod(readable.as_fd(), Mode::from_bits_truncate(0o640)),
        "attributes outside the writable roots",
    )?;
    match attributes {
        Attributes::Brokered => Ok(()),
        // The modes are what they are everywhere: should it be possible, nothing changes.
        Attributes::Mounted => [("/dev/null", 0o666), ("/proc/version", 0o444)]
            .into_iter()
            .try_for_each(|(path, mode)| {
                let changed = fchmodat(
                    AT_FDCWD,
                    path,
                    Mode::from_bits_truncate(mode),
                    FchmodatFlags::FollowSymlink,
                );
                fails_with(refused, changed, path)
            }),
    }
}

/// Whether changing the attributes of something failed as it must.
fn fails_with(refused: Errno, changed: nix::Result<()>, what: &str) -> Result<(), String> {
    match changed {
        Err(errno) if errno == refused => Ok(()),
        Ok(()) => Err(format!("{what} can be changed")),
        Err(errno) => Err(format!("changing {what} fails for another reason: {}", errno.desc())),
    }
}
