//! The protected names of a session: recorded before a command, restored after it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::confine::protect;
use crate::confine::supervisor::mounted_covers::MountedCovers;
use crate::confine::supervisor::restore_report::{appeared, bounded, offered, reported, summary};
use crate::confine::wire::protocol::{Covered, Offer, ProtectSetup, PutBack, Violation};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The command may start.
    Ready,
    /// The mounts of this session do not cover all of them; those of the next will.
    Stale,
}

/// The protected names of a session.
#[derive(Debug, Default)]
pub(crate) struct ProtectedNames {
    setup: Option<ProtectSetup>,
    guard: Option<protect::Guard>,
    /// Restored changes that a person may still accept.
    offer: Option<protect::Offer>,
    /// What is known of the tree from the last guard.
    known: Option<protect::CachedInventory>,
    covers: MountedCovers,
    /// Watches for changes that lead git elsewhere while a command runs, where mounts cover the rest.
    watch: Option<protect::Watch>,
    /// Watches for a tree that grows too large to be walked while a command runs.
    growth: Option<protect::Growth>,
    /// Violations that were handled while a command ran.
    seized: Vec<Violation>,
    /// Violations of the last command that were settled when the next had begun; reported with that.
    late: Vec<Violation>,
    unrecovered: Vec<protect::Unrecovered>,
}

impl ProtectedNames {
    pub(crate) fn of(setup: Option<ProtectSetup>) -> Self {
        Self {
            setup,
            ..Self::default()
        }
    }

    /// The names that mounts are to cover. If this fails, no command may run.
    pub(crate) fn present(&mut self) -> Vec<Covered> {
        let covered = match self.record().and_then(|()| self.stand_in()) {
            Ok(()) => self.covers.cover(self.setup.as_ref(), self.guard.as_ref()),
            Err(why) => self.covers.fail(why),
        };
        // It was not claimed, so no later start restores from it. Each command gets its own snapshot.
        let _released = self.release();
        covered
    }

    /// Records the protected names for a command that starts now.
    pub(crate) fn snapshot(&mut self) -> Result<Recorded, String> {
        if let Some(why) = self.covers.failed() {
            return Err(why);
        }
        self.record()?;
        if self
            .guard
            .as_ref()
            .is_some_and(|guard| !self.covers.covers_all_of(guard))
        {
            return self.release().map(|()| Recorded::Stale);
        }
        let (covers, watch) = (&self.covers, &mut self.watch);
        let ready = |guard: &mut protect::Guard| {
            *watch = covers.watch(guard)?;
            covers.lay(guard)?;
            guard.claim()
        };
        let claimed = self.guard.as_mut().map_or(Ok(()), ready);
        self.growth = self.guard.as_ref().map(protect::Growth::of);
        claimed.map(|()| Recorded::Ready).map_err(|error| {
            // No command came for this snapshot, so nothing may be restored from it.
            let released = self.release().err();
            released
                .into_iter()
                .fold(error.to_string(), |errors, why| format!("{errors}; {why}"))
        })
    }

    pub(crate) fn watch(&self) -> Option<&protect::Watch> {
        self.watch.as_ref()
    }

    pub(crate) fn is_guarding(&self) -> bool {
        self.growth.is_some()
    }

    /// Whether a command has made too many directories.
    pub(crate) fn is_outgrown(&mut self) -> bool {
        let both = self.growth.as_mut().zip(self.guard.as_ref());
        both.is_some_and(|(growth, guard)| growth.exceeds_limit(guard))
    }

    /// Quarantines what leads git elsewhere. Calls `kill` first where the command must die for that, and returns the first such path.
    pub(crate) fn take_away(&mut self, kill: impl FnOnce()) -> Option<PathBuf> {
        let (watch, guard) = (self.watch.as_mut()?, self.guard.as_mut()?);
        let mut first = None;
        let taken = watch.take_away(guard, |path| {
            kill();
            first = Some(path);
        });
        self.seized.extend(taken.into_iter().map(reported));
        first
    }

