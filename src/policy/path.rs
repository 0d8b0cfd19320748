//! Absolute, normal paths: the only kind a clause can name.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// An absolute path without `.`, `..`, doubled or trailing slashes, or NUL.
///
/// Compared by component, so `/a/b` lies within `/a` and `/ab` does not. Being normal says nothing
/// about symlinks: resolving those is the config loader's work, done once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(PathBuf);

/// Why a path is not an [`AbsPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path does not start at `/`.
    #[error("not an absolute path: {}", display(.0))]
    Relative(PathBuf),
    /// The path has a `..` component.
    #[error("a path may not contain `..`: {}", display(.0))]
    Parent(PathBuf),
    /// The path has a NUL byte.
    #[error("a path may not contain a NUL byte: {}", display(.0))]
    Nul(PathBuf),
}

impl AbsPath {
    /// The path, if it is absolute and has neither `..` nor NUL; `.` and doubled slashes are dropped.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        if path.as_os_str().as_bytes().contains(&0) {
            return Err(PathError::Nul(path.to_owned()));
        }
        if !path.is_absolute() {
            return Err(PathError::Relative(path.to_owned()));
        }
        let mut normal = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir => return Err(PathError::Parent(path.to_owned())),
                Component::Normal(name) => normal.push(name),
            }
        }
        Ok(Self(normal))
    }

    /// The root directory.
    pub fn root() -> Self {
        Self(PathBuf::from("/"))
    }

    /// The path as std knows it.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// Whether the path is `ancestor` or lies below it.
    pub fn is_within(&self, ancestor: &Self) -> bool {
        self.0.starts_with(&ancestor.0)
    }

    /// Whether the path lies strictly below `ancestor`.
    pub fn is_below(&self, ancestor: &Self) -> bool {
        self != ancestor && self.is_within(ancestor)
    }

    /// The entry `name` of this directory; `None` when `name` is not a single component.
    pub fn child(&self, name: impl AsRef<OsStr>) -> Option<Self> {
        let name = name.as_ref();
        let bytes = name.as_bytes();
        let single =
            !bytes.is_empty() && bytes != b"." && bytes != b".." && !bytes.contains(&b'/') && !bytes.contains(&0);
        single.then(|| Self(self.0.join(name)))
    }

    /// The directory that holds the path; `None` for `/`.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|p| Self(p.to_owned()))
    }

    /// The last component; `None` for `/`.
    pub fn name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// The path itself, then each ancestor up to `/`.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        self.0.ancestors().map(|p| Self(p.to_owned()))
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display(&self.0))
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// The text in which a name of any bytes is shown to a person: printable characters as they are,
/// everything that could move a cursor, hide or reorder text as an escape.
pub fn display(path: impl AsRef<OsStr>) -> String {
    escape(path.as_ref().as_bytes())
}

/// [`display`] for bytes that are not a path: a command line, a program's output.
pub fn escape(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    use unicode_general_category::{GeneralCategory as Category, get_general_category};
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match get_general_category(c) {
                Category::Control
                | Category::Format
                | Category::LineSeparator
                | Category::ParagraphSeparator
                | Category::PrivateUse
                | Category::Surrogate
                | Category::Unassigned => out.extend(c.escape_default()),
                Category::SpaceSeparator if c != ' ' => out.extend(c.escape_default()),
                _ => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _infallible = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sibling_with_a_common_prefix_is_not_within() {
        let a = AbsPath::new("/a").unwrap();
        assert!(!AbsPath::new("/ab").unwrap().is_within(&a));
        assert!(AbsPath::new("/a/b").unwrap().is_within(&a));
    }

    #[test]
    fn dots_and_doubled_slashes_are_dropped() {
        assert_eq!(AbsPath::new("//a/./b/").unwrap(), AbsPath::new("/a/b").unwrap());
    }

    #[test]
    fn relative_parent_and_nul_are_refused() {
        assert!(matches!(AbsPath::new("a"), Err(PathError::Relative(_))));
        assert!(matches!(AbsPath::new("/a/../b"), Err(PathError::Parent(_))));
        assert!(matches!(
            AbsPath::new(OsStr::from_bytes(b"/a\0")),
            Err(PathError::Nul(_))
        ));
    }

    #[test]
    fn hostile_names_are_shown_escaped() {
        assert_eq!(display(OsStr::from_bytes(b"/a\n\x1b[2J\xff")), "/a\\n\\u{1b}[2J\\xff");
        assert_eq!(display("/\u{202e}x"), "/\\u{202e}x");
        assert_eq!(display("/é"), "/é");
    }
}
