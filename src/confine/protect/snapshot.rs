//! Writing down what is protected, before a command may start.

use std::collections::HashSet;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::appeared::{self, Appeared};
use super::covers::Covers;
use super::error::ProtectError;
use super::journal::{self, Journal};
use super::known::Known;
use super::names::Names;
use super::offer::Offer;
use super::others::{self, Gate};
use super::patterns::Patterns;
use super::present::{run_at_once, topmost};
use super::program::Program;
use super::record::{Record, keep};
use super::repository::Person;
use super::roots::Root;
use super::search::{Look, Search, search};
use super::sight::{Sight, made};
use super::tracked::Tips;

use super::walk::{TICK, now};
use super::work::Settled;
use super::{room, settle};

/// The protected names below the writable roots, written down. Once it is claimed for a command, that may run until
/// [`Guard::settle`].
///
/// # Warning
/// Dropping a guard that was claimed leaves its journal: [`super::recover()`] then restores at the next start.
#[derive(Debug)]
#[must_use = "a guard that is not settled leaves the protected names as the command left them"]
pub struct Guard {
    roots: Vec<Root>,
    patterns: Patterns,
    record: Record,
    sight: Sight,
    journal: Journal,
    /// What is protected by its path.
    extra: Vec<PathBuf>,
    /// That of it which programs of the host run or obey at once.
    at_once: Vec<PathBuf>,
    store: PathBuf,
    tips: Tips,
    /// When the command was about to start.
    begun: Duration,
    /// Whether something was taken away while the command ran: then nothing is believed of what it left.
    has_seized: bool,
}

impl Guard {
    /// Writes down every protected name below `roots`, and the files `extra` where they lie in one.
    ///
    /// `store` is a directory outside every root, for the journal and the quarantine. On an error the
    /// command must not start.
    pub fn snapshot(roots: &[PathBuf], extra: &[PathBuf], store: &Path) -> Result<Self, ProtectError> {
        Self::snapshot_knowing(roots, extra, &Names::default(), store, &Person::default(), None)
    }

    /// [`Guard::snapshot`] that does not read again what has not changed since an earlier guard of the same
    /// process settled, and that knows of a person's own settings. Without `known`, what the store keeps of earlier
    /// processes is used.
    pub fn snapshot_knowing(
        roots: &[PathBuf],
        extra: &[PathBuf],
        names: &Names,
        store: &Path,
        person: &Person,
        known: Option<&Known>,
    ) -> Result<Self, ProtectError> {
        let mut guard = Self::ahead(roots, extra, names, store, person, known, None)?;
        guard.claim()?;
        Ok(guard)
    }

    /// [`Guard::snapshot_knowing`] for a command that may not come. No command may run before the guard is
    /// [claimed](Self::claim) for it; one that is not is [released](Self::release), or dropped. `program` is what this
    /// session runs as.
    pub(crate) fn ahead(
        roots: &[PathBuf],
        extra: &[PathBuf],
        names: &Names,
        store: &Path,
        person: &Person,
        known: Option<&Known>,
        program: Option<&Path>,
    ) -> Result<Self, ProtectError> {
        let _gate = Gate::enter(store)?;
        room::has_room(store, room::MOST)?;
        let Search {
            seen,
            extra,
            at_once,
            hooks,
        } = search(roots, extra, names, person, Some(store), known)?;
        let Look { roots, patterns, sight } = seen;
        let mut record = Record {
            roots: roots
                .iter()
                .map(|r| (r.path.as_os_str().as_bytes().to_vec(), r.identity))
                .collect(),
            modes: roots.iter().map(|root| root.mode).collect(),
            born: roots.iter().map(|root| made(&root.fd)).collect(),
            extra: extra.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect(),
            entries: keep(&roots, &sight)?,
            holders: sight.holders(&roots),
            names: names.clone(),
            hooks: hooks.into_iter().map(|path| path.into_os_string().into_vec()).collect(),
            program: program.and_then(|path| Program::look(path, &roots, store)),
        };
        let mut tips = Tips::look(&roots, &sight, store);
        // After the tree was looked at: a command that started meanwhile has its journal here, with the tree as it was.
        let others = journal::all(store)?;
        tips.judge(&others);
        others::adopt(&mut record, others);
        let journal = Journal::ahead(store, &record)?;
        tips.begin(&journal.name());
        Ok(Self {
            roots,
            patterns,
            record,
            sight,
            journal,
            extra,
            at_once,
            store: store.to_owned(),
            tips,
            begun: now(),
            has_seized: false,
        })
    }

    /// Puts back what the command changed, and says what that was. Every process of it must be dead.
    ///
    /// What can be put back is, whatever else fails. After an error the journal stays, for another try at the
    /// next start.
    pub fn settle(self) -> Settled {
        self.settle_knowing(None).settled
    }

