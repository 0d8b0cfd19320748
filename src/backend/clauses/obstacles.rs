//! Denies inside a tree that one rule would grant.

use crate::policy::private_names::ORIGIN_OF_STOCKADE;
use crate::policy::{AbsPath, Deny, Grant, Operation, Scope, Target};
use crate::profile::Profile;
use crate::profile::index::{Beneath, Index};

/// A set of operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::backend) struct Operations(u8);

impl Operations {
    const fn bit(operation: Operation) -> u8 {
        match operation {
            Operation::Read => 1,
            Operation::List => 2,
            Operation::Write => 4,
            Operation::Execute => 8,
        }
    }

    pub(in crate::backend) fn add(&mut self, operation: Operation) {
        self.0 |= Self::bit(operation);
    }

    pub(in crate::backend) const fn has(self, operation: Operation) -> bool {
        self.0 & Self::bit(operation) != 0
    }

    pub(in crate::backend) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(in crate::backend) fn iter(self) -> impl Iterator<Item = Operation> {
        Operation::ALL.into_iter().filter(move |operation| self.has(*operation))
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        let mut set = Self::default();
        operations.into_iter().for_each(|operation| set.add(operation));
        set
    }
}

/// How much of an operation denies take at a directory and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend) enum DenyReach {
    /// None.
    Nothing,
    /// Some.
    Part,
    /// All.
    All,
    /// All, because the directory belongs to Stockade: it is not surveyed.
    Private,
}

/// The denies of a profile, indexed by path.
pub(in crate::backend) struct Obstacles<'a> {
    placed: Index<'a, &'a Deny>,
    /// The operations that denies at or below a path touch.
    below: Beneath<'a, Operations>,
    all: &'a [Deny],
}

impl<'a> Obstacles<'a> {
    pub(in crate::backend) fn new(profile: &'a Profile) -> Self {
        let placed = profile.denies.iter().map(|deny| (at(deny), deny)).collect();
        let mut below = Beneath::<Operations>::default();
        for deny in &profile.denies {
            below.say(at(deny), |touched| {
                let of_it = Operation::ALL.into_iter().filter(|op| touches(deny, *op));
                of_it.for_each(|op| touched.add(op));
            });
        }
        Self {
            placed,
            below,
            all: &profile.denies,
        }
    }

    pub(in crate::backend) fn deny_reach(&self, operation: Operation, path: &AbsPath) -> DenyReach {
        let mut deny_reach = DenyReach::Nothing;
        if self.below.of(path).is_some_and(|touched| touched.has(operation)) {
            deny_reach = DenyReach::Part;
        }
        for deny in self.placed.above(path).filter(|deny| touches(deny, operation)) {
            if deny.exempts_tree(path) {
                continue;
            }
            if deny.covers(path) && takes_all(deny, operation) && !deny.ends_within(path) {
                return if deny.origin == ORIGIN_OF_STOCKADE {
                    DenyReach::Private
                } else {
                    DenyReach::All
                };
            }
            deny_reach = DenyReach::Part;
        }
        deny_reach
    }

    /// A deny that touches one of the operations at, above or below the path.
    pub(in crate::backend) fn culprit(&self, operations: Operations, path: &AbsPath) -> Option<&'a Deny> {
        self.culprits(operations, path).next()
    }

    fn culprits(&self, operations: Operations, path: &AbsPath) -> impl Iterator<Item = &'a Deny> {
        let near = |deny: &Deny| !deny.exempts_tree(path) && path.is_within(at(deny)) || at(deny).is_within(path);
        let touching = move |deny: &&Deny| near(deny) && operations.iter().any(|op| touches(deny, op));
        self.all.iter().filter(touching)
    }
}

/// The denies because of which no single rule can grant the operation on the whole directory.
pub fn in_the_way<'p>(profile: &'p Profile, operation: Operation, directory: &AbsPath) -> Vec<&'p Deny> {
    let obstacles = Obstacles::new(profile);
    match obstacles.deny_reach(operation, directory) {
        DenyReach::Part => obstacles
            .culprits([operation].into_iter().collect(), directory)
            .collect(),
        DenyReach::Nothing | DenyReach::All | DenyReach::Private => Vec::new(),
    }
}

/// Where a deny begins to hold.
pub(in crate::backend) fn at(deny: &Deny) -> &AbsPath {
    match &deny.target {
        Target::Path(path) | Target::Pattern { root: path, .. } => path,
    }
}

/// Whether the deny takes anything of the operation.
pub(in crate::backend) fn touches(deny: &Deny, operation: Operation) -> bool {
    deny.rights.has(operation.right())
        && !(operation == Operation::List && deny.except.is_some())
        && (operation == Operation::Write || deny.beyond.is_none())
}

/// Whether it leaves nothing that Landlock could grant; Landlock has no size limits.
fn takes_all(deny: &Deny, operation: Operation) -> bool {
    touches(deny, operation) && deny.except.is_none()
}

/// The operations of a grant on everything below it, or on its names.
pub(in crate::backend) fn granted_operations(grant: &Grant) -> Operations {
    let mut operations = Operations::default();
    for operation in Operation::ALL {
        let in_scope = match grant.scope {
            Scope::Tree => true,
            Scope::File => operation != Operation::List,
            Scope::Names => operation == Operation::List,
        };
        let unsized_write = operation != Operation::Write || grant.max_file_bytes.is_none();
        if in_scope && unsized_write && grant.rights.has(operation.right()) {
            operations.add(operation);
        }
    }
    operations
}
