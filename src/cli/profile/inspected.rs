//! The policy that is looked at.

use crate::cli::complain::{Complaint, say};
use crate::cli::flags::{BackendFlag, PolicyFlags};
use crate::cli::policy::{self, Chosen, Purpose};
use crate::config::{Context, Loaded};
use crate::inspect::{Backend, Inspection};
use crate::tools::person;

/// The policy that the flags name, only looked at; what it warns of goes to standard error.
pub(super) fn inspected(flags: &PolicyFlags, context: &Context) -> Result<Inspection, Complaint> {
    let cwd = here()?;
    let Chosen { loaded, narrowing } = policy::choose(flags, &cwd, context, Purpose::Look)?;
    warn(&loaded);
    let inspection = Inspection {
        person: person(context),
        ..Inspection::of(loaded.policy, narrowing)
    };
    Ok(match flags.backend {
        // What the policy says by now.
        BackendFlag::Auto | BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap => inspection,
        BackendFlag::Seatbelt => inspection.only(Backend::Seatbelt),
    })
}

/// Refuses a backend where none is looked at.
pub(super) fn without_backend(flags: &PolicyFlags, why: &str) -> Result<(), Complaint> {
    match flags.backend {
        BackendFlag::Auto => Ok(()),
        BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap | BackendFlag::Seatbelt => {
            Err(Complaint::failed(format!("`--backend` has no meaning here: {why}")))
        }
    }
}

pub(super) fn warn(loaded: &Loaded) {
    for warning in policy::warnings(loaded.warnings.iter()) {
        say(&format!("{warning}\n"));
    }
}

pub(super) fn here() -> Result<std::path::PathBuf, Complaint> {
    std::env::current_dir().map_err(|error| Complaint::failed(format!("the current directory cannot be told: {error}")))
}
