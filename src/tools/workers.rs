//! The live workers of an executor: at most one per profile.
//!
//! A worker is confined to its profile for good and serves no other, so a call under another profile gets
//! another worker, with a HOME and a TMPDIR of its own.

use std::sync::{Arc, OnceLock};

use super::denied_names::CoveredNames;
use super::plan::{self, ProfileDigest};
use crate::confine::Confinement;
use crate::profile::Profile;

/// How many workers live at once. An executor seldom has more profiles than these: what was approved, what
/// nobody was asked about, and what some rules narrow.
const MOST: usize = 8;

/// A profile that is held against the policy before a worker is given out for it, and what tells it from others.
#[derive(Debug, Clone)]
pub(super) struct Derived {
    pub(super) profile: Arc<Profile>,
    /// Made when somebody asks: the first worker of a session starts before that.
    digest: Arc<OnceLock<ProfileDigest>>,
}

impl Derived {
    pub(super) fn of(profile: Profile) -> Self {
        Self {
            profile: Arc::new(profile),
            digest: Arc::default(),
        }
    }

    pub(super) fn digest(&self) -> ProfileDigest {
        *self.digest.get_or_init(|| plan::digest(&self.profile))
    }
}

/// Workers by profile, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct Workers {
    live: Vec<(ProfileDigest, Confinement)>,
    /// What the mounts of each cover of what patterns deny.
    pub(super) covered: CoveredNames,
}

impl Workers {
    /// Takes out the worker of this profile. Whoever took it keeps it again when its call came to an end: one whose
    /// call is given up or fails is dropped with it, and takes the rest of the command along.
    pub(super) fn take(&mut self, wanted: &Derived) -> Option<Confinement> {
        let at = self.live.iter().position(|(digest, _)| *digest == wanted.digest())?;
        // One that has ended itself, because what it held was replaced, is started anew.
        Some(self.live.remove(at).1).filter(Confinement::is_serving)
    }

    /// Takes out the worker of this profile also where it has ended.
    pub(super) fn take_out(&mut self, profile: &ProfileDigest) -> Option<Confinement> {
        let at = self.live.iter().position(|(digest, _)| digest == profile)?;
        Some(self.live.remove(at).1)
    }

    /// Keeps an idle worker for the next call; ends the one that was not used for longest when there are too many.
    pub(super) async fn keep(&mut self, profile: ProfileDigest, worker: Confinement) {
        self.live.push((profile, worker));
        if self.live.len() > MOST {
            self.live.remove(0).1.finish().await;
        }
    }

    /// Ends all, and waits until nothing of them is left.
    pub(super) async fn finish(self) {
        for (_, worker) in self.live {
            worker.finish().await;
        }
    }
}
