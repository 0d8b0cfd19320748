//! The sessions that a client can answer: one at a socket, or all in the default directories.
//!
//! There each session has a socket of its own. A client scans the directories repeatedly, because sessions come and go.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use super::client::{ApprovalsClient, ClientError, EventStream};
use super::protocol::{ApprovalsEvent, RequestSummary};

/// How often the directories are scanned for new sessions.
const SCAN_INTERVAL: Duration = Duration::from_millis(250);
/// How long all sessions together may take to list their requests.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a thread that timed out may take to report that.
const REPORT_TIMEOUT: Duration = Duration::from_millis(500);

/// Where sessions listen.
#[derive(Debug, Clone)]
pub enum ApprovalsAddress {
    /// One socket.
    Socket(PathBuf),
    /// All sockets in these directories.
    Directories(Vec<PathBuf>),
}

/// An event in one of the sessions.
#[derive(Debug)]
pub enum SessionEvent {
    /// No session is running yet.
    NoSession,
    /// A session sent an event.
    Event(ApprovalsClient, ApprovalsEvent),
    /// A session has ended.
    SessionEnded,
}

/// A session, and its open requests.
#[derive(Debug)]
pub struct SessionRequests {
    /// A client of the session.
    pub client: ApprovalsClient,
    /// Its process ID, unless it lies in another PID namespace.
    pub process: Option<i32>,
    /// Its open requests, or why it did not list them.
    pub requests: Result<Vec<RequestSummary>, ClientError>,
}

impl SessionRequests {
    /// Whether the session has ended, or is another user's.
    fn is_stale_or_foreign(&self) -> bool {
        matches!(
            self.requests,
            Err(ClientError::NobodyListens { .. } | ClientError::NotOurs)
        )
    }
}

impl ApprovalsAddress {
    /// The requests of all sessions that listen now; at least one. All are asked at once. One that does not reply in time is
    /// listed as [unanswered](ClientError::Unanswered).
    pub fn list(&self) -> Result<Vec<SessionRequests>, ClientError> {
        let mut all = Vec::new();
        self.each_session(|listed| {
            all.push(listed);
            None::<()>
        })?;
        Ok(all)
    }

    /// A client of the session with this request.
    pub fn client_for(&self, id: &str) -> Result<ApprovalsClient, ClientError> {
        if let [socket] = self.sockets().as_slice() {
            // The only session knows best what became of the request.
            let client = ApprovalsClient::new(socket);
            return match client.process() {
                Err(_) if matches!(self, Self::Directories(_)) => Err(ClientError::NoSession),
                listening => listening.map(|_process| client),
            };
        }
        let mut answered = Vec::new();
        let mut silent = Vec::new();
        let found = self.each_session(
            |SessionRequests {
                 client,
                 process,
                 requests,
             }| match requests {
                Ok(waiting) if waiting.iter().any(|waiting| waiting.id == id) => Some(client),
                Ok(_) => {
                    answered.push(client);
                    None
                }
                Err(ClientError::Unanswered(_)) => {
                    silent.push(process);
                    None
                }
                Err(_) => None,
            },
        )?;
        match (found, answered.pop(), silent.is_empty()) {
            (Some(client), _, _) => Ok(client),
            (None, _, false) => Err(ClientError::Unanswered(silent)),
            // The same holds for the only one that replied.
            (None, Some(client), true) if answered.is_empty() => Ok(client),
            (None, _, true) => Err(ClientError::Refused(super::pending::NOT_OPEN.to_owned())),
        }
    }

    /// Lists the requests of all sessions at once, and calls `found` with each until it returns something.
    fn each_session<T>(&self, mut found: impl FnMut(SessionRequests) -> Option<T>) -> Result<Option<T>, ClientError> {
        let (sender, receiver) = channel();
        let mut awaited: HashSet<PathBuf> = self.sockets().into_iter().collect();
        for socket in awaited.iter().cloned() {
            let sender = sender.clone();
            // Not joined: its session may never reply. It ends when its own timeout expires.
            std::thread::Builder::new()
                .name("list".to_owned())
                .spawn(move || {
                    let client = ApprovalsClient::new(&socket);
                    let (process, requests) = client.list(LIST_TIMEOUT);
                    let listed = SessionRequests {
                        client,
                        process,
                        requests,
                    };
                    let _closed = sender.send((socket, listed));
                })
                .map_err(ClientError::Silent)?;
        }
        drop(sender);
        let until = Instant::now() + LIST_TIMEOUT + REPORT_TIMEOUT;
        let mut is_any = false;
        while let Ok((socket, listed)) = receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            awaited.remove(&socket);
            match (self, listed) {
                // A killed session leaves its socket behind; sessions of other users do not count.
                (Self::Directories(_), listed) if listed.is_stale_or_foreign() => {}
                (
                    Self::Socket(_),
                    SessionRequests {
                        requests: Err(error), ..
                    },
                ) if !matches!(error, ClientError::Unanswered(_)) => {
                    return Err(error);
                }
                (_, listed) => {
                    is_any = true;
                    if let Some(found) = found(listed) {
                        return Ok(Some(found));
                    }
                }
            }
        }
        for socket in awaited {
            is_any = true;
            let listed = SessionRequests {
                client: ApprovalsClient::new(&socket),
                process: None,
                requests: Err(ClientError::Unanswered(vec![None])),
            };
            if let Some(found) = found(listed) {
                return Ok(Some(found));
            }
        }
        if is_any { Ok(None) } else { Err(ClientError::NoSession) }
    }

    /// The events of all sessions, later ones included.
    pub fn follow(self) -> SessionEvents {
        let (sender, receiver) = channel();
        SessionEvents {
            address: self,
            watched: HashSet::new(),
            sender,
            receiver,
            next: Next::Scan,
        }
    }

    fn sockets(&self) -> Vec<PathBuf> {
        match self {
            Self::Socket(socket) => vec![socket.clone()],
            Self::Directories(directories) => {
                let mut all: Vec<PathBuf> = directories.iter().flat_map(|directory| sockets_in(directory)).collect();
                all.sort();
                all
            }
        }
    }
}

