//! The channels on which approval may be requested.

use std::collections::BTreeSet;
use std::fmt;

/// A way to request approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// A program that was named, or the one that embeds Stockade.
    Program,
    /// A client of the approvals socket.
    Socket,
    /// The person at the terminal.
    Terminal,
    /// The MCP client, which asks its user or answers by itself.
    Elicitation,
}

impl Channel {
    /// All of them, in the default order.
    pub const ALL: [Self; 4] = [Self::Program, Self::Socket, Self::Terminal, Self::Elicitation];

    /// Its name in a config.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Socket => "socket",
            Self::Terminal => "terminal",
            Self::Elicitation => "elicitation",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The channels of a policy: their order, and which are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channels {
    named: Option<Vec<Channel>>,
    allowed: BTreeSet<Channel>,
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            named: None,
            allowed: Channel::ALL.into(),
        }
    }
}

impl Channels {
    /// Only these channels, in this order. Without any, nobody is asked.
    pub fn only(named: Vec<Channel>) -> Self {
        Self {
            allowed: named.iter().copied().collect(),
            named: Some(named),
        }
    }

    /// Whether the channel may be used.
    pub fn allow(&self, channel: Channel) -> bool {
        self.allowed.contains(&channel)
    }

    /// Whether the config itself names it.
    pub fn name(&self, channel: Channel) -> bool {
        self.allow(channel) && self.named.as_ref().is_some_and(|named| named.contains(&channel))
    }

    /// Those that may be tried, in order.
    pub fn order(&self) -> Vec<Channel> {
        let order = self.named.as_deref().unwrap_or(&Channel::ALL);
        order.iter().copied().filter(|channel| self.allow(*channel)).collect()
    }

    /// The channels that `most` allows too, in the order of `self`.
    #[must_use]
    pub fn and(&self, most: &Self) -> Self {
        Self {
            named: self.named.clone(),
            allowed: self.allowed.intersection(&most.allowed).copied().collect(),
        }
    }

    /// The first channel that is named here and that `most` does not allow.
    pub fn beyond(&self, most: &Self) -> Option<Channel> {
        let mut named = self.named.iter().flatten().copied();
        named.find(|channel| !most.allow(*channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_takes_channels_away_and_adds_none() {
        let ceiling = Channels::only(vec![Channel::Terminal, Channel::Socket]);
        let capped = Channels::default().and(&ceiling);
        assert_eq!(capped.order(), [Channel::Socket, Channel::Terminal]);
        assert!(!capped.name(Channel::Terminal), "only a config names channels");
        let named = Channels::only(vec![Channel::Elicitation, Channel::Terminal]);
        assert_eq!(named.and(&ceiling).order(), [Channel::Terminal]);
        assert!(named.and(&ceiling).name(Channel::Terminal));
        assert_eq!(named.beyond(&ceiling), Some(Channel::Elicitation));
        assert_eq!(Channels::default().beyond(&ceiling), None);
    }

    #[test]
    fn an_empty_list_names_nobody() {
        assert_eq!(Channels::only(Vec::new()).order(), []);
        assert_eq!(Channels::default().and(&Channels::only(Vec::new())).order(), []);
    }
}
