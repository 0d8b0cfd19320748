//! The client of an approvals socket: lists the open requests, and answers them.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt};
use nix::unistd::geteuid;
use serde::de::DeserializeOwned;

use super::endpoint::token_path;
use super::protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest, Line, MAX_LINE, RequestSummary, line};
use crate::approval::request_message::MAX_BYTES;
use crate::policy::path::{display, escape};

/// The most bytes of a line that is read.
const MAX_REPLY: u64 = MAX_BYTES as u64 + 64 * 1024;
/// The most bytes of a token file that are read.
const MAX_TOKEN: u64 = 256;
/// How long a reply may take. The server has a thread of its own, so only a busy machine needs this long.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of the session that listens at a socket.
#[derive(Debug)]
pub struct ApprovalsClient {
    socket: PathBuf,
}

/// Why a session gave no usable reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no session asks at {}: {}", display(.socket), nobody_listens(.source))]
    NobodyListens {
        /// Where.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No session listens in the default directories.
    #[error("no session asks now: none that was started with `--approvals-socket default` is running")]
    NoSession,
    /// The token cannot be read.
    #[error("the token {} cannot be read: {source}", display(.token))]
    Token {
        /// The file.
        token: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The socket is another user's.
    #[error("what listens there belongs to another user")]
    NotOurs,
    /// The session ended in the middle of the exchange.
    #[error("the session has ended")]
    Ended,
    /// The connection failed.
    #[error("the session gave no answer: {0}")]
    Silent(#[source] io::Error),
    /// The session listens and does not answer.
    #[error("{} not answer: stopped, or the machine is too busy", subject(.0))]
    Unanswered(Vec<Option<i32>>),
    /// The reply is malformed.
    #[error("the answer of the session was not understood")]
    Unreadable,
    /// The note is too long.
    #[error("the note is too long")]
    TooLong,
    /// The session refused the request.
    #[error("the session refused: {}", escape(.0.as_bytes()))]
    Refused(String),
}

impl ClientError {
    /// Why a connection that stood failed.
    fn of_connection(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::Ended,
            _ => Self::Silent(error),
        }
    }
}

/// The subject of the sentence "… not answer", with its verb.
fn subject(processes: &[Option<i32>]) -> String {
    let visible_process: Vec<String> = processes.iter().flatten().map(ToString::to_string).collect();
    match (processes.len(), visible_process.as_slice()) {
        (0 | 1, []) => "the session does".to_owned(),
        (_, []) => "some sessions do".to_owned(),
        (1, [process]) => format!("the session of process {process} does"),
        (_, _) => format!("the sessions of processes {} do", visible_process.join(", ")),
    }
}

/// Why the connection failed.
fn nobody_listens(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "the session that did has ended, or none was started".to_owned()
        }
        _ => source.to_string(),
    }
}

impl ApprovalsClient {
    /// A client of this socket.
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    /// Sends a request and receives the reply.
    pub fn send(&self, request: ApprovalsRequest) -> Result<ApprovalsReply, ClientError> {
        let (stream, process) = self.send_request(request, REPLY_TIMEOUT)?;
        reply(stream, process, REPLY_TIMEOUT)
    }

    /// The open requests of the session, and its process.
    pub(super) fn list(&self, time: Duration) -> (Option<i32>, Result<Vec<RequestSummary>, ClientError>) {
        let (stream, process) = match self.send_request(ApprovalsRequest::List, time) {
            Ok(connected) => connected,
            Err(error) => return (None, Err(error)),
        };
        let listed = reply(stream, process, time).and_then(|reply| match reply {
            ApprovalsReply::Waiting(waiting) => Ok(waiting),
            ApprovalsReply::Question(_) | ApprovalsReply::Done | ApprovalsReply::Refused(_) => {
                Err(ClientError::Unreadable)
            }
        });
        (visible_process(process), listed)
    }

