//! What becomes of clauses that no lowering speaks of: protected names that are there, and the network.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use crate::backend::Plan;
use crate::backend::status::{ClauseStatus, Status};
use crate::policy::{AbsPath, HostAccess, Network};
use crate::profile::Profile;
use crate::tools::plan::Surroundings;

/// The protected names that are there, each with what becomes of it; those that are `said` already are not said again.
pub(super) fn covered(plan: &Plan, around: &Surroundings, said: &[ClauseStatus]) -> Vec<ClauseStatus> {
    let held: BTreeSet<&OsStr> = plan
        .world
        .iter()
        .flat_map(|world| world.protected.iter().map(OsString::as_os_str))
        .collect();
    let row = |path: &AbsPath| ClauseStatus {
        clause: format!("protect {path}"),
        origin: "sandbox.protect".to_owned(),
        status: if held.contains(path.as_path().as_os_str()) {
            Status::Enforced
        } else {
            Status::Undone
        },
    };
    let rows = around.protect.iter().map(row);
    rows.filter(|row| !said.iter().any(|said| said.clause == row.clause))
        .collect()
}

/// Off or on, the filters hold it exactly; so does the proxy each entry of a list.
pub(super) fn network(profile: &Profile) -> Vec<ClauseStatus> {
    let clause = |clause: String, origin: String| ClauseStatus {
        clause,
        origin,
        status: Status::Enforced,
    };
    match &profile.network {
        Network::Off | Network::Full => {
            vec![clause(
                format!("network {}", profile.network),
                "shell.network".to_owned(),
            )]
        }
        Network::Hosts(list) => {
            let rules = list.rules().iter();
            rules
                .map(|rule| {
                    let after = match rule.access {
                        HostAccess::Asked => " after a question",
                        HostAccess::Free | HostAccess::Denied => "",
                    };
                    clause(format!("connect {}{after}", rule.place), rule.origin.to_string())
                })
                .collect()
        }
    }
}
