//! `stockade call`: one call of one tool.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::Args;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::approver;
use super::audit::AuditFlag;
use super::error::{CliError, print, print_notice, print_regime};
use super::exit::Exit;
use super::flags::{ApproverFlags, PolicyFlags};
use super::output::{exit_of_output, object};
use super::policy::{self, Chosen};
use super::signals::{StopScope, stop_signals};
use super::start::{self, ConfigWarnings, Start};
use super::stream;
use super::tool_error::{session_failure, tool_failure};
use crate::policy::Explain;
use crate::policy::path::escape;
use crate::tools::{Output, Session, ToolError, ToolInfo};

/// `stockade call`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct CallArgs {
    /// Which policy holds.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Who answers.
    #[command(flatten)]
    pub approver: ApproverFlags,
    /// Whether it is recorded.
    #[command(flatten)]
    pub audit: AuditFlag,
    /// What relative paths are relative to, and where commands start.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Say of commands what was denied to them, which line of the config decided, and what would permit it. They run slower.
    #[arg(long)]
    pub explain: bool,
    /// Make many calls in one session: read a JSON value a line, as {"call": {"tool": …, "args": …}}, and answer each with one.
    #[arg(long, conflicts_with_all = ["tool", "json"])]
    pub stream: bool,
    /// Do not print the regime line, unless it says that nothing confines the tool.
    #[arg(long, short)]
    pub quiet: bool,
    /// The tool.
    #[arg(value_name = "TOOL")]
    pub tool: Option<String>,
    /// Its arguments, a JSON object; `-` reads them from standard input.
    #[arg(value_name = "JSON")]
    pub arguments: Option<String>,
}

/// The most bytes of arguments that are read.
const MAX_ARGUMENTS: u64 = 16 * 1024 * 1024;

/// Calls the tool, or lists what can be called.
pub(super) fn call(args: CallArgs) -> Result<Exit, CliError> {
    start::block_on(call_in(args))
}

async fn call_in(args: CallArgs) -> Result<Exit, CliError> {
    let Start {
        context,
        chosen: Chosen { mut loaded, narrowing },
        directory,
    } = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &[],
        (ConfigWarnings::LeftToCheck, args.quiet),
    )?;
    if args.explain {
        loaded.policy.explain = Explain::Always;
    }
    let places = policy::places(&context)?;
    let (approver, withdraw, another) = approver::approver(&args.approver, &loaded.policy, &places)?;
    let session = Session::open(loaded, narrowing, &directory, approver, &context)
        .map_err(session_failure)?
        .withdrawing_with(withdraw)
        .asking_meanwhile(another);
    approver::refuse_unconfined_socket(&args.approver, session.is_unconfined().await)?;
    let shows_regime = session.is_unconfined().await || (!args.quiet && std::io::stderr().is_terminal());
    if shows_regime && !args.json {
        let line = session.regime_line().await.map_err(tool_failure)?;
        print_regime(&line);
    }
    let mut tools = session.tools();
    if args.stream {
        let signals = forward_signals(&session, StopScope::Call)?;
        let done = stream::stream(&session, signals).await;
        finish(&session).await;
        return done;
    }
    let Some(tool) = &args.tool else {
        list(&tools.list(), args.json)?;
        finish(&session).await;
        return Ok(Exit::Success);
    };
    let arguments = arguments(args.arguments.as_deref())?;
    let _signals = forward_signals(&session, StopScope::Program)?;
    let done = tools.call(tool, arguments).await;
    finish(&session).await;
    if args.json {
        return report(&done);
    }
    let output = done.map_err(|error| failure(error, &tools.list()))?;
    print_output(&output)?;
    Ok(exit_of_output(&output))
}

/// Ends the session and tells a person what its start put back in directories that are none of the agent's.
pub(super) async fn finish(session: &Session) {
    session.finish().await;
    for line in session.restored_elsewhere() {
        print_notice(line);
    }
}

/// Forwards each stop signal to the call under way and to the returned channel.
fn forward_signals(session: &Session, scope: StopScope) -> Result<mpsc::Receiver<Signal>, CliError> {
    let stopper = session.stopper();
    let mut stops = stop_signals(scope)?;
    let (relay, forwarded) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Some(signal) = stops.recv().await {
            // There may be no call, or no receiver.
            let (_to_call, _to_caller) = (stopper.try_send(signal), relay.try_send(signal));
        }
    });
    Ok(forwarded)
}

