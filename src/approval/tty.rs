//! The controlling terminal, borrowed for one question.
//!
//! Opened for each question, so that its file flags are not shared; its settings are always restored.

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
use crate::backend::host::terminal_lock::{ControllingTerminal, TerminalLock};

const CTRL_C: u8 = 0x03;
const CTRL_BACKSLASH: u8 = 0x1c;
const CTRL_D: u8 = 0x04;
/// The longest line that is read; the kernel keeps no longer one.
const MAX_LINE: usize = 4096;
/// How often to check whether the terminal is free.
const RETRY: Duration = Duration::from_millis(50);

/// The terminal, set up for a question.
#[derive(Debug)]
pub(super) struct Tty<'a> {
    file: File,
    before: Termios,
    /// What was typed at once with a key, behind the end of its line.
    unread: Vec<u8>,
    limits: WaitLimits<'a>,
    // Dropped last, after the settings were restored.
    _lock: TerminalLock,
}

/// The input mode of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Line by line, edited and echoed.
    Lines,
    /// Key by key, without echo.
    Keys,
}

/// What ends a wait.
#[derive(Debug, Clone, Copy)]
struct WaitLimits<'a> {
    started: Instant,
    timeout: Option<Duration>,
    cancelled: Option<&'a Cancelled>,
}

impl<'a> Tty<'a> {
    /// Opens the terminal once no other question is open on it. Fails in the background.
    pub(super) fn open(timeout: Option<Duration>, cancelled: Option<&'a Cancelled>) -> Result<Self, ApproverError> {
        let limits = WaitLimits {
            started: Instant::now(),
            timeout,
            cancelled,
        };
        cancelled.map_or(Ok(()), Cancelled::check)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            // Not blocking: a stopped terminal must not hang the session beyond the timeout.
            .custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open("/dev/tty")
            .map_err(ApproverError::NoTerminal)?;
        let terminal_lock = wait_for_lock(&file, limits)?;
        let before = tcgetattr(&file).map_err(|errno| failed("reading its settings", errno))?;
        let tty = Self {
            file,
            before,
            unread: Vec::new(),
            limits,
            _lock: terminal_lock,
        };
        tty.set(Input::Lines, SetArg::TCSAFLUSH)?;
        Ok(tty)
    }

    /// Changes the input mode.
    pub(super) fn set_input(&self, input: Input) -> Result<(), ApproverError> {
        self.set(input, SetArg::TCSANOW)
    }

    fn set(&self, input: Input, when: SetArg) -> Result<(), ApproverError> {
        let mut during = self.before.clone();
        // Ctrl-C must deny the question, not end the session; as end-of-line characters Ctrl-C and
        // Ctrl-\ are delivered at once, without Enter.
        during.local_flags.remove(LocalFlags::ISIG | LocalFlags::ECHONL);
        let lines = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ECHOE | LocalFlags::IEXTEN;
        match input {
            Input::Lines => {
                during.local_flags.insert(lines);
                during.control_chars[SpecialCharacterIndices::VEOL as usize] = CTRL_C;
                during.control_chars[SpecialCharacterIndices::VEOL2 as usize] = CTRL_BACKSLASH;
            }
            Input::Keys => {
                during.local_flags.remove(lines);
                during.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
                during.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
            }
        }
        during
            .input_flags
            .remove(InputFlags::IGNCR | InputFlags::INLCR | InputFlags::ISTRIP);
        during.input_flags.insert(InputFlags::ICRNL);
        during.output_flags.insert(OutputFlags::OPOST | OutputFlags::ONLCR);
        tcsetattr(&self.file, when, &during).map_err(|errno| failed("changing its settings", errno))
    }

    /// Whether the terminal has UTF-8 input switched on.
    pub(super) fn is_utf8(&self) -> bool {
        self.before.input_flags.contains(InputFlags::IUTF8)
    }

    /// Discards what was typed before the question was shown.
    pub(super) fn flush(&mut self) -> Result<(), ApproverError> {
        self.unread.clear();
        tcflush(&self.file, FlushArg::TCIFLUSH).map_err(|errno| failed("discarding typed-ahead input", errno))
    }

    /// Reads keys from here on. Waits until nothing was typed for so long, and discards what was, except Ctrl-C and Ctrl-\\.
    pub(super) fn wait_for_quiet(&mut self, quiet: Duration) -> Result<(), ApproverError> {
        self.set_input(Input::Keys)?;
        let mut since = Instant::now();
        let mut keys = [0; 256];
        while since.elapsed() < quiet {
            self.limits.pause()?;
            if let Some(count) = self.try_read(&mut keys, "waiting for quiet")? {
                let typed = keys.get(..count).unwrap_or_default();
                if typed.contains(&CTRL_C) || typed.contains(&CTRL_BACKSLASH) {
                    return Err(ApproverError::Interrupted);
                }
                since = Instant::now();
            }
        }
        Ok(())
    }

