//! What a backend does with each clause, and why it refuses.

use std::borrow::Borrow;
use std::fmt;

use super::regime::Regime;
use super::seatbelt::SeatbeltError;
use super::survey::SurveyError;
use crate::policy::{AbsPath, Network, Residuals};

/// The status of one clause under one backend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Exactly as written.
    Enforced,
    /// The OS blocks more than the clause does; the text says what.
    Stricter(String),
    /// Restored after the command instead of prevented (protected names only).
    Undone,
    /// The OS cannot hold it.
    Residual(Residual),
}

/// What a clause that cannot be held leaves open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Residual {
    /// What kind of reach it is; only metadata and new names of a pattern may be left open, where the config admits that.
    pub reach: ReachKind,
    /// What an agent could do, in plain words.
    pub what: String,
}

/// The kinds of reach a residual can concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReachKind {
    /// Names, sizes, times: existence.
    Metadata,
    /// File content.
    Content,
    /// Sockets.
    Network,
    /// Other processes, or what the host will later run.
    Process,
}

/// One clause with its status: what `doctor`, `check` and the regime line print.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClauseStatus {
    /// The clause, as a person would say it (`deny read+write /srv/x`).
    pub clause: String,
    /// Where it was written.
    pub origin: String,
    /// Its status.
    pub status: Status,
}

impl ClauseStatus {
    /// The status of a clause, given what commands lose beyond what it says.
    pub(super) fn with_losses<S: Borrow<str>>(
        clause: &dyn fmt::Display,
        origin: &dyn fmt::Display,
        losses: &[S],
    ) -> Self {
        let status = if losses.is_empty() {
            Status::Enforced
        } else {
            Status::Stricter(losses.join("; "))
        };
        Self {
            clause: clause.to_string(),
            origin: origin.to_string(),
            status,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced => f.write_str("enforced"),
            Self::Stricter(what) => write!(f, "stricter: {what}"),
            Self::Undone => f.write_str("undone"),
            Self::Residual(residual) => write!(f, "residual: {}", residual.what),
        }
    }
}

