//! The live forkers of a session: at most one per profile.
//!
//! A forker is confined to its profile for good and serves no other, so a call under another profile gets
//! another forker, with a HOME and a TMPDIR of its own.

use std::sync::Arc;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::call::ToolError;
use super::covered_names::CoveredNames;
use super::denied_names::DeniedNames;
use super::enforcement::{ChosenRegime, Enforcement};
use super::explain::forker_plan::{ForkerPlan, ForkerPlans};
use super::plan::ProfileDigest;
use super::profiles::Derived;
use super::recorder::Recorder;
use super::run_command::with_stop_timeout;
use super::search::UngrantedFiles;
use super::session_policy::SessionPolicy;
use super::starter::Starter;
use super::user_paths::UserPaths;
use crate::confine::{Confinement, ForkerFor};
use crate::policy::{AbsPath, Access, Operation};
use crate::profile::{ApprovedRoots, FileReach, Profile};

/// How many forkers live at once. An executor seldom has more profiles than these: what was approved, what
/// nobody was asked about, and what some rules narrow.
const MAX_FORKERS: usize = 8;

/// Forkers by profile, the one used last at the end, and what starts others.
#[derive(Debug)]
pub(super) struct Pool {
    starter: Starter,
    live: Vec<(ProfileDigest, Confinement)>,
    forker_plans: ForkerPlans,
}

impl Pool {
    pub(super) fn of(starter: Starter) -> Self {
        Self {
            starter,
            live: Vec::new(),
            forker_plans: ForkerPlans::default(),
        }
    }

    /// A pool beside this one, with forkers of its own.
    pub(super) fn beside(&self) -> Self {
        Self::of(self.starter.beside())
    }

    pub(super) fn session(&self) -> &SessionPolicy {
        &self.starter.session
    }

    pub(super) const fn chosen(&self) -> &ChosenRegime {
        &self.starter.chosen
    }

    pub(super) const fn user_paths(&self) -> &UserPaths {
        &self.starter.user_paths
    }

    pub(super) const fn recorder(&self) -> Option<&Recorder> {
        self.starter.recorder.as_ref()
    }

    /// What commands see of a directory in which single files are granted.
    pub(super) const fn ungranted(&self) -> UngrantedFiles {
        UngrantedFiles::of(&self.starter.chosen)
    }

    /// Commands of this pool start in this directory. One in no root is there for them, and they see nothing of it.
    pub(super) fn start_in(&mut self, directory: &AbsPath) {
        // Behind a symlink it may be another one than it is called.
        let is_outside = std::fs::canonicalize(directory).is_ok_and(|real| real == directory.as_path())
            && self.session().policy.root_for(directory).is_none()
            && self.session().envelope.access(Operation::List, directory) == Access::Denied;
        self.starter.start = is_outside.then(|| directory.clone());
    }

    /// A command that cannot read where it starts fails in puzzling ways: better said at once.
    pub(super) fn check_directory(&self, directory: &AbsPath) -> Result<(), ToolError> {
        let confined = matches!(self.chosen().enforcement, Enforcement::Confined(_));
        let may_list = || self.session().envelope.access(Operation::List, directory) > Access::Denied;
        if !confined || self.starter.start.as_ref() == Some(directory) || may_list() {
            Ok(())
        } else {
            Err(ToolError::Directory(directory.as_path().to_owned()))
        }
    }

    /// Starts a forker that is not one of the pool.
    pub(super) async fn start(
        &mut self,
        profile: &Profile,
        forker_for: ForkerFor,
        approved_roots: &ApprovedRoots,
    ) -> Result<Confinement, ToolError> {
        self.starter.start(profile, forker_for, approved_roots).await
    }

    /// Takes out the forker of this profile, or starts one. Whoever took it keeps it again when its call came to an end: one whose
    /// call is given up or fails is dropped with it, and takes the rest of the command along.
    pub(super) async fn take_or_start(
        &mut self,
        derived: &Derived,
        forker_for: ForkerFor,
        approved_roots: &ApprovedRoots,
    ) -> Result<Confinement, ToolError> {
        // One that has ended itself, because what it held was replaced, is started anew.
        match self.take(&derived.digest()).filter(Confinement::is_serving) {
            Some(forker) => Ok(forker),
            None => self.start(&derived.profile, forker_for, approved_roots).await,
        }
    }

    /// The same, unless somebody stopped the call while it was made ready: they want no command.
    pub(super) async fn ready(
        &mut self,
        derived: &Derived,
        forker_for: ForkerFor,
        approved_roots: &ApprovedRoots,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Confinement, ToolError> {
        self.end_outdated(derived).await?;
        let (forker, stop) = with_stop_timeout(self.take_or_start(derived, forker_for, approved_roots), stops).await?;
        match (forker, stop.or_else(|| stops.try_recv().ok())) {
            (forker, None) => forker,
            (Ok(forker), Some(signal)) => {
                self.keep(derived.digest(), forker).await;
                Err(ToolError::Stopped(signal))
            }
            // The same key may have hit what was being started, before it had a group of its own.
            (Err(_), Some(signal)) => Err(ToolError::Stopped(signal)),
        }
    }

    /// Ends the forker of this profile if its mounts cover something else than what patterns name now.
    ///
    /// # Errors
    /// Not all could be looked at, so nothing may start.
    pub(super) async fn end_outdated(&mut self, derived: &Derived) -> Result<(), ToolError> {
        if self.starter.covered.is_outdated(&derived.profile)?
            && let Some(forker) = self.take(&derived.digest())
        {
            forker.finish().await;
        }
        Ok(())
    }

    /// Keeps an idle forker for the next call; ends the one that was not used for longest when there are too many.
    pub(super) async fn keep(&mut self, profile: ProfileDigest, forker: Confinement) {
        self.live.push((profile, forker));
        if self.live.len() > MAX_FORKERS {
            self.live.remove(0).1.finish().await;
        }
    }

    /// Ends all, and waits until nothing of them is left.
    pub(super) async fn end_all(&mut self) {
        self.starter.covered = CoveredNames::default();
        for (_, forker) in std::mem::take(&mut self.live) {
            forker.finish().await;
        }
    }

    /// What holds commands of this forker; none where nobody looks on.
    ///
    /// # Errors
    /// The plan cannot be made again.
    pub(super) fn forker_plan(
        &mut self,
        profile: &Profile,
        forker: &Confinement,
    ) -> Result<Option<Arc<ForkerPlan>>, ToolError> {
        let Starter {
            session,
            chosen,
            user_paths,
            ..
        } = &self.starter;
        self.forker_plans.of(
            (session, &chosen.enforcement, &user_paths.person),
            profile,
            forker.session(),
        )
    }

    /// What patterns name now that was not there when the forker of this profile began.
    pub(super) fn new_denied_names(&self, derived: &Derived) -> DeniedNames {
        self.starter.covered.new_since(derived)
    }

    fn take(&mut self, profile: &ProfileDigest) -> Option<Confinement> {
        let at = self.live.iter().position(|(digest, _)| digest == profile)?;
        Some(self.live.remove(at).1)
    }
}
