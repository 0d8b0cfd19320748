//! A profile in the words of other programs, each never weaker than the profile where those words reach.
//!
//! [`oci`] is the filter of a container runtime, [`systemd`] a drop-in of a service, [`landlock`] the rule list
//! as it is given to the kernel; the whole profile as JSON is a [`Document`].

mod cubes;
pub mod landlock;
pub mod oci;
pub mod systemd;

use super::Inspection;
use super::backend::Backend;
use super::document::Document;
use crate::policy::AbsPath;
use crate::profile::Profile;
use crate::tools::plan::PlanError;

/// A form that a profile can be exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The whole profile; `profile diff` reads it.
    Json,
    /// The Landlock rules.
    Landlock,
    /// `linux.seccomp` of an OCI runtime config.
    SeccompOci,
    /// A drop-in for a systemd service.
    Systemd,
}

/// Whose profile is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// A command that was approved.
    Approved,
    /// A command that nobody was asked about.
    Unasked,
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The backend cannot hold the profile.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The filters could not be made.
    #[error("{0}")]
    Filter(String),
    /// The form has no words for a path.
    #[error("{form} cannot name {path}: {why}")]
    Name {
        /// The form.
        form: &'static str,
        /// The path.
        path: AbsPath,
        /// What is in the way.
        why: &'static str,
    },
    /// The form has no words for a value.
    #[error("{form} cannot hold the value of the variable {name}: it is not text")]
    Value {
        /// The form.
        form: &'static str,
        /// The variable.
        name: String,
    },
    /// The form has no words for a clause, and leaving it out would permit more.
    #[error("{origin}: {form} cannot hold `{clause}`")]
    Clause {
        /// The form.
        form: &'static str,
        /// The clause.
        clause: String,
        /// Its line.
        origin: String,
    },
    /// The text could not be written.
    #[error("failed to write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Inspection {
    /// The profile in a form, as text that ends with a line break.
    pub fn export(&self, format: Format, whose: Whose) -> Result<String, ExportError> {
        let profile = match whose {
            Whose::Approved => &self.approved,
            Whose::Unasked => &self.unasked,
        };
        match format {
            Format::Json => lines(&Document::of(self)),
            Format::Landlock => lines(&landlock::Rules::of(&self.plan(Backend::Landlock, profile)?.landlock)),
            Format::SeccompOci => lines(&oci::Seccomp::of(profile)?),
            Format::Systemd => systemd::drop_in(profile),
        }
    }

    fn plan(&self, backend: Backend, profile: &Profile) -> Result<crate::backend::Plan, ExportError> {
        let (ground, _) = backend.ground(&self.policy);
        Ok(backend.hold(&self.policy, profile, ground)?.plan)
    }
}

fn lines(value: &impl serde::Serialize) -> Result<String, ExportError> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
