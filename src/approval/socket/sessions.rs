//! The sessions that may be answered: one at a place that is named, or all that are at the default place.
//!
//! At the default place each session has a socket of its own in a private directory. Whoever answers looks there again and again:
//! sessions come and go.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nix::unistd::geteuid;

use super::client::{ApprovalsClient, ClientError, Watching};
use super::protocol::{ApprovalsEvent, ApprovalsReply, ApprovalsRequest};

/// How often it is looked for sessions that have come.
const LOOK: Duration = Duration::from_millis(250);

/// Where sessions are looked for.
#[derive(Debug, Clone)]
pub enum ApprovalsPlace {
    /// One socket.
    At(PathBuf),
    /// All sockets in these directories.
    In(Vec<PathBuf>),
}

/// What whoever follows the sessions learns.
#[derive(Debug)]
pub enum Happening {
    /// There is no session now; it is waited for one.
    Nobody,
    /// Something happened in a session.
    Event(ApprovalsClient, ApprovalsEvent),
    /// A session is over.
    Ended,
}

impl ApprovalsPlace {
    /// The sessions that listen now; at least one.
    pub fn sessions(&self) -> Result<Vec<ApprovalsClient>, ClientError> {
        match self {
            Self::At(socket) => {
                let client = ApprovalsClient::new(socket);
                client.listens()?;
                Ok(vec![client])
            }
            Self::In(_) => {
                let sockets = self.sockets().into_iter();
                let clients = sockets.map(|socket| ApprovalsClient::new(&socket));
                // Those of killed sessions are still there.
                let live: Vec<_> = clients.filter(|client| client.listens().is_ok()).collect();
                if live.is_empty() {
                    return Err(ClientError::NoSession);
                }
                Ok(live)
            }
        }
    }

    /// The session that asks this question.
    pub fn asking(&self, id: &str) -> Result<ApprovalsClient, ClientError> {
        let mut sessions = self.sessions()?;
        if sessions.len() == 1 {
            // It says best what became of the question.
            return sessions.pop().ok_or(ClientError::NoSession);
        }
        let asks = |client: &ApprovalsClient| match client.say(ApprovalsRequest::List) {
            Ok(ApprovalsReply::Waiting(waiting)) => waiting.iter().any(|waiting| waiting.id == id),
            Ok(_) | Err(_) => false,
        };
        let found = sessions.into_iter().find(asks);
        found.ok_or_else(|| ClientError::Refused(super::board::NOT_OPEN.to_owned()))
    }

    /// Follows all sessions, those that are still to come as well.
    pub fn follow(self) -> Following {
        let (tell, told) = channel();
        Following {
            place: self,
            watched: HashSet::new(),
            tell,
            told,
            next: Next::Look,
        }
    }

    fn sockets(&self) -> Vec<PathBuf> {
        match self {
            Self::At(socket) => vec![socket.clone()],
            Self::In(directories) => {
                let mut all: Vec<PathBuf> = directories.iter().flat_map(|directory| within(directory)).collect();
                all.sort();
                all
            }
        }
    }
}

/// The sockets in a directory that is the user's alone.
fn within(directory: &Path) -> Vec<PathBuf> {
    let is_ours = fs::symlink_metadata(directory)
        .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0);
    let entries = is_ours.then(|| fs::read_dir(directory).ok()).flatten();
    let entries = entries.into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.map(|entry| entry.path()).collect()
}

/// What a thread that watches one session tells.
type Told = (PathBuf, Option<Result<ApprovalsEvent, ClientError>>);

/// Follows sessions for ever.
#[derive(Debug)]
pub struct Following {
    place: ApprovalsPlace,
    watched: HashSet<PathBuf>,
    tell: Sender<Told>,
    told: Receiver<Told>,
    next: Next,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// To look for sessions, and to say if there is none.
    Look,
    /// To wait for what happens; that there is nobody is said, or there is somebody.
    Wait,
}

impl Following {
    /// Watches sessions that are not watched yet.
    fn look(&mut self) -> Result<(), ClientError> {
        for socket in self.place.sockets() {
            if self.watched.contains(&socket) {
                continue;
            }
            match ApprovalsClient::new(&socket).watch() {
                Ok(watching) => {
                    let tell = self.tell.clone();
                    let watched = socket.clone();
                    // Not joined: it ends with its session, or with the process.
                    std::thread::Builder::new()
                        .name("watch".to_owned())
                        .spawn(move || pass_on(watching, &watched, &tell))
                        .map_err(ClientError::Silent)?;
                    self.watched.insert(socket);
                }
                Err(error) => self.missed(error)?,
            }
        }
        Ok(())
    }

    /// Gives an error on where waiting does not help.
    fn missed(&self, error: ClientError) -> Result<(), ClientError> {
        match (&self.place, error) {
            // Somebody else's, or one that has just gone.
            (ApprovalsPlace::In(_), _) => Ok(()),
            (ApprovalsPlace::At(_), error) if error.is_gone() => Ok(()),
            (ApprovalsPlace::At(_), error) => Err(error),
        }
    }
}

fn pass_on(watching: Watching, socket: &Path, tell: &Sender<Told>) {
    for event in watching {
        let is_last = event.is_err();
        if tell.send((socket.to_owned(), Some(event))).is_err() {
            return;
        }
        if is_last {
            break;
        }
    }
    // Nobody follows any more.
    let _unheard = tell.send((socket.to_owned(), None));
}

impl Iterator for Following {
    type Item = Result<Happening, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Err(error) = self.look() {
                return Some(Err(error));
            }
            if self.watched.is_empty() {
                if self.next == Next::Look {
                    self.next = Next::Wait;
                    return Some(Ok(Happening::Nobody));
                }
            } else {
                self.next = Next::Look;
            }
            match self.told.recv_timeout(LOOK) {
                Ok((socket, Some(Ok(event)))) => {
                    return Some(Ok(Happening::Event(ApprovalsClient::new(&socket), event)));
                }
                // One that went in the middle of a word is told of next.
                Ok((_, Some(Err(ClientError::Silent(_) | ClientError::Unreadable))))
                | Err(RecvTimeoutError::Timeout) => {}
                Ok((_, Some(Err(error)))) => {
                    if let Err(error) = self.missed(error) {
                        return Some(Err(error));
                    }
                }
                Ok((socket, None)) => {
                    self.watched.remove(&socket);
                    return Some(Ok(Happening::Ended));
                }
                // A sender is here.
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
            // It went in the middle of a word.
            Self::Silent(error) => matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ),
            Self::NoSession => true,
            Self::NotOurs | Self::Unreadable | Self::TooLong | Self::Refused(_) => false,
        }
    }
}
