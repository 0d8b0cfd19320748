//! What a backend does with each clause, and why it refuses.

use std::fmt;

use super::Regime;
use super::survey::SurveyError;
use crate::policy::{AbsPath, Protect, ProtectFallback, Residuals};

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
    /// What kind of reach it is; only metadata may be left open, and only when the config does not refuse it.
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
    /// What becomes of it.
    pub status: Status,
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
    /// Landlock cannot take back below what it gives above.
    #[error(
        "{origin}: `{clause}` lies inside what {granted} grants, and Landlock cannot forbid part of a granted tree; \
         keep it outside that tree, or have the entries around it ruled one by one with `--deny-fallback decompose` or \
         `sandbox.deny_fallback: decompose` (the directories on the way can then not be listed or added to)"
    )]
    DenyBelowGrant {
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
        /// The path of the grant around it.
        granted: AbsPath,
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
    /// A denied path shows at a granted one through a mount.
    #[error("{origin}: `{clause}` cannot be held: a mount shows the same files at {alias}, which is granted")]
    Alias {
        /// The other path.
        alias: AbsPath,
        /// The deny.
        clause: String,
        /// Where it was written.
        origin: String,
    },
    /// A granted path leads elsewhere than when the config was resolved.
    #[error("{0} is not the file it was when the config was read")]
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
    Seatbelt(#[from] super::seatbelt::Unfit),
    /// Protected names can only be restored afterwards, and the config does not admit that.
    #[error(
        "names that the host will later trust or run ({what}) cannot be protected by prevention in the `landlock` regime; \
         set `sandbox.protect_fallback: undo` (and not `residuals: refuse`) to have them restored after each command, \
         or `sandbox.protect: none`"
    )]
    Protected {
        /// What would be protected.
        what: &'static str,
    },
}

/// What metadata the `landlock` regime leaves open.
pub const METADATA: &str = "names, sizes and times of files anywhere can be looked up (stat), though no content";

/// What metadata the `seatbelt` regime leaves open.
pub const METADATA_OF_ANCESTORS: &str =
    "times and sizes of the directories above granted paths can be looked up (stat), and the names in `/`";

/// The status of metadata in a regime, or why the config does not admit it.
pub fn metadata(regime: Regime, residuals: Residuals) -> Result<ClauseStatus, Refusal> {
    let what = match regime {
        Regime::None | Regime::Landlock => METADATA,
        Regime::Seatbelt => METADATA_OF_ANCESTORS,
    };
    match residuals {
        Residuals::Refuse => Err(Refusal::Residual { what }),
        Residuals::Report => Ok(ClauseStatus {
            clause: "metadata of files outside the grants".to_owned(),
            origin: "built in".to_owned(),
            status: Status::Residual(Residual {
                reach: ReachKind::Metadata,
                what: what.to_owned(),
            }),
        }),
    }
}

/// The status of protected names in a regime, or why the config does not admit it.
///
/// No regime so far can prevent writes to part of a writable tree, so all of them are undone.
pub fn protected(
    protect: &Protect,
    fallback: ProtectFallback,
    residuals: Residuals,
    regime: Regime,
) -> Result<Vec<ClauseStatus>, Refusal> {
    let files = match protect {
        Protect::None => return Ok(Vec::new()),
        Protect::Default(files) => files,
    };
    let admitted = match (regime, fallback, residuals) {
        // What is undone has a window, so it is a residual as well.
        (Regime::None | Regime::Landlock, ProtectFallback::Undo, Residuals::Report) => Status::Undone,
        (Regime::None | Regime::Landlock, ProtectFallback::Refuse, Residuals::Refuse | Residuals::Report)
        | (Regime::None | Regime::Landlock, ProtectFallback::Undo, Residuals::Refuse)
        // Nothing restores them on a Mac yet.
        | (Regime::Seatbelt, ProtectFallback::Undo | ProtectFallback::Refuse, Residuals::Refuse | Residuals::Report) => {
            return Err(Refusal::Protected { what: PROTECTED });
        }
    };
    let names = ClauseStatus {
        clause: format!("protect {PROTECTED}"),
        origin: "sandbox.protect".to_owned(),
        status: admitted.clone(),
    };
    let files = files.iter().map(|file| ClauseStatus {
        clause: format!("protect {file}"),
        origin: "sandbox.protect".to_owned(),
        status: admitted.clone(),
    });
    Ok(std::iter::once(names).chain(files).collect())
}

const PROTECTED: &str = "git hooks and config, shell rc files, editor and agent settings";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_names_are_undone_only_where_the_config_admits_it() {
        let file = AbsPath::new("/srv/stockade.yaml").unwrap();
        let protect = Protect::Default(vec![file]);
        let ask = |fallback, residuals| protected(&protect, fallback, residuals, Regime::Landlock);
        let undone = ask(ProtectFallback::Undo, Residuals::Report).unwrap();
        assert_eq!(undone.len(), 2);
        assert!(undone.iter().all(|clause| clause.status == Status::Undone));
        assert!(ask(ProtectFallback::Undo, Residuals::Refuse).is_err());
        assert!(ask(ProtectFallback::Refuse, Residuals::Report).is_err());
    }

    #[test]
    fn metadata_is_reported_or_refused() {
        assert!(metadata(Regime::Landlock, Residuals::Report).is_ok());
        assert!(metadata(Regime::Landlock, Residuals::Refuse).is_err());
    }
}
