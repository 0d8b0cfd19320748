//! The Landlock rules as they are given to the kernel, in the manner of landlockconfig.

use std::path::Path;

use serde::Serialize;

use crate::backend::landlock::{LandlockPlan, Rule, rights};
use crate::config::StoredPath;

/// A ruleset and its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// The ABI that it is written for.
    pub abi: u32,
    /// What is handled: whatever is named here and allowed by no rule is denied.
    pub ruleset: [Handled; 1],
    /// The rules, sorted by path.
    pub path_beneath: Vec<PathBeneath>,
}

/// What a ruleset handles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Handled {
    #[serde(rename = "handledAccessFs")]
    files: Vec<&'static str>,
    #[serde(rename = "handledAccessNet")]
    network: Vec<&'static str>,
    scoped: [&'static str; 2],
}

/// Rights on a path and, where it is a directory, on everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathBeneath {
    allowed_access: Vec<&'static str>,
    parent: [StoredPath; 1],
}

/// The bits by the names that the kernel's documentation gives them.
const NAMES: [(u64, &str); 17] = [
    (rights::EXECUTE, "execute"),
    (rights::WRITE_FILE, "write_file"),
    (rights::READ_FILE, "read_file"),
    (rights::READ_DIR, "read_dir"),
    (rights::REMOVE_DIR, "remove_dir"),
    (rights::REMOVE_FILE, "remove_file"),
    (rights::MAKE_CHAR, "make_char"),
    (rights::MAKE_DIR, "make_dir"),
    (rights::MAKE_REG, "make_reg"),
    (rights::MAKE_SOCK, "make_sock"),
    (rights::MAKE_FIFO, "make_fifo"),
    (rights::MAKE_BLOCK, "make_block"),
    (rights::MAKE_SYM, "make_sym"),
    (rights::REFER, "refer"),
    (rights::TRUNCATE, "truncate"),
    (rights::IOCTL_DEV, "ioctl_dev"),
    (rights::RESOLVE_UNIX, "resolve_unix"),
];

impl Rules {
    /// The rules of a plan.
    pub fn of(plan: &LandlockPlan) -> Self {
        Self {
            abi: plan.abi,
            ruleset: [Handled {
                files: names(rights::handled(plan.abi)),
                network: if plan.handle_tcp {
                    vec!["bind_tcp", "connect_tcp"]
                } else {
                    Vec::new()
                },
                scoped: ["abstract_unix_socket", "signal"],
            }],
            path_beneath: plan.rules.iter().map(rule).collect(),
        }
    }
}

fn rule(rule: &Rule) -> PathBeneath {
    PathBeneath {
        allowed_access: names(rule.access),
        parent: [StoredPath::new(Path::new(&rule.path))],
    }
}

fn names(bits: u64) -> Vec<&'static str> {
    NAMES
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| *name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_that_is_ever_handled_has_a_name() {
        let named = NAMES.iter().fold(0, |all, (bit, _)| all | bit);
        assert_eq!(named, rights::handled(u32::MAX));
    }
}
