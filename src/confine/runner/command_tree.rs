//! A command's process tree with the listener of its attribute calls, which closes only when the tree is dead.
//!
//! The kernel permits one listener in a stack of filters, and another once the first is closed. A descendant that is
//! still alive then could install its own and permit its own calls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::unistd::getppid;

use crate::confine::forker::compiled::Compiled;
use crate::confine::layers::ruleset;
use crate::confine::layers::selftest::signals_are_scoped;
use crate::confine::runner::command::Handover;
use crate::confine::sweep;
use crate::confine::sweep::Reaped;
use crate::confine::wire::receive;

/// How long a runner tries to kill a tree without a scope.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// What a runner's `kill(-1)` would reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillScope {
    /// The command's tree: a Landlock scope limits its signals.
    Scope,
    /// The forker and others of its commands, in a PID namespace; the kernel knows no scopes.
    Namespace,
    /// Everything of this user: nothing confines commands.
    Nothing,
}

impl KillScope {
    pub(crate) fn of(compiled: Option<&Compiled>) -> Self {
        match compiled {
            Some(compiled) if ruleset::has_scopes(&compiled.plan.landlock) => Self::Scope,
            Some(_) => Self::Namespace,
            None => Self::Nothing,
        }
    }
}

/// The result of killing a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// It is dead and reaped.
    Complete,
    /// Some of it may be alive.
    Incomplete,
}

/// A tree, and all descriptors of its listener in the runner. Dropping it kills the tree first: fields are dropped after
/// [`Drop::drop`] has returned.
#[derive(Debug)]
pub(crate) struct CommandTree {
    kill_scope: KillScope,
    /// The handover socket until `execve`. A listener can lie in it unread.
    handover: Option<OwnedFd>,
    /// Received listeners. The broker has a copy, so that it can end earlier or never begin.
    listeners: Vec<OwnedFd>,
}

impl CommandTree {
    pub(crate) const fn new(kill_scope: KillScope, handover: OwnedFd) -> Self {
        Self {
            kill_scope,
            handover: Some(handover),
            listeners: Vec::new(),
        }
    }

    /// The handover socket, while it is open.
    pub(crate) fn handover(&self) -> Option<BorrowedFd<'_>> {
        self.handover.as_ref().map(AsFd::as_fd)
    }

    /// Receives the next message of the child, and blocks until then. `None` when it has become the command, or is dead.
    pub(crate) fn receive_handover(&mut self) -> io::Result<Option<Handover>> {
        let Some(handover) = &self.handover else {
            return Ok(None);
        };
        let Some((message, descriptors)) = receive::<Handover>(handover)? else {
            self.handover = None;
            return Ok(None);
        };
        self.listeners.extend(descriptors);
        Ok(Some(message))
    }

    /// A copy of the listener, for the broker; `None` where none arrived.
    pub(crate) fn listener(&self) -> io::Result<Option<OwnedFd>> {
        self.listeners.first().map(OwnedFd::try_clone).transpose()
    }

    /// Kills what is left of the tree and reaps it. Without a scope this needs /proc, and a fork bomb can be faster.
    pub(crate) fn kill_tree(&self) -> Killed {
        match self.kill_scope {
            // A runner that failed early has no scope yet.
            KillScope::Scope if signals_are_scoped(getppid()) => sweep::kill_scoped(),
            KillScope::Scope | KillScope::Nothing => sweep::kill_descendants(),
            KillScope::Namespace => {
                if !sweep::kill_descendants_until(Instant::now() + SWEEP_TIMEOUT) {
                    return Killed::Incomplete;
                }
            }
        }
        Killed::Complete
    }
}

impl Drop for CommandTree {
    fn drop(&mut self) {
        while sweep::reap() != Reaped::NoneLeft {
            self.kill_tree();
        }
    }
}
