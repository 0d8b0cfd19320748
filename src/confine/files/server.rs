//! The parent's handle on a file server.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{FileReply, FileRequest};
use crate::confine::confinement::{Confinement, Launch, Running};
use crate::confine::error::ConfineError;
use crate::confine::protocol::{CommandLimits, Watch, Work};
use crate::confine::wire::{body_length, decode, send};

/// How long an answer may take beyond the deadline of the request.
const SLACK: Duration = Duration::from_secs(30);
/// The most parts of one answer.
const MAX_PARTS: usize = 100_000;

/// One end of the socket to a file server. Asking blocks the thread; one request is answered at a time.
#[derive(Debug, Clone)]
pub struct FileServer(Arc<Line>);

#[derive(Debug)]
struct Line {
    socket: UnixStream,
    turn: Mutex<()>,
    over: AtomicBool,
}

impl FileServer {
    /// A handle, and the server's end of the socket.
    pub fn pair() -> Result<(Self, OwnedFd), ConfineError> {
        let (ours, theirs) = UnixStream::pair().map_err(ConfineError::Spawn)?;
        let line = Line {
            socket: ours,
            turn: Mutex::new(()),
            over: AtomicBool::new(false),
        };
        Ok((Self(Arc::new(line)), theirs.into()))
    }

    /// Asks, hands over the parts of a stream as they come, and returns the last word.
    ///
    /// After an error the server is of no use any more: what it would say next may belong to this request.
    pub fn ask(
        &self,
        request: &FileRequest,
        take: &mut dyn FnMut(FileReply) -> Result<(), ConfineError>,
    ) -> Result<FileReply, ConfineError> {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::from_millis(request.deadline_ms).saturating_add(SLACK);
        let answered = converse(&self.0.socket, request, patience, take);
        if answered.is_err() {
            self.hang_up();
        }
        answered
    }

    /// Whether nobody can ask any more.
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    /// Hangs up: a request under way fails, and so does every later one.
    pub fn hang_up(&self) {
        self.0.over.store(true, Ordering::Release);
        // One that is closed already needs no more.
        let _closed = self.0.socket.shutdown(Shutdown::Both);
    }
}

pub(super) fn converse(
    socket: &UnixStream,
    request: &FileRequest,
    patience: Duration,
    take: &mut dyn FnMut(FileReply) -> Result<(), ConfineError>,
) -> Result<FileReply, ConfineError> {
    socket
        .set_write_timeout(Some(patience))
        .map_err(ConfineError::Channel)?;
    send(socket, request, &[]).map_err(lost)?;
    let mut heard = Heard {
        socket,
        // A time too long to express never ends.
        end: Instant::now().checked_add(patience),
    };
    for _ in 0..MAX_PARTS {
        match receive(&mut heard)? {
            part @ (FileReply::Entries(_) | FileReply::Matches(_)) => take(part)?,
            last @ (FileReply::Found(_)
            | FileReply::Text(_)
            | FileReply::Done(_)
            | FileReply::Prepared(_)
            | FileReply::Shown(_)
            | FileReply::Applied
            | FileReply::Failed(_)) => return Ok(last),
        }
    }
    Err(ConfineError::Malformed)
}

/// What a server says by the end of its time, however slowly it says it.
struct Heard<'a> {
    socket: &'a UnixStream,
    end: Option<Instant>,
}

impl io::Read for Heard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(left)?;
        self.socket.read(buffer)
    }
}

/// One frame; descriptors that ride along are not taken.
fn receive(heard: &mut Heard<'_>) -> Result<FileReply, ConfineError> {
    let mut prefix = [0u8; 4];
    heard.read_exact(&mut prefix).map_err(lost)?;
    let length = body_length(prefix).map_err(|_| ConfineError::Malformed)?;
    let mut body = Vec::new();
    // Grows with what arrives, not with what was announced.
    let taken = heard
        .take(u64::try_from(length).unwrap_or(u64::MAX))
        .read_to_end(&mut body)
        .map_err(lost)?;
    if taken < length {
        return Err(ConfineError::WorkerDied);
    }
    decode(&body).map_err(|_| ConfineError::Malformed)
}

fn lost(error: io::Error) -> ConfineError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            ConfineError::WorkerDied
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ConfineError::Unresponsive,
        _ => ConfineError::Channel(error),
    }
}

impl Confinement {
    /// The server for what only looks; started when it is first asked for, or was lost.
    pub async fn file_server(&mut self) -> Result<FileServer, ConfineError> {
        if let Some((server, running)) = &mut self.files
            && !server.is_over()
            && !running.has_ended()
        {
            return Ok(server.clone());
        }
        let (server, running) = self.start_file_server(Watch::Nothing).await?;
        self.files = Some((server.clone(), running));
        Ok(server)
    }

    /// A server of one's own.
    pub async fn start_file_server(&mut self, watch: Watch) -> Result<(FileServer, Running), ConfineError> {
        let (server, theirs) = FileServer::pair()?;
        let null = || {
            let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
            null.map(OwnedFd::from).map_err(ConfineError::Spawn)
        };
        let launch = Launch {
            work: Work::Files(watch),
            environment: Vec::new(),
            directory: OsString::from("/"),
            limits: CommandLimits::default(),
            streams: [theirs, null()?, null()?],
            terminal: false,
        };
        let running = self.launch(launch).await?;
        Ok((server, running))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_not_waited_for_longer_than_another() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let drip = std::thread::spawn(move || {
            while theirs.write_all(&[1]).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let started = Instant::now();
        let mut answer = Heard {
            socket: &ours,
            end: started.checked_add(Duration::from_millis(200)),
        };
        let mut frame = vec![0; 1 << 20];
        let error = answer.read_exact(&mut frame).unwrap_err();
        assert!(matches!(lost(error), ConfineError::Unresponsive));
        assert!(started.elapsed() < Duration::from_secs(10));
        drop(ours);
        drip.join().unwrap();
    }

    #[test]
    fn an_answer_in_time_is_read() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        send(&theirs, &FileReply::Applied, &[]).unwrap();
        let mut answer = Heard {
            socket: &ours,
            end: Instant::now().checked_add(Duration::from_mins(1)),
        };
        assert_eq!(receive(&mut answer).unwrap(), FileReply::Applied);
    }
}
