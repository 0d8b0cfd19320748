//! What a start makes first.

use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::policy::{Policy, Root};

/// Roots whose directory is made when something starts (`create: true`), and is not there yet.
pub(super) fn to_be_made(policy: &Policy) -> impl Iterator<Item = &Root> {
    policy.roots.iter().filter(|root| root.identity == ABSENT)
}

/// Their directories, as a start will have made them.
pub(super) fn foreseen(policy: &Policy) -> Survey {
    Survey::foreseeing(to_be_made(policy).map(|root| &root.path), ABSENT)
}
