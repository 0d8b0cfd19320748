//! What bounds a network beside the line that asks for it: the ceilings, and `--net`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::policy::{Host, HostAccess, Network, Origin, Policy, line_of};
use crate::tools::narrowing::Narrowing;

/// How every refusal begins of a host that no list names, with or without a question.
pub(super) const UNLISTED: &str = "is not in the list of hosts";
/// The setting that lets a host through; a bound's own is named with whose it is.
pub(super) const SETTING: &str = "shell.network.allow";

#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds(pub(crate) Vec<Bound>);

#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) by: By,
    /// The most that it gives.
    pub(crate) network: Network,
}

#[derive(Debug, Clone)]
pub(crate) enum By {
    /// A ceiling's; its line about the network, where there is one.
    Ceiling(Arc<PathBuf>, Option<Origin>),
    /// That of `--net` beside a config.
    Flag,
}

impl Bounds {
    pub(crate) fn of(policy: &Policy, narrowing: &Narrowing) -> Self {
        let ceilings = policy.ceilings.all.iter().map(|ceiling| Bound {
            by: By::Ceiling(Arc::clone(&ceiling.file), ceiling.policy.network_line().cloned()),
            network: ceiling.policy.network.clone(),
        });
        let flag = narrowing.network.iter().map(|network| Bound {
            by: By::Flag,
            network: network.clone(),
        });
        Self(ceilings.chain(flag).collect())
    }

    /// All of them, ceilings first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Bound> {
        self.0.iter()
    }

    /// The setting of the first bound that gives this host and port so much and no more.
    pub(super) fn setting(&self, host: &Host, port: u16, access: HostAccess) -> Option<String> {
        let stands = |bound: &&Bound| bound.network.access(host, port) == access;
        let bound = self.0.iter().find(stands)?;
        let line = bound.line(host, port);
        Some(match bound.by {
            By::Ceiling(..) => format!("{SETTING} {OF_A_CEILING} {line}"),
            By::Flag => line,
        })
    }
}

const OF_A_CEILING: &str = "of the ceiling";
const FLAG: &str = "--net";

/// Whether a refusal names the setting of a bound, as [`Bounds::setting`] has it, behind its first words.
pub(super) fn is_bounded(why: &str) -> bool {
    let setting = why.strip_prefix(UNLISTED).and_then(|rest| rest.strip_prefix(" ("));
    let of_a_ceiling = |setting: &str| {
        let whose = setting.strip_prefix(SETTING);
        whose.is_some_and(|whose| whose.trim_start().starts_with(OF_A_CEILING))
    };
    setting.is_some_and(|setting| setting.starts_with(FLAG) || of_a_ceiling(setting))
}

impl Bound {
    /// The line that decides about a host and port: of a ceiling, else its file; the words of the flag.
    pub(crate) fn line(&self, host: &Host, port: u16) -> String {
        let rule = self.network.rule_for(host, port).map(|rule| &rule.origin);
        match (&self.by, &self.network) {
            (By::Ceiling(file, line), _) => line_of(file, rule.or(line.as_ref())),
            (By::Flag, Network::Off) => format!("{FLAG} off"),
            (By::Flag, Network::Hosts(_) | Network::Full) => rule.map_or_else(|| FLAG.to_owned(), ToString::to_string),
        }
    }
}
