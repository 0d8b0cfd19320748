//! The child that becomes the command: its streams, its bounds, its layers, then `execve`.
//!
//! It is a fork of the single-threaded runner, so it may allocate. Failures are sent to the runner over the handover socket, which
//! `execve` closes.

use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, getppid, setsid};
use serde::{Deserialize, Serialize};

use crate::backend::seccomp::Attributes;
use crate::confine::forker::compiled::{Compiled, install};
use crate::confine::io::InputKind;
use crate::confine::layers::ruleset;
use crate::confine::layers::selftest::{self, Canaries};
use crate::confine::sys;
use crate::confine::wire::protocol::{CommandLimits, Start, StartFailure, Step, Work};
use crate::confine::wire::{receive, send};
use crate::policy::path::display;

/// A message of the child before `execve`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Handover {
    /// The listener of attribute calls, which comes with the message.
    Listener,
    /// The command will not be started.
    Failed(StartFailure),
}

/// One command or file server to run, with its descriptors.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) start: Start,
    pub(crate) streams: [OwnedFd; 3],
    /// `cgroup.procs` of its control group, where it has one.
    pub(crate) group: Option<OwnedFd>,
    /// The limit of tasks in its user namespace, where the kernel counts them.
    pub(crate) most_tasks: Option<u64>,
}

/// Where a child gets its task from.
#[derive(Debug)]
pub(crate) enum TaskSource {
    /// It has it.
    Ready(Box<Task>),
    /// It confines itself first, and receives the task over this socket.
    Socket(OwnedFd),
}

/// Whether a process that was confined before it had a task can run this.
pub(crate) fn fits_spare(start: &Start) -> bool {
    matches!(start.work, Work::Command(_)) && matches!(start.input, InputKind::Pipe | InputKind::Null)
}

/// Everything the child takes with it.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) source: TaskSource,
    /// Its plan; `None` where nothing confines it.
    pub(crate) compiled: Option<Compiled>,
    /// Where failures go.
    pub(crate) handover: OwnedFd,
    pub(crate) runner: Pid,
    /// What the self-test tries.
    pub(crate) canaries: Canaries,
}

impl Command {
    /// Becomes the command, or reports why not and ends.
    pub(crate) fn execute(self) -> ! {
        let Ok(handover) = self.handover.try_clone() else {
            sys::exit_now(125)
        };
        let failure = match self.become_command() {
            Ok(never) => match never {},
            Err(failure) => failure,
        };
        // If even this fails the runner sees a child that exited with 125.
        let _sent = send(&handover, &Handover::Failed(failure), &[]);
        sys::exit_now(125)
    }

    fn become_command(self) -> Result<std::convert::Infallible, StartFailure> {
        let at = |step| StartFailure::at(step);
        setsid().map_err(at(Step::Session))?;
        sys::reset_signals().map_err(at(Step::Session))?;
        // Before any layer: the runner reads this process's memory when it judges attribute calls.
        prctl::set_dumpable(true).map_err(at(Step::Session))?;
        prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::ParentDeath))?;
        if getppid() != self.runner {
            return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the runner is gone"));
        }
        let Self {
            source,
            mut compiled,
            handover,
            runner,
            canaries,
        } = self;
        let null = compiled.as_mut().and_then(|compiled| compiled.null.take());
        let confine = |role: Role| match compiled {
            Some(compiled) => confine(compiled, role, &handover, runner, &canaries),
            None => Ok(()),
        };
        match source {
            TaskSource::Ready(task) => {
                // Before the filters, which refuse taking a terminal.
                task.take(null)?;
                let arguments = task.arguments()?;
                confine(Role::of(&task.start))?;
                task.begin(&arguments)
            }
            TaskSource::Socket(socket) => {
                confine(Role::Command(Attributes::Mounted))?;
                let task = receive_task(&socket)?;
                task.take(null)?;
                let arguments = task.arguments()?;
                task.begin(&arguments)
            }
        }
    }
}

/// What a child becomes, as far as its confinement depends on it.
#[derive(Debug, Clone, Copy)]
enum Role {
    Command(Attributes),
    /// One that may read its own files in /proc.
    CommandAtTerminal,
    /// Stockade's own file server.
    Files,
}

impl Role {
    fn of(start: &Start) -> Self {
        match (&start.work, start.input) {
            (Work::Command(_), InputKind::Pipe | InputKind::Null) => Self::Command(Attributes::Mounted),
            // The file is on a mount of the host.
            (Work::Command(_), InputKind::File) => Self::Command(Attributes::Brokered),
            (Work::Command(_), InputKind::Terminal) => Self::CommandAtTerminal,
            (Work::Files(_), _) => Self::Files,
        }
    }
}

