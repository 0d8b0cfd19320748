//! Wishes → as few and as small changes as permit them.

use std::collections::{BTreeMap, BTreeSet};

use super::risk::Surroundings;
use super::wish::{Wish, given, host_bounded, wish};
use super::{Proposal, Standing};
use crate::config::amend::{Change, NewRoot, Widened, Writing};
use crate::policy::{AbsPath, Demand, Origin, Place, Policy, Right, Rights, Root, Scope};
use crate::tools::explain::{Explained, Wanted};
use crate::tools::inspect::explain::writing;
use crate::tools::network::NetworkUse;
use crate::tools::outcome::Outcome;

/// How many files of one directory are proposed one by one.
const FEW: usize = 3;

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposals {
    /// What would permit more, lowest risk first, then by what is done with it, then by path.
    pub proposed: Vec<Proposal>,
    /// What stays denied.
    pub standing: Vec<Standing>,
    /// Whether hosts were wanted whose names nobody knows.
    pub some_host: bool,
}

/// What would permit what was denied to a command that ran under this policy.
///
/// `looks` says whether what it only looked for counts: programs look for much that they can do without.
pub fn propose(policy: &Policy, outcome: &Outcome, around: &Surroundings, looks: Looks) -> Proposals {
    let mut found = Proposals::default();
    let Some(explained) = &outcome.explained else {
        return found;
    };
    around.rest();
    let mut gathered = Gathered::of(policy, explained, looks, &mut found);
    gathered.hosts(policy, explained, outcome.network.as_ref(), &mut found);
    gathered.merge(around, policy);
    let writing = explained
        .call
        .as_ref()
        .map_or(Writing::Asked, |call| writing(&call.asked));
    let mut names: BTreeSet<String> = policy.roots.iter().map(|root| root.name.clone()).collect();
    for ((path, scope), wanted) in gathered.files {
        let need = Need {
            path,
            scope,
            rights: wanted.rights,
        };
        match need.change(policy, writing, &mut names) {
            Ok(change) => found.add(change, wanted.denied, around, policy),
            Err(why) => found.standing.extend(wanted.denied.into_iter().map(|denied| Standing {
                denied,
                why: why.clone(),
            })),
        }
    }
    for (path, denied) in gathered.names {
        found.add(Change::List(path), denied, around, policy);
    }
    for (change, denied) in gathered.others {
        found.add(change, denied, around, policy);
    }
    found
        .proposed
        .sort_by_key(|proposal| (proposal.judged.risk, weight(proposal)));
    found
}

