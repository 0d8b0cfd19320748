//! Grants and denies: the clauses of the file-system part.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::path::{self, AbsPath};
use super::right::{Operation, Rights};
use super::suffix::SuffixSet;

/// Where a clause was written, for every message that must name it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A line of a file a person wrote.
    File {
        /// The file.
        file: Arc<PathBuf>,
        /// Its line, from 1.
        line: u64,
    },
    /// A line of a shipped preset.
    Preset {
        /// The preset's name.
        name: Arc<str>,
        /// Its line, from 1.
        line: u64,
    },
    /// A command-line flag.
    Flag(Arc<str>),
    /// Stockade itself: the private HOME and TMPDIR, the approval-tight rule.
    Builtin(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line } => write!(f, "{}:{line}", path::display(file.as_os_str())),
            Self::Preset { name, line } => write!(f, "preset {name}:{line}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Builtin(what) => write!(f, "built in: {what}"),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How far below its path a clause reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The one file at the path; never a listing.
    File,
    /// The path and everything below it, now and later.
    Tree,
    /// Only the listing of the directory and of those below it: names, never content.
    Names,
}

/// The answer to "how much may be written here": ordered, so that less is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// The operation is not permitted.
    Denied,
    /// Permitted for files of at most this many bytes (write only).
    UpTo(u64),
    /// Permitted.
    Full,
}

/// A clause that permits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// Where it applies.
    pub path: AbsPath,
    /// What it gives.
    pub rights: Rights,
    /// How far down it reaches.
    pub scope: Scope,
    /// If present, only files with one of these suffixes; listing is not narrowed by it.
    pub suffixes: Option<SuffixSet>,
    /// If present, the largest file that may be written, in bytes.
    pub max_file_bytes: Option<u64>,
    /// Where it was written.
    pub origin: Origin,
}

impl Grant {
    /// A plain grant of `rights` on `path` and everything below it.
    pub fn tree(path: AbsPath, rights: Rights, origin: Origin) -> Self {
        Self {
            path,
            rights,
            scope: Scope::Tree,
            suffixes: None,
            max_file_bytes: None,
            origin,
        }
    }

    /// What this clause alone gives for `operation` on `path`.
    pub fn gives(&self, operation: Operation, path: &AbsPath) -> Access {
        let terms = GrantTerms {
            path: &self.path,
            rights: self.rights,
            scope: self.scope,
            suffixes: self.suffixes.as_ref(),
            max_file_bytes: self.max_file_bytes,
        };
        terms.gives(operation, path)
    }
}

/// The terms of a grant or a root.
pub(super) struct GrantTerms<'a> {
    pub(super) path: &'a AbsPath,
    pub(super) rights: Rights,
    pub(super) scope: Scope,
    pub(super) suffixes: Option<&'a SuffixSet>,
    pub(super) max_file_bytes: Option<u64>,
}

impl GrantTerms<'_> {
    pub(super) fn gives(&self, operation: Operation, path: &AbsPath) -> Access {
        let reaches = || match self.scope {
            Scope::File => operation != Operation::List && path == self.path,
            Scope::Tree => path.is_within(self.path),
            Scope::Names => operation == Operation::List && path.is_within(self.path),
        };
        // The right is the cheap check.
        if !self.rights.has(operation.right()) || !reaches() {
            return Access::Denied;
        }
        if operation != Operation::List
            && let Some(suffixes) = self.suffixes
            && !path.name().is_some_and(|name| suffixes.matches(name))
        {
            return Access::Denied;
        }
        match (operation, self.max_file_bytes) {
            (Operation::Write, Some(bytes)) => Access::UpTo(bytes),
            _ => Access::Full,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            Scope::Tree | Scope::File => write_clause(f, "grant", self.rights, &self.path)?,
            Scope::Names => write!(f, "grant the names in {}", self.path)?,
        }
        self.suffixes.iter().try_for_each(|suffixes| write!(f, " {suffixes}"))
    }
}

fn write_clause(f: &mut fmt::Formatter<'_>, verb: &str, rights: Rights, target: &dyn fmt::Display) -> fmt::Result {
    if rights == Rights::ALL {
        write!(f, "{verb} all {target}")
    } else {
        write!(f, "{verb} {rights} {target}")
    }
}

/// A clause that forbids; it wins over every grant, whatever the order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deny {
    /// What it forbids: a path with everything below it, or names at any depth.
    pub target: Target,
    /// What it takes.
    pub rights: Rights,
    /// If present, files with one of these suffixes are exempt, and so is listing.
    pub except: Option<SuffixSet>,
    /// If present, only writes that would make a file larger than this are forbidden.
    pub beyond: Option<u64>,
    /// Where it ends: at roots inside its own, which have clauses of their own.
    pub ends: BTreeSet<Ending>,
    /// Where it was written.
    pub origin: Origin,
}