/// Why a profile is not lowered. Nothing runs then.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The kernel is too old for the regime.
    #[error(
        "Landlock ABI {have} cannot keep signals and abstract sockets inside the sandbox: ABI {need} (Linux 6.12) is needed"
    )]
    Abi {
        /// What the kernel has.
        have: u32,
        /// What the regime needs.
        need: u32,
    },
    /// The kernel is too old even for the second wall.
    #[error(
        "Landlock ABI {have} cannot keep a file in a read-only root from being emptied: ABI {need} (Linux 6.2) is needed inside namespaces"
    )]
    AbiInside {
        /// What the kernel has.
        have: u32,
        /// What the layer inside needs.
        need: u32,
    },
    /// The host's abstract sockets have no path, so no mount hides them, and the kernel has no scope for them.
    #[error(
        "`unix_sockets: all` is about sockets with a path; with `network: true` it would reach abstract sockets of the host \
         too, which Landlock ABI {have} cannot keep out (ABI {need}, Linux 6.12, can): set `unix_sockets: none`, or list \
         hosts in `network`"
    )]
    AbstractSockets {
        /// What the kernel has.
        have: u32,
        /// What has the scope.
        need: u32,
    },
    /// The plan has more mounts than bwrap takes; no maker gets more.
    #[error(
        "{have} arguments would be needed for the mounts, and there may be {most}: name directories instead of single files, \
         or deny directories, or names that match less"
    )]
    TooManyMounts {
        /// How many would be needed.
        have: usize,
        /// How many bwrap takes.
        most: usize,
    },
    /// A mount point would have to be made on the host.
    #[error("{path} is not {wanted} on this machine, and a mount point for it would have to be made there")]
    NoMountPoint {
        /// The path.
        path: AbsPath,
        /// What it would have to be.
        wanted: &'static str,
    },
    /// Landlock cannot deny part of a granted tree.
    #[error(
        "{origin}: `{clause}` lies inside what {granted} grants, and Landlock cannot forbid part of a granted tree; \
         keep it outside that tree, or have the entries around it ruled one by one with `--deny-fallback decompose` or \
         `sandbox.deny_fallback: decompose` (the directories on the way can then not be listed or added to); the \
         `namespaces` regime covers what is there (`stockade doctor` says what it needs)"
    )]
    DenyBelowGrant {
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
        /// The path of the grant around it.
        granted: AbsPath,
    },
    /// Neither mounts nor the layer inside can enforce the deny.
    #[error(
        "{origin}: `{clause}` lies inside what {granted} grants, and {why}; keep it outside that tree, or have the \
         entries around it ruled one by one with `--deny-fallback decompose` or `sandbox.deny_fallback: decompose` (the \
         directories on the way can then not be listed or added to)"
    )]
    DenyBesideMounts {
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
        /// The path of the grant around it.
        granted: AbsPath,
        /// Why no mount holds it.
        why: &'static str,
    },
    /// A denied file has another name, where the deny does not hold.
    #[error(
        "{origin}: `{clause}` cannot be held: {path} has more than one hard link, so it could be reached by another name"
    )]
    HardLink {
        /// The file.
        path: AbsPath,
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
    },
    /// A symlink has a name that a pattern denies.
    #[error(
        "{origin}: `{clause}` cannot be held: {path} is a symlink, and what it leads to is not denied; put a file there, or \
         deny what it leads to as well"
    )]
    DeniedSymlink {
        /// The link.
        path: AbsPath,
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
    },
    /// A mount shows a denied path at a granted one.
    #[error("{origin}: `{clause}` cannot be held: a mount shows the same files at {alias}, which is granted")]
    Alias {
        /// The other path.
        alias: AbsPath,
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
    },
    /// A granted path leads to another file than when the config was resolved.
    #[error(
        "{0} was replaced since the config was read: what is there now was never judged, and a new session reads it anew"
    )]
    Replaced(AbsPath),
    /// A granted path has become a symbolic link.
    #[error("{0} is a symbolic link; a rule would hold for the link, not for what it leads to")]
    Symlink(AbsPath),
    /// A directory that must be ruled entry by entry was not surveyed.
    #[error("{0} would have to be ruled entry by entry but was not looked at")]
    NotSurveyed(AbsPath),
    /// The survey failed.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The config refuses what the regime leaves open.
    #[error("`sandbox.residuals: refuse` is set, and the regime leaves this open: {what}")]
    Residual {
        /// What stays open.
        what: &'static str,
    },
    /// The profile has no Seatbelt text.
    #[error(transparent)]
    Seatbelt(#[from] SeatbeltError),
    /// Only a proxy that is the only way out can enforce a list of hosts; here it is not.
    #[error(
        "the list of hosts ({list}) cannot be held in the `{regime}` regime, where a command that may connect may connect \
         to everything; it can in the `namespaces` regime: `--backend namespaces` or `sandbox.backend: namespaces` (`stockade doctor` \
         says what that needs); or say `network: false` (nothing) or `network: true` (everything)"
    )]
    Hosts {
        /// The list.
        list: String,
        /// The regime.
        regime: &'static str,
    },
    /// The regime is `none`.
    #[error("nothing confines a command in the `none` regime, so there is no plan")]
    Unconfined,
    /// Protected names can only be restored afterwards, and the config does not admit that.
    #[error(
        "names that the host will later trust or run ({what}) cannot be protected by prevention in the `{regime}` regime; \
         set `sandbox.protect_fallback: undo` (and not `residuals: refuse`) to have them restored after each command, \
         or `sandbox.protect: none`"
    )]
    Protected {
        /// What would be protected.
        what: &'static str,
        /// The regime.
        regime: &'static str,
    },
    /// Only mounts can prevent changes to protected names.
    #[error(
        "`sandbox.protect: prevent` needs mounts, and the `{regime}` regime has none; \
         set `protect: default` to have protected names restored after each command"
    )]
    Prevent {
        /// The regime.
        regime: &'static str,
    },
    /// Protected names can neither be protected nor restored.
    #[error(
        "names that the host will later trust or run ({what}) are neither protected nor restored in the `{regime}` regime; \
         `sandbox.protect: none` does without"
    )]
    Unprotected {
        /// What would be protected.
        what: &'static str,
        /// The regime.
        regime: &'static str,
    },
}

