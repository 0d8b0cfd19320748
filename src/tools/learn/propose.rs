//! Wishes → as few and as small changes as permit them.

use std::collections::BTreeSet;

use super::gathered::{Denied, Gathered, Wanting};
use super::need::Need;
use super::risk::Surroundings;
use super::trial::{Trial, Verdict};
use super::{Needs, Proposal, Standing, batch};
use crate::config::amend::{Change, NewRoot, Widened, Writing};
use crate::policy::{AbsPath, Policy, Right, Scope};
use crate::tools::inspect::explain::writing;
use crate::tools::outcome::Outcome;

/// How many files of one directory are proposed one by one.
pub(super) const FEW: usize = 3;

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    /// What would permit more, lowest risk first, then by what is done with it, then by path.
    pub proposed: Vec<Proposal>,
    /// What stays denied.
    pub standing: Vec<Standing>,
    /// Whether hosts were wanted whose names nobody knows.
    pub some_host: bool,
    /// Whether anything was denied that a change could permit, as far as nobody tried it.
    pub wanted: bool,
}

/// What would permit what was denied to a command that ran under this policy.
///
/// `looks` says whether what it only looked for counts: programs look for much that they can do without.
pub fn propose(
    policy: &Policy,
    outcome: &Outcome,
    around: &Surroundings,
    looks: Looks,
    trial: &Trial<'_>,
) -> Proposals {
    let mut found = Proposals::default();
    let Some(explained) = &outcome.explained else {
        return found;
    };
    around.rest();
    let mut gathered = Gathered::of(policy, explained, looks, &mut found);
    gathered.hosts(policy, explained, outcome.network.as_ref(), &mut found);
    let writing = explained
        .call
        .as_ref()
        .map_or(Writing::Asked, |call| writing(&call.asked));
    let names = policy.roots.iter().map(|root| root.name.clone()).collect();
    found.wanted = !gathered.files.is_empty() || !gathered.names.is_empty() || !gathered.others.is_empty();
    gathered.sift(policy, writing, &names, (trial, batch::ALL), &mut found);
    let alone = gathered.files.clone();
    gathered.merge(around, policy);
    let mut ready = Ready {
        policy,
        writing,
        names,
        trial,
        all: Vec::new(),
    };
    for ((path, scope), wanting) in gathered.files {
        let need = |key: &(AbsPath, Scope), rights| Need {
            path: key.0.clone(),
            scope: key.1,
            rights,
        };
        let Wanting {
            rights,
            denied,
            parts,
            tried,
        } = wanting;
        if ready.file(need(&(path, scope), rights), &denied, tried).is_ok() {
            continue;
        }
        // What cannot be given together can be given one by one.
        for key in parts {
            let Some(part) = alone.get(&key) else {
                continue;
            };
            if let Err(why) = ready.file(need(&key, part.rights), &part.denied, part.tried) {
                found.stands(part.denied.clone(), &why);
            }
        }
    }
    let names = gathered.names.into_iter();
    let names: Vec<_> = names.map(|(path, denied)| (Change::List(path), denied)).collect();
    // None of them lies in another by now.
    let stood = batch::standing(&names, batch::ALL, |batch| {
        let changes: Vec<&Change> = batch.iter().map(|(change, _)| change).collect();
        let denied: Vec<Denied<'_>> = batch.iter().flat_map(|(_, denied)| denied.clone()).collect();
        trial.stand(&changes, &denied)
    });
    let names = names.into_iter().zip(stood);
    let names = names.map(|(name, stood)| (name, stood.then_some(Needs::Nothing)));
    let others = gathered.others.into_iter().map(|other| (other, None));
    for ((change, denied), tried) in names.chain(others) {
        if let Err(why) = ready.change(change, &denied, tried) {
            found.stands(denied, &why);
        }
    }
    let undone: Vec<String> = ready
        .all
        .iter()
        .filter(|one| one.needs == Needs::Undo)
        .flat_map(Tried::texts)
        .collect();
    for one in ready.all {
        let denied = one.texts().collect();
        found
            .proposed
            .push(Proposal::of(one.change, denied, one.needs, around, policy));
    }
    if !undone.is_empty() {
        let undo = Proposal::of(Change::Undo, undone, Needs::Nothing, around, policy);
        found.proposed.push(undo);
    }
    found
        .proposed
        .sort_by_key(|proposal| (proposal.judged.risk, weight(proposal)));
    found
}

