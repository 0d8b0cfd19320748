//! What policy flags take away from a config: they may only narrow it.

use std::collections::BTreeMap;

use crate::policy::{AbsPath, Deny, Grant, Identity, Limits, Network, Origin, Rights, UnixSockets};
use crate::profile::{Profile, intersect};

/// What is taken away from a policy, as the flags `--rw`, `--ro`, `--deny` and `--net` do beside a config.
///
/// It never adds anything. The default takes nothing away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Narrowing {
    /// The only directories that may be written, with the identity of each; empty for no change (`--rw`).
    pub writable: Vec<(AbsPath, Identity)>,
    /// The directories that may not be written (`--ro`).
    pub readable: Vec<AbsPath>,
    /// The paths that may not be read, written or executed (`--deny`).
    pub denied: Vec<AbsPath>,
    /// The most that may be reached on the network (`--net`); `None` for no change.
    pub network: Option<Network>,
}

impl Narrowing {
    /// Whether it takes nothing away.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// [`apply`](Self::apply) where there is anything to apply; else the profile as it is.
    #[must_use]
    pub fn narrow(&self, profile: Profile) -> Profile {
        if self.is_empty() { profile } else { self.apply(&profile) }
    }

    /// What it leaves of a network.
    #[must_use]
    pub fn narrow_network(&self, network: &Network) -> Network {
        self.network
            .as_ref()
            .map_or_else(|| network.clone(), |most| network.and(most))
    }

    /// The greatest profile below `profile` that it permits.
    #[must_use]
    pub fn apply(&self, profile: &Profile) -> Profile {
        let root = AbsPath::root();
        let flag = |name: &str| Origin::Flag(name.into());
        let everywhere = if self.writable.is_empty() {
            Rights::ALL
        } else {
            Rights::READ | Rights::EXECUTE
        };
        let mut grants = vec![Grant::tree(root, everywhere, Origin::Builtin("what the flags leave"))];
        let mut identities = BTreeMap::new();
        for (path, identity) in &self.writable {
            grants.push(Grant::tree(path.clone(), Rights::WRITE, flag("--rw")));
            identities.insert(path.clone(), *identity);
        }
        // Devices such as /dev/null are no place for data; a command that cannot open them does not run.
        grants.push(Grant::tree(
            device_directory(),
            Rights::WRITE,
            Origin::Builtin("devices"),
        ));
        let mut denies: Vec<Deny> = self
            .readable
            .iter()
            .map(|path| Deny::tree(path.clone(), Rights::WRITE, flag("--ro")))
            .collect();
        denies.extend(
            self.denied
                .iter()
                .map(|path| Deny::tree(path.clone(), Rights::ALL, flag("--deny"))),
        );
        // A write the deny would cut inside a clause that gives none anyway needs no deny.
        denies.retain(|deny| takes_something(profile, deny));
        let flags = Profile {
            grants,
            denies,
            identities,
            network: self.network.clone().unwrap_or(Network::Full),
            unix_sockets: UnixSockets::All,
            limits: Limits::default(),
            environment: profile.environment.clone(),
        };
        intersect(profile, &flags)
    }
}

/// Whether the deny reaches anything that the profile gives.
fn takes_something(profile: &Profile, deny: &Deny) -> bool {
    use crate::policy::Target;
    let Target::Path(denied) = &deny.target else {
        return true;
    };
    profile.grants.iter().any(|grant| {
        !grant.rights.and(deny.rights).is_empty() && (grant.path.is_within(denied) || denied.is_within(&grant.path))
    })
}

fn device_directory() -> AbsPath {
    AbsPath::root().child("dev").unwrap_or_else(AbsPath::root)
}
