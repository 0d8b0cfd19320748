//! Restoring what commands left behind whose process died before it could.
//!
//! Each journal stands for itself: one that cannot be seen to stays, with its error, and keeps only those
//! commands from starting whose roots overlap its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::entry::nofollow::{self, Identity, as_owner};
use super::error::ProtectError;
use super::guard::Guard;
use super::live::abandoned_covers::keep_abandoned;
use super::missing::{is_missing, is_other};
use super::naming::patterns::Patterns;
use super::overlap;
use super::record::Record;
use super::roots::{open_roots, unlock};
use super::settling::settle::settle;
use super::settling::settlement::SettlementReport;
use super::storage::journal::{self, Journal, abandoned};
use super::storage::other_sessions::StoreLock;
use super::violation::Violation;
use crate::policy::path::display;

/// The result of [`recover`].
#[derive(Debug, Default)]
pub struct Recovered {
    /// What was put back.
    pub violations: Vec<Violation>,
    /// The journals that could not be settled; they stay.
    pub failures: Vec<Unrecovered>,
}

/// A journal that could not be settled.
#[derive(Debug)]
pub struct Unrecovered {
    /// Why.
    pub error: ProtectError,
    extent: Extent,
}

/// What an [`Unrecovered`] keeps from starting.
#[derive(Debug)]
enum Extent {
    /// Everything: no journal can be read or written.
    Store,
    /// Everything: a journal that cannot be read may be about anything.
    Unknown,
    /// What overlaps these roots.
    Roots(Vec<(PathBuf, Identity)>),
    /// What is one of these roots now, or lies in one: they are not where they were.
    Elsewhere(Vec<(Identity, Option<(i64, u32)>)>),
}

impl Unrecovered {
    /// Whether names below one of `roots` may not be as they were before the interrupted command.
    pub fn concerns(&self, roots: &[PathBuf]) -> bool {
        match &self.extent {
            Extent::Store | Extent::Unknown => true,
            Extent::Roots(own) => own
                .iter()
                .any(|(path, identity)| roots.iter().any(|root| overlap::overlaps((path, *identity), root))),
            Extent::Elsewhere(own) => own
                .iter()
                .any(|(identity, created)| roots.iter().any(|root| overlap::is_inside(*identity, *created, root))),
        }
    }

    /// Whether it is about a directory that is not where it was, and that lies in a root of the guard now.
    pub(crate) fn lies_in(&self, guard: &Guard) -> bool {
        let Extent::Elsewhere(own) = &self.extent else {
            return false;
        };
        let wanted = own.iter().map(|(identity, _)| *identity).collect();
        let locations = guard.inventory.locate(&wanted);
        own.iter().any(|(identity, created)| {
            let location = locations.get(identity);
            location.is_some_and(|(root, path)| {
                let root = &guard.roots()[usize::from(*root)];
                // Its number may be that of one that is gone, and it may be closed to us.
                match as_owner(&root.fd, path, None, || nofollow::open_path(&root.fd, path)) {
                    Ok(directory) => !is_other(directory, *identity, *created),
                    Err(_) => true,
                }
            })
        })
    }

    /// What is wrong and what to do about it, the journals being in `journals`.
    pub fn explain(&self, journals: &Path) -> String {
        let journals = display(journals);
        match &self.extent {
            Extent::Store => format!(
                "the place for the journals of protected names cannot be used: {}; make it writable",
                self.error
            ),
            Extent::Unknown => format!(
                "what an interrupted session changed cannot be told: {}. It may be about any directory, so nothing starts \
                 as long as it lies in {journals}",
                self.error
            ),
            Extent::Roots(_) => format!(
                "an interrupted session could not be undone: {}; put right what it names, or look at the journals in \
                 {journals} and remove them",
                self.error
            ),
            Extent::Elsewhere(_) => format!(
                "an interrupted session could not be undone: {}. Rename it back and start there, or look at the journals in \
                 {journals} and remove the one that is about it",
                self.error
            ),
        }
    }
}

/// Restores what commands left behind whose process died before it could; for every start.
///
/// Leaves alone the journals of commands that are still running. What is about a root that is not where it was stays in a
/// journal, until that is there again; [`waiting`] tells of it.
#[must_use]
pub fn recover(store: &Path) -> Recovered {
    let mut recovered = Recovered::default();
    let opened = StoreLock::enter(store).and_then(|gate| Ok((gate, abandoned(store)?)));
    let (_gate, journals) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            recovered.failures.push(Unrecovered {
                error,
                extent: Extent::Store,
            });
            return recovered;
        }
    };
    recovered.violations.append(&mut keep_abandoned(store));
    for journal in journals {
        let (journal, record) = match journal {
            Ok(found) => found,
            Err(error) => {
                recovered.failures.push(Unrecovered {
                    error,
                    extent: Extent::Unknown,
                });
                continue;
            }
        };
        let identity = |(bytes, identity): &(Vec<u8>, Identity)| (path(bytes), *identity);
        let roots: Vec<(PathBuf, Identity)> = record.roots.iter().map(identity).collect();
        let missing = record.missing();
        if let Some(error) = missing.first().and_then(|first| roots.get(usize::from(*first))) {
            let elsewhere = missing.iter().filter_map(|number| {
                let created = record.created.get(usize::from(*number)).copied().flatten();
                roots
                    .get(usize::from(*number))
                    .map(|(_, identity)| (*identity, created))
            });
            recovered.failures.push(Unrecovered {
                error: ProtectError::io("find", error.0.clone(), nix::errno::Errno::ENOENT),
                extent: Extent::Elsewhere(elsewhere.collect()),
            });
        }
        if !missing.is_empty() && missing.len() == roots.len() {
            continue;
        }
        let rest = (!missing.is_empty()).then(|| record.clone().of_roots(&missing));
        let mut settled = restore(record, store);
        recovered.violations.append(&mut settled.violations);
        if settled.errors.is_empty()
            && let Err(error) = keep(rest, store).and_then(|()| journal.remove())
        {
            settled.errors.push(error);
        }
        recovered
            .failures
            .extend(settled.errors.into_iter().map(|error| Unrecovered {
                error,
                extent: Extent::Roots(roots.clone()),
            }));
    }
    recovered
}

