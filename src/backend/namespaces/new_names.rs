//! What is permitted where a config admits new names of a pattern.
//!
//! The reader checks existing paths, and paths that nobody looked at, against the whole profile. It checks two kinds of paths
//! against the profile without these patterns: names that are absent from a directory that was listed, and symlinks, which have
//! no content of their own.

use super::own::ProfileWithOwnMounts;
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Deny};
use crate::profile::{FileReach, Landmarks, Profile, Reach};

/// The profile without the patterns.
pub(super) fn without(profile: &Profile, open: &[&Deny]) -> Profile {
    let mut later = profile.clone();
    later.denies.retain(|deny| !open.contains(&deny));
    later
}

/// What a profile permits when patterns do not apply to new names.
pub(super) struct NewNamesReach<'a> {
    pub(super) now: &'a ProfileWithOwnMounts<'a>,
    pub(super) later: ProfileWithOwnMounts<'a>,
    pub(super) open: &'a [&'a Deny],
    pub(super) survey: &'a Survey,
}

impl FileReach for NewNamesReach<'_> {
    fn name(&self) -> &'static str {
        self.now.name()
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.now.landmarks(landmarks);
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let (now, later) = (self.now.prepared(), self.later.prepared());
        Box::new(move |path| {
            // A path that was not surveyed may exist.
            let is_link = || self.survey.node(path).is_some_and(|node| node.kind == Kind::Symlink);
            let is_new =
                self.open.iter().any(|deny| deny.target.covers(path)) && (self.survey.is_absent(path) || is_link());
            if is_new { later(path) } else { now(path) }
        })
    }
}