    /// [`Guard::settle`], with what it saw, for [`Guard::snapshot_knowing`], and what a person may still want of
    /// what it undid.
    ///
    /// What a command made of the `covers` counts as a change to what they cover.
    pub fn settle_knowing(self, covers: Option<&Covers>) -> After {
        // Without the gate another session may write down a state in between; the names come first.
        let gate = Gate::enter(&self.store);
        let (mut settled, sight) = settle::settle(
            &self.roots,
            &self.patterns,
            &self.record,
            Some(&self.sight),
            covers,
            &self.store,
            (!self.has_seized).then_some(&self.tips),
        );
        let _gate = gate.map_err(|error| settled.errors.push(error));
        let since = self.begun.saturating_sub(TICK);
        let seen = sight.as_ref();
        let appeared = seen.map(|sight| appeared::look(&self.roots, &self.patterns, &self.sight, sight, since));
        let appeared = appeared.unwrap_or_default();
        if !settled.errors.is_empty() {
            return After {
                settled,
                appeared,
                known: None,
                offer: None,
            };
        }
        if let Some(sight) = &sight {
            self.tips.end(&self.roots, sight);
        }
        if let Err(error) = self.journal.remove() {
            settled.errors.push(error);
        }
        let changes = std::mem::take(&mut settled.changes);
        let offer = Offer::new(self.roots, self.store.clone(), changes);
        let known = sight.map(|sight| {
            let mut known = Known {
                roots: self.record.roots,
                extra: self.extra,
                names: self.record.names,
                sight,
            };
            known.keep(&self.store);
            known
        });
        After {
            settled,
            appeared,
            known,
            offer: Some(offer),
        }
    }

    /// Has what was written down [ahead](Self::ahead) hold for a command that starts now.
    ///
    /// # Errors
    /// The journal could not be renamed; the command must not start.
    pub(crate) fn claim(&mut self) -> Result<(), ProtectError> {
        self.begun = now();
        self.journal.finish()
    }

    /// Leaves everything as it is: no command came. What has changed since, a person changed. What it saw.
    ///
    /// # Errors
    /// What was written down could not be removed; it counts for nobody.
    pub(crate) fn release(self) -> Result<Known, ProtectError> {
        self.tips.forget();
        self.journal.remove()?;
        Ok(Known {
            roots: self.record.roots,
            extra: self.extra,
            names: self.record.names,
            sight: self.sight,
        })
    }

    /// The protected entries that mounts can cover, `most` at most.
    pub(crate) fn present(&self, most: usize) -> Vec<PathBuf> {
        topmost(&self.roots, &self.record.entries, &self.extra, most)
    }

    /// Those of them that programs of the host run or obey while a command is running, by their roots.
    pub(in crate::confine) fn to_cover(&self, most: usize) -> Vec<(u16, Vec<u8>)> {
        let is_made = |root, git: &[u8]| self.is_made(root, git);
        run_at_once(&self.roots, &self.record.entries, &self.at_once, is_made, most)
    }

    /// The git directories that were seen.
    pub(super) fn git_directories(&self) -> HashSet<(u16, Vec<u8>)> {
        self.sight.git_directories()
    }

    /// Whatever is called `.git` and is no directory.
    pub(super) fn git_links(&self) -> impl Iterator<Item = (u16, Vec<u8>)> + '_ {
        self.sight.git_links()
    }

    /// Whether a command made a git directory, and no ref of it was the host's since.
    pub(super) fn is_made(&self, root: u16, git: &[u8]) -> bool {
        self.tips.are_made(root, git)
    }

    /// Something was taken away while the command ran.
    pub(super) fn distrust(&mut self) {
        self.has_seized = true;
    }

    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    pub(in crate::confine) fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// What is protected by its path and run or obeyed at once.
    pub(super) fn at_once(&self) -> &[PathBuf] {
        &self.at_once
    }

    pub(super) fn sight(&self) -> &Sight {
        &self.sight
    }

    pub(super) fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    pub(in crate::confine) fn record(&self) -> &Record {
        &self.record
    }

    /// How many directories and protected entries the guard watches.
    pub fn size(&self) -> (usize, usize) {
        (self.sight.len(), self.record.entries.len())
    }
}

/// What is left of a guard.
#[derive(Debug)]
pub struct After {
    /// What was put back.
    pub settled: Settled,
    /// What is new, and may be read or run by programs of the host.
    pub appeared: Appeared,
    /// What it saw, if everything is at rest.
    pub known: Option<Known>,
    /// What it undid and a person may still want, if everything is as it was.
    pub offer: Option<Offer>,
}
