//! What subcommands start with: enough stack and open files, and for those that run something a runtime, a policy and a directory.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use tokio::runtime::{Builder, Runtime};

use super::audit::AuditFlag;
use super::cuts;
use super::error::{CliError, print_notice, print_stderr};
use super::exit::Exit;
use super::flags::PolicyFlags;
use super::policy::{self, Chosen, Purpose};
use crate::config::{Context, Diagnostic};
use crate::policy::AbsPath;
use crate::policy::Policy;
use crate::policy::path::display;
use crate::tools::{Waiting, unreadable_authorities, unseen_directory_warning, unwritable_root_warning, waiting};

/// The notice that `./stockade.yaml` exists and is not used.
const CONFIG_UNUSED: &str =
    "./stockade.yaml is not used: --rw and --ro stand in its place; with `--config stockade.yaml` they narrow it";

/// What a session starts from.
pub(super) struct Start {
    pub(super) context: Context,
    pub(super) chosen: Chosen,
    pub(super) directory: PathBuf,
}

/// Refuses to start where a limit of this process is too low.
fn require_limit(least: u64, what: &str, resource: Resource, raise: &str) -> Result<(), CliError> {
    let (most, _) = getrlimit(resource)
        .map_err(|errno| CliError::failed(format!("the limit of {what} cannot be told: {errno}")))?;
    if most >= least {
        return Ok(());
    }
    let why = format!("this process may have {most} {what}, and Stockade needs {least}");
    Err(CliError::failed(why).remedy(format!(
        "raise the limit before it is started, for instance with `{raise}`"
    )))
}

/// Requires enough stack to parse arguments and configs: half of this is too little for a debug build.
pub(super) fn require_stack() -> Result<(), CliError> {
    require_limit(512 << 10, "bytes of stack", Resource::RLIMIT_STACK, "ulimit -s 8192")
}

/// Requires room for the files that this process opens for one command.
pub(super) fn require_open_files() -> Result<(), CliError> {
    const RAISE: &str = "ulimit -n 1024";
    const LEAST: u64 = 32;
    /// How many of them are not open yet at the start.
    const MORE: usize = 24;
    require_limit(LEAST, "open files", Resource::RLIMIT_NOFILE, RAISE)?;
    let open = || File::open("/dev/null");
    let room: io::Result<Vec<File>> = (0..MORE).map(|_| open()).collect();
    room.map(drop).map_err(|error| {
        let why = format!("this process cannot have {MORE} more files open, which Stockade needs: {error}");
        CliError::failed(why).remedy(format!(
            "start it with fewer files open, or raise the limit before, for instance with `{RAISE}`"
        ))
    })
}

/// The current directory.
pub(super) fn current_directory() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| CliError::failed(format!("the current directory cannot be told: {error}")))
}

/// Runs a subcommand to its end.
pub(super) fn block_on(subcommand: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let runtime = runtime()?;
    let done = runtime.block_on(subcommand);
    // Reads of standard input and name lookups under way are not waited for.
    runtime.shutdown_background();
    done
}

/// Builds a single-threaded runtime.
pub(super) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("failed to start the runtime: {error}")))
}

/// Whether a start prints the warnings about its config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigWarnings {
    /// It does.
    Shown,
    /// `stockade check` does, where there is a config.
    LeftToCheck,
}

/// Chooses the policy, prints its warnings, and resolves the directory; `quiet` leaves out the warnings, what ceilings took and unused configs.
pub(super) fn start(
    flags: &PolicyFlags,
    audit: &AuditFlag,
    cwd: Option<&Path>,
    environment: &[(OsString, OsString)],
    (warnings, quiet): (ConfigWarnings, bool),
) -> Result<Start, CliError> {
    let here = current_directory()?;
    let context = policy::context(&flags.ceiling);
    let mut chosen = policy::choose(flags, &here, &context, Purpose::Run)?;
    audit.apply(&mut chosen.loaded.policy)?;
    // A preset and flags have no file that could be checked.
    let is_checked = warnings == ConfigWarnings::LeftToCheck && !chosen.loaded.files.is_empty();
    if !quiet && !is_checked {
        for warning in policy::warnings(chosen.loaded.warnings.iter()) {
            print_stderr(&format!("{warning}\n"));
        }
    }
    if !quiet && (!is_checked || !environment.is_empty()) {
        for unreadable in unreadable_authorities(&chosen.loaded.policy, &chosen.narrowing, environment) {
            print_stderr(&format!("{}\n", Diagnostic::warning(unreadable)));
        }
    }
    if !quiet {
        if policy::unused_config(flags, &here).is_some() {
            print_notice(CONFIG_UNUSED);
        }
        print_stderr(&cuts::short(&chosen.loaded.policy, environment));
        if let Some(line) = unwritable_root_warning(&chosen.loaded.policy) {
            print_notice(line);
        }
    }
    // Printed with `--quiet` too: protected names are not as they were.
    report_unrestored(&context, &chosen.loaded.policy);
    let directory = match cwd {
        None => here,
        Some(directory) => std::fs::canonicalize(here.join(directory))
            .and_then(|found| {
                if found.is_dir() {
                    Ok(found)
                } else {
                    Err(std::io::ErrorKind::NotADirectory.into())
                }
            })
            .map_err(|error| CliError::failed(format!("--cwd {}: {error}", display(directory))))?,
    };
    if !quiet
        && let Ok(start) = AbsPath::new(&directory)
        && let Some((what, remedy)) = unseen_directory_warning(&chosen.loaded.policy, &start)
    {
        print_notice(format_args!("{what}\n  → {remedy}"));
    }
    Ok(Start {
        context,
        chosen,
        directory,
    })
}

/// Reports changes of interrupted sessions in or next to a root that cannot be undone now.
fn report_unrestored(context: &Context, policy: &Policy) {
    /// More would hide the lines that follow.
    const MAX_DIRECTORIES: usize = 5;
    let Ok(places) = policy::places(context) else { return };
    let is_near = |one: &Waiting| {
        let mut roots = policy.roots.iter().map(|root| root.path.as_path());
        roots
            .any(|root| root.starts_with(&one.root) || one.root.starts_with(root) || one.root.parent() == root.parent())
    };
    let all: Vec<Waiting> = waiting(&places.state).into_iter().filter(is_near).collect();
    for one in all.iter().take(MAX_DIRECTORIES) {
        print_notice(format_args!(
            "what an interrupted session changed in {} is not undone: it is not there (unmounted, renamed or removed)\n  \
             → bring it back and start in it; if it is gone for good, remove {}",
            display(&one.root),
            display(&one.journal)
        ));
    }
    if all.len() > MAX_DIRECTORIES {
        print_notice(format_args!(
            "… and {} more such directories",
            all.len() - MAX_DIRECTORIES
        ));
    }
}
