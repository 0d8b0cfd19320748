//! What a start makes first.

use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::policy::{Policy, Root};

/// Roots whose directory is made when something starts (`create: true`), and is not there yet.
pub(super) fn missing_roots(policy: &Policy) -> impl Iterator<Item = &Root> {
    policy.roots.iter().filter(|root| root.identity == ABSENT)
}

/// Their directories, as a start will have made them.
pub(super) fn survey_with_missing_roots(policy: &Policy) -> Survey {
    Survey::foreseeing(missing_roots(policy).map(|root| &root.path), ABSENT)
}
