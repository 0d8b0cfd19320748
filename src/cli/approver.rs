//! The approver flags → whoever answers.
//!
//! Only flags name an approver program or a socket: a config may have come with the files it speaks of.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::complain::{Complaint, say};
use super::flags::ApproverFlags;
use crate::approval::{
    ApprovalDecision, ApprovalRequest, ApprovalsPlace, Approver, ApproverError, CancelHandle, Presentation,
    ProgramApprover, SocketApprover, TerminalApprover,
};
use crate::config;
use crate::policy::path::display;
use crate::policy::{AbsPath, Channel, Policy, Right};
use crate::tools::{ExtraApprover, UserPaths, approver_program, reachable_reason, terminal_size};

/// How long a program, or whoever comes to a socket, may take.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long nothing is typed before an answer to a question counts that came up while a command runs.
const QUIET: Duration = Duration::from_secs(1);

/// Who answers, and what withdraws the questions.
pub(super) type Answering = (Box<dyn Approver + Send>, CancelHandle);

/// Whoever was named, for one question after the other or several at once.
pub(super) enum Answerer {
    /// A program, started anew for each question.
    Program {
        program: PathBuf,
        writable: Vec<AbsPath>,
        patience: Duration,
    },
    /// Whoever comes to this socket.
    Socket(SocketApprover),
    /// The person at the terminal.
    Terminal(Option<Duration>),
    /// Nobody: the config names no one who is here.
    Nobody,
}

impl Answerer {
    /// Whoever the flags name; the person at the terminal where they name nobody. The config may say who may be asked.
    pub(super) fn of(flags: &ApproverFlags, policy: &Policy, places: &UserPaths) -> Result<Self, Complaint> {
        let patience = patience(flags);
        let may = |channel: Channel, flag: &str| {
            if policy.channels.allow(channel) {
                return Ok(());
            }
            Err(Complaint::failed(format!(
                "nobody may be asked by a {channel}: `approval.channel` does not name it"
            ))
            .remedy(format!(
                "leave out {flag}, or have the config (and every ceiling) name `{channel}`"
            )))
        };
        if let Some(program) = &flags.approver_program {
            may(Channel::Program, "--approver-program")?;
            let answerer = Self::Program {
                program: program.clone(),
                writable: writable(policy),
                patience,
            };
            // What cannot be used is better said before anything is asked.
            answerer.next().map_err(|error| {
                Complaint::failed(error)
                    .remedy("an approver program is yours alone, and lies outside every root that commands may write")
            })?;
            return Ok(answerer);
        }
        if let Some(named) = &flags.approvals_socket {
            may(Channel::Socket, "--approvals-socket")?;
            let reachable = |path: &AbsPath| reachable_reason(policy, path);
            let approver = if is_default(named) {
                let directory = default_places(&places.state).swap_remove(0);
                config::register_socket_dir(&places.state, &directory).map_err(|error| {
                    let directory = display(&directory);
                    Complaint::failed(format!(
                        "{directory}, a place for sockets, cannot be kept from commands: {error}"
                    ))
                })?;
                SocketApprover::among_others(&directory, patience, reachable)
            } else {
                SocketApprover::new(named, patience, reachable)
            };
            return approver.map(Self::Socket).map_err(|error| {
                Complaint::failed(error)
                    .remedy("name a place in a directory of your own, outside of everything that commands may reach")
            });
        }
        Ok(if policy.channels.allow(Channel::Terminal) {
            Self::Terminal(flags.approval_timeout)
        } else {
            Self::Nobody
        })
    }

    /// Where it asks, if anybody is asked.
    pub(super) const fn channel(&self) -> Option<Channel> {
        match self {
            Self::Program { .. } => Some(Channel::Program),
            Self::Socket(_) => Some(Channel::Socket),
            Self::Terminal(_) => Some(Channel::Terminal),
            Self::Nobody => None,
        }
    }

    /// An approver for one call.
    pub(super) fn next(&self) -> Result<Answering, ApproverError> {
        let unprepared = |error: std::io::Error| ApproverError::NoDecision(error.to_string());
        match self {
            Self::Nobody => Err(ApproverError::Nobody(
                "`approval.channel` names nobody who is here".to_owned(),
            )),
            Self::Program {
                program,
                writable,
                patience,
            } => {
                let tell = |line: &str| say(&format!("stockade: the approver program says: {line}\n"));
                let approver = ProgramApprover::new(program, writable, *patience, approver_program::run, tell)?;
                let (approver, withdraw) = approver.cancellable().map_err(unprepared)?;
                Ok((Box::new(approver), withdraw))
            }
            Self::Socket(socket) => {
                let (approver, withdraw) = socket.another().cancellable().map_err(unprepared)?;
                Ok((Box::new(approver), withdraw))
            }
            Self::Terminal(timeout) => at_terminal(TerminalApprover::new(terminal_size), *timeout),
        }
    }

