//! What this machine lets a session stand on.

use std::path::Path;

use super::call::ToolError;
use super::plan::{BackendOptions, Mechanism};
use super::probe_cache;
use crate::backend::Regime;
use crate::backend::host::{Host, Probe};
use crate::backend::landlock::rights::{OLDEST_ABI, RESOLVE_UNIX_ABI};
use crate::backend::namespaces::OLDEST_ABI as OLDEST_INSIDE;
use crate::backend::seccomp::Attempts;
use crate::policy::{BackendChoice, Explain, OsSandbox, Policy};

/// How commands of a session are confined.
#[derive(Debug, Clone)]
pub enum Enforcement {
    /// By Landlock and seccomp, in namespaces or without.
    Confined(BackendOptions),
    /// Not at all, for this reason: no regime works here, and the config permits that.
    Unconfined(String),
    /// They are refused, with this reason: the config says `os_sandbox_fallback: refuse_tools`.
    Refused(String),
}

/// The chosen regime and its fallback.
#[derive(Debug, Clone)]
pub struct ChosenRegime {
    /// How commands are confined.
    pub enforcement: Enforcement,
    /// Why the strongest regime was not taken, where it was wanted.
    pub fallback_reason: Option<String>,
    /// The options of the next weaker regime, where the config allows it.
    pub fallback: Option<BackendOptions>,
}

impl ChosenRegime {
    pub(super) const fn is_unconfined(&self) -> bool {
        matches!(self.enforcement, Enforcement::Unconfined(_))
    }

    pub(super) fn is_in_namespaces(&self) -> bool {
        match &self.enforcement {
            Enforcement::Confined(options) => options.mechanism.regime() == Regime::Namespaces,
            Enforcement::Unconfined(_) | Enforcement::Refused(_) => false,
        }
    }

    /// The regime that holds commands.
    pub(super) const fn regime_name(&self) -> &'static str {
        match &self.enforcement {
            Enforcement::Confined(options) => options.mechanism.regime().name(),
            Enforcement::Unconfined(_) | Enforcement::Refused(_) => Regime::None.name(),
        }
    }

    /// Refuses where the policy refuses every call.
    pub(super) fn ensure_usable(&self) -> Result<(), ToolError> {
        match &self.enforcement {
            Enforcement::Refused(why) => Err(ToolError::Refused(why.clone())),
            Enforcement::Confined(_) | Enforcement::Unconfined(_) => Ok(()),
        }
    }
}

impl Enforcement {
    /// What this machine can do for the policy; an error where the policy wants to fail at once.
    pub fn find(policy: &Policy) -> Result<Self, String> {
        let host = match policy.backend {
            BackendChoice::Auto | BackendChoice::Namespaces => Host::with_acting_namespaces(None),
            BackendChoice::Landlock => Host::quick(),
            BackendChoice::Bwrap => Host::with_bwrap(),
        };
        Self::on(&host, policy)
    }

    /// The same for a host that was probed already.
    pub fn on(host: &Host, policy: &Policy) -> Result<Self, String> {
        let (lacks, mechanism) = match policy.backend {
            BackendChoice::Auto => return Ok(strongest(policy, host)?.enforcement),
            BackendChoice::Landlock => (host.landlock_lacks(), Some(Mechanism::Landlock)),
            BackendChoice::Namespaces | BackendChoice::Bwrap => {
                (host.namespaces_lacks(), host.maker().map(Mechanism::Namespaces))
            }
        };
        match mechanism.and_then(|mechanism| options(policy, host, mechanism)) {
            Some(options) if lacks.is_empty() => Ok(Self::Confined(options)),
            Some(_) | None => Self::without(policy, host, &lacks),
        }
    }