/// Applies the layer and the filters, and runs the self-test.
fn confine(
    compiled: Compiled,
    role: Role,
    handover: &OwnedFd,
    runner: Pid,
    canaries: &Canaries,
) -> Result<(), StartFailure> {
    let Compiled { layer, plan, .. } = compiled;
    let layer = match role {
        // Compiled again: a rule added to the shared ruleset would apply to every later command.
        Role::CommandAtTerminal => ruleset::with_own_process(ruleset::compile(&plan)?)?,
        Role::Command(_) | Role::Files => layer,
    };
    ruleset::apply(layer, Some(&plan.landlock))?;
    let attributes = match role {
        Role::Command(attributes) => Some(attributes),
        // Its terminal is on a mount of the host: with another mode, another user could read what is typed.
        Role::CommandAtTerminal => Some(Attributes::Brokered),
        Role::Files => None,
    };
    let tested = match attributes {
        Some(attributes) => {
            let filters = plan.watched.as_ref().unwrap_or(&plan.filters);
            if let Some(listener) = install(filters.of_command(attributes))? {
                send(handover, &Handover::Listener, &[listener.as_raw_fd()])
                    .map_err(|error| StartFailure::new(Step::Broker, Errno::EIO, error.to_string()))?;
            }
            let kept_by = filters.kept_by(attributes);
            selftest::command(canaries, runner, &plan.landlock, kept_by)
        }
        // Stockade's own code: the forker's filters, which it stands in already, are for that.
        None => selftest::layer(canaries, runner, &plan.landlock),
    };
    tested.map_err(|hole| StartFailure::new(Step::SelfTest, Errno::EPERM, hole))
}

