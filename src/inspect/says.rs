//! Everybody who has a say about one host and port, which of them decides, and what each would have to say instead.

use serde::Serialize;

use super::hosts::Reach;
use crate::policy::hosts::{AddressKind, kind};
use crate::policy::{Host, HostAccess, HostList, HostPattern, HostRule, Network, Origin, line_of};
use crate::tools::explain::Clause;
use crate::tools::network::{Bound, Bounds, By};

/// Who says what may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// A line of the config or preset, or what holds without one.
    Config,
    /// A ceiling.
    Ceiling,
    /// `--net`.
    Flag,
}

/// What one of them says.
pub(super) struct Say<'a> {
    pub(super) who: Who,
    network: &'a Network,
    /// The line that decides about the host and port.
    pub(super) line: String,
    /// What lets it through, as one would write it.
    opening: String,
}

/// What all of them say: first whoever asks for the network, then what bounds it.
pub(super) struct Says<'a> {
    host: &'a Host,
    port: u16,
    own: Say<'a>,
    bounds: Vec<Say<'a>>,
    /// The line of the network that is asked for, where there is one.
    asks: Option<&'a Origin>,
}

impl<'a> Says<'a> {
    pub(super) fn of(reach: &'a Reach, bounds: &'a Bounds, host: &'a Host, port: u16) -> Self {
        Self {
            host,
            port,
            own: own(reach, host, port),
            bounds: bounds.all().map(|bound| bounding(bound, host, port)).collect(),
            asks: reach.origin.as_ref(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Say<'a>> {
        std::iter::once(&self.own).chain(&self.bounds)
    }

    /// What one of them gives.
    fn given(&self, say: &Say<'_>) -> HostAccess {
        say.network.access(self.host, self.port)
    }

    /// The first of those that give least.
    pub(super) fn decides(&self) -> &Say<'a> {
        let least = |first, say| {
            if self.given(say) < self.given(first) {
                say
            } else {
                first
            }
        };
        self.bounds.iter().fold(&self.own, least)
    }

    /// Those that give no more than the one that decides.
    fn least(&self) -> Vec<&Say<'a>> {
        let least = self.given(self.decides());
        self.all().filter(|say| self.given(say) == least).collect()
    }

    /// Who else gives no more.
    pub(super) fn notes(&self) -> Vec<String> {
        let told = match self.given(self.decides()) {
            HostAccess::Free => return Vec::new(),
            HostAccess::Asked => "gives it after a question only, too",
            HostAccess::Denied => "does not give it either",
        };
        let others = self.least().into_iter().skip(1);
        others.map(|say| format!("{} {told}", say.named())).collect()
    }

    /// What a person would edit.
    pub(super) fn change(&self) -> Vec<String> {
        match self.given(self.decides()) {
            HostAccess::Free => self.closing(),
            HostAccess::Asked => {
                let mut change = self.opening("would permit it without a question");
                change.extend(self.closing());
                change
            }
            HostAccess::Denied if self.is_unusable() => Vec::new(),
            HostAccess::Denied if self.all().any(|say| self.given(say) == HostAccess::Asked) => {
                self.opening("would permit it after a question")
            }
            HostAccess::Denied => self.opening("would permit it"),
        }
    }

    /// No list names such an address.
    fn is_unusable(&self) -> bool {
        match self.host {
            Host::Address(address) => matches!(kind(*address), AddressKind::Unusable(_)),
            Host::Name(_) => false,
        }
    }

    /// What would let it through, all of which it takes.
    fn opening(&self, would: &str) -> Vec<String> {
        let least = self.least();
        let mut change: Vec<String> = least.iter().flat_map(|say| self.missed(say)).collect();
        let alone = match self.own.who {
            Who::Config => "no change to the config alone would",
            Who::Ceiling | Who::Flag => "`--net` alone would not",
        };
        let asked_for = self.given(&self.own) > self.given(self.decides());
        match least.as_slice() {
            [own] if !asked_for => change.push(format!("{} {would}", own.opening)),
            [bound] => change.push(format!("{} {would}; {alone}", bound.opening)),
            all => {
                change.push(format!("all of these together {would}; {alone}:"));
                change.extend(all.iter().map(|say| say.opening.clone()));
            }
        }
        change
    }

