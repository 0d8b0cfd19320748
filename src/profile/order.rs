//! The order: `a ⊑ b` iff everything `a` permits, `b` permits. Decided, not sampled; a failure comes
//! with a witness. Why finitely many paths suffice is told in `representatives`.

use std::fmt;

use super::index::Index;
use super::profile::Profile;
pub use super::representatives::Landmarks;
use crate::policy::{
    AbsPath, Access, BasePath, Deny, Grant, NetworkWitness, Operation, Policy, Root, Scope, SuffixSet, Target,
    UnixSockets, VarName,
};

/// What is permitted at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach([Access; 4]);

impl Reach {
    const NOTHING: Self = Self([Access::Denied; 4]);

    /// Adds what a clause gives.
    fn join(&mut self, gives: impl Fn(Operation) -> Access) {
        for (have, operation) in self.0.iter_mut().zip(Operation::ALL) {
            *have = (*have).max(gives(operation));
        }
    }

    /// Takes away what denies do not leave.
    fn cut_by<'a>(&mut self, denies: impl Iterator<Item = &'a &'a Deny>, path: &AbsPath) {
        for deny in denies {
            for (have, operation) in self.0.iter_mut().zip(Operation::ALL) {
                if *have != Access::Denied {
                    *have = (*have).min(deny.leaves(operation, path));
                }
            }
        }
    }

    /// Asks `access` for each operation.
    pub fn of(access: impl FnMut(Operation) -> Access) -> Self {
        Self(Operation::ALL.map(access))
    }

    /// The first operation that is permitted further than by `tight`, which is not asked where nothing is.
    pub fn beyond(&self, tight: impl FnOnce() -> Self) -> Option<(Operation, Access)> {
        if *self == Self::NOTHING {
            return None;
        }
        let tight = tight();
        let operation = Operation::ALL.into_iter().find(|&op| self.get(op) > tight.get(op))?;
        Some((operation, self.get(operation)))
    }

    /// The answer for one operation.
    pub const fn get(&self, operation: Operation) -> Access {
        let [read, list, write, execute] = self.0;
        match operation {
            Operation::Read => read,
            Operation::List => list,
            Operation::Write => write,
            Operation::Execute => execute,
        }
    }
}

/// Something that says what may be done on which path: a policy, a profile, a plan.
pub trait FileReach {
    /// What it is called in a witness: `the config`, `the profile`, `the plan`.
    fn name(&self) -> &'static str;

    /// Names the paths, endings and patterns that its answers depend on; nothing else may matter.
    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>);

    /// Its answers, prepared for many questions.
    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_>;

    /// One answer.
    fn access(&self, operation: Operation, path: &AbsPath) -> Access {
        self.prepared()(path).get(operation)
    }
}

/// One thing that the first side permits and the second does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: permitted by {wide}, not by {tight}")]
pub struct Witness {
    /// What it is.
    pub what: Permission,
    /// Who permits it.
    pub wide: &'static str,
    /// Who does not.
    pub tight: &'static str,
}

/// A thing that can be permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// An operation on a path.
    File {
        /// The operation.
        operation: Operation,
        /// The path.
        path: AbsPath,
        /// How much of it: [`Access::UpTo`] for writes within a size.
        access: Access,
    },
    /// Hosts, or all of them.
    Network(NetworkWitness),
    /// Unix sockets.
    UnixSockets(UnixSockets),
    /// Going beyond a limit of that name.
    Limit(&'static str),
    /// Seeing an environment variable.
    Variable(VarName),
    /// Something only a plan can say.
    Kernel(String),
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                operation,
                path,
                access,
            } => {
                write!(f, "{operation} {path}")?;
                match access {
                    Access::UpTo(bytes) => write!(f, " up to {bytes} bytes"),
                    Access::Denied | Access::Full => Ok(()),
                }
            }
            Self::Network(network) => network.fmt(f),
            Self::UnixSockets(sockets) => write!(f, "unix sockets {sockets}"),
            Self::Limit(name) => write!(f, "going beyond the limit `{name}`"),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::Kernel(what) => f.write_str(what),
        }
    }
}

/// Whether every file operation that `a` permits is permitted by `b`, to the same size.
pub fn files_within(a: &dyn FileReach, b: &dyn FileReach) -> Result<(), Witness> {
    let mut landmarks = Landmarks::default();
    a.landmarks(&mut landmarks);
    b.landmarks(&mut landmarks);
    let (in_a, in_b) = (a.prepared(), b.prepared());
    let found = landmarks.search(|path| {
        let wide = in_a(path);
        let (operation, access) = wide.beyond(|| in_b(path))?;
        Some(Permission::File {
            operation,
            path: path.clone(),
            access,
        })
    });
    found.map_or(Ok(()), |what| {
        Err(Witness {
            what,
            wide: a.name(),
            tight: b.name(),
        })
    })
}

