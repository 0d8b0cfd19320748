//! A snapshot of what is protected, from before a command to its settlement.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ProtectError;
use super::live::covers::Covers;
use super::live::present::{live, topmost};
use super::naming::names::Names;
use super::naming::patterns::Patterns;
use super::offer::Offer;
use super::program::Program;
use super::record::{Record, save_entries};
use super::referenced::repository::Person;
use super::referenced::ways::ways;
use super::roots::Root;
use super::storage::inventory_cache::CachedInventory;
use super::storage::journal::{self, Journal};
use super::storage::other_sessions::{self, StoreLock};
use super::tracked::Tips;
use super::tree::appeared::{self, Appeared};
use super::tree::inventory::{Inventory, root_creation_time};
use super::tree::search::{Scan, SearchResult, search};

use super::settling::settle;
use super::settling::settlement::SettlementReport;
use super::storage::quota;
use super::tree::walk::{TICK, now};

/// The protected names below the writable roots, written down. Once it is claimed for a command, that may run until
/// [`Guard::settle`].
///
/// # Warning
/// Dropping a guard that was claimed leaves its journal: [`super::recover()`] then restores at the next start.
#[derive(Debug)]
#[must_use = "a guard that is not settled leaves the protected names as the command left them"]
pub struct Guard {
    roots: Vec<Root>,
    pub(super) patterns: Patterns,
    record: Record,
    pub(super) inventory: Inventory,
    journal: Journal,
    /// What is protected by its path.
    extra: Vec<PathBuf>,
    /// Those of `extra` that host programs run or obey while a command runs.
    pub(super) live: Vec<PathBuf>,
    pub(super) store: PathBuf,
    tips: Tips,
    /// When the command was about to start.
    started: Duration,
    /// Whether something was removed while the command ran: then no commit it left is trusted.
    pub(super) has_quarantined: bool,
}

impl Guard {
    /// Writes down every protected name below `roots`, and the files `extra` where they lie in one.
    ///
    /// `store` is a directory outside every root, for the journal and the quarantine. On an error the
    /// command must not start.
    pub fn snapshot(roots: &[PathBuf], extra: &[PathBuf], store: &Path) -> Result<Self, ProtectError> {
        Self::snapshot_with(roots, extra, &Names::default(), store, &Person::default(), None)
    }

    /// [`Guard::snapshot`] that does not read again what has not changed since an earlier guard of the same
    /// process settled, and that knows of a person's own settings. Without `known`, what the store keeps of earlier
    /// processes is used.
    pub fn snapshot_with(
        roots: &[PathBuf],
        extra: &[PathBuf],
        names: &Names,
        store: &Path,
        person: &Person,
        known: Option<&CachedInventory>,
    ) -> Result<Self, ProtectError> {
        let mut guard = Self::prepare(roots, extra, names, store, person, known, None)?;
        guard.claim()?;
        Ok(guard)
    }

    /// [`Guard::snapshot_with`] for a command that may not come. No command may run before the guard is
    /// [claimed](Self::claim) for it; one that is not is [released](Self::release), or dropped. `program` is what this
    /// session runs as.
    pub(crate) fn prepare(
        roots: &[PathBuf],
        extra: &[PathBuf],
        names: &Names,
        store: &Path,
        person: &Person,
        known: Option<&CachedInventory>,
        program: Option<&Path>,
    ) -> Result<Self, ProtectError> {
        let _gate = StoreLock::enter(store)?;
        quota::check(store, quota::MAX_USAGE)?;
        let SearchResult {
            scanned,
            extra,
            live,
            hooks,
        } = search(roots, extra, names, person, Some(store), known)?;
        let Scan {
            roots,
            patterns,
            inventory,
        } = scanned;
        let mut record = Record {
            roots: roots
                .iter()
                .map(|r| (r.path.as_os_str().as_bytes().to_vec(), r.identity))
                .collect(),
            modes: roots.iter().map(|root| root.mode).collect(),
            created: roots.iter().map(|root| root_creation_time(&root.fd)).collect(),
            extra: extra.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect(),
            entries: save_entries(&roots, &inventory)?,
            ancestors: inventory.ancestors(&roots),
            names: names.clone(),
            hooks: hooks.into_iter().map(|path| path.into_os_string().into_vec()).collect(),
            ways: ways(&roots, &inventory),
            program: program.and_then(|path| Program::save(path, &roots, store)),
        };
        let mut tips = Tips::read(&roots, &inventory, store);
        // After the walk: a command that started meanwhile has its journal here, with the tree as it was.
        let others = journal::all(store)?;
        tips.update_trust(&others);
        other_sessions::merge(&mut record, others);
        let journal = Journal::prepare(store, &record)?;
        tips.mark_under_way(&journal.name());
        Ok(Self {
            roots,
            patterns,
            record,
            inventory,
            journal,
            extra,
            live,
            store: store.to_owned(),
            tips,
            started: now(),
            has_quarantined: false,
        })
    }

