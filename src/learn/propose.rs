//! What was denied → as few and as small changes as permit it, each tried.

use std::collections::{BTreeMap, BTreeSet};

use super::need::Need;
use super::proposal::{Proposal, Standing};
use super::risk::Surroundings;
use super::wish::{Wish, host_bounded, wish};
use crate::config::amend::{Change, Widened, Writing};
use crate::confine::ConfineError;
use crate::policy::{AbsPath, Destination, Policy, Right, Rights, Scope};
use crate::profile::Call;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::explain::{Explained, Wanted, writing};
use crate::tools::outcome::Outcome;

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    /// What would permit more, lowest risk first, then by what is done with it, then by path.
    pub proposed: Vec<Proposal>,
    /// What stays denied.
    pub standing: Vec<Standing>,
}

/// What changes are tried with, before anybody is asked about them: the config with it must load, and something here must hold it.
/// Nothing else says which places a config can grant.
#[expect(missing_debug_implementations, reason = "one part is a function")]
pub struct Trial<'a> {
    /// What runs the command; nothing is started with it.
    pub executor: &'a Executor,
    /// What the command was permitted.
    pub call: Call,
    /// What was accepted before.
    pub accepted: &'a [Change],
    /// The policy of the config with this change in it, or why there is none.
    pub amended: &'a dyn Fn(&Change) -> Result<Policy, String>,
}

impl Trial<'_> {
    /// Why a change is not proposed, if it is not.
    fn of(&self, change: &Change) -> Result<(), String> {
        if self.accepted.contains(change) {
            return Err("what would permit it was accepted, and it is denied all the same".to_owned());
        }
        let policy = (self.amended)(change)?;
        self.executor
            .can_enforce_call(&policy, &self.call)
            .map_err(|refused| match refused {
                ToolError::Confine(ConfineError::NoPrivateDirectory(_)) => {
                    format!("the config cannot grant it: {refused}")
                }
                _ => format!("a config that permits it could not be held: {refused}"),
            })
    }
}

/// What would permit what was denied to a command that ran under this policy. `hosts` were named for who wants one that nobody knows.
pub fn propose(
    policy: &Policy,
    outcome: &Outcome,
    around: &Surroundings,
    hosts: &[Change],
    trial: &Trial<'_>,
) -> Proposals {
    let Some(explained) = &outcome.explained else {
        return Proposals::default();
    };
    around.rest();
    let mut wanted = Gathered::default();
    wanted.explained(policy, explained);
    wanted.hosts(policy, explained, outcome, hosts, trial);
    let how = explained
        .call
        .as_ref()
        .map_or(Writing::Asked, |call| writing(&call.asked));
    wanted.roots(policy, how);
    let mut standing = wanted.standing;
    let mut proposed: Vec<Proposal> = Vec::new();
    for (change, denied) in wanted.changes {
        match trial.of(&change) {
            Ok(()) => proposed.push(Proposal::of(change, denied, around, policy)),
            Err(why) => standing.extend(denied.into_iter().map(|denied| Standing {
                denied,
                why: why.clone(),
            })),
        }
    }
    outermost(&mut proposed, policy, |proposal| &proposal.change);
    proposed.sort_by_key(|proposal| (proposal.judged.risk, weight(proposal)));
    Proposals { proposed, standing }
}

/// Leaves out new roots and names that lie in a directory of which as much is given: a clause that changes nothing is one more to be
/// read, and a root that is one file cannot be replaced by a command.
pub fn outermost<T>(all: &mut Vec<T>, policy: &Policy, change: impl Fn(&T) -> &Change) {
    let new: BTreeMap<&str, &AbsPath> = all
        .iter()
        .filter_map(|one| match change(one) {
            Change::Root(root) => Some((root.name.as_str(), &root.path)),
            Change::Widen(_) | Change::List(_) | Change::Host(_) => None,
        })
        .collect();
    // Outer ones first, and roots before names.
    let mut given: BTreeMap<(bool, usize, &AbsPath), (Scope, Rights)> = BTreeMap::new();
    for (path, scope, rights) in all.iter().filter_map(|one| gives(policy, change(one))) {
        let key = (scope == Scope::Names, path.ancestors().count(), path);
        let (_, known) = given.entry(key).or_insert((scope, Rights::NONE));
        *known = *known | rights;
    }
    // The root that is nearest around a place speaks of it; of a person's own nothing is known.
    let own = policy.roots.iter().filter(|root| !new.contains_key(root.name.as_str()));
    let mut speakers: BTreeMap<AbsPath, Option<Rights>> = own.map(|root| (root.path.clone(), None)).collect();
    let mut dropped = BTreeSet::new();
    for ((names, _, path), (scope, rights)) in given {
        let mut around = path.ancestors().skip(usize::from(!names));
        let more = around.find_map(|above| speakers.get(&above)).copied().flatten();
        // A root in one that is executed is executed, as a change says nothing of that.
        let rights = match more {
            Some(more) if more.has(Right::Execute) => rights | Rights::EXECUTE,
            Some(_) | None => rights,
        };
        let is_new = names || new.values().any(|root| *root == path);
        if is_new && more.is_some_and(|more| more.contains(rights)) {
            dropped.insert((path.clone(), names));
        } else if !names {
            speakers.insert(path.clone(), (scope == Scope::Tree).then_some(rights));
        }
    }
    all.retain(|one| {
        gives(policy, change(one))
            .is_none_or(|(path, scope, _)| !dropped.contains(&(path.clone(), scope == Scope::Names)))
    });
}

