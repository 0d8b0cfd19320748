//! What lowering depends on beside the profile: the regime, this machine, and what of the host must be shown or covered.

use crate::backend::Regime;
use crate::backend::host::Maker;
use crate::backend::namespaces::{NetworkNamespace, PrivateCopy};
use crate::backend::seccomp::Attempts;
use crate::confine::ForkerLocation;
use crate::policy::{AbsPath, DenyFallback, Network, Residuals};

/// The options of a backend: mechanism, machine and permitted gaps.
#[derive(Debug, Clone, Copy)]
pub struct BackendOptions {
    /// The mechanism that confines commands.
    pub mechanism: Mechanism,
    /// Landlock's version on this machine.
    pub landlock_abi: u32,
    /// What to do about denies that Landlock cannot hold.
    pub deny_fallback: DenyFallback,
    /// What to do about what it leaves open.
    pub residuals: Residuals,
    /// Whether the runner observes what commands attempt.
    pub attempts: Attempts,
}

/// The mechanism that confines commands.
#[derive(Debug, Clone, Copy)]
pub enum Mechanism {
    /// A Landlock layer.
    Landlock,
    /// Namespaces that this one makes, and a Landlock layer inside.
    Namespaces(Maker),
}

impl Mechanism {
    /// The regime's name for it.
    pub const fn regime(self) -> Regime {
        match self {
            Self::Landlock => Regime::Landlock,
            Self::Namespaces(_) => Regime::Namespaces,
        }
    }

    /// The isolation of a forker with this network.
    pub const fn place(self, network: &Network) -> ForkerLocation {
        match self {
            Self::Landlock => ForkerLocation::Host,
            Self::Namespaces(Maker::Stockade) => ForkerLocation::Namespaces(NetworkNamespace::of(network)),
            Self::Namespaces(Maker::Bwrap(_)) => ForkerLocation::Bwrap,
        }
    }
}

/// What of the host concerns namespaces, beside the profile.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Protected paths that exist now, to be read-only.
    pub protect: Vec<AbsPath>,
    /// Protected paths that exist now and have copies.
    pub copies: Vec<PrivateCopy>,
    /// What must be seen inside though nobody is granted it.
    pub shown: Vec<AbsPath>,
    /// Files that must be seen to be there, and of which nothing else is seen.
    pub veiled: Vec<AbsPath>,
    /// The directory that commands start in, where no root is around it: it is there, and nothing of it is seen.
    pub start: Option<AbsPath>,
}
