//! The reach over IP as it is written.

use serde::{Deserialize, Serialize};

use super::clauses::WrittenOrigin;
use super::error::DocumentError;
use crate::policy::{Destination, HostAccess, HostList, HostPattern, HostRule, Network};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenNetwork {
    Off,
    Hosts(Vec<WrittenHost>),
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenHost {
    /// As in a config: `HOST:PORTS`.
    hosts: String,
    /// Whether only the public addresses of a network are meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    public_only: bool,
    access: WrittenAccess,
    origin: WrittenOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenAccess {
    Asked,
    Free,
}

impl WrittenNetwork {
    pub(super) fn of(network: &Network) -> Self {
        match network {
            Network::Off => Self::Off,
            Network::Hosts(list) => Self::Hosts(list.rules().iter().filter_map(WrittenHost::of).collect()),
            Network::Full => Self::Full,
        }
    }

    pub(super) fn network(self) -> Result<Network, DocumentError> {
        Ok(match self {
            Self::Off => Network::Off,
            Self::Hosts(rules) => {
                let rules = rules.into_iter().map(WrittenHost::rule);
                Network::hosts(HostList::new(rules.collect::<Result<Vec<_>, _>>()?))
            }
            Self::Full => Network::Full,
        })
    }
}

impl WrittenHost {
    /// None for a rule that gives nothing.
    fn of(rule: &HostRule) -> Option<Self> {
        let access = match rule.access {
            HostAccess::Denied => return None,
            HostAccess::Asked => WrittenAccess::Asked,
            HostAccess::Free => WrittenAccess::Free,
        };
        let (hosts, public_only) = match &rule.destination.hosts {
            HostPattern::PublicNet(net) => (HostPattern::Net(*net), true),
            other @ (HostPattern::Every | HostPattern::Below(_) | HostPattern::Name(_) | HostPattern::Net(_)) => {
                (other.clone(), false)
            }
        };
        Some(Self {
            hosts: format!("{hosts}:{}", rule.destination.ports),
            public_only,
            access,
            origin: WrittenOrigin::of(&rule.origin),
        })
    }

    fn rule(self) -> Result<HostRule, DocumentError> {
        let wrong = |why: String| DocumentError::Value(format!("{}: {why}", self.hosts));
        let mut destination = Destination::parse(&self.hosts).map_err(|error| wrong(error.to_string()))?;
        if self.public_only {
            let HostPattern::Net(net) = destination.hosts else {
                return Err(wrong("only a network has public addresses".to_owned()));
            };
            destination.hosts =
                HostPattern::public(net).ok_or_else(|| wrong("it has no public addresses".to_owned()))?;
        }
        Ok(HostRule {
            destination,
            access: match self.access {
                WrittenAccess::Asked => HostAccess::Asked,
                WrittenAccess::Free => HostAccess::Free,
            },
            origin: self.origin.origin(),
        })
    }
}
