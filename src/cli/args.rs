//! The command line, as clap reads it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};

use super::audit::{AuditArgs, AuditFlag};
use super::call::CallArgs;
use super::flags::{ApproverFlags, BackendFlag, PolicyFlags, duration, variable};
use super::learn::LearnArgs;
use super::mcp::McpArgs;
use super::profile::ProfileArgs;

/// Run an AI agent's commands confined by the kernel: one YAML file says what they may do.
#[derive(Debug, Parser)]
#[command(
    name = "stockade",
    version,
    max_term_width = 100,
    after_help = "Exit codes of `run`: the command's own · 124 timed out · 125 Stockade could not · 126 blocked or denied · 127 not found · 128+N killed by signal N"
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Run one command confined, and return its output and exit code.
    #[command(
        override_usage = "stockade run [OPTIONS] (-- ARGV... | -c LINE)",
        after_help = "\
Examples:
  stockade run -- cargo test                     this directory writable, no network, the system readable
  stockade run -c 'make -j2 && ./check.sh'       a shell line instead of a program
  stockade run --net on -- npm install           the same, with the network
  stockade run --ro . --rw out -- make           nothing but the system, this directory to read and out to write
  stockade run --config agent.yaml -c 'git push' what agent.yaml says, asking where it asks
  stockade run --explain -- make                 what was denied to it, by which line, and what would permit it

At a terminal every key goes to the command. Ctrl-\\ pressed three times within a second ends it and all it started.

Without --config, --preset, --rw and --ro, ./stockade.yaml is used when there is one and it is trusted (see `stockade
trust`); otherwise the preset `workspace-write`, which --deny and --net change. --rw and --ro stand in the place of its workspace."
    )]
    Run(Box<RunArgs>),
    /// Run one command confined, again and again, and have the config grant what it was denied, as far as you accept that.
    #[command(
        override_usage = "stockade learn [OPTIONS] (-- ARGV... | -c LINE)",
        after_help = "\
Examples:
  stockade learn --config agent.yaml -- make test      asks about each change, lowest risk first, and writes agent.yaml
  stockade learn --yes -- cargo build                  accepts what is of low risk, and says what else was denied
  stockade learn --ro . --yes --out new.yaml -- make   a new config, from flags
  stockade learn --yes --include rwx:. -- cargo test   accepts this by name as well, though its risk is higher
  stockade learn --include registry.npmjs.org:443 -- npm ci

Each round really runs the command, confined to the config as it stands: what it does, it does again. It never runs
unconfined, and nothing is granted that was not accepted. Without a terminal, --yes or --include, nothing is.

Exit codes: the command's own of the last round · 124, 125, 127 and 128+N as for `run` · 126 the command failed, and
something was denied that nobody accepted to permit or no change permits (or it was blocked or denied). See docs/learn.md"
    )]
    Learn(Box<LearnArgs>),
    /// Call one tool: what an agent would call, judged, asked about, and run confined. Without a tool: list them.
    #[command(after_help = "\
Examples:
  stockade call                                                what the config can allow
  stockade call read_file '{\"path\": \"README.md\"}'
  stockade call edit_file '{\"path\": \"a.txt\", \"edits\": [{\"old\": \"x\", \"new\": \"y\"}]}'
  stockade call write_file - < arguments.json
  stockade call --stream < requests.jsonl                      one session; see docs/calls.md

Exit codes: 0 done · 1 the tool could not (no such file, no match) · a command's own · 124, 125, 126, 127 and 128+N as for `run`")]
    Call(Box<CallArgs>),
    /// Serve an agent over the Model Context Protocol: the tools that the config allows, judged, asked about, and run confined.
    #[command(after_help = "\
Examples:
  stockade mcp --config agent.yaml                        on standard input and output, as an MCP client starts it
  stockade mcp --approvals-socket default                 questions go to `stockade approvals` in another terminal
  claude mcp add files -- stockade mcp --config ~/agent.yaml
  stockade mcp --http 8080                                for several clients, with a token; see docs/mcp-http.md

Standard output carries the protocol alone; messages go to standard error. Without --config, as for `run`. See docs/mcp.md")]
    Mcp(Box<McpArgs>),
    /// Read a config and say what is wrong with it, and on which line. What this machine cannot hold is wrong too.
    #[command(
        after_help = "Examples:\n  stockade check agent.yaml\n  stockade check --backend landlock agent.yaml     where a machine has no namespaces\n\nExit codes: 0 `run` and `mcp` would start with it · 125 they would not"
    )]
    Check(CheckArgs),
    /// Write a commented config to start from.
    #[command(after_help = "Example:\n  stockade init            writes ./stockade.yaml")]
    Init(InitArgs),
    /// Print the JSON Schema of the config, for editors.
    #[command(after_help = "Example:\n  stockade schema > stockade.schema.json")]
    Schema,
    /// Record that you have read a config found in a working directory, so that it may be used.
    #[command(
        after_help = "Examples:\n  stockade trust ./stockade.yaml           after reading it; a later change must be trusted again\n  stockade trust --list                    what is trusted, and what has changed since\n  stockade trust --forget ./stockade.yaml  ask again"
    )]
    Trust(TrustArgs),
    /// Say what this machine can enforce, by trying it. Exit code 0 only if commands could run confined.
    #[command(after_help = "Example:\n  stockade doctor --json | jq .regime")]
    Doctor(DoctorArgs),
    /// Audit a policy: what it permits, which line says so, and what the kernel is told. Nothing runs under it.
    #[command(after_help = "\
