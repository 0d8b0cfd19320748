//! `stockade call`: one call of one tool.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::Args;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::approver;
use super::audit::AuditFlag;
use super::complain::{Complaint, print, say};
use super::exit::Exit;
use super::flags::{ApproverFlags, PolicyFlags};
use super::output::{exit_of_output, object};
use super::policy::{self, Chosen};
use super::start::{self, Start, Told};
use super::stops::{Ends, stops};
use super::stream;
use super::tool_error::{session_complaint, tool_complaint};
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
pub(super) fn call(args: CallArgs) -> Result<Exit, Complaint> {
    let runtime = start::runtime()?;
    let done = runtime.block_on(call_in(args));
    // A read of standard input that is under way is not waited for.
    runtime.shutdown_background();
    done
}

async fn call_in(args: CallArgs) -> Result<Exit, Complaint> {
    let Start {
        context,
        chosen: Chosen { mut loaded, narrowing },
        directory,
    } = start::start(
        &args.policy,
        &args.audit,
        args.cwd.as_deref(),
        &[],
        Told::unless(args.quiet),
    )?;
    if args.explain {
        loaded.policy.explain = Explain::Always;
    }
    let places = policy::places(&context)?;
    let (approver, withdraw, another) = approver::approver(&args.approver, &loaded.policy, &places)?;
    let session = Session::open(loaded, narrowing, &directory, approver, &context)
        .map_err(session_complaint)?
        .withdrawing_with(withdraw)
        .asking_meanwhile(another);
    approver::hold_apart(&args.approver, session.is_unconfined().await)?;
    let told = session.is_unconfined().await || (!args.quiet && std::io::stderr().is_terminal());
    if told && !args.json {
        let line = session.regime_line().await.map_err(tool_complaint)?;
        say(&format!("stockade: {line}\n"));
    }
    let mut tools = session.tools();
    if args.stream {
        let signals = pass_on_signals(&session, Ends::Call)?;
        let done = stream::stream(&session, signals).await;
        session.finish().await;
        return done;
    }
    let Some(tool) = &args.tool else {
        list(&tools.list(), args.json)?;
        session.finish().await;
        return Ok(Exit::Success);
    };
    let arguments = arguments(args.arguments.as_deref())?;
    let _signals = pass_on_signals(&session, Ends::Program)?;
    let done = tools.call(tool, arguments).await;
    session.finish().await;
    if args.json {
        return report(&done);
    }
    let output = done.map_err(|error| complaint(error, &tools.list()))?;
    tell(&output)?;
    Ok(exit_of_output(&output))
}

/// What stops Stockade stops what is under way first; each signal is told here as well.
fn pass_on_signals(session: &Session, ends: Ends) -> Result<mpsc::Receiver<Signal>, Complaint> {
    let stopper = session.stopper();
    let mut signals = stops(ends)?;
    let (teller, told) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Some(signal) = signals.recv().await {
            // Nobody may be under way, or nobody listening.
            let (_passed, _told) = (stopper.try_send(signal), teller.try_send(signal));
        }
    });
    Ok(told)
}

/// The arguments: JSON on the command line, on standard input, or none.
fn arguments(text: Option<&str>) -> Result<Value, Complaint> {
    let read = match text {
        None => return Ok(json!({})),
        Some("-") => {
            let mut read = String::new();
            std::io::stdin()
                .lock()
                .take(MAX_ARGUMENTS)
                .read_to_string(&mut read)
                .map_err(|error| {
                    Complaint::failed(format!("failed to read the arguments from standard input: {error}"))
                })?;
            read
        }
        Some(text) => text.to_owned(),
    };
    serde_json::from_str(&read).map_err(|error| {
        Complaint::failed(format!("the arguments are no JSON: {error}"))
            .remedy("quote them for the shell, as in `stockade call read_file '{\"path\": \"README.md\"}'`, or give `-` and write them to standard input")
    })
}

fn list(tools: &[ToolInfo], as_json: bool) -> Result<(), Complaint> {
    if as_json {
        let text = serde_json::to_string(&json!({ "tools": tools })).map_err(Complaint::failed)?;
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

fn tell(output: &Output) -> Result<(), Complaint> {
    let end = if output.text.is_empty() || output.text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    // On a terminal nothing that a file or a command says moves the cursor.
    if std::io::stdout().is_terminal() {
        let shown: Vec<String> = output.text.split('\n').map(shown).collect();
        return print(&format!("{}{end}", shown.join("\n")));
    }
    print(&format!("{}{end}", output.text))
}

/// A line for a terminal; tabs stay.
fn shown(line: &str) -> String {
    let pieces: Vec<String> = line.split('\t').map(|piece| escape(piece.as_bytes())).collect();
    pieces.join("\t")
}

fn report(done: &Result<Output, ToolError>) -> Result<Exit, Complaint> {
    let (object, exit) = object(done);
    print(&format!("{object}\n"))?;
    Ok(exit)
}

fn complaint(error: ToolError, tools: &[ToolInfo]) -> Complaint {
    match &error {
        ToolError::Arguments { tool, .. } => {
            let takes = tools
                .iter()
                .find(|info| info.name == *tool)
                .map(|info| takes(&info.input_schema));
            let complaint = tool_complaint(error);
            match takes {
                Some(takes) => complaint.remedy(format!("it takes {takes}")),
                None => complaint,
            }
        }
        ToolError::NoSuchTool(_) => {
            tool_complaint(error).remedy("`stockade call` without a tool lists what this config can allow")
        }
        _ => tool_complaint(error),
    }
}

/// What a tool takes: a line for each argument, and below it for each member of what it is a list of.
fn takes(schema: &Value) -> String {
    let mut lines = vec!["an object of".to_owned()];
    members(schema, schema, "      ", &mut lines);
    if lines.len() == 1 {
        return "no arguments".to_owned();
    }
    lines.join("\n")
}

fn members(whole: &Value, object: &Value, indent: &str, lines: &mut Vec<String>) {
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
        let told = member.get("description").and_then(Value::as_str);
        let told = told.map(|told| format!(": {told}")).unwrap_or_default();
        let line = format!("`{name}` ({}{need}){told}", choices.join(" or "));
        lines.push(format!("{indent}{}", escape(line.as_bytes())));
        let named = member.pointer("/items/$ref").and_then(Value::as_str);
        if let Some(each) = named.and_then(|named| whole.pointer(named.trim_start_matches('#'))) {
            members(whole, each, &format!("{indent}  "), lines);
        }
    }
}