impl Refusal {
    /// Whether the config alone causes it, on any kernel or disk.
    pub const fn is_of_config(&self) -> bool {
        match self {
            Self::DenyBelowGrant { .. }
            | Self::Residual { .. }
            | Self::Seatbelt(_)
            | Self::Hosts { .. }
            | Self::Protected { .. }
            | Self::Prevent { .. }
            | Self::Unprotected { .. } => true,
            Self::Unconfined
            | Self::Abi { .. }
            | Self::AbiInside { .. }
            | Self::AbstractSockets { .. }
            | Self::TooManyMounts { .. }
            | Self::NoMountPoint { .. }
            | Self::DenyBesideMounts { .. }
            | Self::HardLink { .. }
            | Self::DeniedSymlink { .. }
            | Self::Alias { .. }
            | Self::Replaced(_)
            | Self::Symlink(_)
            | Self::NotSurveyed(_)
            | Self::Survey(_) => false,
        }
    }
}

/// What metadata the `landlock` regime leaves open.
pub const METADATA: &str = "names, sizes and times of files anywhere can be looked up (stat), though no content";

/// What metadata the `seatbelt` regime leaves open.
pub const METADATA_OF_ANCESTORS: &str =
    "times and sizes of the directories above granted paths can be looked up (stat), and the names in `/`";

/// What metadata the `namespaces` regime shows.
pub const METADATA_SHOWN: &str = "metadata of files outside the grants (only the names of the directories on the way to \
    what is granted can be seen, the links of system directories that lead to it, and that something is masked)";

/// Refuses a list of hosts where only filters control the network.
pub fn refuse_hosts(network: &Network, regime: Regime) -> Result<(), Refusal> {
    match (network, regime) {
        (Network::Off | Network::Full, _) | (Network::Hosts(_), Regime::Namespaces) => Ok(()),
        (Network::Hosts(list), Regime::None | Regime::Landlock | Regime::Seatbelt) => Err(Refusal::Hosts {
            list: list.to_string(),
            regime: regime.name(),
        }),
    }
}

/// The status of metadata in a regime, or why the config does not admit it.
pub fn metadata(regime: Regime, residuals: Residuals) -> Result<ClauseStatus, Refusal> {
    let clause = |clause: &str, status| ClauseStatus {
        clause: clause.to_owned(),
        origin: "built in".to_owned(),
        status,
    };
    let what = match regime {
        Regime::None | Regime::Landlock => METADATA,
        Regime::Seatbelt => METADATA_OF_ANCESTORS,
        // A path that is not mounted does not exist.
        Regime::Namespaces => return Ok(clause(METADATA_SHOWN, Status::Enforced)),
    };
    match residuals {
        Residuals::Refuse => Err(Refusal::Residual { what }),
        Residuals::Report => {
            let residual = Residual {
                reach: ReachKind::Metadata,
                what: what.to_owned(),
            };
            Ok(clause(
                "metadata of files outside the grants",
                Status::Residual(residual),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_reported_or_refused() {
        assert!(metadata(Regime::Landlock, Residuals::Report).is_ok());
        assert!(metadata(Regime::Landlock, Residuals::Refuse).is_err());
        assert_eq!(
            metadata(Regime::Namespaces, Residuals::Refuse).unwrap().status,
            Status::Enforced
        );
    }
}
