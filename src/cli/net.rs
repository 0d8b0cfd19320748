//! `--net`: off, on, or the hosts that may be reached.

use std::str::FromStr;

use super::complain::Complaint;
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

/// Why a word is no `--net`.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// A word for something else.
    #[error("write `off`, `on`, or HOST:PORTS, as in `example.org:443`")]
    Word,
    /// No host and ports.
    #[error("{0}; write `off`, `on`, or HOST:PORTS, as in `example.org:443`")]
    Place(#[from] PatternError),
}

impl FromStr for NetFlag {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Self, NetError> {
        // Words that somebody may try; a host of such a name can be written with its ports.
        const WORDS: [&str; 9] = ["off", "on", "yes", "no", "true", "false", "none", "full", "all"];
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            word if WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) => Err(NetError::Word),
            place => Ok(Self::Hosts(Destination::parse(place)?)),
        }
    }
}

/// The network that the flags name together; none where there is no such flag.
pub(super) fn network(flags: &[NetFlag]) -> Result<Option<Network>, Complaint> {
    let Some((first, others)) = flags.split_first() else {
        return Ok(None);
    };
    let mut rules = Vec::new();
    for flag in flags {
        match flag {
            NetFlag::Off | NetFlag::On if others.iter().all(|other| other == first) => {}
            NetFlag::Off | NetFlag::On => {
                return Err(Complaint::failed("`--net off` and `--net on` stand alone")
                    .remedy("keep one of them, or only `--net HOST:PORTS`"));
            }
            NetFlag::Hosts(place) => rules.push(HostRule::free(
                place.clone(),
                Origin::Flag(format!("--net {place}").into()),
            )),
        }
    }
    Ok(Some(match first {
        NetFlag::Off => Network::Off,
        NetFlag::On => Network::Full,
        NetFlag::Hosts(_) => Network::hosts(HostList::new(rules)),
    }))
}
