//! Asks whoever comes to a Unix socket: a question stays open until one of them answers it, or time is over.
//!
//! [`place`] makes socket and token where no command gets at them, and removes them; [`server`] serves every
//! client on one thread and waits for none; [`board`] is what that thread and the asking one share;
//! [`protocol`] is what is said; [`client`] is the other end, and [`sessions`] finds all of them at the default place. A process of the same user reaches the socket,
//! and so may a confined command where the regime does not keep it from sockets: only who can read the token
//! is listened to, and that no command can.

mod board;
mod client;
mod place;
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
use super::asked::Asked;
use super::cancel::{CancelHandle, Cancelled};
use super::request::{ApprovalDecision, ApprovalRequest, Presentation};
use super::token::Token;
use crate::policy::{AbsPath, Channel};
use board::{Board, Open, Settled};
use place::Place;

pub use client::{ApprovalsClient, ClientError, Watching};
pub use protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest, Waiting};
pub use sessions::{ApprovalsPlace, Following, Happening, Listed};

/// How often somebody who waits for another question looks whether it is answered.
const TURN: Duration = Duration::from_millis(20);

/// Asks over a socket.
pub struct SocketApprover {
    served: Arc<Served>,
    deadline: Duration,
    cancelled: Option<Cancelled>,
}

/// The thread that serves a socket, for as long as somebody asks there.
struct Served {
    board: Arc<Board>,
    /// Held by whoever has a question on the board: it has room for one.
    turn: Mutex<()>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Removes socket and token once nobody serves them.
    _place: Place,
}

impl SocketApprover {
    /// An approver that listens at `socket` and denies what nobody has answered by `deadline`.
    ///
    /// The token is made beside the socket, as `SOCKET.token`. `reached` says why commands could get at a path, if
    /// they could; then it is refused.
    pub fn new(
        socket: &Path,
        deadline: Duration,
        reached: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<Self, ApproverError> {
        let failed = |why: String| ApproverError::Socket {
            path: socket.to_owned(),
            why,
        };
        let made = Place::make(socket, reached).map_err(failed)?;
        Self::serving(made, socket, deadline)
    }

    /// The same at a socket of its own in a directory that all sessions of the user share.
    pub fn among_others(
        directory: &Path,
        deadline: Duration,
        reached: impl Fn(&AbsPath) -> Option<String>,
    ) -> Result<Self, ApproverError> {
        let made = Place::make_among(directory, reached).map_err(|why| ApproverError::Socket {
            path: directory.to_owned(),
            why,
        })?;
        Self::serving(made, directory, deadline)
    }

    fn serving(
        (place, listener, token): (Place, UnixListener, Token),
        path: &Path,
        deadline: Duration,
    ) -> Result<Self, ApproverError> {
        let failed = |why: String| ApproverError::Socket {
            path: path.to_owned(),
            why,
        };
        let (board, woken) = Board::new().map_err(|error| failed(error.to_string()))?;
        let (board, stop) = (Arc::new(board), Arc::new(AtomicBool::new(false)));
        let mut server = server::Server::new(listener, token, Arc::clone(&board), woken, Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("approvals".to_owned())
            .spawn(move || server.serve())
            .map_err(|error| failed(error.to_string()))?;
        let all = Served {
            board,
            turn: Mutex::default(),
            stop,
            thread: Some(thread),
            _place: place,
        };
        Ok(Self {
            served: Arc::new(all),
            deadline,
            cancelled: None,
        })
    }

    /// Another one at the same socket. Their questions wait for one another.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            served: Arc::clone(&self.served),
            deadline: self.deadline,
            cancelled: None,
        }
    }

    /// Waits until the board is free.
    fn turn(&self, until: Option<Instant>) -> Result<MutexGuard<'_, ()>, ApproverError> {
        loop {
            self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
            match self.served.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                // Nothing is held there that whoever broke down could have left half done.
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(ApproverError::TimedOut(self.deadline));
            }
            std::thread::sleep(TURN);
        }
    }

    /// With a handle that withdraws its questions from another thread; fails if there is no pipe for it.
    pub fn cancellable(mut self) -> io::Result<(Self, CancelHandle)> {
        let (handle, cancelled) = CancelHandle::new()?;
        self.cancelled = Some(cancelled);
        Ok((self, handle))
    }

    /// Waits until the board has an answer, the question is withdrawn, or time is over.
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
                // Nothing is there where the thread that serves is gone; then the board has no answer either.
                let _woken = answered.read(&mut [0]).map_err(failed)?;
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
        let asked = Asked::of(request, presentation);
        // Measured before it is offered, so that nobody is shown half of it.
        asked.json()?;
        let failed = |error: io::Error| ApproverError::NoDecision(error.to_string());
        let (answered, answers) = io::pipe().map_err(failed)?;
        let _turn = self.turn(Instant::now().checked_add(self.deadline))?;
        let until = Instant::now().checked_add(self.deadline);
        let open = Open::new(asked, answers, until).map_err(failed)?;
        self.served.board.put(open);
        let waited = self.wait(answered, until);
        let settled = match waited {
            Ok(()) => Settled::TimedOut,
            Err(_) => Settled::Withdrawn,
        };
        let answer = self.served.board.take(settled);
        waited?;
        // An answer that comes together with the withdrawal is too late.
        self.cancelled.as_ref().map_or(Ok(()), Cancelled::check)?;
        answer.ok_or(ApproverError::TimedOut(self.deadline))
    }

    fn channel(&self) -> Channel {
        Channel::Socket
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.board.wake();
        if let Some(thread) = self.thread.take() {
            // One that has panicked serves nobody any more.
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
