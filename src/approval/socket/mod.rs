//! Asks over a Unix socket: a request stays open until a client answers it, or its time is over.
//!
//! [`endpoint`] creates socket and token out of reach of commands, and removes them. [`server`] serves every client on one
//! thread; [`pending`] is the state that it shares with the approver. [`protocol`] has the messages, [`client`] the other
//! end, and [`sessions`] finds all sessions. Any process of the user can connect, in some regimes a confined command too:
//! only a client that knows the token is served, and no command can read that.

mod client;
mod endpoint;
mod pending;
mod protocol;
mod server;
mod sessions;

use std::fmt;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::approver::{Approver, ApproverError};
use super::cancel::{CancelHandle, Cancelled};
use super::presentation::Presentation;
use super::request::{ApprovalDecision, ApprovalRequest};
use super::request_message::RequestMessage;
use super::token::Token;
use crate::policy::{AbsPath, Channel};
use endpoint::Endpoint;
use pending::{Pending, PendingRequest, Unanswered};

pub use client::{ApprovalsClient, ClientError, EventStream};
pub use protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest, RequestSummary};
pub use sessions::{ApprovalsAddress, SessionEvent, SessionEvents, SessionRequests};

/// How often an approver checks whether the request before its own was answered.
const RETRY: Duration = Duration::from_millis(20);

/// An approver that asks the clients of a Unix socket.
///
/// Use it where a person answers from another terminal or another program: `stockade approvals` is a client. A request
/// stays open until a client answers it or its time is over. Only clients that know the token are served. The token is in
/// a file beside the socket, `SOCKET.token`. Socket and token are removed when the last approver of the socket is dropped.
///
/// The socket is of the type that unix(7) calls a pathname socket. On Linux write permission on it is needed to connect.
///
/// ```no_run
/// use std::path::Path;
/// use std::time::Duration;
///
/// use stockade::SocketApprover;
///
/// // The caller knows that no command can reach /run/agent.
/// let approver = SocketApprover::new(Path::new("/run/agent/approvals"), Duration::from_secs(600), |_| None)?;
/// # Ok::<(), stockade::ApproverError>(())
/// ```
pub struct SocketApprover {
    server: Arc<ServerThread>,
    deadline: Duration,
    cancelled: Option<Cancelled>,
}

/// The thread that serves a socket, shared by all approvers of that socket.
struct ServerThread {
    pending: Arc<Pending>,
    /// Held while a request is open: there is one at a time.
    turn: Mutex<()>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Removes socket and token when dropped.
    _endpoint: Endpoint,
}

fn unusable(path: &Path) -> impl Fn(String) -> ApproverError {
    |why| ApproverError::Socket {
        path: path.to_owned(),
        why,
    }
}

