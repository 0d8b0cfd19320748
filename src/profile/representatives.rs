//! Finitely many paths that stand for all of them.
//!
//! What a clause says of a path depends on three things only: which *landmarks* (paths named by
//! some clause, and their ancestors) the path is or lies below; how its last name ends; and which
//! pattern denies match one of its names. Let `q = d/c1/…/ck` where `d` is the deepest landmark at
//! or above `q`. If `k = 0`, `q` is a landmark and is tried itself. Otherwise suppose `q` is a
//! witness: A gives it more than B does.
//!
//! * B gives too little by its grants, by a deny of a path, or by a pattern that matches inside `d`
//!   or matches `ck`. Then `d/ck` is a witness as well: B's reason depends on `d` and `ck` alone, and
//!   with fewer names fewer of A's patterns match, so A gives no less. Where `d/ck` is itself a
//!   landmark, a neutral name in between (one that no pattern matches) keeps clear of it.
//! * B's pattern matches `ci`, `i < k`. Then `d/ci/ck` is a witness, for the same reasons.
//!
//! It remains to choose names. Clauses tell two names apart by whether they equal a pattern's exact
//! name, and by which *endings* (suffixes and `*suffix` patterns) they have. The endings of a name are
//! those of its longest one, `t`, and of nothing longer, because an ending of `t` is an ending of the
//! name. A suffix asks for something before it and a pattern does not, so a name that *is* `t` counts
//! apart from one that is longer. So: every exact name, every ending as a whole name, and for every
//! ending (the empty one included) one longer name in which no longer ending begins to show. That is
//! how a pattern `*.tar.gz` meets a suffix `.gz`: each is the longest ending of a name of its own.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::rc::Rc;

use crate::policy::{AbsPath, Pattern, SuffixSet};

/// The paths, endings and patterns that decide what a reach permits.
#[derive(Debug, Clone, Default)]
pub struct Landmarks<'a> {
    /// As they were named; a path may stand here more than once.
    paths: Vec<Cow<'a, AbsPath>>,
    marks: BTreeMap<AbsPath, Marks>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Marks {
    endings: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Pattern>,
}

impl Marks {
    fn is_empty(&self) -> bool {
        self.endings.is_empty() && self.patterns.is_empty()
    }
}

impl<'a> Landmarks<'a> {
    /// A clause names this path.
    pub fn path(&mut self, path: &'a AbsPath) {
        self.paths.push(Cow::Borrowed(path));
    }

    /// The same of a path that is written down nowhere.
    pub fn owned(&mut self, path: AbsPath) {
        self.paths.push(Cow::Owned(path));
    }

    /// A clause at this path looks at how names end.
    pub fn suffixes(&mut self, path: &AbsPath, suffixes: &SuffixSet) {
        let endings = suffixes.iter().map(|suffix| suffix.as_str().as_bytes().to_vec());
        self.marks(path).endings.extend(endings);
    }

    /// A clause matches names below this path.
    pub fn pattern(&mut self, root: &AbsPath, pattern: &Pattern) {
        let marks = self.marks(root);
        marks.patterns.insert(pattern.clone());
        if let Pattern::Suffix(end) = pattern {
            marks.endings.insert(end.as_bytes().to_vec());
        }
    }

    fn marks(&mut self, path: &AbsPath) -> &mut Marks {
        self.owned(path.clone());
        self.marks.entry(path.clone()).or_default()
    }

    /// Calls `try_path` with a representative of every class of paths until it answers with something.
    pub(super) fn search<T>(self, mut try_path: impl FnMut(&AbsPath) -> Option<T>) -> Option<T> {
        self.walk(|_, path| try_path(path))
    }

    /// Shows every representative, with the landmark at it or above it; landmarks come sorted.
    pub(super) fn visit(self, mut show: impl FnMut(&AbsPath, &AbsPath)) {
        let _to_the_end: Option<()> = self.walk(|landmark, path| {
            show(landmark, path);
            None
        });
    }

