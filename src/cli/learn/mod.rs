//! `stockade learn`: runs a command, confined, until it passes under a config whose changes were accepted.
//!
//! [`rounds`] runs the command under the [`draft`] of the config and under nothing else; [`decide`] accepts proposals, [`write`](mod@write)
//! writes the config, [`report`] prints the result. [`crate::learn`] makes the proposals and rates their risk.

mod args;
mod decide;
mod draft;
mod report;
mod rounds;
mod write;

pub(super) use args::LearnArgs;

use std::path::{Path, PathBuf};

use super::error::{CliError, print, print_stderr};
use super::exit::Exit;
use super::policy::DEFAULT_PRESET;
use super::start::{self, ConfigWarnings, Start};
use crate::cli::signals::{StopScope, stop_signals};
use crate::config::amend::{Basis, Original};
use crate::learn::Consent;
use crate::policy::AbsPath;
use draft::Draft;
use write::{ConfigWrite, write};

/// Runs the rounds, writes the config, and reports.
pub(super) fn learn(args: &LearnArgs) -> Result<Exit, CliError> {
    start::block_on(learn_in(args))
}

async fn learn_in(args: &LearnArgs) -> Result<Exit, CliError> {
    let started = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &args.env,
        (ConfigWarnings::LeftToCheck, args.quiet),
    )?;
    let Start {
        context,
        chosen,
        directory,
    } = started;
    let here = start::current_directory()?;
    let consent =
        Consent::of(args.yes, &args.include, &here).map_err(|error| CliError::failed(format!("--include: {error}")))?;
    let original = Original::of(&chosen.loaded).map_err(CliError::failed)?;
    let target = target(args, original.as_ref(), &here)?;
    let beginning = beginning(args, &here)?;
    let draft = Draft::new(args, chosen, original.as_ref(), &beginning, &target, &context)?;
    // A signal between two rounds ends it, too.
    let mut signals = stop_signals(StopScope::Program)?;
    let mut run = Box::pin(rounds::run(args, draft, &consent, &directory, &context, &mut signals)).await?;
    let (written, failure) = write(args, &run, original.as_ref(), &target);
    if failure.is_some() {
        run.exit = Exit::Failed;
    }
    if args.json {
        // The object has the error as well.
        let reason = failure.map(|failure| failure.into_parts().0);
        print(&format!("{}\n", report::object(&run, &written, reason.as_deref())))?;
        return Ok(run.exit);
    }
    let found = args.policy.config.is_none() && args.out.is_none();
    print_stderr(&report::summary(&run, &written, found));
    match written {
        ConfigWrite::Printed => print(run.draft.text())?,
        ConfigWrite::Unchanged | ConfigWrite::In(_) | ConfigWrite::Stopped => {}
    }
    failure.map_or(Ok(run.exit), Err)
}

/// The path of the config, existing or not.
fn target(args: &LearnArgs, original: Option<&Original>, here: &Path) -> Result<PathBuf, CliError> {
    let new_file = |path: &Path| {
        let failed =
            |error: std::io::Error| CliError::failed(format!("--out {}: {error}", crate::policy::path::display(path)));
        let new_file = std::path::absolute(here.join(path)).map_err(failed)?;
        if std::fs::symlink_metadata(&new_file).is_ok() {
            return Err(
                CliError::failed(format!("{} is there already", crate::policy::path::display(path)))
                    .remedy("name a new file, or change that one: `--config FILE` without `--out`"),
            );
        }
        Ok(new_file)
    };
    match (&args.out, original) {
        (Some(out), _) => new_file(out),
        (None, Some(original)) => Ok(original.path().to_owned()),
        (None, None) => Ok(here.join("stockade.yaml")),
    }
}

fn beginning(args: &LearnArgs, here: &Path) -> Result<Basis, CliError> {
    let flags = &args.policy;
    let grants = !flags.rw.is_empty() || !flags.ro.is_empty();
    let changes = !flags.deny.is_empty() || !flags.net.is_empty();
    let workspace = std::fs::canonicalize(here)
        .map_err(|error| error.to_string())
        .and_then(|here| AbsPath::new(here).map_err(|error| error.to_string()));
    let workspace =
        workspace.map_err(|error| CliError::failed(format!("the current directory cannot be told: {error}")))?;
    Ok(match &flags.preset {
        Some(preset) => Basis::Preset(preset.clone(), workspace),
        None if grants => Basis::Flags,
        None if changes => Basis::Changed(DEFAULT_PRESET.to_owned()),
        None => Basis::Preset(DEFAULT_PRESET.to_owned(), workspace),
    })
}
