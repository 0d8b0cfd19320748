//! A request on its way to a file server, and what has come back of its answer. The socket is never waited for longer than
//! one is told to, however slowly the other end reads or writes.

use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};

use super::protocol::{FileReply, FileRequest};
use crate::confine::error::ConfineError;
use crate::confine::wire::linger::{ANSWER, linger};
use crate::confine::wire::{body_length, decode, encode};

/// The most parts of one answer.
const MAX_PARTS: usize = 100_000;
/// How much is read at a time, and at first: most answers are small.
const PIECE: usize = 64 * 1024;
const FIRST: usize = 4 * 1024;
/// What stands before each frame: its length.
const PREFIX: usize = 4;

/// Takes the parts of a stream as they come.
pub type Take<'a> = &'a mut dyn FnMut(FileReply) -> Result<(), ConfineError>;

/// How far a request and its answer have come.
#[derive(Debug)]
pub(super) struct Conversation {
    frame: Vec<u8>,
    sent: usize,
    /// Grows with what arrives, not with what was announced.
    heard: Vec<u8>,
    parts: usize,
    end: Option<Instant>,
}

impl Conversation {
    /// One that ends at `end`, whatever has been said by then.
    pub(super) fn new(request: &FileRequest, end: Option<Instant>) -> Result<Self, ConfineError> {
        Ok(Self {
            frame: encode(request).map_err(ConfineError::Channel)?,
            sent: 0,
            heard: Vec::new(),
            parts: 0,
            end,
        })
    }

    /// Goes on until the last word, or `until`; then there is nothing yet.
    pub(super) fn advance(
        &mut self,
        socket: &UnixStream,
        until: Option<Instant>,
        take: Take<'_>,
    ) -> Result<Option<FileReply>, ConfineError> {
        while let Some(rest) = self.frame.get(self.sent..).filter(|rest| !rest.is_empty()) {
            if self.is_over(until)? {
                return Ok(None);
            }
            match send(
                socket.as_raw_fd(),
                rest,
                MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(count) => self.sent += count,
                Err(Errno::EAGAIN) if !self.wait(socket, PollFlags::POLLOUT, until)? => return Ok(None),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(lost(errno)),
            }
        }
        loop {
            while let Some(reply) = self.frame()? {
                match reply {
                    part @ (FileReply::Entries(_) | FileReply::Matches(_)) => {
                        self.parts += 1;
                        if self.parts >= MAX_PARTS {
                            return Err(ConfineError::Malformed);
                        }
                        take(part)?;
                    }
                    last @ (FileReply::Found(_)
                    | FileReply::Peeked(..)
                    | FileReply::Text(_)
                    | FileReply::Done(_)
                    | FileReply::Prepared(_)
                    | FileReply::Shown(_)
                    | FileReply::Applied
                    | FileReply::Failed(_)) => return Ok(Some(last)),
                }
            }
            // However much comes, and however fast: only what is whole by then was in time.
            if self.is_over(until)? || !self.hear(socket, until)? {
                return Ok(None);
            }
        }
    }

    /// Whether the moment is over; when the end has come, that is an error.
    fn is_over(&self, until: Option<Instant>) -> Result<bool, ConfineError> {
        let now = Instant::now();
        if self.end.is_some_and(|end| end <= now) {
            return Err(ConfineError::Unresponsive);
        }
        Ok(until.is_some_and(|until| until <= now))
    }

    /// The next frame, if all of it is here.
    fn frame(&mut self) -> Result<Option<FileReply>, ConfineError> {
        let Some(prefix) = self.heard.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = body_length(*prefix).map_err(|_| ConfineError::Malformed)?;
        let whole = PREFIX.saturating_add(length);
        let Some(body) = self.heard.get(PREFIX..whole) else {
            return Ok(None);
        };
        let reply = decode(body).map_err(|_| ConfineError::Malformed)?;
        self.heard.drain(..whole);
        Ok(Some(reply))
    }

