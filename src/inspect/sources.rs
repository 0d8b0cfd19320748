//! The sources of a decision about one host and port (config, ceilings, `--net`), and what each would have to change.

use serde::Serialize;

use super::hosts::Reach;
use crate::policy::hosts::{AddressKind, kind};
use crate::policy::{Host, HostAccess, HostList, HostPattern, HostRule, Network, Origin, line_of};
use crate::tools::explain::Clause;
use crate::tools::network::{Bound, Bounds, By};

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// A line of the config or preset, or what holds without one.
    Config,
    /// A ceiling.
    Ceiling,
    /// `--net`.
    Flag,
}

/// One source.
pub(super) struct Source<'a> {
    pub(super) who: Decider,
    network: &'a Network,
    /// The line that decides about the host and port.
    pub(super) line: String,
    /// The entry that would permit it.
    widening: String,
}

/// All sources: first the requested network, then what bounds it.
pub(super) struct Sources<'a> {
    host: &'a Host,
    port: u16,
    own: Source<'a>,
    bounds: Vec<Source<'a>>,
    /// The line of the requested network, if there is one.
    request_line: Option<&'a Origin>,
}

impl<'a> Sources<'a> {
    pub(super) fn of(reach: &'a Reach, bounds: &'a Bounds, host: &'a Host, port: u16) -> Self {
        Self {
            host,
            port,
            own: own(reach, host, port),
            bounds: bounds.all().map(|bound| bounding(bound, host, port)).collect(),
            request_line: reach.origin.as_ref(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Source<'a>> {
        std::iter::once(&self.own).chain(&self.bounds)
    }

    /// The access that a source gives.
    fn access(&self, source: &Source<'_>) -> HostAccess {
        source.network.access(self.host, self.port)
    }

    /// The first source that gives least.
    pub(super) fn deciding(&self) -> &Source<'a> {
        let strictest = |first, source| {
            if self.access(source) < self.access(first) {
                source
            } else {
                first
            }
        };
        self.bounds.iter().fold(&self.own, strictest)
    }

    /// All sources that give least.
    fn strictest(&self) -> Vec<&Source<'a>> {
        let strictest = self.access(self.deciding());
        self.all().filter(|source| self.access(source) == strictest).collect()
    }

    /// Notes on the other sources that give least.
    pub(super) fn notes(&self) -> Vec<String> {
        let verb = match self.access(self.deciding()) {
            HostAccess::Free => return Vec::new(),
            HostAccess::Asked => "gives it after a question only, too",
            HostAccess::Denied => "does not give it either",
        };
        let others = self.strictest().into_iter().skip(1);
        others.map(|source| format!("{} {verb}", source.label())).collect()
    }

    /// The changes that a person could make.
    pub(super) fn change(&self) -> Vec<String> {
        match self.access(self.deciding()) {
            HostAccess::Free => self.narrowing(),
            HostAccess::Asked => {
                let mut change = self.widening("would permit it without a question");
                change.extend(self.narrowing());
                change
            }
            HostAccess::Denied if self.is_unusable() => Vec::new(),
            HostAccess::Denied if self.all().any(|source| self.access(source) == HostAccess::Asked) => {
                self.widening("would permit it after a question")
            }
            HostAccess::Denied => self.widening("would permit it"),
        }
    }

    /// Whether no list can permit such an address.
    fn is_unusable(&self) -> bool {
        match self.host {
            Host::Address(address) => matches!(kind(*address), AddressKind::Unusable(_)),
            Host::Name(_) => false,
        }
    }

    /// The changes that together would permit it.
    fn widening(&self, would: &str) -> Vec<String> {
        let strictest = self.strictest();
        let mut change: Vec<String> = strictest.iter().flat_map(|source| self.near_misses(source)).collect();
        let alone = match self.own.who {
            Decider::Config => "no change to the config alone would",
            Decider::Ceiling | Decider::Flag => "`--net` alone would not",
        };
        let is_bounded = self.access(&self.own) > self.access(self.deciding());
        match strictest.as_slice() {
            [own] if !is_bounded => change.push(format!("{} {would}", own.widening)),
            [bound] => change.push(format!("{} {would}; {alone}", bound.widening)),
            all => {
                change.push(format!("all of these together {would}; {alone}:"));
                change.extend(all.iter().map(|source| source.widening.clone()));
            }
        }
        change
    }

    /// The changes that would forbid it.
    fn narrowing(&self) -> Vec<String> {
        let line = self
            .request_line
            .map_or_else(String::new, |origin| format!(" ({origin})"));
        match self.own.network {
            Network::Off => Vec::new(),
            Network::Full => vec![format!(
                "`network: {{allow: [HOST:PORTS]}}` without it{line} would forbid it"
            )],
            Network::Hosts(list) => vec![self.removing(list)],
        }
    }

