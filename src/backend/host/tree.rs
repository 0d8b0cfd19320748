//! The limits of a process tree: enforced by the kernel, or sampled.
//!
//! Where a control group was [delegated](DelegatedGroup) the kernel holds both in one of its own for each command.
//!
//! Since Linux 5.14 `RLIMIT_NPROC` counts per user namespace. In one of its own, where nothing else runs, the kernel so
//! counts the command's processes and threads and refuses one more. The root of the host is never counted: such
//! a start is told apart here, and each forker that stands on the count tries it before its first command.

use serde::Serialize;

use super::delegated::DelegatedGroup;
use crate::backend::Regime;

/// How a limit of a process tree is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitEnforcement {
    /// By the kernel: what would go over it fails.
    Exact,
    /// It is measured about twenty times a second, and the tree killed when it is over.
    Sampled,
}

const IN_A_GROUP: &str = "the kernel bounds each command in a control group of its own (cgroup v2)";

/// How one limit is enforced in one regime here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeLimit {
    /// Its name in `shell.limits`.
    pub limit: &'static str,
    /// The regime.
    pub regime: Regime,
    /// How.
    pub hold: LimitEnforcement,
    /// By what, or why not by the kernel.
    pub why: &'static str,
}

impl TreeLimit {
    /// `limits.processes`.
    pub fn processes(regime: Regime) -> Self {
        match regime {
            Regime::Landlock | Regime::Namespaces if DelegatedGroup::find().is_ok() => Self {
                limit: "processes",
                regime,
                hold: LimitEnforcement::Exact,
                why: IN_A_GROUP,
            },
            Regime::Landlock | Regime::Namespaces | Regime::Seatbelt | Regime::None => {
                Self::processes_without_group(regime)
            }
        }
    }

    /// The same for a command that is in no control group of its own.
    pub fn processes_without_group(regime: Regime) -> Self {
        let (hold, why) = match regime {
            Regime::Namespaces if is_root_of_the_host() => (
                LimitEnforcement::Sampled,
                "the kernel does not count what root runs (RLIMIT_NPROC)",
            ),
            Regime::Namespaces => (
                LimitEnforcement::Exact,
                "the kernel counts what runs in the sandbox's user namespace (RLIMIT_NPROC)",
            ),
            Regime::Landlock | Regime::Seatbelt | Regime::None => (
                LimitEnforcement::Sampled,
                "without a user namespace of its own the kernel would count all that the user runs",
            ),
        };
        Self {
            limit: "processes",
            regime,
            hold,
            why,
        }
    }

    /// `limits.memory`.
    pub fn memory(regime: Regime) -> Self {
        let (hold, why) = match (regime, DelegatedGroup::find()) {
            (Regime::Landlock | Regime::Namespaces, Ok(_)) => (LimitEnforcement::Exact, IN_A_GROUP),
            (Regime::Seatbelt | Regime::None, Ok(_)) => (
                LimitEnforcement::Sampled,
                "a command that nothing confines could leave its group",
            ),
            (Regime::Landlock | Regime::Namespaces | Regime::Seatbelt | Regime::None, Err(why)) => {
                (LimitEnforcement::Sampled, why.why())
            }
        };
        Self {
            limit: "memory",
            regime,
            hold,
            why,
        }
    }

    /// Both, in the regimes that confine.
    pub fn all() -> Vec<Self> {
        let regimes = [Regime::Namespaces, Regime::Landlock].into_iter();
        regimes
            .flat_map(|regime| [Self::processes(regime), Self::memory(regime)])
            .collect()
    }
}

/// Whether this process is, or may be, root outside every user namespace.
fn is_root_of_the_host() -> bool {
    nix::unistd::geteuid().is_root()
        && std::fs::read_to_string("/proc/self/uid_map").map_or(true, |map| maps_root_to_root(&map))
}

/// Whether uid 0 is uid 0 one level further out; that this is so all the way out is assumed.
fn maps_root_to_root(map: &str) -> bool {
    let first = |line: &str| {
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    map.lines()
        .filter_map(first)
        .all(|(inside, outside)| inside != 0 || outside == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_container_is_not_root_of_the_host() {
        assert!(maps_root_to_root("         0          0 4294967295\n"));
        assert!(maps_root_to_root("0 0 1\n1 100000 65536\n"));
        assert!(!maps_root_to_root("         0     100000      65536\n"));
        // What cannot be read counts as the worst.
        assert!(maps_root_to_root(""));
    }

    #[test]
    fn nothing_is_called_exact_without_a_group_or_a_user_namespace() {
        let is_delegated = DelegatedGroup::find().is_ok();
        for limit in TreeLimit::all() {
            assert!(
                is_delegated || limit.regime == Regime::Namespaces || limit.hold == LimitEnforcement::Sampled,
                "{limit:?}"
            );
        }
    }
}
