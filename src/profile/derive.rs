//! Policy and call → profile.
//!
//! In a policy the most specific root speaks; in a profile deny wins. So a nested root becomes a
//! grant of its own and a deny of whatever the clauses around it would give beyond it. Such a deny ends at
//! the roots inside that give some of it again. What may not be read is hidden whole, with the roots in
//! it: the profile is stricter there, never weaker.
//!
//! Two rules make the result monotone in what was asked. Grants only shrink when less was asked;
//! and what a nested root must cut is judged by what the clauses around it give *at most*, not by
//! what is left of them in this call, so denies only grow.

use std::collections::{BTreeMap, BTreeSet};

use super::canonical;
use super::index::Index;
use super::intersect::intersect;
use super::profile::Profile;
use crate::policy::{
    AbsPath, BasePath, Demand, DemandSource, Deny, Ending, Grant, Identity, Network, Origin, Policy, Right, Rights,
    Root, Scope,
};

/// The roots that a person, session memory or `approve_all` said yes to, or a rule in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovedRoots {
    /// No root: nobody was asked.
    None,
    /// The roots that rules of the config answer for in advance.
    InAdvance(InAdvance),
    /// The roots of these names.
    Named(BTreeSet<String>),
    /// All roots.
    All,
}

/// The roots for which rules that ask nobody answer. A rule answers for its `sandbox_paths`; without them, for the roots whose demand
/// is the default. A line gets what each rule in it answers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InAdvance {
    /// Whether a rule answers that names no root.
    default_only: bool,
    /// The roots that every rule names that names some.
    named: Option<BTreeSet<String>>,
}

impl InAdvance {
    /// What a rule with these `sandbox_paths` answers for.
    pub fn by(sandbox_paths: Option<&[String]>) -> Self {
        Self {
            default_only: sandbox_paths.is_none(),
            named: sandbox_paths.map(|names| names.iter().cloned().collect()),
        }
    }

    /// What both answer for.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            default_only: self.default_only || other.default_only,
            named: match (&self.named, &other.named) {
                (Some(a), Some(b)) => Some(a & b),
                (Some(names), None) | (None, Some(names)) => Some(names.clone()),
                (None, None) => None,
            },
        }
    }

    fn covers(&self, root: &Root, source: DemandSource) -> bool {
        let by_name = self.named.as_ref().is_none_or(|names| names.contains(&root.name));
        by_name && (!self.default_only || source == DemandSource::Default)
    }
}

impl ApprovedRoots {
    /// Whether it answers what the root demands, where this is who demands it.
    fn covers(&self, root: &Root, source: DemandSource) -> bool {
        match self {
            Self::None => false,
            Self::InAdvance(answered) => answered.covers(root, source),
            Self::Named(names) => names.contains(&root.name),
            Self::All => true,
        }
    }
}

/// One call, as far as its reach depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The roots that were approved for it.
    pub approved_roots: ApprovedRoots,
    /// A rule's `sandbox_paths`: the names of the only roots that writes reach.
    pub narrow: Option<Vec<String>>,
    /// The network that rules or a tool have in place of the policy's.
    pub network: Option<Network>,
}

impl Call {
    /// A call for which no rule says anything.
    pub const fn of(approved_roots: ApprovedRoots) -> Self {
        Self {
            approved_roots,
            narrow: None,
            network: None,
        }
    }

    /// The same call to a ceiling. Names are the config's own: a ceiling's root of the same name is another
    /// one, so a yes that names roots opens none of the ceiling's.
    fn for_ceiling(&self) -> Self {
        let approved_roots = match &self.approved_roots {
            ApprovedRoots::None | ApprovedRoots::InAdvance(_) | ApprovedRoots::Named(_) => ApprovedRoots::None,
            ApprovedRoots::All => ApprovedRoots::All,
        };
        Self::of(approved_roots)
    }

    /// What is left of a root's rights in this call.
    fn rights_in(&self, root: &Root) -> Rights {
        let open = |demand: Demand, source| match demand {
            Demand::None => true,
            Demand::OncePerSession | Demand::Required => self.approved_roots.covers(root, source),
            Demand::Deny => false,
        };
        // By default reading demands nothing, so what it demands is written.
        if !open(root.read_approval, DemandSource::Config) {
            return Rights::NONE;
        }
        let writable = open(root.write_approval, root.write_demand_source) && self.may_write_in(Some(root));
        if writable {
            root.rights
        } else {
            root.rights.without(Rights::WRITE)
        }
    }

