//! bwrap's error where no forker started, and the step that failed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::confine::wire::protocol::{StartFailure, Step};

/// The most bytes of it that are passed on.
const MAX_LENGTH: u64 = 2_000;
/// How bwrap's errors begin when it cannot make namespaces at all; none of them has a path of the plan.
const NO_NAMESPACES: [&str; 10] = [
    "No permissions to create",
    "Creating new namespace failed",
    "Cannot create new cgroup namespace",
    "setting up uid map",
    "setting up gid map",
    "error writing to setgroups",
    "loopback: ",
    "Can't mount proc",
    "Can't open /proc",
    "Unexpected capabilities",
];

fn failed_step(message: &str) -> Step {
    let text = message.strip_prefix("bwrap: ").unwrap_or(message);
    if NO_NAMESPACES.iter().any(|begin| text.starts_with(begin)) {
        Step::Namespaces
    } else {
        Step::Mounts
    }
}

/// The error number, where a resource was scarce.
fn errno_of(message: &str) -> Errno {
    let scarce = [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];
    let names = |errno: &Errno| {
        let text = std::io::Error::from_raw_os_error(*errno as i32).to_string();
        text.split(" (os error")
            .next()
            .is_some_and(|text| message.ends_with(text))
    };
    scarce.into_iter().find(names).unwrap_or(Errno::EPERM)
}

/// Reads the error from the pipe, if there is one; all writers are dead.
pub(crate) fn read(bwrap_stderr: OwnedFd) -> Option<StartFailure> {
    let mut message = Vec::new();
    // What was read before an error is all there is.
    let _read = File::from(bwrap_stderr).take(MAX_LENGTH).read_to_end(&mut message);
    let message = String::from_utf8_lossy(message.trim_ascii()).into_owned();
    (!message.is_empty()).then(|| StartFailure::new(failed_step(&message), errno_of(&message), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_a_path_is_not_one_about_namespaces() {
        for message in [
            "bwrap: Can't find source path /w/No permissions to create: No such file or directory",
            "bwrap: Can't mkdir /w/a: Not a directory",
            "bwrap: Can't create file at /w/setting up uid map: Is a directory",
            "bwrap: Can't bind mount /oldroot/w on /newroot/w: Permission denied",
            "bwrap: Can't fork for pid 1: Resource temporarily unavailable",
            "something else",
            "",
        ] {
            assert_eq!(failed_step(message), Step::Mounts, "{message}");
        }
        for message in [
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow it",
            "bwrap: Creating new namespace failed: nesting depth exceeded (ENOSPC)",
            "bwrap: setting up uid map: Permission denied",
            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
        ] {
            assert_eq!(failed_step(message), Step::Namespaces, "{message}");
        }
    }

    #[test]
    fn errors_of_scarcity_are_recognised() {
        let message = "bwrap: Creating new namespace failed: ";
        assert_eq!(
            errno_of(&format!("{message}Resource temporarily unavailable")),
            Errno::EAGAIN
        );
        assert_eq!(errno_of(&format!("{message}Cannot allocate memory")), Errno::ENOMEM);
        assert_eq!(errno_of(&format!("{message}Operation not permitted")), Errno::EPERM);
    }
}
