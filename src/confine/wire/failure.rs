//! The steps on the way to a running command, and how one fails.

use std::fmt;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::policy::path::escape;

/// The steps of supervisor, forker, runner and command that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Reading the setup.
    Setup,
    /// Closing what was handed down.
    Descriptors,
    /// Leaving the session.
    Session,
    /// Entering namespaces, and what is mounted in all of them.
    Namespaces,
    /// Mounting a place of the plan, or finding something else there.
    Mounts,
    /// Making the sockets that lead out of the network namespace.
    WayOut,
    /// Restoring what a crashed session left.
    Recover,
    /// Giving up capabilities, groups and secure bits.
    Privilege,
    /// Setting resource limits.
    Limits,
    /// Tying the child's life to its parent's.
    ParentDeath,
    /// Setting `no_new_privs`.
    NoNewPrivileges,
    /// Opening a path of the plan, or finding another inode there.
    OpenRule,
    /// Building or applying the Landlock layer.
    Landlock,
    /// Installing the filters.
    Seccomp,
    /// Proving the layer by trying what must fail.
    SelfTest,
    /// Forking.
    Fork,
    /// Recording protected names.
    Protect,
    /// Covering protected names; no command had started.
    Covers,
    /// None: what a command did got it killed, and its session.
    Killed,
    /// Entering the working directory.
    Directory,
    /// Setting up standard streams or the terminal.
    Streams,
    /// Serving attribute calls.
    Broker,
    /// Executing the program.
    Execute,
    /// An argument that cannot be passed on (NUL byte).
    Argument,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setup => "reading the setup",
            Self::Descriptors => "closing descriptors that were handed down",
            Self::Session => "leaving the caller's session",
            Self::Namespaces => "entering namespaces",
            Self::Mounts => "mounting the places of the plan",
            Self::WayOut => "making the way out of the network namespace",
            Self::Recover => "restoring what an interrupted session left",
            Self::Privilege => "dropping capabilities",
            Self::Limits => "setting resource limits",
            Self::ParentDeath => "tying the child's life to its parent's",
            Self::NoNewPrivileges => "setting no_new_privs",
            Self::OpenRule => "opening a path of the plan",
            Self::Landlock => "applying the Landlock layer",
            Self::Seccomp => "installing the seccomp filters",
            Self::SelfTest => "testing the confinement",
            Self::Fork => "forking",
            Self::Protect => "recording protected names",
            Self::Covers => "covering protected names",
            Self::Killed => "running the command",
            Self::Directory => "entering the working directory",
            Self::Streams => "setting up standard streams",
            Self::Broker => "starting the attribute broker",
            Self::Execute => "executing the program",
            Self::Argument => "checking the arguments",
        })
    }
}

/// A step that failed, with the system's word for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct StartFailure {
    /// Which step.
    pub step: Step,
    /// `errno`.
    pub errno: i32,
    /// What it was about; escaped where it is shown, because a child said it.
    pub detail: String,
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = escape(self.detail.as_bytes());
        match self.step {
            Step::Killed => return write!(f, "{detail}"),
            // Its errors say what failed, and why.
            Step::Protect if !detail.is_empty() => return write!(f, "{}: {detail}", self.step),
            _ => {}
        }
        write!(f, "{}: {}", self.step, Errno::from_raw(self.errno).desc())?;
        if self.detail.is_empty() {
            return Ok(());
        }
        write!(f, " ({detail})")
    }
}

impl StartFailure {
    /// A failure of `step`.
    pub fn new(step: Step, errno: Errno, detail: impl Into<String>) -> Self {
        Self {
            step,
            errno: errno as i32,
            detail: detail.into(),
        }
    }

    /// For `map_err`: a failure of `step` without detail.
    pub fn at(step: Step) -> impl Fn(Errno) -> Self {
        move |errno| Self::new(step, errno, "")
    }
}
