//! The messages between parent, forker, supervisor and runner; [`crate::confine::wire`] moves them.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::backend::Plan;
use crate::confine::io::InputKind;
use crate::confine::wire::attempted::Attempted;
pub use crate::confine::wire::failure::{StartFailure, Step};
pub use crate::confine::wire::forker_for::ForkerFor;
pub use crate::confine::wire::forker_location::ForkerLocation;
pub use crate::confine::wire::protected_names::{CoverScope, Covered, ProtectSetup, Violation};

/// The first message to the supervisor, before the session directory exists, which it must remove if the parent dies. The
/// supervisor's end of the socket for [`OfferRequest`] comes with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Announcement {
    /// The session directory.
    pub session: OsString,
    /// Writable roots whose protected names are watched, and where the journal lies; `None`: none.
    pub protect: Option<ProtectSetup>,
    /// Where the forker will run.
    pub location: ForkerLocation,
}

/// The first message to the forker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetupMessage {
    /// How the forker and each command are confined; `None` only where the config permits running unconfined.
    pub plan: Option<Plan>,
    /// What it is started for.
    pub forker_for: ForkerFor,
}

/// Parent → forker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Starts a command; its standard streams come with it, and `cgroup.procs` of its control group, where it has one.
    Start(Start),
    /// Ends a command: first with this signal, then, after the grace period, with SIGKILL.
    Cancel {
        /// Which call.
        call: u64,
        /// The first signal.
        signal: i32,
    },
    /// Makes a way out of the network namespace, for the next command; only where the plan has one.
    WayOut,
}

/// One command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// The caller's number for it.
    pub call: u64,
    /// What it does.
    pub work: Work,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: OsString,
    /// Its bounds.
    pub limits: CommandLimits,
    /// What its standard input is.
    pub input: InputKind,
}

/// What runs behind the layer of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A program and its arguments; not empty.
    Command(Vec<OsString>),
    /// The [file server](crate::confine::files); standard input is its socket.
    Files(Watch),
}

impl Work {
    /// Whether protected names are recorded before and settled after.
    pub const fn watch(&self) -> Watch {
        match self {
            Self::Command(_) => Watch::ProtectedNames,
            Self::Files(watch) => *watch,
        }
    }
}

/// Whether protected names are recorded before a piece of work and settled after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watch {
    /// They are.
    ProtectedNames,
    /// They are not: it is Stockade's own code, and writes nothing.
    Nothing,
}

/// The bounds that runner, rlimits and supervisor hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Wall-clock milliseconds.
    pub timeout_ms: Option<u64>,
    /// Resident bytes of the tree; sampled.
    pub memory: Option<u64>,
    /// Processes and threads of the tree.
    pub processes: Option<u64>,
    /// How that is held.
    pub counting: Counting,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
}

impl CommandLimits {
    /// Whether the kernel counts the processes of a command. Then it cannot use a spare runner, which would be counted wrongly.
    pub const fn is_counted(self) -> bool {
        match self.counting {
            // A spare was forked outside the group.
            Counting::Group => true,
            Counting::Namespace => self.processes.is_some(),
            Counting::Sampled => false,
        }
    }
}

/// How the number of processes of a tree is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Counting {
    /// The supervisor counts at intervals.
    #[default]
    Sampled,
    /// The kernel counts what runs in the forker's user namespace; the forker tries that first.
    Namespace,
    /// The kernel counts in a control group, which bounds memory as well; its `cgroup.procs` comes with the request.
    Group,
}

/// Forker → parent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// What the supervisor restored after an earlier session; its first message.
    Recovered(PutBack),
    /// What mounts are to cover, before the plan is made; only [behind mounts](ForkerLocation::is_behind_mounts).
    ToCover(Vec<Covered>),
    /// The forker is confined and its self-test passed.
    Ready,
    /// The session cannot start; the forker has exited.
    Refused(StartFailure),
    /// A self-test found a hole; the forker has exited.
    SelfTestFailed(String),
    /// The forker begins with this call. A call without this was never started.
    Accepted(u64),
    /// A command ended, and its whole tree with it.
    Ended(Ended),
    /// The sockets of a way out come with it; or why there are none.
    WayOut(Result<Loopback, StartFailure>),
    /// The forker and all it started are dead. From the supervisor, with what it restored after running commands.
    ForkerExited(PutBack),
}

