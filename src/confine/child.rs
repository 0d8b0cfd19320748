//! The stage as a child process of the parent: started, and waited for.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, stat};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::vigil::{LOOK_EVERY, Patience, Then, Vigil};
use super::{stage, sys};

/// With one of these the loader may have loaded what the stage is not to have, or copied it.
const LEAD_THE_LOADER: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH"];

/// A stage that was started.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It may have ended, and its number is still its own.
    Unreaped,
    /// Its number may be another's.
    Reaped,
}

impl Child {
    /// Starts a stage that listens to this socket.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts a process")]
    pub(super) fn start(control: OwnedFd) -> std::io::Result<Self> {
        let child = Command::new("/proc/self/exe")
            .arg(stage::SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(control)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = i32::try_from(child.id()).map_err(std::io::Error::other)?;
        Ok(Self::of(Pid::from_raw(pid)))
    }

    /// The same for a program that has done nothing yet: where it has no other thread and nobody led its loader, it need not be
    /// loaded again.
    pub(super) fn start_first(control: OwnedFd) -> std::io::Result<Self> {
        if !is_alone() || LEAD_THE_LOADER.into_iter().any(|name| std::env::var_os(name).is_some()) {
            return Self::start(control);
        }
        let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
        match sys::fork()? {
            Some(pid) => Ok(Self::of(pid)),
            None => stage::forked(control, null),
        }
    }

    const fn of(pid: Pid) -> Self {
        Self {
            pid,
            state: State::Unreaped,
        }
    }

    /// Somebody who looks whether it was stopped; needs a runtime.
    pub(super) fn watched(&self) -> Vigil {
        Vigil::over(self.pid)
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Whether it is still there.
    pub(super) fn is_alive(&mut self) -> bool {
        if self.state == State::Unreaped && waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) == Ok(WaitStatus::StillAlive)
        {
            return true;
        }
        self.state = State::Reaped;
        false
    }

    /// Has it go on if somebody stopped it.
    pub(super) fn go_on_if_stopped(&mut self) {
        if self.state == State::Reaped {
            return;
        }
        match waitpid(self.pid, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            Ok(WaitStatus::Stopped(..)) => {
                // It is not reaped, so that it is the same.
                let _signalled = kill(self.pid, Signal::SIGCONT);
            }
            Ok(_) | Err(_) => self.state = State::Reaped,
        }
    }

    /// Waits for its end. One that cannot be waited for has been reaped by somebody else. One that is stopped is told to go
    /// on, and killed where that does not help.
    pub(super) fn wait(&mut self) {
        let mut patience = Patience::default();
        while self.state == State::Unreaped {
            match waitpid(self.pid, Some(WaitPidFlag::WUNTRACED)) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Stopped(..)) => {
                    let signal = match patience.is_tried() {
                        Then::GoOn => Signal::SIGCONT,
                        Then::Kill => Signal::SIGKILL,
                    };
                    std::thread::sleep(LOOK_EVERY);
                    // It is not reaped, so that it is the same.
                    let _signalled = kill(self.pid, signal);
                }
                Ok(_) | Err(_) => self.state = State::Reaped,
            }
        }
    }

    /// [`wait`](Self::wait) that lets others go on.
    pub(super) async fn gone(&mut self) {
        if self.state == State::Unreaped
            && let Ok(pidfd) = sys::open_pidfd(self.pid)
            && let Ok(ended) = sys::watch(pidfd)
        {
            let _told = ended.readable().await;
        }
        self.wait();
    }
}

/// Whether this process has one thread, as far as that can be told; see `proc_pid_task(5)`.
fn is_alone() -> bool {
    // Two links every directory has; the others are threads.
    stat(Path::new("/proc/self/task")).is_ok_and(|tasks| tasks.st_nlink == 3)
}