Examples:
  stockade profile show                          what commands may do here, with the line that grants it
  stockade profile explain ~/.ssh/id_ed25519     which clause decides about one path
  stockade profile check agent.yaml              that the kernel is told no more than the config says
  stockade profile diff system agent.yaml        what one permits and the other does not
  stockade profile export --format json          the whole profile, for a machine

A config named here, or found as ./stockade.yaml, is only looked at: it need not be trusted.")]
    Profile(Box<ProfileArgs>),
    /// See what sessions that were started with `--approvals-socket` ask, and answer them.
    #[command(after_help = "\
Examples:
  stockade run --approvals-socket default -c 'make install'   in one terminal, or anywhere
  stockade approvals                                          in another: is shown each question of each session, and answers
  stockade approvals list                                     what is asked now
  stockade approvals approve 4f0c21aa9d3e --note 'once only'")]
    Approvals(ApprovalsArgs),
    /// Check or read the log of what was asked, decided and run, where a config or `--audit` has one kept.
    #[command(after_help = "\
Examples:
  stockade audit verify
  stockade audit show --decision denied --since 24h

See docs/audit.md")]
    Audit(AuditArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  stockade completions bash > ~/.local/share/bash-completion/completions/stockade"
    )]
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page for each subcommand.
    #[command(after_help = "Example:\n  stockade man | man -l -")]
    Man {
        /// Write all pages into this directory.
        #[arg(long = "out", value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// `stockade run`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("command").required(true).multiple(false))]
pub struct RunArgs {
    /// Which policy holds.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Who answers questions.
    #[command(flatten)]
    pub approver: ApproverFlags,
    /// Whether it is recorded.
    #[command(flatten)]
    pub audit: AuditFlag,
    /// Start the command in this directory.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable for the command, or pass the one that is set here (may be repeated).
    #[arg(long = "env", value_name = "K[=V]", value_parser = variable())]
    pub env: Vec<(OsString, OsString)>,
    /// Kill the command and everything it started after this time (`90s`, `5m`).
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Print one JSON object with the outcome instead of streaming the output.
    #[arg(long)]
    pub json: bool,
    /// Say afterwards what was denied to the command, which line of the config decided, and what would permit it. It runs slower.
    #[arg(long)]
    pub explain: bool,
    /// Do not print the regime line, unless it says that nothing confines the command.
    #[arg(long, short)]
    pub quiet: bool,
    /// Run this shell line.
    #[arg(short = 'c', value_name = "LINE", group = "command")]
    pub line: Option<OsString>,
    /// Run this program with these arguments.
    #[arg(last = true, value_name = "ARGV", group = "command")]
    pub argv: Vec<OsString>,
}

/// `stockade check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The config; `stockade.yaml` here when left out.
    pub file: Option<PathBuf>,
    /// Hold it under this ceiling as well (may be repeated).
    #[arg(long, value_name = "FILE")]
    pub ceiling: Vec<PathBuf>,
    /// Say what becomes of it with this backend; `auto` is what the config names, or else what this machine can best.
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "auto")]
    pub backend: BackendFlag,
    /// Print no warnings.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print all names of long lists.
    #[arg(long, short)]
    pub verbose: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to write it.
    #[arg(default_value = "stockade.yaml")]
    pub file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// The config; `stockade.yaml` here when left out.
    pub file: Option<PathBuf>,
    /// List the trusted configs, and whether each is still what was trusted.
    #[arg(long, conflicts_with_all = ["file", "forget"])]
    pub list: bool,
    /// Withdraw trust; the file need not exist any more.
    #[arg(long)]
    pub forget: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade approvals`.
#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    /// The socket of one session; all sessions at the default place when left out.
    #[arg(long, value_name = "PATH|default", default_value = "default", global = true)]
    pub socket: PathBuf,
    /// Print JSON: one object, or for `watch` one a line.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do; without it, each question is shown and asked on this terminal, and it is waited for sessions to come.
    #[command(subcommand)]
    pub action: Option<ApprovalsAction>,
}

/// What to do about what is asked.
#[derive(Debug, clap::Subcommand)]
pub enum ApprovalsAction {
    /// List what is asked.
    List,
    /// Show all of one question.
    Show {
        /// Its name, as `list` has it.
        id: String,
    },
    /// Say yes.
    Approve {
        /// The name of the question.
        id: String,
        /// For the rest of the session, to exactly the same.
        #[arg(long)]
        session: bool,
        /// For the rest of the session, to what `show` lists under this number.
        #[arg(long, value_name = "NUMBER", conflicts_with = "session", value_parser = clap::value_parser!(u8).range(1..))]
        scope: Option<u8>,
        /// Tell the agent this.
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Say no.
    Deny {
        /// The name of the question.
        id: String,
        /// Tell the agent this.
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Print each question as it is asked, and when it is settled. Waits for sessions, and goes on when one ends.
    Watch,
}
