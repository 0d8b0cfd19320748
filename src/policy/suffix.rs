//! File-name suffixes: the one pattern a grant may carry.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// A file-name ending such as `.md` or `.tar.gz`: a dot, then at least one byte, no slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suffix(String);

/// Why a text is not a [`Suffix`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a file suffix: write a dot and what follows it, as in `.md`")]
pub struct SuffixError(pub String);

impl Suffix {
    /// The suffix, if `text` is a dot followed by something that can end a file name.
    pub fn new(text: &str) -> Result<Self, SuffixError> {
        let good = text.len() > 1 && text.starts_with('.') && !text.contains(['/', '\0', '*', '?']) && text != "..";
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(SuffixError(text.to_owned()))
        }
    }

    /// Whether a file of that name has this suffix and something before it.
    pub fn matches(&self, name: &OsStr) -> bool {
        name.len() > self.0.len() && name.as_bytes().ends_with(self.0.as_bytes())
    }

    /// The suffix, with its dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The suffixes a grant is limited to. The empty set matches no file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SuffixSet(BTreeSet<Suffix>);

impl SuffixSet {
    /// Whether a file of that name has one of the suffixes.
    pub fn matches(&self, name: &OsStr) -> bool {
        self.0.iter().any(|s| s.matches(name))
    }

    /// The suffixes, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Suffix> {
        self.0.iter()
    }

    /// The suffixes of files that both sets match: `.gz` and `.tar.gz` give `.tar.gz`.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = BTreeSet::new();
        for (xs, ys) in [(self, other), (other, self)] {
            both.extend(
                xs.0.iter()
                    .filter(|x| ys.0.iter().any(|y| x.0.ends_with(&y.0)))
                    .cloned(),
            );
        }
        Self(both)
    }
}

impl FromIterator<Suffix> for SuffixSet {
    fn from_iter<I: IntoIterator<Item = Suffix>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for SuffixSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(Suffix::as_str).collect();
        write!(f, "[{}]", texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_set_matches_nothing() {
        assert!(!SuffixSet::default().matches(OsStr::new("a.md")));
    }

    #[test]
    fn a_name_that_is_only_the_suffix_does_not_match() {
        assert!(!Suffix::new(".md").unwrap().matches(OsStr::new(".md")));
        assert!(Suffix::new(".md").unwrap().matches(OsStr::new("a.md")));
    }

    #[test]
    fn the_meet_of_nested_suffixes_is_the_longer_one() {
        let gz: SuffixSet = [Suffix::new(".gz").unwrap()].into_iter().collect();
        let tar: SuffixSet = [Suffix::new(".tar.gz").unwrap()].into_iter().collect();
        assert_eq!(gz.and(&tar), tar);
        assert_eq!(tar.and(&gz), tar);
    }

    #[test]
    fn a_suffix_needs_its_dot() {
        assert!(Suffix::new("md").is_err());
        assert!(Suffix::new("*.md").is_err());
        assert!(Suffix::new(".").is_err());
    }
}
