//! The arguments of `stockade profile`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::args::PolicyFlags;
use crate::policy::Operation;

/// `stockade profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// How to look at it.
    #[command(subcommand)]
    pub view: View,
}

/// The ways of looking at a policy.
#[derive(Debug, Subcommand)]
pub enum View {
    /// What may be read, written, executed and reached, and the line that grants it.
    #[command(
        after_help = "Examples:\n  stockade profile show                    of ./stockade.yaml, or of the default preset\n  stockade profile show --config agent.yaml --json | jq '.files[]'"
    )]
    Show(ShowArgs),
    /// Which clause decides about a path, in which line, and what would change it.
    #[command(
        after_help = "Examples:\n  stockade profile explain .env            every right\n  stockade profile explain ~/.ssh write    one right: exit code 0 permitted, 1 denied\n\nThe path need not exist. Links are followed, as the kernel would follow them.\nExit codes: 0 something that was asked about is permitted (be it after a yes) · 1 nothing is · 125 Stockade could not"
    )]
    Explain(ExplainArgs),
}

/// `stockade profile show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Which policy.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade profile explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Which path; a relative one starts here.
    pub path: PathBuf,
    /// Which right; all of them when left out.
    pub right: Option<RightArg>,
    /// Which policy.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A right that can be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RightArg {
    /// Reading the content of a file.
    Read,
    /// Listing a directory.
    List,
    /// Changing a file or directory.
    Write,
    /// Executing it.
    Execute,
}

impl From<RightArg> for Operation {
    fn from(right: RightArg) -> Self {
        match right {
            RightArg::Read => Self::Read,
            RightArg::List => Self::List,
            RightArg::Write => Self::Write,
            RightArg::Execute => Self::Execute,
        }
    }
}
