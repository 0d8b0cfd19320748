//! Which denies mounts can enforce, and where.
//!
//! A mask enforces a read-deny, a read-only bind a write-deny. A name that does not exist needs no mount where nothing can be
//! written. If names of a pattern may still appear, existing ones are covered, where the config admits that. All other
//! denies are left to the Landlock layer, which refuses or decomposes them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::matches::{NewNames, is_coverable, matching};
use super::own::in_own_mount;
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

/// A cover, and where it ends: roots inside have covers of their own.
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

/// The covers for the denies of a profile, and the denies left to Landlock.
pub(super) struct CoverPlan {
    /// The covers by path; each path exists.
    pub(super) covers: BTreeMap<AbsPath, Covered>,
    /// The denies that the Landlock layer must enforce.
    pub(super) for_landlock: Vec<Deny>,
    /// Patterns enforced for existing names only.
    pub(super) open: Vec<Deny>,
    /// The covers for these patterns alone.
    pub(super) open_covers: BTreeSet<AbsPath>,
    /// Those of them that no other clause names: they may move with a directory above them.
    pub(super) movable: BTreeSet<AbsPath>,
}

impl CoverPlan {
    /// Sorts the denies of a profile, given the protected paths that exist.
    pub(super) fn new(profile: &Profile, survey: &Survey, protect: &[AbsPath], new_names: NewNames) -> Self {
        let mut cover_plan = Self {
            covers: BTreeMap::new(),
            for_landlock: Vec::new(),
            open: Vec::new(),
            open_covers: BTreeSet::new(),
            movable: BTreeSet::new(),
        };
        for path in protect {
            if present(survey, path).is_some() {
                cover_plan.cover(path.clone(), Cover::ReadOnly);
            }
        }
        let mut rest = Vec::new();
        let grants = Granted::new(profile);
        for deny in &profile.denies {
            match &deny.target {
                Target::Path(path) if deny.except.is_none() && present(survey, path).is_some() => {
                    cover_plan.cover_path(deny, path, &grants);
                }
                Target::Path(_) | Target::Pattern { .. } => rest.push(deny),
            }
        }
        // Covers of paths decide where names may still appear. Covers of patterns do not change that: they lie where nothing
        // can be written.
        let covers = cover_plan.covers.clone();
        let writing = Writing::new(profile, &covers);
        for deny in rest {
            if deny.except.is_some() || writing.appears(survey, deny) {
                match new_names {
                    NewNames::Admitted if is_coverable(deny) => cover_plan.open.push(deny.clone()),
                    NewNames::Admitted | NewNames::Refused => cover_plan.for_landlock.push(deny.clone()),
                }
            } else if let Target::Pattern { root, pattern } = &deny.target {
                cover_plan.match_all(deny, root, pattern, survey);
            }
        }
        let open: Vec<&Deny> = cover_plan.open.iter().collect();
        let matched = matching(&open, survey);
        for (path, node) in matched {
            if node.kind == Kind::Symlink {
                continue;
            }
            if !cover_plan.covers.contains_key(&path) {
                cover_plan.open_covers.insert(path.clone());
                let mut others = profile.denies.iter().filter(|deny| !cover_plan.open.contains(deny));
                if !others.any(|deny| deny.covers(&path)) {
                    cover_plan.movable.insert(path.clone());
                }
            }
            cover_plan.cover(path, Cover::Mask);
        }
        cover_plan
    }

    /// A deny of a path that exists.
    fn cover_path(&mut self, deny: &Deny, path: &AbsPath, granted: &Granted<'_>) {
        let rights = rights_of(deny);
        // The denies leave no right.
        if !granted.near(Rights::ALL, path) {
            self.cover(path.clone(), Cover::Mask);
            return;
        }
        if rights.has(Right::Read) {
            if deny.ends.is_empty() {
                self.cover(path.clone(), Cover::Mask);
            } else {
                self.for_landlock.push(deny.clone());
            }
            return;
        }
        if rights.has(Right::Write) {
            self.cover_until(path.clone(), Cover::ReadOnly, &deny.ends);
        }
        if *path == AbsPath::root() {
            // The regime's own mounts lie on top of a cover of `/`, and can be written.
            self.for_landlock.push(deny.clone());
        } else {
            self.leave_execute_to_landlock(deny);
        }
    }

    /// Mounts cannot tell executing from reading.
    fn leave_execute_to_landlock(&mut self, deny: &Deny) {
        if rights_of(deny).has(Right::Execute) {
            self.for_landlock.push(Deny {
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
            self.leave_execute_to_landlock(deny);
        }
        // Single files may be writable where no name can appear.
        if !rights.has(Right::Read) && !rights.has(Right::Write) {
            return;
        }
        for (path, node) in survey.nodes() {
            let matches = path.is_below(root) && path.name().is_some_and(|name| pattern.matches(name));
            if matches && node.kind != Kind::Symlink && !in_own_mount(path) {
                self.cover(path.clone(), cover);
            }
        }
    }

    /// Gives the reason why no mount covers a deny that the layer refused.
    pub(super) fn explain_refusal(&self, refusal: Refusal) -> Refusal {
        let Refusal::DenyBelowGrant {
            clause,
            origin,
            granted,
        } = refusal
        else {
            return refusal;
        };
        let why = self
            .for_landlock
            .iter()
            .find(|deny| deny.to_string() == clause)
            .map_or(MAY_APPEAR, why_not_covered);
        Refusal::DenyBesideMounts {
            clause,
            origin,
            granted,
            why,
        }
    }

    fn cover(&mut self, path: AbsPath, cover: Cover) {
        self.cover_until(path, cover, &BTreeSet::new());
    }

    /// Covers a path. Of two covers at one path the stronger counts, and ends where both end.
    fn cover_until(&mut self, path: AbsPath, cover: Cover, ends: &BTreeSet<Ending>) {
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

/// Why no mount enforces a deny.
fn why_not_covered(deny: &Deny) -> &'static str {
    if deny.except.is_some() {
        "a mount cannot leave out files by their suffix"
    } else if in_own_mount(at(deny)) || *at(deny) == AbsPath::root() {
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

/// The rights that a deny takes, for mounts, which have no size limits.
pub(super) fn rights_of(deny: &Deny) -> Rights {
    match deny.beyond {
        None => deny.rights,
        Some(_) => deny.rights.and(Rights::WRITE),
    }
}

/// The node at a path that a mount can cover: no link, and not in a mount of the regime's own.
fn present(survey: &Survey, path: &AbsPath) -> Option<Node> {
    let node = survey.node(path).filter(|node| node.kind != Kind::Symlink)?;
    (!in_own_mount(path)).then_some(node)
}

/// Where mounts let commands create names.
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

    /// Whether a command could create a path of the deny.
    fn appears(&self, survey: &Survey, deny: &Deny) -> bool {
        let root = at(deny);
        // Nothing in the regime's own mounts is covered.
        if in_own_mount(root) || *root == AbsPath::root() {
            return true;
        }
        if let Target::Path(path) = &deny.target
            && !survey.is_absent(path)
        {
            // Not surveyed, or a link, which may change.
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

/// Whether mounts make everything below the grant writable.
pub(super) fn writes_tree(grant: &Grant) -> bool {
    let tree = match grant.scope {
        Scope::Tree => true,
        Scope::File | Scope::Names => false,
    };
    tree && grant.rights.has(Right::Write) && grant.max_file_bytes.is_none() && grant.suffixes.is_none()
}
