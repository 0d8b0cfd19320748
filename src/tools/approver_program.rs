//! How an approver program is run: `approval/` knows what to ask, `confine/` how processes are started.

use crate::approval::{ApproverError, ProgramOutput, ProgramRun};
use crate::confine::parent::unconfined::{self, ProgramEnd, UnconfinedProgram};

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
