//! The networks that a policy asks for, what a ceiling does not give of them, and how a line of one is named.

use std::path::Path;
use std::sync::Arc;

use super::ceiling::{Ceiling, Cut, Lost};
use super::grant::Origin;
use super::network::Network;
use super::path::display;
use super::policy::Policy;

/// The setting of the network of all commands.
const KEY: &str = "shell.network";

impl Policy {
    /// The line that says which network commands have, where one does.
    pub fn network_line(&self) -> Option<&Origin> {
        self.ceilings.lines.get(KEY)
    }

    /// What each of [`networks`](Self::networks) was, in their order, before a ceiling took any of it.
    pub fn asked_networks(&self) -> impl Iterator<Item = &Network> {
        let asked = self.ceilings.asked.iter().map(Some).chain(std::iter::repeat(None));
        self.networks().zip(asked).map(|(left, asked)| asked.unwrap_or(left))
    }

    /// The hosts that are asked for and that a ceiling does not give, line by line.
    pub(super) fn networks_beyond(&self, ceiling: &Ceiling) -> Vec<Cut> {
        let most = &ceiling.policy;
        let asked = self.network_line().cloned();
        let asked = asked.unwrap_or(Origin::Builtin("the default"));
        let own = self.own_networks().map(|(_, own)| (&own.network, &own.origin));
        let all = std::iter::once((&self.network, &asked)).chain(own);
        let cuts = all.flat_map(|(network, asked)| {
            let beyond = network.beyond(&most.network).into_iter();
            beyond.map(move |(lost, at)| (lost, at.unwrap_or(asked).clone()))
        });
        cuts.map(|(lost, origin)| Cut {
            origin,
            ceiling: Arc::clone(&ceiling.file),
            clause: most.network.decides(&lost).or_else(|| most.network_line()).cloned(),
            what: Lost::Network(lost),
        })
        .collect()
    }
}

/// A line of a ceiling as it is named; the file where none is known.
pub fn line_of(ceiling: &Path, line: Option<&Origin>) -> String {
    match line {
        Some(line @ Origin::File { .. }) => line.to_string(),
        Some(line) => format!("{} ({line})", display(ceiling.as_os_str())),
        None => display(ceiling.as_os_str()),
    }
}
