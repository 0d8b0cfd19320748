//! The number of processes of a command's tree, counted by the kernel.
//!
//! `RLIMIT_NPROC` counts per user namespace. In a forker's own namespace only the forker, its runners and their commands run, so
//! the limit for a command is exact. It is tried before it is relied on, because the kernel does not count for the host's root.

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::wait::{WaitStatus, waitpid};

use crate::confine::forker::forker_parent::ForkerParent;
use crate::confine::sys;
use crate::confine::wire::protocol::{CommandLimits, Counting, StartFailure, Step};

/// The forker.
const FORKER_TASKS: u64 = 1;

/// Whether the counting was tried.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    is_proven: bool,
}

impl Counter {
    /// The limit of tasks in the user namespace with one more command, where the kernel counts them. Commands that run at the same
    /// time count together, which makes no limit wider.
    pub(crate) fn most_tasks(
        &mut self,
        limits: CommandLimits,
        parent: ForkerParent,
        running: usize,
    ) -> Result<Option<u64>, StartFailure> {
        let processes = match (limits.counting, limits.processes) {
            (Counting::Namespace, Some(processes)) => processes,
            (Counting::Sampled | Counting::Group, _) | (Counting::Namespace, None) => return Ok(None),
        };
        let failed = |what: String| StartFailure::new(Step::SelfTest, Errno::EPROTO, what);
        match parent {
            ForkerParent::Supervisor(_) => return Err(failed("there is no user namespace to count in".to_owned())),
            ForkerParent::Hidden if self.is_proven => {}
            ForkerParent::Hidden => {
                tasks_are_counted(FORKER_TASKS).map_err(failed)?;
                self.is_proven = true;
            }
        }
        let runners = u64::try_from(running).unwrap_or(u64::MAX).saturating_add(1);
        Ok(Some(processes.saturating_add(FORKER_TASKS).saturating_add(runners)))
    }
}

/// Tries that the kernel counts the tasks of this user namespace and no others: `there` now, and one more for the test. It must
/// refuse exactly the first task above the limit.
fn tasks_are_counted(there: u64) -> Result<(), String> {
    let failed = |errno: Errno| format!("whether processes are counted cannot be tried: {}", errno.desc());
    match sys::fork().map_err(failed)? {
        None => sys::exit_now(match count_here(there + 1) {
            Ok(()) => 0,
            Err(_) => 1,
        }),
        Some(child) => match waitpid(child, None).map_err(failed)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            _ => Err("the kernel does not count the processes of the sandbox alone".to_owned()),
        },
    }
}

fn count_here(there: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NPROC)?;
    let fork_under = |most: u64| {
        setrlimit(Resource::RLIMIT_NPROC, most, hard)?;
        match sys::fork()? {
            None => sys::exit_now(0),
            Some(child) => waitpid(child, None),
        }
    };
    match fork_under(there) {
        Err(Errno::EAGAIN) => {}
        Ok(_) | Err(_) => return Err(Errno::EPROTO),
    }
    fork_under(there + 1).map(drop)
}