/// The sockets in the directory; none if anybody else can write it.
fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    let is_ours = fs::symlink_metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0);
    let entries = is_ours.then(|| fs::read_dir(directory).ok()).flatten();
    let entries = entries.into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.map(|entry| entry.path()).collect()
}

/// What the thread that watches a session sends: an event, or `None` at the end.
type WatchReport = (PathBuf, Option<Result<ApprovalsEvent, ClientError>>);

/// The events of all sessions. It never ends.
#[derive(Debug)]
pub struct SessionEvents {
    address: ApprovalsAddress,
    watched: HashSet<PathBuf>,
    sender: Sender<WatchReport>,
    receiver: Receiver<WatchReport>,
    next: Next,
}

/// What the iterator does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Scans, and reports if there is no session.
    Scan,
    /// Waits; that there is no session was reported.
    Wait,
}

impl SessionEvents {
    /// Starts to watch new sessions.
    fn scan(&mut self) -> Result<(), ClientError> {
        for socket in self.address.sockets() {
            if self.watched.contains(&socket) {
                continue;
            }
            match ApprovalsClient::new(&socket).watch() {
                Ok(watching) => {
                    let sender = self.sender.clone();
                    let watched = socket.clone();
                    // Not joined: it ends with its session.
                    std::thread::Builder::new()
                        .name("watch".to_owned())
                        .spawn(move || forward(watching, &watched, &sender))
                        .map_err(ClientError::Silent)?;
                    self.watched.insert(socket);
                }
                Err(error) => self.ignore_if_temporary(error)?,
            }
        }
        Ok(())
    }

    /// Returns the error unless a later scan may succeed.
    fn ignore_if_temporary(&self, error: ClientError) -> Result<(), ClientError> {
        match (&self.address, error) {
            // Another user's session, or one that has just ended.
            (ApprovalsAddress::Directories(_), _) => Ok(()),
            (ApprovalsAddress::Socket(_), error) if error.is_gone() => Ok(()),
            (ApprovalsAddress::Socket(_), error) => Err(error),
        }
    }
}

fn forward(watching: EventStream, socket: &Path, sender: &Sender<WatchReport>) {
    for event in watching {
        let is_last = event.is_err();
        if sender.send((socket.to_owned(), Some(event))).is_err() {
            return;
        }
        if is_last {
            break;
        }
    }
    let _closed = sender.send((socket.to_owned(), None));
}

impl Iterator for SessionEvents {
    type Item = Result<SessionEvent, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Err(error) = self.scan() {
                return Some(Err(error));
            }
            if self.watched.is_empty() {
                if self.next == Next::Scan {
                    self.next = Next::Wait;
                    return Some(Ok(SessionEvent::NoSession));
                }
            } else {
                self.next = Next::Scan;
            }
            match self.receiver.recv_timeout(SCAN_INTERVAL) {
                Ok((socket, Some(Ok(event)))) => {
                    return Some(Ok(SessionEvent::Event(ApprovalsClient::new(&socket), event)));
                }
                // The session ended in the middle of a line; its thread reports that next.
                Ok((_, Some(Err(ClientError::Ended | ClientError::Silent(_) | ClientError::Unreadable))))
                | Err(RecvTimeoutError::Timeout) => {}
                Ok((_, Some(Err(error)))) => {
                    if let Err(error) = self.ignore_if_temporary(error) {
                        return Some(Err(error));
                    }
                }
                Ok((socket, None)) => {
                    self.watched.remove(&socket);
                    return Some(Ok(SessionEvent::SessionEnded));
                }
                // Unreachable: `self` has a sender.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl ClientError {
    /// Whether the session is over, or none was started.
    pub fn is_gone(&self) -> bool {
        let gone =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        match self {
            Self::NobodyListens { source, .. } | Self::Token { source, .. } => gone(source),
            Self::NoSession | Self::Ended => true,
            Self::Silent(_)
            | Self::NotOurs
            | Self::Unanswered(_)
            | Self::Unreadable
            | Self::TooLong
            | Self::Refused(_) => false,
        }
    }
}
