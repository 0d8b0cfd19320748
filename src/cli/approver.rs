//! The approver flags → an approver.
//!
//! Only flags name an approver program or a socket. A config may not: it may come from the project that the agent works in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::{CliError, print_notice};
use super::flags::ApproverFlags;
use crate::approval::{
    ApprovalDecision, ApprovalRequest, ApprovalsAddress, Approver, ApproverError, CancelHandle, Presentation,
    ProgramApprover, SocketApprover, TerminalApprover,
};
use crate::config;
use crate::policy::path::display;
use crate::policy::{AbsPath, Channel, Policy, Right};
use crate::tools::{ExtraApprover, UserPaths, approver_program, reachable_reason};

/// The default timeout of an approver program or socket.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// How long the terminal must be idle before a question that interrupts a command takes an answer.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// An approver, and the handle that withdraws its questions.
pub(super) type CancellableApprover = (Box<dyn Approver + Send>, CancelHandle);

/// The approver that the flags and the config select.
pub(super) enum ApproverChoice {
    /// A program, started for each question.
    Program {
        program: PathBuf,
        writable: Vec<AbsPath>,
        patience: Duration,
    },
    /// Clients of this socket.
    Socket(SocketApprover),
    /// The person at the terminal.
    Terminal(Option<Duration>),
    /// Nobody: the config allows no channel that is available.
    Nobody,
}

impl ApproverChoice {
    /// Selects the approver that the flags name, else the terminal, as far as the config allows the channel.
    pub(super) fn of(flags: &ApproverFlags, policy: &Policy, places: &UserPaths) -> Result<Self, CliError> {
        let patience = patience(flags);
        let require_channel = |channel: Channel, flag: &str| {
            if policy.channels.allow(channel) {
                return Ok(());
            }
            Err(CliError::failed(format!(
                "nobody may be asked by a {channel}: `approval.channel` does not name it"
            ))
            .remedy(format!(
                "leave out {flag}, or have the config (and every ceiling) name `{channel}`"
            )))
        };
        if let Some(program) = &flags.approver_program {
            require_channel(Channel::Program, "--approver-program")?;
            let choice = Self::Program {
                program: program.clone(),
                writable: writable(policy),
                patience,
            };
            // A program that cannot be used is reported at the start.
            choice.next().map_err(|error| {
                CliError::failed(error)
                    .remedy("an approver program is yours alone, and lies outside every root that commands may write")
            })?;
            return Ok(choice);
        }
        if let Some(name) = &flags.approvals_socket {
            require_channel(Channel::Socket, "--approvals-socket")?;
            let reachable = |path: &AbsPath| reachable_reason(policy, path);
            let approver = if is_default_name(name) {
                let directory = default_socket_directories(&places.state).swap_remove(0);
                config::register_socket_dir(&places.state, &directory).map_err(|error| {
                    let directory = display(&directory);
                    CliError::failed(format!(
                        "{directory}, a place for sockets, cannot be kept from commands: {error}"
                    ))
                })?;
                SocketApprover::in_directory(&directory, patience, reachable)
            } else {
                SocketApprover::new(name, patience, reachable)
            };
            return approver.map(Self::Socket).map_err(|error| {
                CliError::failed(error)
                    .remedy("name a place in a directory of your own, outside of everything that commands may reach")
            });
        }
        Ok(if policy.channels.allow(Channel::Terminal) {
            Self::Terminal(flags.approval_timeout)
        } else {
            Self::Nobody
        })
    }

    /// The channel of the approver, if there is one.
    pub(super) const fn channel(&self) -> Option<Channel> {
        match self {
            Self::Program { .. } => Some(Channel::Program),
            Self::Socket(_) => Some(Channel::Socket),
            Self::Terminal(_) => Some(Channel::Terminal),
            Self::Nobody => None,
        }
    }

    /// An approver for one call.
    pub(super) fn next(&self) -> Result<CancellableApprover, ApproverError> {
        let setup_failed = |error: std::io::Error| ApproverError::NoDecision(error.to_string());
        match self {
            Self::Nobody => Err(ApproverError::Nobody(
                "`approval.channel` names nobody who is here".to_owned(),
            )),
            Self::Program {
                program,
                writable,
                patience,
            } => {
                let report_line = |line: &str| print_notice(format_args!("the approver program says: {line}"));
                let approver =
                    ProgramApprover::run_by(approver_program::run, program, writable, *patience, report_line)?;
                let (approver, withdraw) = approver.cancellable().map_err(setup_failed)?;
                Ok((Box::new(approver), withdraw))
            }
            Self::Socket(socket) => {
                let (approver, withdraw) = socket.another().cancellable().map_err(setup_failed)?;
                Ok((Box::new(approver), withdraw))
            }
            Self::Terminal(timeout) => at_terminal(TerminalApprover::new(), *timeout),
        }
    }

