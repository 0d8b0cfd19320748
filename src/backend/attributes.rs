//! Profile → where file attributes may change, and the reader of that plan.
//!
//! Landlock does not govern chmod, chown, utime and the xattr calls. A seccomp filter hands them to the
//! broker, which judges the object that a call reaches by this plan. Only plain write grants are
//! carried over. A grant with suffixes or a size limit is about content, not attributes, so it permits none (`stricter`); for
//! the same reason a deny with exceptions takes all.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

use crate::policy::path::PathError;
use crate::policy::{AbsPath, Access, Deny, Ending, Grant, Operation, Pattern, Right, Scope, Target};
use crate::profile::index::Index;
use crate::profile::{FileReach, Landmarks, Reach};

/// Where the broker may change attributes: within `writable`, outside `denied`. Empty: nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct AttributePlan {
    /// Where changes are permitted, sorted.
    pub writable: Vec<Writable>,
    /// Where they are forbidden all the same, sorted.
    pub denied: Vec<Denied>,
}

/// A path at which attributes may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Writable {
    /// The one object at this path.
    File(OsString),
    /// The path and everything below it.
    Tree(OsString),
    /// A directory that exists only inside, with everything below it that no clause names.
    Private {
        /// The directory.
        at: OsString,
        /// The paths of other clauses, with everything below them.
        except: Vec<OsString>,
        /// The paths of denies, whatever they take.
        denied: Vec<Denied>,
    },
}

/// A path at which they may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Denied {
    /// The path and everything below it.
    Tree(OsString),
    /// The path and everything below it, with ends.
    Around {
        /// The path.
        at: OsString,
        /// It ends at these, with everything below them.
        trees: Vec<OsString>,
        /// It leaves out these very paths.
        files: Vec<OsString>,
    },
    /// Every entry of that name below `root`, at any depth, with everything below it.
    Name {
        /// Where the name is forbidden.
        root: OsString,
        /// The name.
        name: OsString,
    },
    /// Every entry whose name ends so below `root`, at any depth, with everything below it.
    Suffix {
        /// Where the ending is forbidden.
        root: OsString,
        /// The ending.
        end: OsString,
    },
}

/// The plan for the clauses of one profile, and a directory that exists only inside.
pub fn lower(grants: &[Grant], denies: &[Deny], private: Option<&AbsPath>) -> AttributePlan {
    let mut writable: Vec<_> = grants.iter().filter_map(Writable::of).collect();
    writable.extend(private.map(|at| Writable::private(at, grants, denies)));
    writable.sort();
    writable.dedup();
    let mut forbidden: Vec<_> = denies.iter().filter_map(Denied::of).collect();
    forbidden.sort();
    forbidden.dedup();
    AttributePlan {
        writable,
        denied: forbidden,
    }
}

impl AttributePlan {
    /// Whether attributes of the object at `path` may change.
    pub fn permits(&self, path: &AbsPath) -> bool {
        self.writable.iter().any(|item| item.covers(path)) && !self.denied.iter().any(|item| item.covers(path))
    }
}

impl FileReach for AttributePlan {
    fn name(&self) -> &'static str {
        "the attribute plan"
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        for item in &self.writable {
            let (except, denied) = match item {
                Writable::File(_) | Writable::Tree(_) => (&[][..], &[][..]),
                Writable::Private { except, denied, .. } => (&except[..], &denied[..]),
            };
            let paths = std::iter::once(item.at()).chain(except);
            paths
                .filter_map(|at| AbsPath::new(at).ok())
                .for_each(|path| landmarks.owned(path));
            for item in denied {
                item.landmark(landmarks);
            }
        }
        for item in &self.denied {
            item.landmark(landmarks);
        }
    }

    /// [`AttributePlan::permits`] over an index.
    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let writable = index_by_path(&self.writable, Writable::at);
        let excepts = self.writable.iter().find_map(|item| match item {
            Writable::File(_) | Writable::Tree(_) => None,
            Writable::Private { except, .. } => Some(except.as_slice()),
        });
        let excepted = index_by_path(excepts.unwrap_or_default(), |at| at);
        let denied = index_by_path(&self.denied, |item| item.at());
        Box::new(move |path| {
            let covers = |item: &Writable| match item {
                Writable::File(_) | Writable::Tree(_) => item.covers(path),
                // There is one at most.
                Writable::Private { at, denied, .. } => {
                    AbsPath::new(at).is_ok_and(|at| path.is_within(&at))
                        && excepted.above(path).next().is_none()
                        && !denied.iter().any(|item| item.covers(path))
                }
            };
            let permitted =
                writable.above(path).any(|item| covers(item)) && !denied.above(path).any(|item| item.covers(path));
            Reach::of(|operation| {
                if operation == Operation::Write && permitted {
                    Access::Full
                } else {
                    Access::Denied
                }
            })
        })
    }
}

