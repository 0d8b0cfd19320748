//! Absolute, normal paths: the only kind a clause can name.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

pub use super::visible::{display, escape, escape_backslashes, is_escaped};

/// An absolute path without `.`, `..`, doubled or trailing slashes, or NUL.
///
/// Compared by component, so `/a/b` lies within `/a` and `/ab` does not. Being normal says nothing
/// about symlinks: resolving those is the config loader's work, done once.
#[derive(Clone)]
pub struct AbsPath(PathBuf);

// A normal path has one spelling, so comparing bytes is comparing components, and many times faster
// than std, which parses both paths each time.
impl PartialEq for AbsPath {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for AbsPath {}

impl Hash for AbsPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialOrd for AbsPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By component: a directory comes right before what lies below it.
impl Ord for AbsPath {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.as_bytes(), other.as_bytes());
        // Eight bytes at a time: paths that are compared mostly begin the same.
        let same = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(x, y)| x == y);
        let same = 8 * same.count();
        let differ = a[same..].iter().zip(&b[same..]).position(|(x, y)| x != y);
        let differ = differ.map(|i| same + i);
        // A slash ends a component, so it sorts before every byte a name can have; NUL is not one.
        let rank = |byte: u8| if byte == b'/' { 0 } else { byte };
        differ.map_or_else(|| a.len().cmp(&b.len()), |i| rank(a[i]).cmp(&rank(b[i])))
    }
}

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
        let (path, above) = (self.as_bytes(), ancestor.as_bytes());
        path.starts_with(above) && (above.len() == 1 || path.len() == above.len() || path[above.len()] == b'/')
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
        single.then(|| {
            let mut path = PathBuf::with_capacity(self.as_bytes().len() + bytes.len() + 1);
            path.push(&self.0);
            path.push(name);
            Self(path)
        })
    }

    /// The directory that holds the path; `None` for `/`.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|p| Self(p.to_owned()))
    }

    /// The last component; `None` for `/`.
    pub fn name(&self) -> Option<&OsStr> {
        let name = self.as_bytes().rsplit(|&b| b == b'/').next().unwrap_or_default();
        (!name.is_empty()).then(|| OsStr::from_bytes(name))
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
    fn paths_are_ordered_and_nested_as_std_has_it() {
        let texts = [
            "/", "/a", "/a/b", "/a/b/c", "/a!b", "/a.b", "/ab", "/a/!", "/b", "/é", "/a\u{1}",
        ];
        for (x, y) in texts.iter().flat_map(|x| texts.iter().map(move |y| (x, y))) {
            let (a, b) = (AbsPath::new(x).unwrap(), AbsPath::new(y).unwrap());
            assert_eq!(a.cmp(&b), Path::new(x).cmp(Path::new(y)), "{x} {y}");
            assert_eq!(a == b, x == y);
            assert_eq!(a.is_within(&b), Path::new(x).starts_with(y), "{x} {y}");
        }
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
}
