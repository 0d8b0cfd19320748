//! The command line of `stockade learn`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::cli::audit::AuditFlag;
use crate::cli::flags::{ApproverFlags, PolicyFlags, duration, variable};
use crate::learn::Include;

/// `stockade learn`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("learned").required(true).multiple(false))]
pub struct LearnArgs {
    /// Which policy holds at first.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Who answers questions.
    #[command(flatten)]
    pub approver: ApproverFlags,
    /// Whether it is recorded.
    #[command(flatten)]
    pub audit: AuditFlag,
    /// Accept every change of low risk without asking: reading what shipped presets give, writing in the project.
    #[arg(long)]
    pub yes: bool,
    /// Accept this where it is proposed, whatever its risk (may be repeated): `rw:DIR` (or `r`, `rx`, `rwx`), with what lies in it
    /// unless that is secret; `HOST:PORTS`.
    #[arg(long, value_name = "MODE:PATH|HOST:PORTS", value_parser = include())]
    pub include: Vec<Include>,
    /// Write the config here, a new file; without it, the config that was read is changed, and a new one is printed.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Run the command at most so often.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Start the command in this directory.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable for the command, or pass the one that is set here (may be repeated).
    #[arg(long = "env", value_name = "K[=V]", value_parser = variable())]
    pub env: Vec<(OsString, OsString)>,
    /// Kill the command and everything it started after this time (`90s`, `5m`), in each round.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Print one JSON object instead of streaming the output.
    #[arg(long)]
    pub json: bool,
    /// Say only what was accepted, what was not, and what was written.
    #[arg(long, short)]
    pub quiet: bool,
    /// Run this shell line.
    #[arg(short = 'c', value_name = "LINE", group = "learned")]
    pub line: Option<OsString>,
    /// Run this program with these arguments.
    #[arg(last = true, value_name = "ARGV", group = "learned")]
    pub argv: Vec<OsString>,
}

fn include() -> impl TypedValueParser<Value = Include> {
    OsStringValueParser::new().try_map(|text| Include::parse(&text))
}
