//! Serves all clients on one thread, and waits for none.
//!
//! A client sends one line and receives one, or watches. Sizes, times and the number of clients are bounded: a new client
//! takes the place of the oldest one that has not sent its request.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

use super::pending::Pending;
use super::protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest, Line, MAX_LINE, line};
use crate::approval::request::ApprovalDecision;
use crate::approval::scope::Remember;
use crate::approval::token::Token;

/// The most clients at a time.
const MAX_CLIENTS: usize = 64;
/// How long a client may take to send its line.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to read its reply or an event.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// The most unsent bytes for a client that watches.
const MAX_UNSENT: usize = 1024 * 1024;
/// How long no client is accepted after accept failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The state of the server thread.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    token: Token,
    pending: Arc<Pending>,
    wakeups: PipeReader,
    stop: Arc<AtomicBool>,
    clients: VecDeque<Client>,
    paused: Option<Instant>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    stage: Stage,
    input: Vec<u8>,
    output: Vec<u8>,
    /// When the connection is closed, unless it makes progress.
    deadline: Option<Instant>,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The request has not arrived yet.
    Receiving,
    /// The reply is being sent; nothing follows.
    Sending,
    /// Events are sent as they happen.
    Watching,
    /// The connection is over.
    Closed,
}

impl Server {
    pub(super) fn new(
        listener: UnixListener,
        token: Token,
        pending: Arc<Pending>,
        wakeups: PipeReader,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            listener,
            token,
            pending,
            wakeups,
            stop,
            clients: VecDeque::new(),
            paused: None,
        }
    }

    /// Serves until stopped, and then once more: clients that watch receive the last event.
    pub(super) fn serve(&mut self) {
        let mut stopping = false;
        while !stopping {
            stopping = self.stop.load(Ordering::SeqCst);
            if !stopping {
                self.wait();
            }
            for event in self.pending.take_events(&mut self.wakeups) {
                let message = line(&event);
                for client in self.clients.iter_mut().filter(|client| client.stage == Stage::Watching) {
                    client.queue(&message);
                }
            }
            self.accept_all();
            for client in &mut self.clients {
                if client.stage == Stage::Receiving
                    && let Some(message) = client.receive()
                {
                    let response = answer(&message, &self.token, &self.pending);
                    client.reply(response);
                }
                client.send();
                if client.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                    client.stage = Stage::Closed;
                }
            }
            self.clients.retain(|client| client.stage != Stage::Closed);
        }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        if self.paused.is_some_and(|deadline| deadline <= now) {
            self.paused = None;
        }
        let next = self
            .clients
            .iter()
            .filter_map(|client| client.deadline)
            .chain(self.paused)
            .min();
        let time = next.map_or(PollTimeout::NONE, |next| {
            let left = next.saturating_duration_since(now).as_millis().saturating_add(1);
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![PollFd::new(self.wakeups.as_fd(), PollFlags::POLLIN)];
        if self.paused.is_none() {
            fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        }
        for client in &self.clients {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, !client.output.is_empty());
            // Input after the request is not read, so it must not wake the thread.
            flags.set(
                PollFlags::POLLIN,
                client.stage == Stage::Receiving || client.stage == Stage::Watching,
            );
            fds.push(PollFd::new(client.stream.as_fd(), flags));
        }
        if let Err(errno) = poll(&mut fds, time)
            && errno != Errno::EINTR
        {
            // The kernel has no memory for it now.
            std::thread::sleep(PAUSE);
        }
    }

    fn accept_all(&mut self) {
        for _ in 0..MAX_CLIENTS {
            if self.paused.is_some() {
                return;
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.add(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(_) => self.paused = Some(Instant::now() + PAUSE),
            }
        }
    }

    fn add(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Ok(peer) = getsockopt(&stream, sockopt::PeerCredentials) else {
            return;
        };
        if self.clients.len() >= MAX_CLIENTS {
            let silent = self.clients.iter().position(|client| client.stage == Stage::Receiving);
            match silent {
                Some(longest) => drop(self.clients.remove(longest)),
                None => return,
            }
        }
        let mut client = Client {
            stream,
            stage: Stage::Receiving,
            input: Vec::new(),
            output: Vec::new(),
            deadline: Instant::now().checked_add(RECEIVE_TIMEOUT),
        };
        if peer.uid() != geteuid().as_raw() {
            client.reply(refused("this session is another user's"));
        }
        self.clients.push_back(client);
    }
}

/// The response to a line.
enum Response {
    Once(Vec<u8>),
    Watch(Vec<u8>),
}

fn refused(why: &str) -> Response {
    Response::Once(line(&ApprovalsReply::Refused(why.to_owned())))
}

fn answer(message: &[u8], token: &Token, pending: &Pending) -> Response {
    let Ok(message) = serde_json::from_slice::<Line>(message) else {
        return refused("this is no request");
    };
    if !token.matches(&message.token) {
        return refused("the token is another one");
    }
    let decision = |approved, remember, note| ApprovalDecision {
        approved,
        note,
        remember,
    };
    let reply = match message.request {
        ApprovalsRequest::List => ApprovalsReply::Waiting(pending.list()),
        ApprovalsRequest::Show { id } => pending.show(&id),
        ApprovalsRequest::Approve { id, remember, note } => pending.answer(&id, decision(true, remember, note)),
        ApprovalsRequest::Deny { id, note } => pending.answer(&id, decision(false, Remember::None, note)),
        ApprovalsRequest::Watch => {
            let open = pending.list().into_iter().map(ApprovalsEvent::Asked);
            return Response::Watch(open.flat_map(|event| line(&event)).collect());
        }
    };
    Response::Once(line(&reply))
}

impl Client {
    /// Receives the line; `None` until it is complete, and where it is too long or the client has closed.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0_u8; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => {
                    self.stage = Stage::Closed;
                    return None;
                }
                Ok(count) => self.input.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let mut message = std::mem::take(&mut self.input);
                message.truncate(end);
                return Some(message);
            }
            if self.input.len() > MAX_LINE {
                self.input = Vec::new();
                self.reply(refused("the line is too long"));
                return None;
            }
        }
    }

    fn reply(&mut self, response: Response) {
        (self.stage, self.output) = match response {
            Response::Once(output) => (Stage::Sending, output),
            Response::Watch(output) => (Stage::Watching, output),
        };
        self.deadline = self.send_deadline();
    }

    /// Queues an event; a client that does not read is disconnected.
    fn queue(&mut self, message: &[u8]) {
        if self.output.len() + message.len() > MAX_UNSENT {
            self.stage = Stage::Closed;
            return;
        }
        let was_waiting = !self.output.is_empty();
        self.output.extend_from_slice(message);
        if !was_waiting {
            self.deadline = self.send_deadline();
        }
    }

    fn send_deadline(&self) -> Option<Instant> {
        let reads = !self.output.is_empty() || self.stage == Stage::Sending;
        reads.then(|| Instant::now() + SEND_TIMEOUT)
    }

    /// Sends what the socket accepts.
    fn send(&mut self) {
        if self.stage == Stage::Watching && self.is_closed() {
            self.stage = Stage::Closed;
        }
        while self.stage != Stage::Closed && !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => {
                    self.output.drain(..count);
                    self.deadline = self.send_deadline();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.stage = Stage::Closed,
            }
        }
        if self.stage == Stage::Sending && self.output.is_empty() {
            self.stage = Stage::Closed;
        }
    }

    /// Whether a client that watches has closed, or sends something, which ends it too.
    fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(0 | 1..) => true,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }
}
