//! What approvers need of the system: `approval/` knows what to ask, `confine/` how processes are started and how large a
//! terminal is.

use std::path::Path;
use std::time::Duration;

use crate::approval::{ApproverError, ProgramApprover, ProgramOutput, ProgramRun, TerminalApprover};
use crate::confine::io::terminal;
use crate::confine::parent::unconfined::{self, ProgramEnd, UnconfinedProgram};

/// How long the answer of a program is waited for, where nobody says otherwise.
const PATIENCE: Duration = Duration::from_mins(5);

impl ProgramApprover {
    /// An approver that runs `program`, without arguments.
    ///
    /// # Errors
    /// [`ApproverError::Program`]: the program does not exist or cannot be executed, or can be written by another user than
    /// this one and root.
    pub fn new(program: &Path) -> Result<Self, ApproverError> {
        Self::run_by(run, program, &[], PATIENCE, |_| {})
    }
}

impl TerminalApprover {
    /// An approver without a timeout.
    ///
    /// It uses colours unless `NO_COLOR` is set or `TERM` is `dumb` or missing. It uses letters beyond ASCII where the locale
    /// or the terminal says that it understands them.
    pub fn new() -> Self {
        Self::sized_by(terminal::size)
    }
}

impl Default for TerminalApprover {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs an approver program once.
pub fn run(program_run: &ProgramRun<'_>) -> Result<ProgramOutput, ApproverError> {
    let ended = unconfined::run(&UnconfinedProgram {
        program: program_run.program,
        environment: program_run.environment,
        input: program_run.input,
        output: program_run.output,
        errors: program_run.errors,
        time: program_run.deadline,
        stop: program_run.withdrawn,
    });
    match ended {
        Ok(ProgramEnd::Ended { status, output, errors }) => Ok(ProgramOutput { status, output, errors }),
        Ok(ProgramEnd::TooMuch) => Err(ApproverError::NoDecision(format!(
            "the approver program wrote more than {} bytes",
            program_run.output
        ))),
        Ok(ProgramEnd::TimedOut) => Err(ApproverError::TimedOut(program_run.deadline)),
        Ok(ProgramEnd::Stopped) => Err(ApproverError::Cancelled),
        Err(error) => Err(ApproverError::Program {
            program: program_run.program.to_owned(),
            why: error.to_string(),
        }),
    }
}
