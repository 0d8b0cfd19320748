//! The order of lists, decided.
//!
//! The answer for a name depends on the names in the list and on the parents of the name; for an address, on the ranges
//! that contain it. So two lists and the table of special addresses divide the hosts into finitely many classes.
//! One host of each class is tried: every listed name, one unlisted child of each, one unrelated name; for addresses, the
//! first of each range and the first after it. The same for ports.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use ipnet::IpNet;

use super::address::boundaries;
use super::host::{Host, HostName};
use super::index::Index;
use super::list::HostList;
use super::pattern::HostPattern;
use super::rule::{HostAccess, HostRule};

/// A host and port to which the first of two lists gives more access than the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostWitness {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// What the first list gives.
    pub access: HostAccess,
    /// What the second gives.
    pub other_access: HostAccess,
}

impl fmt::Display for HostWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connect {}:{}", self.host, self.port)?;
        match (self.access, self.other_access) {
            (HostAccess::Free, HostAccess::Asked) => f.write_str(" without a question"),
            (HostAccess::Asked, _) => f.write_str(" after a question"),
            (HostAccess::Free | HostAccess::Denied, _) => Ok(()),
        }
    }
}

impl HostList {
    /// Whether everything that this list gives, the other gives: for each host and port at least as much.
    ///
    /// # Errors
    /// A host and port where it does not.
    pub fn within(&self, other: &Self) -> Result<(), HostWitness> {
        let both = self.rules().iter().chain(other.rules());
        let (ours, theirs) = (Index::of(self.rules()), Index::of(other.rules()));
        for host in representatives(both.map(|rule| &rule.destination.hosts)) {
            let (ours, theirs) = (access_steps(&ours.holding(&host)), access_steps(&theirs.holding(&host)));
            // The access changes only at these ports.
            let ports: BTreeSet<u16> = ours.keys().chain(theirs.keys()).copied().chain([1]).collect();
            let at = |steps: &BTreeMap<u16, HostAccess>, port: u16| {
                let step = steps.range(..=port).next_back();
                step.map_or(HostAccess::Denied, |(_, access)| *access)
            };
            for &port in &ports {
                let (access, other_access) = (at(&ours, port), at(&theirs, port));
                if access > other_access {
                    return Err(HostWitness {
                        host,
                        port,
                        access,
                        other_access,
                    });
                }
            }
        }
        Ok(())
    }
}

/// The access that the rules of a host give, by the first port from which it applies.
fn access_steps(rules: &[&HostRule]) -> BTreeMap<u16, HostAccess> {
    // The change in the number of open ranges of each kind at a port.
    let mut steps: BTreeMap<u16, (i64, i64)> = BTreeMap::new();
    for rule in rules {
        let mut step = |port: u16, by: i64| {
            let (asked, free) = steps.entry(port).or_default();
            match rule.access {
                HostAccess::Denied => {}
                HostAccess::Asked => *asked += by,
                HostAccess::Free => *free += by,
            }
        };
        for (first, last) in rule.destination.ports.ranges() {
            step(*first, 1);
            if let Some(after) = last.checked_add(1) {
                step(after, -1);
            }
        }
    }
    let (mut asked, mut free) = (0, 0);
    let access = steps.into_iter().map(|(port, (more_asked, more_free))| {
        asked += more_asked;
        free += more_free;
        let access = match (asked, free) {
            (_, 1..) => HostAccess::Free,
            (1.., _) => HostAccess::Asked,
            _ => HostAccess::Denied,
        };
        (port, access)
    });
    access.collect()
}

/// One host of each class that the patterns distinguish.
fn representatives<'a>(patterns: impl Iterator<Item = &'a HostPattern>) -> BTreeSet<Host> {
    let mut hosts: BTreeSet<Host> = boundaries().map(Host::Address).collect();
    let mut names: BTreeSet<&HostName> = BTreeSet::new();
    for pattern in patterns {
        match pattern {
            HostPattern::Every => {}
            HostPattern::Name(name) | HostPattern::Below(name) => {
                names.insert(name);
            }
            HostPattern::Net(net) | HostPattern::PublicNet(net) => {
                let after = match net {
                    IpNet::V4(net) => u32::from(net.broadcast())
                        .checked_add(1)
                        .map(|bits| IpAddr::V4(bits.into())),
                    IpNet::V6(net) => u128::from(net.broadcast())
                        .checked_add(1)
                        .map(|bits| IpAddr::V6(bits.into())),
                };
                // A network may begin or end among the mapped IPv4 addresses.
                hosts.extend([Some(net.network()), after].into_iter().flatten().map(Host::address));
            }
        }
    }
    let taken: HashSet<HostName> = names
        .iter()
        .flat_map(|name| std::iter::once((*name).clone()).chain(name.above()))
        .collect();
    hosts.extend(fresh(None, &taken));
    for name in &names {
        hosts.insert(Host::Name((*name).clone()));
        hosts.extend(fresh(Some(name), &taken));
    }
    hosts
}

/// A child of this name that is not listed, nor has a listed child. `None` if there is none: below a long parent only a few
/// names fit.
fn fresh(parent: Option<&HostName>, taken: &HashSet<HostName>) -> Option<Host> {
    let below = |label: &str| match parent {
        Some(parent) => HostName::parse(&format!("{label}.{parent}")),
        None => HostName::parse(label),
    };
    // Enough attempts for one to be free, although digits alone are no top-level name.
    (1..=taken.len() * 2 + 100)
        .filter_map(|number| below(&label(number)).ok())
        .find(|name| !taken.contains(name))
        .map(Host::Name)
}

/// The label with this number, short ones first.
fn label(mut number: usize) -> String {
    const LETTERS: &[u8; 38] = b"xabcdefghijklmnopqrstuvwyz0123456789-_";
    let mut label = String::new();
    while number > 0 {
        number -= 1;
        label.extend(LETTERS.get(number % LETTERS.len()).map(|byte| char::from(*byte)));
        number /= LETTERS.len();
    }
    label
}
