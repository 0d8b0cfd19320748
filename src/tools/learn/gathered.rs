//! What is wanted, place by place: each tried by itself, then taken together where that gives nothing more away.

use std::collections::{BTreeMap, BTreeSet};

use super::batch::standing;
use super::need::Need;
use super::propose::{Looks, Proposals};
use super::trial::{Trial, Verdict};
use super::wish::{Wish, host_bounded, wish};
use super::{Needs, Standing};
use crate::config::amend::{Change, Writing};
use crate::policy::{AbsPath, Place, Policy, Right, Rights, Scope};
use crate::tools::explain::{Blocked, Explained, Wanted};
use crate::tools::network::NetworkUse;

/// A denial.
#[derive(Debug, Clone)]
pub(super) struct Denied<'a> {
    /// In words.
    pub(super) text: String,
    /// What would permit it, of a file.
    pub(super) rights: Rights,
    /// As it was explained; none of what the proxy refused.
    pub(super) blocked: Option<&'a Blocked>,
}

/// A place, as it is now.
type Key = (AbsPath, Scope);

/// What is wanted of one place.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanting<'a> {
    pub(super) rights: Rights,
    pub(super) denied: Vec<Denied<'a>>,
    /// The places that were taken together.
    pub(super) parts: Vec<Key>,
    /// What it needs, where it was tried as it is.
    pub(super) tried: Option<Needs>,
}

fn need(key: &Key, rights: Rights) -> Need {
    Need {
        path: key.0.clone(),
        scope: key.1,
        rights,
    }
}

impl<'a> Wanting<'a> {
    fn need(&self, key: &Key) -> Need {
        need(key, self.rights)
    }

    pub(super) fn take(&mut self, other: Wanting<'a>) {
        self.rights = self.rights | other.rights;
        self.denied.extend(other.denied);
        self.parts.extend(other.parts);
        self.tried = None;
    }
}

#[derive(Debug, Default)]
pub(super) struct Gathered<'a> {
    pub(super) files: BTreeMap<Key, Wanting<'a>>,
    pub(super) names: BTreeMap<AbsPath, Vec<Denied<'a>>>,
    pub(super) others: Vec<(Change, Vec<Denied<'a>>)>,
}

impl<'a> Gathered<'a> {
    pub(super) fn of(policy: &Policy, explained: &'a Explained, looks: Looks, found: &mut Proposals) -> Self {
        let mut gathered = Self::default();
        for blocked in &explained.blocked {
            let text = format!("{} {}", blocked.wanted, blocked.what);
            if blocked.wanted == Wanted::Look && looks == Looks::LeftOut {
                let why = "it was only looked for, and nothing is proposed for that as long as there is something else"
                    .to_owned();
                found.standing.push(Standing { denied: text, why });
                continue;
            }
            let denied = |rights| Denied {
                text: text.clone(),
                rights,
                blocked: Some(blocked),
            };
            match wish(policy, blocked) {
                Wish::File(path, scope, rights) => {
                    let key = (path, scope);
                    let wanting = gathered.files.entry(key.clone()).or_default();
                    wanting.rights = wanting.rights | rights;
                    wanting.denied.push(denied(rights));
                    wanting.parts = vec![key];
                }
                Wish::Names(path) => gathered.names.entry(path).or_default().push(denied(Rights::READ)),
                Wish::Host(place) => gathered.host(policy, explained, place, denied(Rights::NONE), found),
                Wish::SomeHost => {
                    found.some_host = true;
                    let why = "which host it wanted is not known: name it with `--include HOST:PORTS`; once a host is listed, \
                               others that are refused are proposed by name";
                    found.standing.push(Standing {
                        denied: text,
                        why: why.to_owned(),
                    });
                }
                Wish::Sockets(sockets) => gathered.other(Change::Sockets(sockets), denied(Rights::NONE)),
                Wish::Nothing(why) => found.standing.push(Standing { denied: text, why }),
            }
        }
        gathered
    }

    /// The hosts that the proxy refused.
    pub(super) fn hosts(
        &mut self,
        policy: &Policy,
        explained: &Explained,
        network: Option<&NetworkUse>,
        found: &mut Proposals,
    ) {
        for tried in network.iter().flat_map(|network| &network.attempts) {
            let denied = Denied {
                text: format!("connect {}", tried.place),
                rights: Rights::NONE,
                blocked: None,
            };
            match tried.unlisted().map(Place::parse) {
                Some(Ok(place)) => self.host(policy, explained, place, denied, found),
                Some(Err(error)) => found.stands([denied], &format!("it cannot be listed: {error}")),
                None => {}
            }
        }
    }

    fn host(
        &mut self,
        policy: &Policy,
        explained: &Explained,
        place: Place,
        denied: Denied<'a>,
        found: &mut Proposals,
    ) {
        let own = explained.call.as_ref().is_some_and(|call| call.network.is_some());
        let why = if own {
            Some("a rule has a network of its own, which is changed by a person".to_owned())
        } else {
            host_bounded(policy, &place)
        };
        match why {
            Some(why) => found.stands([denied], &why),
            None => self.other(Change::Host(place), denied),
        }
    }