    /// The same, where it is remembered in `state` that namespaces work.
    pub fn choose(policy: &Policy, state: &Path) -> Result<ChosenRegime, String> {
        let alone = |enforcement| ChosenRegime {
            enforcement,
            fallback_reason: None,
            fallback: None,
        };
        match policy.backend {
            BackendChoice::Auto => strongest(policy, &probe_cache::host(state)),
            BackendChoice::Namespaces => Self::on(&probe_cache::host(state), policy).map(alone),
            BackendChoice::Landlock | BackendChoice::Bwrap => Self::find(policy).map(alone),
        }
    }

    /// The result when the requested regime is incomplete on this host.
    fn without(policy: &Policy, host: &Host, lacks: &[String]) -> Result<Self, String> {
        let why = if lacks.is_empty() {
            "Landlock does not name its version".to_owned()
        } else {
            lacks.join("; ")
        };
        match (policy.os_sandbox, policy.backend) {
            (OsSandbox::RefuseTools, _) => Ok(Self::Refused(refusal(&why, policy.backend))),
            (OsSandbox::FailFast, _) => Err(refusal(&why, policy.backend)),
            // That one was not asked for is no reason to run without any.
            (OsSandbox::NotRequired, _) => match works(host) {
                Some(regime) => Err(another_works(&why, policy.backend, regime)),
                None => Ok(Self::Unconfined(why)),
            },
        }
    }
}

/// The strongest regime that works here, whatever was asked for.
fn works(host: &Host) -> Option<&'static str> {
    let regime = match host.user_namespaces {
        Probe::Works | Probe::Fails(_) => host.regime(),
        // Where one regime alone was asked for, nobody has looked for another.
        Probe::Untried => Host::with_acting_namespaces(None).regime(),
    };
    match regime {
        Regime::Namespaces | Regime::Landlock => Some(regime.name()),
        Regime::None | Regime::Seatbelt => None,
    }
}

fn options(policy: &Policy, host: &Host, mechanism: Mechanism) -> Option<BackendOptions> {
    Some(BackendOptions {
        mechanism,
        landlock_abi: host.landlock_abi?.min(RESOLVE_UNIX_ABI),
        deny_fallback: policy.deny_fallback,
        residuals: policy.residuals,
        attempts: match policy.explain {
            Explain::Off | Explain::OnFailure => Attempts::Unseen,
            Explain::Always => Attempts::Watched,
        },
    })
}

/// Namespaces where they work, else Landlock alone.
fn strongest(policy: &Policy, host: &Host) -> Result<ChosenRegime, String> {
    let (inside, alone) = (host.namespaces_lacks(), host.landlock_lacks());
    let fallback = options(policy, host, Mechanism::Landlock).filter(|_| alone.is_empty());
    let namespaces = host.maker().map(Mechanism::Namespaces).filter(|_| inside.is_empty());
    if let Some(options) = namespaces.and_then(|mechanism| options(policy, host, mechanism)) {
        return Ok(ChosenRegime {
            enforcement: Enforcement::Confined(options),
            fallback_reason: None,
            fallback,
        });
    }
    let fallback_reason = inside.first().map(|why| unavailable(why));
    Ok(ChosenRegime {
        enforcement: match fallback {
            Some(options) => Enforcement::Confined(options),
            None => Enforcement::without(policy, host, &alone)?,
        },
        fallback_reason,
        fallback: None,
    })
}

/// Why the regime line says `landlock`.
pub(super) fn unavailable(why: &str) -> String {
    format!("namespaces unavailable: {}", short(why))
}

/// The first line, and not all of a long one.
pub(super) fn short(why: &str) -> String {
    const MAX_CHARS: usize = 300;
    let line = why.lines().next().unwrap_or_default();
    if line.chars().count() <= MAX_CHARS {
        line.to_owned()
    } else {
        format!("{}…", line.chars().take(MAX_CHARS).collect::<String>())
    }
}