/// The arguments: JSON on the command line, on standard input, or none.
fn arguments(text: Option<&str>) -> Result<Value, CliError> {
    let read = match text {
        None => return Ok(json!({})),
        Some("-") => {
            let mut read = String::new();
            std::io::stdin()
                .lock()
                .take(MAX_ARGUMENTS)
                .read_to_string(&mut read)
                .map_err(|error| {
                    CliError::failed(format!("failed to read the arguments from standard input: {error}"))
                })?;
            read
        }
        Some(text) => text.to_owned(),
    };
    serde_json::from_str(&read).map_err(|error| {
        CliError::failed(format!("the arguments are no JSON: {error}"))
            .remedy("quote them for the shell, as in `stockade call read_file '{\"path\": \"README.md\"}'`, or give `-` and write them to standard input")
    })
}

fn list(tools: &[ToolInfo], as_json: bool) -> Result<(), CliError> {
    if as_json {
        let text = serde_json::to_string(&json!({ "tools": tools })).map_err(CliError::failed)?;
        return print(&format!("{text}\n"));
    }
    let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
    for tool in tools {
        let arguments: Vec<&str> = tool.input_schema["properties"]
            .as_object()
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        print(&format!(
            "{:width$}  {}\n{:width$}  arguments: {}\n",
            tool.name,
            escape(tool.description.as_bytes()),
            "",
            if arguments.is_empty() {
                "none".to_owned()
            } else {
                arguments.join(", ")
            },
        ))?;
    }
    Ok(())
}

fn print_output(output: &Output) -> Result<(), CliError> {
    let end = if output.text.is_empty() || output.text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    // On a terminal the output of a file or a command is escaped.
    if std::io::stdout().is_terminal() {
        let shown: Vec<String> = output.text.split('\n').map(shown).collect();
        return print(&format!("{}{end}", shown.join("\n")));
    }
    print(&format!("{}{end}", output.text))
}

/// Escapes a line, except tabs.
fn shown(line: &str) -> String {
    let pieces: Vec<String> = line.split('\t').map(|piece| escape(piece.as_bytes())).collect();
    pieces.join("\t")
}

fn report(done: &Result<Output, ToolError>) -> Result<Exit, CliError> {
    let (object, exit) = object(done);
    print(&format!("{object}\n"))?;
    Ok(exit)
}

fn failure(error: ToolError, tools: &[ToolInfo]) -> CliError {
    match &error {
        ToolError::Arguments { tool, .. } => {
            let takes = tools
                .iter()
                .find(|info| info.name == *tool)
                .map(|info| takes(&info.input_schema));
            let failure = tool_failure(error);
            match takes {
                Some(takes) => failure.remedy(format!("it takes {takes}")),
                None => failure,
            }
        }
        ToolError::NoSuchTool(_) => {
            tool_failure(error).remedy("`stockade call` without a tool lists what this config can allow")
        }
        _ => tool_failure(error),
    }
}

/// The arguments of a tool, one per line, each followed by the members of its items.
fn takes(schema: &Value) -> String {
    let mut lines = vec!["an object of".to_owned()];
    members(schema, schema, "      ", &mut lines);
    if lines.len() == 1 {
        return "no arguments".to_owned();
    }
    lines.join("\n")
}

fn members(schema: &Value, object: &Value, indent: &str, lines: &mut Vec<String>) {
    let required = object.get("required").and_then(Value::as_array);
    for (name, member) in object
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let need = match required {
            Some(required) if required.iter().any(|one| one == name) => ", required",
            Some(_) | None => "",
        };
        let kinds: Vec<&str> = match member.get("type") {
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .filter(|kind| *kind != "null")
                .collect(),
            Some(Value::String(kind)) => vec![kind],
            _ => vec!["any"],
        };
        let choices: Vec<String> = match member.get("enum").and_then(Value::as_array) {
            Some(choices) => choices.iter().map(Value::to_string).collect(),
            None => kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let description = member.get("description").and_then(Value::as_str);
        let description = description.map(|text| format!(": {text}")).unwrap_or_default();
        let line = format!("`{name}` ({}{need}){description}", choices.join(" or "));
        lines.push(format!("{indent}{}", escape(line.as_bytes())));
        let named = member.pointer("/items/$ref").and_then(Value::as_str);
        if let Some(each) = named.and_then(|named| schema.pointer(named.trim_start_matches('#'))) {
            members(schema, each, &format!("{indent}  "), lines);
        }
    }
}