    /// The entries to remove so that it is denied.
    fn removing(&self, list: &HostList) -> String {
        let holding = list
            .rules()
            .iter()
            .filter(|rule| rule.destination.holds(self.host, self.port));
        let entries: Vec<String> = holding
            .map(|rule| format!("`{}` ({})", rule.destination, rule.origin))
            .collect();
        format!("without {} it would be denied", entries.join(" and "))
    }

    /// Entries that nearly match.
    fn near_misses(&self, source: &Source<'_>) -> Vec<String> {
        let list = match source.network {
            Network::Off | Network::Full => return Vec::new(),
            Network::Hosts(list) => list.rules().iter(),
        };
        let others = list.filter(|rule| !rule.destination.holds(self.host, self.port));
        let near_misses = others.filter_map(|rule| Some((rule, near_miss(rule, self.host)?)));
        near_misses
            .map(|(rule, why)| format!("`{}` ({}) {why}", rule.destination, rule.origin))
            .collect()
    }
}

impl Source<'_> {
    /// The source and its line.
    pub(super) fn label(&self) -> String {
        match self.who {
            Decider::Config => self.line.clone(),
            Decider::Ceiling => format!("the ceiling {}", self.line),
            Decider::Flag => format!("`{}`", self.line),
        }
    }

    /// The entry that decides, or the whole network.
    pub(super) fn clause(&self, host: &Host, port: u16) -> Option<Clause> {
        let text = match self.network {
            Network::Off | Network::Full => format!("network {}", self.network),
            Network::Hosts(list) => list.rule_for(host, port)?.destination.to_string(),
        };
        Some(Clause {
            text,
            origin: self.line.clone(),
        })
    }
}

/// The source of the requested network.
fn own<'a>(reach: &'a Reach, host: &Host, port: u16) -> Source<'a> {
    let network = &reach.requested;
    let rule = network.rule_for(host, port).map(|rule| &rule.origin);
    let line = rule.or(reach.origin.as_ref());
    let (who, widening) = match &reach.origin {
        Some(Origin::Flag(_)) => (Decider::Flag, format!("`--net {host}:{port}`")),
        Some(origin @ (Origin::File { .. } | Origin::Builtin(_))) => {
            (Decider::Config, format!("{} ({origin})", entry(network, host, port)))
        }
        Some(origin @ Origin::Preset { .. }) => (
            Decider::Config,
            format!("`shell: {{network: {{allow: [\"{host}:{port}\"]}}}}` in a config, in place of {origin},"),
        ),
        None => (
            Decider::Config,
            format!("`shell: {{network: {{allow: [\"{host}:{port}\"]}}}}`"),
        ),
    };
    Source {
        who,
        network,
        line: line.map_or_else(|| "what no line says is off".to_owned(), ToString::to_string),
        widening,
    }
}

/// The source of a bound.
fn bounding<'a>(bound: &'a Bound, host: &Host, port: u16) -> Source<'a> {
    let network = &bound.network;
    let (who, widening) = match &bound.by {
        By::Ceiling(file, line) => {
            let ceiling = line_of(file, line.as_ref());
            let entry = match line {
                Some(_) => entry(network, host, port),
                None => shell_entry(host, port),
            };
            (Decider::Ceiling, format!("{entry} in the ceiling {ceiling}"))
        }
        By::Flag => {
            let widening = match network {
                Network::Off => "leaving out `--net off`".to_owned(),
                Network::Hosts(_) | Network::Full => format!("`--net {host}:{port}` beside the others"),
            };
            (Decider::Flag, widening)
        }
    };
    Source {
        who,
        network,
        line: bound.line(host, port),
        widening,
    }
}

/// The entry to add to a network in a file.
fn entry(network: &Network, host: &Host, port: u16) -> String {
    match network {
        Network::Off | Network::Full => format!("`network: {{allow: [\"{host}:{port}\"]}}`"),
        Network::Hosts(_) => format!("`\"{host}:{port}\"` under `allow`"),
    }
}

/// The entry for a file without a network.
fn shell_entry(host: &Host, port: u16) -> String {
    format!("`shell: {{network: {{allow: [\"{host}:{port}\"]}}}}`")
}

/// Why an entry that does not match nearly does.
fn near_miss(rule: &HostRule, host: &Host) -> Option<&'static str> {
    match (&rule.destination.hosts, host) {
        (hosts, host) if hosts.holds(host) => Some("is for other ports"),
        (HostPattern::Below(suffix), Host::Name(name)) if name == suffix => {
            Some("names what lies below it, not itself")
        }
        (HostPattern::Name(name), Host::Name(host)) if host.is_below(name) => {
            Some("names itself, not what lies below it")
        }
        (HostPattern::Every | HostPattern::PublicNet(_), Host::Address(_)) => Some("names public addresses only"),
        (
            HostPattern::Every
            | HostPattern::Below(_)
            | HostPattern::Name(_)
            | HostPattern::PublicNet(_)
            | HostPattern::Net(_),
            Host::Name(_) | Host::Address(_),
        ) => None,
    }
}