/// What a change of this policy gives, and where.
fn gives<'a>(policy: &Policy, change: &'a Change) -> Option<(&'a AbsPath, Scope, Rights)> {
    match change {
        Change::Root(root) => Some((&root.path, root.scope, root.rights)),
        Change::Widen(widened) => {
            let root = policy.roots.iter().find(|root| root.name == widened.name);
            let had = root.map_or(Rights::READ, |root| root.rights);
            Some((&widened.path, widened.scope, had | widened.rights))
        }
        Change::List(path) => Some((path, Scope::Names, Rights::READ)),
        Change::Host(_) => None,
    }
}

#[derive(Default)]
struct Gathered {
    /// What is wanted of each place, as it is now.
    files: BTreeMap<(AbsPath, Scope), (Rights, Vec<String>)>,
    changes: Vec<(Change, Vec<String>)>,
    standing: Vec<Standing>,
    some_host: bool,
}

impl Gathered {
    fn explained(&mut self, policy: &Policy, explained: &Explained) {
        let only_looked = explained.blocked.iter().all(|blocked| blocked.wanted == Wanted::Look);
        for blocked in &explained.blocked {
            let denied = format!("{} {}", blocked.wanted, blocked.what);
            // Programs look for much that they can do without.
            if blocked.wanted == Wanted::Look && !only_looked {
                let why = "it was only looked for, and nothing is proposed for that as long as there is something else";
                self.stands(denied, why);
                continue;
            }
            match wish(policy, blocked) {
                Wish::File(path, scope, rights) => {
                    let (all, list) = self.files.entry((path, scope)).or_default();
                    *all = *all | rights;
                    list.push(denied);
                }
                Wish::Names(path) => self.change(Change::List(path), denied),
                Wish::Host(place) => self.host(policy, explained, place, denied),
                Wish::SomeHost => {
                    self.some_host = true;
                    let why = "which host it wanted is not known: name it with `--include HOST:PORTS`; once a host is listed, \
                               others that are refused are proposed by name";
                    self.stands(denied, why);
                }
                Wish::Nothing(why) => self.stands(denied, &why),
            }
        }
    }

    /// The hosts that the proxy refused, and those that were named where nobody knows which one was wanted.
    fn hosts(
        &mut self,
        policy: &Policy,
        explained: &Explained,
        outcome: &Outcome,
        hosts: &[Change],
        trial: &Trial<'_>,
    ) {
        for tried in outcome.network.iter().flat_map(|network| &network.attempts) {
            let denied = format!("connect {}", tried.place);
            match tried.unlisted().map(Destination::parse) {
                Some(Ok(place)) => self.host(policy, explained, place, denied),
                Some(Err(error)) => self.stands(denied, &format!("it cannot be listed: {error}")),
                None => {}
            }
        }
        let is_asked_for = self.some_host;
        let named = hosts
            .iter()
            .filter(|host| is_asked_for && !trial.accepted.contains(host));
        for host in named {
            self.change(host.clone(), "connect".to_owned());
        }
    }

    fn host(&mut self, policy: &Policy, explained: &Explained, destination: Destination, denied: String) {
        let own = explained.call.as_ref().is_some_and(|call| call.network.is_some());
        let why = if own {
            Some("a rule has a network of its own, which is changed by a person".to_owned())
        } else {
            host_bounded(policy, &destination)
        };
        match why {
            Some(why) => self.stands(denied, &why),
            None => self.change(Change::Host(destination), denied),
        }
    }

    /// The changes that give what is wanted of places.
    fn roots(&mut self, policy: &Policy, writing: Writing) {
        let mut names: BTreeSet<String> = policy.roots.iter().map(|root| root.name.clone()).collect();
        for ((path, scope), (rights, all)) in std::mem::take(&mut self.files) {
            let change = Need { path, scope, rights }.change(policy, writing, &mut names);
            for denied in all {
                match &change {
                    Ok(change) => self.change(change.clone(), denied),
                    Err(why) => self.stands(denied, why),
                }
            }
        }
    }

    /// Takes a change in, as one with what is known of the same root.
    fn change(&mut self, change: Change, denied: String) {
        for (known, all) in &mut self.changes {
            let together = match (&*known, &change) {
                (Change::Widen(known), Change::Widen(more)) if known.name == more.name => {
                    Some(Change::Widen(Widened {
                        rights: known.rights | more.rights,
                        ..known.clone()
                    }))
                }
                (known, change) => (known == change).then(|| change.clone()),
            };
            if let Some(together) = together {
                *known = together;
                all.push(denied);
                return;
            }
        }
        self.changes.push((change, vec![denied]));
    }

    fn stands(&mut self, denied: String, why: &str) {
        self.standing.push(Standing {
            denied,
            why: why.to_owned(),
        });
    }
}

/// Among those of one risk: what is only read, what is executed, what is written, what is reached.
const fn weight(proposal: &Proposal) -> u8 {
    match &proposal.change {
        Change::Host(_) => 3,
        Change::Root(_) | Change::Widen(_) | Change::List(_) => {
            match (proposal.adds.has(Right::Write), proposal.adds.has(Right::Execute)) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            }
        }
    }
}