    /// An approver for a question that interrupts a command.
    pub(super) fn during_command(&self) -> Result<CancellableApprover, ApproverError> {
        match self {
            // Keys typed for the command are no answer.
            Self::Terminal(timeout) => at_terminal(TerminalApprover::new().with_quiet_period(QUIET_TIME), *timeout),
            Self::Program { .. } | Self::Socket(_) | Self::Nobody => self.next(),
        }
    }
}

fn at_terminal(approver: TerminalApprover, timeout: Option<Duration>) -> Result<CancellableApprover, ApproverError> {
    let approver = match timeout {
        Some(timeout) => approver.with_timeout(timeout),
        None => approver,
    };
    let (approver, withdraw) = approver
        .cancellable()
        .map_err(|error| ApproverError::NoDecision(error.to_string()))?;
    Ok((Box::new(approver), withdraw))
}

/// The timeout of every approver but the terminal.
pub(super) fn patience(flags: &ApproverFlags) -> Duration {
    flags.approval_timeout.unwrap_or(DEFAULT_TIMEOUT)
}

/// The approver of one session, and the one that asks while a command runs.
pub(super) fn approver(
    flags: &ApproverFlags,
    policy: &Policy,
    places: &UserPaths,
) -> Result<(Box<dyn Approver + Send>, CancelHandle, ExtraApprover), CliError> {
    let choice = ApproverChoice::of(flags, policy, places)?;
    let (approver, withdraw) = match choice.channel() {
        Some(_) => choice.next().map_err(setup_failed)?,
        // The mode and remembered approvals still decide.
        None => nobody()?,
    };
    let another = Arc::new(move || {
        let (approver, withdraw) = choice.during_command()?;
        Ok((approver, Some(withdraw)))
    });
    Ok((approver, withdraw, another))
}

/// An approver that denies, and a handle without effect.
pub(super) fn nobody() -> Result<CancellableApprover, CliError> {
    let (_, withdraw) = TerminalApprover::new().cancellable().map_err(setup_failed)?;
    Ok((Box::new(Nobody), withdraw))
}

/// An approver that asks nobody and denies.
pub(super) struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::Nobody(
            "`approval.channel` names nobody who is here".to_owned(),
        ))
    }
}

fn setup_failed(error: impl std::fmt::Display) -> CliError {
    CliError::failed(format!("failed to prepare the approver: {error}"))
}

/// Refuses a socket in an unconfined session: commands could read its token.
pub(super) fn refuse_unconfined_socket(flags: &ApproverFlags, is_unconfined: bool) -> Result<(), CliError> {
    match &flags.approvals_socket {
        Some(_) if is_unconfined => Err(CliError::failed(
            "commands of this session run unconfined, so they could approve themselves over the approvals socket",
        )
        .remedy("ask on the terminal, or run where commands can be confined (`stockade doctor`)")),
        Some(_) | None => Ok(()),
    }
}

/// Where `approvals` looks for the sockets of sessions.
pub(super) fn approvals_sockets(name: &Path, state: &Path) -> ApprovalsAddress {
    if is_default_name(name) {
        ApprovalsAddress::Directories(default_socket_directories(state))
    } else {
        ApprovalsAddress::Socket(name.to_owned())
    }
}

/// The default directories for sockets, never empty; a session uses the first. One that was started without `XDG_RUNTIME_DIR`, by a
/// service for example, uses the second.
fn default_socket_directories(state: &Path) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|runtime| runtime.is_absolute() && runtime.is_dir());
    let runtime = runtime.map(|runtime| runtime.join("stockade-approvals"));
    runtime.into_iter().chain([state.join("approvals")]).collect()
}

fn is_default_name(name: &Path) -> bool {
    name == Path::new("default")
}

/// The roots that commands may write, with or without a question.
fn writable(policy: &Policy) -> Vec<AbsPath> {
    let roots = policy.roots.iter().filter(|root| root.rights.has(Right::Write));
    roots.map(|root| root.path.clone()).collect()
}
