//! Which denies mounts can hold, and where.
//!
//! A read-deny is held by a mask, a write-deny by a read-only bind. What cannot come to be needs
//! nothing: a name that does not exist stays so where nothing can be written. A pattern whose names may still appear is
//! held for those that exist, where the config admits the others. All else is left to the layer inside, which refuses it or
//! decomposes it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::matches::{NewNames, is_coverable, matching};
use super::own::in_own;
use crate::backend::clauses::aliases::Granted;
use crate::backend::clauses::obstacles::at;
use crate::backend::status::Refusal;
use crate::backend::survey::{Kind, Node, Survey};
use crate::policy::{AbsPath, Deny, Ending, Grant, Pattern, Right, Rights, Scope, Target};
use crate::profile::Profile;
use crate::profile::index::Index;

/// What a mount takes from a path and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    /// Changing it.
    ReadOnly,
    /// Everything.
    Mask,
}

/// A cover, and where it ends: a root inside speaks for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Covered {
    cover: Cover,
    ends: BTreeSet<Ending>,
}

impl Covered {
    /// Where it ends.
    pub(super) fn ends(&self) -> impl Iterator<Item = &AbsPath> {
        self.ends.iter().map(Ending::path)
    }

    /// What it takes at a path within it.
    pub(super) fn over(&self, path: &AbsPath, kind: Kind) -> Option<Cover> {
        let ended = self.ends.iter().any(|end| match kind {
            Kind::Directory => end.exempts_tree(path),
            Kind::File | Kind::Device | Kind::Fifo | Kind::Socket | Kind::Symlink => end.exempts(path),
        });
        (!ended).then_some(self.cover)
    }
}

/// What becomes of the denies.
pub(super) struct Held {
    /// Where mounts take something, and what; all of it exists.
    pub(super) covers: BTreeMap<AbsPath, Covered>,
    /// What the layer inside must hold.
    pub(super) left: Vec<Deny>,
    /// Patterns that are held for the names that exist, and not for those that may appear.
    pub(super) open: Vec<Deny>,
    /// What is covered for these alone.
    pub(super) open_covers: BTreeSet<AbsPath>,
    /// That of it which no other clause speaks of: it may be moved with a directory above it.
    pub(super) loose: BTreeSet<AbsPath>,
}

impl Held {
    /// Sorts the denies of a profile, given the protected paths that exist.
    pub(super) fn new(profile: &Profile, survey: &Survey, protect: &[AbsPath], new_names: NewNames) -> Self {
        let mut held = Self {
            covers: BTreeMap::new(),
            left: Vec::new(),
            open: Vec::new(),
            open_covers: BTreeSet::new(),
            loose: BTreeSet::new(),
        };
        for path in protect {
            if present(survey, path).is_some() {
                held.cover(path.clone(), Cover::ReadOnly);
            }
        }
        let mut rest = Vec::new();
        let grants = Granted::new(profile);
        for deny in &profile.denies {
            match &deny.target {
                Target::Path(path) if deny.except.is_none() && present(survey, path).is_some() => {
                    held.place(deny, path, &grants);
                }
                Target::Path(_) | Target::Pattern { .. } => rest.push(deny),
            }
        }
        // What is written where is known now, so it can be said where names may still appear. What patterns cover
        // lies where nothing can be written.
        let covers = held.covers.clone();
        let writing = Writing::new(profile, &covers);
        for deny in rest {
            if deny.except.is_some() || writing.appears(survey, deny) {
                match new_names {
                    NewNames::Admitted if is_coverable(deny) => held.open.push(deny.clone()),
                    NewNames::Admitted | NewNames::Refused => held.left.push(deny.clone()),
                }
            } else if let Target::Pattern { root, pattern } = &deny.target {
                held.match_all(deny, root, pattern, survey);
            }
        }
        let open: Vec<&Deny> = held.open.iter().collect();
        let matched = matching(&open, survey);
        for (path, node) in matched {
            if node.kind == Kind::Symlink {
                continue;
            }
            if !held.covers.contains_key(&path) {
                held.open_covers.insert(path.clone());
                let mut others = profile.denies.iter().filter(|deny| !held.open.contains(deny));
                if !others.any(|deny| deny.covers(&path)) {
                    held.loose.insert(path.clone());
                }
            }
            held.cover(path, Cover::Mask);
        }
        held
    }

    /// A deny of a path that exists.
    fn place(&mut self, deny: &Deny, path: &AbsPath, granted: &Granted<'_>) {
        let rights = rights_of(deny);
        // Where the denies leave nothing, nothing is shown.
        if !granted.near(Rights::ALL, path) {
            self.cover(path.clone(), Cover::Mask);
            return;
        }
        if rights.has(Right::Read) {
            if deny.ends.is_empty() {
                self.cover(path.clone(), Cover::Mask);
            } else {
                self.left.push(deny.clone());
            }
            return;
        }
        if rights.has(Right::Write) {
            self.cover_as_far(path.clone(), Cover::ReadOnly, &deny.ends);
        }
        if *path == AbsPath::root() {
            // The regime's own mounts lie on top of one of `/`, and can be written.
            self.left.push(deny.clone());
        } else {
            self.leave_execute(deny);
        }
    }

    /// Mounts cannot tell executing from reading.
    fn leave_execute(&mut self, deny: &Deny) {
        if rights_of(deny).has(Right::Execute) {
            self.left.push(Deny {
                rights: Rights::EXECUTE,
                ..deny.clone()
            });
        }
    }

