//! Starting programs and looking at what runs.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Actor, Backend, Fixture};

/// How long a test waits for what must come. A busy machine must not reach it: it ends a hang, and says nothing of speed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

/// Waits until `holds`; fails when it does not within [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program about to be started: environment empty but for what is given, stdin empty, both outputs collected.
#[derive(Debug)]
pub(crate) struct Invocation {
    command: Command,
    stdin: Vec<u8>,
}

impl Invocation {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests start the binary under test and what it is compared with"
    )]
    pub(crate) fn new(program: &Path, uid: Option<u32>, cwd: &Path) -> Self {
        let mut command = Command::new(program);
        // A group of its own, so that a test can do what Ctrl-C does.
        command.env_clear().current_dir(cwd).process_group(0);
        if let Some(uid) = uid {
            // std drops the supplementary groups along with the user id.
            command.uid(uid).gid(uid);
        }
        Self {
            command,
            stdin: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    #[must_use]
    pub(crate) fn cwd(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    #[must_use]
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// The program, for whoever serves its streams.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Starts the program.
    pub(crate) fn spawn(mut self) -> Running {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = started(&mut self.command);
        let (mut to, bytes) = (child.stdin.take().unwrap(), self.stdin);
        // A program that does not read its input is not at fault.
        std::thread::spawn(move || to.write_all(&bytes));
        let (stdout, stderr) = (Some(collect(child.stdout.take())), Some(collect(child.stderr.take())));
        Running {
            child,
            started: Instant::now(),
            stdout,
            stderr,
        }
    }

    /// Starts the program, and leaves its streams to the caller.
    pub(crate) fn converse(mut self) -> Child {
        let piped = self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        started(piped.stderr(Stdio::piped()))
    }

    /// Runs the program to its end.
    pub(crate) fn output(self) -> Run {
        self.spawn().wait()
    }
}

/// Stops a process, and waits until each of its threads stands still: until then one may still answer.
pub(crate) fn stop(process: Pid) {
    kill(process, Signal::SIGSTOP).unwrap();
    eventually("every thread is stopped", || {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let mut states = threads
            .flatten()
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
        // The state follows the name, which is in brackets.
        states.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    });
}

/// A program that may have been compiled or copied a moment ago.
pub(crate) fn started(command: &mut Command) -> Child {
    loop {
        match command.spawn() {
            Ok(child) => return child,
            // A test beside this one, in the moment between its fork and its exec, holds it open as it was written.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut stream = stream.unwrap();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// A program that was started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    started: Instant,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// A failing test leaves no process behind.
impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _dying = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Stops the program alone, and waits until all of it stands still.
    pub(crate) fn stop(&self) {
        stop(Pid::from_raw(self.pid()));
    }

    /// Signals the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Signals the program's whole group, as the terminal does at Ctrl-C.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill(Pid::from_raw(-self.pid()), signal).unwrap();
    }

    /// Whether the program still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the program, then for the end of its output.
    pub(crate) fn wait(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.started.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("still running after {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = self.started.elapsed();
        let text = |stream: &mut Option<JoinHandle<Vec<u8>>>| stream.take().unwrap().join().unwrap();
        Run {
            status,
            took,
            stdout: text(&mut self.stdout),
            stderr: text(&mut self.stderr),
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) took: Duration,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Run {
    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        self.stderr.escape_ascii().to_string().replace("\\n", "\n")
    }

    /// The exit code, or 128+N as a shell would say it.
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap())
    }

    /// Fails unless the program succeeded; returns what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert!(
            self.status.success(),
            "{}\nstdout: {}\nstderr: {}",
            self.status,
            self.out(),
            self.err()
        );
        self.out()
    }

    /// Fails unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "\nstdout: {}\nstderr: {}", self.out(), self.err());
        self
    }

    /// Fails unless the command itself ran, failed, and was told that something is not permitted.
    #[track_caller]
    pub(crate) fn assert_denied(self) {
        let said = self.out() + &self.err();
        assert!(!self.status.success(), "was permitted: {said}");
        assert_ne!(self.code(), 125, "Stockade could not run it at all: {said}");
        let refusals = [
            "Permission denied",
            "Operation not permitted",
            "No such file or directory",
            "Directory nonexistent",
            "Read-only file system",
            "Invalid cross-device link",
            "Address family not supported",
            "Function not implemented",
            "No such process",
        ];
        assert!(
            refusals.iter().any(|refusal| said.contains(refusal)),
            "failed for another reason: {said}"
        );
    }
}

