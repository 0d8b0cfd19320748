//! What this machine can enforce, found out by doing it.
//!
//! Nothing is inferred from versions or settings: a Landlock layer is put on a thread and a forbidden
//! open is tried there, a filter is installed and must act, a user namespace is really entered.
//! [`Host::quick`] does the part a run without namespaces needs, [`Host::with_acting_bwrap`] the part that tells which
//! regime to take; [`Host::full`] does all of it, for `doctor`.
//! [`Host::findings`] and [`Host::regimes`] say what was found, what it means and how to get the rest.

mod bwrap;
mod findings;
mod kernel;
mod namespaces;
pub mod program;
mod regimes;
mod tree;

use serde::Serialize;

pub use bwrap::{Bwrap, BwrapFile};
pub use findings::{Finding, Standing};
pub use namespaces::{PROBE_ARGUMENT, probe_main};
pub use regimes::{ABIS, AbiNeed, LANDLOCK_FLOOR, RegimeReport};
pub use tree::{Hold, TreeLimit};

/// What came of trying something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// It worked.
    Works,
    /// It did not, and why.
    Fails(String),
    /// It was not tried.
    Untried,
}

impl Probe {
    /// Whether it was tried and worked.
    pub const fn works(&self) -> bool {
        matches!(self, Self::Works)
    }
}

impl From<Result<(), String>> for Probe {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Fails, |()| Self::Works)
    }
}

/// What this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The kernel's release, for people; nothing is decided by it.
    pub kernel: String,
    /// The Landlock ABI the kernel offers, where it offers one.
    pub landlock_abi: Option<u32>,
    /// Whether a Landlock layer took hold and stopped something.
    pub landlock: Probe,
    /// Whether a filter took hold and stopped something.
    pub seccomp: Probe,
    /// Whether an unprivileged process can enter namespaces and mount there.
    pub user_namespaces: Probe,
    /// The bwrap of a system directory.
    pub bwrap: Option<Bwrap>,
    /// Whether that bwrap makes namespaces and mounts.
    pub bwrap_acts: Probe,
}

impl Host {
    /// What the `landlock` regime needs: Landlock and seccomp. Concerns no other thread.
    pub fn quick() -> Self {
        let tried = kernel::try_on_a_thread();
        Self {
            kernel: nix::sys::utsname::uname()
                .map_or_else(|_| "unknown".to_owned(), |name| name.release().display().to_string()),
            landlock_abi: tried.abi,
            landlock: tried.landlock.into(),
            seccomp: tried.seccomp.into(),
            user_namespaces: Probe::Untried,
            bwrap: None,
            bwrap_acts: Probe::Untried,
        }
    }

    /// What the `namespaces` regime needs, except that bwrap is not tried out.
    pub fn with_bwrap() -> Self {
        Self {
            bwrap: bwrap::find(),
            ..Self::quick()
        }
    }

    /// The same, and bwrap is tried out; unless `known` names the version of this very bwrap, which was seen to act.
    pub fn with_acting_bwrap(known: impl FnOnce(&BwrapFile) -> Option<(u32, u32, u32)>) -> Self {
        let found = bwrap::look().and_then(|(bwrap, file)| {
            let version = Some(known(&file)?);
            Some(Bwrap { version, ..bwrap })
        });
        if let Some(bwrap) = found.filter(Bwrap::acceptable) {
            return Self {
                bwrap: Some(bwrap),
                bwrap_acts: Probe::Works,
                ..Self::quick()
            };
        }
        Self::with_bwrap().trying_bwrap()
    }

    /// Which file the bwrap of a system directory is.
    pub fn bwrap_file() -> Option<BwrapFile> {
        bwrap::look().map(|(_, file)| file)
    }

    fn trying_bwrap(self) -> Self {
        let bwrap_acts = match &self.bwrap {
            Some(bwrap) if bwrap.acceptable() => bwrap.try_out().into(),
            Some(_) | None => Probe::Untried,
        };
        Self { bwrap_acts, ..self }
    }

    /// Everything, processes started for it included.
    ///
    /// The program must call [`probe_main`] when its first argument is [`PROBE_ARGUMENT`].
    pub fn full() -> Self {
        Self {
            user_namespaces: namespaces::probe().into(),
            ..Self::with_bwrap().trying_bwrap()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_look_restricts_no_other_thread() {
        let host = Host::quick();
        assert_eq!(
            (&host.landlock, &host.seccomp),
            (&Probe::Works, &Probe::Works),
            "{host:?}"
        );
        assert!(std::fs::read_dir("/").is_ok());
        assert!(nix::unistd::getsid(None).is_ok());
    }

    #[test]
    fn a_quick_look_starts_no_process_and_says_so() {
        assert_eq!(Host::quick().user_namespaces, Probe::Untried);
    }

    #[test]
    fn what_was_found_is_data_for_machines() {
        let host = Host {
            landlock: Probe::Fails("no\n\"luck\"".to_owned()),
            landlock_abi: None,
            ..Host::quick()
        };
        let text = serde_json::to_string(&host).unwrap();
        assert!(text.contains(r#""landlock":{"fails":"no\n\"luck\""}"#), "{text}");
        assert!(text.contains(r#""user_namespaces":"untried""#), "{text}");
    }
}