/// A path at which a [`Deny`] ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// A path and everything below it.
    Tree(AbsPath),
    /// This very path.
    File(AbsPath),
}

impl Ending {
    /// Where it is.
    pub const fn path(&self) -> &AbsPath {
        match self {
            Self::Tree(path) | Self::File(path) => path,
        }
    }

    /// Whether `path` lies in it.
    pub fn exempts(&self, path: &AbsPath) -> bool {
        match self {
            Self::Tree(at) => path.is_within(at),
            Self::File(at) => path == at,
        }
    }

    /// Whether `path` and everything below it lies in it.
    pub fn exempts_tree(&self, path: &AbsPath) -> bool {
        match self {
            Self::Tree(at) => path.is_within(at),
            Self::File(_) => false,
        }
    }

    /// Whether all of `other` lies in it.
    pub fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tree(_), Self::Tree(inner) | Self::File(inner)) | (Self::File(_), Self::File(inner)) => {
                self.exempts(inner)
            }
            (Self::File(_), Self::Tree(_)) => false,
        }
    }
}

/// What a [`Deny`] forbids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A path and everything below it.
    Path(AbsPath),
    /// Every entry below `root`, at any depth, whose name matches, with everything below it.
    Pattern {
        /// Where the pattern holds.
        root: AbsPath,
        /// Which names.
        pattern: Pattern,
    },
}

impl Target {
    /// The path, or that below which the pattern holds.
    pub const fn path(&self) -> &AbsPath {
        match self {
            Self::Path(path) | Self::Pattern { root: path, .. } => path,
        }
    }

    /// Whether the target includes `path`.
    pub fn covers(&self, path: &AbsPath) -> bool {
        match self {
            Self::Path(at) => path.is_within(at),
            Self::Pattern { root, pattern } => path
                .as_path()
                .strip_prefix(root.as_path())
                .is_ok_and(|below| below.iter().any(|name| pattern.matches(name))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => fmt::Display::fmt(path, f),
            Self::Pattern { root, pattern } => write!(f, "{pattern} below {root}"),
        }
    }
}

impl fmt::Display for Deny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_clause(f, "deny", self.rights, &self.target)?;
        if let Some(except) = &self.except {
            write!(f, " but {except}")?;
        }
        self.beyond.map_or(Ok(()), |bytes| write!(f, " beyond {bytes} bytes"))?;
        self.ends
            .iter()
            .try_for_each(|end| write!(f, ", outside {}", end.path()))
    }
}

impl Deny {
    /// A plain deny of `rights` on `path` and everything below it.
    pub fn tree(path: AbsPath, rights: Rights, origin: Origin) -> Self {
        Self {
            target: Target::Path(path),
            rights,
            except: None,
            beyond: None,
            ends: BTreeSet::new(),
            origin,
        }
    }

    /// Whether the clause applies to `path`: the target covers it, and the clause does not end at or above it.
    pub fn covers(&self, path: &AbsPath) -> bool {
        self.target.covers(path) && !self.exempts(path)
    }

    /// Whether the clause ends at `path` or above it.
    pub fn exempts(&self, path: &AbsPath) -> bool {
        self.ends.iter().any(|end| end.exempts(path))
    }

    /// Whether the clause reaches neither `path` nor anything below it, because it ends above.
    pub fn exempts_tree(&self, path: &AbsPath) -> bool {
        self.ends.iter().any(|end| end.exempts_tree(path))
    }

    /// Whether the clause ends somewhere at `path` or below it.
    pub fn ends_within(&self, path: &AbsPath) -> bool {
        self.ends.iter().any(|end| end.path().is_within(path))
    }

    /// What this clause leaves of `operation` on `path`: full access if it does not apply.
    pub fn leaves(&self, operation: Operation, path: &AbsPath) -> Access {
        if !self.rights.has(operation.right()) || !self.covers(path) {
            return Access::Full;
        }
        if let Some(except) = &self.except
            && (operation == Operation::List || path.name().is_some_and(|name| except.matches(name)))
        {
            return Access::Full;
        }
        match (operation, self.beyond) {
            (Operation::Write, Some(bytes)) => Access::UpTo(bytes),
            (_, Some(_)) => Access::Full,
            (_, None) => Access::Denied,
        }
    }
}

/// The names a pattern deny holds for: `name`, or `*suffix`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// Entries of exactly this name.
    Name(OsString),
    /// Entries whose name has this end.
    Suffix(OsString),
}

impl Pattern {
    /// Whether an entry of that name matches.
    pub fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::Name(exact) => name == exact,
            Self::Suffix(end) => name.as_bytes().ends_with(end.as_bytes()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&path::display(name)),
            Self::Suffix(end) => write!(f, "*{}", path::display(end)),
        }
    }
}
