//! What a plan depends on beside the profile: what a start brings along, and what it makes first.

use std::path::PathBuf;

use super::Inspection;
use crate::backend::host::program;
use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::policy::{AbsPath, Policy, Protect, Root};
use crate::tools::plan::Surroundings;
use crate::tools::watched;

/// Roots whose directory is made when something starts (`create: true`), and is not there yet.
pub(super) fn to_be_made(policy: &Policy) -> impl Iterator<Item = &Root> {
    policy.roots.iter().filter(|root| root.identity == ABSENT)
}

/// Their directories, as a start will have made them.
pub(super) fn foreseen(policy: &Policy) -> Survey {
    Survey::foreseeing(to_be_made(policy).map(|root| &root.path), ABSENT)
}

/// What namespaces depend on beside the profile, looked up in the way a start does. What a session brings along
/// (its private directories, the files of its self-test) is not there.
pub(in crate::tools) fn surroundings(inspection: &Inspection) -> Result<Surroundings, String> {
    let needs =
        program::needs().map_err(|error| format!("failed to tell what this program needs to start: {error}"))?;
    Ok(Surroundings {
        protect: match inspection.policy.protect {
            // What is covered is shown as a copy, in which everything may be done.
            Protect::None | Protect::Default(_) => Vec::new(),
            Protect::Prevent(_) => existing_names(inspection)?,
        },
        copies: Vec::new(),
        shown: paths(needs)?,
        veiled: Vec::new(),
    })
}

/// The protected names that are there.
pub(super) fn existing_names(inspection: &Inspection) -> Result<Vec<AbsPath>, String> {
    let found = watched::present(&inspection.policy, &inspection.approved, &inspection.person);
    paths(found.map_err(|error| error.to_string())?)
}

fn paths(list: Vec<PathBuf>) -> Result<Vec<AbsPath>, String> {
    let paths: Result<Vec<AbsPath>, _> = list.into_iter().map(AbsPath::new).collect();
    paths.map_err(|error| error.to_string())
}
