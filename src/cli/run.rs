//! `stockade run`: one command, confined.

use std::io::IsTerminal as _;

use serde_json::json;

use super::approver;
use super::args::RunArgs;
use super::complain::{Complaint, print, say};
use super::exit::Exit;
use super::policy::{self, Chosen};
use super::readers::has_ended_it;
use super::start::{self, Start, Told};
use super::stops::{Ends, stops};
use super::tool_error::{exit_of, object, tool_complaint};
use crate::policy::Explain;
use crate::tools::{
    Changed, Executor, Explained, NetworkUse, Outcome, OutputMode, ShellCall, ShellCommand, Status, Stdin, ToolError,
};

/// Runs the command and returns its exit code.
pub(super) fn run(args: RunArgs) -> Result<Exit, Complaint> {
    let runtime = start::runtime()?;
    let done = runtime.block_on(run_in(args));
    // A name that is still looked up is not waited for.
    runtime.shutdown_background();
    done
}

async fn run_in(args: RunArgs) -> Result<Exit, Complaint> {
    let Start {
        context,
        chosen: Chosen { mut loaded, narrowing },
        directory,
    } = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &args.env,
        Told::unless(args.quiet),
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
        stops: stops(Ends::Program)?,
    };
    let (approver, withdraw, another) = approver::approver(&args.approver, &loaded.policy, &places)?;
    let mut executor = Executor::new(loaded.policy, narrowing, mode, approver, places)
        .map_err(tool_complaint)?
        .withdrawing_with(withdraw)
        .asking_meanwhile(another);
    executor.named_in_record(&files);
    approver::hold_apart(&args.approver, executor.is_unconfined())?;
    // That nothing confines it is said whatever was asked for; with --json the outcome says it.
    let told = executor.is_unconfined() || (!args.quiet && std::io::stderr().is_terminal());
    let before = executor.regime_line().map_err(tool_complaint)?;
    if told && !args.json {
        say(&format!("stockade: {before}\n"));
    }
    if !args.json
        && let Some(line) = executor.git_settings_missed_by(&call)
    {
        say(&format!("stockade: {line}\n"));
    }
    let session = executor.audit_session().map(str::to_owned);
    let outcome = executor.shell(call).await;
    if !args.json {
        readers_are_given_up(&outcome);
    }
    // What was to hold may have turned out not to be had. That is said whatever was asked for, too.
    if let Ok(now) = executor.regime_line()
        && before != now
        && !args.json
    {
        say(&format!("stockade: {now}\n"));
    }
    let finished = executor.finish().await;
    if args.json {
        return report(&outcome.and_then(|outcome| finished.map(|()| outcome)), session);
    }
    let outcome = outcome.map_err(tool_complaint)?;
    finished.map_err(tool_complaint)?;
    tell(&outcome);
    Ok(exit_of_outcome(&outcome))
}

/// The command's own end, unless it left something behind that could not be put right.
pub(super) fn exit_of_outcome(outcome: &Outcome) -> Exit {
    if outcome.unsettled.is_some() {
        Exit::Failed
    } else {
        Exit::from(&outcome.status)
    }
}

/// Of a command that was ended nothing waits long for a reader: it may be why there had to be an end.
fn readers_are_given_up(outcome: &Result<Outcome, ToolError>) {
    if outcome.as_ref().is_ok_and(|outcome| outcome.undelivered_bytes > 0) {
        has_ended_it();
    }
    match outcome.as_ref().map(|outcome| &outcome.status) {
        Ok(Status::Cancelled { .. } | Status::TimedOut | Status::OverLimit { .. } | Status::Failed { .. })
        | Err(ToolError::Confine(_) | ToolError::UnderWay { .. } | ToolError::PutBack { .. }) => has_ended_it(),
        Ok(
            Status::Exited { .. } | Status::Signaled { .. } | Status::NotFound { .. } | Status::NotExecutable { .. },
        )
        | Err(_) => {}
    }
}

/// What a person should know beside the output.
pub(super) fn tell(outcome: &Outcome) {
    match &outcome.status {
        Status::Exited { .. } | Status::Signaled { .. } | Status::Cancelled { .. } => {}
        Status::TimedOut => say(&format!(
            "stockade: timed out after {:.1} s; the command and everything it started were killed\n",
            outcome.duration.as_secs_f64()
        )),
        Status::OverLimit { limit } => {
            say(&format!(
                "stockade: over the limit `{limit}`; the command and everything it started were killed\n"
            ));
        }
        Status::NotFound { program } => say(&format!("stockade: {program}: not found in the PATH of the sandbox\n")),
        Status::NotExecutable { why } => say(&format!(
            "stockade: {why}\n  → is it executable (`chmod +x`), and in a root with `execute: true`?\n"
        )),
        Status::Failed { why } => say(&format!("stockade: {why}\n")),
    }
    if outcome.undelivered_bytes > 0 {
        say(&format!(
            "stockade: nobody read the last {} bytes of the output; they are lost\n",
            outcome.undelivered_bytes
        ));
    }
    let lines = match &outcome.status {
        // Nobody knows what it was about, so all of it is told.
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
        say(&format!("stockade: network: {line}\n"));
    }
    for line in outcome.explained.iter().flat_map(Explained::messages) {
        say(&format!("stockade: {line}\n"));
    }
    if let Some(hint) = &outcome.hint {
        say(&format!("stockade: {hint}\n"));
    }
    if let Some(line) = outcome.denied.message() {
        say(&format!("stockade: {line}\n"));
    }
    if let Some(line) = outcome.new_files.message() {
        say(&format!("stockade: {line}\n"));
    }
    tell_put_back(
        &outcome.changed,
        outcome.unsettled.as_deref(),
        "while the command ran, by it or by somebody else",
    );
}

/// Tells what became of protected names that were changed at that time, and why the rest was not put back.
pub(super) fn tell_put_back(changed: &Changed, unsettled: Option<&str>, when: &str) {
    for line in changed.messages(when) {
        say(&format!("stockade: {line}\n"));
    }
    if let Some(why) = unsettled {
        say(&format!(
            "stockade: protected names could not be restored: {why}\n  → look at them before you use this directory\n"
        ));
    }
}

/// The outcome as JSON, with the name under which the audit log has it.
fn report(outcome: &Result<Outcome, ToolError>, session: Option<String>) -> Result<Exit, Complaint> {
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
    print(&format!("{}\n", json.map_err(Complaint::failed)?))?;
    Ok(exit)
}

/// Prints the outcome of a call that it never came to.
pub(super) fn report_complaint(complaint: Complaint) -> Result<Exit, Complaint> {
    let (reason, exit) = complaint.into_parts();
    let object = json!({"status": "refused", "reason": reason});
    print(&format!("{object}\n"))?;
    Ok(exit)
}