    fn may_write_in(&self, root: Option<&Root>) -> bool {
        self.narrow
            .as_ref()
            .is_none_or(|names| root.is_some_and(|root| names.contains(&root.name)))
    }

    /// What is left of a base path's rights, given the root that it adds to.
    fn rights_of_base(&self, base: &BasePath, speaker: Option<&Root>) -> Rights {
        let granted = base.grant.rights;
        // What a root's approval demands holds for everything below the root, whoever gives it.
        let approved = speaker.map_or(granted, |root| granted.without(self.unapproved_rights(root)));
        // `sandbox_paths` names places for data; single device files such as /dev/null are none.
        let device = base.grant.scope == Scope::File && base.grant.path.as_bytes().starts_with(b"/dev/");
        if self.may_write_in(speaker) || device {
            approved
        } else {
            approved.without(Rights::WRITE)
        }
    }

    /// The rights that approval takes from everything below a root, had or not.
    fn unapproved_rights(&self, root: &Root) -> Rights {
        let everything = Root {
            rights: Rights::ALL,
            ..root.clone()
        };
        let unnarrowed = Self {
            narrow: None,
            ..self.clone()
        };
        Rights::ALL.without(unnarrowed.rights_in(&everything))
    }
}

/// The profile of one call: never weaker than the policy, nor than any ceiling over it.
pub fn derive(policy: &Policy, call: &Call) -> Profile {
    let ceilings = policy.ceilings.all.iter();
    ceilings.fold(own(policy, call), |left, ceiling| {
        intersect(&left, &own(&ceiling.policy, &call.for_ceiling()))
    })
}

/// What the policy gives by itself, its ceilings aside.
pub(super) fn own(policy: &Policy, call: &Call) -> Profile {
    let speakers: Index<'_, &Root> = policy
        .roots
        .iter()
        .filter(|root| root.scope != Scope::File)
        .map(|root| (&root.path, root))
        .collect();
    // A root at a base path's own path replaces it.
    let bases: Vec<&BasePath> = policy
        .base
        .iter()
        .filter(|base| speakers.exactly(&base.grant.path).next().is_none())
        .collect();

    // Sorted, outer roots come first, so that a cut below a cut is not written twice.
    let mut roots: Vec<&Root> = policy.roots.iter().collect();
    roots.sort_by(|a, b| a.path.cmp(&b.path));
    let mut draft = Draft::default();
    for base in &bases {
        let speaker = speakers.above(&base.grant.path).last().copied();
        let rights = call.rights_of_base(base, speaker);
        let granted = Grant {
            rights,
            ..base.grant.clone()
        };
        draft.grant(&base.grant.path, granted, base.identity);
    }
    let full: Vec<Grant> = roots.iter().map(|root| root.grant()).collect();
    let granted = full.iter().zip(&roots).map(|(grant, root)| (grant, Some(*root)));
    let around: Index<'_, (&Grant, Option<&Root>)> = granted
        .chain(bases.iter().map(|base| (&base.grant, None)))
        .map(|(grant, root)| (&grant.path, (grant, root)))
        .collect();
    let mut cuts: Index<'_, Deny> = Index::default();
    for (number, (grant, root)) in full.iter().zip(&roots).enumerate() {
        let left = Grant {
            rights: call.rights_in(root),
            ..grant.clone()
        };
        let around_it = cuts.above(&root.path).filter(|cut| cut.covers(&root.path));
        let already = around_it.fold(Rights::NONE, |all, cut| all | cut.rights);
        let others = around.above(&root.path);
        let outer = others.filter(|(_, whose)| whose.is_none_or(|whose| !std::ptr::eq(whose, *root)));
        let cut = Cut::between(&left, outer.map(|(grant, _)| *grant), already);
        let inside = full[number + 1..]
            .iter()
            .take_while(|inner| inner.path.is_within(&root.path));
        let denies = cut.denies(
            &left,
            &inside.filter(|inner| inner.path != root.path).collect::<Vec<_>>(),
        );
        for plain in denies
            .iter()
            .filter(|deny| deny.except.is_none() && deny.beyond.is_none())
        {
            cuts.insert(&root.path, plain.clone());
        }
        draft.denies.extend(denies);
        draft.denies.extend(root.denies.iter().cloned());
        draft.grant(&root.path, left, root.identity);
    }

    Profile {
        identities: draft.identities(),
        grants: draft.grants,
        denies: draft.denies,
        network: {
            let most = call.network.as_ref().unwrap_or(&policy.network);
            match call.approved_roots {
                ApprovedRoots::None | ApprovedRoots::InAdvance(_) => most.free_only(),
                ApprovedRoots::Named(_) | ApprovedRoots::All => most.clone(),
            }
        },
        unix_sockets: policy.unix_sockets,
        limits: policy.limits.clone(),
        environment: policy.environment.clone(),
    }
}

