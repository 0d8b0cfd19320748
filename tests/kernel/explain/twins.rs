//! A folder outside and one inside that hold the same things.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use crate::common::Fixture;
use crate::explain::tried::{Told, Trial};

/// A trial with a folder outside and one inside that hold the same things.
pub(crate) struct Twins<'w> {
    pub(crate) trial: Trial<'w>,
    pub(crate) out: PathBuf,
    pub(crate) inside: PathBuf,
}

impl<'w> Twins<'w> {
    pub(crate) fn new(world: &'w Fixture) -> Self {
        let mut trial = Trial::new(world);
        trial.clause = "-";
        trial.origin = "-".to_owned();
        let (out, inside) = (world.outside().join("o"), world.workspace().join("i"));
        for folder in [&out, &inside] {
            for name in ["a", "b", "c", "d", "e", "f", "g", "h", "j", "k"] {
                world.write(folder.join(name), "\x7fx");
            }
            world.write(folder.join("sub/file"), "\x7fx");
            let empty = folder.join("empty");
            fs::create_dir(&empty).unwrap();
            if let Some(uid) = world.actor.switch_to() {
                chown(&empty, Some(uid), Some(uid)).unwrap();
            }
        }
        Self { trial, out, inside }
    }

    /// A denied operation on a name outside, and the same inside.
    pub(crate) fn both(&mut self, letter: char, name: &str, wanted: &[&str]) {
        let path = self.out.join(name);
        let told: Vec<Told> = wanted.iter().map(|wanted| self.trial.told(wanted, &path)).collect();
        self.trial.denied(letter, &path, "", &told);
        self.trial.permitted(letter, self.inside.join(name), "");
    }

    /// One that only looks where files are hidden, and then goes no further.
    pub(crate) fn hidden_first(&mut self, letter: char, name: &str, wanted: &[&str], looked: &Path) {
        let path = self.out.join(name);
        let told: Vec<Told> = if self.trial.is_in_namespaces() {
            vec![self.trial.told("look", looked)]
        } else {
            wanted.iter().map(|wanted| self.trial.told(wanted, &path)).collect()
        };
        self.trial.denied(letter, &path, "", &told);
        self.trial.permitted(letter, self.inside.join(name), "");
    }
}
