//! Why there is no export.

use crate::tools::plan::PlanError;

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The backend cannot hold the profile.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The filters could not be made.
    #[error("{0}")]
    Filter(String),
    /// What namespaces depend on could not be found out.
    #[error("{0}")]
    Surroundings(String),
    /// The form has no words for a path, or for what is made of one.
    #[error("{form} cannot name {path}: {why}")]
    Name {
        /// The form.
        form: &'static str,
        /// The path, as it is shown.
        path: String,
        /// What is in the way.
        why: &'static str,
    },
    /// The form has no words for a value.
    #[error("{form} cannot hold the value of the variable {name}: it is not text that can all be seen")]
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
