//! Paths on the disk that match denied patterns.
//!
//! A mount covers only what exists. So matches are searched before each command. If they differ from what the mounts of a session
//! cover, the session restarts with new mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::own::in_own_mount;
use crate::backend::clauses::obstacles::{Obstacles, at};
use crate::backend::landlock::lower::by_entry;
use crate::backend::status::Refusal;
use crate::backend::survey::{Kind, Mounts, Node, Survey, SurveyError, link_at};
use crate::policy::{AbsPath, Access, Deny, DenyFallback, Grant, Identity, Operation, Residuals, Right, Target};
use crate::profile::index::Index;
use crate::profile::{FileReach, Profile};

/// How often the search is repeated while directories change, and after what pause.
const TRIES: usize = 40;
const PAUSE: Duration = Duration::from_millis(25);

/// Whether names that match a pattern may appear while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewNames {
    /// No: the start is refused if one could.
    Refused,
    /// Yes; they are covered from the next command on.
    Admitted,
}

impl NewNames {
    /// What a config says.
    pub const fn under(fallback: DenyFallback, residuals: Residuals) -> Self {
        if fallback.admits_new_names(residuals) {
            Self::Admitted
        } else {
            Self::Refused
        }
    }
}

/// Whether a deny is a pattern whose new names can be admitted: it takes all reading of its matches.
pub(super) fn is_coverable(deny: &Deny) -> bool {
    match &deny.target {
        Target::Path(_) => false,
        Target::Pattern { root, .. } => {
            let is_plain = deny.except.is_none() && deny.beyond.is_none() && deny.rights.has(Right::Read);
            is_plain && !in_own_mount(root) && *root != AbsPath::root()
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

/// The matches of these patterns on the disk, without what lies below a match.
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
    let found = survey
        .nodes()
        .filter(|(path, _)| !in_own_mount(path) && is_named(path) && !path.ancestors().skip(1).any(|up| is_named(&up)));
    found.map(|(path, node)| (path.clone(), node)).collect()
}

/// Refuses a symlink that matches these patterns and leads to a file that is not denied: a mount cannot cover a link.
pub(super) fn refuse_symlinks(open: &[Deny], profile: &Profile, survey: &Survey) -> Result<(), Refusal> {
    let denies: Vec<&Deny> = open.iter().collect();
    for (path, node) in matching(&denies, survey) {
        if node.kind != Kind::Symlink {
            continue;
        }
        let led = link_at(&path).map(|link| link.leads_to);
        if led.is_some_and(|led| profile.access(Operation::Read, &led) == Access::Denied) {
            continue;
        }
        let deny = open.iter().find(|deny| deny.target.covers(&path));
        return Err(Refusal::DeniedSymlink {
            clause: deny.map(ToString::to_string).unwrap_or_default(),
            origin: deny.map(|deny| deny.origin.to_string()).unwrap_or_default(),
            path,
        });
    }
    Ok(())
}

/// The matches of patterns at one moment, with their inodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches(BTreeMap<AbsPath, Identity>);

impl Matches {
    /// The matches in a survey; `None` if the profile has no such pattern.
    pub fn seen(profile: &Profile, survey: &Survey) -> Option<Self> {
        let patterns: Vec<&Deny> = patterns(profile).collect();
        let found = matching(&patterns, survey).into_iter();
        let found = found.map(|(path, node)| (path, node.identity)).collect();
        (!patterns.is_empty()).then_some(Self(found))
    }

    /// The matches now.
    ///
    /// # Errors
    /// Not all directories could be listed.
    pub fn scan(profile: &Profile) -> Result<Self, SurveyError> {
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
        let mut unsettled = None;
        for _ in 0..TRIES {
            let survey = Survey::take(roots.iter().copied(), opens, Mounts::default())?;
            match survey.unsettled() {
                None => return Ok(Self::seen(&part, &survey).unwrap_or_default()),
                Some(path) => unsettled = Some(path.clone()),
            }
            std::thread::sleep(PAUSE);
        }
        Err(SurveyError::Busy(unsettled.unwrap_or_else(AbsPath::root)))
    }

    /// The matches that are new since then; a moved one is not.
    pub fn new_since<'a>(&'a self, before: &Self) -> impl Iterator<Item = &'a AbsPath> {
        let known: BTreeSet<Identity> = before.0.values().copied().collect();
        let new = self.0.iter().filter(move |(_, identity)| !known.contains(identity));
        new.map(|(path, _)| path)
    }
}

fn patterns(profile: &Profile) -> impl Iterator<Item = &Deny> {
    profile.denies.iter().filter(|deny| is_coverable(deny))
}
