//! The listener of a command's attribute calls, which closes when the tree is dead and not before.
//!
//! The kernel permits one listener in a stack of filters, and another once the first is closed. A descendant that is
//! still alive then could listen in the runner's place and let its own calls pass.

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

/// How long a runner looks for what is left of a tree.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// What a runner is alone with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillScope {
    /// The command's tree: a scope keeps its signals there.
    Scope,
    /// The forker and others of its commands, in a PID namespace; the kernel knows no scopes.
    Namespace,
    /// Everything of this user: nothing confines commands.
    Nothing,
}

impl KillScope {
    /// What is around the runner of a command with this plan.
    pub(crate) fn of(compiled: Option<&Compiled>) -> Self {
        match compiled {
            Some(compiled) if ruleset::has_scopes(&compiled.plan.landlock) => Self::Scope,
            Some(_) => Self::Namespace,
            None => Self::Nothing,
        }
    }
}

/// What became of a tree that was to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// It is dead and reaped.
    Complete,
    /// Some of it lives, or may.
    Incomplete,
}

/// A tree, and all that holds its listener open in the runner. Dropping it ends the tree first: fields are dropped
/// after [`Drop::drop`] has returned.
#[derive(Debug)]
pub(crate) struct CommandTree {
    kill_scope: KillScope,
    /// Where the child speaks from until it becomes the command. A listener can lie in it unread.
    handover: Option<OwnedFd>,
    /// What arrived. The broker has a copy, so that it can end earlier or never begin.
    listeners: Vec<OwnedFd>,
}

impl CommandTree {
    /// The tree of a child that was just forked, and speaks from `handover`.
    pub(crate) const fn new(kill_scope: KillScope, handover: OwnedFd) -> Self {
        Self {
            kill_scope,
            handover: Some(handover),
            listeners: Vec::new(),
        }
    }

    /// Where the child speaks from, while it does.
    pub(crate) fn handover(&self) -> Option<BorrowedFd<'_>> {
        self.handover.as_ref().map(AsFd::as_fd)
    }

    /// What the child says next; blocks until it does. `None` when it has become the command, or is dead.
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

    /// Ends what is left of the tree and reaps it. Without a scope it takes looking for each process, which a swarm can
    /// outrun, and which /proc must be readable for.
    pub(crate) fn kill_tree(&self) -> Killed {
        match self.kill_scope {
            // Not in its scope yet, if it failed before.
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
