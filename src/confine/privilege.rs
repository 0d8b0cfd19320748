//! Giving up what root, or a capable process, could do.
//!
//! uid 0 without capabilities still owns root's files, so this is not confinement: Landlock is. It
//! closes what Landlock leaves open to capabilities (other processes' environ, raw sockets, modules).

use caps::CapSet;
use nix::errno::Errno;
use nix::unistd::{Gid, Uid, getegid, geteuid, getgid, getuid, setgroups, setresgid, setresuid};

use super::protocol::{StartFailure, Step};
use super::sys;

fn failed(what: &str) -> impl Fn(caps::errors::CapsError) -> StartFailure {
    move |error| StartFailure::new(Step::Privilege, Errno::last(), format!("{what}: {error}"))
}

/// Drops ambient and bounding capabilities, locks the secure bits, leaves supplementary groups, makes
/// real, effective and saved ids equal, and clears every capability. Checked afterwards.
pub(crate) fn drop_all() -> Result<(), StartFailure> {
    let nix = |what: &'static str| move |errno| StartFailure::new(Step::Privilege, errno, what);
    caps::clear(None, CapSet::Ambient).map_err(failed("ambient set"))?;
    let effective = caps::read(None, CapSet::Effective).map_err(failed("effective set"))?;
    if effective.contains(&caps::Capability::CAP_SETPCAP) {
        for capability in caps::runtime::thread_all_supported() {
            caps::drop(None, CapSet::Bounding, capability).map_err(failed("bounding set"))?;
        }
        sys::lock_securebits().map_err(nix("secure bits"))?;
    }
    if effective.contains(&caps::Capability::CAP_SETGID) {
        setgroups(&[]).map_err(nix("supplementary groups"))?;
    }
    // A set-uid start (sudo keeps them equal, a set-uid wrapper would not) must not leave a second
    // identity to switch back to.
    let (uid, gid): (Uid, Gid) = (getuid(), getgid());
    if uid != geteuid() || gid != getegid() {
        return Err(StartFailure::new(
            Step::Privilege,
            Errno::EPERM,
            "real and effective ids differ",
        ));
    }
    setresgid(gid, gid, gid).map_err(nix("group ids"))?;
    setresuid(uid, uid, uid).map_err(nix("user ids"))?;
    for set in [CapSet::Effective, CapSet::Inheritable, CapSet::Permitted] {
        caps::clear(None, set).map_err(failed("capabilities"))?;
    }
    for set in [
        CapSet::Effective,
        CapSet::Permitted,
        CapSet::Inheritable,
        CapSet::Ambient,
    ] {
        let left = caps::read(None, set).map_err(failed("reading back"))?;
        if !left.is_empty() {
            return Err(StartFailure::new(
                Step::Privilege,
                Errno::EPERM,
                format!("{set:?} set is not empty"),
            ));
        }
    }
    Ok(())
}
