//! Which regime works here, what it lacks, and what it cannot hold.

use serde::Serialize;

use super::host::Host;
use super::probe::Probe;
use super::tree::{LimitEnforcement, TreeLimit};
use crate::backend::Regime;

/// The ABI below which the `landlock` regime is refused.
pub const LANDLOCK_FLOOR: u32 = crate::backend::landlock::rights::OLDEST_ABI;

/// The ABI below which the `namespaces` regime is refused.
pub(super) const NAMESPACES_FLOOR: u32 = crate::backend::namespaces::OLDEST_ABI;

/// What one Landlock ABI is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbiNeed {
    /// The ABI.
    pub abi: u32,
    /// The kernel that brought it.
    pub kernel: &'static str,
    /// The clause that needs it.
    pub clause: &'static str,
}

/// The ABIs that a clause waits for, oldest first.
pub const ABIS: &[AbiNeed] = &[
    AbiNeed {
        abi: 1,
        kernel: "5.13",
        clause: "roots: reading, writing and executing only what is granted",
    },
    AbiNeed {
        abi: 2,
        kernel: "5.19",
        clause: "writable roots: moving and linking files between directories",
    },
    AbiNeed {
        abi: 3,
        kernel: "6.2",
        clause: "read-only roots: a file in them cannot be emptied",
    },
    AbiNeed {
        abi: 4,
        kernel: "6.7",
        clause: "network off: TCP, as a second wall behind the filters",
    },
    AbiNeed {
        abi: 5,
        kernel: "6.10",
        clause: "devices: no control calls on device files outside the grants",
    },
    AbiNeed {
        abi: 6,
        kernel: "6.12",
        clause: "processes: signals and abstract sockets stay inside the sandbox",
    },
    AbiNeed {
        abi: 9,
        kernel: "7.1",
        clause: "unix_sockets: within_roots (refused below it)",
    },
];

/// What one regime can do on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegimeReport {
    /// The regime.
    pub regime: Regime,
    /// Whether it would hold here.
    pub ready: bool,
    /// What it lacks here.
    pub missing: Vec<String>,
    /// What it cannot hold anywhere, or not on this machine.
    pub cannot_hold: Vec<String>,
}

impl Host {
    /// The strongest regime that works here, as far as it was tried.
    pub fn regime(&self) -> Regime {
        if self.namespaces_act() && self.namespaces_lacks().is_empty() {
            Regime::Namespaces
        } else if self.landlock_lacks().is_empty() {
            Regime::Landlock
        } else {
            Regime::None
        }
    }

