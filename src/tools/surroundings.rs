//! What namespaces depend on beside the profile, where nothing is started.

use std::path::PathBuf;

use super::plan::Surroundings;
use super::protected_names;
use crate::backend::host::program;
use crate::confine::protect::Person;
use crate::policy::{AbsPath, Policy, Protect};
use crate::profile::Profile;

/// What namespaces depend on beside the profile, looked up in the way a start does. What a session brings along
/// (its private directories, the files of its self-test) is not there.
pub(crate) fn surroundings(policy: &Policy, approved: &Profile, person: &Person) -> Result<Surroundings, String> {
    let needs =
        program::needs().map_err(|error| format!("failed to tell what this program needs to start: {error}"))?;
    Ok(Surroundings {
        protect: match policy.protect {
            // What is covered is shown as a copy, in which everything may be done.
            Protect::None | Protect::Default(_) => Vec::new(),
            Protect::Prevent(_) => existing_names(policy, approved, person)?,
        },
        copies: Vec::new(),
        shown: paths(needs)?,
        veiled: Vec::new(),
        start: None,
    })
}

/// The protected names that are there.
pub(crate) fn existing_names(policy: &Policy, approved: &Profile, person: &Person) -> Result<Vec<AbsPath>, String> {
    let found = protected_names::present(policy, approved, person);
    paths(found.map_err(|error| error.to_string())?)
}

fn paths(list: Vec<PathBuf>) -> Result<Vec<AbsPath>, String> {
    let paths: Result<Vec<AbsPath>, _> = list.into_iter().map(AbsPath::new).collect();
    paths.map_err(|error| error.to_string())
}
