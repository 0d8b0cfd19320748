//! Plan → a command line of `sandbox-exec`, the program of macOS that applies a profile and becomes the command.
//!
//! Only that program is used, at its one place: where it comes from is in nobody's hands but a caller's
//! who writes Rust. A sandbox cannot be put into another on a Mac, and `sandbox-exec` says so by a
//! status of its own, so that is tried first. Nothing here has been run on a Mac.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::backend::seatbelt::{SeatbeltPlan, validate};
use crate::policy::path::display;
use crate::profile::{Profile, Witness};

/// Where macOS has it.
pub const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// What it says when the system refuses to apply a profile (`EX_OSERR`).
const REFUSED: i32 = 71;

/// A profile that asks for nothing, and a program that does nothing.
const TRIAL: [&str; 4] = ["-p", "(version 1)\n(allow default)", "--", "/usr/bin/true"];

/// Starts commands under Seatbelt profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
}

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: PathBuf,
}

/// Why a command is not run. In each case nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The text permits more than the profile.
    #[error("the Seatbelt profile is weaker than it may be: {0}")]
    Weaker(#[from] Witness),
    /// There is nothing to run.
    #[error("an empty command")]
    Empty,
    /// Not on a Mac, or on a Mac without it.
    #[error("failed to start {}: {source}", display(program))]
    Missing {
        /// The program.
        program: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// This process is in a sandbox already.
    #[error(
        "this process is in a sandbox already, and macOS cannot put one into another; start Stockade outside of it"
    )]
    Nested,
    /// It answered in a way that is not known.
    #[error("{} does not work here: it ended with {status}", display(program))]
    Broken {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: String,
    },
}

impl Launcher {
    /// With the program that macOS has.
    pub fn system() -> Self {
        Self::with_program(Path::new(SANDBOX_EXEC))
    }

    /// With a stand-in, for tests; no setting leads here.
    pub fn with_program(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
        }
    }

    /// The command, ready to be started: the plan is held against the profile, and that the system
    /// will apply one is tried.
    pub fn command(&self, plan: &SeatbeltPlan, profile: &Profile, confined: &Confined) -> Result<Command, LaunchError> {
        if confined.argv.is_empty() {
            return Err(LaunchError::Empty);
        }
        validate(plan, profile)?;
        self.probe()?;
        let mut command = self.start();
        command.arg("-p").arg(&plan.text);
        for parameter in &plan.parameters {
            command.arg("-D").arg(format!("{}={}", parameter.name, parameter.value));
        }
        command.arg("--").args(&confined.argv);
        command.envs(confined.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&confined.directory);
        Ok(command)
    }

    /// Whether a profile can be applied here at all.
    pub fn probe(&self) -> Result<(), LaunchError> {
        let mut trial = self.start();
        trial
            .args(TRIAL)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = trial.status().map_err(|source| LaunchError::Missing {
            program: self.program.clone(),
            source,
        })?;
        match status.code() {
            Some(0) => Ok(()),
            Some(REFUSED) => Err(LaunchError::Nested),
            Some(_) | None => Err(LaunchError::Broken {
                program: self.program.clone(),
                status: status.to_string(),
            }),
        }
    }

    /// The program with an empty environment.
    #[expect(clippy::disallowed_methods, reason = "sandbox-exec becomes the command")]
    fn start(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear();
        command
    }
}