/// A change that was tried, and what it permits.
struct Tried<'a> {
    change: Change,
    denied: Vec<Denied<'a>>,
    needs: Needs,
}

impl Tried<'_> {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.denied.iter().map(|denied| denied.text.clone())
    }
}

/// The changes so far.
struct Ready<'a, 'b> {
    policy: &'a Policy,
    writing: Writing,
    names: BTreeSet<String>,
    trial: &'a Trial<'a>,
    all: Vec<Tried<'b>>,
}

impl<'b> Ready<'_, 'b> {
    fn file(&mut self, need: Need, denied: &[Denied<'b>], tried: Option<Needs>) -> Result<(), String> {
        let change = need.change(self.policy, self.writing, &mut self.names)?;
        self.change(change, denied, tried)
    }

    /// Takes in a change, as one with what is known of the same root; what was tried by itself stands if it stays by itself.
    fn change(&mut self, change: Change, denied: &[Denied<'b>], tried: Option<Needs>) -> Result<(), String> {
        let same = self.all.iter().position(|known| is_of_one_root(&known.change, &change));
        let mut denied = denied.to_vec();
        let change = match same.and_then(|at| self.all.get(at)) {
            Some(known) => {
                denied.splice(0..0, known.denied.iter().cloned());
                together(&known.change, change)
            }
            None => change,
        };
        let (needs, stay) = match (tried, same) {
            (Some(needs), None) => (needs, Vec::new()),
            (Some(_) | None, _) => match self.trial.of(&change, &denied) {
                Verdict::Held(needs, stay) => (needs, stay),
                Verdict::Refused(why) => return Err(why),
            },
        };
        if let Some(why) = stay.into_iter().flatten().next() {
            return Err(why);
        }
        let tried = Tried { change, denied, needs };
        match same.and_then(|at| self.all.get_mut(at)) {
            Some(known) => *known = tried,
            None => self.all.push(tried),
        }
        Ok(())
    }
}

/// Whether two changes are about the same root.
fn is_of_one_root(one: &Change, other: &Change) -> bool {
    match (one, other) {
        (Change::Widen(one), Change::Widen(other)) => one.name == other.name,
        (Change::Root(one), Change::Root(other)) => one.path == other.path && one.scope == other.scope,
        (
            Change::Root(_) | Change::Widen(_) | Change::List(_) | Change::Host(_) | Change::Sockets(_) | Change::Undo,
            _,
        ) => false,
    }
}

/// The stronger one of a root that is known and another change of it.
fn together(known: &Change, change: Change) -> Change {
    match (known, change) {
        (Change::Widen(known), Change::Widen(more)) => Change::Widen(Widened {
            rights: known.rights | more.rights,
            ..more
        }),
        (Change::Root(known), Change::Root(more)) => Change::Root(NewRoot {
            name: known.name.clone(),
            rights: known.rights | more.rights,
            ..more
        }),
        (
            Change::Root(_) | Change::Widen(_) | Change::List(_) | Change::Host(_) | Change::Sockets(_) | Change::Undo,
            other,
        ) => other,
    }
}

/// Among those of one risk: what is only read, what is executed, what is written, what is reached.
const fn weight(proposal: &Proposal) -> u8 {
    match &proposal.change {
        Change::Host(_) | Change::Sockets(_) | Change::Undo => 3,
        Change::Root(_) | Change::Widen(_) | Change::List(_) => {
            match (proposal.adds.has(Right::Write), proposal.adds.has(Right::Execute)) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            }
        }
    }
}

/// Whether what was only looked for is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// It is.
    Proposed,
    /// It is not.
    LeftOut,
}

impl Proposals {
    /// Notes what stays denied.
    pub(super) fn stands<'a>(&mut self, denied: impl IntoIterator<Item = Denied<'a>>, why: &str) {
        self.standing.extend(denied.into_iter().map(|denied| Standing {
            denied: denied.text,
            why: why.to_owned(),
        }));
    }
}
