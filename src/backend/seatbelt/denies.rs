//! The denies at, above or below a grant.

use std::collections::BTreeMap;

use crate::backend::clauses::obstacles::at;
use crate::policy::{AbsPath, Deny};
use crate::profile::Profile;
use crate::profile::index::Index;

/// Denies, indexed by the path where they begin to apply.
pub(super) struct Denies<'a> {
    above: Index<'a, &'a Deny>,
    below: BTreeMap<&'a AbsPath, Vec<&'a Deny>>,
}

impl<'a> Denies<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let mut below: BTreeMap<&AbsPath, Vec<&Deny>> = BTreeMap::new();
        for deny in &profile.denies {
            below.entry(at(deny)).or_default().push(deny);
        }
        Self {
            above: profile.denies.iter().map(|deny| (at(deny), deny)).collect(),
            below,
        }
    }

    /// The denies that apply to something at or below the path.
    pub(super) fn near(&self, path: &AbsPath) -> Vec<&'a Deny> {
        let inside = self
            .below
            .range::<&AbsPath, _>(path..)
            .take_while(|(at, _)| at.is_within(path));
        let inside = inside.filter(|(at, _)| **at != path).flat_map(|(_, denies)| denies);
        self.above.above(path).chain(inside).copied().collect()
    }
}