    /// Restores what commands changed; the report is cut to fit a message.
    pub(crate) fn put_all_back(&mut self) -> PutBack {
        bounded(self.settle())
    }

    pub(crate) fn offer(&mut self) -> Option<Offer> {
        self.offer.as_mut()?.describe().map(offered)
    }

    /// Makes the offered changes after all, once; returns a result for each, and none where the offer has expired.
    pub(crate) fn put_back(&mut self, digest: &protect::Digest) -> Vec<Result<(), String>> {
        let done = self.offer.take().map(|offer| offer.apply(digest));
        let done = done.into_iter().flatten();
        done.map(|one| one.map_err(|why| why.to_string())).collect()
    }

    /// Creates missing files that git obeys, so that mounts can cover them, and records them.
    fn stand_in(&mut self) -> Result<(), String> {
        match self.guard.as_ref().map(protect::create_placeholders) {
            None | Some(Ok(false)) => Ok(()),
            Some(Ok(true)) => {
                self.release()?;
                self.record()
            }
            Some(Err(error)) => Err(error.to_string()),
        }
    }

    /// Records the protected names, not yet claimed for a command.
    fn record(&mut self) -> Result<(), String> {
        let Some(setup) = self.setup.clone() else {
            return Ok(());
        };
        let paths = |list: &[OsString]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (roots, extra, store) = (paths(&setup.roots), paths(&setup.extra), Path::new(&setup.store));
        if let Some(left) = self.unrecovered.iter().find(|left| left.concerns(&roots)) {
            return Err(left.explain(&store.join("journal")));
        }
        // An older guard is settled before it is replaced, so that nothing escapes between two commands.
        if self.guard.is_some() {
            let put_back = self.settle();
            self.late = put_back.violations;
            if let Some(why) = put_back.unsettled {
                return Err(why);
            }
        }
        // An offer expires when the next command starts.
        self.offer = None;
        let program = setup.program.as_ref().map(Path::new);
        let known = self.known.as_ref();
        let guard = protect::Guard::prepare(&roots, &extra, &setup.names, store, &setup.person, known, program);
        let guard = guard.map_err(|error| error.to_string())?;
        if let Some(left) = self.unrecovered.iter().find(|left| left.lies_in(&guard)) {
            let why = left.explain(&store.join("journal"));
            return match guard.release() {
                Ok(_) => Err(why),
                Err(error) => Err(format!("{why}; {error}")),
            };
        }
        self.guard = Some(guard);
        Ok(())
    }

    fn settle(&mut self) -> PutBack {
        // The report may be cut, so violations of this command come before those of the last.
        let mut put_back = PutBack {
            violations: std::mem::take(&mut self.seized),
            ..PutBack::default()
        };
        let mut late = std::mem::take(&mut self.late);
        // Changes from here on are Stockade's own.
        self.watch = None;
        self.growth = None;
        if let Some(guard) = self.guard.take() {
            let protect::SettledGuard {
                settled,
                appeared: new,
                known,
                offer,
            } = guard.settle_with(self.covers.copies());
            self.known = known;
            self.offer = offer;
            put_back.violations.extend(settled.violations.into_iter().map(reported));
            put_back.unsettled = summary(&settled.errors);
            put_back.appeared = appeared(new);
        }
        put_back.violations.append(&mut late);
        put_back
    }

    /// Drops a snapshot that no command came for.
    fn release(&mut self) -> Result<(), String> {
        if let Some(guard) = self.guard.take() {
            self.known = Some(guard.release().map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Removes the copies of covered files: no command runs any more.
    pub(crate) fn remove_copies(&mut self) {
        self.covers = MountedCovers::default();
    }

    /// Restores from the journals of killed sessions.
    pub(crate) fn recover(&mut self) -> PutBack {
        let Some(setup) = &self.setup else {
            return PutBack::default();
        };
        let recovered = protect::recover(setup.store.as_ref());
        // Names that cannot be restored now would be recorded as they are: no command starts there.
        self.unrecovered = recovered.failures;
        bounded(PutBack {
            violations: recovered.violations.into_iter().map(reported).collect(),
            ..PutBack::default()
        })
    }
}
