//! Attribute calls of a command → judged, performed and answered on its behalf.
//!
//! chmod, chown, utime and the xattr calls go past Landlock, so a command's filter hands them to its
//! runner, which serves them here. [`call`] reads from the caller what it asks for, [`target`] resolves
//! the object meant to a descriptor, [`place`] holds that against the plan, [`change`] acts on it.
//!
//! The call itself never runs: what the caller's memory or the tree says after the broker looked at it
//! changes nothing. The object that was judged is the object that is changed, because both go through
//! one descriptor. If it is renamed in between, the outcome is the one of a call just before the
//! rename; a command can only rename between places it may write, so nothing is gained. A hard link is
//! judged by the name it was reached through, as Landlock judges its content; a command cannot make a
//! link from outside into its roots.
//!
//! When the broker dies its listener closes, and every later call fails with `ENOSYS`.

mod arguments;
mod call;
mod caller;
mod change;
mod place;
mod target;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::backend::attributes::AttributePlan;
use crate::confine::sys::attributes::Listener;
use call::Call;
use caller::{Caller, Proc};

/// The attribute broker of one command.
///
/// Its process must be a parent of the command's whole tree with the same user, groups and (no)
/// capabilities, in the same mount and PID namespaces, so that acting in the command's place gives it
/// nothing that it lacks. It needs no right to open anything for reading.
#[derive(Debug)]
pub struct Broker {
    listener: Listener,
    proc: Proc,
    plan: AttributePlan,
}

/// Why there can be no broker. The command must not run then.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The kernel does not say how large a notification is.
    #[error("failed to size seccomp notifications: {0}")]
    Sizes(Errno),
    /// `/proc` could not be opened.
    #[error("failed to open /proc: {0}")]
    OpenProc(Errno),
    /// What is mounted at `/proc` could not be told.
    #[error("failed to inspect /proc: {0}")]
    InspectProc(Errno),
    /// Something else is mounted at `/proc`.
    #[error("/proc is not the proc file system")]
    NotProc,
    /// `/proc` belongs to another PID namespace, so its numbers mean other processes.
    #[error("/proc shows another PID namespace")]
    ForeignProc,
}

/// What came of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// No call waits.
    Idle,
    /// One call was answered.
    Answered,
    /// The caller was killed before its answer.
    Departed,
    /// No process of the command is left to call; the broker can be dropped.
    Over,
    /// The listener is broken: drop the broker, which fails all calls, and end the command.
    Broken(Errno),
}

impl Broker {
    /// The broker behind `listener`, changing attributes only where `plan` permits.
    pub fn new(listener: OwnedFd, plan: AttributePlan) -> Result<Self, BrokerError> {
        let listener = Listener::new(listener).map_err(BrokerError::Sizes)?;
        let proc = Proc::open()?;
        Ok(Self { listener, proc, plan })
    }

    /// Serves one waiting call, if there is one. Never waits for one.
    pub fn serve(&mut self) -> Served {
        match self.ready() {
            Ok(Ready::Call) => {}
            Ok(Ready::Nothing) => return Served::Idle,
            Ok(Ready::Over) => return Served::Over,
            Err(errno) => return Served::Broken(errno),
        }
        let notification = match self.listener.receive() {
            Ok(notification) => notification,
            Err(Errno::ENOENT) => return Served::Departed,
            Err(Errno::EINTR | Errno::EAGAIN) => return Served::Idle,
            Err(errno) => return Served::Broken(errno),
        };
        let answer = self.perform(&notification);
        loop {
            match self.listener.answer(notification.id, answer) {
                Ok(()) => return Served::Answered,
                Err(Errno::ENOENT) => return Served::Departed,
                Err(Errno::EINTR) => {}
                Err(errno) => return Served::Broken(errno),
            }
        }
    }

    fn perform(&self, notification: &libc::seccomp_notif) -> Result<(), Errno> {
        let caller = Caller::new(&self.listener, &self.proc, notification)?;
        match call::decode(&caller, &notification.data)? {
            Call::Nothing => Ok(()),
            Call::Change { target, change } => {
                let object = target::resolve(&caller, &target)?;
                change.judge(&self.plan, &self.proc, &object)?;
                change.perform(&object)
            }
        }
    }

    fn ready(&self) -> Result<Ready, Errno> {
        let mut fds = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::ZERO) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let seen = fds[0].revents().unwrap_or(PollFlags::empty());
        if seen.contains(PollFlags::POLLIN) {
            Ok(Ready::Call)
        } else if seen.contains(PollFlags::POLLHUP) {
            Ok(Ready::Over)
        } else if seen.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL) {
            Err(Errno::EBADF)
        } else {
            Ok(Ready::Nothing)
        }
    }
}

/// What the listener has for us.
enum Ready {
    Call,
    Nothing,
    Over,
}

impl AsFd for Broker {
    /// The listener, readable when a call waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