    /// Restores what the command changed and reports it. Every process of the command must be dead.
    ///
    /// What can be put back is, whatever else fails. After an error the journal stays, for another try at the
    /// next start.
    pub fn settle(self) -> SettlementReport {
        self.settle_with(None).settled
    }

    /// [`Guard::settle`], with what it saw, for [`Guard::snapshot_with`], and what a person may still want of
    /// what it undid.
    ///
    /// What a command made of the `covers` counts as a change to what they cover.
    pub fn settle_with(self, covers: Option<&Covers>) -> SettledGuard {
        // Restoring must go on without the lock, even if another session may record a state in between.
        let gate = StoreLock::enter(&self.store);
        let (mut settled, inventory) = settle::settle(
            &self.roots,
            &self.patterns,
            &self.record,
            Some((&self.inventory, self.started.saturating_sub(TICK))),
            covers,
            &self.store,
            (!self.has_quarantined).then_some(&self.tips),
        );
        let _gate = gate.map_err(|error| settled.errors.push(error));
        let since = self.started.saturating_sub(TICK);
        let scanned = inventory.as_ref();
        let appeared =
            scanned.map(|inventory| appeared::find_new(&self.roots, &self.patterns, &self.inventory, inventory, since));
        let appeared = appeared.unwrap_or_default();
        if !settled.errors.is_empty() {
            return SettledGuard {
                settled,
                appeared,
                known: None,
                offer: None,
            };
        }
        if let Some(inventory) = &inventory {
            self.tips.record_refs(&self.roots, inventory);
        }
        if let Err(error) = self.journal.remove() {
            settled.errors.push(error);
        }
        let changes = std::mem::take(&mut settled.changes);
        let offer = Offer::new(self.roots, self.store.clone(), changes);
        let known = inventory.map(|inventory| {
            let mut known = CachedInventory {
                roots: self.record.roots,
                extra: self.extra,
                names: self.record.names,
                inventory,
            };
            known.save_if_worth(&self.store);
            known
        });
        SettledGuard {
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
        self.started = now();
        self.journal.activate()
    }

    /// Leaves everything as it is: no command came. What has changed since, a person changed. What it saw.
    ///
    /// # Errors
    /// What was written down could not be removed; it counts for nobody.
    pub(crate) fn release(self) -> Result<CachedInventory, ProtectError> {
        self.tips.forget();
        self.journal.remove()?;
        Ok(CachedInventory {
            roots: self.record.roots,
            extra: self.extra,
            names: self.record.names,
            inventory: self.inventory,
        })
    }

    /// The protected entries that mounts can cover, `most` at most.
    pub(crate) fn present(&self, most: usize) -> Vec<PathBuf> {
        topmost(&self.roots, &self.record.entries, &self.extra, most)
    }

    /// Those that host programs run or obey while a command runs.
    pub(in crate::confine) fn to_cover(&self, most: usize) -> Vec<(u16, Vec<u8>)> {
        let is_made_by_command = |root, git: &[u8]| self.is_made_by_command(root, git);
        live(&self.roots, &self.record.entries, &self.live, is_made_by_command, most)
    }

    /// Whether a command made the git directory and the host has moved no ref of it since.
    pub(super) fn is_made_by_command(&self, root: u16, git: &[u8]) -> bool {
        self.tips.is_made_by_command(root, git)
    }

    pub(in crate::confine) fn roots(&self) -> &[Root] {
        &self.roots
    }

    pub(in crate::confine) fn record(&self) -> &Record {
        &self.record
    }

    /// How many directories and protected entries the guard watches.
    pub fn size(&self) -> (usize, usize) {
        (self.inventory.len(), self.record.entries.len())
    }
}

/// The result of settling a guard.
#[derive(Debug)]
pub struct SettledGuard {
    /// What was put back.
    pub settled: SettlementReport,
    /// What is new, and may be read or run by programs of the host.
    pub appeared: Appeared,
    /// What it saw, if everything is at rest.
    pub known: Option<CachedInventory>,
    /// What it undid and a person may still want, if everything is as it was.
    pub offer: Option<Offer>,
}
