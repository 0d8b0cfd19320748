//! The arguments of `stockade profile`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::flags::PolicyFlags;
use crate::policy::{Host, Operation};

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
    /// Which clause decides about a path, or about a host and port, in which line, and what would change it.
    #[command(
        after_help = "Examples:\n  stockade profile explain .env            every right\n  stockade profile explain ~/.ssh write    one right: exit code 0 permitted, 1 denied\n  stockade profile explain api.example.org:443\n\nThe path need not exist. Links are followed, as the kernel would follow them. HOST:PORT is a host unless a file of that\nname is there, or a right is named; `./a:80` is always a path.\nExit codes: 0 something that was asked about is permitted (be it after a yes) · 1 nothing is · 125 Stockade could not"
    )]
    Explain(ExplainArgs),
    /// That nothing on the way from config to kernel permits more than the step before, and what becomes of each clause.
    #[command(
        after_help = "Examples:\n  stockade profile check agent.yaml        proof or witness for each step, with the confinement really started\n  stockade profile check --no-selftest     starts nothing\n\nExit codes: 0 everything holds · 1 something does not, or no backend here would run commands · 125 Stockade could not"
    )]
    Check(CheckArgs),
    /// What one policy permits that another does not, and the reverse, with witnesses.
    #[command(
        after_help = "Examples:\n  stockade profile diff workspace-write agent.yaml\n  stockade profile diff last-week.json agent.yaml     last-week.json was made by `stockade profile export`\n\nExit codes: 0 they permit the same · 1 they differ · 125 Stockade could not"
    )]
    Diff(DiffArgs),
    /// The profile for other programs, or whole for a later `diff`.
    #[command(
        after_help = "Examples:\n  stockade profile export --format json --output last-week.json\n  stockade profile export --format seccomp-oci     linux.seccomp of an OCI runtime config\n  stockade profile export --format systemd         a drop-in: /etc/systemd/system/NAME.service.d/stockade.conf\n  stockade profile export --format bwrap --output mounts && env -i bwrap --args 3 -- /bin/sh 3<mounts\n  stockade profile export --format bwrap | tr '\\0' '\\n'     to read it\n  stockade profile export --format seatbelt --output confine.sh     then, on a Mac: sh confine.sh make"
    )]
    Export(ExportArgs),
}

impl View {
    /// Whether JSON was asked for. An export has its format whatever comes.
    pub(in crate::cli) const fn json(&self) -> bool {
        match self {
            Self::Show(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Check(args) => args.json,
            Self::Diff(args) => args.json,
            Self::Export(_) => false,
        }
    }
}

/// `stockade profile show`.
// What it prints is the same in every backend; who names one is told so.
#[derive(Debug, Args)]
#[command(mut_arg("backend", |backend| backend.hide(true)))]
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
    /// Which path, or HOST:PORT; a relative path starts here.
    #[arg(value_name = "PATH|HOST:PORT")]
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

impl ExplainArgs {
    /// The host and port, if it is not a path that is asked about.
    pub(super) fn host(&self) -> Option<(Host, u16)> {
        let (host, port) = self.path.to_str()?.rsplit_once(':')?;
        // An IPv6 address without brackets may end in what looks like a port.
        let plain = port.bytes().all(|byte| byte.is_ascii_digit()) && (host.starts_with('[') || !host.contains(':'));
        let port = port.parse().ok().filter(|port| plain && *port != 0)?;
        let host = Host::parse(host).ok()?;
        (self.right.is_none() && self.path.symlink_metadata().is_err()).then_some((host, port))
    }
}

/// `stockade profile check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The config; the policy that the flags name when left out.
    #[arg(conflicts_with_all = ["config", "preset"])]
    pub file: Option<PathBuf>,
    /// Which policy.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// Start no worker: what the kernel really does is not tried.
    #[arg(long)]
    pub no_selftest: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade profile diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A config, a preset's name, or an exported profile.
    pub a: PathBuf,
    /// What it is compared with.
    pub b: PathBuf,
    /// Hold configs and presets under this ceiling as well (may be repeated).
    #[arg(long, value_name = "FILE")]
    pub ceiling: Vec<PathBuf>,
    /// How many file witnesses to give for each side.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub most: usize,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `stockade profile export`.
// What it prints is the same in every backend; who names one is told so.
#[derive(Debug, Args)]
#[command(mut_arg("backend", |backend| backend.hide(true)))]
pub struct ExportArgs {
    /// In which form.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: FormatArg,
    /// Write it to this file.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What a command gets that nobody was asked about, instead of one that was approved (`json` has both).
    #[arg(long)]
    pub unasked: bool,
    /// Which policy.
    #[command(flatten)]
    pub policy: PolicyFlags,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// The whole profile; `profile diff` reads it.
    Json,
    /// The Landlock rules as the kernel gets them.
    Landlock,
    /// The mounts as arguments of bwrap, each ended by a NUL.
    Bwrap,
    /// A shell script that runs a command under `sandbox-exec` of macOS (untested there).
    Seatbelt,
    /// `linux.seccomp` of an OCI runtime config.
    SeccompOci,
    /// A drop-in for a systemd service.
    Systemd,
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
