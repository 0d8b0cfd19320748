//! A limit on how far a tree may grow while a command runs.
//!
//! What lies beyond the most that a walk takes in is not undone, so a command that makes that many directories is stopped.
//! Nobody counts directories as they are made; but each takes an inode, and file systems say how many are in use. Only
//! when as many more are in use as directories are still permitted, the tree is walked. Btrfs does not say: there
//! nothing is stopped, and what a walk takes in is judged afterwards.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::fstatvfs;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};

use super::super::entry::nofollow;
use super::super::error::ProtectError;
use super::super::guard::Guard;
use super::walk::{most_directories, walk_through};
use crate::confine::sys;

/// The remaining growth of a tree.
#[derive(Debug)]
pub struct Growth {
    /// A directory of each file system, and how many inodes were in use there.
    file_systems: Vec<(OwnedFd, u64)>,
    /// How many directories there may still be.
    allowance: u64,
    /// The walk under way.
    walk: Option<Walk>,
}

impl Growth {
    /// Starts counting.
    pub fn of(guard: &Guard) -> Self {
        let mut devices = HashSet::new();
        let mut file_systems = Vec::new();
        for (index, directory) in (0_u32..).zip(&guard.inventory.directories) {
            if !directory.read || !devices.insert(directory.identity.device) {
                continue;
            }
            let root = &guard.roots()[usize::from(directory.root)];
            if let Ok(fd) = nofollow::open_path(&root.fd, &guard.inventory.path(index)) {
                let inodes_in_use = inodes_in_use(&fd);
                file_systems.push((fd, inodes_in_use));
            }
        }
        Self {
            file_systems,
            allowance: allowance(guard.inventory.len()),
            walk: None,
        }
    }

    /// Whether there are more directories by now than a walk takes in. Never waits for a walk.
    pub fn exceeds_limit(&mut self, guard: &Guard) -> bool {
        if let Some(walk) = &mut self.walk {
            let Some(outcome) = walk.outcome() else { return false };
            let inodes_at_start = std::mem::take(&mut walk.inodes_at_start);
            self.walk = None;
            match outcome {
                WalkResult::TooMany => return true,
                // They were files, or somebody else's.
                WalkResult::Directories(count) => self.allowance = allowance(count),
                // An unreadable directory is reported when the guard settles. The next try comes after as many new inodes.
                WalkResult::Unknown => {}
            }
            for ((_, at_last_check), now) in self.file_systems.iter_mut().zip(inodes_at_start) {
                *at_last_check = now;
            }
        }
        let now: Vec<u64> = self.file_systems.iter().map(|(fd, _)| inodes_in_use(fd)).collect();
        let at_last_check = self.file_systems.iter().map(|(_, at_last_check)| *at_last_check);
        let more: u64 = now
            .iter()
            .zip(at_last_check)
            .map(|(now, at_last_check)| now.saturating_sub(at_last_check))
            .sum();
        if more > self.allowance {
            // Where no process can be forked, settling will report that.
            self.walk = Walk::begin(guard, now).ok();
        }
        false
    }
}

#[cfg(test)]
impl Growth {
    pub(crate) const fn is_walking(&self) -> bool {
        self.walk.is_some()
    }
}

/// What a walk came to.
enum WalkResult {
    /// More directories than a walk takes in; or it had no memory for them.
    TooMany,
    /// The number of directories.
    Directories(usize),
    /// The walk failed.
    Unknown,
}

/// A walk by a process of its own: it takes seconds in a large tree, in which the supervisor has to see what commands do.
#[derive(Debug)]
struct Walk {
    child: Pid,
    /// The pipe with the number of directories.
    count: File,
    /// How many inodes were in use when it began.
    inodes_at_start: Vec<u64>,
    has_ended: bool,
}

impl Walk {
    fn begin(guard: &Guard, inodes_at_start: Vec<u64>) -> nix::Result<Self> {
        let (reading, writing) = pipe2(OFlag::O_CLOEXEC)?;
        let Some(child) = sys::fork()? else {
            // The child must never return, not even by a panic.
            let done = catch_unwind(AssertUnwindSafe(|| walk(guard, writing)));
            sys::exit_now(done.unwrap_or(UNKNOWN))
        };
        Ok(Self {
            child,
            count: reading.into(),
            inodes_at_start,
            has_ended: false,
        })
    }

    /// What it came to, once it has ended.
    fn outcome(&mut self) -> Option<WalkResult> {
        let ended = waitpid(self.child, Some(WaitPidFlag::WNOHANG));
        let outcome = match ended {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => return None,
            Ok(WaitStatus::Exited(_, 0)) => {
                let mut bytes = [0; size_of::<usize>()];
                let read = self.count.read_exact(&mut bytes);
                read.map_or(WalkResult::Unknown, |()| {
                    WalkResult::Directories(usize::from_ne_bytes(bytes))
                })
            }
            Ok(WaitStatus::Exited(_, TOO_MANY) | WaitStatus::Signaled(..)) => WalkResult::TooMany,
            Ok(_) | Err(_) => WalkResult::Unknown,
        };
        self.has_ended = true;
        Some(outcome)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        if !self.has_ended {
            let _killed = kill(self.child, Signal::SIGKILL);
            while waitpid(self.child, None) == Err(Errno::EINTR) {}
        }
    }
}

/// Exit codes of a walk that found too many directories, and of one that failed.
const TOO_MANY: i32 = 1;
const UNKNOWN: i32 = 2;

/// Walks in the child; returns its exit code.
fn walk(guard: &Guard, writing: OwnedFd) -> i32 {
    let kept: Vec<_> = guard
        .roots()
        .iter()
        .map(|root| root.fd.as_fd())
        .chain([writing.as_fd()])
        .collect();
    // It ends with the supervisor, and keeps none of its descriptors open.
    if set_pdeathsig(Signal::SIGKILL).is_err() || sys::close_all_but(&kept).is_err() {
        return UNKNOWN;
    }
    let mut errors = Vec::new();
    let (roots, patterns, inventory) = (guard.roots(), &guard.patterns, &guard.inventory);
    match walk_through(roots, patterns, Some(inventory), &mut errors) {
        Err(ProtectError::TooMany) => TOO_MANY,
        Err(_) => UNKNOWN,
        Ok(_) if errors.iter().any(|error| matches!(error, ProtectError::TooMany)) => TOO_MANY,
        Ok(inventory) => match File::from(writing).write_all(&inventory.len().to_ne_bytes()) {
            Ok(()) => 0,
            Err(_) => UNKNOWN,
        },
    }
}

fn allowance(directories: usize) -> u64 {
    most_directories().saturating_sub(directories) as u64
}

/// Inodes in use; 0 where the file system does not say.
fn inodes_in_use(fd: &OwnedFd) -> u64 {
    fstatvfs(fd).map_or(0, |stat| stat.files().saturating_sub(stat.files_free()))
}