    /// Receives events until the session ends.
    pub fn watch(&self) -> Result<EventStream, ClientError> {
        self.send_request(ApprovalsRequest::Watch, REPLY_TIMEOUT)
            .map(|(stream, _)| EventStream {
                stream: BufReader::new(stream),
            })
    }

    /// The process of the session, if it listens; its number is unknown where it lies in another PID namespace.
    pub fn process(&self) -> Result<Option<i32>, ClientError> {
        let (_stream, process) = self.connect(REPLY_TIMEOUT)?;
        Ok(visible_process(process))
    }

    fn connect(&self, time: Duration) -> Result<(UnixStream, i32), ClientError> {
        let stream = connect_to(&self.socket, time).map_err(|source| match source {
            // The backlog of the socket is full.
            late if is_late(&late) => ClientError::Unanswered(vec![None]),
            source => ClientError::NobodyListens {
                socket: self.socket.clone(),
                source,
            },
        })?;
        // Only a session of the same user may see the token.
        let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(|errno| ClientError::Silent(errno.into()))?;
        if peer.uid() != geteuid().as_raw() {
            return Err(ClientError::NotOurs);
        }
        Ok((stream, peer.pid()))
    }

    fn send_request(&self, request: ApprovalsRequest, time: Duration) -> Result<(UnixStream, i32), ClientError> {
        let (mut stream, process) = self.connect(time)?;
        let message = line(&Line {
            token: self.token()?,
            request,
        });
        if message.len() > MAX_LINE {
            return Err(ClientError::TooLong);
        }
        stream.write_all(&message).map_err(ClientError::of_connection)?;
        Ok((stream, process))
    }

    fn token(&self) -> Result<String, ClientError> {
        let token = token_path(&self.socket);
        let read = || {
            let mut text = String::new();
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&token)?;
            file.take(MAX_TOKEN).read_to_string(&mut text)?;
            Ok(text)
        };
        read().map_err(|source| ClientError::Token {
            token: token.clone(),
            source,
        })
    }
}

/// Reads the reply.
fn reply(stream: UnixStream, process: i32, time: Duration) -> Result<ApprovalsReply, ClientError> {
    stream
        .set_read_timeout(Some(time))
        .map_err(ClientError::of_connection)?;
    let read = read(&mut BufReader::new(stream)).map_err(|error| match error {
        ClientError::Silent(error) if is_late(&error) => ClientError::Unanswered(vec![visible_process(process)]),
        other => other,
    });
    match read? {
        Some(ApprovalsReply::Refused(why)) => Err(ClientError::Refused(why)),
        Some(reply) => Ok(reply),
        None => Err(ClientError::Ended),
    }
}

/// The process ID, unless the process lies in another PID namespace.
fn visible_process(process: i32) -> Option<i32> {
    Some(process).filter(|process| *process > 0)
}

/// Whether a timeout expired.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Connects; neither that nor a later write may take longer than `time`.
fn connect_to(path: &Path, time: Duration) -> io::Result<UnixStream> {
    let created = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let stream = UnixStream::from(created);
    stream.set_write_timeout(Some(time))?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(stream)
}

/// The events of one session, as they happen.
#[derive(Debug)]
pub struct EventStream {
    stream: BufReader<UnixStream>,
}

impl Iterator for EventStream {
    type Item = Result<ApprovalsEvent, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        match read(&mut self.stream) {
            Ok(Some(ApprovalsEvent::Refused(why))) => Some(Err(ClientError::Refused(why))),
            other => other.transpose(),
        }
    }
}

/// Reads one line; `None` at the end of input.
fn read<T: DeserializeOwned>(from: &mut BufReader<UnixStream>) -> Result<Option<T>, ClientError> {
    let mut line = Vec::new();
    from.take(MAX_REPLY)
        .read_until(b'\n', &mut line)
        .map_err(ClientError::of_connection)?;
    if line.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&line)
        .map(Some)
        .map_err(|_| ClientError::Unreadable)
}
