//! The settings of the filters for a profile, and filters that are made before they are needed.

use std::path::Path;

use super::plan::{Ground, Walls};
use crate::backend::World;
use crate::backend::namespaces::NetworkNamespace;
use crate::backend::seccomp::{self, Attempts, Attributes, Copies, IpSockets, Role, Settings, UnixDomain};
use crate::policy::{Grant, Network, Right};
use crate::profile::Profile;

/// Has the filters for a profile on this ground made and proven meanwhile.
pub(super) fn prepare_filters(profile: &Profile, ground: Ground) {
    let is_repository = |grant: &Grant| grant.rights.has(Right::Write) && grant.path.as_path().join(".git").exists();
    let copies = match ground.walls {
        Walls::Namespaces(_) if profile.grants.iter().any(is_repository) => Copies::Shown,
        Walls::Namespaces(_) | Walls::Landlock => Copies::None,
    };
    let of = |role| settings(profile, role, Attempts::Unseen, copies, ground);
    let (command, worker) = (of(Role::Command), of(Role::Worker));
    match ground.walls {
        Walls::Landlock => seccomp::prepare([command, worker]),
        Walls::Namespaces(_) => seccomp::prepare([mounted(command), command, worker]),
    }
}

/// The same for the filters that most commands get.
pub(super) fn prepare_usual_filters(namespace: NetworkNamespace) {
    let copies = match namespace {
        NetworkNamespace::Own if Path::new(".git").exists() => Copies::Shown,
        NetworkNamespace::Own | NetworkNamespace::Host => Copies::None,
    };
    let of = |role| usual(role, namespace, copies);
    let (command, worker) = (of(Role::Command), of(Role::Worker));
    match namespace {
        NetworkNamespace::Host => seccomp::prepare([command, worker]),
        NetworkNamespace::Own => seccomp::prepare([mounted(command), command, worker]),
    }
}

/// Without network, in namespaces or on the machine's own.
pub(super) const fn usual(role: Role, namespace: NetworkNamespace, copies: Copies) -> Settings {
    Settings {
        ip: IpSockets::of(&Network::Off, namespace),
        unix: UnixDomain::Refused,
        role,
        attempts: Attempts::Unseen,
        copies,
        attributes: Attributes::Brokered,
    }
}

/// The same for a command whose attribute calls mounts hold.
pub(super) const fn mounted(settings: Settings) -> Settings {
    Settings {
        attributes: Attributes::Mounted,
        ..settings
    }
}

/// Whether private copies are shown there.
pub(super) fn copies_in(world: Option<&World>) -> Copies {
    match world.and_then(|world| world.mounts.copied_files().next()) {
        Some(_) => Copies::Shown,
        None => Copies::None,
    }
}

pub(super) fn settings(profile: &Profile, role: Role, attempts: Attempts, copies: Copies, ground: Ground) -> Settings {
    Settings {
        ip: IpSockets::of(
            &profile.network,
            match ground.walls {
                Walls::Landlock => NetworkNamespace::Host,
                Walls::Namespaces(_) => NetworkNamespace::of(&profile.network),
            },
        ),
        unix: UnixDomain::of(profile.unix_sockets, ground.landlock_abi),
        role,
        attempts: match (attempts, ground.walls) {
            // Mounts hide files; Landlock lets all of them be looked at.
            (Attempts::Watched, Walls::Namespaces(_)) => Attempts::WatchedWithLooks,
            (Attempts::Unseen | Attempts::Watched | Attempts::WatchedWithLooks, _) => attempts,
        },
        copies,
        attributes: Attributes::Brokered,
    }
}
