//! Clauses by path: what stands at a path or above it is found in as many steps as the path is deep.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::policy::AbsPath;

/// Values filed under paths.
#[derive(Debug, Clone)]
pub struct Index<'a, T> {
    at: HashMap<&'a [u8], Vec<T>, RandomState>,
}

impl<T> Default for Index<'_, T> {
    fn default() -> Self {
        Self { at: HashMap::default() }
    }
}

impl<'a, T> Index<'a, T> {
    /// Files `value` under `path`.
    pub fn insert(&mut self, path: &'a AbsPath, value: T) {
        self.insert_bytes(path.as_bytes(), value);
    }

    /// Files `value` under the bytes of a normal, absolute path.
    pub fn insert_bytes(&mut self, path: &'a [u8], value: T) {
        self.at.entry(path).or_default().push(value);
    }

    /// The values at the path and at its ancestors, from `/` down.
    pub fn above(&self, path: &AbsPath) -> impl Iterator<Item = &T> {
        prefixes(path.as_bytes())
            .filter_map(|prefix| self.at.get(prefix))
            .flatten()
    }

    /// The values at exactly that path.
    pub fn exactly(&self, path: &AbsPath) -> &[T] {
        self.at.get(path.as_bytes()).map_or(&[], Vec::as_slice)
    }
}

impl<'a, T> FromIterator<(&'a AbsPath, T)> for Index<'a, T> {
    fn from_iter<I: IntoIterator<Item = (&'a AbsPath, T)>>(pairs: I) -> Self {
        let mut index = Self::default();
        for (path, value) in pairs {
            index.insert(path, value);
        }
        index
    }
}

/// What is said of a path by what lies at it or below it.
#[derive(Debug, Clone)]
pub struct Beneath<'a, T> {
    at: HashMap<&'a [u8], T, RandomState>,
}

impl<T> Default for Beneath<'_, T> {
    fn default() -> Self {
        Self { at: HashMap::default() }
    }
}

impl<'a, T: Default> Beneath<'a, T> {
    /// Has `path` say something of itself and of every ancestor.
    pub fn say(&mut self, path: &'a AbsPath, say: impl Fn(&mut T)) {
        for prefix in prefixes(path.as_bytes()) {
            say(self.at.entry(prefix).or_default());
        }
    }

    /// What was said of a path.
    pub fn of(&self, path: &AbsPath) -> Option<&T> {
        self.at.get(path.as_bytes())
    }
}

/// `/`, `/a`, `/a/b` for `/a/b`: a normal path needs no parsing.
fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inner = (1..path.len()).filter(|&i| path[i] == b'/').map(|i| &path[..i]);
    let last = (path.len() > 1).then_some(path);
    std::iter::once(&path[..1]).chain(inner).chain(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    #[test]
    fn what_stands_above_is_found_from_the_root_down() {
        let (root, a, ab, abc) = (path("/"), path("/a"), path("/a/b"), path("/ab"));
        let index: Index<'_, u8> = [(&ab, 3), (&root, 1), (&a, 2), (&abc, 9)].into_iter().collect();
        let found = |at: &str| index.above(&path(at)).copied().collect::<Vec<u8>>();
        assert_eq!(found("/a/b/c"), [1, 2, 3]);
        assert_eq!(found("/a/b"), [1, 2, 3]);
        assert_eq!(found("/"), [1]);
        assert_eq!(found("/ab"), [1, 9]);
    }

    #[test]
    fn what_lies_beneath_speaks_of_itself_and_of_what_is_above() {
        let (ab, ac) = (path("/a/b"), path("/a/c"));
        let mut beneath = Beneath::<Vec<u8>>::default();
        beneath.say(&ab, |said| said.push(1));
        beneath.say(&ac, |said| said.push(2));
        let of = |at: &str| beneath.of(&path(at)).map(Vec::as_slice);
        assert_eq!((of("/"), of("/a")), (Some(&[1, 2][..]), Some(&[1, 2][..])));
        assert_eq!((of("/a/b"), of("/a/c")), (Some(&[1][..]), Some(&[2][..])));
        assert_eq!((of("/a/b/c"), of("/ab")), (None, None));
    }
}