/// Items indexed by their path; one with a path that is not normal is indexed at the root.
fn index_by_path<'a, T>(items: &'a [T], at: impl Fn(&'a T) -> &'a OsString) -> Index<'a, &'a T> {
    let mut index = Index::default();
    for item in items {
        let path = at(item).as_bytes();
        let normal = AbsPath::new(at(item)).is_ok_and(|normal| normal.as_bytes() == path);
        index.insert_bytes(if normal { path } else { b"/" }, item);
    }
    index
}

impl Writable {
    fn of(grant: &Grant) -> Option<Self> {
        if !grant.rights.has(Right::Write) || grant.suffixes.is_some() || grant.max_file_bytes.is_some() {
            return None;
        }
        let path = grant.path.as_path().as_os_str().to_owned();
        match grant.scope {
            // A device such as /dev/null is the host's: writing to it is no right to change its mode.
            Scope::File if grant.path.as_bytes().starts_with(b"/dev/") => None,
            Scope::File => Some(Self::File(path)),
            Scope::Tree => Some(Self::Tree(path)),
            Scope::Names => None,
        }
    }

    fn private(at: &AbsPath, grants: &[Grant], denies: &[Deny]) -> Self {
        let bytes = |path: &AbsPath| path.as_path().as_os_str().to_owned();
        let inside = grants.iter().map(|grant| &grant.path).filter(|path| path.is_below(at));
        let mut except: Vec<OsString> = inside.map(bytes).collect();
        except.sort();
        except.dedup();
        let mut spoken: Vec<Denied> = denies.iter().map(Denied::whole).collect();
        spoken.sort();
        spoken.dedup();
        Self::Private {
            at: bytes(at),
            except,
            denied: spoken,
        }
    }

    const fn at(&self) -> &OsString {
        let (Self::File(at) | Self::Tree(at) | Self::Private { at, .. }) = self;
        at
    }

    /// A path that is not absolute covers nothing; nor does one with such an exception.
    fn covers(&self, path: &AbsPath) -> bool {
        let is_within = |at: &OsString| AbsPath::new(at).is_ok_and(|at| path.is_within(&at));
        match self {
            Self::File(at) => AbsPath::new(at).is_ok_and(|at| *path == at),
            Self::Tree(at) => is_within(at),
            Self::Private { at, except, denied } => {
                let is_outside = |at: &OsString| AbsPath::new(at).is_ok_and(|at| !path.is_within(&at));
                is_within(at) && except.iter().all(is_outside) && !denied.iter().any(|item| item.covers(path))
            }
        }
    }
}

impl Denied {
    fn of(deny: &Deny) -> Option<Self> {
        if !deny.rights.has(Right::Write) {
            return None;
        }
        match &deny.target {
            Target::Path(path) if !deny.ends.is_empty() => Some(Self::around(path, &deny.ends)),
            Target::Path(_) | Target::Pattern { .. } => Some(Self::whole(deny)),
        }
    }

    fn around(path: &AbsPath, ends: &BTreeSet<Ending>) -> Self {
        let bytes = |path: &AbsPath| path.as_path().as_os_str().to_owned();
        let (mut trees, mut files) = (Vec::new(), Vec::new());
        for end in ends {
            match end {
                Ending::Tree(path) => trees.push(bytes(path)),
                Ending::File(path) => files.push(bytes(path)),
            }
        }
        let at = bytes(path);
        Self::Around { at, trees, files }
    }

