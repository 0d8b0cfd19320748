//! The controlling terminal, borrowed for one question.
//!
//! Opened anew for each question, so that its flags are ours alone, and put back as it was whatever
//! happens.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{
    FlushArg, InputFlags, LocalFlags, OutputFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr,
    tcsetattr,
};
use nix::unistd::{getpgrp, tcgetpgrp};

use super::approver::ApproverError;
use super::cancel::Cancelled;

const CTRL_C: u8 = 0x03;
const CTRL_BACKSLASH: u8 = 0x1c;
/// The longest answer that is read.
const MAX_ANSWER: usize = 256;

/// The terminal, set up for a question.
#[derive(Debug)]
pub(super) struct Tty<'a> {
    file: File,
    before: Termios,
    started: Instant,
    timeout: Option<Duration>,
    cancelled: Option<&'a Cancelled>,
}

impl<'a> Tty<'a> {
    /// Takes the terminal. Never waits for it: where another job holds it, that is an error.
    pub(super) fn open(timeout: Option<Duration>, cancelled: Option<&'a Cancelled>) -> Result<Self, ApproverError> {
        cancelled.map_or(Ok(()), Cancelled::check)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            // Not blocking: a stopped terminal must not hang the session beyond the timeout.
            .custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open("/dev/tty")
            .map_err(ApproverError::NoTerminal)?;
        // Changing a terminal from the background stops the whole job.
        match tcgetpgrp(&file) {
            Ok(holder) if holder == getpgrp() => {}
            Ok(_) => return Err(ApproverError::Background),
            Err(errno) => return Err(ApproverError::NoTerminal(errno.into())),
        }
        let before = tcgetattr(&file).map_err(|errno| failed("reading its settings", errno))?;
        let tty = Self {
            file,
            before,
            started: Instant::now(),
            timeout,
            cancelled,
        };
        let mut during = tty.before.clone();
        // Ctrl-C must deny the question, not end the session; as end-of-line characters Ctrl-C and
        // Ctrl-\ are delivered at once, without Enter.
        during.local_flags.remove(LocalFlags::ISIG | LocalFlags::ECHONL);
        during
            .local_flags
            .insert(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ECHOE | LocalFlags::IEXTEN);
        during
            .input_flags
            .remove(InputFlags::IGNCR | InputFlags::INLCR | InputFlags::ISTRIP);
        during.input_flags.insert(InputFlags::ICRNL);
        during.output_flags.insert(OutputFlags::OPOST | OutputFlags::ONLCR);
        during.control_chars[SpecialCharacterIndices::VEOL as usize] = CTRL_C;
        during.control_chars[SpecialCharacterIndices::VEOL2 as usize] = CTRL_BACKSLASH;
        tcsetattr(&tty.file, SetArg::TCSAFLUSH, &during).map_err(|errno| failed("changing its settings", errno))?;
        Ok(tty)
    }

    /// Throws away what was typed before the question could be read.
    pub(super) fn flush(&self) -> Result<(), ApproverError> {
        tcflush(&self.file, FlushArg::TCIFLUSH).map_err(|errno| failed("discarding typed-ahead input", errno))
    }

    /// Writes all of `text`.
    pub(super) fn write(&mut self, text: &str) -> Result<(), ApproverError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(failed("writing the question", Errno::EIO)),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::POLLOUT)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(ApproverError::Terminal {
                        step: "writing the question",
                        source,
                    });
                }
            }
        }
        Ok(())
    }

    /// Reads one line, without its end.
    pub(super) fn line(&mut self) -> Result<Vec<u8>, ApproverError> {
        let mut line = Vec::new();
        let mut buffer = [0_u8; 64];
        loop {
            let count = match self.file.read(&mut buffer) {
                Ok(0) => return Err(ApproverError::EndOfInput),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::POLLIN)?;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The other end is gone.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Err(ApproverError::EndOfInput),
                Err(source) => {
                    return Err(ApproverError::Terminal {
                        step: "reading the answer",
                        source,
                    });
                }
            };
            line.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if line.contains(&CTRL_C) || line.contains(&CTRL_BACKSLASH) {
                return Err(ApproverError::Interrupted);
            }
            if line.last() == Some(&b'\n') {
                line.pop();
                // An answer that comes together with the withdrawal is too late.
                self.cancelled.map_or(Ok(()), Cancelled::check)?;
                return Ok(line);
            }
            if line.len() > MAX_ANSWER {
                return Err(ApproverError::Unreadable);
            }
        }
    }

    fn wait(&self, events: PollFlags) -> Result<(), ApproverError> {
        loop {
            let left = match self.timeout {
                None => PollTimeout::NONE,
                Some(timeout) => match timeout.checked_sub(self.started.elapsed()) {
                    None => return Err(ApproverError::TimedOut(timeout)),
                    // A millisecond more, so that the wait does not end before the time is over.
                    Some(left) => PollTimeout::try_from(left.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX),
                },
            };
            self.cancelled.map_or(Ok(()), Cancelled::check)?;
            let tty = PollFd::new(self.file.as_fd(), events);
            let woken = match self.cancelled {
                None => poll(&mut [tty], left),
                Some(cancelled) => poll(&mut [tty, PollFd::new(cancelled.as_fd(), PollFlags::POLLIN)], left),
            };
            match woken {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return self.cancelled.map_or(Ok(()), Cancelled::check),
                Err(errno) => return Err(failed("waiting for it", errno)),
            }
        }
    }
}

impl AsFd for Tty<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Tty<'_> {
    fn drop(&mut self) {
        // Not after what was written is out: a stopped terminal would hang here. What was typed after
        // the answer was not meant for the program that reads next. A failure leaves nothing to do:
        // the terminal is gone.
        let _gone = tcsetattr(&self.file, SetArg::TCSANOW, &self.before);
        let _gone = tcflush(&self.file, FlushArg::TCIFLUSH);
    }
}

fn failed(step: &'static str, errno: Errno) -> ApproverError {
    ApproverError::Terminal {
        step,
        source: errno.into(),
    }
}
