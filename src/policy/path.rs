//! Absolute, normal paths: the only kind a clause can name.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

pub use super::escaping::{display, escape, escape_backslashes, is_escaped};

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
        let same = shared(a, b);
        // A slash ends a component, so it sorts before every byte a name can have; NUL is not one.
        let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
        a.get(same).map(rank).cmp(&b.get(same).map(rank))
    }
}

/// The length of the common prefix. Compares eight bytes at a time: compared paths often share a long prefix.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let most = a.len().min(b.len());
    let (a, b) = (&a[..most], &b[..most]);
    let differ = |x: &[u8; 8], y: &[u8; 8]| {
        let bits = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        (bits != 0).then_some(bits.trailing_zeros() as usize / 8)
    };
    let (chunks, others) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let found = chunks.iter().zip(others).enumerate();
    if let Some(index) = found.into_iter().find_map(|(i, (x, y))| Some(8 * i + differ(x, y)?)) {
        return index;
    }
    match (a.last_chunk(), b.last_chunk()) {
        // Some of these bytes are already known to be equal.
        (Some(x), Some(y)) => differ(x, y).map_or(most, |index| most - 8 + index),
        _ => a.iter().zip(b).take_while(|(x, y)| x == y).count(),
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
        if is_normal(path.as_os_str().as_bytes()) {
            return Ok(Self(path.to_owned()));
        }
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

    /// The path as an owned text.
    pub fn into_os_string(self) -> OsString {
        self.0.into_os_string()
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
            let above = self.as_bytes();
            let mut path = Vec::with_capacity(above.len() + bytes.len() + 1);
            path.extend_from_slice(above);
            if above.len() > 1 {
                path.push(b'/');
            }
            path.extend_from_slice(bytes);
            Self(OsString::from_vec(path).into())
        })
    }

    /// The directory that holds the path; `None` for `/`.
    pub fn parent(&self) -> Option<Self> {
        let parent = parent_of(self.as_bytes())?;
        Some(Self(OsStr::from_bytes(parent).into()))
    }

    /// The last component; `None` for `/`.
    pub fn name(&self) -> Option<&OsStr> {
        let name = self.as_bytes().rsplit(|&b| b == b'/').next().unwrap_or_default();
        (!name.is_empty()).then(|| OsStr::from_bytes(name))
    }

    /// The path itself, then each ancestor up to `/`.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let all = std::iter::successors(Some(self.as_bytes()), |path| parent_of(path));
        all.map(|path| Self(OsStr::from_bytes(path).into()))
    }
}

/// The directory above a normal path, which needs no parsing.
fn parent_of(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|&byte| byte == b'/')?;
    (path.len() > 1).then(|| &path[..slash.max(1)])
}

/// Whether bytes have the form of an [`AbsPath`].
pub fn is_normal(path: &[u8]) -> bool {
    let Some((b'/', below)) = path.split_first() else {
        return false;
    };
    let plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    below.is_empty() || below.split(|&byte| byte == b'/').all(plain)
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
    use proptest::prelude::*;

    /// Bytes of which many come near to a path.
    fn near_a_path() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => Just(b'/'), 3 => Just(b'.'), 4 => Just(b'a'), 1 => any::<u8>()];
        proptest::collection::vec(byte, 0..24)
    }

    /// The path that std's parts make of an absolute one.
    fn slowly(bytes: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(bytes));
        let up = path.components().any(|part| part == Component::ParentDir);
        (path.is_absolute() && !up && !bytes.contains(&0)).then(|| path.components().collect())
    }

    proptest! {
        #[test]
        fn a_path_is_what_stds_parts_make_of_it(bytes in near_a_path()) {
            let made = AbsPath::new(Path::new(OsStr::from_bytes(&bytes))).ok();
            let made = made.as_ref().map(|path| path.as_path().as_os_str());
            let expected = slowly(&bytes);
            prop_assert_eq!(made, expected.as_ref().map(|path| path.as_os_str()));
            prop_assert_eq!(is_normal(&bytes), expected.is_some_and(|path| path.as_os_str().as_bytes() == bytes));
        }

        #[test]
        fn the_order_of_any_two_paths_is_that_of_std(a in near_a_path(), b in near_a_path()) {
            let path = |bytes: &[u8]| AbsPath::new(Path::new(OsStr::from_bytes(&[b"/", bytes].concat()))).ok();
            if let (Some(a), Some(b)) = (path(&a), path(&b)) {
                prop_assert_eq!(a.cmp(&b), a.as_path().cmp(b.as_path()));
                prop_assert_eq!(a.is_within(&b), a.as_path().starts_with(b.as_path()));
            }
        }
    }

    #[test]
    fn a_sibling_with_a_common_prefix_is_not_within() {
        let a = AbsPath::new("/a").unwrap();
        assert!(!AbsPath::new("/ab").unwrap().is_within(&a));
        assert!(AbsPath::new("/a/b").unwrap().is_within(&a));
    }

    #[test]
    fn paths_are_ordered_and_nested_as_std_has_it() {
        let texts = [
            "/",
            "/a",
            "/a/b",
            "/a/b/c",
            "/a!b",
            "/a.b",
            "/ab",
            "/a/!",
            "/b",
            "/é",
            "/a\u{1}",
            "/eight/b",
            "/eight/bytes",
            "/eight/bytes-and",
            "/eight/bytes/and",
            "/eight/bytes/and/another",
            "/eight/bytes/and/other",
        ];
        for (x, y) in texts.iter().flat_map(|x| texts.iter().map(move |y| (x, y))) {
            let (a, b) = (AbsPath::new(x).unwrap(), AbsPath::new(y).unwrap());
            assert_eq!(a.cmp(&b), Path::new(x).cmp(Path::new(y)), "{x} {y}");
            assert_eq!(a == b, x == y);
            assert_eq!(a.is_within(&b), Path::new(x).starts_with(y), "{x} {y}");
        }
    }

    #[test]
    fn what_lies_above_is_what_std_has_above() {
        for text in ["/", "/a", "/a/b", "/a/b.c/d"] {
            let path = AbsPath::new(text).unwrap();
            let above: Vec<AbsPath> = path.ancestors().collect();
            let above: Vec<&Path> = above.iter().map(AbsPath::as_path).collect();
            assert_eq!(above, Path::new(text).ancestors().collect::<Vec<_>>());
            assert_eq!(path.parent().as_ref().map(AbsPath::as_path), Path::new(text).parent());
        }
    }

    #[test]
    fn dots_and_doubled_slashes_are_dropped() {
        for text in ["//a/./b/", "/a//b", "/./a/b", "/a/b/.", "/a/b//", "/a/b"] {
            assert_eq!(AbsPath::new(text).unwrap().as_bytes(), b"/a/b", "{text}");
        }
        assert_eq!(AbsPath::new("//").unwrap().as_bytes(), b"/");
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
