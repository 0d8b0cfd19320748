//! A program of the user's that runs outside every confinement, for one question.
//!
//! It gets three pipes, the environment it is given, and no descriptor beside them. It leads a process group of its
//! own, and nothing of that group is left when this returns.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::confine::sys;

/// How often the end of the program is checked while its output is open.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The same once its output is closed and it is about to end.
const END_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A program and what it gets.
#[derive(Debug, Clone, Copy)]
pub struct UnconfinedProgram<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its whole environment.
    pub environment: &'a [(OsString, OsString)],
    /// What it reads.
    pub input: &'a [u8],
    /// The most bytes of standard output.
    pub output: usize,
    /// The most bytes of standard error that are kept.
    pub errors: usize,
    /// How long it may take.
    pub time: Duration,
    /// It is killed once this is readable.
    pub stop: Option<BorrowedFd<'a>>,
}

/// How the program ended.
#[derive(Debug)]
pub enum ProgramEnd {
    /// It ended by itself.
    Ended {
        /// How.
        status: ExitStatus,
        /// What it wrote to standard output.
        output: Vec<u8>,
        /// The beginning of what it wrote to standard error.
        errors: Vec<u8>,
    },
    /// It wrote more than it may, and was killed.
    TooMuch,
    /// Its time was over, and it was killed.
    TimedOut,
    /// It was to stop, and was killed.
    Stopped,
}

/// Runs the program to its end, or to the end of what it may.
#[expect(clippy::disallowed_methods, reason = "confine/ is where processes are started")]
pub fn run(program: &UnconfinedProgram<'_>) -> io::Result<ProgramEnd> {
    let started = Instant::now();
    // What the shell that started this process left open is not the program's.
    sys::close_on_exec_from(3)?;
    let child = Command::new(program.program)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut group = Group::of(child)?;
    let (stdin, stdout, stderr) = group.take_pipes();
    let mut input = Input::new(stdin, program.input)?;
    let mut output = Output::new(stdout, program.output)?;
    let mut errors = Output::new(stderr, program.errors)?;
    loop {
        // Checked before reading, so that all it wrote before its end is read.
        let has_ended = group.has_ended()?;
        input.write()?;
        output.read()?;
        errors.read()?;
        if output.total > program.output {
            return Ok(ProgramEnd::TooMuch);
        }
        if has_ended {
            let status = group.end()?;
            let (output, errors) = (output.bytes, errors.bytes);
            return Ok(ProgramEnd::Ended { status, output, errors });
        }
        let Some(left) = program
            .time
            .checked_sub(started.elapsed())
            .filter(|left| !left.is_zero())
        else {
            return Ok(ProgramEnd::TimedOut);
        };
        let interval = if output.from.is_some() {
            POLL_INTERVAL
        } else {
            END_POLL_INTERVAL
        };
        let outputs = [output.open(), errors.open()];
        if wait(program.stop, &input, outputs, interval.min(left))? {
            return Ok(ProgramEnd::Stopped);
        }
    }
}

/// Waits until there is something to do; whether that is to stop.
fn wait(
    stop: Option<BorrowedFd<'_>>,
    input: &Input<'_>,
    outputs: [Option<BorrowedFd<'_>>; 2],
    time: Duration,
) -> io::Result<bool> {
    let mut fds = Vec::with_capacity(4);
    fds.extend(stop.map(|stop| PollFd::new(stop, PollFlags::POLLIN)));
    fds.extend(input.to.as_ref().map(|to| PollFd::new(to.as_fd(), PollFlags::POLLOUT)));
    fds.extend(
        outputs
            .into_iter()
            .flatten()
            .map(|from| PollFd::new(from, PollFlags::POLLIN)),
    );
    let time = PollTimeout::try_from(time.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, time) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let is_ready = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
    Ok(stop.is_some() && fds.first().is_some_and(is_ready))
}

/// The program and everything that stayed in its process group; killed when it is dropped.
struct Group {
    leader: Pid,
    /// `None` once it has been reaped and its pid may be reused.
    child: Option<Child>,
}

impl Group {
    fn of(child: Child) -> io::Result<Self> {
        let leader = i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other)?;
        Ok(Self {
            leader,
            child: Some(child),
        })
    }

    fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        match &mut self.child {
            Some(child) => (child.stdin.take(), child.stdout.take(), child.stderr.take()),
            None => (None, None, None),
        }
    }

    /// Whether the program has ended. It is not reaped, so that its pid stays its own.
    fn has_ended(&self) -> io::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.leader), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => Ok(false),
            Ok(_) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Kills what is left of the group, then reaps the program.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let mut child = self.child.take().ok_or(io::ErrorKind::NotFound)?;
        // Fails only where nobody is left.
        let _killed = killpg(self.leader, Signal::SIGKILL);
        child.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails only where it has been reaped.
        let _reaped = self.end();
    }
}

/// What the program has yet to read.
struct Input<'a> {
    to: Option<ChildStdin>,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn new(to: Option<ChildStdin>, rest: &'a [u8]) -> io::Result<Self> {
        to.as_ref().map_or(Ok(()), set_nonblocking)?;
        Ok(Self { to, rest })
    }

    /// Writes what there is room for; closes it at the end, and where nobody reads any more.
    fn write(&mut self) -> io::Result<()> {
        while let Some(to) = self.to.as_mut() {
            match to.write(self.rest) {
                Ok(0) => self.to = None,
                Ok(written) => self.rest = self.rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.to = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What the program has written so far: the beginning of it, and how much it was.
struct Output<R> {
    from: Option<R>,
    bytes: Vec<u8>,
    most: usize,
    total: usize,
}

impl<R: Read + AsFd> Output<R> {
    fn new(from: Option<R>, most: usize) -> io::Result<Self> {
        from.as_ref().map_or(Ok(()), set_nonblocking)?;
        Ok(Self {
            from,
            bytes: Vec::new(),
            most,
            total: 0,
        })
    }

    fn open(&self) -> Option<BorrowedFd<'_>> {
        self.from.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, but not for ever from a program that never pauses.
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0_u8; 16 * 1024];
        for _ in 0..16 {
            let Some(from) = self.from.as_mut() else { break };
            match from.read(&mut buffer) {
                Ok(0) => self.from = None,
                Ok(count) => {
                    self.total = self.total.saturating_add(count);
                    let kept = count.min(self.most.saturating_sub(self.bytes.len()));
                    self.bytes.extend_from_slice(buffer.get(..kept).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map(drop)?;
    Ok(())
}