    /// What of the network that is asked for would forbid it.
    fn closing(&self) -> Vec<String> {
        let line = self.asks.map_or_else(String::new, |origin| format!(" ({origin})"));
        match self.own.network {
            Network::Off => Vec::new(),
            Network::Full => vec![format!(
                "`network: {{allow: [HOST:PORTS]}}` without it{line} would forbid it"
            )],
            Network::Hosts(list) => vec![self.removing(list)],
        }
    }

    /// The entries that would have to go, all of them, for it to be denied.
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

    /// Entries that nearly name it.
    fn missed(&self, say: &Say<'_>) -> Vec<String> {
        let list = match say.network {
            Network::Off | Network::Full => return Vec::new(),
            Network::Hosts(list) => list.rules().iter(),
        };
        let others = list.filter(|rule| !rule.destination.holds(self.host, self.port));
        let missed = others.filter_map(|rule| Some((rule, nearly(rule, self.host)?)));
        missed
            .map(|(rule, why)| format!("`{}` ({}) {why}", rule.destination, rule.origin))
            .collect()
    }
}

impl Say<'_> {
    /// Who it is, with the line.
    pub(super) fn named(&self) -> String {
        match self.who {
            Who::Config => self.line.clone(),
            Who::Ceiling => format!("the ceiling {}", self.line),
            Who::Flag => format!("`{}`", self.line),
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

/// What whoever asks for the network says.
fn own<'a>(reach: &'a Reach, host: &Host, port: u16) -> Say<'a> {
    let network = &reach.asked;
    let rule = network.rule_for(host, port).map(|rule| &rule.origin);
    let line = rule.or(reach.origin.as_ref());
    let (who, opening) = match &reach.origin {
        Some(Origin::Flag(_)) => (Who::Flag, format!("`--net {host}:{port}`")),
        Some(origin @ (Origin::File { .. } | Origin::Builtin(_))) => {
            (Who::Config, format!("{} ({origin})", entry(network, host, port)))
        }
        Some(origin @ Origin::Preset { .. }) => (
            Who::Config,
            format!("`shell: {{network: {{allow: [\"{host}:{port}\"]}}}}` in a config, in place of {origin},"),
        ),
        None => (
            Who::Config,
            format!("`shell: {{network: {{allow: [\"{host}:{port}\"]}}}}`"),
        ),
    };
    Say {
        who,
        network,
        line: line.map_or_else(|| "what no line says is off".to_owned(), ToString::to_string),
        opening,
    }
}

/// What a bound says.
fn bounding<'a>(bound: &'a Bound, host: &Host, port: u16) -> Say<'a> {
    let network = &bound.network;
    let (who, opening) = match &bound.by {
        By::Ceiling(file, line) => {
            let ceiling = line_of(file, line.as_ref());
            let entry = match line {
                Some(_) => entry(network, host, port),
                None => whole(host, port),
            };
            (Who::Ceiling, format!("{entry} in the ceiling {ceiling}"))
        }
        By::Flag => {
            let opening = match network {
                Network::Off => "leaving out `--net off`".to_owned(),
                Network::Hosts(_) | Network::Full => format!("`--net {host}:{port}` beside the others"),
            };
            (Who::Flag, opening)
        }
    };
    Say {
        who,
        network,
        line: bound.line(host, port),
        opening,
    }
}

/// What one adds to a network in a file.
fn entry(network: &Network, host: &Host, port: u16) -> String {
    match network {
        Network::Off | Network::Full => format!("`network: {{allow: [\"{host}:{port}\"]}}`"),
        Network::Hosts(_) => format!("`\"{host}:{port}\"` under `allow`"),
    }
}

/// What one writes in a file that says nothing of the network.
fn whole(host: &Host, port: u16) -> String {
    format!("`shell: {{network: {{allow: [\"{host}:{port}\"]}}}}`")
}

/// Why an entry that does not name a host nearly does.
fn nearly(rule: &HostRule, host: &Host) -> Option<&'static str> {
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