    /// What the `landlock` regime lacks here, one sentence each; empty where it can be used.
    pub fn landlock_lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        match (&self.landlock, self.landlock_abi) {
            (Probe::Works, Some(abi)) if abi >= LANDLOCK_FLOOR => {}
            (Probe::Works, Some(abi)) => {
                lacks.extend(
                    ABIS.iter()
                        .filter(|need| need.abi > abi && need.abi <= LANDLOCK_FLOOR)
                        .map(|need| {
                            format!(
                                "`{}` needs Landlock ABI {} (Linux {}), this kernel has {abi}",
                                need.clause, need.abi, need.kernel
                            )
                        }),
                );
            }
            (Probe::Works, None) => lacks.push("Landlock: the kernel does not name its ABI".to_owned()),
            (Probe::Fails(why), _) => lacks.push(format!("Landlock: {why}")),
            (Probe::Untried, _) => lacks.push("Landlock: not tried".to_owned()),
        }
        lacks.extend(self.calls_lack());
        lacks
    }

    /// What every regime lacks where there are no filters, or a call is missing.
    fn calls_lack(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        match &self.seccomp {
            Probe::Works => {}
            Probe::Fails(why) => lacks.push(format!("seccomp: {why}")),
            Probe::Untried => lacks.push("seccomp: not tried".to_owned()),
        }
        match &self.calls {
            Probe::Works => {}
            Probe::Fails(why) => lacks.push(why.clone()),
            Probe::Untried => lacks.push("openat2: not tried".to_owned()),
        }
        lacks
    }

    /// What the `namespaces` regime lacks here, one sentence each; empty where it can be used.
    pub fn namespaces_lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        match (&self.landlock, self.landlock_abi) {
            (Probe::Works, Some(abi)) if abi >= NAMESPACES_FLOOR => {}
            (Probe::Works, abi) => lacks.push(format!(
                "Landlock ABI {NAMESPACES_FLOOR} (Linux 6.2) inside, this kernel has {}",
                abi.unwrap_or(0)
            )),
            (Probe::Fails(why), _) => lacks.push(format!("Landlock: {why}")),
            (Probe::Untried, _) => lacks.push("Landlock: not tried".to_owned()),
        }
        lacks.extend(self.calls_lack());
        let bwrap = self.bwrap_lacks();
        match &self.user_namespaces {
            Probe::Works => {}
            // Whoever can make them is enough.
            Probe::Fails(_) | Probe::Untried if bwrap.is_empty() => {}
            Probe::Fails(why) => {
                lacks.push(why.clone());
                lacks.extend(bwrap);
            }
            Probe::Untried => lacks.extend(bwrap),
        }
        lacks.dedup();
        lacks
    }

    /// Whether namespaces were tried, and somebody could make them.
    fn namespaces_act(&self) -> bool {
        self.user_namespaces.works() || self.bwrap_acts.works()
    }

    /// What bwrap lacks to make namespaces; empty where it can, as far as it was tried.
    pub(super) fn bwrap_lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        match &self.bwrap {
            None => lacks.push("bwrap: not in a system directory".to_owned()),
            Some(bwrap) => lacks.extend(bwrap.objection().map(|why| format!("bwrap: {why}"))),
        }
        match &self.bwrap_acts {
            Probe::Works | Probe::Untried => {}
            Probe::Fails(why) => lacks.push(why.clone()),
        }
        lacks
    }

    /// Each regime, strongest first.
    pub fn regimes(&self) -> Vec<RegimeReport> {
        let missing = self.landlock_lacks();
        let inside = self.namespaces_lacks();
        vec![
            RegimeReport {
                regime: Regime::Namespaces,
                ready: inside.is_empty(),
                missing: inside,
                cannot_hold: self.namespaces_cannot_hold(),
            },
            RegimeReport {
                regime: Regime::Landlock,
                ready: missing.is_empty(),
                missing,
                cannot_hold: self.landlock_cannot_hold(),
            },
            RegimeReport {
                regime: Regime::None,
                ready: true,
                missing: Vec::new(),
                cannot_hold: vec!["anything: commands run with all that the user may do".to_owned()],
            },
        ]
    }

    /// What stays open in the `namespaces` regime, or is refused in it.
    fn namespaces_cannot_hold(&self) -> Vec<String> {
        let mut cannot = vec![
            "protected names that do not exist yet, are links or are too many: undone after the command instead of prevented".to_owned(),
            "a deny of a name that could still be made in a writable root: refused, or decomposed".to_owned(),
        ];
        cannot.extend(sampled(Regime::Namespaces));
        cannot.extend(self.refused_without_memory(
            "set-gid bits of directories and extended attributes; where bwrap makes the namespaces, Unix sockets reach the host or a command's input is a \
             terminal or a file, also chmod, chown and touch of a path",
        ));
        if self.landlock_abi.is_none_or(|abi| abi < LANDLOCK_FLOOR) {
            cannot.push(
                "signals between the command and what watches it, below Landlock ABI 6: a command can end its own call, and \
                 others of its profile; one that stops who watches it is killed 15 seconds after its time"
                    .to_owned(),
            );
            cannot.push(
                "the host's abstract sockets, below Landlock ABI 6: `unix_sockets: all` with `network: true` is refused".to_owned(),
            );
        }
        cannot
    }

    /// That calls are refused where a command's memory cannot be read.
    fn refused_without_memory(&self, calls: &str) -> Option<String> {
        match &self.memory {
            Probe::Works | Probe::Untried => None,
            Probe::Fails(why) => Some(format!(
                "{calls}: refused, because the memory of a command cannot be read ({why})"
            )),
        }
    }

    /// What stays open in the `landlock` regime, or is refused in it.
    fn landlock_cannot_hold(&self) -> Vec<String> {
        let mut cannot = vec![
            "names, sizes and times: whether a path outside the roots exists can be found out by guessing it"
                .to_owned(),
            "a deny below a granted root: refused, or decomposed where the config says so".to_owned(),
            "protected names: undone after the command instead of prevented".to_owned(),
            "locks: a file that may be read may be locked".to_owned(),
        ];
        cannot.extend(sampled(Regime::Landlock));
        cannot.extend(self.refused_without_memory("chmod, chown, touch and extended attributes of a path"));
        if self.landlock_abi.is_none_or(|abi| abi < 9) {
            cannot.push(
                "unix_sockets: within_roots: all Unix sockets with a path are refused below Landlock ABI 9 (Linux 7.1)"
                    .to_owned(),
            );
        }
        cannot
    }
}

