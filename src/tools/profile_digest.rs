//! The names of profiles.

use std::hash::{Hash, Hasher};

use sha2::{Digest, Sha256};

use crate::profile::Profile;

/// The name of a profile: a digest of all that it permits.
pub type ProfileDigest = [u8; 32];

/// The name of a profile: a digest of every clause.
pub fn digest(profile: &Profile) -> ProfileDigest {
    let mut hasher = Sha(Sha256::new());
    profile.grants.hash(&mut hasher);
    profile.denies.hash(&mut hasher);
    for (path, identity) in &profile.identities {
        path.hash(&mut hasher);
        identity.hash(&mut hasher);
    }
    profile.network.hash(&mut hasher);
    profile.unix_sockets.hash(&mut hasher);
    profile.limits.hash(&mut hasher);
    profile.environment.hash(&mut hasher);
    hasher.0.finalize().into()
}

struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: the whole digest is taken.
    fn finish(&self) -> u64 {
        0
    }
}
