//! Serves every client on one thread, and waits for none.
//!
//! A client says one line and is sent one, or watches. How much it may say, how long it may take and how much is
//! kept for it are bounded, and there are only so many: who has not said the token makes room for who comes.

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

use super::board::Board;
use super::protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest, LONGEST_LINE, Line, line};
use crate::approval::request::{ApprovalDecision, Remember};
use crate::approval::token::Token;

/// The most clients at a time.
const MOST: usize = 64;
/// How long a client may take for its line.
const TO_SPEAK: Duration = Duration::from_secs(5);
/// How long a client may take to read what it is sent.
const TO_READ: Duration = Duration::from_secs(30);
/// The most bytes that wait for a client that watches.
const MOST_UNREAD: usize = 1024 * 1024;
/// How long nobody is let in when the machine has no room for another.
const PAUSE: Duration = Duration::from_millis(100);

/// The thread's own state.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    token: Token,
    board: Arc<Board>,
    woken: PipeReader,
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
    /// When it is given up, unless it gets on.
    until: Option<Instant>,
}

/// How far a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has not said its line.
    Speaking,
    /// It is sent an answer, and that is all.
    Leaving,
    /// It is told what happens.
    Watching,
    /// It is not served any more.
    Gone,
}

impl Server {
    pub(super) fn new(
        listener: UnixListener,
        token: Token,
        board: Arc<Board>,
        woken: PipeReader,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            listener,
            token,
            board,
            woken,
            stop,
            clients: VecDeque::new(),
            paused: None,
        }
    }

    /// Serves until it is told to stop, and then once more: the last answer is told to who watches.
    pub(super) fn serve(&mut self) {
        let mut stopping = false;
        while !stopping {
            stopping = self.stop.load(Ordering::SeqCst);
            if !stopping {
                self.wait();
            }
            for event in self.board.events(&mut self.woken) {
                let told = line(&event);
                for client in self.clients.iter_mut().filter(|client| client.stage == Stage::Watching) {
                    client.tell(&told);
                }
            }
            self.admit();
            for client in &mut self.clients {
                if client.stage == Stage::Speaking
                    && let Some(said) = client.listen()
                {
                    let told = answer(&said, &self.token, &self.board);
                    client.answer(told);
                }
                client.send();
                if client.until.is_some_and(|until| until <= Instant::now()) {
                    client.stage = Stage::Gone;
                }
            }
            self.clients.retain(|client| client.stage != Stage::Gone);
        }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
        }
        let next = self
            .clients
            .iter()
            .filter_map(|client| client.until)
            .chain(self.paused)
            .min();
        let time = next.map_or(PollTimeout::NONE, |next| {
            let left = next.saturating_duration_since(now).as_millis().saturating_add(1);
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![PollFd::new(self.woken.as_fd(), PollFlags::POLLIN)];
        if self.paused.is_none() {
            fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        }
        for client in &self.clients {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, !client.output.is_empty());
            // What a client says after its line is not read, so it must not wake either.
            flags.set(
                PollFlags::POLLIN,
                client.stage == Stage::Speaking || client.stage == Stage::Watching,
            );
            fds.push(PollFd::new(client.stream.as_fd(), flags));
        }
        if let Err(errno) = poll(&mut fds, time)
            && errno != Errno::EINTR
        {
            // There is no memory for it now; whoever waits is served a little later.
            std::thread::sleep(PAUSE);
        }
    }

    fn admit(&mut self) {
        for _ in 0..MOST {
            if self.paused.is_some() {
                return;
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.take_in(stream),
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

    fn take_in(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Ok(peer) = getsockopt(&stream, sockopt::PeerCredentials) else {
            return;
        };
        if self.clients.len() >= MOST {
            let silent = self.clients.iter().position(|client| client.stage == Stage::Speaking);
            match silent {
                Some(longest) => drop(self.clients.remove(longest)),
                None => return,
            }
        }
        let mut client = Client {
            stream,
            stage: Stage::Speaking,
            input: Vec::new(),
            output: Vec::new(),
            until: Instant::now().checked_add(TO_SPEAK),
        };
        if peer.uid() != geteuid().as_raw() {
            client.answer(Told::Once(line(&ApprovalsReply::Refused(
                "this session is another user's".to_owned(),
            ))));
        }
        self.clients.push_back(client);
    }
}

/// What a line is answered.
enum Told {
    Once(Vec<u8>),
    Watch(Vec<u8>),
}

fn answer(said: &[u8], token: &Token, board: &Board) -> Told {
    let refused = |why: &str| Told::Once(line(&ApprovalsReply::Refused(why.to_owned())));
    let Ok(said) = serde_json::from_slice::<Line>(said) else {
        return refused("this is no request");
    };
    if !token.is(&said.token) {
        return refused("the token is another one");
    }
    let decision = |approved, remember, note| ApprovalDecision {
        approved,
        note,
        remember,
    };
    let reply = match said.request {
        ApprovalsRequest::List => ApprovalsReply::Waiting(board.list()),
        ApprovalsRequest::Show { id } => board.show(&id),
        ApprovalsRequest::Approve { id, remember, note } => board.answer(&id, decision(true, remember, note)),
        ApprovalsRequest::Deny { id, note } => board.answer(&id, decision(false, Remember::None, note)),
        ApprovalsRequest::Watch => {
            let open = board.list().into_iter().map(ApprovalsEvent::Asked);
            return Told::Watch(open.flat_map(|event| line(&event)).collect());
        }
    };
    Told::Once(line(&reply))
}

impl Client {
    /// Its line, once it is there; a client that says too much, or leaves, is not answered.
    fn listen(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0_u8; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.stage = Stage::Gone;
                    return None;
                }
                Ok(count) => self.input.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.stage = Stage::Gone;
                    return None;
                }
            }
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let mut said = std::mem::take(&mut self.input);
                said.truncate(end);
                return Some(said);
            }
            if self.input.len() > LONGEST_LINE {
                self.input = Vec::new();
                self.answer(Told::Once(line(&ApprovalsReply::Refused(
                    "the line is too long".to_owned(),
                ))));
                return None;
            }
        }
    }

    fn answer(&mut self, told: Told) {
        (self.stage, self.output) = match told {
            Told::Once(output) => (Stage::Leaving, output),
            Told::Watch(output) => (Stage::Watching, output),
        };
        self.until = self.patience();
    }

    /// Adds to what a client that watches is sent; one that does not read it is given up.
    fn tell(&mut self, told: &[u8]) {
        if self.output.len() + told.len() > MOST_UNREAD {
            self.stage = Stage::Gone;
            return;
        }
        let waited = !self.output.is_empty();
        self.output.extend_from_slice(told);
        if !waited {
            self.until = self.patience();
        }
    }

    fn patience(&self) -> Option<Instant> {
        let reads = !self.output.is_empty() || self.stage == Stage::Leaving;
        reads.then(|| Instant::now() + TO_READ)
    }

    /// Sends what it takes.
    fn send(&mut self) {
        if self.stage == Stage::Watching && self.has_left() {
            self.stage = Stage::Gone;
        }
        while self.stage != Stage::Gone && !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => {
                    self.output.drain(..count);
                    self.until = self.patience();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.stage = Stage::Gone,
            }
        }
        if self.stage == Stage::Leaving && self.output.is_empty() {
            self.stage = Stage::Gone;
        }
    }

    /// Whether a client that watches has gone, or speaks, which it has no reason to.
    fn has_left(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(0 | 1..) => true,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }
}
