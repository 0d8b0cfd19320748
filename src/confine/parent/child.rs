//! The supervisor as a child process of the parent: started, and waited for.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::confine::parent::watchdog::{Action, CHECK_INTERVAL, StopCount, Watchdog};
use crate::confine::supervisor::start;
use crate::confine::sys;

#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It may have ended; its pid is still its own.
    Unreaped,
    /// Its pid may be reused.
    Reaped,
}

impl Child {
    /// Starts a supervisor that listens to this socket.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts a process")]
    pub(crate) fn start(control: OwnedFd) -> std::io::Result<Self> {
        let child = Command::new("/proc/self/exe")
            .arg(start::SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(control)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Until it has its own session: keys at the terminal must signal the parent only.
            .process_group(0)
            .spawn()?;
        let pid = i32::try_from(child.id()).map_err(std::io::Error::other)?;
        Ok(Self::of(Pid::from_raw(pid)))
    }

    const fn of(pid: Pid) -> Self {
        Self {
            pid,
            state: State::Unreaped,
        }
    }

    pub(crate) fn watchdog(&self) -> Watchdog {
        Watchdog::over(self.pid)
    }

    pub(crate) fn id(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Waits for its end. One that cannot be waited for was reaped elsewhere. One that is stopped is continued, and killed where that
    /// does not help.
    pub(crate) fn wait(&mut self) {
        let mut stops = StopCount::default();
        while self.state == State::Unreaped {
            match waitpid(self.pid, Some(WaitPidFlag::WUNTRACED)) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Stopped(..)) => {
                    let signal = match stops.record_stopped() {
                        Action::Continue => Signal::SIGCONT,
                        Action::Kill => Signal::SIGKILL,
                    };
                    std::thread::sleep(CHECK_INTERVAL);
                    // Not reaped, so the pid is still its own.
                    let _signalled = kill(self.pid, signal);
                }
                Ok(_) | Err(_) => self.state = State::Reaped,
            }
        }
    }

    /// [`wait`](Self::wait) without blocking the runtime.
    pub(crate) async fn wait_async(&mut self) {
        if self.state == State::Unreaped
            && let Ok(pidfd) = sys::open_pidfd(self.pid)
            && let Ok(ended) = sys::watch(pidfd)
        {
            let _readable = ended.readable().await;
        }
        self.wait();
    }
}
