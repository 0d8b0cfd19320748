//! An index of clauses by path: a lookup at a path and above takes at most as many steps as the path is deep.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

use crate::policy::AbsPath;

/// Values by path.
#[derive(Debug, Clone)]
pub(crate) struct Index<'a, T> {
    at: HashMap<&'a [u8], Values<T>, RandomState>,
    lengths: Lengths,
}

/// The values of one path; mostly one.
#[derive(Debug, Clone)]
struct Values<T> {
    first: T,
    more: Vec<T>,
}

impl<T> Default for Index<'_, T> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<'a, T> Index<'a, T> {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            at: HashMap::with_capacity_and_hasher(capacity, RandomState::default()),
            lengths: Lengths::default(),
        }
    }

    /// Files `value` under `path`.
    pub(crate) fn insert(&mut self, path: &'a AbsPath, value: T) {
        self.insert_bytes(path.as_bytes(), value);
    }

    /// Files `value` under the bytes of a normal, absolute path.
    pub(crate) fn insert_bytes(&mut self, path: &'a [u8], value: T) {
        self.lengths.add(path.len());
        match self.at.entry(path) {
            Entry::Occupied(mut values) => values.get_mut().more.push(value),
            Entry::Vacant(vacant) => {
                vacant.insert(Values {
                    first: value,
                    more: Vec::new(),
                });
            }
        }
    }

    /// The values at the path and at its ancestors, from `/` down.
    pub(crate) fn above(&self, path: &AbsPath) -> impl Iterator<Item = &T> {
        let known = prefixes(path.as_bytes()).filter(|prefix| self.lengths.has(prefix.len()));
        known.filter_map(|prefix| self.at.get(prefix)).flat_map(Values::all)
    }

    /// The values at exactly that path.
    pub(crate) fn exactly(&self, path: &AbsPath) -> impl Iterator<Item = &T> {
        self.at.get(path.as_bytes()).into_iter().flat_map(Values::all)
    }
}

impl<T> Values<T> {
    fn all(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

impl<'a, T> FromIterator<(&'a AbsPath, T)> for Index<'a, T> {
    fn from_iter<I: IntoIterator<Item = (&'a AbsPath, T)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        let mut index = Self::with_capacity(pairs.size_hint().0);
        for (path, value) in pairs {
            index.insert(path, value);
        }
        index
    }
}

/// The lengths of the indexed paths: other lengths are skipped in a lookup.
#[derive(Debug, Clone, Default)]
struct Lengths(Vec<u64>);

impl Lengths {
    fn add(&mut self, length: usize) {
        let word = length / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (length % 64);
    }

    fn has(&self, length: usize) -> bool {
        self.0
            .get(length / 64)
            .is_some_and(|word| word & (1 << (length % 64)) != 0)
    }
}

/// A value for each path, set by paths at it or below it.
#[derive(Debug, Clone)]
pub(crate) struct Beneath<'a, T> {
    at: HashMap<&'a [u8], T, RandomState>,
}

impl<T> Default for Beneath<'_, T> {
    fn default() -> Self {
        Self { at: HashMap::default() }
    }
}

impl<'a, T: Default> Beneath<'a, T> {
    /// Updates the values of `path` and of every ancestor.
    pub(crate) fn say(&mut self, path: &'a AbsPath, say: impl Fn(&mut T)) {
        for prefix in prefixes(path.as_bytes()) {
            say(self.at.entry(prefix).or_default());
        }
    }

    /// The value of a path.
    pub(crate) fn of(&self, path: &AbsPath) -> Option<&T> {
        self.at.get(path.as_bytes())
    }
}

/// `/`, `/a`, `/a/b` for `/a/b`: a normal path needs no parsing.
pub(super) fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
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
        let twice: Index<'_, u8> = [(&ab, 1), (&ab, 2), (&ab, 3)].into_iter().collect();
        assert_eq!(twice.exactly(&ab).copied().collect::<Vec<u8>>(), [1, 2, 3]);
        assert_eq!(twice.above(&abc).count(), 0);
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
