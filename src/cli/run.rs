//! `stockade run`: one command, confined.

use std::io::IsTerminal as _;

use serde_json::json;

use super::approver;
use super::args::RunArgs;
use super::error::{CliError, print, print_notice, print_regime};
use super::exit::Exit;
use super::policy::{self, Chosen};
use super::readers::command_ended;
use super::signals::{StopScope, stop_signals};
use super::start::{self, ConfigWarnings, Start};
use super::tool_error::{exit_of, object, tool_failure};
use crate::policy::Explain;
use crate::tools::not_found;
use crate::tools::{
    Changed, Executor, Explained, NetworkUse, Outcome, OutputMode, ShellCall, ShellCommand, Status, Stdin, ToolError,
};

/// Runs the command and returns its exit code.
pub(super) fn run(args: RunArgs) -> Result<Exit, CliError> {
    start::block_on(run_in(args))
}

async fn run_in(args: RunArgs) -> Result<Exit, CliError> {
    let Start {
        context,
        chosen: Chosen { mut loaded, narrowing },
        directory,
    } = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &args.env,
        (ConfigWarnings::LeftToCheck, args.quiet),
    )?;
    if args.explain {
        loaded.policy.explain = Explain::Always;
    }
    let (mode, files) = (loaded.policy.mode, loaded.files);
    let places = policy::places(&context)?;
    let call = ShellCall {
        command: args.line.map_or(ShellCommand::Argv(args.argv), ShellCommand::Line),
        directory,
        environment: args.env,
        timeout: args.timeout,
        stdin: Stdin::Inherit,
        output: if args.json {
            OutputMode::Capture
        } else {
            OutputMode::Stream
        },
        kept: None,
        stops: stop_signals(StopScope::Program)?,
    };
    let (approver, withdraw, another) = approver::approver(&args.approver, &loaded.policy, &places)?;
    let mut executor = Executor::new(loaded.policy, narrowing, mode, approver, places)
        .map_err(tool_failure)?
        .for_one_command()
        .withdrawing_with(withdraw)
        .asking_meanwhile(another);
    executor.named_in_record(&files);
    approver::refuse_unconfined_socket(&args.approver, executor.is_unconfined())?;
    // An unconfined run is reported even with `--quiet`; with `--json` the outcome has it.
    let shows_regime = executor.is_unconfined() || (!args.quiet && std::io::stderr().is_terminal());
    let before = executor.regime_line().map_err(tool_failure)?;
    if shows_regime && !args.json {
        print_regime(&before);
    }
    if !args.json
        && let Some(line) = executor.git_settings_missed_by(&call)
    {
        print_notice(line);
    }
    let session = executor.audit_session().map(str::to_owned);
    let outcome = executor.shell(call).await;
    if !args.json {
        stop_waiting_for_readers(&outcome);
    }
    // The regime may have turned out weaker at the start. That is reported in any case, too.
    if let Ok(now) = executor.regime_line()
        && before != now
        && !args.json
    {
        print_regime(&now);
    }
    let finished = executor.finish().await;
    if args.json {
        return report(&outcome.and_then(|outcome| finished.map(|()| outcome)), session);
    }
    let outcome = outcome.map_err(tool_failure)?;
    finished.map_err(tool_failure)?;
    print_outcome(&outcome);
    Ok(exit_of_outcome(&outcome))
}

/// The exit of the command, unless protected names could not be restored.
pub(super) fn exit_of_outcome(outcome: &Outcome) -> Exit {
    if outcome.unsettled.is_some() {
        Exit::Failed
    } else {
        Exit::from(&outcome.status)
    }
}

