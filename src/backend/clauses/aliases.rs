//! Denied paths that a mount shows at a granted path, where Landlock would permit them.

use super::obstacles::at;
use crate::backend::status::Refusal;
use crate::backend::survey::Survey;
use crate::policy::{AbsPath, Deny, Grant, Rights, Target};
use crate::profile::Profile;
use crate::profile::index::{Beneath, Index};

/// Refuses when a mount shows a denied path where a grant reaches it.
pub(in crate::backend) fn refuse_aliases(
    profile: &Profile,
    granted: &Granted<'_>,
    survey: &Survey,
) -> Result<(), Refusal> {
    for deny in &profile.denies {
        for alias in survey.mounts().aliases(at(deny)) {
            if granted.near(deny.rights, &alias) {
                return Err(Refusal::Alias {
                    alias,
                    clause: deny.to_string(),
                    origin: deny.origin.to_string(),
                });
            }
        }
    }
    Ok(())
}

/// Whether the profile grants some of `rights` at the path, above it or below it, a plain deny aside.
pub(in crate::backend) struct Granted<'a> {
    placed: Index<'a, &'a Grant>,
    below: Beneath<'a, Rights>,
    plain: Index<'a, &'a Deny>,
}

impl<'a> Granted<'a> {
    pub(in crate::backend) fn new(profile: &'a Profile) -> Self {
        let mut below = Beneath::<Rights>::default();
        // Only denies are compared with this.
        let grants = if profile.denies.is_empty() {
            &[][..]
        } else {
            &profile.grants
        };
        for grant in grants {
            below.say(&grant.path, |rights| *rights = *rights | grant.rights);
        }
        let plain = |deny: &&Deny| deny.except.is_none() && deny.beyond.is_none();
        let path = |deny: &'a Deny| match &deny.target {
            Target::Path(path) => Some((path, deny)),
            Target::Pattern { .. } => None,
        };
        Self {
            placed: grants.iter().map(|grant| (&grant.path, grant)).collect(),
            below,
            plain: profile.denies.iter().filter(plain).filter_map(path).collect(),
        }
    }

    pub(in crate::backend) fn near(&self, rights: Rights, path: &AbsPath) -> bool {
        let (mut taken, mut taken_below) = (Rights::NONE, Rights::NONE);
        for deny in self.plain.above(path).filter(|deny| deny.covers(path)) {
            taken = taken | deny.rights;
            if !deny.ends_within(path) {
                taken_below = taken_below | deny.rights;
            }
        }
        let above = self
            .placed
            .above(path)
            .fold(Rights::NONE, |all, grant| all | grant.rights);
        let below = self.below.of(path).copied().unwrap_or_default();
        !(above.without(taken) | below.without(taken_below))
            .and(rights)
            .is_empty()
    }
}