    fn other(&mut self, change: Change, denied: Denied<'a>) {
        match self.others.iter_mut().find(|(known, _)| *known == change) {
            Some((_, all)) => all.push(denied),
            None => self.others.push((change, vec![denied])),
        }
    }

    /// The places of new roots that stand together, tried `most` at a time.
    fn standing(
        &self,
        policy: &Policy,
        writing: Writing,
        taken: &BTreeSet<String>,
        trial: &Trial<'_>,
        most: usize,
    ) -> BTreeSet<Key> {
        let mut names = taken.clone();
        let mut roots = self.files.iter().filter_map(|(key, wanting)| {
            let change = wanting.need(key).change(policy, writing, &mut names).ok()?;
            matches!(change, Change::Root(_)).then_some((key, wanting, change))
        });
        let roots: Vec<_> = roots.by_ref().collect();
        // A root speaks in the place of those around it, so what lies in another is tried by itself, and so is the other.
        let mut paths: BTreeMap<&AbsPath, usize> = BTreeMap::new();
        for (key, ..) in &roots {
            *paths.entry(&key.0).or_default() += 1;
        }
        let outer = |path: &AbsPath| -> Vec<AbsPath> {
            let around = path.ancestors().filter(|above| above != path);
            around.filter(|above| paths.contains_key(above)).collect()
        };
        let around: BTreeSet<AbsPath> = roots.iter().flat_map(|(key, ..)| outer(&key.0)).collect();
        let is_apart = |path: &AbsPath| paths.get(path) == Some(&1) && !around.contains(path) && outer(path).is_empty();
        let apart: Vec<_> = roots.into_iter().filter(|(key, ..)| is_apart(&key.0)).collect();
        let stood = standing(&apart, most, |batch| {
            let changes: Vec<&Change> = batch.iter().map(|(.., change)| change).collect();
            let denied: Vec<Denied<'_>> = batch
                .iter()
                .flat_map(|(_, wanting, _)| wanting.denied.clone())
                .collect();
            trial.stand(&changes, &denied)
        });
        let stood = apart.iter().zip(stood).filter(|(_, stood)| *stood);
        stood.map(|((key, ..), _)| (*key).clone()).collect()
    }

    /// Leaves what a change of its own would permit, so that nothing is asked for the sake of what stays denied all the same;
    /// tried `most` at a time.
    pub(super) fn sift(
        &mut self,
        policy: &Policy,
        writing: Writing,
        taken: &BTreeSet<String>,
        (trial, most): (&Trial<'_>, usize),
        found: &mut Proposals,
    ) {
        let standing = self.standing(policy, writing, taken, trial, most);
        for (key, wanting) in std::mem::take(&mut self.files) {
            if standing.contains(&key) {
                let tried = Some(Needs::Nothing);
                self.files.insert(key, Wanting { tried, ..wanting });
                continue;
            }
            let mut left = wanting.denied;
            while !left.is_empty() {
                let rights = left.iter().fold(Rights::NONE, |all, denied| all | denied.rights);
                let verdict = match need(&key, rights).change(policy, writing, &mut taken.clone()) {
                    Ok(change) => trial.of(&change, &left),
                    Err(why) => Verdict::Refused(why),
                };
                match verdict {
                    Verdict::Held(needs, stay) if stay.iter().all(Option::is_none) => {
                        let wanting = Wanting {
                            rights,
                            denied: std::mem::take(&mut left),
                            parts: vec![key.clone()],
                            tried: Some(needs),
                        };
                        self.files.insert(key.clone(), wanting);
                    }
                    Verdict::Held(_, stay) => {
                        let mut rest = Vec::new();
                        for (denied, why) in left.into_iter().zip(stay) {
                            match why {
                                Some(why) => found.stands([denied], &why),
                                None => rest.push(denied),
                            }
                        }
                        left = rest;
                    }
                    // Less of it may be possible: where nothing can be written, something may be read.
                    Verdict::Refused(why) => {
                        let (most, rest) = strongest(left);
                        found.stands(most, &why);
                        left = rest;
                    }
                }
            }
        }
    }
}

/// What wants most of a place, and the rest, which wants less.
fn strongest(denied: Vec<Denied<'_>>) -> (Vec<Denied<'_>>, Vec<Denied<'_>>) {
    let wanted = [Right::Write, Right::Execute]
        .into_iter()
        .find(|right| denied.iter().any(|denied| denied.rights.has(*right)));
    match wanted {
        Some(right) => denied.into_iter().partition(|denied| denied.rights.has(right)),
        None => (denied, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_not_all_of_it_can_be_given_what_wants_less_is_left() {
        let denied = |rights| Denied {
            text: format!("{rights}"),
            rights,
            blocked: None,
        };
        let texts = |all: &[Denied<'_>]| all.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
        let all = vec![
            denied(Rights::READ),
            denied(Rights::READ | Rights::WRITE),
            denied(Rights::READ | Rights::EXECUTE),
        ];
        let (most, rest) = strongest(all);
        assert_eq!((texts(&most), rest.len()), (vec!["read+write".to_owned()], 2));
        let (most, rest) = strongest(rest);
        assert_eq!(
            (texts(&most), texts(&rest)),
            (vec!["read+execute".to_owned()], vec!["read".to_owned()])
        );
        // It ends.
        assert!(strongest(rest).1.is_empty());
    }
}