impl SocketApprover {
    /// An approver that listens at `socket` and waits `deadline` for each answer.
    ///
    /// `reachable` returns a reason where commands of the session can get at a path: such a path is refused.
    ///
    /// # Errors
    /// [`ApproverError::Socket`]: the path is refused, or socket or token cannot be created there.
    pub fn new(
        socket: &Path,
        deadline: Duration,
        reachable: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<Self, ApproverError> {
        let created = Endpoint::create(socket, reachable).map_err(unusable(socket))?;
        Self::serve(created, socket, deadline)
    }

    /// The same approver, at a new socket in a directory that all sessions of the user share.
    ///
    /// # Errors
    /// [`ApproverError::Socket`]: the directory is refused, or socket or token cannot be created there.
    pub fn in_directory(
        directory: &Path,
        deadline: Duration,
        reachable: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<Self, ApproverError> {
        let created = Endpoint::create_in(directory, reachable).map_err(unusable(directory))?;
        Self::serve(created, directory, deadline)
    }

    fn serve(
        (endpoint, listener, token): (Endpoint, UnixListener, Token),
        path: &Path,
        deadline: Duration,
    ) -> Result<Self, ApproverError> {
        let failed = |error: io::Error| unusable(path)(error.to_string());
        let (pending, wakeups) = Pending::new().map_err(failed)?;
        let (pending, stop) = (Arc::new(pending), Arc::new(AtomicBool::new(false)));
        let mut server = server::Server::new(listener, token, Arc::clone(&pending), wakeups, Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("approvals".to_owned())
            .spawn(move || server.serve())
            .map_err(failed)?;
        let thread = ServerThread {
            pending,
            turn: Mutex::default(),
            stop,
            thread: Some(thread),
            _endpoint: endpoint,
        };
        Ok(Self {
            server: Arc::new(thread),
            deadline,
            cancelled: None,
        })
    }

    /// Another approver at the same socket, for a second session or for questions while a command runs. One request is
    /// open at a time; the others wait.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            server: Arc::clone(&self.server),
            deadline: self.deadline,
            cancelled: None,
        }
    }

    /// Waits until no other request is open.
    fn turn(&self, until: Option<Instant>) -> Result<MutexGuard<'_, ()>, ApproverError> {
        loop {
            self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
            match self.server.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                // The lock guards no data that a panic could leave inconsistent.
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(ApproverError::TimedOut(self.deadline));
            }
            std::thread::sleep(RETRY);
        }
    }

    /// The same approver, with a handle that withdraws its questions from another thread.
    ///
    /// # Errors
    /// No pipe can be made for the handle (pipe(2)).
    pub fn cancellable(mut self) -> io::Result<(Self, CancelHandle)> {
        let (handle, cancelled) = CancelHandle::new()?;
        self.cancelled = Some(cancelled);
        Ok((self, handle))
    }

    /// Waits until the request is answered or withdrawn, or its time is over.
    fn wait(&self, mut answered: io::PipeReader, until: Option<Instant>) -> Result<(), ApproverError> {
        let failed = |error: io::Error| ApproverError::NoDecision(error.to_string());
        loop {
            self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => PollTimeout::NONE,
                Some(left) if left.is_zero() => return Ok(()),
                Some(left) => PollTimeout::try_from(left.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX),
            };
            let mut fds = vec![PollFd::new(answered.as_fd(), PollFlags::POLLIN)];
            let cancelled = self.cancelled.as_ref();
            fds.extend(cancelled.map(|cancelled| PollFd::new(cancelled.as_fd(), PollFlags::POLLIN)));
            match poll(&mut fds, left) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            if fds.first().is_some_and(|fd| fd.any().unwrap_or(true)) {
                // Empty if the server thread has ended; then there is no answer either.
                let _read = answered.read(&mut [0]).map_err(failed)?;
                return Ok(());
            }
        }
    }
}

impl Approver for SocketApprover {
    fn ask(
        &mut self,
        request: &ApprovalRequest,
        presentation: &Presentation,
    ) -> Result<ApprovalDecision, ApproverError> {
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        let message = RequestMessage::of(request, presentation);
        // Refuses a request that is too large to be sent.
        message.json()?;
        let failed = |error: io::Error| ApproverError::NoDecision(error.to_string());
        let (answered, answers) = io::pipe().map_err(failed)?;
        let _turn = self.turn(Instant::now().checked_add(self.deadline))?;
        let until = Instant::now().checked_add(self.deadline);
        let pending = PendingRequest::new(message, answers, until).map_err(failed)?;
        self.server.pending.open(pending);
        let waited = self.wait(answered, until);
        let unanswered = match waited {
            Ok(()) => Unanswered::TimedOut,
            Err(_) => Unanswered::Withdrawn,
        };
        let answer = self.server.pending.close(unanswered);
        waited?;
        // An answer that arrives with the withdrawal is too late.
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        answer.ok_or(ApproverError::TimedOut(self.deadline))
    }

    fn channel(&self) -> Channel {
        Channel::Socket
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.pending.wake();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

impl fmt::Debug for SocketApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketApprover")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
