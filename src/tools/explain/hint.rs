//! How to find out why a command failed, where its words sound as if something was denied to it.

use super::visible_paths::VisiblePaths;
use crate::confine::io::OutputMode;
use crate::policy::Explain;
use crate::tools::outcome::Status;

/// What is said.
const HOW: &str = "if the sandbox may have denied it something: `--explain`, or `shell: {explain: always}` in the config, \
                   says what, by which line, and what would permit it";

/// What is said where something could not be removed or renamed.
const BUSY: &str = "`config` and `hooks` of a repository that was there before the session, and denied names are covered by \
                    mounts, and a command cannot remove or move them; do that outside the sandbox";

/// EBUSY in the same languages.
const BUSY_WORDS: [&str; 5] = [
    "device or resource busy",
    "resourcebusy",
    "ebusy",
    "[errno 16]",
    "(os error 16)",
];

/// How the C library, Python, Node.js, Rust and Go say EACCES, EPERM, EROFS, ENETUNREACH, EAFNOSUPPORT and ENOSYS, what a look-up
/// of a host says where there is no network, and git where it may not see a repository; in small letters.
const REFUSALS: [&str; 31] = [
    "function not implemented",
    "enosys",
    "not a git repository",
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "network is unreachable",
    "address family not supported",
    "permissionerror",
    "permissiondenied",
    "readonlyfilesystem",
    "networkunreachable",
    "eacces",
    "eperm",
    "erofs",
    "enetunreach",
    "eafnosupport",
    "eai_again",
    "temporary failure in name resolution",
    "could not resolve host",
    "[errno 1]",
    "[errno 13]",
    "[errno 30]",
    "[errno 38]",
    "[errno 97]",
    "[errno 101]",
    "(os error 1)",
    "(os error 13)",
    "(os error 30)",
    "(os error 38)",
    "(os error 101)",
];

/// The signals of a crash.
const CRASHES: [i32; 6] = [
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGSYS,
];

/// The hint for a command that ended so and said this; none where nobody wants one, or nothing sounds like a refusal.
///
/// What was streamed is not known here: then every failure may be one. In namespaces what is not granted is missing, and
/// so is much else: `visible` is what they show, and none elsewhere.
pub(in crate::tools) fn hint(
    explain: Explain,
    status: &Status,
    output: OutputMode,
    stderr: &str,
    visible: Option<&VisiblePaths<'_>>,
) -> Option<String> {
    let failed = match status {
        Status::Exited { code } => *code != 0,
        Status::NotExecutable { .. } | Status::NotFound { .. } => true,
        // Some runtimes abort without a word where they are denied something.
        Status::Signaled { signal } => CRASHES.contains(signal),
        Status::TimedOut | Status::Cancelled { .. } | Status::OverLimit { .. } | Status::Failed { .. } => false,
    };
    let is_busy = match output {
        OutputMode::Stream => false,
        OutputMode::Capture => {
            let text = stderr.to_ascii_lowercase();
            // Mounts are what makes it so.
            visible.is_some() && BUSY_WORDS.iter().any(|word| text.contains(word))
        }
    };
    if failed && is_busy {
        return Some(BUSY.to_owned());
    }
    match explain {
        Explain::Off | Explain::Always => return None,
        Explain::OnFailure => {}
    }
    let sounds_so = || match output {
        OutputMode::Stream => true,
        OutputMode::Capture => {
            let text = stderr.to_ascii_lowercase();
            let is_program_hidden = match status {
                Status::NotFound { program } => visible.is_some_and(|visible| visible.hides(program)),
                _ => false,
            };
            let has_crashed = matches!(status, Status::Signaled { .. });
            is_program_hidden
                || has_crashed
                || REFUSALS.iter().any(|refusal| text.contains(refusal))
                || visible.is_some_and(|visible| visible.mentions_hidden_path(stderr))
        }
    };
    (failed && sounds_so()).then(|| HOW.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(explain: Explain, code: i32, output: OutputMode, stderr: &str) -> bool {
        hint(explain, &Status::Exited { code }, output, stderr, None).is_some()
    }

    #[test]
    fn a_failure_that_speaks_of_a_refusal_has_a_hint_and_others_have_none() {
        for text in [
            "cat: x: Permission denied",
            "touch: cannot touch 'x': Read-only file system",
            "PermissionError: [Errno 13] Permission denied: 'x'",
            "Error: EACCES: permission denied, open 'x'",
            "Os { code: 1, kind: PermissionDenied, message: \"…\" }",
            "connect: Network is unreachable (os error 101)",
            "io_uring_setup: Function not implemented",
            "fatal: not a git repository (or any of the parent directories): .git",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        ] {
            assert!(of(Explain::OnFailure, 1, OutputMode::Capture, text), "{text}");
            assert!(!of(Explain::OnFailure, 0, OutputMode::Capture, text), "{text}");
            assert!(!of(Explain::Off, 1, OutputMode::Capture, text), "{text}");
            assert!(!of(Explain::Always, 1, OutputMode::Capture, text), "{text}");
        }
        for text in ["", "make: *** [all] Error 2", "assertion failed"] {
            assert!(!of(Explain::OnFailure, 1, OutputMode::Capture, text), "{text}");
            assert!(of(Explain::OnFailure, 1, OutputMode::Stream, text), "{text}");
        }
    }

    #[test]
    fn what_crashed_has_a_hint() {
        let crashed = Status::Signaled { signal: libc::SIGABRT };
        assert!(hint(Explain::OnFailure, &crashed, OutputMode::Capture, "", None).is_some());
    }

    #[test]
    fn what_was_stopped_has_no_hint() {
        for status in [Status::TimedOut, Status::Signaled { signal: 9 }] {
            assert_eq!(hint(Explain::OnFailure, &status, OutputMode::Stream, "", None), None);
        }
    }
}
