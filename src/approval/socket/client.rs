//! The other end: somebody who lists what is asked, and answers.

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

use super::place::token_of;
use super::protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest, LONGEST_LINE, Line, Waiting, line};
use crate::approval::asked::LARGEST;
use crate::policy::path::{display, escape};

/// The most bytes of a line that is read.
const LONGEST_REPLY: u64 = LARGEST as u64 + 64 * 1024;
/// The most bytes of a token file that are read.
const LONGEST_TOKEN: u64 = 256;
/// How long an answer may take. Whoever listens has a thread for nothing else, so it is the machine that needs the time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Speaks to the session that listens at a socket.
#[derive(Debug)]
pub struct ApprovalsClient {
    socket: PathBuf,
}

/// Why a session could not be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no session asks at {}: {}", display(.socket), nobody(.source))]
    NobodyListens {
        /// Where.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No session is at the default place.
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
    /// The connection failed.
    #[error("the session gave no answer: {0}")]
    Silent(#[source] io::Error),
    /// The session listens and does not answer.
    #[error("{} not answer: stopped, or the machine is too busy", who(.0))]
    Unanswered(Vec<Option<i32>>),
    /// The answer is none.
    #[error("the answer of the session was not understood")]
    Unreadable,
    /// The note is too long.
    #[error("the note is too long")]
    TooLong,
    /// The session said no.
    #[error("the session refused: {}", escape(.0.as_bytes()))]
    Refused(String),
}

/// Whose sessions these are, and the verb.
fn who(processes: &[Option<i32>]) -> String {
    let known: Vec<String> = processes.iter().flatten().map(ToString::to_string).collect();
    match (processes.len(), known.as_slice()) {
        (0 | 1, []) => "the session does".to_owned(),
        (_, []) => "some sessions do".to_owned(),
        (1, [process]) => format!("the session of process {process} does"),
        (_, _) => format!("the sessions of processes {} do", known.join(", ")),
    }
}

/// Why nobody is there.
fn nobody(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "the session that did has ended, or none was started".to_owned()
        }
        _ => source.to_string(),
    }
}

impl ApprovalsClient {
    /// Speaks to whoever listens at this socket.
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    /// Says one thing and gives the answer.
    pub fn say(&self, request: ApprovalsRequest) -> Result<ApprovalsReply, ClientError> {
        let (stream, process) = self.connect(request, PATIENCE)?;
        reply(stream, process, PATIENCE)
    }

    /// What the session asks, and its process.
    pub(super) fn list_within(&self, time: Duration) -> (Option<i32>, Result<Vec<Waiting>, ClientError>) {
        let (stream, process) = match self.connect(ApprovalsRequest::List, time) {
            Ok(connected) => connected,
            Err(error) => return (None, Err(error)),
        };
        let listed = reply(stream, process, time).and_then(|reply| match reply {
            ApprovalsReply::Waiting(waiting) => Ok(waiting),
            ApprovalsReply::Question(_) | ApprovalsReply::Done | ApprovalsReply::Refused(_) => {
                Err(ClientError::Unreadable)
            }
        });
        (known(process), listed)
    }

    /// Is told what happens until the session ends.
    pub fn watch(&self) -> Result<Watching, ClientError> {
        self.connect(ApprovalsRequest::Watch, PATIENCE)
            .map(|(stream, _)| Watching {
                stream: BufReader::new(stream),
            })
    }

    /// The process of the session, if it listens; its number is unknown where it lies in another PID namespace.
    pub fn listens(&self) -> Result<Option<i32>, ClientError> {
        let (_stream, process) = self.reach(PATIENCE)?;
        Ok(known(process))
    }

    fn reach(&self, time: Duration) -> Result<(UnixStream, i32), ClientError> {
        let stream = connected(&self.socket, time).map_err(|source| match source {
            // So many wait there already that nobody else is let in.
            late if is_late(&late) => ClientError::Unanswered(vec![None]),
            source => ClientError::NobodyListens {
                socket: self.socket.clone(),
                source,
            },
        })?;
        // The token is for nobody else.
        let peer = getsockopt(&stream, sockopt::PeerCredentials).map_err(|errno| ClientError::Silent(errno.into()))?;
        if peer.uid() != geteuid().as_raw() {
            return Err(ClientError::NotOurs);
        }
        Ok((stream, peer.pid()))
    }

    fn connect(&self, request: ApprovalsRequest, time: Duration) -> Result<(UnixStream, i32), ClientError> {
        let (mut stream, process) = self.reach(time)?;
        let said = line(&Line {
            token: self.token()?,
            request,
        });
        if said.len() > LONGEST_LINE {
            return Err(ClientError::TooLong);
        }
        stream.write_all(&said).map_err(ClientError::Silent)?;
        Ok((stream, process))
    }

    fn token(&self) -> Result<String, ClientError> {
        let token = token_of(&self.socket);
        let read = || {
            let mut text = String::new();
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&token)?;
            file.take(LONGEST_TOKEN).read_to_string(&mut text)?;
            Ok(text)
        };
        read().map_err(|source| ClientError::Token {
            token: token.clone(),
            source,
        })
    }
}

/// What a session answers to what it was asked.
fn reply(stream: UnixStream, process: i32, time: Duration) -> Result<ApprovalsReply, ClientError> {
    stream.set_read_timeout(Some(time)).map_err(ClientError::Silent)?;
    let read = read(&mut BufReader::new(stream)).map_err(|error| match error {
        ClientError::Silent(error) if is_late(&error) => ClientError::Unanswered(vec![known(process)]),
        other => other,
    });
    match read? {
        Some(ApprovalsReply::Refused(why)) => Err(ClientError::Refused(why)),
        Some(reply) => Ok(reply),
        None => Err(ClientError::Silent(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// The number of a process, if this side can see it.
fn known(process: i32) -> Option<i32> {
    Some(process).filter(|process| *process > 0)
}

/// Whether something took longer than it may.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A connection that neither its making nor a write may take longer than this.
fn connected(path: &Path, time: Duration) -> io::Result<UnixStream> {
    let made = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let stream = UnixStream::from(made);
    stream.set_write_timeout(Some(time))?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(stream)
}

/// What happens in a session, as it happens.
#[derive(Debug)]
pub struct Watching {
    stream: BufReader<UnixStream>,
}

impl Iterator for Watching {
    type Item = Result<ApprovalsEvent, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        match read(&mut self.stream) {
            Ok(Some(ApprovalsEvent::Refused(why))) => Some(Err(ClientError::Refused(why))),
            other => other.transpose(),
        }
    }
}

/// One line; `None` where there is no other.
fn read<T: DeserializeOwned>(from: &mut BufReader<UnixStream>) -> Result<Option<T>, ClientError> {
    let mut line = Vec::new();
    from.take(LONGEST_REPLY)
        .read_until(b'\n', &mut line)
        .map_err(ClientError::Silent)?;
    if line.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&line)
        .map(Some)
        .map_err(|_| ClientError::Unreadable)
}
