//! What was found, for people: what it means, and how to get what is missing.

use serde::Serialize;

use super::bwrap::Bwrap;
use super::host::Host;
use super::probe::Probe;
use super::regimes::LANDLOCK_FLOOR;
use crate::backend::Regime;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is there and works.
    Works,
    /// It is missing, and tools cannot run confined without it.
    Missing,
    /// It is missing, and commands run confined without it.
    Absent,
}

impl Standing {
    /// Whether tools can run confined as far as this goes.
    pub const fn ok(self) -> bool {
        match self {
            Self::Works | Self::Absent => true,
            Self::Missing => false,
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// What was found.
    pub detail: String,
    /// What that means.
    pub means: String,
    /// How to get it, where it is missing.
    pub get: Option<String>,
}

impl Host {
    /// What was found, one finding per mechanism.
    pub fn findings(&self) -> Vec<Finding> {
        vec![
            self.landlock_finding(),
            self.seccomp_finding(),
            self.namespaces_finding(),
            self.bwrap_finding(),
            self.calls_finding(),
            self.memory_finding(),
        ]
    }

    fn landlock_finding(&self) -> Finding {
        let floor = format!("ABI {LANDLOCK_FLOOR} (Linux 6.12)");
        let (standing, detail) = match (&self.landlock, self.landlock_abi) {
            (Probe::Works, Some(abi)) if abi >= LANDLOCK_FLOOR => (Standing::Works, format!("ABI {abi}")),
            (Probe::Works, Some(abi)) => {
                // Inside namespaces an older one is enough.
                let standing = match self.regime() {
                    Regime::Namespaces => Standing::Absent,
                    Regime::Landlock | Regime::Seatbelt | Regime::None => Standing::Missing,
                };
                (standing, format!("ABI {abi}, below the floor of {floor}"))
            }
            (Probe::Works, None) => (Standing::Missing, "no ABI named".to_owned()),
            (Probe::Fails(why), _) => (Standing::Missing, why.clone()),
            (Probe::Untried, _) => (Standing::Missing, "not tried".to_owned()),
        };
        let means = match standing {
            Standing::Works => "commands reach only the files the config grants, and no process outside",
            Standing::Missing => "commands cannot be kept to the files the config grants",
            Standing::Absent => "the `landlock` regime needs more; inside namespaces it is enough",
        };
        let get = (!standing.ok()).then(|| {
            format!(
                "use a kernel with Landlock {floor} or later, built with CONFIG_SECURITY_LANDLOCK=y and with `landlock` in \
                 the `lsm=` boot parameter; in a container, use a seccomp profile that allows the landlock_* calls"
            )
        });
        Finding {
            name: "landlock",
            standing,
            detail,
            means: means.to_owned(),
            get,
        }
    }

    fn seccomp_finding(&self) -> Finding {
        let (standing, detail) = match &self.seccomp {
            Probe::Works => (Standing::Works, "filters act".to_owned()),
            Probe::Fails(why) => (Standing::Missing, why.clone()),
            Probe::Untried => (Standing::Missing, "not tried".to_owned()),
        };
        let means = match standing {
            Standing::Works => "sockets, other processes, keyrings and attributes outside the roots are out of reach",
            Standing::Missing | Standing::Absent => "sockets, other processes and attributes cannot be guarded",
        };
        let get = (!standing.ok()).then(|| "use a kernel built with CONFIG_SECCOMP_FILTER=y".to_owned());
        Finding {
            name: "seccomp",
            standing,
            detail,
            means: means.to_owned(),
            get,
        }
    }

    fn calls_finding(&self) -> Finding {
        let (standing, detail) = match &self.calls {
            Probe::Works => (Standing::Works, "openat2 and close_range act".to_owned()),
            Probe::Fails(why) => (Standing::Missing, why.clone()),
            Probe::Untried => (Standing::Missing, "not tried".to_owned()),
        };
        let means = match standing {
            Standing::Works => "paths are opened without following links, and no descriptor is handed down",
            Standing::Missing | Standing::Absent => "nothing starts: every start needs them",
        };
        let get = (!standing.ok()).then(|| {
            "Linux 5.9 and later have them; a filter refuses them in a systemd unit with RestrictSUIDSGID= or DynamicUser=, and in \
             some containers: allow openat2 and close_range there; in a sandbox of Stockade they are refused: start it outside"
                .to_owned()
        });
        Finding {
            name: "system_calls",
            standing,
            detail,
            means: means.to_owned(),
            get,
        }
    }

    fn memory_finding(&self) -> Finding {
        let (standing, detail, get) = match &self.memory {
            Probe::Works => (Standing::Works, "can be read".to_owned(), None),
            Probe::Untried => (Standing::Absent, "not tried".to_owned(), None),
            Probe::Fails(why) => (
                Standing::Absent,
                why.clone(),
                Some(
                    "an administrator can set kernel.yama.ptrace_scope to 1 or 0; in a container, allow process_vm_readv".to_owned(),
                ),
            ),
        };
        let means = match standing {
            Standing::Works => {
                "where mounts do not keep them, chmod, chown, touch and extended attributes are judged by the path that a command names"
            }
            Standing::Missing | Standing::Absent => {
                "in landlock a command's chmod, chown, touch and extended attributes of a path are refused, and `--explain` sees less"
            }
        };
        Finding {
            name: "command_memory",
            standing,
            detail,
            means: means.to_owned(),
            get,
        }
    }

    fn namespaces_finding(&self) -> Finding {
        let (standing, detail, get) = match &self.user_namespaces {
            Probe::Works => (Standing::Works, "made, and mounted in".to_owned(), None),
            Probe::Untried => (Standing::Absent, "not tried".to_owned(), None),
            Probe::Fails(why) => (
                Standing::Absent,
                why.clone(),
                Some(
                    "an administrator can allow them (user.max_user_namespaces, kernel.unprivileged_userns_clone, or an \
                     AppArmor profile for the program); containers usually forbid them"
                        .to_owned(),
                ),
            ),
        };
        let means = match standing {
            Standing::Works => "Stockade makes the `namespaces` regime itself",
            Standing::Missing | Standing::Absent => {
                "Stockade cannot make the `namespaces` regime itself; bwrap may; the `landlock` regime does not use them"
            }
        };
        Finding {
            name: "user_namespaces",
            standing,
            detail,
            means: means.to_owned(),
            get,
        }
    }

    fn bwrap_finding(&self) -> Finding {
        let (standing, detail, get) = match &self.bwrap {
            None => (
                Standing::Absent,
                "not in a system directory".to_owned(),
                Some("install bubblewrap".to_owned()),
            ),
            Some(bwrap) if bwrap.acceptable() => match &self.bwrap_acts {
                Probe::Works | Probe::Untried => (Standing::Works, shown(bwrap), None),
                Probe::Fails(why) => (Standing::Absent, format!("{}: {why}", shown(bwrap)), None),
            },
            Some(bwrap) => {
                let get = "install a bwrap that root owns, others cannot write, and that is not set-uid";
                (Standing::Absent, shown(bwrap), Some(get.to_owned()))
            }
        };
        // Nobody has to install what nothing needs.
        let get = get.filter(|_| !self.user_namespaces.works());
        let means = if self.user_namespaces.works() {
            "it could make the `namespaces` regime as well; nothing needs it"
        } else {
            "it makes the `namespaces` regime where Stockade cannot; the `landlock` regime does not use it"
        };
        Finding {
            name: "bwrap",
            standing,
            detail,
            means: means.to_owned(),
            get,
        }
    }
}

/// A bwrap in words.
fn shown(bwrap: &Bwrap) -> String {
    let version = bwrap.version.map_or_else(
        || "of unknown version".to_owned(),
        |(major, minor, patch)| format!("{major}.{minor}.{patch}"),
    );
    let setuid = if bwrap.setuid { ", set-uid: refused" } else { "" };
    let writable = if bwrap.writable_by_others {
        ", others may change it: refused"
    } else {
        ""
    };
    format!("{} {version}{setuid}{writable}", bwrap.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(abi: Option<u32>, landlock: Probe) -> Host {
        let kernel = "6.1.0".to_owned();
        Host {
            kernel,
            landlock_abi: abi,
            landlock,
            seccomp: Probe::Works,
            user_namespaces: Probe::Untried,
            bwrap: None,
            bwrap_acts: Probe::Untried,
            calls: Probe::Works,
            memory: Probe::Untried,
        }
    }

    #[test]
    fn an_abi_that_does_not_act_is_no_abi() {
        let host = host(Some(7), Probe::Fails("a forbidden open succeeded".to_owned()));
        assert_eq!(host.regime(), Regime::None);
        assert_eq!(host.landlock_lacks(), ["Landlock: a forbidden open succeeded"]);
        let finding = &host.findings()[0];
        assert_eq!(finding.standing, Standing::Missing);
        assert!(finding.get.is_some());
    }

    #[test]
    fn bwrap_is_to_be_installed_only_where_stockade_makes_no_namespaces() {
        let get = |user_namespaces| {
            let host = Host {
                user_namespaces,
                ..host(Some(7), Probe::Works)
            };
            host.findings().remove(3).get
        };
        assert_eq!(get(Probe::Works), None);
        let forbidden = Probe::Fails("forbidden".to_owned());
        assert_eq!(get(forbidden).as_deref(), Some("install bubblewrap"));
    }

    #[test]
    fn a_setuid_bwrap_is_named_as_refused() {
        let bwrap = Bwrap {
            path: "/usr/bin/bwrap",
            version: None,
            setuid: true,
            writable_by_others: false,
        };
        let host = Host {
            bwrap: Some(bwrap),
            ..host(Some(7), Probe::Works)
        };
        let finding = host.findings().remove(3);
        assert_eq!(
            (finding.standing, finding.detail.contains("set-uid: refused")),
            (Standing::Absent, true)
        );
    }
}
