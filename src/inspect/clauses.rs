//! What becomes of clauses that no lowering speaks of: protected names that are there, what commands have of their own, and
//! the network.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use super::hosts::network_status;
use crate::backend::status::{ClauseStatus, Status};
use crate::backend::{Plan, Regime};
use crate::policy::{AbsPath, HostAccess, Network};
use crate::profile::Profile;
use crate::tools::plan::Surroundings;

/// The status of existing protected names, without those that are `listed` already.
pub(super) fn protected_names(plan: &Plan, surroundings: &Surroundings, listed: &[ClauseStatus]) -> Vec<ClauseStatus> {
    let covered: BTreeSet<&OsStr> = plan
        .namespaces
        .iter()
        .flat_map(|namespace_plan| namespace_plan.protected.iter().map(OsString::as_os_str))
        .collect();
    let row = |path: &AbsPath| ClauseStatus {
        clause: format!("protect {path}"),
        origin: "sandbox.protect".to_owned(),
        status: if covered.contains(path.as_path().as_os_str()) {
            Status::Enforced
        } else {
            Status::Undone
        },
    };
    let rows = surroundings.protect.iter().map(row);
    rows.filter(|row| !listed.iter().any(|listed| listed.clause == row.clause))
        .collect()
}

/// The status of private directories.
pub(super) fn private_directories(regime: Regime) -> Vec<ClauseStatus> {
    let directories = [
        ("/tmp", "what is not granted of the host's cannot be used"),
        ("/dev", "what is not granted of the host's cannot be used"),
        (
            "/proc",
            "what is not granted of the host's cannot be read, and that is most of what a process could read of itself",
        ),
    ];
    let row = |(path, without): (&str, &str)| ClauseStatus {
        clause: format!("{path} of its own"),
        origin: "built in".to_owned(),
        status: match regime {
            Regime::Namespaces => Status::Enforced,
            Regime::Landlock | Regime::Seatbelt | Regime::None => Status::Stricter(format!("there is none: {without}")),
        },
    };
    directories.into_iter().map(row).collect()
}

/// The status of the network: filters enforce off and on, the proxy each entry of a list.
pub(super) fn network(profile: &Profile, regime: Regime) -> Vec<ClauseStatus> {
    let clause = |clause: String, origin: String| ClauseStatus {
        clause,
        origin,
        status: Status::Enforced,
    };
    match &profile.network {
        Network::Off | Network::Full => {
            let stricter = network_status(&profile.network, regime).detail;
            vec![ClauseStatus {
                status: stricter.map_or(Status::Enforced, |what| Status::Stricter(what.to_owned())),
                ..clause(format!("network {}", profile.network), "shell.network".to_owned())
            }]
        }
        Network::Hosts(list) => {
            let rules = list.rules().iter();
            rules
                .map(|rule| {
                    let after = match rule.access {
                        HostAccess::Asked => " after a question",
                        HostAccess::Free | HostAccess::Denied => "",
                    };
                    clause(format!("connect {}{after}", rule.destination), rule.origin.to_string())
                })
                .collect()
        }
    }
}
