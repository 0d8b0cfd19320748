//! People → tools: arguments in, text and an exit code out.
//!
//! One file per subcommand; [`args`] is the command line, [`flags`] what several of them have, [`policy`] turns the
//! policy flags into a policy, [`exit`] is the one table of exit codes, [`error`] says what failed, why, and what to do.

mod approvals;
mod approver;
mod args;
mod audit;
mod call;
mod check;
mod command_line;
mod cuts;
mod deny_fallback;
mod doctor;
mod error;
mod exit;
mod flags;
mod init;
mod learn;
mod mcp;
mod mcp_http;
mod net;
mod output;
mod policy;
mod profile;
mod reach;
mod readers;
mod run;
mod shells;
mod signals;
mod start;
mod stream;
mod tool_error;
mod trust;

use std::process::ExitCode;

pub use args::{Arguments, Subcommand};
use error::CliError;
use exit::Exit;

use crate::tools::serving::Serve;

/// Runs the program; never panics on closed output. `serve` serves agents.
pub fn main(serve: Serve) -> ExitCode {
    // Parsing the arguments needs this stack already, so this error cannot honour `--json`.
    if let Err(failure) = start::require_stack() {
        return failure.print().into();
    }
    let arguments = match command_line::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let form = FailureForm::of(&arguments.subcommand);
    let done = start::require_open_files().and_then(|()| match arguments.subcommand {
        Subcommand::Run(args) => run::run(*args),
        Subcommand::Learn(args) => learn::learn(&args),
        Subcommand::Call(args) => call::call(*args),
        Subcommand::Mcp(args) => mcp::mcp(*args, serve),
        Subcommand::Check(args) => check::check(&args),
        Subcommand::Init(args) => init::init(&args),
        Subcommand::Schema => init::schema(),
        Subcommand::Trust(args) => trust::trust(&args),
        Subcommand::Doctor(args) => doctor::doctor(&args),
        Subcommand::Profile(args) => profile::profile(*args),
        Subcommand::Approvals(args) => approvals::approvals(args),
        Subcommand::Audit(args) => audit::audit(args),
        Subcommand::Completions { shell } => shells::completions(shell),
        Subcommand::Man { directory } => shells::man(directory.as_deref()),
    });
    done.or_else(|failure: CliError| match form {
        _ if failure.is_output_broken() => Err(failure),
        FailureForm::Text => Err(failure),
        FailureForm::Outcome => run::report_failure(failure),
        FailureForm::Object => failure.print_object(),
    })
    .unwrap_or_else(CliError::print)
    .into()
}

/// The form of a failure of Stockade: JSON if `--json` was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureForm {
    /// As text, on standard error.
    Text,
    /// As the outcome of a call.
    Outcome,
    /// As an object.
    Object,
}

impl FailureForm {
    fn of(subcommand: &Subcommand) -> Self {
        let (json, otherwise) = match subcommand {
            Subcommand::Run(args) => (args.json, Self::Outcome),
            Subcommand::Learn(args) => (args.json, Self::Outcome),
            Subcommand::Call(args) => (args.json, Self::Outcome),
            Subcommand::Check(args) => (args.json, Self::Object),
            Subcommand::Init(args) => (args.json, Self::Object),
            Subcommand::Trust(args) => (args.json, Self::Object),
            Subcommand::Doctor(args) => (args.json, Self::Object),
            Subcommand::Profile(args) => (args.view.json(), Self::Object),
            Subcommand::Approvals(args) => (args.json, Self::Object),
            Subcommand::Audit(args) => (args.action.json(), Self::Object),
            Subcommand::Mcp(_) | Subcommand::Schema | Subcommand::Completions { .. } | Subcommand::Man { .. } => {
                (false, Self::Text)
            }
        };
        if json { otherwise } else { Self::Text }
    }
}

/// Prints clap's message. A usage error is Stockade's failure, not the command's.
fn usage(error: &clap::Error) -> ExitCode {
    // There is nowhere to report that neither stream can be written.
    let _printed = error.print();
    if error.use_stderr() {
        Exit::Failed.into()
    } else {
        ExitCode::SUCCESS
    }
}
