//! The profiles of a session: policy + call → derived profile, held against the config's own words, and kept.

use std::sync::{Arc, OnceLock};

use super::call::ToolError;
use super::narrowing::Narrowing;
use super::plan::{self, ProfileDigest};
use super::session_policy::SessionPolicy;
use crate::policy::{Network, Policy, UnixSockets};
use crate::profile::{ApprovedRoots, Call, Profile, derive};

/// How many profiles are kept; a session seldom asks about more sets of roots.
const MAX_PROFILES: usize = 32;

/// A profile that is held against the policy before a forker is given out for it, and what tells it from others.
#[derive(Debug, Clone)]
pub(super) struct Derived {
    pub(super) profile: Arc<Profile>,
    /// Made when somebody asks: the first forker of a session starts before that.
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

/// The profiles of the calls of a session. Its policy stays what it is, so a profile that was held against it is not derived again.
#[derive(Debug)]
pub(super) struct Profiles {
    session: Arc<SessionPolicy>,
    of_calls: Vec<(Call, Derived)>,
    of_files: Vec<(ApprovedRoots, Derived)>,
    /// The profile of a call that nobody was asked about, once somebody needs it.
    unasked: OnceLock<Profile>,
}

impl Profiles {
    /// The policy of the session.
    pub(super) fn session_policy(&self) -> Arc<SessionPolicy> {
        Arc::clone(&self.session)
    }

    pub(super) const fn new(session: Arc<SessionPolicy>) -> Self {
        Self {
            session,
            of_calls: Vec::new(),
            of_files: Vec::new(),
            unasked: OnceLock::new(),
        }
    }

    pub(super) fn beside(&self) -> Self {
        Self::new(Arc::clone(&self.session))
    }

    /// The profile of a call that nobody was asked about.
    pub(super) fn unasked(&self) -> &Profile {
        let SessionPolicy { policy, narrowing, .. } = &*self.session;
        let derived = || narrowing.narrow(derive(policy, &Call::of(ApprovedRoots::None)));
        self.unasked.get_or_init(derived)
    }

    /// The profile of a call; everything that any call of the session may do is in the envelope.
    pub(super) fn of(&mut self, call: &Call) -> Result<Derived, ToolError> {
        if let Some((_, known)) = self.of_calls.iter().find(|(key, _)| key == call) {
            return Ok(known.clone());
        }
        let derived = Derived::of(if *call == Call::of(ApprovedRoots::All) {
            self.session.envelope.clone()
        } else {
            self.checked_profile(call)?
        });
        keep(&mut self.of_calls, call, &derived);
        Ok(derived)
    }

    /// The profile of file tools when this was asked.
    ///
    /// Which suffixes and sizes a root takes is held by the judgement of each path and by the server, which runs no
    /// code of an agent's; the kernel could only forbid to create anything there. All else is held by the kernel.
    pub(super) fn of_files(&mut self, approved_roots: &ApprovedRoots) -> Result<Derived, ToolError> {
        if let Some((_, known)) = self.of_files.iter().find(|(key, _)| key == approved_roots) {
            return Ok(known.clone());
        }
        let SessionPolicy { policy, narrowing, .. } = &*self.session;
        let derived = Derived::of(checked_profile(
            &without_sizes(policy),
            narrowing,
            &Call::of(approved_roots.clone()),
        )?);
        keep(&mut self.of_files, approved_roots, &derived);
        Ok(derived)
    }

    /// The profile of a call, held against the config as the function [`checked_profile`] does.
    fn checked_profile(&self, call: &Call) -> Result<Profile, ToolError> {
        let SessionPolicy {
            policy,
            narrowing,
            envelope,
        } = &*self.session;
        let profile = if *call == Call::of(ApprovedRoots::None) {
            self.unasked().clone()
        } else {
            narrowing.narrow(derive(policy, call))
        };
        // The same clauses about files are held against the same config for the envelope.
        if profile.grants == envelope.grants && profile.denies == envelope.denies {
            plan::check_network_against(policy, call, &profile)?;
        } else {
            plan::check_against(policy, call, &profile)?;
        }
        Ok(profile)
    }
}

fn keep<K: Clone>(kept: &mut Vec<(K, Derived)>, key: &K, derived: &Derived) {
    if kept.len() >= MAX_PROFILES {
        kept.remove(0);
    }
    kept.push((key.clone(), derived.clone()));
}

/// The profile of a call, held against the config's own words, flags applied and held again.
pub(super) fn checked_profile(policy: &Policy, narrowing: &Narrowing, call: &Call) -> Result<Profile, ToolError> {
    let profile = narrowing.narrow(derive(policy, call));
    plan::check_against(policy, call, &profile)?;
    Ok(profile)
}

/// The policy with every suffix set and size limit of a root left out, and nothing that file tools have no use for.
fn without_sizes(policy: &Policy) -> Policy {
    let mut policy = Policy {
        network: Network::Off,
        unix_sockets: UnixSockets::None,
        ..policy.clone()
    };
    let ceilings = policy
        .ceilings
        .all
        .iter_mut()
        .flat_map(|ceiling| &mut ceiling.policy.roots);
    for root in policy.roots.iter_mut().chain(ceilings) {
        root.suffixes = None;
        root.max_file_bytes = None;
    }
    policy
}
