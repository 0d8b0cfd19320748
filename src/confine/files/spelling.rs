//! Suggestions for missing paths: one that exists and differs in spelling.
//!
//! Names that look the same may be of other characters: a Mac and some programs write `é` as `e` and an accent, screenshots have
//! a narrow space before `PM`. Case is the other common difference. Only names that may be listed here are found.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use icu_normalizer::ComposingNormalizerBorrowed;

use super::protocol::{Failure, Why};

/// The most entries of a directory that are compared.
const MOST_ENTRIES: usize = 10_000;

/// Names what exists instead, where the failure is that nothing does.
pub(super) fn suggest(failure: Failure) -> Failure {
    if failure.why != Why::Missing {
        return failure;
    }
    match other(Path::new(&failure.path)) {
        Some(existing) => Failure {
            why: Why::Spelled(existing),
            ..failure
        },
        None => failure,
    }
}

/// The one path that exists and differs in spelling alone.
fn other(path: &Path) -> Option<OsString> {
    let mut at = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                let next = at.join(name);
                at = if next.symlink_metadata().is_ok() {
                    next
                } else {
                    at.join(alike(&at, name)?)
                };
            }
            Component::RootDir => at.push("/"),
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => return None,
        }
    }
    (at != path).then(|| at.into_os_string())
}

/// The entry of the directory whose name is spelled most like `name`: in the same case, or the only one in another.
fn alike(directory: &Path, name: &OsStr) -> Option<OsString> {
    let normalized = normalize(name)?;
    let small = normalized.to_lowercase();
    let entries = std::fs::read_dir(directory).ok()?.take(MOST_ENTRIES);
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let alike: Vec<(OsString, String)> = names
        .filter_map(|name| normalize(&name).map(|normalize| (name, normalize)))
        .filter(|(_, normalize)| normalize.to_lowercase() == small)
        .collect();
    let same_case: Vec<_> = alike.iter().filter(|(_, normalize)| *normalize == normalized).collect();
    match (same_case.as_slice(), alike.as_slice()) {
        ([(one, _)], _) | ([], [(one, _)]) => Some(one.clone()),
        _ => None,
    }
}

/// The name in plain letters (NFKC).
fn normalize(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    Some(ComposingNormalizerBorrowed::new_nfkc().normalize(name).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn suggested(existing: &[&str], requested: &str) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        for name in existing {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = other(&directory.path().join(requested))?;
        let below = Path::new(&found).strip_prefix(directory.path()).unwrap().to_owned();
        Some(below.into_os_string().into_string().unwrap())
    }

    #[test]
    fn a_name_of_other_characters_is_found_at_every_depth() {
        for (existing, requested) in [
            ("cafe\u{301}.txt", "caf\u{e9}.txt"),
            ("caf\u{e9}/r\u{e9}sum\u{e9}", "cafe\u{301}/re\u{301}sume\u{301}"),
            ("Shot 1.00\u{202f}PM.png", "Shot 1.00 PM.png"),
            ("README.md", "readme.md"),
        ] {
            assert_eq!(suggested(&[existing], requested).as_deref(), Some(existing));
        }
    }

    #[test]
    fn what_is_another_name_or_one_of_several_is_not() {
        assert_eq!(suggested(&["other"], "one"), None);
        assert_eq!(suggested(&["a.TXT", "A.txt"], "a.txt"), None);
        assert_eq!(
            suggested(&["cafe\u{301}", "CAF\u{c9}"], "caf\u{e9}").as_deref(),
            Some("cafe\u{301}")
        );
        assert_eq!(suggested(&["there"], "there"), None);
        assert_eq!(suggested(&["there"], "gone/there"), None);
    }
}
