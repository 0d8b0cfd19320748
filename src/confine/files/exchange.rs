//! One request to a file server and its reply, with a deadline that a slow peer cannot extend.

use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};

use super::protocol::{FileReply, FileRequest};
use crate::confine::error::ConfineError;
use crate::confine::wire::busy_poll::{REPLY_TIME, busy_poll};
use crate::confine::wire::{body_length, decode, encode};

/// The most parts of one answer.
const MAX_PARTS: usize = 100_000;
/// How much is read at a time, and at first: most answers are small.
const PIECE: usize = 64 * 1024;
const FIRST: usize = 4 * 1024;
/// The length before each frame.
const PREFIX: usize = 4;

/// Takes the parts of a stream as they come.
pub type Take<'a> = &'a mut dyn FnMut(FileReply) -> Result<(), ConfineError>;

/// The progress of a request and its reply.
#[derive(Debug)]
pub(super) struct Exchange {
    frame: Vec<u8>,
    sent: usize,
    /// Grows with what arrives, not with what was announced.
    received: Vec<u8>,
    parts: usize,
    end: Option<Instant>,
}

impl Exchange {
    /// An exchange that fails at `end`.
    pub(super) fn new(request: &FileRequest, end: Option<Instant>) -> Result<Self, ConfineError> {
        Ok(Self {
            frame: encode(request).map_err(ConfineError::Channel)?,
            sent: 0,
            received: Vec::new(),
            parts: 0,
            end,
        })
    }

    /// Continues until the last reply, or returns `None` at `until`.
    pub(super) fn advance(
        &mut self,
        socket: &UnixStream,
        until: Option<Instant>,
        take: Take<'_>,
    ) -> Result<Option<FileReply>, ConfineError> {
        while let Some(rest) = self.frame.get(self.sent..).filter(|rest| !rest.is_empty()) {
            if self.has_expired(until)? {
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
            // Only frames that are complete by then were in time, however fast bytes arrive.
            if self.has_expired(until)? || !self.receive(socket, until)? {
                return Ok(None);
            }
        }
    }

    /// Whether `until` has passed; an error after the deadline.
    fn has_expired(&self, until: Option<Instant>) -> Result<bool, ConfineError> {
        let now = Instant::now();
        if self.end.is_some_and(|end| end <= now) {
            return Err(ConfineError::Unresponsive);
        }
        Ok(until.is_some_and(|until| until <= now))
    }

    /// The next frame, if all of it is here.
    fn frame(&mut self) -> Result<Option<FileReply>, ConfineError> {
        let Some(prefix) = self.received.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = body_length(*prefix).map_err(|_| ConfineError::Malformed)?;
        let length = PREFIX.saturating_add(length);
        let Some(body) = self.received.get(PREFIX..length) else {
            return Ok(None);
        };
        let reply = decode(body).map_err(|_| ConfineError::Malformed)?;
        self.received.drain(..length);
        Ok(Some(reply))
    }

    /// Receives more; whether any came in time.
    fn receive(&mut self, socket: &UnixStream, until: Option<Instant>) -> Result<bool, ConfineError> {
        let before = self.received.len();
        loop {
            // The reply often comes a moment after the request.
            let is_ready = busy_poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], REPLY_TIME);
            if !is_ready && !self.wait(socket, PollFlags::POLLIN, until)? {
                return Ok(false);
            }
            let piece = if before == 0 { FIRST } else { PIECE };
            self.received.resize(before + piece, 0);
            let room = self.received.get_mut(before..).unwrap_or_default();
            let count = recv(socket.as_raw_fd(), room, MsgFlags::MSG_DONTWAIT);
            self.received.truncate(before + *count.as_ref().unwrap_or(&0));
            match count {
                Ok(0) => return Err(ConfineError::ForkerDied),
                Ok(_) => return Ok(true),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(errno) => return Err(lost(errno)),
            }
        }
    }

    /// Waits for the socket; whether it is ready in time. An error after the deadline.
    fn wait(&self, socket: &UnixStream, flags: PollFlags, until: Option<Instant>) -> Result<bool, ConfineError> {
        loop {
            self.has_expired(None)?;
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
    use crate::confine::files::protocol::{FileOperation, Hash, Last, Look};
    use crate::confine::wire;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_hours(1);

    fn exchange(timeout: Duration) -> Exchange {
        let look = Look {
            path: "/".into(),
            last: Last::Target,
            hash: Hash::Skip,
        };
        let request = FileRequest {
            deadline_ms: 1,
            operation: FileOperation::Look(look),
        };
        Exchange::new(&request, Instant::now().checked_add(timeout)).unwrap()
    }

    #[test]
    fn a_reply_byte_by_byte_times_out_as_any_other() {
        for pause in [Duration::from_millis(20), Duration::from_micros(100), Duration::ZERO] {
            let (ours, drip) = dripping(pause);
            let mut exchange = exchange(Duration::from_millis(200));
            let error = exchange.advance(&ours, None, &mut |_| Ok(())).unwrap_err();
            assert!(matches!(error, ConfineError::Unresponsive), "{error}");
            drop(ours);
            drip.join().unwrap();
        }
    }

    #[test]
    fn a_short_wait_ends_in_time_while_bytes_arrive() {
        for pause in [Duration::from_micros(100), Duration::ZERO] {
            let (ours, drip) = dripping(pause);
            let mut exchange = exchange(LONG);
            let until = Instant::now().checked_add(Duration::from_millis(1));
            let later = exchange.advance(&ours, until, &mut |_| Ok(())).unwrap();
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
    fn a_late_reply_is_read_when_the_exchange_goes_on() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut exchange = exchange(LONG);
        let soon = Instant::now().checked_add(Duration::from_millis(5));
        assert_eq!(exchange.advance(&ours, soon, &mut |_| Ok(())).unwrap(), None);
        let frame = wire::encode(&FileReply::Applied).unwrap();
        let (first, rest) = frame.split_at(3);
        (&theirs).write_all(first).unwrap();
        let soon = Instant::now().checked_add(Duration::from_millis(5));
        assert_eq!(exchange.advance(&ours, soon, &mut |_| Ok(())).unwrap(), None);
        (&theirs).write_all(rest).unwrap();
        assert_eq!(
            exchange.advance(&ours, None, &mut |_| Ok(())).unwrap(),
            Some(FileReply::Applied)
        );
    }

    #[test]
    fn a_request_that_nobody_reads_does_not_block() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut exchange = exchange(LONG);
        exchange.frame = vec![0; 16 * 1024 * 1024];
        let soon = Instant::now().checked_add(Duration::from_millis(5));
        assert_eq!(exchange.advance(&ours, soon, &mut |_| Ok(())).unwrap(), None);
    }
}
