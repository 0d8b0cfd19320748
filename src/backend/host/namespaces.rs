//! User namespaces, entered for real by this program started again.
//!
//! Settings and versions do not tell: distributions let the call succeed and take the rights away
//! after it. So the whole sequence is done: enter, map ids, mount, and mount a fresh /proc in a new
//! PID namespace. Two processes, because a PID namespace begins with a child.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

/// The first argument of this program when it is started as a probe.
pub const PROBE_ARGUMENT: &str = "__probe";
/// The probe that enters namespaces.
const OUTER: &str = "userns";
/// The probe that is the first process in them.
const INNER: &str = "userns-init";
/// What a probe prints when everything worked. A program that does not know the probe prints no such thing.
const WORKED: &str = "stockade probe: works";

/// Runs the probe named by the arguments after [`PROBE_ARGUMENT`]; to be called first thing in `main`.
pub fn probe_main(arguments: &[OsString]) -> ExitCode {
    let result = match arguments {
        [name] if name == OUTER => enter(),
        [name] if name == INNER => inside(),
        _ => Err("no such probe".to_owned()),
    };
    let said = match &result {
        Ok(()) => writeln!(io::stdout(), "{WORKED}"),
        Err(why) => writeln!(io::stdout(), "{why}"),
    };
    if result.is_ok() && said.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Tries it in a process of its own.
pub(super) fn probe() -> Result<(), String> {
    run(OUTER)
}

/// Starts this program as a probe, and reads what it says.
#[expect(
    clippy::disallowed_methods,
    reason = "a probe for doctor, never on the way to a command"
)]
fn run(name: &str) -> Result<(), String> {
    let mut command = std::process::Command::new("/proc/self/exe");
    command
        .args([PROBE_ARGUMENT, name])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().map_err(|error| format!("start a probe: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.trim() {
        WORKED if output.status.success() => Ok(()),
        "" => Err(format!("the probe ended without a word: {}", output.status)),
        why => Err(why.lines().next().unwrap_or_default().chars().take(200).collect()),
    }
}

/// Enters namespaces, and starts the first process in them.
fn enter() -> Result<(), String> {
    let (uid, gid) = (getuid(), getgid());
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC;
    unshare(all).map_err(|errno| format!("enter a user namespace: {errno}"))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", &format!("0 {gid} 1"))?;
    run(INNER)
}

/// Mounts, as the first process of the namespaces.
fn inside() -> Result<(), String> {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(|errno| format!("make the mounts private: {errno}"))?;
    let safe = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), safe, None::<&str>)
        .map_err(|errno| format!("mount a /proc: {errno}"))?;
    mount(Some("tmpfs"), "/tmp", Some("tmpfs"), safe, Some("size=4k"))
        .map_err(|errno| format!("mount a tmpfs: {errno}"))
}

/// Writes one of the files that map ids.
fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(Path::new(path), text).map_err(|error| format!("write {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_knows_no_probe_is_not_taken_for_a_success() {
        // Here this program is the test harness, which ends with success and prints something else.
        assert!(probe().is_err());
    }
}
