//! The mounts and namespaces of the `namespaces` regime as arguments of bwrap, for use without Stockade.
//!
//! Inside there is no Landlock layer then, so mounts alone must hold the files. They know no suffixes and tell
//! neither reading from executing nor listing from reading. Left out, which only takes away: grants of write or execute
//! without read, listings without content, files by suffix. Denies that no mount can hold are refused. The
//! arguments are interpreted once more, alone, and held against the profile.

use std::os::unix::ffi::OsStrExt;

use super::error::ExportError;
use crate::backend::landlock::rights::OLDEST_ABI;
use crate::backend::namespaces::{self, Options, mounts_within};
use crate::backend::status::Refusal;
use crate::inspect::inspection::Inspection;
use crate::policy::{Deny, DenyFallback, Grant, Origin, Right, Rights, Scope};
use crate::profile::Profile;
use crate::tools::plan::{PlanError, tmp_bytes};
use crate::tools::surroundings::existing_names;

const FORM: &str = "a bwrap without Landlock inside";

/// Options that only take away: no terminal to inject into, no life of its own.
const BEFORE: [&str; 2] = ["--new-session", "--die-with-parent"];

/// What of a profile mounts and namespaces do not hold.
pub(super) const NOT_ENFORCED: [&str; 3] = [
    "not held by bwrap: `execute` (what can be read can be executed), Unix sockets in what is mounted, which internet sockets are made where the network is on, calls to the kernel, limits, the environment (use `env -i`)",
    "protected names that are not there yet are not protected; those that are there are read-only",
    "paths were looked up now: what appears later inside a granted directory is as that directory",
];

/// The arguments, each ended by a NUL.
pub(super) fn arguments(inspection: &Inspection, profile: &Profile) -> Result<Vec<u8>, ExportError> {
    let part = mountable(profile);
    let options = Options {
        abi: OLDEST_ABI,
        deny_fallback: DenyFallback::Refuse,
        residuals: inspection.policy.residuals,
        tmp_bytes: tmp_bytes(profile),
        protect: existing_names(&inspection.policy, &inspection.approved, &inspection.person)
            .map_err(ExportError::Surroundings)?,
        copies: Vec::new(),
        loader: Vec::new(),
        veiled: Vec::new(),
        start: None,
    };
    let missing_roots = inspection.survey_with_missing_roots();
    let survey = namespaces::survey_after(&missing_roots, &part, &options).map_err(PlanError::from)?;
    let lowered = namespaces::lower(&part, &survey, &options).map_err(|refusal| match refusal {
        Refusal::DenyBelowGrant { clause, origin, .. } | Refusal::DenyBesideMounts { clause, origin, .. } => {
            ExportError::Clause {
                form: FORM,
                clause,
                origin,
            }
        }
        other => PlanError::from(other).into(),
    })?;
    let argv = lowered.plan.render();
    // What is protected is held as a deny would be.
    let protected = lowered.protected.into_iter();
    let denies = protected.map(|path| Deny::tree(path, Rights::WRITE, Origin::Builtin("sandbox.protect")));
    let mut kept = part;
    kept.denies.extend(denies);
    mounts_within(&argv, &kept, &survey).map_err(PlanError::WeakPlan)?;
    let mut bytes = Vec::new();
    for argument in BEFORE
        .iter()
        .map(|option| option.as_bytes())
        .chain(argv.iter().map(|a| a.as_bytes()))
    {
        bytes.extend_from_slice(argument);
        bytes.push(0);
    }
    Ok(bytes)
}

/// The part of a profile that mounts can hold, in which executing is reading.
fn mountable(profile: &Profile) -> Profile {
    let mut part = profile.clone();
    part.grants.retain(|grant: &Grant| {
        grant.scope != Scope::Names && grant.suffixes.is_none() && grant.rights.has(Right::Read)
    });
    let kept: std::collections::BTreeSet<_> = part.grants.iter().map(|grant| grant.path.clone()).collect();
    part.identities.retain(|path, _| kept.contains(path));
    for grant in &mut part.grants {
        grant.rights = grant.rights | Rights::EXECUTE;
    }
    for deny in &mut part.denies {
        let rest = deny.rights.without(Rights::EXECUTE);
        deny.rights = if rest.has(Right::Read) {
            rest | Rights::EXECUTE
        } else {
            rest
        };
    }
    part.denies.retain(|deny| !deny.rights.is_empty());
    part
}