/// Writes a journal of what is left to undo.
fn keep(rest: Option<Record>, store: &Path) -> Result<(), ProtectError> {
    match rest {
        Some(rest) => Journal::prepare(store, &rest)?.activate(),
        None => Ok(()),
    }
}

/// What an interrupted session changed in a directory that is not where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Where it was.
    pub root: PathBuf,
    /// Its journal.
    pub journal: PathBuf,
}

/// Lists what waits to be undone in directories that are not where they were.
pub fn waiting(store: &Path) -> Vec<Waiting> {
    let journals = journal::roots(store).into_iter();
    let all = journals.flat_map(|(journal, roots)| {
        let missing = roots
            .into_iter()
            .filter(|(bytes, identity)| is_missing(&path(bytes), *identity, None));
        missing.map(move |(bytes, _)| Waiting {
            root: path(&bytes),
            journal: journal.clone(),
        })
    });
    all.collect()
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn restore(mut record: Record, store: &Path) -> SettlementReport {
    let extra: Vec<PathBuf> = record.extra.iter().map(|bytes| path(bytes)).collect();
    let mut patterns = Patterns::new(&record.names);
    let mut roots = Vec::new();
    let mut opened_up = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut errors = Vec::new();
    for ((bytes, identity), number) in record.roots.iter().zip(0_u16..) {
        let created = record.created.get(usize::from(number)).copied().flatten();
        if is_missing(&path(bytes), *identity, created) {
            continue;
        }
        let was_locked = unlock(&path(bytes), *identity);
        let opened = match open_roots(&[path(bytes)], &extra, &mut patterns) {
            Ok(opened) => opened,
            Err(ProtectError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for mut root in opened {
            if root.identity == *identity
                && let Ok(now) = u16::try_from(roots.len())
            {
                numbers.insert(number, now);
                root.mode = record.modes.get(usize::from(number)).copied().unwrap_or(root.mode);
                if was_locked {
                    opened_up.push(now);
                }
                roots.push(root);
            }
        }
    }
    // An empty path is that of a root, which cannot have been removed from within; journals of earlier versions have some.
    record
        .entries
        .retain_mut(|kept| !kept.path.is_empty() && renumber(&mut kept.root, &numbers));
    record
        .ancestors
        .retain_mut(|ancestor| renumber(&mut ancestor.root, &numbers));
    let (mut settled, _) = settle(&roots, &patterns, &record, None, None, store, None);
    for number in opened_up {
        errors.extend(roots[usize::from(number)].restore_mode().err());
    }
    settled.errors.append(&mut errors);
    settled
}

fn renumber(root: &mut u16, numbers: &BTreeMap<u16, u16>) -> bool {
    numbers.get(root).map(|&number| *root = number).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::naming::names::Names;
    use super::super::referenced::repository::Person;
    use super::super::tree::inventory::root_creation_time;
    use super::*;

    /// The number of a directory that is gone is used again, also below one that its owner closed.
    #[test]
    fn a_directory_made_at_another_time_is_not_the_one_that_a_journal_is_about() {
        let scene = tempfile::tempdir().unwrap();
        let closed = scene.path().join("root/closed");
        let inside = closed.join("inside");
        fs::create_dir_all(&inside).unwrap();
        let store = scene.path().join("store");
        fs::create_dir(&store).unwrap();
        let found = fs::metadata(&inside).unwrap();
        let identity = Identity {
            device: found.dev(),
            inode: found.ino(),
        };
        let created = root_creation_time(fs::File::open(&inside).unwrap()).unwrap();
        let (roots, names, person) = ([scene.path().join("root")], Names::default(), Person::default());
        let guard = Guard::prepare(&roots, &[], &names, &store, &person, None, None).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        for (created, expected) in [(created, true), ((created.0 - 1, created.1), false)] {
            let elsewhere = Unrecovered {
                error: ProtectError::TooMany,
                extent: Extent::Elsewhere(vec![(identity, Some(created))]),
            };
            assert_eq!(elsewhere.lies_in(&guard), expected);
        }
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_journal_that_cannot_be_seen_to_concerns_only_what_overlaps_its_roots() {
        let scene = tempfile::tempdir().unwrap();
        let at = |path: &str| scene.path().join(path);
        for folder in ["a/b/c", "a/bc", "other"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let found = fs::metadata(at("a/b")).unwrap();
        let identity = Identity {
            device: found.dev(),
            inode: found.ino(),
        };
        let left = Unrecovered {
            error: ProtectError::TooMany,
            extent: Extent::Roots(vec![(at("a/b"), identity)]),
        };
        let concerns = |path: &str| left.concerns(&[at(path)]);
        assert!(concerns("a/b") && concerns("a") && concerns("") && concerns("a/b/c"));
        assert!(!concerns("other") && !concerns("a/bc"));
    }
}
