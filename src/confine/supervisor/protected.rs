//! The protected names of a supervisor's session: recorded before a command, put back after it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::confine::protect;
use crate::confine::supervisor::mounted_covers::MountedCovers;
use crate::confine::supervisor::restore_report::{appeared, bounded, offered, reported, summary};
use crate::confine::wire::protocol::{Covered, Offer, ProtectSetup, PutBack, Violation};

/// What came of recording them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The command may start.
    Ready,
    /// There is something to cover that the mounts of this session do not; the next session's will.
    Stale,
}

/// The protected names of a session.
#[derive(Debug, Default)]
pub(crate) struct ProtectedNames {
    setup: Option<ProtectSetup>,
    guard: Option<protect::Guard>,
    /// What the last guard undid and a person may still want.
    offer: Option<protect::Offer>,
    /// What the last guard saw of the tree.
    known: Option<protect::Known>,
    /// What mounts show in the place of protected names.
    covers: MountedCovers,
    /// What tells of git being led elsewhere while a command runs, where mounts cover the rest.
    watch: Option<protect::Watch>,
    /// What tells of a tree that grows too large to be walked, while a command runs.
    growth: Option<protect::Growth>,
    /// What was taken away while a command ran.
    seized: Vec<Violation>,
    /// What was put back when the next command had begun already; told with that.
    late: Vec<Violation>,
    unrecovered: Vec<protect::Unrecovered>,
}

impl ProtectedNames {
    /// Those of a session.
    pub(crate) fn of(setup: Option<ProtectSetup>) -> Self {
        Self {
            setup,
            ..Self::default()
        }
    }

    /// What mounts are to cover. Where it cannot be told, nothing may run behind mounts that cover nothing.
    pub(crate) fn present(&mut self) -> Vec<Covered> {
        let covered = match self.record().and_then(|()| self.stand_in()) {
            Ok(()) => self.covers.cover(self.setup.as_ref(), self.guard.as_ref()),
            Err(why) => self.covers.fail(why),
        };
        // Nobody has claimed it, so no start takes it for something to restore. Each command has its own recorded.
        let _released = self.release();
        covered
    }

    /// Has the protected names recorded for a command that starts now.
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
            // Nobody may settle what no command came for.
            let released = self.release().err();
            released
                .into_iter()
                .fold(error.to_string(), |errors, why| format!("{errors}; {why}"))
        })
    }

    /// What tells that git may be led elsewhere, while a command runs.
    pub(crate) fn watch(&self) -> Option<&protect::Watch> {
        self.watch.as_ref()
    }

    /// Whether a command runs behind it.
    pub(crate) fn is_guarding(&self) -> bool {
        self.growth.is_some()
    }

    /// Whether a command has made more directories than can be walked.
    pub(crate) fn is_outgrown(&mut self) -> bool {
        let both = self.growth.as_mut().zip(self.guard.as_ref());
        both.is_some_and(|(growth, guard)| growth.is_too_much(guard))
    }

    /// Takes away what leads git elsewhere, and kills the command first where it is to be killed for that; the first of it then.
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

    /// Puts back what commands changed, as much of it told as a message has room for.
    pub(crate) fn put_all_back(&mut self) -> PutBack {
        bounded(self.settle())
    }

    /// What a person may still want of what was undone.
    pub(crate) fn offer(&mut self) -> Option<Offer> {
        self.offer.as_mut()?.show().map(offered)
    }

    /// Makes those changes after all, once; of each, why that could not be. None are left where nothing is on offer any more.
    pub(crate) fn put_back(&mut self, digest: &protect::Digest) -> Vec<Result<(), String>> {
        let done = self.offer.take().map(|offer| offer.put_back(digest));
        let done = done.into_iter().flatten();
        done.map(|one| one.map_err(|why| why.to_string())).collect()
    }

    /// Has what git obeys be there for mounts to cover; recorded anew where something was made.
    fn stand_in(&mut self) -> Result<(), String> {
        match self.guard.as_ref().map(protect::stand_in) {
            None | Some(Ok(false)) => Ok(()),
            Some(Ok(true)) => {
                self.release()?;
                self.record()
            }
            Some(Err(error)) => Err(error.to_string()),
        }
    }

    /// Records the protected names, for nobody yet.
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
        let guard = protect::Guard::ahead(&roots, &extra, &setup.names, store, &setup.person, known, program);
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

    /// What was put back, and why the rest could not be.
    fn settle(&mut self) -> PutBack {
        // Of very many only the first are told: what this command did comes before what the one before it did.
        let mut put_back = PutBack {
            violations: std::mem::take(&mut self.seized),
            ..PutBack::default()
        };
        let mut late = std::mem::take(&mut self.late);
        // What happens from here on is our own doing.
        self.watch = None;
        self.growth = None;
        if let Some(guard) = self.guard.take() {
            let protect::After {
                settled,
                appeared: new,
                known,
                offer,
            } = guard.settle_knowing(self.covers.copies());
            self.known = known;
            self.offer = offer;
            put_back.violations.extend(settled.violations.into_iter().map(reported));
            put_back.unsettled = summary(&settled.errors);
            put_back.appeared = appeared(new);
        }
        put_back.violations.append(&mut late);
        put_back
    }

    /// Forgets what was recorded and no command came for.
    fn release(&mut self) -> Result<(), String> {
        if let Some(guard) = self.guard.take() {
            self.known = Some(guard.release().map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    /// Restores what a session that was killed with all its processes left.
    pub(crate) fn recover(&mut self) -> PutBack {
        let Some(setup) = &self.setup else {
            return PutBack::default();
        };
        let recovered = protect::recover(setup.store.as_ref());
        // Names that cannot be put back now would be taken for the state to keep: no command starts where they are.
        self.unrecovered = recovered.failures;
        bounded(PutBack {
            violations: recovered.violations.into_iter().map(reported).collect(),
            ..PutBack::default()
        })
    }
}
