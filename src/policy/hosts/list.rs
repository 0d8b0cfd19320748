//! A list of host rules, of which the widest that matches decides.

use core::net::IpAddr;
use std::collections::BTreeSet;
use std::fmt;

use super::host::Host;
use super::index::Index;
use super::pattern::{Destination, HostPattern};
use super::ports::Ports;
use super::rule::{HostAccess, HostRule};
use crate::policy::Origin;

/// The hosts that may be reached, as a set of rules. Other hosts are denied; an empty list denies all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct HostList {
    rules: Vec<HostRule>,
}

impl HostList {
    /// A list of these rules, in canonical form: sorted, and without those that another one covers.
    pub fn new(rules: impl IntoIterator<Item = HostRule>) -> Self {
        let mut rules: Vec<HostRule> = rules
            .into_iter()
            .filter(|rule| rule.access != HostAccess::Denied)
            .collect();
        rules.sort_by(|a, b| {
            let key = |rule: &HostRule| {
                (
                    rule.destination.clone(),
                    std::cmp::Reverse(rule.access),
                    rule.origin.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        // Covering is transitive; of two rules that cover each other the first stays.
        let covers =
            |by: &HostRule, rule: &HostRule| rule.access <= by.access && rule.destination.is_within(&by.destination);
        let index = Index::of(&rules);
        let is_covered = |(at, rule): (usize, &HostRule)| {
            let others = index.covering(&rule.destination).into_iter();
            let mut others = others.filter_map(|by| Some((by, rules.get(by)?)));
            others.any(|(by, other)| by != at && covers(other, rule) && (by < at || !covers(rule, other)))
        };
        let covered: Vec<bool> = rules.iter().enumerate().map(is_covered).collect();
        let kept = rules.into_iter().zip(covered).filter(|(_, is_covered)| !is_covered);
        Self {
            rules: kept.map(|(rule, _)| rule).collect(),
        }
    }

    /// Whether all hosts are denied.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Its rules, in canonical order.
    pub fn rules(&self) -> &[HostRule] {
        &self.rules
    }

    /// The access to this host and port.
    pub fn access(&self, host: &Host, port: u16) -> HostAccess {
        self.rule_for(host, port).map_or(HostAccess::Denied, |rule| rule.access)
    }

    /// The rule that decides about this host and port.
    pub fn rule_for(&self, host: &Host, port: u16) -> Option<&HostRule> {
        let matching = self.rules.iter().filter(|rule| rule.destination.holds(host, port));
        // The first of the widest.
        matching.reduce(|best, rule| if rule.access > best.access { rule } else { best })
    }

    /// Whether a rule that names addresses by number, and not by `*`, permits this one without approval.
    pub fn names_by_number(&self, address: IpAddr, port: u16) -> bool {
        let host = Host::address(address);
        self.only(HostAccess::Free).any(|rule| match rule.destination.hosts {
            HostPattern::Net(_) => rule.destination.holds(&host, port),
            HostPattern::Every | HostPattern::Below(_) | HostPattern::Name(_) | HostPattern::PublicNet(_) => false,
        })
    }

    /// The hosts that both lists permit.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        // Two rules overlap only if one is around the other.
        let (ours, theirs) = (Index::of(&self.rules), Index::of(&other.rules));
        let mut pairs = BTreeSet::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let around = theirs.around(&rule.destination.hosts).into_iter();
            pairs.extend(around.map(|(theirs, _)| (at, theirs)));
        }
        for (at, rule) in other.rules.iter().enumerate() {
            let around = ours.around(&rule.destination.hosts).into_iter();
            pairs.extend(around.map(|(ours, _)| (ours, at)));
        }
        let pairs = pairs.into_iter();
        let pairs = pairs.filter_map(|(a, b)| Some((self.rules.get(a)?, other.rules.get(b)?)));
        Self::new(pairs.filter_map(|(a, b)| {
            let destination = a.destination.and(&b.destination)?;
            let origin = if destination == b.destination && destination != a.destination {
                b.origin.clone()
            } else {
                a.origin.clone()
            };
            Some(HostRule {
                destination,
                access: a.access.min(b.access),
                origin,
            })
        }))
    }

    /// The hosts that need no approval.
    #[must_use]
    pub fn free_only(&self) -> Self {
        Self {
            rules: self.only(HostAccess::Free).cloned().collect(),
        }
    }

    /// The rules with this access.
    pub fn only(&self, access: HostAccess) -> impl Iterator<Item = &HostRule> {
        self.rules.iter().filter(move |rule| rule.access == access)
    }

    /// Whether somebody may be asked about some host.
    pub fn asks(&self) -> bool {
        self.only(HostAccess::Asked).next().is_some()
    }

    /// The rule of `ask: true`: every other host needs approval.
    pub fn ask_for_others(origin: Origin) -> HostRule {
        HostRule {
            destination: Destination {
                hosts: HostPattern::Every,
                ports: Ports::all(),
            },
            access: HostAccess::Asked,
            origin,
        }
    }
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = false;
        for rule in self.only(HostAccess::Free) {
            let comma = if written { ", " } else { "" };
            write!(f, "{comma}{}", rule.destination)?;
            written = true;
        }
        for (index, rule) in self.only(HostAccess::Asked).enumerate() {
            f.write_str(match (index, written) {
                (0, false) => "asks for ",
                (0, true) => "; asks for ",
                (1.., _) => ", ",
            })?;
            match &rule.destination.hosts {
                HostPattern::Every if rule.destination.ports == Ports::all() => f.write_str("other hosts")?,
                HostPattern::Every
                | HostPattern::Below(_)
                | HostPattern::Name(_)
                | HostPattern::PublicNet(_)
                | HostPattern::Net(_) => rule.destination.fmt(f)?,
            }
            written = true;
        }
        if !written {
            f.write_str("nothing")?;
        }
        Ok(())
    }
}
