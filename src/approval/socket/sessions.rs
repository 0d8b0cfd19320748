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
use std::time::{Duration, Instant};

use nix::unistd::geteuid;

use super::client::{ApprovalsClient, ClientError, Watching};
use super::protocol::{ApprovalsEvent, Waiting};

/// How often it is looked for sessions that have come.
const LOOK: Duration = Duration::from_millis(250);
/// How long all sessions together may take to say what they ask.
const TO_LIST: Duration = Duration::from_secs(2);

/// How long one that found no answer may take to say so.
const TO_TELL: Duration = Duration::from_millis(500);

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

/// A session, and what it asks.
#[derive(Debug)]
pub struct Listed {
    /// Speaks to it.
    pub client: ApprovalsClient,
    /// Its process, where that can be seen from here.
    pub process: Option<i32>,
    /// Its open questions, or why it did not say.
    pub asks: Result<Vec<Waiting>, ClientError>,
}

impl Listed {
    /// Whether it is what a session left that is over, or another user's.
    fn is_none_of_ours(&self) -> bool {
        matches!(self.asks, Err(ClientError::NobodyListens { .. } | ClientError::NotOurs))
    }
}

impl ApprovalsPlace {
    /// What all sessions ask that listen now; at least one. They are asked side by side, and one that does not answer holds nobody
    /// up: it is [unanswered](ClientError::Unanswered).
    pub fn list(&self) -> Result<Vec<Listed>, ClientError> {
        let mut all = Vec::new();
        self.each(|listed| {
            all.push(listed);
            None::<()>
        })?;
        Ok(all)
    }

    /// The session that asks this question.
    pub fn asking(&self, id: &str) -> Result<ApprovalsClient, ClientError> {
        if let [socket] = self.sockets().as_slice() {
            // It says best what became of the question.
            let client = ApprovalsClient::new(socket);
            return match client.listens() {
                Err(_) if matches!(self, Self::In(_)) => Err(ClientError::NoSession),
                listens => listens.map(|_process| client),
            };
        }
        let mut answered = Vec::new();
        let mut silent = Vec::new();
        let found = self.each(|Listed { client, process, asks }| match asks {
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
        })?;
        match (found, answered.pop(), silent.is_empty()) {
            (Some(client), _, _) => Ok(client),
            (None, _, false) => Err(ClientError::Unanswered(silent)),
            // The only one says best what became of the question.
            (None, Some(client), true) if answered.is_empty() => Ok(client),
            (None, _, true) => Err(ClientError::Refused(super::board::NOT_OPEN.to_owned())),
        }
    }

    /// Asks all sessions at once what they ask, and tells of each, until something is found.
    fn each<T>(&self, mut found: impl FnMut(Listed) -> Option<T>) -> Result<Option<T>, ClientError> {
        let (tell, told) = channel();
        let mut awaited: HashSet<PathBuf> = self.sockets().into_iter().collect();
        for socket in awaited.iter().cloned() {
            let tell = tell.clone();
            // Not joined: whom it waits for may not answer. It ends a moment after that.
            std::thread::Builder::new()
                .name("list".to_owned())
                .spawn(move || {
                    let client = ApprovalsClient::new(&socket);
                    let (process, asks) = client.list_within(TO_LIST);
                    let listed = Listed { client, process, asks };
                    // Nobody waits for one that is late.
                    let _unheard = tell.send((socket, listed));
                })
                .map_err(ClientError::Silent)?;
        }
        drop(tell);
        let until = Instant::now() + TO_LIST + TO_TELL;
        let mut is_any = false;
        while let Ok((socket, listed)) = told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            awaited.remove(&socket);
            match (self, listed) {
                // Those of killed sessions are still there, and nobody who is not the user's is listened to.
                (Self::In(_), listed) if listed.is_none_of_ours() => {}
                (Self::At(_), Listed { asks: Err(error), .. }) if !matches!(error, ClientError::Unanswered(_)) => {
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
            let listed = Listed {
                client: ApprovalsClient::new(&socket),
                process: None,
                asks: Err(ClientError::Unanswered(vec![None])),
            };
            if let Some(found) = found(listed) {
                return Ok(Some(found));
            }
        }
        if is_any { Ok(None) } else { Err(ClientError::NoSession) }
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
            Self::NotOurs | Self::Unanswered(_) | Self::Unreadable | Self::TooLong | Self::Refused(_) => false,
        }
    }
}