    /// Hears more; whether there was any by then.
    fn hear(&mut self, socket: &UnixStream, until: Option<Instant>) -> Result<bool, ConfineError> {
        let before = self.heard.len();
        loop {
            // It was said, so it is waited for first: it is seldom there at once, and often a moment later.
            let spoke = linger(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], ANSWER);
            if !spoke && !self.wait(socket, PollFlags::POLLIN, until)? {
                return Ok(false);
            }
            let piece = if before == 0 { FIRST } else { PIECE };
            self.heard.resize(before + piece, 0);
            let room = self.heard.get_mut(before..).unwrap_or_default();
            let count = recv(socket.as_raw_fd(), room, MsgFlags::MSG_DONTWAIT);
            self.heard.truncate(before + *count.as_ref().unwrap_or(&0));
            match count {
                Ok(0) => return Err(ConfineError::ForkerDied),
                Ok(_) => return Ok(true),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(lost(errno)),
            }
        }
    }

    /// Waits for the socket until then; whether it is ready. When the end has come, that is an error.
    fn wait(&self, socket: &UnixStream, flags: PollFlags, until: Option<Instant>) -> Result<bool, ConfineError> {
        loop {
            self.is_over(None)?;
            let now = Instant::now();
            let next = match (self.end, until) {
                (Some(end), Some(until)) => Some(end.min(until)),
                (end, until) => end.or(until),
            };
            let left = match next.map(|next| next.saturating_duration_since(now)) {
                None => PollTimeout::NONE,
                Some(left) => PollTimeout::try_from(left.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX),
            };
            let mut fds = [PollFd::new(socket.as_fd(), flags)];
            match poll(&mut fds, left) {
                Ok(0) if until.is_some_and(|until| until <= Instant::now()) => return Ok(false),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(lost(errno)),
            }
        }
    }
}

fn lost(errno: Errno) -> ConfineError {
    match errno {
        Errno::EPIPE | Errno::ECONNRESET => ConfineError::ForkerDied,
        errno => ConfineError::Channel(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use super::*;
    use crate::confine::files::protocol::{FileAsk, Hash, Last, Look};
    use crate::confine::wire;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_hours(1);

    fn conversation(patience: Duration) -> Conversation {
        let look = Look {
            path: "/".into(),
            last: Last::Target,
            hash: Hash::Skip,
        };
        let request = FileRequest {
            deadline_ms: 1,
            ask: FileAsk::Look(look),
        };
        Conversation::new(&request, Instant::now().checked_add(patience)).unwrap()
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_not_waited_for_longer_than_another() {
        for pause in [Duration::from_millis(20), Duration::from_micros(100), Duration::ZERO] {
            let (ours, drip) = dripping(pause);
            let mut asked = conversation(Duration::from_millis(200));
            // There is time for a part of it at most.
            let error = asked.advance(&ours, None, &mut |_| Ok(())).unwrap_err();
            assert!(matches!(error, ConfineError::Unresponsive), "{error}");
            drop(ours);
            drip.join().unwrap();
        }
    }

    #[test]
    fn whoever_waits_a_moment_waits_no_longer_for_an_answer_that_comes_byte_by_byte() {
        for pause in [Duration::from_micros(100), Duration::ZERO] {
            let (ours, drip) = dripping(pause);
            let mut asked = conversation(LONG);
            let until = Instant::now().checked_add(Duration::from_millis(1));
            // There is time for a part of it at most.
            let later = asked.advance(&ours, until, &mut |_| Ok(())).unwrap();
            assert_eq!(later, None, "{pause:?}");
            drop(ours);
            drip.join().unwrap();
        }
    }

    /// The end of a socket whose other end writes a large answer, with this pause after each byte.
    fn dripping(pause: Duration) -> (UnixStream, std::thread::JoinHandle<()>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let large = wire::encode(&FileReply::Failed(crate::confine::files::failure::failure(
            "",
            crate::confine::files::protocol::Why::Malformed("x".repeat(15_000_000)),
        )))
        .unwrap();
        let drip = std::thread::spawn(move || {
            for byte in large {
                if theirs.write_all(&[byte]).is_err() {
                    return;
                }
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
        });
        (ours, drip)
    }

    #[test]
    fn an_answer_that_is_late_is_heard_by_whoever_goes_on() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut asked = conversation(LONG);
        let soon = Instant::now().checked_add(Duration::from_millis(5));
        assert_eq!(asked.advance(&ours, soon, &mut |_| Ok(())).unwrap(), None);
        let frame = wire::encode(&FileReply::Applied).unwrap();
        let (first, rest) = frame.split_at(3);
        (&theirs).write_all(first).unwrap();
        let soon = Instant::now().checked_add(Duration::from_millis(5));
        assert_eq!(asked.advance(&ours, soon, &mut |_| Ok(())).unwrap(), None);
        (&theirs).write_all(rest).unwrap();
        assert_eq!(
            asked.advance(&ours, None, &mut |_| Ok(())).unwrap(),
            Some(FileReply::Applied)
        );
    }

    #[test]
    fn a_request_that_nobody_reads_holds_nobody_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut asked = conversation(LONG);
        asked.frame = vec![0; 16 * 1024 * 1024];
        let soon = Instant::now().checked_add(Duration::from_millis(5));
        assert_eq!(asked.advance(&ours, soon, &mut |_| Ok(())).unwrap(), None);
    }
}