    /// An approver for a question that comes up while a command runs.
    pub(super) fn meanwhile(&self) -> Result<Answering, ApproverError> {
        match self {
            // Whoever types for the command has not read the question yet.
            Self::Terminal(timeout) => at_terminal(TerminalApprover::new(terminal_size).after_quiet(QUIET), *timeout),
            Self::Program { .. } | Self::Socket(_) | Self::Nobody => self.next(),
        }
    }
}

fn at_terminal(approver: TerminalApprover, timeout: Option<Duration>) -> Result<Answering, ApproverError> {
    let approver = match timeout {
        Some(timeout) => approver.with_timeout(timeout),
        None => approver,
    };
    let (approver, withdraw) = approver
        .cancellable()
        .map_err(|error| ApproverError::NoDecision(error.to_string()))?;
    Ok((Box::new(approver), withdraw))
}

/// How long somebody else than the person at the terminal may take.
pub(super) fn patience(flags: &ApproverFlags) -> Duration {
    flags.approval_timeout.unwrap_or(PATIENCE)
}

/// Whoever answers the calls of one session, and whoever is asked while a command of it runs.
pub(super) fn approver(
    flags: &ApproverFlags,
    policy: &Policy,
    places: &UserPaths,
) -> Result<(Box<dyn Approver + Send>, CancelHandle, ExtraApprover), Complaint> {
    let answerer = Answerer::of(flags, policy, places)?;
    let (approver, withdraw) = match answerer.channel() {
        Some(_) => answerer.next().map_err(unprepared)?,
        // The mode, and what was approved before, decide all the same.
        None => nobody()?,
    };
    let another = Arc::new(move || {
        let (approver, withdraw) = answerer.meanwhile()?;
        Ok((approver, Some(withdraw)))
    });
    Ok((approver, withdraw, another))
}

/// An approver that says no.
pub(super) fn nobody() -> Result<Answering, Complaint> {
    // Its questions are over at once.
    let (_, withdraw) = TerminalApprover::new(terminal_size).cancellable().map_err(unprepared)?;
    Ok((Box::new(Nobody), withdraw))
}

/// Nobody is asked, so the answer is no.
pub(super) struct Nobody;

impl Approver for Nobody {
    fn ask(&mut self, _: &ApprovalRequest, _: &Presentation) -> Result<ApprovalDecision, ApproverError> {
        Err(ApproverError::Nobody(
            "`approval.channel` names nobody who is here".to_owned(),
        ))
    }
}

fn unprepared(error: impl std::fmt::Display) -> Complaint {
    Complaint::failed(format!("failed to prepare the approver: {error}"))
}

/// Refuses a socket where nothing keeps commands from its token.
pub(super) fn hold_apart(flags: &ApproverFlags, is_unconfined: bool) -> Result<(), Complaint> {
    match &flags.approvals_socket {
        Some(_) if is_unconfined => Err(Complaint::failed(
            "commands of this session run unconfined, so they could approve themselves over the approvals socket",
        )
        .remedy("ask on the terminal, or run where commands can be confined (`stockade doctor`)")),
        Some(_) | None => Ok(()),
    }
}

/// Where `approvals` looks for sessions.
pub(super) fn approvals_place(named: &Path, state: &Path) -> ApprovalsPlace {
    if is_default(named) {
        ApprovalsPlace::In(default_places(state))
    } else {
        ApprovalsPlace::At(named.to_owned())
    }
}

/// The directories in which sessions have their sockets by default, never empty: they take the first. A session that was started
/// without the variable, by a service for one, is in the other.
fn default_places(state: &Path) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|runtime| runtime.is_absolute() && runtime.is_dir());
    let runtime = runtime.map(|runtime| runtime.join("stockade-approvals"));
    runtime.into_iter().chain([state.join("approvals")]).collect()
}

fn is_default(named: &Path) -> bool {
    named == Path::new("default")
}

/// The roots that commands may write, asked or not.
fn writable(policy: &Policy) -> Vec<AbsPath> {
    let roots = policy.roots.iter().filter(|root| root.rights.has(Right::Write));
    roots.map(|root| root.path.clone()).collect()
}