/// A number of seconds for `sleep` that no other process has on its command line.
pub(crate) fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("7{:07}{:03}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The command line of every process, by id; zombies have none.
fn command_lines() -> Vec<(i32, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that ended meanwhile has nothing to say.
        if let Ok(line) = fs::read(entry.path().join("cmdline")) {
            all.push((pid, line));
        }
    }
    all
}

pub(crate) fn with_marker(marker: &str) -> Vec<i32> {
    let hit = |line: &[u8]| line.windows(marker.len()).any(|part| part == marker.as_bytes());
    command_lines()
        .into_iter()
        .filter(|(_, line)| hit(line))
        .map(|(pid, _)| pid)
        .collect()
}

/// Kills what has `marker` on its command line.
pub(crate) fn kill_marked(marker: &str) {
    for pid in with_marker(marker) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
}

/// Waits until `count` processes `sleep MARKER` run.
#[track_caller]
pub(crate) fn wait_for_processes(marker: &str, count: usize) {
    let wanted = format!("sleep\0{marker}\0");
    // However the program was named: `sleep`, `/bin/sleep`.
    let sleeps = |line: &[u8]| {
        line.strip_suffix(wanted.as_bytes())
            .is_some_and(|folder| !folder.contains(&0))
    };
    eventually(&format!("{count} processes `sleep {marker}`"), || {
        command_lines().iter().filter(|(_, line)| sleeps(line)).count() >= count
    });
}

/// Fails if a process has `marker` on its command line now.
#[track_caller]
pub(crate) fn assert_no_process_left(marker: &str) {
    let left = with_marker(marker);
    assert!(left.is_empty(), "left alive: {left:?}");
}

/// Waits until no process has `marker` on its command line.
#[track_caller]
pub(crate) fn wait_until_gone(marker: &str) {
    eventually(&format!("the end of what has {marker} on its command line"), || {
        with_marker(marker).is_empty()
    });
}

/// The children of `pid`, their children, and so on: nearest first.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut parents = Vec::new();
    for (child, _) in command_lines() {
        // The fields after the name, which is in parentheses and may hold anything.
        let stat = fs::read(format!("/proc/{child}/stat")).unwrap_or_default();
        let Some(end) = stat.iter().rposition(|byte| *byte == b')') else {
            continue;
        };
        let rest = String::from_utf8(stat[end + 1..].to_vec()).unwrap();
        parents.push((child, rest.split_whitespace().nth(1).unwrap().parse::<i32>().unwrap()));
    }
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}

/// Whether who watches a command of this actor may come before it: the actor has `CAP_SYS_NICE`.
pub(crate) fn may_lower_nice_values(actor: Actor) -> bool {
    const SYS_NICE: u64 = 1 << 23;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let has_it = u64::from_str_radix(effective.trim(), 16).unwrap() & SYS_NICE != 0;
    actor == Actor::Root && has_it
}

/// Whether a fork bomb can keep who is to end it from running for longer than that may take, on a busy machine: nothing puts that
/// one before it, and no kernel counts its processes.
pub(crate) fn may_starve_its_runner(world: &Fixture) -> bool {
    let is_counted = match (world.actor, world.backend) {
        (Actor::User, Backend::Namespaces | Backend::Bwrap) => true,
        (Actor::User, Backend::Landlock) | (Actor::Root, _) => false,
    };
    !is_counted && !may_lower_nice_values(world.actor)
}
