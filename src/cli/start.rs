//! What every subcommand begins with, limits that leave it room; and those that run something with: a runtime, the policy that holds,
//! the directory.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use tokio::runtime::{Builder, Runtime};

use super::audit::AuditFlag;
use super::complain::{Complaint, say};
use super::cuts;
use super::flags::PolicyFlags;
use super::policy::{self, Chosen, Purpose};
use crate::config::{Context, Diagnostic};
use crate::policy::Policy;
use crate::policy::path::display;
use crate::tools::{Waiting, unreadable_authorities, unwritable_root_warning, waiting};

/// What is said of a config that lies here and is not used.
const PASSED_OVER: &str = "stockade: ./stockade.yaml is not used: --rw, --ro, --deny and --net stand in its place; with `--config stockade.yaml` they narrow it\n";

/// Whether a person is told what ceilings took, and that a config is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Briefly,
    Nothing,
}

/// Where and under what something is run.
pub(super) struct Start {
    pub(super) context: Context,
    pub(super) chosen: Chosen,
    pub(super) directory: PathBuf,
}

/// Refuses to begin where a limit of this process is so low that it would crash or stop half-way.
fn at_least(least: u64, what: &str, resource: Resource, raise: &str) -> Result<(), Complaint> {
    let (most, _) = getrlimit(resource)
        .map_err(|errno| Complaint::failed(format!("the limit of {what} cannot be told: {errno}")))?;
    if most >= least {
        return Ok(());
    }
    let why = format!("this process may have {most} {what}, and Stockade needs {least}");
    Err(Complaint::failed(why).remedy(format!(
        "raise the limit before it is started, for instance with `{raise}`"
    )))
}

/// Enough of a stack to read arguments and configs on: half of it was too little, where nothing is optimized.
pub(super) fn enough_stack() -> Result<(), Complaint> {
    at_least(512 << 10, "bytes of stack", Resource::RLIMIT_STACK, "ulimit -s 8192")
}

/// Room for the files that one command has open here, whatever its network.
pub(super) fn enough_files() -> Result<(), Complaint> {
    const RAISE: &str = "ulimit -n 1024";
    const LEAST: u64 = 32;
    /// What of these is not open yet when a program begins.
    const MORE: usize = 24;
    at_least(LEAST, "open files", Resource::RLIMIT_NOFILE, RAISE)?;
    let open = || File::open("/dev/null");
    let room: io::Result<Vec<File>> = (0..MORE).map(|_| open()).collect();
    room.map(drop).map_err(|error| {
        let why = format!("this process cannot have {MORE} more files open, which Stockade needs: {error}");
        Complaint::failed(why).remedy(format!(
            "start it with fewer files open, or raise the limit before, for instance with `{RAISE}`"
        ))
    })
}

/// A runtime for one thread.
pub(super) fn runtime() -> Result<Runtime, Complaint> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Complaint::failed(format!("failed to start the runtime: {error}")))
}

/// Chooses the policy, says what it warns of, and finds the directory.
pub(super) fn start(
    flags: &PolicyFlags,
    audit: &AuditFlag,
    cwd: Option<&Path>,
    environment: &[(OsString, OsString)],
    told: Told,
) -> Result<Start, Complaint> {
    let here = std::env::current_dir()
        .map_err(|error| Complaint::failed(format!("the current directory cannot be told: {error}")))?;
    let context = policy::context(&flags.ceiling);
    let mut chosen = policy::choose(flags, &here, &context, Purpose::Obey)?;
    audit.apply(&mut chosen.loaded.policy)?;
    for warning in policy::warnings(chosen.loaded.warnings.iter()) {
        say(&format!("{warning}\n"));
    }
    for unreadable in unreadable_authorities(&chosen.loaded.policy, &chosen.narrowing, environment) {
        say(&format!("{}\n", Diagnostic::warning(unreadable)));
    }
    match told {
        Told::Briefly => {
            if policy::passed_over(flags, &here).is_some() {
                say(PASSED_OVER);
            }
            say(&cuts::short(&chosen.loaded.policy, environment));
            if let Some(line) = unwritable_root_warning(&chosen.loaded.policy) {
                say(&format!("stockade: {line}\n"));
            }
        }
        Told::Nothing => {}
    }
    // Names that are not as they were are no news to leave out.
    tell_waiting(&context, &chosen.loaded.policy);
    let directory = match cwd {
        None => here,
        Some(directory) => std::fs::canonicalize(here.join(directory))
            .map_err(|error| Complaint::failed(format!("--cwd {}: {error}", display(directory))))?,
    };
    Ok(Start {
        context,
        chosen,
        directory,
    })
}

/// Tells of what interrupted sessions changed where nothing can be undone now, if that was in a root, around one or beside one.
fn tell_waiting(context: &Context, policy: &Policy) {
    /// More would hide what is said after them.
    const MOST: usize = 5;
    let Ok(places) = policy::places(context) else { return };
    let is_near = |one: &Waiting| {
        let mut roots = policy.roots.iter().map(|root| root.path.as_path());
        roots
            .any(|root| root.starts_with(&one.root) || one.root.starts_with(root) || one.root.parent() == root.parent())
    };
    let all: Vec<Waiting> = waiting(&places.state).into_iter().filter(is_near).collect();
    for one in all.iter().take(MOST) {
        say(&format!(
            "stockade: what an interrupted session changed in {} is not undone: it is not there (unmounted, renamed or removed)\n  \
             → bring it back and start in it; if it is gone for good, remove {}\n",
            display(&one.root),
            display(&one.journal)
        ));
    }
    if all.len() > MOST {
        say(&format!("stockade: … and {} more such directories\n", all.len() - MOST));
    }
}

impl Told {
    /// What `--quiet` says.
    pub(super) const fn unless(quiet: bool) -> Self {
        if quiet { Self::Nothing } else { Self::Briefly }
    }
}