    /// Writes all of `text`.
    pub(super) fn write(&mut self, text: &str) -> Result<(), ApproverError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(failed("writing the question", Errno::EIO)),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.limits.wait(self.file.as_fd(), PollFlags::POLLOUT)?;
                }
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
        let mut line = std::mem::take(&mut self.unread);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(line);
        }
        let mut buffer = [0_u8; 64];
        loop {
            let count = self.read(&mut buffer)?;
            line.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if line.contains(&CTRL_C) || line.contains(&CTRL_BACKSLASH) {
                return Err(ApproverError::Interrupted);
            }
            if line.last() == Some(&b'\n') {
                line.pop();
                return Ok(line);
            }
            if line.len() > MAX_LINE {
                return Err(ApproverError::Unreadable);
            }
        }
    }

    /// Reads one key, or what was pasted at once, without the end of its line.
    pub(super) fn key(&mut self) -> Result<Vec<u8>, ApproverError> {
        self.set_input(Input::Keys)?;
        let mut buffer = [0_u8; 256];
        let count = self.read(&mut buffer)?;
        let typed = buffer.get(..count).unwrap_or_default();
        if typed.contains(&CTRL_C) || typed.contains(&CTRL_BACKSLASH) {
            return Err(ApproverError::Interrupted);
        }
        if typed.contains(&CTRL_D) {
            return Err(ApproverError::EndOfInput);
        }
        // What was typed behind an Enter is for the next line, if one is read.
        let end = typed.iter().position(|byte| *byte == b'\n').filter(|at| *at > 0);
        let (key, rest) = match end {
            Some(end) => (typed.get(..end), typed.get(end + 1..)),
            None => (Some(typed), None),
        };
        self.unread = rest.unwrap_or_default().to_vec();
        Ok(key.unwrap_or_default().to_vec())
    }

    /// Reads at least a byte of input.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ApproverError> {
        loop {
            if let Some(count) = self.try_read(buffer, "reading the answer")? {
                // An answer that arrives with the withdrawal is too late.
                self.limits.cancelled.map_or(Ok(()), Cancelled::check)?;
                return Ok(count);
            }
            self.limits.wait(self.file.as_fd(), PollFlags::POLLIN)?;
        }
    }

    /// Reads what was typed, if anything was.
    fn try_read(&mut self, buffer: &mut [u8], step: &'static str) -> Result<Option<usize>, ApproverError> {
        match self.file.read(buffer) {
            Ok(0) => Err(ApproverError::EndOfInput),
            Ok(count) => Ok(Some(count)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            // The terminal was closed.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Err(ApproverError::EndOfInput),
            Err(source) => Err(ApproverError::Terminal { step, source }),
        }
    }
}

fn wait_for_lock(file: &File, limits: WaitLimits<'_>) -> Result<TerminalLock, ApproverError> {
    let taking = |source| ApproverError::Terminal {
        step: "waiting for its turn",
        source,
    };
    let mut terminal = ControllingTerminal::find().map_err(taking)?;
    loop {
        // Changing a terminal from the background stops the whole job.
        match tcgetpgrp(file) {
            Ok(holder) if holder == getpgrp() => {}
            Ok(_) => return Err(ApproverError::Background),
            Err(errno) => return Err(ApproverError::NoTerminal(errno.into())),
        }
        terminal = match terminal.try_lock().map_err(|errno| taking(errno.into()))? {
            Ok(terminal_lock) => return Ok(terminal_lock),
            Err(terminal) => terminal,
        };
        limits.pause().map_err(|error| match error {
            ApproverError::TimedOut(timeout) => ApproverError::Busy(timeout),
            other => other,
        })?;
    }
}

impl WaitLimits<'_> {
    fn remaining(&self) -> Result<PollTimeout, ApproverError> {
        match self.timeout {
            None => Ok(PollTimeout::NONE),
            Some(timeout) => match timeout.checked_sub(self.started.elapsed()) {
                None => Err(ApproverError::TimedOut(timeout)),
                // A millisecond more, so that the wait does not end before the time is over.
                Some(remaining) => {
                    Ok(PollTimeout::try_from(remaining.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX))
                }
            },
        }
    }

    fn wait(&self, fd: BorrowedFd<'_>, events: PollFlags) -> Result<(), ApproverError> {
        loop {
            let remaining = self.remaining()?;
            self.cancelled.map_or(Ok(()), Cancelled::check)?;
            let tty = PollFd::new(fd, events);
            let polled = match self.cancelled {
                None => poll(&mut [tty], remaining),
                Some(cancelled) => poll(&mut [tty, PollFd::new(cancelled.as_fd(), PollFlags::POLLIN)], remaining),
            };
            match polled {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return self.cancelled.map_or(Ok(()), Cancelled::check),
                Err(errno) => return Err(failed("waiting for it", errno)),
            }
        }
    }

    /// Waits a little; fails when the wait is over.
    fn pause(&self) -> Result<(), ApproverError> {
        self.remaining()?;
        std::thread::sleep(RETRY);
        self.cancelled.map_or(Ok(()), Cancelled::check)
    }
}

impl AsFd for Tty<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Tty<'_> {
    fn drop(&mut self) {
        // TCSANOW, because TCSADRAIN would hang on a stopped terminal. Input after the answer was not meant for the program
        // that reads next.
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
