//! A path as it was typed → the resolved path, with every symlink on the way.
//!
//! The walk goes one component at a time, so that a link that the agent could re-point before the next
//! start is found and refused.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::context::Context;
use super::source::Source;
use crate::policy::path::display;
use crate::policy::{AbsPath, Identity};

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Why a path cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// The text is empty or holds a NUL byte.
    #[error("not a path")]
    NotAPath,
    /// `~/` without a passwd entry.
    #[error("`~` cannot be resolved: this user has no passwd entry")]
    NoHome,
    /// `~name`.
    #[error("another user's home is not looked up")]
    OtherHome,
    /// `$NAME` outside a preset.
    #[error("variables are not expanded here")]
    Variable,
    /// `$CWD` where it means nothing.
    #[error("`$CWD` cannot stand here")]
    Start,
    /// `$CWD` where the current directory was removed, or cannot be looked at.
    #[error("the directory Stockade was started in cannot be told")]
    NoStart,
    /// A component cannot be read.
    #[error("failed to look at {}: {source}", display(.path))]
    Look {
        /// How far the walk had come.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// More links than the kernel would follow.
    #[error("too many symlinks")]
    Loop,
}

/// A resolved path.
#[derive(Debug, Clone)]
pub(crate) struct Walked {
    /// The path with every link resolved; its last components may be missing.
    pub(crate) path: AbsPath,
    /// What is there; `None` when it is missing.
    pub(crate) found: Option<Metadata>,
    /// The paths of the links that were followed.
    pub(crate) links: Vec<AbsPath>,
}

impl Walked {
    /// A missing path, unresolved.
    pub(crate) fn missing(path: &Path) -> Result<Self, PathError> {
        Ok(Self {
            path: AbsPath::new(path).map_err(|_| PathError::NotAPath)?,
            found: None,
            links: Vec::new(),
        })
    }

    /// Device and inode of what is there.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.found.as_ref().map(identity)
    }
}

/// Device and inode.
pub(crate) fn identity(metadata: &Metadata) -> Identity {
    Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}

/// Which variables a text may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    /// `$CWD`, and any `$NAME/…`: it stands in a preset.
    Expand,
    /// `$CWD`: it stands in a config that a person wrote.
    Start,
    /// None.
    Refuse,
}

impl Variables {
    /// Those of paths that may be relative.
    pub(crate) fn of(source: &Source) -> Self {
        if source.is_preset() { Self::Expand } else { Self::Start }
    }
}

/// What follows `$CWD` or `${CWD}` in a text that begins with it, which names the directory Stockade was started in.
pub(crate) fn below_start(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("$CWD").or_else(|| text.strip_prefix("${CWD}"))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The path a text means, before links are resolved. `None` where a preset names what this user does not have.
pub(crate) fn expand(
    text: &str,
    base: &AbsPath,
    variables: Variables,
    context: &Context,
) -> Result<Option<PathBuf>, PathError> {
    if text.is_empty() || text.contains('\0') {
        return Err(PathError::NotAPath);
    }
    let below = |start: &AbsPath, rest: &str| start.as_path().join(rest.trim_start_matches('/'));
    if let Some(rest) = text.strip_prefix('~') {
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(PathError::OtherHome);
        }
        return match (&context.home, variables) {
            (Some(home), _) => Ok(Some(below(home, rest))),
            (None, Variables::Expand) => Ok(None),
            (None, Variables::Start | Variables::Refuse) => Err(PathError::NoHome),
        };
    }
    if let Some(rest) = below_start(text) {
        return match (&context.start, variables) {
            (_, Variables::Refuse) => Err(PathError::Start),
            (Some(start), Variables::Expand | Variables::Start) => Ok(Some(below(start, rest))),
            (None, Variables::Expand | Variables::Start) => Err(PathError::NoStart),
        };
    }
    if let Some(rest) = text.strip_prefix('$') {
        if variables != Variables::Expand {
            return Err(PathError::Variable);
        }
        let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
        return Ok(context.path_variable(name).map(|start| below(&start, rest)));
    }
    Ok(Some(base.as_path().join(text)))
}

/// Resolves an absolute path.
pub(crate) fn walk(path: &Path) -> Result<Walked, PathError> {
    let root = AbsPath::root();
    let found = Some(look(root.as_path())?);
    let start = Walked {
        path: root,
        found,
        links: Vec::new(),
    };
    walk_on(start, path)
}

/// Resolves a relative path from a resolved one.
pub(crate) fn walk_on(start: Walked, path: &Path) -> Result<Walked, PathError> {
    let mut todo: VecDeque<OsString> = VecDeque::new();
    let Walked {
        path: mut at,
        mut found,
        mut links,
    } = start;
    push_front(&mut todo, path);
    while let Some(name) = todo.pop_front() {
        if name.as_bytes() == b".." {
            // The kernel gives no parent for a missing directory.
            if found.is_none() {
                return Err(PathError::Look {
                    path: at.as_path().to_owned(),
                    source: io::ErrorKind::NotFound.into(),
                });
            }
            at = at.parent().unwrap_or(at);
            found = Some(look(at.as_path())?);
            continue;
        }
        let next = at.child(&name).ok_or(PathError::NotAPath)?;
        if found.is_none() {
            at = next;
            continue;
        }
        match look(next.as_path()) {
            Ok(there) if there.is_symlink() => {
                if links.len() == MAX_LINKS {
                    return Err(PathError::Loop);
                }
                let target = std::fs::read_link(&next).map_err(|source| PathError::Look {
                    path: next.as_path().to_owned(),
                    source,
                })?;
                if target.is_absolute() {
                    at = AbsPath::root();
                }
                push_front(&mut todo, &target);
                links.push(next);
            }
            Ok(there) => {
                at = next;
                found = Some(there);
            }
            Err(PathError::Look { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                at = next;
                found = None;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(Walked { path: at, found, links })
}

/// The path with its links resolved; unchanged if it cannot be resolved.
pub(crate) fn real(path: &AbsPath) -> AbsPath {
    walk(path.as_path()).map_or_else(|_| path.clone(), |walked| walked.path)
}

/// Resolves every link of a path; its last components may be missing.
///
/// Below a directory that this user cannot search, the path is taken as it stands: no command of
/// this user gets there either.
pub fn resolve_path(path: &Path) -> io::Result<AbsPath> {
    match walk(path) {
        Ok(walked) => Ok(walked.path),
        Err(PathError::Look { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            AbsPath::new(path).map_err(io::Error::other)
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

fn look(path: &Path) -> Result<Metadata, PathError> {
    std::fs::symlink_metadata(path).map_err(|source| PathError::Look {
        path: path.to_owned(),
        source,
    })
}

fn push_front(todo: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => todo.push_front(name.to_owned()),
            Component::ParentDir => todo.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}
