//! Denials → the fewest and smallest changes that permit them, each tried.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::proposal::{Proposal, StillDenied};
use super::remedy::{Remedy, host_bounded, remedy};
use super::risk::Surroundings;
use super::root_change::root_change;
use crate::config::amend::{Change, Widened, Writing};
use crate::confine::ConfineError;
use crate::policy::{AbsPath, Destination, Policy, Right, Rights, Scope};
use crate::profile::Call;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::explain::{Explained, Wanted, writing};
use crate::tools::outcome::Outcome;

/// The proposals after a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    /// What would permit more, lowest risk first, then by what is done with it, then by path.
    pub proposed: Vec<Proposal>,
    /// What stays denied.
    pub still_denied: Vec<StillDenied>,
}

/// What changes are tried with, before anybody is asked about them: the config with it must load, and something here must hold it.
/// Nothing else says which places a config can grant.
#[expect(missing_debug_implementations, reason = "one part is a function")]
pub struct Trial<'a> {
    /// What runs the command; nothing is started with it.
    pub executor: &'a Executor,
    /// What the command was permitted.
    pub call: Call,
    /// The file of the config that is changed.
    pub file: Option<&'a Path>,
    /// What was accepted before.
    pub accepted: &'a [Change],
    /// The policy of the config with this change in it, or why there is none.
    pub amended: &'a dyn Fn(&Change) -> Result<Policy, String>,
}

impl Trial<'_> {
    /// Checks that a change would load and could be enforced.
    fn try_change(&self, change: &Change) -> Result<(), String> {
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
    surroundings: &Surroundings,
    hosts: &[Change],
    trial: &Trial<'_>,
) -> Proposals {
    let Some(explained) = &outcome.explained else {
        return Proposals::default();
    };
    surroundings.reset_limit();
    let mut collector = Collector::default();
    collector.explained(policy, explained);
    collector.hosts(policy, explained, outcome, hosts, trial);
    let how = explained
        .call
        .as_ref()
        .map_or(Writing::Asked, |call| writing(&call.approved_roots));
    collector.roots((policy, trial.file), how);
    let mut still_denied = collector.still_denied;
    let mut proposed: Vec<Proposal> = Vec::new();
    for (change, denied) in collector.changes {
        match trial.try_change(&change) {
            Ok(()) => proposed.push(Proposal::of(change, denied, surroundings, policy)),
            Err(why) => still_denied.extend(denied.into_iter().map(|denied| StillDenied {
                denied,
                why: why.clone(),
            })),
        }
    }
    outermost(&mut proposed, policy, |proposal| &proposal.change);
    proposed.sort_by_key(|proposal| (proposal.rating.risk, effect_order(proposal)));
    Proposals { proposed, still_denied }
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
    let mut granted: BTreeMap<(bool, usize, &AbsPath), (Scope, Rights)> = BTreeMap::new();
    for (path, scope, rights) in all.iter().filter_map(|one| gives(policy, change(one))) {
        let key = (scope == Scope::Names, path.ancestors().count(), path);
        let (_, known) = granted.entry(key).or_insert((scope, Rights::NONE));
        *known = *known | rights;
    }
    // The nearest root around a path decides there. What a person's own roots give is theirs: only whether they are executed counts.
    let own = policy.roots.iter().filter(|root| !new.contains_key(root.name.as_str()));
    let mut nearest: BTreeMap<AbsPath, (Option<Rights>, bool)> = own
        .map(|root| (root.path.clone(), (None, root.rights.has(Right::Execute))))
        .collect();
    let mut dropped = BTreeSet::new();
    for ((names, _, path), (scope, rights)) in granted {
        let mut surroundings = path.ancestors().skip(usize::from(!names));
        let around = surroundings.find_map(|above| nearest.get(&above)).copied();
        let (more, is_executed) = around.unwrap_or((None, false));
        // A root in one that is executed is executed, as a change says nothing of that.
        let rights = if is_executed { rights | Rights::EXECUTE } else { rights };
        let is_new = names || new.values().any(|root| *root == path);
        if is_new && more.is_some_and(|more| more.contains(rights)) {
            dropped.insert((path.clone(), names));
        } else if !names {
            let was_executed = nearest.get(path).is_some_and(|(_, executed)| *executed);
            let is_executed = scope == Scope::Tree && (was_executed || rights.has(Right::Execute));
            nearest.insert(path.clone(), ((scope == Scope::Tree).then_some(rights), is_executed));
        }
    }
    all.retain(|one| {
        gives(policy, change(one))
            .is_none_or(|(path, scope, _)| !dropped.contains(&(path.clone(), scope == Scope::Names)))
    });
}