/// Why a permission to run unconfined does not count, and what would run: one paragraph.
fn another_works(why: &str, asked: BackendChoice, regime: &str) -> String {
    let asked = asked.name();
    format!(
        "this machine cannot confine commands with `backend: {asked}`, which was asked for, so nothing was run: {why}. \
         `require_os_sandbox: false` permits to run unconfined only where no regime works, and the `{regime}` regime works here: \
         `sandbox.backend: auto` without `--backend` takes it, and so does `--backend {regime}`; `stockade doctor` says what \
         is there."
    )
}

/// Why nothing was run; where somebody confined this process, also that it may come from that.
fn refusal(why: &str, asked: BackendChoice) -> String {
    let nested = match nix::sys::prctl::get_no_new_privs() {
        Ok(true) => {
            " This process may be in a sandbox already (`no_new_privs` is set): in a command of Stockade no other can be made, so \
             start Stockade outside of it."
        }
        Ok(false) | Err(_) => "",
    };
    format!("{}{nested}", cannot_confine(why, asked))
}

/// What is missing, what it means, how to get it: one paragraph.
fn cannot_confine(why: &str, asked: BackendChoice) -> String {
    let in_namespaces = format!(
        "which needs Landlock ABI {OLDEST_INSIDE} or newer (Linux 6.2) and user namespaces that Stockade, or else bwrap, may make"
    );
    let refused =
        "this machine cannot confine commands in the `namespaces` regime, which was asked for, so nothing was run";
    let alone = "`--backend landlock` (or `sandbox.backend: landlock`) does without namespaces";
    match asked {
        BackendChoice::Namespaces => {
            format!("{refused}: {why}. It is a regime {in_namespaces}. `stockade doctor` says what is there; {alone}.")
        }
        BackendChoice::Bwrap => format!(
            "{refused}: {why}. `stockade doctor` says what is there; `--backend namespaces` (or `sandbox.backend: \
             namespaces`) does without bwrap where Stockade may make user namespaces (Linux 6.2 or newer); {alone}."
        ),
        BackendChoice::Auto | BackendChoice::Landlock => format!(
            "this machine cannot confine commands, so nothing was run: {why}. Without it a command could read and write \
             everything this user can. The `landlock` regime needs a kernel with Landlock ABI {OLDEST_ABI} or newer (Linux 6.12) \
             that is enabled (`lsm=` on the kernel command line must name landlock) and seccomp filters; beside it there is \
             the `namespaces` regime (`--backend namespaces`), {in_namespaces}; `stockade doctor` says what is there. \
             `require_os_sandbox: false` in the config would run commands unconfined instead."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_that_does_not_count_is_told_what_works_and_what_takes_it() {
        for (asked, regime) in [
            (BackendChoice::Landlock, "namespaces"),
            (BackendChoice::Namespaces, "landlock"),
            (BackendChoice::Bwrap, "landlock"),
        ] {
            let said = another_works("why", asked, regime);
            for word in [
                "nothing was run: why.",
                &format!("the `{regime}` regime works here"),
                "`sandbox.backend: auto`",
                &format!("`--backend {regime}`"),
            ] {
                assert!(said.contains(word), "{asked:?}: `{word}` is not in: {said}");
            }
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn every_refusal_names_another_regime_and_what_it_needs() {
        let said = |asked| cannot_confine("why", asked);
        for (asked, words) in [
            (
                BackendChoice::Auto,
                ["`--backend namespaces`", "Linux 6.2)", "user namespaces"],
            ),
            (
                BackendChoice::Landlock,
                ["`--backend namespaces`", "Linux 6.2)", "user namespaces"],
            ),
            (
                BackendChoice::Namespaces,
                ["`--backend landlock`", "Linux 6.2)", "user namespaces"],
            ),
            (
                BackendChoice::Bwrap,
                ["`--backend namespaces`", "Linux 6.2 ", "`--backend landlock`"],
            ),
        ] {
            let said = said(asked);
            for word in words {
                assert!(said.contains(word), "{asked:?}: `{word}` is not in: {said}");
            }
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}