/// Among those of one risk: what is only read, what is executed, what is written, what is reached.
const fn weight(proposal: &Proposal) -> u8 {
    match &proposal.change {
        Change::Host(_) | Change::Sockets(_) => 3,
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
    fn add(&mut self, change: Change, denied: Vec<String>, around: &Surroundings, policy: &Policy) {
        self.proposed.push(Proposal::of(change, denied, around, policy));
    }
}

/// What is wanted of one place.
#[derive(Debug, Clone, Default)]
struct Wanting {
    rights: Rights,
    denied: Vec<String>,
}

#[derive(Debug, Default)]
struct Gathered {
    files: BTreeMap<(AbsPath, Scope), Wanting>,
    names: BTreeMap<AbsPath, Vec<String>>,
    others: Vec<(Change, Vec<String>)>,
}

impl Gathered {
    fn of(policy: &Policy, explained: &Explained, looks: Looks, found: &mut Proposals) -> Self {
        let mut gathered = Self::default();
        for blocked in &explained.blocked {
            let denied = format!("{} {}", blocked.wanted, blocked.what);
            if blocked.wanted == Wanted::Look && looks == Looks::LeftOut {
                let why = "it was only looked for, and nothing is proposed for that as long as there is something else"
                    .to_owned();
                found.standing.push(Standing { denied, why });
                continue;
            }
            match wish(policy, blocked) {
                Wish::File(path, scope, rights) => {
                    let wanting = gathered.files.entry((path, scope)).or_default();
                    wanting.rights = wanting.rights | rights;
                    wanting.denied.push(denied);
                }
                Wish::Names(path) => gathered.names.entry(path).or_default().push(denied),
                Wish::Host(place) => gathered.host(policy, explained, place, denied, found),
                Wish::SomeHost => {
                    found.some_host = true;
                    let why = "which host it wanted is not known: name it with `--include HOST:PORTS`; once a host is listed, \
                               others that are refused are proposed by name";
                    found.standing.push(Standing {
                        denied,
                        why: why.to_owned(),
                    });
                }
                Wish::Sockets(sockets) => gathered.other(Change::Sockets(sockets), denied),
                Wish::Nothing(why) => found.standing.push(Standing { denied, why }),
            }
        }
        gathered
    }

    /// The hosts that the proxy refused.
    fn hosts(&mut self, policy: &Policy, explained: &Explained, network: Option<&NetworkUse>, found: &mut Proposals) {
        for tried in network.iter().flat_map(|network| &network.attempts) {
            let denied = format!("connect {}", tried.place);
            match tried.unlisted().map(Place::parse) {
                Some(Ok(place)) => self.host(policy, explained, place, denied, found),
                Some(Err(error)) => found.standing.push(Standing {
                    denied,
                    why: format!("it cannot be listed: {error}"),
                }),
                None => {}
            }
        }
    }

    fn host(&mut self, policy: &Policy, explained: &Explained, place: Place, denied: String, found: &mut Proposals) {
        let own = explained.call.as_ref().is_some_and(|call| call.network.is_some());
        let why = if own {
            Some("a rule has a network of its own, which is changed by a person".to_owned())
        } else {
            host_bounded(policy, &place)
        };
        match why {
            Some(why) => found.standing.push(Standing { denied, why }),
            None => self.other(Change::Host(place), denied),
        }
    }

    fn other(&mut self, change: Change, denied: String) {
        match self.others.iter_mut().find(|(known, _)| *known == change) {
            Some((_, all)) => all.push(denied),
            None => self.others.push((change, vec![denied])),
        }
    }

    /// Takes together what lies in one directory, where that gives nothing more away, and drops what lies in something larger.
    fn merge(&mut self, around: &Surroundings, policy: &Policy) {
        let mut by_directory: BTreeMap<AbsPath, Vec<AbsPath>> = BTreeMap::new();
        for (path, scope) in self.files.keys() {
            if let (Scope::File, Some(parent)) = (scope, path.parent()) {
                by_directory.entry(parent).or_default().push(path.clone());
            }
        }
        for (directory, files) in by_directory.into_iter().filter(|(_, files)| files.len() > FEW) {
            let wanted = || {
                files
                    .iter()
                    .filter_map(|file| self.files.get(&(file.clone(), Scope::File)))
            };
            let rights = wanted().fold(Rights::NONE, |all, wanting| all | wanting.rights);
            let alike = wanted().all(|wanting| wanting.rights == rights);
            let risk = |path: &AbsPath, scope| around.place(path, scope, rights, policy).risk;
            let each = files.iter().map(|file| risk(file, Scope::File)).max();
            if alike && each.is_some_and(|each| risk(&directory, Scope::Tree) <= each) {
                let mut denied = Vec::new();
                for file in files {
                    denied.extend(
                        self.files
                            .remove(&(file, Scope::File))
                            .map(|wanting| wanting.denied)
                            .into_iter()
                            .flatten(),
                    );
                }
                let wanting = self.files.entry((directory, Scope::Tree)).or_default();
                wanting.rights = wanting.rights | rights;
                wanting.denied.extend(denied);
            }
        }
        let trees: Vec<(AbsPath, Rights)> = self
            .files
            .iter()
            .filter(|((_, scope), _)| *scope == Scope::Tree)
            .map(|((path, _), wanting)| (path.clone(), wanting.rights))
            .collect();
        let around_it = |path: &AbsPath, rights: Rights| {
            trees
                .iter()
                .find(|(tree, given)| path.is_below(tree) && given.contains(rights))
                .map(|(tree, _)| tree.clone())
        };
        let inner = self
            .files
            .iter()
            .filter_map(|(key, wanting)| Some((key.clone(), around_it(&key.0, wanting.rights)?)));
        for (key, tree) in inner.collect::<Vec<_>>() {
            let denied = self.files.remove(&key).map(|wanting| wanting.denied);
            self.denied_by(tree, denied);
        }
        let listed = self.names.keys().filter_map(|path| {
            let tree = trees.iter().find(|(tree, _)| path.is_within(tree))?;
            Some((path.clone(), tree.0.clone()))
        });
        for (path, tree) in listed.collect::<Vec<_>>() {
            let denied = self.names.remove(&path);
            self.denied_by(tree, denied);
        }
        let outer: Vec<AbsPath> = self.names.keys().cloned().collect();
        self.names
            .retain(|path, _| !outer.iter().any(|other| path.is_below(other)));
    }

    fn denied_by(&mut self, tree: AbsPath, denied: Option<Vec<String>>) {
        // An outermost tree stays; one in between has gone with what it took.
        if let Some(wanting) = self.files.get_mut(&(tree, Scope::Tree)) {
            wanting.denied.extend(denied.into_iter().flatten());
        }
    }
}

/// Rights on a place.
struct Need {
    path: AbsPath,
    scope: Scope,
    rights: Rights,
}

impl Need {
    /// The change that gives them, or why a person has to make it.
    fn change(self, policy: &Policy, writing: Writing, names: &mut BTreeSet<String>) -> Result<Change, String> {
        // A root speaks in the place of all that is around it, so it keeps what that gives.
        let around = given(policy, &self.path, self.scope);
        let Some(speaker) = policy.speaker(&self.path) else {
            return Ok(self.root(around, writing, names));
        };
        let root = &speaker.name;
        if speaker.read_approval != Demand::None
            || (speaker.rights.has(Right::Write) && speaker.write_approval != Demand::None)
        {
            return Err(format!(
                "the root `{root}` is asked about, and something in it would not be"
            ));
        }
        if speaker.suffixes.is_some() || speaker.max_file_bytes.is_some() {
            return Err(format!(
                "the root `{root}` limits names or sizes; a person says what may go beyond that"
            ));
        }
        let own = matches!(speaker.origin, Origin::File { .. });
        // A program that is built anew is another file each time.
        let replaced = self.rights.has(Right::Execute) && speaker.rights.has(Right::Write);
        if own && (speaker.path == self.path || replaced) {
            return Ok(self.widen(speaker, writing));
        }
        if speaker.path == self.path && !speaker.denies.is_empty() {
            return Err(format!(
                "the root `{root}` of a preset forbids parts of itself; a person writes one in its place"
            ));
        }
        Ok(self.root(around | speaker.rights, writing, names))
    }

    fn widen(self, root: &Root, writing: Writing) -> Change {
        Change::Widen(Widened {
            name: root.name.clone(),
            path: root.path.clone(),
            scope: root.scope,
            rights: self.rights.without(root.rights),
            writing,
        })
    }

    fn root(self, around: Rights, writing: Writing, names: &mut BTreeSet<String>) -> Change {
        let name = name(&self.path, names);
        names.insert(name.clone());
        Change::Root(NewRoot {
            name,
            rights: self.rights | around | Rights::READ,
            path: self.path,
            scope: self.scope,
            writing,
        })
    }
}

/// A name for a root, of letters that every name may have.
fn name(path: &AbsPath, taken: &BTreeSet<String>) -> String {
    let last = path.name().map(crate::policy::path::display).unwrap_or_default();
    let good = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let last: String = last.chars().filter(good).take(40).collect();
    let base = match last.trim_start_matches(['-', '.']) {
        "" => "learned".to_owned(),
        last => format!("learned-{last}"),
    };
    let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
    let mut all = std::iter::once(base.clone()).chain(numbered);
    all.find(|name| !taken.contains(name)).unwrap_or(base)
}
