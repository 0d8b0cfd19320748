//! `--net`: off, on, or the hosts that may be reached.

use std::str::FromStr;

use super::error::CliError;
use crate::policy::{Destination, HostList, HostRule, Network, Origin, PatternError};

/// One `--net`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetFlag {
    /// No network.
    Off,
    /// Every host.
    On,
    /// These hosts and ports, with those of every other `--net`.
    Hosts(Destination),
}

/// Why an argument is no `--net`.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// A keyword that `--net` does not have.
    #[error("write `off`, `on`, or HOST:PORTS, as in `example.org:443`")]
    Keyword,
    /// No host and ports.
    #[error("{0}; write `off`, `on`, or HOST:PORTS, as in `example.org:443`")]
    Pattern(#[from] PatternError),
}

impl FromStr for NetFlag {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        // Keywords that a person may try. A host with such a name can be given with its ports.
        const KEYWORDS: [&str; 9] = ["off", "on", "yes", "no", "true", "false", "none", "full", "all"];
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            keyword if KEYWORDS.iter().any(|known| known.eq_ignore_ascii_case(keyword)) => Err(NetError::Keyword),
            host => Ok(Self::Hosts(Destination::parse(host)?)),
        }
    }
}

/// The network that all flags together name, if there is one.
pub(super) fn network(flags: &[NetFlag]) -> Result<Option<Network>, CliError> {
    let Some((first, others)) = flags.split_first() else {
        return Ok(None);
    };
    let mut rules = Vec::new();
    for flag in flags {
        match flag {
            NetFlag::Off | NetFlag::On if others.iter().all(|other| other == first) => {}
            NetFlag::Off | NetFlag::On => {
                return Err(CliError::failed("`--net off` and `--net on` stand alone")
                    .remedy("keep one of them, or only `--net HOST:PORTS`"));
            }
            NetFlag::Hosts(host) => rules.push(HostRule::free(
                host.clone(),
                Origin::Flag(format!("--net {host}").into()),
            )),
        }
    }
    Ok(Some(match first {
        NetFlag::Off => Network::Off,
        NetFlag::On => Network::Full,
        NetFlag::Hosts(_) => Network::hosts(HostList::new(rules)),
    }))
}
