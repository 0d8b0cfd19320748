//! How an approver program is run: `approval/` knows what to ask, `confine/` how processes are started.

use crate::approval::{Answered, ApproverError, Asking};
use crate::confine::parent::unconfined::{self, Outside, Went};

/// Runs an approver program once.
pub fn run(asking: &Asking<'_>) -> Result<Answered, ApproverError> {
    let went = unconfined::run(&Outside {
        program: asking.program,
        environment: asking.environment,
        input: asking.input,
        output: asking.output,
        errors: asking.errors,
        time: asking.deadline,
        stop: asking.withdrawn,
    });
    match went {
        Ok(Went::Ended { status, output, errors }) => Ok(Answered { status, output, errors }),
        Ok(Went::TooMuch) => Err(ApproverError::NoDecision(format!(
            "the approver program wrote more than {} bytes",
            asking.output
        ))),
        Ok(Went::TimedOut) => Err(ApproverError::TimedOut(asking.deadline)),
        Ok(Went::Stopped) => Err(ApproverError::Cancelled),
        Err(error) => Err(ApproverError::Program {
            program: asking.program.to_owned(),
            why: error.to_string(),
        }),
    }
}
