//! Stockade's own pseudo-terminal, when a person sits at a keyboard.
//!
//! The command's terminal is never the user's. It starts with the user's settings and window size; while it is
//! served, the user's terminal is raw, so every key, Ctrl-C, Ctrl-Z and Ctrl-\ among them, goes as a byte to the
//! command's terminal, whose line discipline signals the command's foreground group. A shell inside can thus suspend
//! its jobs. The command itself cannot be suspended: its group is orphaned, and the kernel drops Ctrl-Z for it.
//!
//! Output passes unfiltered, as from any program that is run from a shell: vim and top are their escape sequences.
//! A command can therefore set the window title, or whatever else the user's terminal lets programs do. What must
//! not be forged, approval prompts, is escaped where it is made, and shown only while this relay does not run or is held up
//! ([`Pause`]).
//!
//! The user's settings come back when the [`RawGuard`] is dropped: at the end, on an error, and when the caller drops
//! the relay because of a signal. [`restore`] is for what runs no destructor: a panic hook, or an exit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, unlockpt};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::IoError;
use super::host::in_foreground;
use super::keyboard::Keyboard;
use super::pause::{Pass, Pause};
use crate::confine::sys;

/// The master end of a command's terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) master: OwnedFd,
}

impl Terminal {
    /// A terminal with the settings and the window size of `user`'s, and its slave end.
    pub(super) fn open(user: BorrowedFd<'_>) -> Result<(Self, OwnedFd), IoError> {
        let failed = |step| move |source: io::Error| IoError::Terminal { step, source };
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)
            .map_err(|errno| failed("open")(errno.into()))?;
        grantpt(&master).map_err(|errno| failed("grant")(errno.into()))?;
        unlockpt(&master).map_err(|errno| failed("unlock")(errno.into()))?;
        let slave = sys::pty_peer(&master).map_err(failed("open its slave end"))?;
        let settings = tcgetattr(user).map_err(|errno| failed("read the user's settings")(errno.into()))?;
        tcsetattr(&slave, SetArg::TCSANOW, &settings).map_err(|errno| failed("apply settings")(errno.into()))?;
        // A terminal without a size (a serial line) is no reason to fail.
        if let Ok(size) = sys::window_size(user) {
            sys::set_window_size(&master, &size).map_err(failed("set its size"))?;
        }
        Ok((Self { master: master.into() }, slave))
    }
}

/// Keeps the size of a command's terminal that of the user's, and the user's terminal raw, until it is dropped.
#[derive(Debug)]
pub(super) struct Session<'a> {
    user: BorrowedFd<'a>,
    master: BorrowedFd<'a>,
    guard: Option<RawGuard>,
    keyboard: &'a Keyboard,
    pause: Pause,
    /// Held while the terminal is raw, or may become so.
    pass: Option<Pass>,
    /// Whether Stockade was started in the background, or beside another of its kind that had the keyboard, and so found
    /// settings that are not the user's.
    late: bool,
    resized: Signal,
    continued: Signal,
}

impl<'a> Session<'a> {
    /// Starts a session; raw mode is entered as soon as Stockade is the foreground job, and no other process of its
    /// kind has the keyboard.
    pub(super) fn start(
        user: BorrowedFd<'a>,
        master: BorrowedFd<'a>,
        keyboard: &'a Keyboard,
        pause: Pause,
    ) -> Result<Self, IoError> {
        let resized = signal(SignalKind::window_change()).map_err(IoError::Watch)?;
        let continued = signal(SignalKind::from_raw(libc::SIGCONT)).map_err(IoError::Watch)?;
        let mut session = Self {
            user,
            master,
            guard: None,
            keyboard,
            pass: pause.try_pass(),
            pause,
            late: false,
            resized,
            continued,
        };
        session.refresh()?;
        session.late = session.guard.is_none();
        Ok(session)
    }

