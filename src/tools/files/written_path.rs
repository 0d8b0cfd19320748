//! A path as an agent wrote it → where to look.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::policy::{AbsPath, Policy};

/// Where to look for a path; nothing is known of it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenPath {
    /// The path as the agent wrote it, for messages.
    pub(super) written: String,
    /// The path; absolute, may have `..` and lead through symlinks.
    pub(super) path: OsString,
    /// Where that is if no symlink is on the way.
    pub(super) plain: AbsPath,
    /// The root that it must lie in, where one was named.
    pub(super) root: Option<String>,
}

/// `name:rel` (below the root of that name), absolute, or relative to the working directory.
///
/// A name that is no root's is part of an ordinary path; `./a:b` is one whatever roots there are.
pub(super) fn parse_path(policy: &Policy, directory: &Path, written: &str) -> Result<WrittenPath, String> {
    if written.is_empty() {
        return Err("an empty path".to_owned());
    }
    if written.contains('\0') {
        return Err("a path with a NUL byte".to_owned());
    }
    let named = written
        .split_once(':')
        .and_then(|(name, rest)| Some((policy.roots.iter().find(|root| root.name == name)?, rest)));
    let (path, root) = match named {
        Some((_, rest)) if rest.starts_with('/') => {
            return Err(format!("`{written}`: what follows the root's name is relative to it"));
        }
        Some((root, "")) => (root.path.as_path().to_owned(), Some(root.name.clone())),
        Some((root, rest)) => (root.path.as_path().join(rest), Some(root.name.clone())),
        None => (directory.join(written), None),
    };
    Ok(WrittenPath {
        written: written.to_owned(),
        plain: plain(&path),
        path: path.into_os_string(),
        root,
    })
}

/// The path with `..` resolved without looking at the disk.
pub(in crate::tools) fn plain(path: &Path) -> AbsPath {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    AbsPath::new(plain).unwrap_or_else(|_| AbsPath::root())
}
