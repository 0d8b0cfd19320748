//! What lies on the disk that patterns deny.
//!
//! A mount covers what exists. So what a pattern names is looked for before each command, and where it is something else than
//! what the mounts of a session cover, the session begins again with others.

use std::collections::{BTreeMap, BTreeSet};

use super::own::in_own;
use crate::backend::clauses::obstacles::{Obstacles, at};
use crate::backend::landlock::lower::by_entry;
use crate::backend::survey::{Kind, Mounts, Node, Survey, SurveyError};
use crate::policy::{AbsPath, Deny, DenyFallback, Grant, Identity, Residuals, Right, Target};
use crate::profile::Profile;
use crate::profile::index::Index;

/// Whether names that match a pattern may appear while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewNames {
    /// They may not: the start is refused where one could.
    Refused,
    /// They may, and are covered from the next command on.
    Admitted,
}

impl NewNames {
    /// What a config says of them.
    pub const fn under(fallback: DenyFallback, residuals: Residuals) -> Self {
        if fallback.admits_new_names(residuals) {
            Self::Admitted
        } else {
            Self::Refused
        }
    }
}

/// Whether a deny is a pattern whose new names can be admitted: it takes all of what it names from reading.
pub(super) fn is_coverable(deny: &Deny) -> bool {
    match &deny.target {
        Target::Path(_) => false,
        Target::Pattern { root, .. } => {
            let is_plain = deny.except.is_none() && deny.beyond.is_none() && deny.rights.has(Right::Read);
            is_plain && !in_own(root) && *root != AbsPath::root()
        }
    }
}

/// The patterns whose new names are admitted.
pub(super) fn open_patterns(new_names: NewNames, profile: &Profile) -> Vec<&Deny> {
    match new_names {
        NewNames::Refused => Vec::new(),
        NewNames::Admitted => profile.denies.iter().filter(|deny| is_coverable(deny)).collect(),
    }
}

/// What lies on the disk that these patterns name, and nothing below it.
pub(super) fn matching(denies: &[&Deny], survey: &Survey) -> Vec<(AbsPath, Node)> {
    if denies.is_empty() {
        return Vec::new();
    }
    let is_named = |path: &AbsPath| {
        denies.iter().any(|deny| match &deny.target {
            Target::Path(_) => false,
            Target::Pattern { root, pattern } => {
                path.is_below(root) && path.name().is_some_and(|name| pattern.matches(name))
            }
        })
    };
    let found = survey.nodes().filter(|(path, node)| {
        node.kind != Kind::Symlink
            && !in_own(path)
            && is_named(path)
            && !path.ancestors().skip(1).any(|up| is_named(&up))
    });
    found.map(|(path, node)| (path.clone(), node)).collect()
}

/// What patterns named at some moment, and which inodes that were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches(BTreeMap<AbsPath, Identity>);

impl Matches {
    /// Those that a survey for the profile has seen; `None` where no pattern has to be looked for.
    pub fn seen(profile: &Profile, survey: &Survey) -> Option<Self> {
        let patterns: Vec<&Deny> = patterns(profile).collect();
        let found = matching(&patterns, survey).into_iter();
        let found = found.map(|(path, node)| (path, node.identity)).collect();
        (!patterns.is_empty()).then_some(Self(found))
    }

    /// Those that are there now.
    ///
    /// # Errors
    /// Not all could be looked at.
    pub fn look(profile: &Profile) -> Result<Self, SurveyError> {
        let part = Profile {
            denies: patterns(profile).cloned().collect(),
            ..profile.clone()
        };
        let obstacles = Obstacles::new(&part);
        let grants: Index<'_, &Grant> = part.grants.iter().map(|grant| (&grant.path, grant)).collect();
        let opens = |path: &AbsPath| {
            let mut above = grants.above(path);
            above.any(|grant| by_entry(grant, path, &obstacles, DenyFallback::Decompose))
        };
        let roots: BTreeSet<&AbsPath> = part.denies.iter().map(at).collect();
        let survey = Survey::take(roots, opens, Mounts::default())?;
        Ok(Self::seen(&part, &survey).unwrap_or_default())
    }

    /// What is new since then. What was moved is not.
    pub fn new_since<'a>(&'a self, before: &Self) -> impl Iterator<Item = &'a AbsPath> {
        let known: BTreeSet<Identity> = before.0.values().copied().collect();
        let new = self.0.iter().filter(move |(_, identity)| !known.contains(identity));
        new.map(|(path, _)| path)
    }
}

fn patterns(profile: &Profile) -> impl Iterator<Item = &Deny> {
    profile.denies.iter().filter(|deny| is_coverable(deny))
}