    /// Follows the user's terminal for ever: its size, and Stockade being stopped and continued.
    pub(super) async fn follow(&mut self) -> Result<std::convert::Infallible, IoError> {
        loop {
            let waiting = self.guard.is_none();
            tokio::select! {
                biased;
                () = self.pause.requested() => {
                    // During a question the terminal has the user's settings.
                    drop(self.guard.take());
                    self.keyboard.release();
                    drop(self.pass.take());
                    self.pause.ended().await;
                    self.pass = Some(self.pause.pass().await);
                }
                _ = self.resized.recv() => {}
                _ = self.continued.recv() => {
                    // The shell may have put its own settings in force meanwhile.
                    if let Some(guard) = &self.guard && in_foreground(self.user) {
                        guard.enter().map_err(|source| IoError::Terminal { step: "enter raw mode", source })?;
                    }
                }
                () = tokio::time::sleep(std::time::Duration::from_millis(100)), if waiting => {}
            }
            self.refresh()?;
        }
    }

    fn refresh(&mut self) -> Result<(), IoError> {
        if self.guard.is_none() && self.pass.is_some() && in_foreground(self.user) && self.keyboard.take() {
            let guard = RawGuard::new(self.user).map_err(|source| IoError::Terminal {
                step: "make the user's terminal raw",
                source,
            })?;
            if self.late {
                // Only now are the user's settings those that a command is to start with.
                let _set = tcsetattr(self.master, SetArg::TCSANOW, &guard.before);
            }
            self.guard = Some(guard);
        }
        if let Ok(size) = sys::window_size(self.user) {
            // The command's terminal may be gone already; its output then ends too.
            let _set = sys::set_window_size(self.master, &size);
        }
        Ok(())
    }
}

/// A copy of the settings to come back to, for [`restore`]. The latest guard's: a process has one keyboard.
static SAVED: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

fn saved() -> MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The columns and rows of a terminal; `None` where `fd` is no terminal, or its size is not known.
///
/// The size is that of `TIOCGWINSZ` (`ioctl_tty(2)`); a terminal without a size reports zeros.
pub fn size(fd: BorrowedFd<'_>) -> Option<(u16, u16)> {
    sys::window_size(fd)
        .ok()
        .map(|size| (size.ws_col, size.ws_row))
        .filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

/// The user's terminal in raw mode; the settings it had come back when this is dropped.
#[derive(Debug)]
pub struct RawGuard {
    terminal: OwnedFd,
    before: Termios,
    raw: Termios,
}

impl RawGuard {
    /// Makes `terminal` raw.
    pub fn new(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        let terminal = terminal.try_clone_to_owned()?;
        let before = tcgetattr(&terminal)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        *saved() = Some((terminal.try_clone()?, before.clone()));
        let guard = Self { terminal, before, raw };
        guard.enter()?;
        Ok(guard)
    }

    fn enter(&self) -> io::Result<()> {
        // Not TCSAFLUSH: what was typed ahead is for the command.
        Ok(tcsetattr(&self.terminal, SetArg::TCSANOW, &self.raw)?)
    }
}

impl Drop for RawGuard {
    fn drop(&mut self) {
        *saved() = None;
        put_back(self.terminal.as_fd(), &self.before);
    }
}

/// Gives the user's terminal back the settings it had before a [`RawGuard`]; does nothing where there is none.
///
/// For a panic hook, and for paths that end the process without unwinding.
pub fn restore() {
    if let Some((terminal, settings)) = saved().take() {
        put_back(terminal.as_fd(), &settings);
    }
}

fn put_back(terminal: BorrowedFd<'_>, settings: &Termios) {
    // A background job that changed the settings would be stopped, and they are no longer its own to change.
    if in_foreground(terminal) {
        // TCSANOW waits for nothing: a stopped (Ctrl-S) terminal must not hang the exit. There is nobody to tell of a
        // failure: the terminal is gone.
        let _set = tcsetattr(terminal, SetArg::TCSANOW, settings);
    }
}