/// The rights that a change gives, and where.
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
struct Collector {
    /// What is wanted of each place, as it is now.
    files: BTreeMap<(AbsPath, Scope), (Rights, Vec<String>)>,
    changes: Vec<(Change, Vec<String>)>,
    still_denied: Vec<StillDenied>,
    some_host: bool,
}

impl Collector {
    fn explained(&mut self, policy: &Policy, explained: &Explained) {
        let only_looked = explained.blocked.iter().all(|blocked| blocked.wanted == Wanted::Look);
        for blocked in &explained.blocked {
            let denied = format!("{} {}", blocked.wanted, blocked.what);
            // Programs look for much that they can do without.
            if blocked.wanted == Wanted::Look && !only_looked {
                let why = "it was only looked for, and nothing is proposed for that as long as there is something else";
                self.keep_denied(denied, why);
                continue;
            }
            match remedy(policy, blocked) {
                Remedy::File(path, scope, rights) => {
                    let (all, list) = self.files.entry((path, scope)).or_default();
                    *all = *all | rights;
                    list.push(denied);
                }
                Remedy::Names(path) => self.change(Change::List(path), denied),
                Remedy::Host(host) => self.host(policy, explained, host, denied),
                Remedy::SomeHost => {
                    self.some_host = true;
                    let why = "which host it wanted is not known: name it with `--include HOST:PORTS`; once a host is listed, \
                               others that are refused are proposed by name";
                    self.keep_denied(denied, why);
                }
                Remedy::Nothing(why) => self.keep_denied(denied, &why),
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
                Some(Ok(host)) => self.host(policy, explained, host, denied),
                Some(Err(error)) => self.keep_denied(denied, &format!("it cannot be listed: {error}")),
                None => {}
            }
        }
        let needs_host = self.some_host;
        let named = hosts.iter().filter(|host| needs_host && !trial.accepted.contains(host));
        for host in named {
            self.change(host.clone(), "connect".to_owned());
        }
    }

    fn host(&mut self, policy: &Policy, explained: &Explained, host: Destination, denied: String) {
        let own = explained.call.as_ref().is_some_and(|call| call.network.is_some());
        let why = if own {
            Some("a rule has a network of its own, which is changed by a person".to_owned())
        } else {
            host_bounded(policy, &host)
        };
        match why {
            Some(why) => self.keep_denied(denied, &why),
            None => self.change(Change::Host(host), denied),
        }
    }

    /// The changes that give what is wanted of places.
    fn roots(&mut self, (policy, file): (&Policy, Option<&Path>), writing: Writing) {
        let mut names: BTreeSet<String> = policy.roots.iter().map(|root| root.name.clone()).collect();
        for ((path, scope), (rights, all)) in std::mem::take(&mut self.files) {
            let change = root_change((path, scope), rights, (policy, file), writing, &mut names);
            for denied in all {
                match &change {
                    Ok(change) => self.change(change.clone(), denied),
                    Err(why) => self.keep_denied(denied, why),
                }
            }
        }
    }

    /// Adds a change, merged with one of the same root.
    fn change(&mut self, change: Change, denied: String) {
        for (known, all) in &mut self.changes {
            let merged = match (&*known, &change) {
                (Change::Widen(known), Change::Widen(more)) if known.name == more.name => {
                    Some(Change::Widen(Widened {
                        rights: known.rights | more.rights,
                        ..known.clone()
                    }))
                }
                (known, change) => (known == change).then(|| change.clone()),
            };
            if let Some(merged) = merged {
                *known = merged;
                all.push(denied);
                return;
            }
        }
        self.changes.push((change, vec![denied]));
    }

    fn keep_denied(&mut self, denied: String, why: &str) {
        self.still_denied.push(StillDenied {
            denied,
            why: why.to_owned(),
        });
    }
}

/// Among those of one risk: what is only read, what is executed, what is written, what is reached.
const fn effect_order(proposal: &Proposal) -> u8 {
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
