//! The regime line: what holds, said in one line, and what it leaves open.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::call::ToolError;
use super::enforcement::{ChosenRegime, Enforcement};
use super::network_summary::network_summary;
use super::plan::{BackendOptions, Mechanism};
use super::session_policy::SessionPolicy;
use crate::backend::Regime;
use crate::backend::host::{LimitEnforcement, Maker, TreeLimit};
use crate::backend::namespaces::MOST_PROTECTED;
use crate::policy::path::display;
use crate::policy::{
    Access, Demand, Deny, Limits, Network, NetworkOf, Operation, Policy, Protect, Right, Root, Target, UnixSockets,
};
use crate::profile::{ApprovedRoots, Call, FileReach, InAdvance, Profile, derive};

/// The confinement of a session's commands, as `stockade run` prints it in one line.
///
/// [`Session::regime_line`](crate::Session::regime_line) returns it. It prints as one line, and serializes for programs. What the
/// regimes rest on: landlock(7), seccomp(2), namespaces(7).
///
/// ```no_run
/// # async fn run(session: &stockade::Session) -> Result<(), stockade::ToolError> {
/// let line = session.regime_line().await?;
/// if line.regime == "none" || !line.left_open.is_empty() {
///     eprintln!("{line}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegimeLine {
    /// `namespaces`, `landlock` or `none`.
    pub regime: &'static str,
    /// How the regime is made, or why there is none.
    pub detail: String,
    /// The roots that commands may write. Private directories are left out.
    pub writes: Vec<String>,
    /// Those of `writes` that a command may write only after a yes, or where a rule answers for it.
    pub asks_to_write: BTreeSet<String>,
    /// Those of `asks_to_write` for which a rule answers in advance.
    pub answered_by_rule: BTreeSet<String>,
    /// The reach on the network, in words.
    pub network: String,
    /// What the regime does not prevent, or restores only after the command.
    pub left_open: Vec<String>,
    /// Why it is not the strongest regime, where that was to be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// What it holds for.
    #[serde(skip)]
    pub(super) span: Span,
}

/// How long a command under a regime lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Span {
    /// One call.
    #[default]
    Call,
    /// The session: it is a server.
    Session,
}

/// What becomes of protected names that nothing holds while a command runs.
const AFTERWARDS: &str = "are restored after the command";

impl RegimeLine {
    /// The line for commands under this profile.
    pub(super) fn of(chosen: &ChosenRegime, profile: &Profile, policy: &Policy) -> Result<Self, ToolError> {
        match &chosen.enforcement {
            Enforcement::Confined(options) => Ok(Self::confined(
                *options,
                profile,
                policy,
                chosen.fallback_reason.as_deref(),
            )),
            Enforcement::Unconfined(why) => Ok(Self::unconfined(why)),
            Enforcement::Refused(why) => Err(ToolError::Refused(why.clone())),
        }
    }

    /// What holds for all commands of a session; `unasked` is the profile of one that nobody was asked about.
    pub(super) fn of_session(
        chosen: &ChosenRegime,
        session: &SessionPolicy,
        unasked: &Profile,
    ) -> Result<Self, ToolError> {
        let SessionPolicy {
            policy,
            narrowing,
            envelope,
        } = session;
        let line = Self::of(chosen, envelope, policy)?;
        if chosen.is_unconfined() {
            return Ok(line);
        }
        let own = policy.own_networks();
        let own = own.map(|(whose, own)| (whose, narrowing.narrow_network(&own.network)));
        Ok(line
            .with_own_networks(&envelope.network, own)
            .with_unasked(policy, unasked))
    }

