//! Roots that a start creates first.

use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::policy::{Policy, Root};

/// Roots with `create: true` whose directory does not exist yet.
pub(super) fn missing_roots(policy: &Policy) -> impl Iterator<Item = &Root> {
    policy.roots.iter().filter(|root| root.identity == ABSENT)
}

/// A survey with their directories, as if created.
pub(super) fn survey_with_missing_roots(policy: &Policy) -> Survey {
    Survey::foreseeing(missing_roots(policy).map(|root| &root.path), ABSENT)
}