/// The loopback addresses of a network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loopback {
    /// 127.0.0.1 alone: this kernel has no IPv6.
    V4,
    /// 127.0.0.1 and `::1`, in this order.
    Both,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Which call.
    pub call: u64,
    /// How.
    pub end: End,
    /// What became of protected names, as the supervisor reports it.
    pub put_back: PutBack,
    /// What it attempted, where the plan records that.
    pub attempted: Attempted,
}

/// What the supervisor found and restored after a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBack {
    /// Protected names that were restored.
    pub violations: Vec<Violation>,
    /// Why the rest could not be, if not all was.
    pub unsettled: Option<String>,
    /// What is new, protected by no list, and may be read or run by programs of the host.
    pub appeared: Appeared,
}

impl PutBack {
    /// Nothing could be put back, or it is not known.
    pub fn failed(why: String) -> Self {
        Self {
            unsettled: Some(why),
            ..Self::default()
        }
    }

    /// Whether protected names were changed, or could not be looked at.
    pub const fn is_something(&self) -> bool {
        !self.violations.is_empty() || self.unsettled.is_some()
    }
}

/// New dotfiles and executables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appeared {
    /// The first of them.
    pub paths: Vec<OsString>,
    /// How many more there are.
    pub more: u64,
    /// Whether there was too much to look at all of it.
    pub is_cut: bool,
}

/// How a command's first process ended, or why there was none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signaled(i32),
    /// It ran out of time and was killed.
    TimedOut,
    /// It was cancelled and killed.
    Cancelled,
    /// Its tree went over a limit and was killed.
    OverLimit(LimitKind),
    /// The bounds of its control group were taken away; its tree was killed.
    Unbounded,
    /// It was never started.
    NotStarted(StartFailure),
    /// Its runner or its forker was killed; every process of every command of the session was killed with it.
    Lost,
    /// The forker ended itself and all that it had started, for this reason.
    Aborted(StartFailure),
}

/// A limit that is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitKind {
    /// Resident memory of the tree.
    Memory,
    /// Number of processes of the tree.
    Processes,
}

/// Forker → supervisor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum SupervisorRequest {
    /// Record protected names; a command is about to start.
    Snapshot,
    /// Compare and restore; no process of the command is left.
    Settle,
    /// Sample the tree of a runner against these limits until [`Self::Unwatch`]. A pidfd of the runner comes with it: its pid may
    /// mean another process where the supervisor is.
    Watch {
        /// The call it serves.
        call: u64,
        /// Its bounds.
        limits: CommandLimits,
    },
    /// The runner's command has ended.
    Unwatch {
        /// The call it served.
        call: u64,
    },
}

/// Supervisor → forker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum SupervisorReply {
    /// Protected names are recorded.
    Recorded,
    /// What was put back, and why the rest could not be, if not all was.
    Settled(PutBack),
    /// They could not be recorded.
    Failed(String),
}

/// Parent → supervisor, over a socket that no forker and no command has, so that they cannot forge a person's decision.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum OfferRequest {
    /// Which changes of the last command, all undone, may be put back?
    Offer,
    /// Put them back.
    PutBack {
        /// The hash of what was shown.
        digest: [u8; 32],
    },
}

/// Supervisor → parent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum OfferReply {
    /// These may, if any.
    Offer(Option<Offer>),
    /// Each entry is there again, or why it is not.
    PutBack(Vec<Result<(), String>>),
}

/// Changes to protected names that were undone and may be put back, with one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// A hash of each path, of what is there and of what would be.
    pub digest: [u8; 32],
    /// The protected paths, and what the command did to each.
    pub entries: Vec<(OsString, String)>,
    /// All of it as lines of text, not escaped.
    pub text: String,
}

/// Runner → forker: how the command ended; sent when its tree is dead and reaped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunnerReport {
    /// How.
    pub end: End,
    /// What was attempted, where that is recorded.
    pub attempted: Attempted,
}

impl RunnerReport {
    /// The report of a command that never began.
    pub(crate) fn not_started(failure: StartFailure) -> Self {
        Self {
            end: End::NotStarted(failure),
            attempted: Attempted::default(),
        }
    }
}

/// Forker → runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunnerRequest {
    /// Sets the timeout of a command that a spare runner got.
    SetTimeout {
        /// Wall-clock milliseconds from now on.
        timeout_ms: u64,
    },
    /// Ends the command: first with this signal.
    Stop {
        /// The first signal to send.
        signal: i32,
    },
}