    /// The line of a regime that confines.
    ///
    /// `fallback` says why it is not the strongest one, where that was to be taken.
    pub fn confined(options: BackendOptions, profile: &Profile, policy: &Policy, fallback: Option<&str>) -> Self {
        let mut left_open = match options.mechanism {
            Mechanism::Landlock => vec!["names, sizes and times of files elsewhere can be seen".to_owned()],
            Mechanism::Namespaces(_) => Vec::new(),
        };
        let writable = |root: &&Root| {
            root.rights.has(Right::Write) && profile.access(Operation::Write, &root.path) > Access::Denied
        };
        let roots: Vec<String> = policy
            .roots
            .iter()
            .filter(writable)
            .map(|root| root.path.to_string())
            .collect();
        match &policy.protect {
            Protect::Default(_) | Protect::Prevent(_) if !roots.is_empty() => {
                left_open.push(match (options.mechanism, &policy.protect) {
                    (Mechanism::Namespaces(_), Protect::Prevent(_)) => format!(
                        "protected names that are new, are links or come after the first {MOST_PROTECTED} {AFTERWARDS}"
                    ),
                    (Mechanism::Namespaces(_), Protect::Default(_) | Protect::None) => {
                        format!("protected names but git's own settings and hooks {AFTERWARDS}")
                    }
                    (Mechanism::Landlock, _) => format!("protected names {AFTERWARDS}"),
                });
            }
            Protect::Default(_) | Protect::Prevent(_) | Protect::None => {}
        }
        let is_written = |deny: &Deny| match &deny.target {
            Target::Path(_) => false,
            Target::Pattern { root, .. } => profile.access(Operation::Write, root) > Access::Denied,
        };
        let admits = policy.deny_fallback.admits_new_names(policy.residuals);
        match options.mechanism {
            Mechanism::Namespaces(_) if admits && profile.denies.iter().any(is_written) => {
                left_open.push("new names that a deny matches are covered from the next command on".to_owned());
            }
            Mechanism::Namespaces(_) | Mechanism::Landlock => {}
        }
        if profile.unix_sockets == UnixSockets::All {
            left_open.push(
                match options.mechanism {
                    Mechanism::Landlock => "every Unix socket of this user can be reached",
                    Mechanism::Namespaces(_) => "every Unix socket that is mounted can be reached",
                }
                .to_owned(),
            );
        }
        left_open.extend(sampled(&profile.limits, options.mechanism.regime()));
        Self {
            regime: options.mechanism.regime().name(),
            detail: match options.mechanism {
                Mechanism::Landlock => {
                    let fallback = fallback.map(|why| format!("; {why}")).unwrap_or_default();
                    format!("Landlock ABI {} + seccomp{fallback}", options.landlock_abi)
                }
                Mechanism::Namespaces(maker) => {
                    let made = match maker {
                        Maker::Stockade => "native".to_owned(),
                        Maker::Bwrap(bwrap) => format!("bwrap {}", bwrap.number()),
                    };
                    format!("{made} + Landlock ABI {} + seccomp", options.landlock_abi)
                }
            },
            writes: roots,
            asks_to_write: BTreeSet::new(),
            answered_by_rule: BTreeSet::new(),
            network: network_summary(&profile.network),
            left_open,
            fallback: fallback.map(str::to_owned),
            span: Span::Call,
        }
    }

