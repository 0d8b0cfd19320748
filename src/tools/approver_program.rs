//! How an approver program is run: `approval/` knows what to ask, `confine/` how processes are started.

use crate::approval::{Answered, ApproverError, Asking};
use crate::confine::parent::unconfined::{self, ProgramEnd, UnconfinedProgram};

/// Runs an approver program once.
pub fn run(asking: &Asking<'_>) -> Result<Answered, ApproverError> {
    let ended = unconfined::run(&UnconfinedProgram {
        program: asking.program,
        environment: asking.environment,
        input: asking.input,
        output: asking.output,
        errors: asking.errors,
        time: asking.deadline,
        stop: asking.withdrawn,
    });
    match ended {
        Ok(ProgramEnd::Ended { status, output, errors }) => Ok(Answered { status, output, errors }),
        Ok(ProgramEnd::TooMuch) => Err(ApproverError::NoDecision(format!(
            "the approver program wrote more than {} bytes",
            asking.output
        ))),
        Ok(ProgramEnd::TimedOut) => Err(ApproverError::TimedOut(asking.deadline)),
        Ok(ProgramEnd::Stopped) => Err(ApproverError::Cancelled),
        Err(error) => Err(ApproverError::Program {
            program: asking.program.to_owned(),
            why: error.to_string(),
        }),
    }
}
