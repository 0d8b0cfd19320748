//! Sampled limits: memory and processes of command trees.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use crate::confine::sweep;
use crate::confine::wire::protocol::CommandLimits;

/// How long a runner may take to end a tree that is over a limit: a growing one on a busy machine takes a while.
const RUNNER_GRACE: Duration = Duration::from_secs(15);
/// The same for a runner that somebody stopped.
const STOPPED_GRACE: Duration = Duration::from_secs(5);

/// A runner whose tree is sampled.
#[derive(Debug)]
struct Watched {
    call: u64,
    runner: OwnedFd,
    limits: CommandLimits,
    /// When it was first signaled that its tree is over a limit.
    signaled: Option<Instant>,
}

/// The runners whose trees are sampled.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Watched>);

impl Samples {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Samples the tree of this call's runner from now on.
    pub(crate) fn begin(&mut self, call: u64, runner: OwnedFd, limits: CommandLimits) {
        self.0.push(Watched {
            call,
            runner,
            limits,
            signaled: None,
        });
    }

    pub(crate) fn end(&mut self, call: u64) {
        self.0.retain(|watched| watched.call != call);
    }

    /// Samples each tree, and signals runners whose tree is over a limit; `false` when one does not end its tree: a command may
    /// have stopped it.
    pub(crate) fn take(&mut self) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let table = sweep::Table::read();
        for watched in &mut self.0 {
            let (runner, limits, signaled) = (&watched.runner, watched.limits, &mut watched.signaled);
            let Some(runner) = sweep::pid_of(runner) else { continue };
            let usage = table.usage_below(runner);
            let signal = if limits.processes.is_some_and(|most| usage.processes > most) {
                Signal::SIGUSR2
            } else if limits.memory.is_some_and(|most| usage.resident > most) {
                Signal::SIGUSR1
            } else {
                continue;
            };
            // A runner that is gone already has nothing left to limit.
            let _signalled = kill(runner, signal);
            let grace = if table.is_stopped(runner) {
                STOPPED_GRACE
            } else {
                RUNNER_GRACE
            };
            if signaled.get_or_insert_with(Instant::now).elapsed() > grace {
                return false;
            }
        }
        true
    }
}
