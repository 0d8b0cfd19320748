//! The settings of the filters for a profile.

use super::backend_options::{BackendOptions, Mechanism};
use crate::backend::NamespacePlan;
use crate::backend::namespaces::NetworkNamespace;
use crate::backend::seccomp::{Attempts, Attributes, Copies, IpSockets, Role, Settings, UnixDomain};
use crate::profile::Profile;

/// The settings for a command whose attribute calls mounts hold.
pub(super) const fn mounted(settings: Settings) -> Settings {
    Settings {
        attributes: Attributes::Mounted,
        ..settings
    }
}

pub(super) fn copies_in(namespace_plan: Option<&NamespacePlan>) -> Copies {
    match namespace_plan.and_then(|namespace_plan| namespace_plan.mounts.copied_files().next()) {
        Some(_) => Copies::Shown,
        None => Copies::None,
    }
}

pub(super) fn settings(
    profile: &Profile,
    role: Role,
    attempts: Attempts,
    copies: Copies,
    options: BackendOptions,
) -> Settings {
    Settings {
        ip: IpSockets::of(
            &profile.network,
            match options.mechanism {
                Mechanism::Landlock => NetworkNamespace::Host,
                Mechanism::Namespaces(_) => NetworkNamespace::of(&profile.network),
            },
        ),
        unix: UnixDomain::of(profile.unix_sockets, options.landlock_abi),
        role,
        attempts: match (attempts, options.mechanism) {
            // Mounts hide files; Landlock lets all of them be looked at.
            (Attempts::Watched, Mechanism::Namespaces(_)) => Attempts::WatchedWithLooks,
            (Attempts::Unseen | Attempts::Watched | Attempts::WatchedWithLooks, _) => attempts,
        },
        copies,
        attributes: Attributes::Brokered,
    }
}