    /// The line for a terminal, without details: those are in the line itself, and `stockade doctor` has more. Paths are shown as
    /// seen from `directory`.
    ///
    /// ```text
    /// sandbox: namespaces · writes . · network off
    /// ```
    pub fn brief(&self, directory: &Path) -> String {
        const MAX_ROOTS: usize = 3;
        let reason = match (self.regime, &self.fallback) {
            ("none", _) => format!(" ({})", self.detail),
            (_, Some(why)) => format!(" ({why})"),
            (_, None) => String::new(),
        };
        let seen = |root: &String| match Path::new(root).strip_prefix(directory) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => display(below),
            Err(_) => root.clone(),
        };
        let mut writes: Vec<String> = self
            .writes
            .iter()
            .take(MAX_ROOTS)
            .map(|root| {
                let asks = self.asks_to_write.contains(root);
                let after = match (asks, self.answered_by_rule.contains(root)) {
                    (false, _) => "",
                    (true, false) => " after a yes",
                    (true, true) => " after a yes or by a rule",
                };
                format!("{}{after}", seen(root))
            })
            .collect();
        match self.writes.len().saturating_sub(MAX_ROOTS) {
            0 => {}
            more => writes.push(format!("{more} more")),
        }
        if writes.is_empty() {
            writes.push("nothing".to_owned());
        }
        let restored = match self.span {
            Span::Call => "",
            Span::Session => " · protected names are restored only when the server ends",
        };
        format!(
            "sandbox: {}{reason} · writes {} · network {}{restored}",
            self.regime,
            writes.join(", "),
            self.network
        )
    }

    /// Why it is less than usual, if it is: nothing confines, or not the strongest regime does.
    pub(super) fn weaker(&self) -> Option<String> {
        if self.regime == "none" {
            return Some(self.detail.clone());
        }
        let fallback = self.fallback.as_ref()?;
        Some(format!("{} only: {fallback}", self.regime))
    }

    /// The same with where commands write after a yes only: nowhere there under this profile, of one that nobody was asked
    /// about.
    #[must_use]
    pub fn with_unasked(mut self, policy: &Policy, unasked: &Profile) -> Self {
        let closed = policy
            .roots
            .iter()
            .filter(|root| unasked.access(Operation::Write, &root.path) == Access::Denied)
            .map(|root| root.path.to_string());
        let writes: BTreeSet<&String> = self.writes.iter().collect();
        self.asks_to_write = closed.filter(|root| writes.contains(root)).collect();
        if !self.asks_to_write.is_empty() {
            self.answered_by_rule = answered_by_rule(policy);
            self.answered_by_rule.retain(|root| self.asks_to_write.contains(root));
        }
        self
    }

    /// The same with what rules and tools have in place of this network.
    #[must_use]
    pub fn with_own_networks<'a>(
        mut self,
        network: &Network,
        own: impl Iterator<Item = (NetworkOf<'a>, Network)>,
    ) -> Self {
        let parts = own.filter(|(_, own)| own != network).map(|(whose, own)| match whose {
            NetworkOf::Rule(_) => format!("by rule {}", network_summary(&own)),
            NetworkOf::Tool(name) => format!("for {name} {}", network_summary(&own)),
        });
        let parts: BTreeSet<String> = parts.collect();
        for parts in parts {
            self.network.push_str("; ");
            self.network.push_str(&parts);
        }
        self
    }

    /// The same for a command that lives as long as the session: what is restored after it stands for as long.
    #[must_use]
    pub fn of_a_server(mut self) -> Self {
        self.span = Span::Session;
        for open in &mut self.left_open {
            if let Some(names) = open.strip_suffix(AFTERWARDS) {
                *open = format!(
                    "{names}are restored only when the server ends, and until then stand as it left them \
                     (`residuals: refuse` refuses that)"
                );
            }
        }
        self
    }

    /// The line of a session that nothing confines.
    pub fn unconfined(why: &str) -> Self {
        Self {
            regime: "none",
            detail: format!("UNCONFINED: {why}"),
            writes: vec!["everything this user may write".to_owned()],
            asks_to_write: BTreeSet::new(),
            answered_by_rule: BTreeSet::new(),
            network: "on".to_owned(),
            left_open: vec!["everything".to_owned()],
            fallback: None,
            span: Span::Call,
        }
    }
}

/// The roots that a rule with `approval: none` lets its commands write.
fn answered_by_rule(policy: &Policy) -> BTreeSet<String> {
    let rules = policy.rules.iter();
    let free = rules.filter(|rule| rule.allowed && rule.approval == Demand::None);
    let named: BTreeSet<Option<&[String]>> = free.map(|rule| rule.sandbox_paths.as_deref()).collect();
    let written = named.into_iter().flat_map(|named| {
        let call = Call {
            narrow: named.map(<[String]>::to_vec),
            ..Call::of(ApprovedRoots::InAdvance(InAdvance::by(named)))
        };
        let profile = derive(policy, &call);
        let roots = policy.roots.iter();
        let is_written = |root: &&Root| profile.access(Operation::Write, &root.path) > Access::Denied;
        let written: Vec<String> = roots.filter(is_written).map(|root| root.path.to_string()).collect();
        written
    });
    written.collect()
}

