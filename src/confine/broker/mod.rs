//! Attribute calls of a command → judged, performed and answered on its behalf.
//!
//! chmod, chown, utime and the xattr calls go past Landlock, so a command's filter hands them to its
//! runner, which serves them here. [`call`] reads the arguments from the caller, [`target`] resolves the object to a descriptor,
//! [`permission`] checks it against the plan, [`change`] makes the change.
//!
//! The call itself never runs: what the caller's memory or the tree says after the broker looked at it
//! changes nothing. The object that was judged is the object that is changed, because both go through
//! one descriptor. If it is renamed in between, the outcome is the one of a call just before the
//! rename; a command can only rename between places it may write, so nothing is gained. A hard link is
//! judged by the name it was reached through, as Landlock judges its content; a command cannot make a
//! link from outside into its roots.
//!
//! Where denials are to be explained, the filter also hands over other calls: [`attempt`] reads them, [`lookup`] resolves their
//! paths, [`attempts`] records them. Such a call continues in the kernel, whatever was read, and what the table refuses is refused.
//!
//! Calls that change a process by its pid continue where the pid is the caller's own: [`own_pid`].
//!
//! Where private copies cover protected files, renames are handed over as well: [`rename`] emulates those onto a copy.
//!
//! When the listener closes, every later call fails with `ENOSYS`, and the kernel would permit another listener. So the
//! runner closes its own last of all, and a command's filters refuse it any.

mod acl;
mod address;
mod arguments;
mod attempt;
mod attempts;
mod call;
mod caller;
mod change;
mod error;
mod lookup;
mod own_pid;
mod permission;
mod rename;
mod target;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::backend::attributes::AttributePlan;
use crate::backend::seccomp::CallKind;
use crate::confine::sys::attributes::Listener;
pub use attempts::{Attempts, Origin};
use call::Call;
use caller::{Caller, Proc};
pub use error::BrokerError;

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
    /// Private copies onto which renames are emulated, by device and inode.
    copies: Vec<(u64, u64)>,
}

/// The result of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// No call waits.
    Idle,
    /// One call was answered.
    Answered,
    /// The caller was killed before its answer.
    CallerExited,
    /// No process of the command is left to call; the broker can be dropped.
    NoCallers,
    /// The listener is broken: drop the broker and end the command.
    Broken(Errno),
}

impl Broker {
    /// The broker behind `listener`, changing attributes only where `plan` permits.
    pub fn new(listener: OwnedFd, plan: AttributePlan) -> Result<Self, BrokerError> {
        let listener = Listener::new(listener).map_err(BrokerError::Sizes)?;
        let proc = Proc::open()?;
        Ok(Self {
            listener,
            proc,
            plan,
            copies: Vec::new(),
        })
    }

    /// The same, emulating renames onto these private copies, given by device and inode.
    #[must_use]
    pub fn with_copies(self, copies: Vec<(u64, u64)>) -> Self {
        Self { copies, ..self }
    }

    /// Serves one waiting call, if there is one. Never waits for one.
    pub fn serve(&mut self, attempts: &mut Attempts, origin: Origin) -> Served {
        match self.ready() {
            Ok(Ready::Call) => {}
            Ok(Ready::Nothing) => return Served::Idle,
            Ok(Ready::HungUp) => return Served::NoCallers,
            Err(errno) => return Served::Broken(errno),
        }
        let notification = match self.listener.receive() {
            Ok(notification) => notification,
            Err(Errno::ENOENT) => return Served::CallerExited,
            Err(Errno::EINTR | Errno::EAGAIN) => return Served::Idle,
            Err(errno) => return Served::Broken(errno),
        };
        let response = self.judge(&notification, attempts, origin);
        loop {
            let answered = match response {
                Response::Return(result) => self.listener.answer(notification.id, result),
                Response::Continue => self.listener.continue_call(notification.id),
            };
            match answered {
                Ok(()) => return Served::Answered,
                Err(Errno::ENOENT) => return Served::CallerExited,
                Err(Errno::EINTR) => {}
                Err(errno) => return Served::Broken(errno),
            }
        }
    }

    fn judge(&self, notification: &libc::seccomp_notif, attempts: &mut Attempts, origin: Origin) -> Response {
        let caller = Caller::new(&self.listener, &self.proc, notification);
        // Stockade's own process executes the command: the attempt is the command's.
        let origin = if attempt::is_exec(&notification.data) {
            Origin::Yes
        } else {
            origin
        };
        if rename::is_rename(&notification.data)
            && let Ok(caller) = &caller
            && let Some(result) = rename::rename_onto_copy(caller, &notification.data, &self.copies)
        {
            return Response::Return(result);
        }
        if let Some(named_pid) = own_pid::named_pid(&notification.data) {
            return match caller {
                Ok(caller) if caller.is(named_pid) => Response::Continue,
                Ok(_) | Err(_) => {
                    attempts.record(origin, [attempt::refused(&notification.data)]);
                    Response::Return(Err(Errno::EPERM))
                }
            };
        }
        match attempts.sort(&notification.data) {
            Some(CallKind::Attribute) => {
                attempts.settle(notification.pid, &[]);
                Response::Return(caller.and_then(|caller| self.perform(&caller, notification, attempts, origin)))
            }
            Some(CallKind::Refused(errno)) => {
                attempts.record_refused(origin, notification.pid, attempt::refused(&notification.data));
                Response::Return(Err(Errno::from_raw(errno.into())))
            }
            Some(CallKind::Attempt) => {
                match caller.and_then(|caller| attempt::read(&caller, &notification.data)) {
                    Ok(read) => {
                        attempts.settle_unless_look(notification.pid, &read);
                        attempts.record(origin, read);
                    }
                    // It cannot be seen, or is gone.
                    Err(Errno::EPERM) => attempts.record_unread(origin),
                    // A bad pointer: the call fails everywhere.
                    Err(_) => {}
                }
                Response::Continue
            }
            None => Response::Return(Err(Errno::EPERM)),
        }
    }

    fn perform(
        &self,
        caller: &Caller<'_>,
        notification: &libc::seccomp_notif,
        attempts: &mut Attempts,
        origin: Origin,
    ) -> Result<(), Errno> {
        match call::decode(caller, &notification.data)? {
            Call::Nothing => Ok(()),
            Call::Change { target, change } => {
                let object = target::resolve(caller, &target).inspect_err(|_| {
                    if attempts.records(origin) {
                        attempts.record(origin, attempt::of_missing(caller, &target));
                    }
                })?;
                if let Err(errno) = change.judge(&self.plan, &self.proc, &object) {
                    attempts.record(origin, attempt::attributes(&self.proc, &object));
                    return Err(errno);
                }
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
        let events = fds[0].revents().unwrap_or(PollFlags::empty());
        if events.contains(PollFlags::POLLIN) {
            Ok(Ready::Call)
        } else if events.contains(PollFlags::POLLHUP) {
            Ok(Ready::HungUp)
        } else if events.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL) {
            Err(Errno::EBADF)
        } else {
            Ok(Ready::Nothing)
        }
    }
}

enum Response {
    /// It returns this, and never runs.
    Return(Result<(), Errno>),
    /// It runs in the kernel.
    Continue,
}

enum Ready {
    Call,
    Nothing,
    HungUp,
}

impl AsFd for Broker {
    /// The listener, readable when a call waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
