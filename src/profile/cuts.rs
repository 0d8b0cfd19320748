//! The requests of a policy beyond its ceilings, line by line.
//!
//! One walk over the representatives of each pair finds every operation that the policy gives and the
//! ceiling does not. Each is attributed to the most specific grant of the policy, so the result names a line
//! and not thousands of paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::derive::{ApprovedRoots, Call, own};
use super::index::Index;
use super::order::{FileReach, Landmarks, Reach};
use super::profile::Profile;
use crate::policy::{AbsPath, Access, Ceiling, Cut, Deny, Grant, Lost, Operation, Origin, Policy, Rights};

/// Every request of the policy that a ceiling cuts, sorted by line.
pub fn cuts(policy: &Policy) -> Vec<Cut> {
    let mut all = policy.ceilings.cuts.clone();
    if policy.ceilings.all.is_empty() {
        return all;
    }
    let (unapproved, approved) = (Call::of(ApprovedRoots::None), Call::of(ApprovedRoots::All));
    let (without_approval, with_approval) = (own(policy, &unapproved), own(policy, &approved));
    for ceiling in &policy.ceilings.all {
        let most = own(&ceiling.policy, &approved);
        for (line, lost) in losses(&with_approval, None, &most) {
            let Loss {
                rights,
                witness,
                clause,
            } = lost;
            all.push(line.cut(ceiling, clause, |path| Lost::Files { rights, path, witness }));
        }
        // Cuts that no approval gives back are listed above.
        for (line, lost) in losses(&without_approval, Some(&most), &own(&ceiling.policy, &unapproved)) {
            let Loss {
                rights,
                witness,
                clause,
            } = lost;
            all.push(line.cut(ceiling, clause, |path| Lost::Unasked { rights, path, witness }));
        }
    }
    all.sort();
    all.dedup();
    all
}

/// The grant of the request.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    origin: Origin,
    path: AbsPath,
}

impl Line {
    fn cut(self, ceiling: &Ceiling, clause: Option<Origin>, what: impl FnOnce(AbsPath) -> Lost) -> Cut {
        Cut {
            origin: self.origin,
            ceiling: Arc::clone(&ceiling.file),
            clause,
            what: what(self.path),
        }
    }
}

/// The lost rights, with the first path that loses them, and the clause that decides there.
#[derive(Debug)]
struct Loss {
    rights: Rights,
    witness: AbsPath,
    clause: Option<Origin>,
}

/// What `wide` gives, within `most`, and `tight` does not, by the grant of `wide` that gives it.
fn losses(wide: &Profile, most: Option<&Profile>, tight: &Profile) -> BTreeMap<Line, Loss> {
    let mut landmarks = Landmarks::default();
    wide.landmarks(&mut landmarks);
    tight.landmarks(&mut landmarks);
    if let Some(most) = most {
        most.landmarks(&mut landmarks);
    }
    let (in_wide, in_tight) = (wide.prepared(), tight.prepared());
    let in_most = most.map(FileReach::prepared);
    let asking = index(wide);
    let giving = index(tight);
    let mut found: BTreeMap<Line, Loss> = BTreeMap::new();
    let stopped: Option<()> = landmarks.search(|path| {
        let (more, within): (Reach, Reach) = (in_wide(path), in_tight(path));
        let most = in_most.as_ref().map(|most| most(path));
        for operation in Operation::ALL {
            let remaining = within.get(operation);
            let open = most.map_or(Access::Full, |most| most.get(operation));
            let granted = more.get(operation).min(open);
            if granted <= remaining {
                continue;
            }
            let asks = |grant: &&&Grant| grant.gives(operation, path) > remaining;
            let Some(grant) = asking.above(path).filter(asks).last() else {
                continue;
            };
            let line = Line {
                origin: grant.origin.clone(),
                path: grant.path.clone(),
            };
            let loss = found.entry(line).or_insert_with(|| Loss {
                rights: Rights::NONE,
                witness: path.clone(),
                clause: decides(&giving, &tight.denies, operation, path, granted),
            });
            loss.rights = loss.rights | operation.right().into();
        }
        None
    });
    debug_assert_eq!(stopped, None);
    found
}

fn index(profile: &Profile) -> Index<'_, &Grant> {
    profile.grants.iter().map(|grant| (&grant.path, grant)).collect()
}

/// The deny that takes it, else the most specific grant that reaches there and gives less.
fn decides(
    grants: &Index<'_, &Grant>,
    denies: &[Deny],
    operation: Operation,
    path: &AbsPath,
    requested: Access,
) -> Option<Origin> {
    let takes = |deny: &&Deny| deny.leaves(operation, path) < requested;
    let nearest = |deny: &&Deny| deny.target.path().as_bytes().len();
    let decisive = denies.iter().filter(takes).max_by_key(nearest);
    decisive
        .map(|deny| deny.origin.clone())
        .or_else(|| grants.above(path).last().map(|grant| grant.origin.clone()))
}