/// Waits for the task, which must fit the confinement of this process.
fn receive_task(socket: &OwnedFd) -> Result<Task, StartFailure> {
    let failed = |stop_reason: String| StartFailure::new(Step::Setup, Errno::EPROTO, stop_reason);
    match receive::<(Start, Option<u64>)>(socket) {
        Ok(Some(((start, _), _))) if !fits_spare(&start) => {
            Err(failed("another kind of work, for another confinement".to_owned()))
        }
        Ok(Some(((start, most_tasks), streams))) => Ok(Task {
            start,
            streams: <[OwnedFd; 3]>::try_from(streams)
                .map_err(|_| failed("three descriptors are needed".to_owned()))?,
            group: None,
            most_tasks,
        }),
        // The spare is not needed.
        Ok(None) => sys::exit_now(125),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Arguments and environment as `execve` takes them.
struct ExecArguments {
    argv: Option<Vec<CString>>,
    environment: Vec<CString>,
}

impl Task {
    /// Sets up streams, limits and working directory.
    fn take(&self, null: Option<OwnedFd>) -> Result<(), StartFailure> {
        self.take_streams(null)?;
        set_limits(self.start.limits, self.most_tasks).map_err(StartFailure::at(Step::Limits))?;
        chdir(Path::new(&self.start.directory))
            .map_err(|errno| StartFailure::new(Step::Directory, errno, display(&self.start.directory)))
    }

    fn arguments(&self) -> Result<ExecArguments, StartFailure> {
        Ok(ExecArguments {
            argv: match &self.start.work {
                Work::Command(argv) => Some(c_strings(argv)?),
                Work::Files(_) => None,
            },
            environment: environment(&self.start.environment)?,
        })
    }

    fn begin(&self, arguments: &ExecArguments) -> Result<std::convert::Infallible, StartFailure> {
        match &arguments.argv {
            Some(argv) => Err(execute(argv, &arguments.environment, &self.start.environment)),
            None => serve_files(),
        }
    }

    fn take_streams(&self, null: Option<OwnedFd>) -> Result<(), StartFailure> {
        let at = StartFailure::at(Step::Streams);
        let [stdin, stdout, stderr] = &self.streams;
        let null = null.filter(|_| self.start.input == InputKind::Null);
        let stdin = null.as_ref().unwrap_or(stdin);
        if self.start.input == InputKind::Terminal {
            sys::set_controlling_terminal(stdin.as_fd()).map_err(&at)?;
        }
        dup2_stdin(stdin).map_err(&at)?;
        dup2_stdout(stdout).map_err(&at)?;
        dup2_stderr(stderr).map_err(&at)
    }
}

/// Serves file operations until the parent hangs up.
fn serve_files() -> Result<std::convert::Infallible, StartFailure> {
    // The name only helps a person reading a process list.
    let _named = prctl::set_name(c"stockade-file");
    // No program is executed, so nothing is closed by itself. This process only ends from here on: nothing that owned
    // one of them is used or dropped.
    sys::close_from(3).map_err(StartFailure::at(Step::Streams))?;
    let Some(socket) = sys::adopt(&[0]).pop() else {
        sys::exit_now(1)
    };
    match crate::confine::files::serve(&socket) {
        Ok(()) => sys::exit_now(0),
        // The parent sees its socket closed in the middle of an answer.
        Err(_) => sys::exit_now(1),
    }
}

fn set_limits(limits: CommandLimits, most_tasks: Option<u64>) -> nix::Result<()> {
    // The tree's memory is sampled; what one process may allocate at once is bounded by the kernel.
    let data = limits.memory.map(|memory| memory.saturating_mul(2));
    for (resource, bound) in [
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_FSIZE, limits.file_size),
        (Resource::RLIMIT_DATA, data),
        (Resource::RLIMIT_NPROC, most_tasks),
    ] {
        if let Some(bound) = bound {
            let (_, hard) = getrlimit(resource)?;
            let bound = bound.min(hard);
            setrlimit(resource, bound, bound)?;
        }
    }
    Ok(())
}

fn c_strings(arguments: &[OsString]) -> Result<Vec<CString>, StartFailure> {
    arguments
        .iter()
        .map(|message| {
            CString::new(message.as_bytes()).map_err(|_| {
                StartFailure::new(
                    Step::Argument,
                    Errno::EINVAL,
                    format!("a NUL byte in {}", display(message)),
                )
            })
        })
        .collect()
}

fn environment(variables: &[(OsString, OsString)]) -> Result<Vec<CString>, StartFailure> {
    let lines: Vec<OsString> = variables
        .iter()
        .map(|(name, value)| {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            line
        })
        .collect();
    c_strings(&lines)
}

/// Tries the program at its path, or in each directory of PATH in turn, as `execvp` does.
fn execute(argv: &[CString], environment: &[CString], variables: &[(OsString, OsString)]) -> StartFailure {
    let Some(program) = argv.first() else {
        return StartFailure::new(Step::Argument, Errno::EINVAL, "an empty command");
    };
    let shown = display(std::ffi::OsStr::from_bytes(program.to_bytes()));
    let failed = |errno| StartFailure::new(Step::Execute, errno, shown.clone());
    if program.to_bytes().contains(&b'/') {
        return match execve(program, argv, environment) {
            Ok(never) => match never {},
            Err(errno) => failed(errno),
        };
    }
    let mut verdict = Errno::ENOENT;
    let path = variables
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.clone())
        .unwrap_or_default();
    for directory in path
        .into_vec()
        .split(|byte| *byte == b':')
        .filter(|directory| directory.starts_with(b"/"))
    {
        let mut candidate = directory.to_vec();
        candidate.push(b'/');
        candidate.extend_from_slice(program.to_bytes());
        let Ok(candidate) = CString::new(candidate) else {
            continue;
        };
        match execve(&candidate, argv, environment) {
            Ok(never) => match never {},
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(errno) => verdict = errno,
        }
    }
    failed(verdict)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;
    use crate::confine::wire::protocol::Watch;

    fn received(work: Work, input: InputKind) -> Result<Task, StartFailure> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let start = Start {
            call: 1,
            work,
            environment: Vec::new(),
            directory: "/".into(),
            limits: CommandLimits::default(),
            input,
        };
        let task = (start, None::<u64>);
        send(&ours, &task, &[ours.as_raw_fd(), ours.as_raw_fd(), ours.as_raw_fd()]).unwrap();
        receive_task(&theirs)
    }

    #[test]
    fn a_spare_takes_only_the_work_it_was_confined_for() {
        let command = || Work::Command(vec!["true".into()]);
        assert!(received(command(), InputKind::Pipe).is_ok());
        assert!(received(command(), InputKind::Null).is_ok());
        for (work, input) in [
            (Work::Files(Watch::ProtectedNames), InputKind::Pipe),
            // Its layer would name the command's own files.
            (command(), InputKind::Terminal),
            // Mounts would keep its attributes, and it lies on none of theirs.
            (command(), InputKind::File),
        ] {
            assert_eq!(received(work, input).unwrap_err().step, Step::Setup);
        }
    }
}
