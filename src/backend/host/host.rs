//! What this machine can enforce, and who makes namespaces on it.

use serde::{Deserialize, Serialize};

use super::bwrap::{self, Bwrap, BwrapFile};
use super::kernel;
use super::namespaces::{self, Probed};
use super::probe::Probe;
use crate::backend::plan::MadeBy;

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
    /// Whether Stockade can make namespaces and mounts itself.
    pub user_namespaces: Probe,
    /// The bwrap of a system directory.
    pub bwrap: Option<Bwrap>,
    /// Whether that bwrap makes namespaces and mounts.
    pub bwrap_acts: Probe,
    /// Whether the calls are there that every start needs: `openat2` and, where it was tried, `close_range`.
    pub calls: Probe,
    /// Whether the memory of a command can be read, without which its attribute calls by path are refused.
    pub memory: Probe,
}

impl Host {
    /// What the `landlock` regime needs: Landlock and seccomp. Concerns no other thread.
    pub fn quick() -> Self {
        let probe = kernel::probe();
        Self {
            kernel: nix::sys::utsname::uname()
                .map_or_else(|_| "unknown".to_owned(), |name| name.release().display().to_string()),
            landlock_abi: probe.abi,
            landlock: probe.landlock.into(),
            seccomp: probe.seccomp.into(),
            user_namespaces: Probe::Untried,
            bwrap: None,
            bwrap_acts: Probe::Untried,
            calls: probe.openat2.into(),
            memory: Probe::Untried,
        }
    }

    /// What the `namespaces` regime needs where bwrap is to make it, except that bwrap is not tried out.
    pub fn with_bwrap() -> Self {
        Self {
            bwrap: bwrap::find(),
            ..Self::quick()
        }
    }

    /// What the `namespaces` regime needs of this host. The namespaces are really made, by Stockade itself where it can, else by
    /// bwrap, unless that was `seen` to work before (by the same bwrap).
    pub fn with_acting_namespaces(seen: Option<KnownMaker>) -> Self {
        match seen {
            Some(KnownMaker::Stockade) => Self {
                user_namespaces: Probe::Works,
                ..Self::quick()
            },
            Some(KnownMaker::Bwrap(version)) => {
                let found = bwrap::locate().map(|(bwrap, _)| Bwrap {
                    version: Some(version),
                    ..bwrap
                });
                match found.filter(Bwrap::acceptable) {
                    Some(bwrap) => Self {
                        bwrap: Some(bwrap),
                        bwrap_acts: Probe::Works,
                        ..Self::quick()
                    },
                    None => Self::with_acting_namespaces(None),
                }
            }
            None => {
                let probed = namespaces::probe();
                let host = if probed.namespaces.works() {
                    Self::quick()
                } else {
                    Self::with_bwrap().with_bwrap_tried()
                };
                host.with(probed)
            }
        }
    }

    /// The same, with the result of a probe.
    fn with(self, probed: Probed) -> Self {
        Self {
            user_namespaces: probed.namespaces,
            memory: probed.memory,
            calls: match (self.calls, probed.close_range) {
                (Probe::Works, Probe::Fails(why)) => Probe::Fails(why),
                (calls, _) => calls,
            },
            ..self
        }
    }

    /// Who makes namespaces here, as far as it was tried.
    pub fn maker(&self) -> Option<Maker> {
        if self.user_namespaces.works() {
            return Some(Maker::Stockade);
        }
        self.bwrap.filter(|_| self.bwrap_lacks().is_empty()).map(Maker::Bwrap)
    }

    /// Which file the bwrap of a system directory is.
    pub fn bwrap_file() -> Option<BwrapFile> {
        bwrap::locate().map(|(_, file)| file)
    }

    fn with_bwrap_tried(self) -> Self {
        let bwrap_acts = match &self.bwrap {
            Some(bwrap) if bwrap.acceptable() => bwrap.try_out().into(),
            Some(_) | None => Probe::Untried,
        };
        Self { bwrap_acts, ..self }
    }

    /// Everything, processes started for it included.
    ///
    /// The program must hand over to [`confine::main`](crate::confine::main) what [is its own](crate::confine::is_internal_subcommand).
    pub fn full() -> Self {
        Self::with_bwrap().with_bwrap_tried().with(namespaces::probe())
    }
}

/// Who makes namespaces and mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// Stockade itself.
    Stockade,
    /// This bwrap.
    Bwrap(Bwrap),
}

impl Maker {
    /// As a plan says it.
    pub fn made_by(self) -> MadeBy {
        match self {
            Self::Stockade => MadeBy::Stockade,
            Self::Bwrap(bwrap) => MadeBy::Bwrap(bwrap.path.into()),
        }
    }

    /// The record that it works.
    pub fn seen(self) -> Option<KnownMaker> {
        match self {
            Self::Stockade => Some(KnownMaker::Stockade),
            Self::Bwrap(bwrap) => bwrap.version.map(KnownMaker::Bwrap),
        }
    }
}

/// A maker of namespaces and mounts that is known to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownMaker {
    /// Stockade itself.
    Stockade,
    /// A bwrap of this version.
    Bwrap((u32, u32, u32)),
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
