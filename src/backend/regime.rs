//! The ways in which a command can be held.

use serde::{Deserialize, Serialize};

use crate::policy::BackendChoice;

/// How a command is held. Ordered: stronger is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Not at all; only where the config says that confinement is not required. No plan exists for it.
    None,
    /// Landlock and seccomp.
    Landlock,
    /// `sandbox-exec`, on a Mac.
    Seatbelt,
    /// Namespaces in which only what is granted is mounted, with Landlock and seccomp inside.
    Namespaces,
}

impl Regime {
    /// The regimes that a profile can be lowered for, in the order that reports print them.
    pub const WITH_PLANS: [Self; 3] = [Self::Landlock, Self::Namespaces, Self::Seatbelt];

    /// The name, as flags, reports and the audit log have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
            Self::Namespaces => "namespaces",
        }
    }

    /// The regimes that `sandbox.backend` can lead to on this operating system, in the order that reports print them.
    pub fn for_choice(choice: BackendChoice) -> Vec<Self> {
        match choice {
            BackendChoice::Auto if cfg!(target_os = "macos") => vec![Self::Seatbelt],
            BackendChoice::Auto => vec![Self::Landlock, Self::Namespaces],
            BackendChoice::Landlock => vec![Self::Landlock],
            BackendChoice::Namespaces | BackendChoice::Bwrap => vec![Self::Namespaces],
        }
    }

    /// A warning for whoever reads a report on this regime, if there is one.
    pub const fn caveat(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Landlock | Self::Namespaces => None,
            Self::Seatbelt => Some("untested on a Mac: only the text is checked, by reading it back"),
        }
    }
}
