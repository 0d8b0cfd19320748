//! Reach over IP and Unix sockets.

use std::fmt;

use super::grant::Origin;
use super::hosts::{Host, HostAccess, HostList, HostRule, HostWitness};

/// Reach over IP: nothing, the hosts of a list, or everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Network {
    /// No socket that could leave the sandbox.
    Off,
    /// The hosts of a list, through Stockade's own proxy, and no socket that could leave the sandbox. Never an empty list:
    /// [`Network::hosts`] makes that [`Off`](Self::Off).
    Hosts(HostList),
    /// Every address.
    Full,
}

/// A network that replaces [`Policy::network`](super::Policy::network), and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnNetwork {
    /// The reach.
    pub network: Network,
    /// Where it was written.
    pub origin: Origin,
}

impl Network {
    /// The reach of a list; none if it is empty.
    pub fn hosts(list: HostList) -> Self {
        if list.is_empty() { Self::Off } else { Self::Hosts(list) }
    }

    /// The intersection.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Off, _) | (_, Self::Off) => Self::Off,
            (Self::Full, most) | (most, Self::Full) => most.clone(),
            (Self::Hosts(a), Self::Hosts(b)) => Self::hosts(a.and(b)),
        }
    }

    /// Whether the other permits everything that this one permits.
    ///
    /// # Errors
    /// A witness that only this one permits.
    pub fn within(&self, other: &Self) -> Result<(), NetworkWitness> {
        match (self, other) {
            (Self::Off, _) | (_, Self::Full) => Ok(()),
            (Self::Full, Self::Off | Self::Hosts(_)) => Err(NetworkWitness::EveryHost),
            (Self::Hosts(a), Self::Hosts(b)) => a.within(b).map_err(NetworkWitness::Host),
            (Self::Hosts(a), Self::Off) => a.within(&HostList::default()).map_err(NetworkWitness::Host),
        }
    }

    /// One witness for each rule that permits more than the other network.
    pub fn beyond(&self, other: &Self) -> Vec<(NetworkWitness, Option<&Origin>)> {
        match self {
            Self::Off | Self::Full => self
                .within(other)
                .err()
                .map(|witness| (witness, None))
                .into_iter()
                .collect(),
            Self::Hosts(list) => {
                let rules = list.rules().iter();
                let beyond = rules.filter_map(|rule| {
                    let alone = HostList::new([rule.clone()]);
                    let mut witness = Self::Hosts(alone).within(other).err()?;
                    // Another rule may give the same host more.
                    if let NetworkWitness::Host(HostWitness { host, port, access, .. }) = &mut witness {
                        *access = list.access(host, *port);
                    }
                    Some((witness, Some(&rule.origin)))
                });
                beyond.collect()
            }
        }
    }

    /// The reach of a command without approval.
    #[must_use]
    pub fn free_only(&self) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Hosts(list) => Self::hosts(list.free_only()),
            Self::Full => Self::Full,
        }
    }

    /// The line that decides about the witness, if there is one.
    pub(super) fn decides(&self, witness: &NetworkWitness) -> Option<&Origin> {
        match witness {
            NetworkWitness::EveryHost => None,
            NetworkWitness::Host(HostWitness { host, port, .. }) => self.rule_for(host, *port).map(|rule| &rule.origin),
        }
    }

    /// The rule that decides about this host and port; `None` if the network is off or full.
    pub fn rule_for(&self, host: &Host, port: u16) -> Option<&HostRule> {
        match self {
            Self::Off | Self::Full => None,
            Self::Hosts(list) => list.rule_for(host, port),
        }
    }

    /// The access to this host and port.
    pub fn access(&self, host: &Host, port: u16) -> HostAccess {
        match self {
            Self::Off => HostAccess::Denied,
            Self::Hosts(list) => list.access(host, port),
            Self::Full => HostAccess::Free,
        }
    }
}

/// Something that one network permits and another does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkWitness {
    /// Every host, and every protocol.
    EveryHost,
    /// One host and port.
    Host(HostWitness),
}

impl fmt::Display for NetworkWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryHost => f.write_str("network full"),
            Self::Host(witness) => witness.fmt(f),
        }
    }
}

/// `off`, `full`, or the list.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Hosts(list) => list.fmt(f),
            Self::Full => f.write_str("full"),
        }
    }
}

/// Reach over Unix sockets; it never follows [`Network`]. Ordered: less is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnixSockets {
    /// None but anonymous pairs between the command's own processes.
    None,
    /// Sockets whose path lies in a writable root.
    WithinRoots,
    /// Every pathname socket, the desktop's and the container engine's included.
    All,
}

impl fmt::Display for UnixSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::WithinRoots => "within_roots",
            Self::All => "all",
        })
    }
}
