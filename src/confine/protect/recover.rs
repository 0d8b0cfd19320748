//! Restoring what commands left behind whose process died before it could.
//!
//! Each journal stands for itself: one that cannot be seen to stays, with its error, and keeps only those
//! commands from starting whose roots overlap its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::at::Identity;
use super::journal::{Record, abandoned};
use super::others::Gate;
use super::overlap;
use super::place::Patterns;
use super::roots::{open_roots, unlock};
use super::settle::settle;
use super::sight::made;
use super::work::Settled;
use super::{ProtectError, Violation};
use crate::policy::path::display;

/// What [`recover`] came to.
#[derive(Debug, Default)]
pub struct Recovered {
    /// What was put back.
    pub violations: Vec<Violation>,
    /// The journals that could not be seen to; they stay.
    pub failures: Vec<Unrecovered>,
}

/// A journal that could not be seen to.
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
}

impl Unrecovered {
    /// Whether names below one of `roots` may not be as they were before the interrupted command.
    pub fn concerns(&self, roots: &[PathBuf]) -> bool {
        match &self.extent {
            Extent::Store | Extent::Unknown => true,
            Extent::Roots(own) => own
                .iter()
                .any(|(path, identity)| roots.iter().any(|root| overlap::is_overlap((path, *identity), root))),
        }
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
        }
    }
}

/// Restores what commands left behind whose process died before it could; for every start.
///
/// Leaves alone the journals of commands that are still running. A root that is gone, or that is
/// another directory now, has nothing to be restored in.
#[must_use]
pub fn recover(store: &Path) -> Recovered {
    let mut recovered = Recovered::default();
    let opened = Gate::enter(store).and_then(|gate| Ok((gate, abandoned(store)?)));
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
        let roots: Vec<(PathBuf, Identity)> = record.roots.iter().map(|(bytes, who)| (path(bytes), *who)).collect();
        let mut settled = restore(record, store);
        recovered.violations.append(&mut settled.violations);
        if settled.errors.is_empty()
            && let Err(error) = journal.remove()
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

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn restore(mut record: Record, store: &Path) -> Settled {
    let extra: Vec<PathBuf> = record.extra.iter().map(|bytes| path(bytes)).collect();
    let mut patterns = Patterns::new();
    let mut roots = Vec::new();
    let mut unlocked = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut errors = Vec::new();
    for ((bytes, identity), number) in record.roots.iter().zip(0_u16..) {
        let then = record.born.get(usize::from(number)).copied().flatten();
        if is_another(&path(bytes), then) {
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
                    unlocked.push(now);
                }
                roots.push(root);
            }
        }
    }
    record.entries.retain_mut(|kept| renumber(&mut kept.root, &numbers));
    record.holders.retain_mut(|holder| renumber(&mut holder.root, &numbers));
    let (mut settled, _) = settle(&roots, &patterns, &record, None, None, store, None);
    for number in unlocked {
        errors.extend(roots[usize::from(number)].shut().err());
    }
    settled.errors.append(&mut errors);
    settled
}

/// Whether the directory there was made at another time than the one that is meant.
fn is_another(path: &Path, then: Option<(i64, u32)>) -> bool {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let now = open(path, flags, Mode::empty()).ok().and_then(made);
    then.is_some() && now.is_some() && now != then
}

fn renumber(root: &mut u16, numbers: &BTreeMap<u16, u16>) -> bool {
    numbers.get(root).map(|&number| *root = number).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

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
