//! `stockade audit`: verifies and reads a log.
//!
//! `verify` walks the log and reports faults; `show` prints the records that pass `filter`, as text of `describe`; `report` makes a page
//! of them. `log` locates and reads the log.

mod describe;
mod filter;
mod flag;
mod log;
mod report;
mod show;
mod verify;

use clap::Args;

pub(super) use flag::AuditFlag;
pub(super) use report::ReportArgs;
pub(super) use show::ShowArgs;
pub(super) use verify::VerifyArgs;

use super::error::CliError;
use super::exit::Exit;

/// `stockade audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: AuditAction,
}

/// What to do with a log.
#[derive(Debug, clap::Subcommand)]
pub enum AuditAction {
    /// Walk the log and say whether it is as it was written. Exit code 1 where it is not.
    #[command(after_help = "\
Examples:
  stockade audit verify                          the default log
  stockade audit verify --log /srv/audit.jsonl   another, with the files beside it
  stockade audit verify --expect 4f0c…           that a record with this hash, noted down earlier, is still in it

A hash chain shows that something was changed, not by whom: whoever may write the log could write all of it anew.
Note down the last hash elsewhere, and give it to --expect.")]
    Verify(VerifyArgs),
    /// Print what the log holds, oldest first. Exit code 1 where it is not as it was written.
    #[command(after_help = "\
Examples:
  stockade audit show --limit 20
  stockade audit show --decision denied --since 2h
  stockade audit show --tool shell --session 9f31c0a2 --json")]
    Show(ShowArgs),
    /// Write what the log holds as a page for people: what was called, what was stopped and why, what held commands. Exit code 1
    /// where it is not as it was written.
    #[command(after_help = "\
Examples:
  stockade audit report --html --out report.html          one page that needs nothing else; open it in a browser
  stockade audit report --html --since 24h > today.html
  stockade audit report --json | jq .counts")]
    Report(ReportArgs),
}

impl AuditAction {
    /// Whether JSON was asked for.
    pub(super) const fn json(&self) -> bool {
        match self {
            Self::Verify(args) => args.json,
            Self::Show(args) => args.json,
            Self::Report(args) => args.json,
        }
    }
}

pub(super) fn audit(args: AuditArgs) -> Result<Exit, CliError> {
    match args.action {
        AuditAction::Verify(args) => verify::verify(&args),
        AuditAction::Show(args) => show::show(&args),
        AuditAction::Report(args) => report::report(&args),
    }
}
