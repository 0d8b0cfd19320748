//! A profile in the words of other programs, each never weaker than the profile where those words reach.
//!
//! [`oci`] is the filter of a container runtime, [`systemd`] a drop-in of a service, [`landlock`] the rule
//! list as it is given to the kernel, `bwrap` its mounts as arguments, `seatbelt` a script for
//! `sandbox-exec`; the whole profile as JSON is a [`Document`]. No form has a character in it that a person
//! cannot see: `json` escapes it, the others refuse it or, for bytes that no person reads, take it as it is.

mod bwrap;
mod cubes;
mod error;
mod json;
pub mod landlock;
pub mod oci;
mod seatbelt;
pub mod systemd;

pub use error::ExportError;

use super::backend::HostBackend;
use super::document::Document;
use super::inspection::Inspection;
use crate::backend::Regime;
use crate::policy::Network;
use crate::tools::checked_plan::BackendPlan;
use crate::tools::plan::lower_seatbelt;

/// What becomes of a list of hosts in a form that has no proxy.
const NO_HOSTS: &str = "the list of hosts is not held by this form: nothing is reached";

/// What is to be done first where a root's directory is not there yet.
const ROOT_MISSING: &str = "a root with `create: true` is not there yet: make its directory before this is used";

/// A form that a profile can be exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The whole profile; `profile diff` reads it.
    Json,
    /// The Landlock rules.
    Landlock,
    /// The arguments of bwrap, each ended by a NUL, as its `--args` reads them.
    Bwrap,
    /// A shell script that hands text and parameters to `sandbox-exec`.
    Seatbelt,
    /// `linux.seccomp` of an OCI runtime config.
    SeccompOci,
    /// A drop-in for a systemd service.
    Systemd,
}

/// Whose profile is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// A command that was approved.
    Approved,
    /// A command that nobody was asked about.
    Unasked,
}

/// A profile in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// What the other program reads.
    pub bytes: Vec<u8>,
    /// What of the profile it does not hold, where the form has no place to say so.
    pub notes: Vec<&'static str>,
}

impl From<String> for Export {
    fn from(text: String) -> Self {
        Self {
            bytes: text.into_bytes(),
            notes: Vec::new(),
        }
    }
}

impl Inspection {
    /// The profile in a form.
    pub fn export(&self, format: Format, kind: CommandKind) -> Result<Export, ExportError> {
        let profile = match kind {
            CommandKind::Approved => &self.approved,
            CommandKind::Unasked => &self.unasked,
        };
        let mut export: Export = match format {
            Format::Json => json::lines(&Document::of(self))?.into(),
            Format::Landlock => match HostBackend::single(Regime::Landlock, self).lower(profile)?.plan {
                BackendPlan::Kernel { plan, .. } => json::lines(&landlock::Rules::of(&plan.landlock))?.into(),
                BackendPlan::Seatbelt(plan) => seatbelt::script(&plan)?.into(),
            },
            Format::Bwrap => Export {
                bytes: bwrap::arguments(self, profile)?,
                notes: bwrap::NOT_ENFORCED.to_vec(),
            },
            Format::Seatbelt => seatbelt::script(&lower_seatbelt(profile, self.policy.residuals)?.0)?.into(),
            Format::SeccompOci => json::lines(&oci::Seccomp::of(profile)?)?.into(),
            Format::Systemd => systemd::drop_in(profile)?.into(),
        };
        match (&profile.network, format) {
            (Network::Hosts(_), Format::Bwrap | Format::SeccompOci | Format::Systemd) => export.notes.push(NO_HOSTS),
            // Those refuse a list, and JSON holds it.
            (Network::Hosts(_), Format::Json | Format::Landlock | Format::Seatbelt)
            | (Network::Off | Network::Full, _) => {}
        }
        match format {
            Format::Landlock | Format::Bwrap | Format::Seatbelt | Format::Systemd => {
                export.notes.extend(self.missing_roots().next().map(|_| ROOT_MISSING));
            }
            // It names no path; and what reads the other makes the directory.
            Format::SeccompOci | Format::Json => {}
        }
        Ok(export)
    }
}