    fn walk<T>(mut self, mut try_path: impl FnMut(&AbsPath, &AbsPath) -> Option<T>) -> Option<T> {
        self.owned(AbsPath::root());
        // Most clauses are named in order, which a stable sort finds out.
        self.paths.sort();
        self.paths.dedup();
        let unmarked = Marks::default();
        let mut marked = self.marks.iter().peekable();

        // Parents come before what lies below them, so a stack holds the way down.
        let mut stack: Vec<(Cow<'_, AbsPath>, Rc<Names>)> = Vec::new();
        for (number, path) in self.paths.iter().enumerate() {
            while stack.last().is_some_and(|(above, _)| !path.is_within(above)) {
                stack.pop();
            }
            // What lies between is a landmark as well, and sorts right before the first that lies below it.
            let between = between(stack.last().map(|(above, _)| &**above), path);
            let between = between.into_iter().map(|path| (Cow::Owned(path), &unmarked, number));
            let marks = marked
                .next_if(|(at, _)| **at == **path)
                .map_or(&unmarked, |(_, marks)| marks);
            for (path, marks, next) in between.chain([(Cow::Borrowed(&**path), marks, number + 1)]) {
                let inherited = stack.last().map_or_else(Rc::default, |(_, names)| Rc::clone(names));
                let names = if marks.is_empty() && !inherited.free.is_empty() {
                    inherited
                } else {
                    Rc::new(inherited.with(marks))
                };
                let below = Below::new(&path, &self.paths[next..]);
                let found = try_path(&path, &path).or_else(|| names.below(&path, &below, |p| try_path(&path, p)));
                if found.is_some() {
                    return found;
                }
                stack.push((path, names));
            }
        }
        None
    }
}

/// The directories between a path and one above it, from the upper one down.
fn between(above: Option<&AbsPath>, path: &AbsPath) -> Vec<AbsPath> {
    let taken = above.map_or(0, |above| above.as_bytes().len());
    let beyond = path.as_bytes().get(taken + 1..).unwrap_or_default();
    if !beyond.contains(&b'/') {
        return Vec::new();
    }
    let ancestors = path.ancestors().skip(1);
    let mut found: Vec<AbsPath> = ancestors.take_while(|at| at.as_bytes().len() > taken).collect();
    found.reverse();
    found
}

/// The landmarks below one.
struct Below<'a> {
    /// Those that sort behind it; none where the first of them does not lie below it.
    rest: &'a [Cow<'a, AbsPath>],
}

impl<'a> Below<'a> {
    fn new(path: &AbsPath, behind: &'a [Cow<'a, AbsPath>]) -> Self {
        let none = behind.first().is_none_or(|next| !next.is_within(path));
        Self {
            rest: if none { &[] } else { behind },
        }
    }

    /// Whether a path is a landmark: some clause names it, or what lies below it.
    fn has(&self, path: &AbsPath) -> bool {
        // Most have few, so what is looked through grows from the front.
        let mut most = 1;
        while self.rest.get(most).is_some_and(|other| **other < *path) {
            most *= 2;
        }
        let near = self.rest.get(..=most).unwrap_or(self.rest);
        let first = near.partition_point(|other| **other < *path);
        near.get(first).is_some_and(|other| other.is_within(path))
    }
}

/// The names worth trying below a landmark.
#[derive(Debug, Clone, Default)]
struct Names {
    marks: Marks,
    /// Every class of names, once.
    free: Vec<OsString>,
    /// Those of them that a pattern matches.
    matched: Vec<OsString>,
    /// Names that no pattern matches, or as few patterns as can be.
    between: Vec<OsString>,
}

impl Names {
    fn with(&self, more: &Marks) -> Self {
        let mut marks = self.marks.clone();
        marks.endings.extend(more.endings.iter().cloned());
        marks.patterns.extend(more.patterns.iter().cloned());
        let mut names: BTreeSet<Vec<u8>> = marks.endings.clone();
        for pattern in &marks.patterns {
            if let Pattern::Name(name) = pattern {
                names.insert(name.as_bytes().to_vec());
            }
        }
        let exact = names.clone();
        let mut between = Vec::new();
        for longest in marks.endings.iter().cloned().chain([Vec::new()]) {
            let longer = names_ending(&longest, &marks.endings, &exact);
            if longest.is_empty() {
                between.extend(longer.iter().cloned().map(OsString::from_vec));
            }
            names.extend(longer);
        }
        let free: Vec<OsString> = names.into_iter().map(OsString::from_vec).collect();
        let is_matched = |name: &&OsString| marks.patterns.iter().any(|pattern| pattern.matches(name));
        let matched: Vec<OsString> = free.iter().filter(is_matched).cloned().collect();
        if between.is_empty() {
            // Every name has some ending: no name is neutral, so each class takes its turn.
            between.clone_from(&free);
        }
        Self {
            marks,
            free,
            matched,
            between,
        }
    }

    /// Shows the paths worth trying below a landmark.
    fn below<T>(
        &self,
        path: &AbsPath,
        taken: &Below<'_>,
        mut try_path: impl FnMut(&AbsPath) -> Option<T>,
    ) -> Option<T> {
        let direct = self
            .free
            .iter()
            .find_map(|name| self.clear(path, name, taken, &mut try_path));
        direct.or_else(|| {
            let mut deeper = |dir: &AbsPath| self.free.iter().find_map(|name| try_path(&dir.child(name)?));
            self.matched
                .iter()
                .find_map(|name| self.clear(path, name, taken, &mut deeper))
        })
    }

    /// Shows `name` in `dir`, or, where that is a landmark, one that keeps clear of it by a directory in between.
    fn clear<T>(
        &self,
        dir: &AbsPath,
        name: &OsStr,
        taken: &Below<'_>,
        mut try_path: impl FnMut(&AbsPath) -> Option<T>,
    ) -> Option<T> {
        let path = dir.child(name)?;
        if !taken.has(&path) {
            return try_path(&path);
        }
        let candidates = self
            .between
            .iter()
            .filter_map(|between| untaken(dir, between, taken)?.child(name));
        candidates.into_iter().find_map(|path| try_path(&path))
    }
}

