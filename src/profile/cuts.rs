//! What a policy asks beyond its ceilings, line by line.
//!
//! One walk over the representatives of each pair tells every operation that the policy gives and the
//! ceiling does not. Each is put to the most specific grant that asks for it, so the answer names a line
//! and not thousands of paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::derive::{Asked, Call, own};
use super::index::Index;
use super::order::{FileReach, Landmarks, Reach};
use super::profile::Profile;
use crate::policy::{AbsPath, Access, Ceiling, Cut, Deny, Grant, Lost, Operation, Origin, Policy, Rights, Target};

/// Everything the policy asks for and does not get, sorted by the line that asks.
pub fn cuts(policy: &Policy) -> Vec<Cut> {
    let mut all = policy.ceilings.cuts.clone();
    if policy.ceilings.all.is_empty() {
        return all;
    }
    let (freely, at_most) = (Call::of(Asked::Nobody), Call::of(Asked::Everything));
    let (unasked, asked) = (own(policy, &freely), own(policy, &at_most));
    for ceiling in &policy.ceilings.all {
        let most = own(&ceiling.policy, &at_most);
        for (line, lost) in between(&asked, None, &most) {
            let Loss {
                rights,
                witness,
                clause,
            } = lost;
            all.push(line.cut(ceiling, clause, |path| Lost::Files { rights, path, witness }));
        }
        // What not even a yes would give has been told.
        for (line, lost) in between(&unasked, Some(&most), &own(&ceiling.policy, &freely)) {
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

/// The grant that asks.
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

/// What it loses, with the first path that does, and the clause that decides there.
#[derive(Debug)]
struct Loss {
    rights: Rights,
    witness: AbsPath,
    clause: Option<Origin>,
}

/// What `wide` gives, within `most`, and `tight` does not, by the grant of `wide` that gives it.
fn between(wide: &Profile, most: Option<&Profile>, tight: &Profile) -> BTreeMap<Line, Loss> {
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
    let mut losses: BTreeMap<Line, Loss> = BTreeMap::new();
    let found: Option<()> = landmarks.search(|path| {
        let (more, within): (Reach, Reach) = (in_wide(path), in_tight(path));
        let most = in_most.as_ref().map(|most| most(path));
        for operation in Operation::ALL {
            let left = within.get(operation);
            let open = most.map_or(Access::Full, |most| most.get(operation));
            let given = more.get(operation).min(open);
            if given <= left {
                continue;
            }
            let asks = |grant: &&&Grant| grant.gives(operation, path) > left;
            let Some(grant) = asking.above(path).filter(asks).last() else {
                continue;
            };
            let line = Line {
                origin: grant.origin.clone(),
                path: grant.path.clone(),
            };
            let loss = losses.entry(line).or_insert_with(|| Loss {
                rights: Rights::NONE,
                witness: path.clone(),
                clause: decides(&giving, &tight.denies, operation, path, given),
            });
            loss.rights = loss.rights | operation.right().into();
        }
        None
    });
    debug_assert_eq!(found, None);
    losses
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
    asked: Access,
) -> Option<Origin> {
    let takes = |deny: &&Deny| deny.leaves(operation, path) < asked;
    let nearest = |deny: &&Deny| match &deny.target {
        Target::Path(at) | Target::Pattern { root: at, .. } => at.as_bytes().len(),
    };
    let decisive = denies.iter().filter(takes).max_by_key(nearest);
    decisive
        .map(|deny| deny.origin.clone())
        .or_else(|| grants.above(path).last().map(|grant| grant.origin.clone()))
}
