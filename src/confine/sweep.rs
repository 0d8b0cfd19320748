//! The process table, read from /proc: who descends from whom, and what they use.
//!
//! Used where the Landlock signal scope cannot do it: by the keeper, which stands outside every
//! layer, and by a runner that no scope keeps to its tree. Where one does, [`kill_scoped`] needs no table.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, SysconfVar, getpid, sysconf};

/// One reading of /proc.
#[derive(Debug, Default)]
pub(crate) struct Table {
    children: BTreeMap<i32, Vec<i32>>,
    used: BTreeMap<i32, Usage>,
}

/// What a tree uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    /// Processes and threads, the root of the tree not counted.
    pub(crate) processes: u64,
    /// Resident bytes; a page shared by two processes counts twice.
    pub(crate) resident: u64,
}

impl Table {
    /// The table as it is now; a process that ends while it is read is left out.
    pub(crate) fn read() -> Self {
        let mut table = Self::default();
        let page = sysconf(SysconfVar::PAGE_SIZE)
            .ok()
            .flatten()
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(4096);
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return table;
        };
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let Ok(stat) = std::fs::read(entry.path().join("stat")) else {
                continue;
            };
            let Some((parent, threads, pages)) = parse_stat(&stat) else {
                continue;
            };
            table.children.entry(parent).or_default().push(pid);
            let usage = Usage {
                processes: threads,
                resident: pages.saturating_mul(page),
            };
            table.used.insert(pid, usage);
        }
        table
    }

    /// Every process below `root`.
    pub(crate) fn below(&self, root: Pid) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let mut todo = vec![root.as_raw()];
        while let Some(pid) = todo.pop() {
            for child in self.children.get(&pid).into_iter().flatten() {
                if found.insert(*child) {
                    todo.push(*child);
                }
            }
        }
        found
    }

    /// What the tree below `root` uses.
    pub(crate) fn usage_below(&self, root: Pid) -> Usage {
        let used = self.below(root).into_iter().filter_map(|pid| self.used.get(&pid));
        used.fold(Usage::default(), |all, one| Usage {
            processes: all.processes + one.processes,
            resident: all.resident + one.resident,
        })
    }
}

/// The process behind a pidfd, as this process would name it; `None` when it is gone or not seen from here.
pub(crate) fn pid_of(pidfd: &OwnedFd) -> Option<Pid> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid: i32 = info
        .lines()
        .find_map(|line| line.strip_prefix("Pid:"))?
        .trim()
        .parse()
        .ok()?;
    (pid > 0).then(|| Pid::from_raw(pid))
}

/// Parent, threads and resident pages of a `/proc/PID/stat` line. The command name may hold anything, a closing
/// parenthesis included, so fields are counted after the last one.
fn parse_stat(stat: &[u8]) -> Option<(i32, u64, u64)> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let threads = fields.nth(15)?.parse().ok()?;
    let resident = fields.nth(3)?.parse().ok()?;
    Some((parent, threads, resident))
}

/// Kills and reaps everything that descends from this process, until nothing is left.
pub(crate) fn kill_descendants() {
    sweep(None);
}

/// The same, until a moment; whether nothing is left.
pub(crate) fn kill_descendants_until(moment: Instant) -> bool {
    sweep(Some(moment))
}

fn sweep(until: Option<Instant>) -> bool {
    let mut pause = Duration::from_micros(200);
    while reap() == Reaped::SomeLeft {
        if until.is_some_and(|moment| moment <= Instant::now()) {
            return false;
        }
        for pid in Table::read().below(getpid()) {
            // It may have ended since the table was read.
            let _killed = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    true
}

/// Kills everything this process may signal, and reaps it. The caller has made sure that the Landlock
/// signal scope confines it to its own tree; then no fork bomb and no daemon escapes it, because the
/// kernel walks all processes under the lock that `fork` needs.
pub(crate) fn kill_scoped() {
    let mut pause = Duration::from_micros(50);
    loop {
        // ESRCH: nothing left to signal.
        let _killed = kill(Pid::from_raw(-1), Signal::SIGKILL);
        if reap() == Reaped::NoneLeft {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Whether children are left after reaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// No child exists.
    NoneLeft,
    /// Some live on.
    SomeLeft,
}

/// Reaps every child that has ended.
pub(crate) fn reap() -> Reaped {
    loop {
        match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Reaped::SomeLeft,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Reaped::NoneLeft,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) b) 7 (c) S 17 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 33 0 0";
        assert_eq!(parse_stat(line), Some((17, 1, 33)));
    }

    #[test]
    fn this_process_is_found_below_its_parent() {
        let table = Table::read();
        assert!(table.below(nix::unistd::getppid()).contains(&getpid().as_raw()));
    }
}