#[derive(Default)]
struct Draft<'a> {
    grants: Vec<Grant>,
    denies: Vec<Deny>,
    seen: Index<'a, Identity>,
    /// What was seen, in the order of the clauses.
    paths: Vec<&'a AbsPath>,
}

impl<'a> Draft<'a> {
    fn grant(&mut self, at: &'a AbsPath, grant: Grant, identity: Identity) {
        if grant.rights.is_empty() {
            return;
        }
        let known = self.seen.exactly(at).next().copied();
        if known.is_none() {
            self.seen.insert(at, identity);
            self.paths.push(at);
        }
        if known.is_none_or(|known| known == identity) {
            self.grants.push(grant);
        } else {
            // Two clauses saw two different things at one path: neither can be trusted.
            let origin = Origin::Builtin("the path led to two different files");
            self.denies.push(Deny::tree(grant.path, Rights::ALL, origin));
        }
    }

    fn identities(&self) -> BTreeMap<AbsPath, Identity> {
        let seen = |path: &AbsPath| Some((path.clone(), *self.seen.exactly(path).next()?));
        self.paths.iter().filter_map(|path| seen(path)).collect()
    }
}

/// What a nested root must take from the clauses around it.
#[derive(Default)]
struct Cut {
    /// Rights that the root does not give at all.
    plain: Rights,
    /// Rights that it gives for its suffixes only.
    by_name: Rights,
    /// Whether it limits sizes that others do not.
    by_size: bool,
}

impl Cut {
    fn between<'a>(root: &Grant, outer: impl Iterator<Item = &'a Grant>, already: Rights) -> Self {
        let content = match root.scope {
            Scope::File | Scope::Tree => root.rights,
            Scope::Names => Rights::NONE,
        };
        let mut cut = Self::default();
        for source in outer.filter(|source| source.scope != Scope::File || source.path == root.path) {
            let missing = source.rights.without(content);
            cut.plain = cut.plain | missing;
            if source.scope == Scope::Names {
                continue;
            }
            let shared = source.rights.and(content);
            if !canonical::names_within(source.suffixes.as_ref(), root.suffixes.as_ref()) {
                cut.by_name = cut.by_name | shared;
            }
            if let Some(most) = root.max_file_bytes
                && shared.has(Right::Write)
            {
                cut.by_size |= source.max_file_bytes.is_none_or(|bytes| bytes > most);
            }
        }
        cut.plain = cut.plain.without(already);
        cut.by_name = cut.by_name.without(already);
        cut.by_size &= !already.has(Right::Write);
        cut
    }

    /// The denies at a root, given the roots `inside` it.
    fn denies(&self, root: &Grant, inside: &[&Grant]) -> Vec<Deny> {
        let deny = |rights: Rights| Deny {
            ends: ends(rights, inside),
            ..Deny::tree(root.path.clone(), rights, root.origin.clone())
        };
        let mut denies = Vec::new();
        // What may not be read is hidden by one cover, and nothing shows below that.
        if self.plain.has(Right::Read) {
            denies.push(Deny::tree(root.path.clone(), self.plain, root.origin.clone()));
        } else if !self.plain.is_empty() {
            denies.push(deny(self.plain));
        }
        if !self.by_name.is_empty() {
            denies.push(Deny {
                except: root.suffixes.clone(),
                ..deny(self.by_name)
            });
        }
        if self.by_size {
            denies.push(Deny {
                beyond: root.max_file_bytes,
                ..deny(Rights::WRITE)
            });
        }
        denies
    }
}

/// The outermost of the roots that give some of the rights themselves.
fn ends(rights: Rights, inside: &[&Grant]) -> BTreeSet<Ending> {
    let mut ends: BTreeSet<Ending> = BTreeSet::new();
    for root in inside.iter().filter(|root| !root.rights.and(rights).is_empty()) {
        let end = match root.scope {
            Scope::Tree => Ending::Tree(root.path.clone()),
            Scope::File => Ending::File(root.path.clone()),
            Scope::Names => continue,
        };
        // Outer ones come first.
        if !ends.iter().any(|outer| outer.holds(&end)) {
            ends.insert(end);
        }
    }
    ends
}