    const fn at(&self) -> &OsString {
        let (Self::Tree(at) | Self::Around { at, .. } | Self::Name { root: at, .. } | Self::Suffix { root: at, .. }) =
            self;
        at
    }

    /// Where it ends. A path that is not absolute is no end.
    fn ends(&self) -> impl Iterator<Item = Ending> {
        let (trees, files) = match self {
            Self::Around { trees, files, .. } => (trees.as_slice(), files.as_slice()),
            Self::Tree(_) | Self::Name { .. } | Self::Suffix { .. } => (&[][..], &[][..]),
        };
        let path = |end: &OsString| AbsPath::new(end).ok();
        let trees = trees.iter().filter_map(move |end| path(end).map(Ending::Tree));
        let files = files.iter().filter_map(move |end| path(end).map(Ending::File));
        trees.chain(files)
    }

    /// All paths of a deny.
    fn whole(deny: &Deny) -> Self {
        match &deny.target {
            Target::Path(path) => Self::Tree(path.as_path().as_os_str().to_owned()),
            Target::Pattern { root, pattern } => {
                let root = root.as_path().as_os_str().to_owned();
                match pattern {
                    Pattern::Name(name) => Self::Name {
                        root,
                        name: name.clone(),
                    },
                    Pattern::Suffix(end) => Self::Suffix { root, end: end.clone() },
                }
            }
        }
    }

    fn landmark(&self, landmarks: &mut Landmarks<'_>) {
        self.ends().for_each(|end| landmarks.owned(end.path().clone()));
        match self.target() {
            Ok(Target::Path(path)) => landmarks.owned(path),
            Ok(Target::Pattern { root, pattern }) => landmarks.pattern(&root, &pattern),
            Err(_) => {}
        }
    }

    /// A path that is not absolute covers everything.
    fn covers(&self, path: &AbsPath) -> bool {
        let ended = || self.ends().any(|end| end.exempts(path));
        self.target().map_or(true, |target| target.covers(path) && !ended())
    }