/// Whether everything that profile `a` permits is permitted by `b`: files, network, sockets, limits
/// and environment.
pub fn within(a: &Profile, b: &Profile) -> Result<(), Witness> {
    files_within(a, b)?;
    let network = a.network.within(&b.network).err().map(Permission::Network);
    let sockets = (a.unix_sockets > b.unix_sockets).then_some(Permission::UnixSockets(a.unix_sockets));
    let limit = a.limits.all_wider_than(&b.limits).next().map(Permission::Limit);
    let mut variables = a.environment.all_wider_than(&b.environment).cloned();
    let variable = variables.next().map(Permission::Variable);
    match network.or(sockets).or(limit).or(variable) {
        Some(what) => Err(Witness {
            what,
            wide: "the first profile",
            tight: "the second",
        }),
        None => Ok(()),
    }
}

impl FileReach for Profile {
    fn name(&self) -> &'static str {
        "the profile"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.grants.iter().for_each(|grant| mark_grant(landmarks, grant));
        self.denies.iter().for_each(|deny| mark_deny(landmarks, deny));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let grants: Index<'_, &Grant> = self.grants.iter().map(|grant| (&grant.path, grant)).collect();
        let denies = index_denies(self.denies.iter());
        Box::new(move |path| {
            let mut reach = Reach::NOTHING;
            for grant in grants.above(path) {
                reach.join(|operation| grant.gives(operation, path));
            }
            reach.cut_by(denies.above(path), path);
            reach
        })
    }

    /// Without an index, which pays for many questions only.
    fn access(&self, operation: Operation, path: &AbsPath) -> Access {
        let granted = self.grants.iter().map(|grant| grant.gives(operation, path)).max();
        let remaining = self.denies.iter().map(|deny| deny.leaves(operation, path));
        remaining.fold(granted.unwrap_or(Access::Denied), Access::min)
    }
}

impl FileReach for Policy {
    fn name(&self) -> &'static str {
        "the config"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        for root in &self.roots {
            mark(landmarks, &root.path, root.suffixes.as_ref());
            root.denies.iter().for_each(|deny| mark_deny(landmarks, deny));
        }
        self.base.iter().for_each(|base| mark_grant(landmarks, &base.grant));
        for ceiling in &self.ceilings.all {
            ceiling.policy.landmarks(landmarks);
        }
    }

    /// [`Policy::access`] over an index: the most specific root speaks.
    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let roots: Index<'_, &Root> = self.roots.iter().map(|root| (&root.path, root)).collect();
        let base: Index<'_, &BasePath> = self.base.iter().map(|base| (&base.grant.path, base)).collect();
        let denies = index_denies(self.roots.iter().flat_map(|root| &root.denies));
        let ceilings: Vec<_> = self.ceilings.all.iter().map(|c| c.policy.prepared()).collect();
        Box::new(move |path| {
            // The most specific root comes last, and a one-file root leaves the listing to the one around it.
            let (mut decides_listing, mut decides) = (None, None);
            for root in roots.above(path).copied() {
                match root.scope {
                    Scope::File if root.path == *path => decides = Some(root),
                    Scope::File => {}
                    Scope::Tree | Scope::Names => (decides_listing, decides) = (Some(root), Some(root)),
                }
            }
            let speaker = |operation| match operation {
                Operation::List => decides_listing,
                Operation::Read | Operation::Write | Operation::Execute => decides,
            };
            let mut reach =
                Reach::of(|operation| speaker(operation).map_or(Access::Denied, |root| root.gives(operation, path)));
            for base in base.above(path) {
                reach.join(|operation| {
                    let adds = speaker(operation).is_none_or(|root| base.grant.path.is_below(&root.path));
                    if adds {
                        base.grant.gives(operation, path)
                    } else {
                        Access::Denied
                    }
                });
            }
            reach.cut_by(denies.above(path), path);
            for most in &ceilings {
                let most = most(path);
                reach = Reach::of(|operation| reach.get(operation).min(most.get(operation)));
            }
            reach
        })
    }

    fn access(&self, operation: Operation, path: &AbsPath) -> Access {
        Self::access(self, operation, path)
    }
}

/// Denies under the path they name, or under their pattern's root.
fn index_denies<'a>(denies: impl Iterator<Item = &'a Deny>) -> Index<'a, &'a Deny> {
    denies.map(|deny| (deny.target.path(), deny)).collect()
}

fn mark_grant<'a>(landmarks: &mut Landmarks<'a>, grant: &'a Grant) {
    mark(landmarks, &grant.path, grant.suffixes.as_ref());
}

fn mark<'a>(landmarks: &mut Landmarks<'a>, path: &'a AbsPath, suffixes: Option<&SuffixSet>) {
    landmarks.path(path);
    if let Some(suffixes) = suffixes {
        landmarks.suffixes(path, suffixes);
    }
}

fn mark_deny<'a>(landmarks: &mut Landmarks<'a>, deny: &'a Deny) {
    mark(landmarks, deny.target.path(), deny.except.as_ref());
    deny.ends.iter().for_each(|end| landmarks.path(end.path()));
    if let Target::Pattern { root, pattern } = &deny.target {
        landmarks.pattern(root, pattern);
    }
}
