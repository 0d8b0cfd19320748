//! What a plan depends on beside the profile: what a start brings along, and what it makes first.

use super::Inspection;
use crate::backend::host::program;
use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::policy::{AbsPath, Policy, Root};
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
    let found = watched::present(&inspection.policy, &inspection.approved, &inspection.person);
    let found = found.map_err(|error| error.to_string())?;
    let needs =
        program::needs().map_err(|error| format!("failed to tell what this program needs to start: {error}"))?;
    let paths = |list: Vec<std::path::PathBuf>| {
        let paths: Result<Vec<AbsPath>, _> = list.into_iter().map(AbsPath::new).collect();
        paths.map_err(|error| error.to_string())
    };
    Ok(Surroundings {
        protect: paths(found)?,
        shown: paths(needs)?,
    })
}