/// The limits of the whole tree that are set and not held by the kernel.
fn sampled(limits: &Limits, regime: Regime) -> Option<String> {
    let set = [
        limits.memory.map(|_| TreeLimit::memory(regime)),
        limits.processes.map(|_| TreeLimit::processes(regime)),
    ];
    let names: Vec<&str> = set
        .into_iter()
        .flatten()
        .filter(|limit| match limit.hold {
            LimitEnforcement::Exact => false,
            LimitEnforcement::Sampled => true,
        })
        .map(|limit| limit.limit)
        .collect();
    (!names.is_empty()).then(|| format!("limits that are sampled: {}", names.join(", ")))
}

impl fmt::Display for RegimeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writes = if self.writes.is_empty() {
            "nothing".to_owned()
        } else {
            let each = self.writes.iter().map(|root| {
                let after = if self.asks_to_write.contains(root) {
                    " after a yes"
                } else {
                    ""
                };
                format!("{root}{after}")
            });
            each.collect::<Vec<String>>().join(", ")
        };
        write!(
            f,
            "{} ({}) · writes {writes} · network {}",
            self.regime, self.detail, self.network
        )?;
        if !self.left_open.is_empty() {
            write!(f, " · left open: {}", self.left_open.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{RegimeLine, Span};

    #[test]
    fn of_several_roots_each_says_for_itself_that_it_is_written_after_a_yes() {
        let line = RegimeLine {
            regime: "landlock",
            detail: "ABI".to_owned(),
            writes: vec!["/a".to_owned(), "/b".to_owned()],
            asks_to_write: BTreeSet::from(["/b".to_owned()]),
            answered_by_rule: BTreeSet::new(),
            network: "off".to_owned(),
            left_open: Vec::new(),
            fallback: None,
            span: Span::Call,
        };
        assert_eq!(
            line.to_string(),
            "landlock (ABI) · writes /a, /b after a yes · network off"
        );
    }

    #[test]
    fn a_terminal_gets_the_regime_the_roots_as_seen_from_the_directory_and_the_network() {
        let line = |writes: &[&str]| RegimeLine {
            regime: "namespaces",
            detail: "native + Landlock ABI 7 + seccomp".to_owned(),
            writes: writes.iter().map(|&root| root.to_owned()).collect(),
            asks_to_write: BTreeSet::from(["/p/out".to_owned(), "/q".to_owned()]),
            answered_by_rule: BTreeSet::from(["/q".to_owned()]),
            network: "off".to_owned(),
            left_open: vec!["names".to_owned()],
            fallback: None,
            span: Span::Call,
        };
        let brief = |line: RegimeLine| line.brief(Path::new("/p"));
        for (writes, expected) in [
            (&["/p"][..], "."),
            (&[], "nothing"),
            (&["/p/out", "/q"], "out after a yes, /q after a yes or by a rule"),
            (&["/a", "/b", "/c", "/d", "/e"], "/a, /b, /c, 2 more"),
        ] {
            let expected = format!("sandbox: namespaces · writes {expected} · network off");
            assert_eq!(brief(line(writes)), expected);
        }
        let weaker = RegimeLine {
            regime: "landlock",
            fallback: Some("namespaces unavailable: not permitted".to_owned()),
            ..line(&["/p"])
        };
        let expected = "sandbox: landlock (namespaces unavailable: not permitted) · writes . · network off";
        assert_eq!(brief(weaker), expected);
        assert!(
            brief(line(&["/p"]).of_a_server()).ends_with(" · protected names are restored only when the server ends")
        );
        assert_eq!(
            brief(RegimeLine::unconfined("nothing works here")),
            "sandbox: none (UNCONFINED: nothing works here) · writes everything this user may write · network on"
        );
    }
}