/// `name` in `dir`, made longer at the front until it is no landmark; what it ends with stays.
fn untaken(dir: &AbsPath, name: &OsStr, taken: &Below<'_>) -> Option<AbsPath> {
    let mut longer = name.to_owned();
    loop {
        let path = dir.child(&longer)?;
        if !taken.has(&path) {
            return Some(path);
        }
        let mut bytes = STEM.to_vec();
        bytes.extend_from_slice(longer.as_bytes());
        longer = OsString::from_vec(bytes);
    }
}

const STEM: &[u8] = b"ne";

/// Names longer than `longest` whose longest ending is exactly that: one, where any name of the class
/// is as good as another; all of them in the odd case that the endings leave only finitely many.
fn names_ending(longest: &[u8], endings: &BTreeSet<Vec<u8>>, exact: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut finite = Vec::new();
    let mut tails = vec![longest.to_vec()];
    while let Some(tail) = tails.pop() {
        // `w` first: it makes readable names.
        for byte in std::iter::once(b'w').chain((1..=255).filter(|&b| b != b'/')) {
            let mut longer = vec![byte];
            longer.extend_from_slice(&tail);
            if !endings.iter().any(|end| end.ends_with(&longer)) {
                let mut name = longer;
                while exact.contains(&name) || name.len() < 3 {
                    name.splice(0..0, STEM.iter().copied());
                }
                return vec![name];
            }
            if !endings.contains(&longer) {
                finite.push(longer.clone());
                tails.push(longer);
            }
        }
    }
    finite
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Suffix;

    fn tried(landmarks: Landmarks<'_>) -> Vec<AbsPath> {
        let mut all = Vec::new();
        let found: Option<()> = landmarks.search(|path| {
            all.push(path.clone());
            None
        });
        assert_eq!(found, None);
        all
    }

    fn set(text: &str) -> SuffixSet {
        [Suffix::new(text).unwrap()].into_iter().collect()
    }

    #[test]
    fn every_landmark_its_ancestors_and_a_new_name_below_each_are_tried() {
        let mut landmarks = Landmarks::default();
        landmarks.owned(AbsPath::new("/a/new").unwrap());
        let tried = tried(landmarks);
        for wanted in ["/", "/a", "/a/new", "/a/new/new"] {
            assert!(tried.contains(&AbsPath::new(wanted).unwrap()), "{wanted}: {tried:?}");
        }
        // `/a/new` is taken, so the new name below `/a` is another one.
        let below = tried.iter().filter(|path| path.is_below(&AbsPath::new("/a").unwrap()));
        assert!(
            below
                .into_iter()
                .any(|path| !path.is_within(&AbsPath::new("/a/new").unwrap())),
            "{tried:?}"
        );
    }

    #[test]
    fn a_pattern_that_overlaps_a_suffix_gets_names_of_its_own() {
        let root = AbsPath::new("/r").unwrap();
        let mut landmarks = Landmarks::default();
        landmarks.suffixes(&root, &set(".gz"));
        landmarks.pattern(&root, &Pattern::Suffix(".tar.gz".into()));
        let tried = tried(landmarks);
        let ends = |path: &AbsPath, end: &str| path.as_bytes().ends_with(end.as_bytes());
        let direct = |path: &&AbsPath| path.parent().as_ref() == Some(&root);
        assert!(
            tried
                .iter()
                .filter(direct)
                .any(|path| ends(path, ".gz") && !ends(path, ".tar.gz"))
        );
        assert!(tried.iter().filter(direct).any(|path| ends(path, ".tar.gz")));
        assert!(tried.contains(&root.child(".gz").unwrap()));
        // A directory that the pattern matches, and names of every kind in it.
        assert!(
            tried
                .iter()
                .any(|path| path.parent().is_some_and(|dir| ends(&dir, ".tar.gz")))
        );
    }

    #[test]
    fn a_new_name_never_begins_to_show_a_longer_ending() {
        let endings: BTreeSet<Vec<u8>> = [b".gz".to_vec(), b"w.gz".to_vec(), b"xw".to_vec()].into();
        for longest in [&b""[..], b".gz", b"w.gz", b"xw"] {
            for name in names_ending(longest, &endings, &BTreeSet::new()) {
                let found = endings.iter().filter(|end| name.ends_with(end)).map(Vec::len).max();
                assert_eq!(found.unwrap_or(0), longest.len(), "{name:?}");
                assert!(name.len() > longest.len());
            }
        }
    }

    #[test]
    fn names_are_found_even_when_every_byte_is_an_ending() {
        let endings: BTreeSet<Vec<u8>> = (1..=255).filter(|&b| b != b'/').map(|b| vec![b]).collect();
        assert!(names_ending(b"", &endings, &BTreeSet::new()).is_empty());
        assert_eq!(names_ending(b"a", &endings, &BTreeSet::new()).len(), 1);
    }
}
