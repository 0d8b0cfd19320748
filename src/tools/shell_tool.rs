//! The shell as a tool of a session.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::approval_authority::ApprovalAuthority;
use super::assess_shell::assess_shell;
use super::call::{NAME, ShellCall, ShellCommand, ToolError};
use super::command_slots::SlotCount;
use super::deciding::Deciding;
use super::explain::Explained;
use super::files::{bare, check_operands, parse};
use super::network::NetworkUse;
use super::outcome::Outcome;
use super::output::{Output, OutputEnd};
use super::permit::{CommandRequest, Permit};
use super::prepared::{Answered, Prepared};
use super::recorder::Recorder;
use super::restored::MEANWHILE;
use super::session_shared::Shared;
use super::shell::execute;
use super::start_command::CommandContext;
use super::tool::{ApprovalContext, Assessed, Boxed, Effect, Tool, ready};
use crate::confine::io::{OutputMode, Stdin};
use crate::policy::{AbsPath, Mode};

/// `shell`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShellArgs {
    /// A shell line.
    command: Option<String>,
    /// A program and its arguments, run without a shell. One of `command` and `argv`.
    argv: Option<Vec<String>>,
    /// Where it starts: `root:path`, absolute, or relative to the working directory, which is the default.
    directory: Option<String>,
    /// Kill it and everything it started after so many seconds, if the config does not say less.
    timeout_seconds: Option<u64>,
}

/// A command that was assessed: what it is, and what it may do.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) command: ShellCommand,
    pub(super) directory: AbsPath,
    pub(super) timeout: Option<Duration>,
    pub(super) permit: Permit,
}

/// How much of each output stream an agent is given where the config does not say: as much as a file in one answer.
const KEPT: u64 = 256 * 1024;

/// Runs commands.
pub struct ShellTool {
    session: Arc<Shared>,
    authority: ApprovalAuthority,
    /// Who decides what comes up while a command runs; nobody for a tool without a guard.
    deciding: Option<Deciding>,
}

impl ShellTool {
    pub(super) const fn new(session: Arc<Shared>, authority: ApprovalAuthority, deciding: Option<Deciding>) -> Self {
        Self {
            session,
            authority,
            deciding,
        }
    }
}

impl Tool for ShellTool {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Run a command confined by the operating system: a shell line, or a program with its arguments. Some commands \
         need a person's yes; what the sandbox forbids fails with a permission error."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        bare(schemars::schema_for!(ShellArgs))
    }

    fn output_schema(&self) -> Option<Value> {
        Some(bare(schemars::schema_for!(Outcome)))
    }

    fn effect(&self) -> Effect {
        Effect::Destroys(self.session.reach)
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            let args: ShellArgs = parse(NAME, &context.args)?;
            let command = match (args.command, args.argv) {
                (Some(line), None) => ShellCommand::Line(line.into()),
                (None, Some(words)) if !words.is_empty() => {
                    ShellCommand::Argv(words.into_iter().map(OsString::from).collect())
                }
                (Some(_), Some(_)) | (None, Some(_) | None) => {
                    return Err(ToolError::Arguments {
                        tool: NAME.to_owned(),
                        why: "give either `command`, a shell line, or `argv`, a program and its arguments".to_owned(),
                    });
                }
            };
            let mut executor = self.session.executor.lock().await;
            let mut stops = self.session.stops.lock().await;
            let start = self.session.started_in()?;
            let directory = match args.directory {
                None => start.clone(),
                Some(written) => {
                    executor
                        .files(&mut stops)
                        .directory_at(&self.session.directory, &written)
                        .await?
                }
            };
            let wanted = CommandRequest {
                command: &command,
                directory: &directory,
                start: &start,
                environment: &[],
                caller: context.caller.as_deref(),
                authority: self.authority,
            };
            let (assessment, permit) = assess_shell(&mut executor, wanted, &mut stops).await?;
            let override_by_config = permit.override_by_config;
            let prepared = Prepared::of(Work {
                command,
                directory,
                timeout: args.timeout_seconds.map(Duration::from_secs),
                permit,
            });
            Ok(Assessed {
                assessment,
                prepared,
                override_by_config,
            })
        })
    }

    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let prepared = ready(self, context, prepared).await?;
            run(&self.session, self.deciding.as_ref(), context, prepared).await
        })
    }
}

