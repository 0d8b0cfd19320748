//! Entering namespaces: process 1 inside, and the process outside that waits for it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getppid, pipe2};

use super::super::sys;
use super::ids::Ids;
use super::mount_tree::MountTree;
use crate::backend::namespaces::{MountPlan, NetworkNamespace};
use crate::confine::layers::privilege;
use crate::confine::wire::protocol::{StartFailure, Step};

/// The exit code of the waiting process when process 1 was killed.
const KILLED: i32 = 1;

/// New namespaces with an empty root, as process 1 has them.
#[derive(Debug)]
pub(crate) struct NewNamespaces {
    ids: Ids,
    tree: MountTree,
}

/// Enters namespaces and returns in process 1. The calling process waits for it and never returns.
///
/// Both die when `parent` does. Only the descriptors `kept` and the standard streams stay open.
///
/// # Errors
/// Returned in the process that failed, which must report it and exit.
pub(crate) fn enter(
    network: NetworkNamespace,
    parent: Pid,
    kept: &[BorrowedFd<'_>],
) -> Result<NewNamespaces, StartFailure> {
    let failed = |what: &'static str| move |errno| StartFailure::new(Step::Namespaces, errno, what);
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(StartFailure::at(Step::ParentDeath))?;
    if getppid() != parent {
        return Err(StartFailure::new(
            Step::ParentDeath,
            Errno::ESRCH,
            "the supervisor is gone",
        ));
    }
    sys::close_all_but(kept).map_err(failed("descriptors"))?;
    let ids = Ids::current();
    ids.enter_as_root()?;
    let (parent_pipe, alive) = pipe2(OFlag::O_CLOEXEC).map_err(failed("a pipe"))?;
    if let Some(enter) = sys::fork().map_err(failed("the first process"))? {
        drop(parent_pipe);
        let done = privilege::drop_in_namespaces()
            .and_then(|()| sys::close_all_but(&[alive.as_fd()]).map_err(failed("descriptors")));
        match done {
            Ok(()) => sys::exit_now(wait_for(enter)),
            Err(failure) => {
                // Only this process reports, and the other one must not continue.
                let _killed = kill(enter, Signal::SIGKILL);
                let _ended = waitpid(enter, None);
                return Err(failure);
            }
        }
    }
    drop(alive);
    enter_others(network, &parent_pipe)?;
    drop(parent_pipe);
    let tree = MountTree::begin()?;
    Ok(NewNamespaces { ids, tree })
}

impl NewNamespaces {
    /// Mounts as planned. Only the descriptors `kept` and the standard streams stay open. Errors are handled as those of [`enter`].
    pub(crate) fn apply(self, plan: &MountPlan, kept: &[BorrowedFd<'_>]) -> Result<(), StartFailure> {
        let Self { ids, mut tree } = self;
        for step in &plan.steps {
            tree.run_step(step)?;
        }
        let proc = tree.enter()?;
        ids.enter_as_user(&proc)?;
        drop(proc);
        privilege::drop_in_namespaces()?;
        sys::close_all_but(kept).map_err(StartFailure::at(Step::Descriptors))
    }
}

fn enter_others(network: NetworkNamespace, parent_pipe: &OwnedFd) -> Result<(), StartFailure> {
    let failed = |what: &'static str| move |errno| StartFailure::new(Step::Namespaces, errno, what);
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(StartFailure::at(Step::ParentDeath))?;
    // The parent has no pid here, but the pipe hangs up when it dies.
    let mut fds = [PollFd::new(parent_pipe.as_fd(), PollFlags::empty())];
    if poll(&mut fds, PollTimeout::ZERO).map_err(StartFailure::at(Step::ParentDeath))? != 0 {
        return Err(StartFailure::new(
            Step::ParentDeath,
            Errno::ESRCH,
            "the supervisor is gone",
        ));
    }
    let mut namespaces =
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWCGROUP;
    match network {
        NetworkNamespace::Own => namespaces |= CloneFlags::CLONE_NEWNET,
        NetworkNamespace::Host => {}
    }
    unshare(namespaces).map_err(failed("new namespaces"))?;
    match network {
        NetworkNamespace::Own => {
            let any = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
            any.and_then(|any| sys::bring_up_loopback(any.as_fd()))
                .map_err(failed("the loopback"))
        }
        NetworkNamespace::Host => Ok(()),
    }
}

fn wait_for(child: Pid) -> i32 {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return code,
            Err(Errno::EINTR) => {}
            Ok(_) | Err(_) => return KILLED,
        }
    }
}
