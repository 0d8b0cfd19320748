//! Private copies that are shown in the place of protected files.
//!
//! A command changes its copy; the host reads its own file. After the command the copy is judged, and harmless changes are
//! applied to the host's file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::matches::matching;
use crate::backend::landlock::LandlockPlan;
use crate::backend::survey::Survey;
use crate::policy::{AbsPath, Deny, Target};
use crate::profile::Profile;

/// A private copy of a protected file or directory, and where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrivateCopy {
    /// The protected path.
    pub path: AbsPath,
    /// Where the copy lies, outside of everything that is granted.
    pub source: AbsPath,
}

/// The copies that can be shown, and those that cannot, because clauses narrow something inside the protected path.
pub(super) fn partition_copies<'a>(
    copies: &'a [PrivateCopy],
    open: &[&Deny],
    profile: &Profile,
    survey: &Survey,
) -> (Vec<&'a PrivateCopy>, Vec<&'a PrivateCopy>) {
    let can_be_shown = |copy: &&PrivateCopy| copy.is_unnarrowed(profile, open, survey);
    copies.iter().partition(can_be_shown)
}

/// Changes the rules on protected paths to the inodes of their copies.
pub(super) fn retarget_rules(copies: &[&PrivateCopy], shown: &[AbsPath], layer: &mut LandlockPlan, survey: &Survey) {
    let shown = copies.iter().filter(|copy| shown.contains(&copy.path));
    for (copy, node) in shown.filter_map(|copy| Some((copy, survey.node(&copy.source)?))) {
        let path = copy.path.as_path().as_os_str();
        for rule in layer.rules.iter_mut().filter(|rule| rule.path == path) {
            (rule.device, rule.inode) = (node.identity.device, node.identity.inode);
        }
    }
}

impl PrivateCopy {
    /// Whether this is what is shown there.
    pub(super) fn is_shown(&self, source: &OsStr, at: &OsStr) -> bool {
        self.source.as_bytes() == source.as_bytes() && self.path.as_bytes() == at.as_bytes()
    }

    /// Whether no clause grants or denies anything below the protected path. Otherwise a copy could show what is denied. An
    /// open pattern denies what is there by now.
    fn is_unnarrowed(&self, profile: &Profile, open: &[&Deny], survey: &Survey) -> bool {
        let touches = |path: &AbsPath| path.is_within(&self.path);
        let denied = profile.denies.iter().any(|deny| match &deny.target {
            Target::Path(path) => touches(path) || deny.covers(&self.path),
            Target::Pattern { root, .. } if !open.contains(&deny) => touches(root) || self.path.is_within(root),
            Target::Pattern { .. } => false,
        });
        let matched = matching(open, survey);
        let denied = denied
            || matched
                .iter()
                .any(|(path, _)| touches(path) || self.path.is_within(path));
        !denied && !profile.grants.iter().any(|grant| touches(&grant.path))
    }
}