    fn target(&self) -> Result<Target, PathError> {
        match self {
            Self::Tree(at) | Self::Around { at, .. } => AbsPath::new(at).map(Target::Path),
            Self::Name { root, name } => AbsPath::new(root).map(|root| Target::Pattern {
                root,
                pattern: Pattern::Name(name.clone()),
            }),
            Self::Suffix { root, end } => AbsPath::new(root).map(|root| Target::Pattern {
                root,
                pattern: Pattern::Suffix(end.clone()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::policy::{Origin, Rights, Suffix};

    const HERE: Origin = Origin::Builtin("test");

    fn at(path: impl AsRef<OsStr>) -> AbsPath {
        AbsPath::new(path.as_ref()).unwrap()
    }

    fn tree(path: &str, rights: Rights) -> Grant {
        Grant::tree(at(path), rights, HERE)
    }

    #[test]
    fn a_write_grant_permits_itself_and_below_but_no_sibling() {
        let plan = lower(&[tree("/w", Rights::ALL)], &[], None);
        assert!(plan.permits(&at("/w")));
        assert!(plan.permits(&at("/w/a/b")));
        assert!(plan.permits(&at(OsStr::from_bytes(b"/w/\xff\n\""))));
        assert!(!plan.permits(&at("/wx")));
        assert!(!plan.permits(&at("/")));
    }

    #[test]
    fn no_grant_permits_nothing() {
        assert!(!lower(&[], &[], None).permits(&at("/")));
    }

    #[test]
    fn a_read_only_grant_gives_no_attribute_change() {
        assert!(!lower(&[tree("/r", Rights::READ | Rights::EXECUTE)], &[], None).permits(&at("/r/a")));
    }

    #[test]
    fn a_file_grant_permits_that_file_alone() {
        let mut grant = tree("/d/f", Rights::WRITE);
        grant.scope = Scope::File;
        let plan = lower(&[grant], &[], None);
        assert!(plan.permits(&at("/d/f")));
        assert!(!plan.permits(&at("/d")));
        assert!(!plan.permits(&at("/d/f/x")));
    }

    #[test]
    fn a_device_that_may_be_written_keeps_its_attributes() {
        let mut null = tree("/dev/null", Rights::READ | Rights::WRITE);
        null.scope = Scope::File;
        assert!(!lower(&[null], &[], None).permits(&at("/dev/null")));
    }

    #[test]
    fn narrowed_grants_permit_nothing() {
        let mut by_suffix = tree("/s", Rights::ALL);
        by_suffix.suffixes = Some([Suffix::new(".md").unwrap()].into_iter().collect());
        let mut by_size = tree("/m", Rights::ALL);
        by_size.max_file_bytes = Some(1);
        let mut names = tree("/n", Rights::ALL);
        names.scope = Scope::Names;
        assert_eq!(lower(&[by_suffix, by_size, names], &[], None), AttributePlan::default());
    }

    #[test]
    fn a_write_deny_wins_and_a_read_deny_is_not_its_business() {
        let denies = [
            Deny::tree(at("/w/no"), Rights::WRITE, HERE),
            Deny::tree(at("/w/unread"), Rights::READ, HERE),
        ];
        let plan = lower(&[tree("/w", Rights::ALL), tree("/w/no/in", Rights::ALL)], &denies, None);
        assert!(!plan.permits(&at("/w/no")));
        assert!(!plan.permits(&at("/w/no/in/x")));
        assert!(plan.permits(&at("/w/nox")));
        assert!(plan.permits(&at("/w/unread")));
    }

    #[test]
    fn pattern_denies_hold_at_any_depth() {
        let deny = |pattern| Deny {
            target: Target::Pattern {
                root: at("/w"),
                pattern,
            },
            ..Deny::tree(at("/"), Rights::WRITE, HERE)
        };
        let denies = [deny(Pattern::Name(".env".into())), deny(Pattern::Suffix(".pem".into()))];
        let plan = lower(&[tree("/w", Rights::ALL)], &denies, None);
        assert!(!plan.permits(&at("/w/a/.env")));
        assert!(!plan.permits(&at("/w/.env/below")));
        assert!(!plan.permits(&at("/w/a/k.pem")));
        assert!(plan.permits(&at("/w/a/k.pem.txt")));
    }

    #[test]
    fn what_the_plan_permits_the_clauses_permit_in_full() {
        let grants = [tree("/w", Rights::ALL), tree("/r", Rights::READ)];
        let denies = [Deny {
            beyond: Some(5),
            ..Deny::tree(at("/w/small"), Rights::ALL, HERE)
        }];
        let plan = lower(&grants, &denies, None);
        for path in ["/", "/w", "/w/x", "/w/small", "/w/small/x", "/r", "/r/x"].map(at) {
            let given = grants.iter().map(|g| g.gives(Operation::Write, &path)).max().unwrap();
            let left = denies.iter().map(|d| d.leaves(Operation::Write, &path)).min().unwrap();
            assert!(!plan.permits(&path) || given.min(left) == Access::Full, "{path}");
        }
    }

    #[test]
    fn a_private_directory_is_free_where_no_clause_speaks_of_a_place_in_it() {
        let grants = [tree("/tmp/r", Rights::READ), tree("/tmp/r/w", Rights::ALL)];
        let denies = [Deny::tree(at("/tmp/no"), Rights::WRITE, HERE)];
        let plan = lower(&grants, &denies, Some(&at("/tmp")));
        for free in ["/tmp", "/tmp/x", "/tmp/rx", "/tmp/r/w", "/tmp/r/w/x"] {
            assert!(plan.permits(&at(free)), "{free}");
        }
        for kept in ["/", "/tmpx", "/tmp/r", "/tmp/r/x", "/tmp/no", "/tmp/no/x"] {
            assert!(!plan.permits(&at(kept)), "{kept}");
        }
        assert!(!lower(&grants, &denies, None).permits(&at("/tmp/x")));
    }

    #[test]
    fn a_plan_with_a_malformed_path_fails_closed() {
        let mut plan = AttributePlan {
            writable: vec![Writable::Tree("".into()), Writable::Tree("../w".into())],
            denied: vec![],
        };
        assert!(!plan.permits(&at("/w")));
        plan.writable.push(Writable::Tree("/w".into()));
        assert!(plan.permits(&at("/w")));
        plan.denied.push(Denied::Tree("w/x".into()));
        assert!(!plan.permits(&at("/w")));
    }
}