/// Runs a command that was assessed, if the files it names are still the same.
pub(super) async fn run(
    session: &Shared,
    deciding: Option<&Deciding>,
    context: &ApprovalContext,
    prepared: Prepared,
) -> Result<Output, ToolError> {
    let answer = prepared.answer();
    let Work {
        command,
        directory,
        timeout,
        permit,
    } = prepared
        .take()
        .ok_or_else(|| ToolError::NoSuchTool("the call was prepared as another tool".to_owned()))?;
    let permit = match answer {
        Answered::Yes => permit.approved(),
        Answered::NotAsked => permit,
    };
    let mut executor = session.executor.lock().await;
    let mut stops = session.stops.lock().await;
    let count = match (answer, executor.deciding.controller.mode()) {
        // Also where it names no file that is there: another command could make one.
        (Answered::Yes, Mode::Interactive | Mode::Strict) => SlotCount::All,
        // Whatever could be put in its place would be approved as well.
        (Answered::Yes, Mode::ApproveAll) | (Answered::NotAsked, _) => SlotCount::One,
    };
    let _slot = session.slots.acquire(count, &mut stops).await?;
    check_operands(&mut executor.files(&mut stops), &permit.operands).await?;
    let (stopper, passed_on) = mpsc::channel(8);
    let call = ShellCall {
        command,
        directory: directory.as_path().to_owned(),
        environment: Vec::new(),
        timeout,
        stdin: Stdin::Null,
        output: OutputMode::Capture,
        kept: Some(KEPT),
        stops: passed_on,
    };
    let context = CommandContext {
        deciding: deciding.cloned(),
        tool_name: context.tool_name.clone(),
        caller: context.caller.clone(),
        // A tool that is used without a guard makes a call of its own.
        call: context
            .call
            .clone()
            .or_else(|| executor.deciding.recorder.as_ref().map(Recorder::next_call)),
    };
    let mut running = Box::pin(execute(&mut executor, call, &directory, permit, context));
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome?,
            // A command that has ended hears no signal any more.
            Some(signal) = stops.recv() => { let _passed: Result<(), mpsc::error::SendError<Signal>> = stopper.send(signal).await; }
        }
    };
    output(&outcome)
}

/// An outcome as an agent reads it.
fn output(outcome: &Outcome) -> Result<Output, ToolError> {
    let mut text = outcome.stdout.clone();
    let mut add = |more: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(more);
    };
    if !outcome.stderr.is_empty() {
        add("[standard error]\n");
        add(&outcome.stderr);
    }
    let end = match outcome.message() {
        None => OutputEnd::Done,
        Some(told) => {
            add(&format!("[{told}]"));
            OutputEnd::Failed
        }
    };
    for line in outcome.changed.messages(MEANWHILE) {
        add(&format!("[{line}]"));
    }
    if let Some(line) = outcome.denied.message() {
        add(&format!("[{line}]"));
    }
    if let Some(line) = outcome.new_files.message() {
        add(&format!("[{line}]"));
    }
    if let Some(why) = &outcome.unsettled {
        add(&format!("[protected names could not be restored: {why}]"));
    }
    for line in outcome.explained.iter().flat_map(Explained::messages) {
        add(&format!("[{line}]"));
    }
    if let Some(line) = &outcome.git {
        add(&format!("[{line}]"));
    }
    if let Some(hint) = &outcome.hint {
        add(&format!("[{hint}]"));
    }
    for line in outcome.network.iter().flat_map(NetworkUse::messages) {
        add(&format!("[network: {line}]"));
    }
    let data = serde_json::to_value(outcome).map_err(|error| ToolError::File(error.to_string()))?;
    Ok(Output::new(end, text, data))
}

impl fmt::Debug for ShellTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShellTool")
    }
}
