//! A command that is wanted → what it needs before it may run: what must be known of it is looked up, and the assessor says the rest.

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::assessor::{Facts, Next};
use super::call::ToolError;
use super::executor::Executor;
use super::files::{Operands, operands};
use super::permit::{CommandRequest, Permit, approved};
use super::programs::{Programs, programs};
use super::tool::Assessment;
use crate::policy::shell::Names;

pub(super) async fn assess_shell(
    executor: &mut Executor,
    wanted: CommandRequest<'_>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<(Assessment, Permit), ToolError> {
    let sought = executor.assessor().seek(wanted);
    let programs = if sought.looks_up_programs {
        executor.pool.check_directory(wanted.directory)?;
        let mut files = executor.files(stops);
        Box::pin(programs(
            &mut files,
            &sought.names,
            wanted.directory,
            wanted.environment,
        ))
        .await?
    } else {
        Programs::default()
    };
    let ruled = executor.assessor().rule(wanted, &sought, &programs);
    let unnamed = Names::default();
    let names = match ruled.next {
        Next::Blocked => None,
        // What is put there before the command starts is another program.
        Next::Runs => Some(&unnamed),
        Next::Question => {
            executor.pool.check_directory(wanted.directory)?;
            Some(&sought.names)
        }
    };
    let operands = match names {
        Some(names) => {
            operands(
                &mut executor.files(stops),
                &programs.candidates,
                names,
                wanted.directory,
            )
            .await?
        }
        None => Operands::default(),
    };
    let facts = match ruled.next {
        Next::Blocked | Next::Runs => None,
        Next::Question => Some(Facts {
            derived: executor.profiles.of(&approved(&ruled.call))?,
            regime: executor.regime_line()?,
        }),
    };
    let known = (&sought.names, &programs);
    Ok(executor.assessor().assess(wanted, ruled, known, operands, facts))
}