/// Stops waiting for readers of a command that was killed: an unread pipe may be why.
fn stop_waiting_for_readers(outcome: &Result<Outcome, ToolError>) {
    if outcome.as_ref().is_ok_and(|outcome| outcome.undelivered_bytes > 0) {
        command_ended();
    }
    match outcome.as_ref().map(|outcome| &outcome.status) {
        Ok(Status::Cancelled { .. } | Status::TimedOut | Status::OverLimit { .. } | Status::Failed { .. })
        | Err(ToolError::Confine(_) | ToolError::UnderWay { .. } | ToolError::PutBack { .. }) => command_ended(),
        Ok(
            Status::Exited { .. } | Status::Signaled { .. } | Status::NotFound { .. } | Status::NotExecutable { .. },
        )
        | Err(_) => {}
    }
}

/// Prints notices about the outcome.
pub(super) fn print_outcome(outcome: &Outcome) {
    match &outcome.status {
        Status::Exited { .. } | Status::Signaled { .. } | Status::Cancelled { .. } => {}
        Status::TimedOut => print_notice(format_args!(
            "timed out after {:.1} s; the command and everything it started were killed",
            outcome.duration.as_secs_f64()
        )),
        Status::OverLimit { limit } => {
            print_notice(format_args!(
                "over the limit `{limit}`; the command and everything it started were killed"
            ));
        }
        Status::NotFound { program } => print_notice(not_found(program)),
        Status::NotExecutable { why } => print_notice(format_args!(
            "{why}\n  → is it executable (`chmod +x`), and in a root with `execute: true`?"
        )),
        Status::Failed { why } => print_notice(why),
    }
    if outcome.undelivered_bytes > 0 {
        print_notice(format_args!(
            "nobody read the last {} bytes of the output; they are lost",
            outcome.undelivered_bytes
        ));
    }
    let lines = match &outcome.status {
        // The cause is unknown, so all of it is printed.
        Status::Failed { .. } => NetworkUse::listed,
        Status::Exited { .. }
        | Status::Signaled { .. }
        | Status::Cancelled { .. }
        | Status::TimedOut
        | Status::OverLimit { .. }
        | Status::NotFound { .. }
        | Status::NotExecutable { .. } => NetworkUse::messages,
    };
    for line in outcome.network.iter().flat_map(lines) {
        print_notice(format_args!("network: {line}"));
    }
    for line in outcome.explained.iter().flat_map(Explained::messages) {
        print_notice(line);
    }
    if let Some(hint) = &outcome.hint {
        print_notice(hint);
    }
    if let Some(line) = outcome.denied.message() {
        print_notice(line);
    }
    if let Some(line) = outcome.new_files.message() {
        print_notice(line);
    }
    print_restored(
        &outcome.changed,
        outcome.unsettled.as_deref(),
        "while the command ran, by it or by somebody else",
    );
}

/// Prints which protected names were changed and restored, and why others were not.
pub(super) fn print_restored(changed: &Changed, unsettled: Option<&str>, when: &str) {
    for line in changed.messages(when) {
        print_notice(line);
    }
    if let Some(why) = unsettled {
        print_notice(format_args!(
            "protected names could not be restored: {why}\n  → look at them before you use this directory"
        ));
    }
}

/// Prints the outcome as JSON, with the name of its session in the audit log.
fn report(outcome: &Result<Outcome, ToolError>, session: Option<String>) -> Result<Exit, CliError> {
    #[derive(serde::Serialize)]
    struct Reported<T> {
        #[serde(flatten)]
        outcome: T,
        #[serde(rename = "audit_session", skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    }
    let (json, exit) = match outcome {
        Ok(outcome) => (
            serde_json::to_string(&Reported { outcome, session }),
            exit_of_outcome(outcome),
        ),
        Err(error) => {
            let outcome = object(error);
            (serde_json::to_string(&Reported { outcome, session }), exit_of(error))
        }
    };
    print(&format!("{}\n", json.map_err(CliError::failed)?))?;
    Ok(exit)
}

/// Prints a failure in the form of an outcome.
pub(super) fn report_failure(failure: CliError) -> Result<Exit, CliError> {
    let (reason, exit) = failure.into_parts();
    let object = json!({"status": "refused", "reason": reason});
    print(&format!("{object}\n"))?;
    Ok(exit)
}