    /// A pattern, where no name can appear: everything that matches now.
    fn match_all(&mut self, deny: &Deny, root: &AbsPath, pattern: &Pattern, survey: &Survey) {
        let rights = rights_of(deny);
        let cover = if rights.has(Right::Read) {
            Cover::Mask
        } else {
            Cover::ReadOnly
        };
        if cover == Cover::ReadOnly {
            self.leave_execute(deny);
        }
        // Single files may be writable where no name can appear.
        if !rights.has(Right::Read) && !rights.has(Right::Write) {
            return;
        }
        for (path, node) in survey.nodes() {
            let matches = path.is_below(root) && path.name().is_some_and(|name| pattern.matches(name));
            if matches && node.kind != Kind::Symlink && !in_own(path) {
                self.cover(path.clone(), cover);
            }
        }
    }

    /// What the layer says it cannot hold was left to it because no mount can: that is the reason.
    pub(super) fn in_its_words(&self, refusal: Refusal) -> Refusal {
        let Refusal::DenyBelowGrant {
            clause,
            origin,
            granted,
        } = refusal
        else {
            return refusal;
        };
        let why = self
            .left
            .iter()
            .find(|deny| deny.to_string() == clause)
            .map_or(MAY_APPEAR, why_left);
        Refusal::DenyBesideMounts {
            clause,
            origin,
            granted,
            why,
        }
    }

    fn cover(&mut self, path: AbsPath, cover: Cover) {
        self.cover_as_far(path, cover, &BTreeSet::new());
    }

    /// Covers a path. Of two covers at one path the stronger holds, and it ends where both do.
    fn cover_as_far(&mut self, path: AbsPath, cover: Cover, ends: &BTreeSet<Ending>) {
        match self.covers.entry(path) {
            Entry::Vacant(new) => {
                let ends = ends.clone();
                new.insert(Covered { cover, ends });
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.cover = known.cover.max(cover);
                known.ends.retain(|end| ends.contains(end));
            }
        }
    }
}

const MAY_APPEAR: &str = "a mount covers only what exists when the command starts: such a name could still be made there (make it first, or deny the \
     name alone, without a slash)";
const MAY_MATCH: &str = "a mount covers only what exists when the command starts: such a name could still be made there, which \
    `deny_fallback: cover_existing` admits without `residuals: refuse`";

/// Why no mount holds a deny.
fn why_left(deny: &Deny) -> &'static str {
    if deny.except.is_some() {
        "a mount cannot leave out files by their suffix"
    } else if in_own(at(deny)) || *at(deny) == AbsPath::root() {
        "/proc, /dev and /tmp, which it reaches, are the sandbox's own mounts"
    } else if !deny.ends.is_empty() && rights_of(deny).has(Right::Read) {
        "a mount that hides a directory hides everything in it"
    } else if rights_of(deny) == Rights::EXECUTE {
        "a mount cannot tell executing from reading (with `execute: true` the root inside is executed as the one around it)"
    } else if is_coverable(deny) {
        MAY_MATCH
    } else {
        MAY_APPEAR
    }
}

/// What a deny takes, as far as mounts go: they know no sizes.
pub(super) fn rights_of(deny: &Deny) -> Rights {
    match deny.beyond {
        None => deny.rights,
        Some(_) => deny.rights.and(Rights::WRITE),
    }
}

/// What a mount can cover: it exists, is no link, and does not lie in a mount of the regime's own.
fn present(survey: &Survey, path: &AbsPath) -> Option<Node> {
    let node = survey.node(path).filter(|node| node.kind != Kind::Symlink)?;
    (!in_own(path)).then_some(node)
}

/// Where commands may make names, as far as mounts go.
struct Writing<'a> {
    grants: Index<'a, &'a Grant>,
    /// The grants that let all of a tree be written, by their paths.
    trees: BTreeSet<&'a AbsPath>,
    covers: Index<'a, &'a Covered>,
}

impl<'a> Writing<'a> {
    fn new(profile: &'a Profile, covers: &'a BTreeMap<AbsPath, Covered>) -> Self {
        let trees = profile.grants.iter().filter(|grant| writes_tree(grant));
        Self {
            grants: profile.grants.iter().map(|grant| (&grant.path, grant)).collect(),
            trees: trees.map(|grant| &grant.path).collect(),
            covers: covers.iter().collect(),
        }
    }

    /// Whether a command could make something that the deny is for.
    fn appears(&self, survey: &Survey, deny: &Deny) -> bool {
        let root = at(deny);
        // In the regime's own mounts, which a pattern for all of `/` reaches as well, nothing is covered.
        if in_own(root) || *root == AbsPath::root() {
            return true;
        }
        if let Target::Path(path) = &deny.target
            && !survey.is_absent(path)
        {
            // Nobody looked, or it is a link: it may be exchanged, or is something else already.
            return self.grants.above(path).next().is_some();
        }
        let open = |path: &AbsPath| {
            self.covers
                .above(path)
                .all(|covered| covered.over(path, Kind::Directory).is_none())
        };
        let above = self.grants.above(root).any(|grant| writes_tree(grant)) && open(root);
        let below = || {
            let trees = self.trees.range::<AbsPath, _>(root..);
            trees.take_while(|path| path.is_within(root)).any(|path| open(path))
        };
        match &deny.target {
            Target::Path(_) => above,
            Target::Pattern { .. } => above || below(),
        }
    }
}

/// Whether mounts let everything below the grant be written.
pub(super) fn writes_tree(grant: &Grant) -> bool {
    let tree = match grant.scope {
        Scope::Tree => true,
        Scope::File | Scope::Names => false,
    };
    tree && grant.rights.has(Right::Write) && grant.max_file_bytes.is_none() && grant.suffixes.is_none()
}
