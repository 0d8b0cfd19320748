//! Giving up what root, or a capable process, could do.
//!
//! uid 0 without capabilities still owns root's files, so this is not confinement: Landlock is. It
//! closes what Landlock leaves open to capabilities (other processes' environ, raw sockets, modules).

use caps::{CapSet, CapsHashSet};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, getegid, geteuid, getgid, getuid, setgroups, setresgid, setresuid};

use crate::confine::sys;
use crate::confine::wire::protocol::{ForkerLocation, StartFailure, Step};

fn failed(what: &str) -> impl Fn(caps::errors::CapsError) -> StartFailure {
    move |error| StartFailure::new(Step::Privilege, Errno::last(), format!("{what}: {error}"))
}

/// Drops ambient and bounding capabilities, locks the secure bits, leaves supplementary groups, makes
/// real, effective and saved ids equal, and clears every capability. Checked afterwards.
pub(crate) fn drop_all() -> Result<(), StartFailure> {
    drop_except(None, Groups::Left)
}

/// The same in a user namespace, in which groups cannot be set, and which has only those that came along.
pub(crate) fn drop_in_namespaces() -> Result<(), StartFailure> {
    drop_except(None, Groups::CannotBeSet)
}

/// The same, but for what uid 0 needs to become uid 0 of a user namespace: a program it starts has `CAP_SETFCAP`, and
/// nothing else. Whoever started it must [drop](drop_all) that too.
pub(crate) fn drop_for_namespaces() -> Result<(), StartFailure> {
    let needed = caps::Capability::CAP_SETFCAP;
    let permitted = caps::read(None, CapSet::Permitted).map_err(failed("permitted set"))?;
    let kept = (getuid().is_root() && permitted.contains(&needed)).then_some(needed);
    drop_except(kept, Groups::Left)
}

/// Has what [`drop_for_namespaces`] kept act in this program itself.
pub(crate) fn raise_for_namespaces() -> Result<(), StartFailure> {
    let permitted = caps::read(None, CapSet::Permitted).map_err(failed("permitted set"))?;
    caps::set(None, CapSet::Effective, &permitted).map_err(failed("effective set"))
}

/// What is done about supplementary groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Groups {
    /// They are left, where this process could.
    Left,
    /// Nobody can set any.
    CannotBeSet,
}

fn drop_except(kept: Option<caps::Capability>, groups: Groups) -> Result<(), StartFailure> {
    let kept: CapsHashSet = kept.into_iter().collect();
    let nix = |what: &'static str| move |errno| StartFailure::new(Step::Privilege, errno, what);
    caps::clear(None, CapSet::Ambient).map_err(failed("ambient set"))?;
    let effective = caps::read(None, CapSet::Effective).map_err(failed("effective set"))?;
    if effective.contains(&caps::Capability::CAP_SETPCAP) {
        for capability in caps::runtime::thread_all_supported().difference(&kept).copied() {
            caps::drop(None, CapSet::Bounding, capability).map_err(failed("bounding set"))?;
        }
        if !kept.is_empty() {
            caps::set(None, CapSet::Inheritable, &kept).map_err(failed("inheritable set"))?;
            caps::set(None, CapSet::Ambient, &kept).map_err(failed("ambient set"))?;
        }
        sys::lock_securebits().map_err(nix("secure bits"))?;
    }
    match groups {
        Groups::Left if effective.contains(&caps::Capability::CAP_SETGID) => {
            setgroups(&[]).map_err(nix("supplementary groups"))?;
        }
        Groups::Left | Groups::CannotBeSet => {}
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
        let left = match set {
            CapSet::Effective => CapsHashSet::new(),
            CapSet::Permitted | CapSet::Inheritable | CapSet::Ambient | CapSet::Bounding => kept.clone(),
        };
        caps::set(None, set, &left).map_err(failed("capabilities"))?;
    }
    for set in [
        CapSet::Effective,
        CapSet::Permitted,
        CapSet::Inheritable,
        CapSet::Ambient,
    ] {
        let left = caps::read(None, set).map_err(failed("reading back"))?;
        if !left.is_subset(&kept) {
            return Err(StartFailure::new(
                Step::Privilege,
                Errno::EPERM,
                format!("{set:?} set is not empty"),
            ));
        }
    }
    Ok(())
}

/// Gives up what the supervisor of a forker there does not need.
pub(crate) fn prepare(location: ForkerLocation) -> Result<(), StartFailure> {
    match location {
        ForkerLocation::Host => drop_all()?,
        ForkerLocation::Namespaces(_) | ForkerLocation::Bwrap => drop_for_namespaces()?,
    }
    prctl::set_no_new_privs().map_err(StartFailure::at(Step::NoNewPrivileges))
}
