//! The policy to inspect.

use crate::cli::error::{CliError, print_stderr};
use crate::cli::flags::{BackendFlag, PolicyFlags};
use crate::cli::policy::{self, Chosen, Purpose};
use crate::cli::start::current_directory;
use crate::config::{Context, Loaded};
use crate::inspect::{Inspection, Regime};
use crate::tools::person;

/// Loads the policy that the flags name, for inspection only; prints its warnings to standard error.
pub(super) fn inspection_of(flags: &PolicyFlags, context: &Context) -> Result<Inspection, CliError> {
    let cwd = current_directory()?;
    let Chosen { loaded, narrowing } = policy::choose(flags, &cwd, context, Purpose::Inspect)?;
    warn(&loaded);
    let inspection = Inspection {
        person: person(context),
        ..Inspection::of(loaded.policy, narrowing)
    };
    Ok(match flags.backend {
        // The policy has this backend already.
        BackendFlag::Auto | BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap => inspection,
        BackendFlag::Seatbelt => inspection.only(Regime::Seatbelt),
    })
}

/// Refuses `--backend` where it has no meaning.
pub(super) fn without_backend(flags: &PolicyFlags, why: &str) -> Result<(), CliError> {
    match flags.backend {
        BackendFlag::Auto => Ok(()),
        BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap | BackendFlag::Seatbelt => {
            Err(CliError::failed(format!("`--backend` has no meaning here: {why}")))
        }
    }
}

pub(super) fn warn(loaded: &Loaded) {
    for warning in policy::warnings(loaded.warnings.iter()) {
        print_stderr(&format!("{warning}\n"));
    }
}
