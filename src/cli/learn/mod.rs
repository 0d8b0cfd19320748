//! `stockade learn`: a command is run, confined, until a config lets it pass that somebody accepted.
//!
//! [`rounds`] runs it and asks; [`draft`] is the config as it stands, and the only one that a round runs
//! under; [`decide`] says what of the proposals is accepted, [`written`] what becomes of the config, and [`told`]
//! what came of it, to a person or a program. What is proposed, and how much it could give away, is
//! [`crate::learn`]'s.

mod args;
mod decide;
mod draft;
mod rounds;
mod told;
mod written;

pub(super) use args::LearnArgs;

use std::path::{Path, PathBuf};

use super::complain::{Complaint, print, say};
use super::exit::Exit;
use super::policy::DEFAULT_PRESET;
use super::start::{self, Start, Told};
use crate::cli::stops::{Ends, stops};
use crate::config::amend::{Basis, Original};
use crate::learn::Consent;
use crate::policy::AbsPath;
use draft::Draft;
use written::{Written, write};

/// Runs the rounds, writes what was accepted, and says so.
pub(super) fn learn(args: &LearnArgs) -> Result<Exit, Complaint> {
    let runtime = start::runtime()?;
    let done = runtime.block_on(learn_in(args));
    // A name that is still looked up is not waited for.
    runtime.shutdown_background();
    done
}

async fn learn_in(args: &LearnArgs) -> Result<Exit, Complaint> {
    let started = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &args.env,
        Told::unless(args.quiet),
    )?;
    let Start {
        context,
        chosen,
        directory,
    } = started;
    let here = std::env::current_dir()
        .map_err(|error| Complaint::failed(format!("the current directory cannot be told: {error}")))?;
    let consent = Consent::of(args.yes, &args.include, &here)
        .map_err(|error| Complaint::failed(format!("--include: {error}")))?;
    let original = Original::of(&chosen.loaded).map_err(Complaint::failed)?;
    let target = target(args, original.as_ref(), &here)?;
    let beginning = beginning(args, &here)?;
    let draft = Draft::begin(args, chosen, original.as_ref(), &beginning, &target, &context)?;
    // Signals between rounds end it, too.
    let mut halted = stops(Ends::Program)?;
    let mut learned = Box::pin(rounds::run(args, draft, &consent, &directory, &context, &mut halted)).await?;
    let (written, complaint) = write(args, &learned, original.as_ref(), &target);
    if complaint.is_some() {
        learned.exit = Exit::Failed;
    }
    if args.json {
        // One object: who reads it finds in it what went wrong.
        let reason = complaint.map(|complaint| complaint.into_parts().0);
        print(&format!("{}\n", told::object(&learned, &written, reason.as_deref())))?;
        return Ok(learned.exit);
    }
    let found = args.policy.config.is_none() && args.out.is_none();
    say(&told::summary(&learned, &written, found));
    match written {
        Written::Printed => print(learned.draft.text())?,
        Written::Unchanged | Written::In(_) | Written::Stopped => {}
    }
    complaint.map_or(Ok(learned.exit), Err)
}

/// Where the config lies, or would lie.
fn target(args: &LearnArgs, original: Option<&Original>, here: &Path) -> Result<PathBuf, Complaint> {
    let whole = |path: &Path| {
        let failed =
            |error: std::io::Error| Complaint::failed(format!("--out {}: {error}", crate::policy::path::display(path)));
        let whole = std::path::absolute(here.join(path)).map_err(failed)?;
        if std::fs::symlink_metadata(&whole).is_ok() {
            return Err(
                Complaint::failed(format!("{} is there already", crate::policy::path::display(path)))
                    .remedy("name a new file, or change that one: `--config FILE` without `--out`"),
            );
        }
        Ok(whole)
    };
    match (&args.out, original) {
        (Some(out), _) => whole(out),
        (None, Some(original)) => Ok(original.path().to_owned()),
        (None, None) => Ok(here.join("stockade.yaml")),
    }
}

fn beginning(args: &LearnArgs, here: &Path) -> Result<Basis, Complaint> {
    let flags = &args.policy;
    let named = !flags.rw.is_empty() || !flags.ro.is_empty() || !flags.deny.is_empty() || !flags.net.is_empty();
    let workspace = std::fs::canonicalize(here)
        .map_err(|error| error.to_string())
        .and_then(|here| AbsPath::new(here).map_err(|error| error.to_string()));
    let workspace =
        workspace.map_err(|error| Complaint::failed(format!("the current directory cannot be told: {error}")))?;
    Ok(match &flags.preset {
        Some(preset) => Basis::Preset(preset.clone(), workspace),
        None if named => Basis::Flags,
        None => Basis::Preset(DEFAULT_PRESET.to_owned(), workspace),
    })
}
