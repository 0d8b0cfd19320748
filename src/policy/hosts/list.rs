//! A list of hosts: rules, of which the widest that matches speaks.

use core::net::IpAddr;
use std::collections::BTreeSet;
use std::fmt;

use super::host::Host;
use super::index::Index;
use super::pattern::{HostPattern, Place};
use super::ports::Ports;
use super::rule::{HostAccess, HostRule};
use crate::policy::Origin;

/// The hosts that may be reached, as a set of rules. What no rule names is denied; an empty list reaches nothing.
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
            let key = |rule: &HostRule| (rule.place.clone(), std::cmp::Reverse(rule.access), rule.origin.clone());
            key(a).cmp(&key(b))
        });
        // What covers a rule that is covered covers what that one covers; of two that cover each other the first counts.
        let covers = |by: &HostRule, rule: &HostRule| rule.access <= by.access && rule.place.is_within(&by.place);
        let index = Index::of(&rules);
        let is_covered = |(at, rule): (usize, &HostRule)| {
            let others = index.covering(&rule.place).into_iter();
            let mut others = others.filter_map(|by| Some((by, rules.get(by)?)));
            others.any(|(by, other)| by != at && covers(other, rule) && (by < at || !covers(rule, other)))
        };
        let covered: Vec<bool> = rules.iter().enumerate().map(is_covered).collect();
        let kept = rules.into_iter().zip(covered).filter(|(_, is_covered)| !is_covered);
        Self {
            rules: kept.map(|(rule, _)| rule).collect(),
        }
    }

    /// Whether nothing is reached.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Its rules, in canonical order.
    pub fn rules(&self) -> &[HostRule] {
        &self.rules
    }

    /// What becomes of a connection to this host and port.
    pub fn access(&self, host: &Host, port: u16) -> HostAccess {
        self.rule_for(host, port).map_or(HostAccess::Denied, |rule| rule.access)
    }

    /// The rule that speaks for this host and port.
    pub fn rule_for(&self, host: &Host, port: u16) -> Option<&HostRule> {
        let matching = self.rules.iter().filter(|rule| rule.place.holds(host, port));
        // The first of the widest.
        matching.reduce(|best, rule| if rule.access > best.access { rule } else { best })
    }

    /// Whether a rule that names addresses by number, and not by `*`, lets this one through without a question.
    pub fn names_by_number(&self, address: IpAddr, port: u16) -> bool {
        let host = Host::address(address);
        self.only(HostAccess::Free).any(|rule| match rule.place.hosts {
            HostPattern::Net(_) => rule.place.holds(&host, port),
            HostPattern::Every | HostPattern::Below(_) | HostPattern::Name(_) | HostPattern::PublicNet(_) => false,
        })
    }

    /// What both lists give.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        // Hosts that both have are all of a rule of the one or of the other.
        let (ours, theirs) = (Index::of(&self.rules), Index::of(&other.rules));
        let mut pairs = BTreeSet::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let around = theirs.around(&rule.place.hosts).into_iter();
            pairs.extend(around.map(|(theirs, _)| (at, theirs)));
        }
        for (at, rule) in other.rules.iter().enumerate() {
            let around = ours.around(&rule.place.hosts).into_iter();
            pairs.extend(around.map(|(ours, _)| (ours, at)));
        }
        let pairs = pairs.into_iter();
        let pairs = pairs.filter_map(|(a, b)| Some((self.rules.get(a)?, other.rules.get(b)?)));
        Self::new(pairs.filter_map(|(a, b)| {
            let place = a.place.and(&b.place)?;
            let origin = if place == b.place && place != a.place {
                b.origin.clone()
            } else {
                a.origin.clone()
            };
            Some(HostRule {
                place,
                access: a.access.min(b.access),
                origin,
            })
        }))
    }

    /// What is left for a command that nobody was asked about: only what is free.
    #[must_use]
    pub fn unasked(&self) -> Self {
        Self {
            rules: self.only(HostAccess::Free).cloned().collect(),
        }
    }

    /// The rules that give this.
    pub fn only(&self, access: HostAccess) -> impl Iterator<Item = &HostRule> {
        self.rules.iter().filter(move |rule| rule.access == access)
    }

    /// Whether somebody may be asked about some host.
    pub fn asks(&self) -> bool {
        self.only(HostAccess::Asked).next().is_some()
    }

    /// The rule of `ask: true`: whatever is not listed is asked about.
    pub fn ask_about_every_other(origin: Origin) -> HostRule {
        HostRule {
            place: Place {
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
            write!(f, "{comma}{}", rule.place)?;
            written = true;
        }
        for (index, rule) in self.only(HostAccess::Asked).enumerate() {
            f.write_str(match (index, written) {
                (0, false) => "asks for ",
                (0, true) => "; asks for ",
                (1.., _) => ", ",
            })?;
            match &rule.place.hosts {
                HostPattern::Every if rule.place.ports == Ports::all() => f.write_str("other hosts")?,
                HostPattern::Every
                | HostPattern::Below(_)
                | HostPattern::Name(_)
                | HostPattern::PublicNet(_)
                | HostPattern::Net(_) => rule.place.fmt(f)?,
            }
            written = true;
        }
        if !written {
            f.write_str("nothing")?;
        }
        Ok(())
    }
}
