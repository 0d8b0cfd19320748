//! The flags that several subcommands share.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::deny_fallback::DenyFallbackFlag;
use super::net::NetFlag;
use crate::policy::Mode;

/// The flags that say which policy holds.
#[derive(Debug, Clone, Args)]
pub struct PolicyFlags {
    /// Use this config; naming it is trusting it.
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub config: Option<PathBuf>,
    /// Use a shipped preset (`workspace-write`, `system`, …).
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Let this directory be written (may be repeated). Without a config it replaces the directory you start in; with one it only narrows.
    #[arg(long, value_name = "DIR")]
    pub rw: Vec<PathBuf>,
    /// Let this directory be read (may be repeated); as `--rw`, it replaces or narrows.
    #[arg(long, value_name = "DIR")]
    pub ro: Vec<PathBuf>,
    /// Forbid this path with everything below it (may be repeated). The rest stays as it is without the flag.
    #[arg(long, value_name = "PATH")]
    pub deny: Vec<PathBuf>,
    /// Network reach: `off`, `on`, or a host that may be reached (may be repeated), as in `example.org:443`, `*.example.org:80,443`,
    /// `10.0.0.0/8:*`. Without a config all else stays as it is; beside one it only narrows.
    #[arg(long, value_name = "off|on|HOST:PORTS")]
    pub net: Vec<NetFlag>,
    /// A file that only takes away: what it does not grant is not granted (may be repeated).
    #[arg(long, value_name = "FILE")]
    pub ceiling: Vec<PathBuf>,
    /// What to do about a deny inside a granted directory where the regime cannot hold all of it.
    #[arg(long, value_enum, value_name = "HOW")]
    pub deny_fallback: Option<DenyFallbackFlag>,
    /// Whether questions are asked, or all answered yes or no.
    #[arg(long, value_enum, value_name = "MODE", conflicts_with_all = ["strict", "approve_all"])]
    mode: Option<ModeFlag>,
    /// Deny what needs approval: the same as `--mode strict`.
    #[arg(long, conflicts_with = "approve_all")]
    strict: bool,
    /// Approve what is not blocked: the same as `--mode approve-all`.
    #[arg(long)]
    approve_all: bool,
    /// Which backend holds the commands.
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "auto")]
    pub backend: BackendFlag,
}

impl PolicyFlags {
    /// The mode that the flags name, with the flag that names it.
    pub(super) const fn mode(&self) -> Option<(ModeFlag, &'static str)> {
        match (self.mode, self.strict, self.approve_all) {
            (Some(mode), ..) => Some((mode, "--mode")),
            (None, true, _) => Some((ModeFlag::Strict, "--strict")),
            (None, false, true) => Some((ModeFlag::ApproveAll, "--approve-all")),
            (None, false, false) => None,
        }
    }
}

/// The flags that say who answers questions.
#[derive(Debug, Clone, Default, Args)]
pub struct ApproverFlags {
    /// Ask this program in place of the terminal: the question as JSON on its standard input, the decision on its standard output.
    #[arg(long, value_name = "PROG", conflicts_with = "approvals_socket")]
    pub approver_program: Option<PathBuf>,
    /// Ask whoever runs `stockade approvals`, over this socket, in place of the terminal; with `default`, which several sessions can have at once, it finds them by itself.
    #[arg(long, value_name = "PATH|default")]
    pub approvals_socket: Option<PathBuf>,
    /// Deny what is not answered in this time (`90s`, `5m`); without it a terminal waits for ever, and the others five minutes.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub approval_timeout: Option<Duration>,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ModeFlag {
    /// A person at the terminal.
    Interactive,
    /// Yes to everything that is not blocked.
    #[value(alias = "approve-all")]
    ApproveAll,
    /// No to everything that needs approval.
    Strict,
}

impl From<ModeFlag> for Mode {
    fn from(flag: ModeFlag) -> Self {
        match flag {
            ModeFlag::Interactive => Self::Interactive,
            ModeFlag::ApproveAll => Self::ApproveAll,
            ModeFlag::Strict => Self::Strict,
        }
    }
}

/// `--backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendFlag {
    /// What the config says; without a word of it, the strongest that passes its self-test.
    Auto,
    /// Landlock and seccomp.
    Landlock,
    /// Namespaces, with Landlock and seccomp inside; made by Stockade, or by bwrap where it cannot.
    Namespaces,
    /// The same, made by bwrap.
    Bwrap,
    /// A profile text for `sandbox-exec` of macOS; only looked at, by `profile`.
    Seatbelt,
}

/// A variable, text or not; without a value it has the caller's, for secrets: others can see arguments.
pub(super) fn variable() -> impl TypedValueParser<Value = (OsString, OsString)> {
    OsStringValueParser::new().try_map(|text| {
        let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'=').map(OsStr::from_bytes);
        match (parts.next(), parts.next()) {
            (Some(name), Some(value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            (Some(name), None) if !name.is_empty() => match std::env::var_os(name) {
                Some(value) => Ok((name.to_owned(), value)),
                None => Err("it is not set where stockade runs; set and export it there, or write NAME=VALUE"),
            },
            _ => Err("write it as NAME=VALUE, or NAME for the value it has where stockade runs"),
        }
    })
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    crate::config::duration(text).map_err(|error| error.to_string())
}
