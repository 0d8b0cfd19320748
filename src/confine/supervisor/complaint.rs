//! What bwrap says when no forker came to be, and which step that means.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::confine::wire::protocol::{StartFailure, Step};

/// How much of bwrap's complaint is passed on.
const MOST_COMPLAINT: u64 = 2_000;
/// How bwrap's words begin when it cannot make namespaces at all; a place of the plan comes in none of them.
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

/// What bwrap could not do.
fn complained_of(said: &str) -> Step {
    let words = said.strip_prefix("bwrap: ").unwrap_or(said);
    if NO_NAMESPACES.iter().any(|begin| words.starts_with(begin)) {
        Step::Namespaces
    } else {
        Step::Mounts
    }
}

/// The system's word for it, where that matters: too little was left of something.
fn errno_of(said: &str) -> Errno {
    let scarce = [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE];
    let names = |errno: &Errno| {
        let text = std::io::Error::from_raw_os_error(*errno as i32).to_string();
        text.split(" (os error")
            .next()
            .is_some_and(|words| said.ends_with(words))
    };
    scarce.into_iter().find(names).unwrap_or(Errno::EPERM)
}

/// What was written to this pipe, if anything; whoever held the other end is dead.
pub(crate) fn read(complaints: OwnedFd) -> Option<StartFailure> {
    let mut said = Vec::new();
    // What was read before an error is all there is.
    let _cut = File::from(complaints).take(MOST_COMPLAINT).read_to_end(&mut said);
    let said = String::from_utf8_lossy(said.trim_ascii()).into_owned();
    (!said.is_empty()).then(|| StartFailure::new(complained_of(&said), errno_of(&said), said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bwrap_says_of_a_place_says_nothing_of_namespaces() {
        for said in [
            "bwrap: Can't find source path /w/No permissions to create: No such file or directory",
            "bwrap: Can't mkdir /w/a: Not a directory",
            "bwrap: Can't create file at /w/setting up uid map: Is a directory",
            "bwrap: Can't bind mount /oldroot/w on /newroot/w: Permission denied",
            "bwrap: Can't fork for pid 1: Resource temporarily unavailable",
            "something else",
            "",
        ] {
            assert_eq!(complained_of(said), Step::Mounts, "{said}");
        }
        for said in [
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow it",
            "bwrap: Creating new namespace failed: nesting depth exceeded (ENOSPC)",
            "bwrap: setting up uid map: Permission denied",
            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
        ] {
            assert_eq!(complained_of(said), Step::Namespaces, "{said}");
        }
    }

    #[test]
    fn bwrap_s_word_for_scarcity_is_known() {
        let said = "bwrap: Creating new namespace failed: ";
        assert_eq!(
            errno_of(&format!("{said}Resource temporarily unavailable")),
            Errno::EAGAIN
        );
        assert_eq!(errno_of(&format!("{said}Cannot allocate memory")), Errno::ENOMEM);
        assert_eq!(errno_of(&format!("{said}Operation not permitted")), Errno::EPERM);
    }
}