/// The limits of a whole tree that the kernel does not hold in this regime.
fn sampled(regime: Regime) -> Vec<String> {
    let limits = [TreeLimit::processes(regime), TreeLimit::memory(regime)].into_iter();
    let sampled = limits.filter(|limit| match limit.hold {
        LimitEnforcement::Exact => false,
        LimitEnforcement::Sampled => true,
    });
    sampled
        .map(|TreeLimit { limit, why, .. }| format!("limits.{limit} of the whole tree: sampled, not exact: {why}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Bwrap, Maker};
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
    fn the_floor_is_enough_for_the_landlock_regime() {
        let host = host(Some(6), Probe::Works);
        assert_eq!((host.regime(), host.landlock_lacks()), (Regime::Landlock, vec![]));
        assert!(host.findings().iter().all(|finding| finding.standing.ok()));
    }

    #[test]
    fn a_kernel_below_the_floor_is_told_which_clause_needs_what() {
        let host = host(Some(4), Probe::Works);
        assert_eq!(host.regime(), Regime::None);
        let lacks = host.landlock_lacks().join("\n");
        assert!(lacks.contains("`processes: signals and abstract sockets stay inside the sandbox` needs Landlock ABI 6 (Linux 6.12), this kernel has 4"), "{lacks}");
        assert!(
            lacks.contains("ABI 5 (Linux 6.10)") && !lacks.contains("ABI 9"),
            "{lacks}"
        );
    }

    #[test]
    fn one_who_can_make_namespaces_is_enough() {
        let bwrap = Bwrap {
            path: "/usr/bin/bwrap",
            version: Some((0, 8, 0)),
            setuid: false,
            writable_by_others: false,
        };
        let fails = |why: &str| Probe::Fails(why.to_owned());
        let with = |own: Probe, bwrap: Option<Bwrap>, acts: Probe| Host {
            user_namespaces: own,
            bwrap,
            bwrap_acts: acts,
            ..host(Some(7), Probe::Works)
        };
        let own = with(Probe::Works, None, Probe::Untried);
        assert_eq!((own.regime(), own.maker()), (Regime::Namespaces, Some(Maker::Stockade)));
        let other = with(fails("no"), Some(bwrap), Probe::Works);
        assert_eq!(
            (other.regime(), other.maker()),
            (Regime::Namespaces, Some(Maker::Bwrap(bwrap)))
        );
        assert!(own.namespaces_lacks().is_empty() && other.namespaces_lacks().is_empty());
        let setuid = Bwrap { setuid: true, ..bwrap };
        for nobody in [
            with(fails("no"), None, Probe::Untried),
            with(fails("no"), Some(bwrap), fails("neither")),
            with(fails("no"), Some(setuid), Probe::Untried),
        ] {
            assert_eq!((nobody.regime(), nobody.maker()), (Regime::Landlock, None));
            assert_eq!(nobody.namespaces_lacks()[0], "no");
            assert_eq!(nobody.namespaces_lacks().len(), 2, "{nobody:?}");
        }
    }

    #[test]
    fn without_seccomp_there_is_no_regime() {
        let host = Host {
            seccomp: Probe::Fails("no".to_owned()),
            ..host(Some(7), Probe::Works)
        };
        assert_eq!(
            (host.regime(), host.landlock_lacks()),
            (Regime::None, vec!["seccomp: no".to_owned()])
        );
    }

    #[test]
    fn within_roots_is_named_as_lost_only_below_its_abi() {
        let names = |abi| {
            host(Some(abi), Probe::Works).regimes()[1]
                .cannot_hold
                .join("\n")
                .contains("within_roots")
        };
        assert!(names(8) && !names(9));
    }
}
