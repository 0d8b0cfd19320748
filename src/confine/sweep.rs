//! The process table, read from /proc: who descends from whom, and what they use.
//!
//! Used where no Landlock scope limits signals to a tree: by the supervisor, which is in no layer, and by a runner without a scope.
//! With a scope [`kill_scoped`] needs no table.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, SysconfVar, getpid, sysconf};

use super::sys;

/// One reading of /proc.
#[derive(Debug, Default)]
pub(crate) struct Table {
    parents: BTreeMap<i32, i32>,
    used: BTreeMap<i32, Usage>,
    /// Zombies.
    ended: BTreeSet<i32>,
    stopped: BTreeSet<i32>,
}

/// How often missing parents are looked for.
const MAX_PARENT_ROUNDS: usize = 4;

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
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return table;
        };
        // All pids first: reading each process in between would be too slow for a growing tree, which gets higher pids.
        let pids: Vec<i32> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        for pid in pids {
            table.read_process(pid);
        }
        for _ in 0..MAX_PARENT_ROUNDS {
            if !table.find_parents() {
                break;
            }
        }
        table
    }

    /// Reads a process into the table; whether it exists.
    fn read_process(&mut self, pid: i32) -> bool {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok();
        self.ended.remove(&pid);
        self.stopped.remove(&pid);
        let Some((state, parent, threads, pages)) = stat.and_then(|stat| parse_stat(&stat)) else {
            self.parents.remove(&pid);
            self.used.remove(&pid);
            return false;
        };
        // A zombie with other threads is alive.
        if state == b'Z' && threads <= 1 {
            self.ended.insert(pid);
        }
        if matches!(state, b'T' | b't') {
            self.stopped.insert(pid);
        }
        let usage = Usage {
            processes: threads,
            resident: pages.saturating_mul(page()),
        };
        self.parents.insert(pid, parent);
        self.used.insert(pid, usage);
        true
    }

    /// Whether a signal or a tracer has stopped it.
    pub(crate) fn is_stopped(&self, process: Pid) -> bool {
        self.stopped.contains(&process.as_raw())
    }

    /// Looks for parents that are not in the table; whether there were any.
    ///
    /// In a tree that forks fast, most parents end while the table is read. Their children have another parent then, and still belong
    /// to the tree.
    fn find_parents(&mut self) -> bool {
        let is_missing = |parent: i32| parent > 0 && !self.parents.contains_key(&parent);
        let orphans = self.parents.iter().filter(|(_, parent)| is_missing(**parent));
        let orphans: Vec<(i32, i32)> = orphans.map(|(pid, parent)| (*pid, *parent)).collect();
        for (pid, parent) in &orphans {
            if !self.parents.contains_key(parent) && !self.read_process(*parent) {
                self.read_process(*pid);
            }
        }
        !orphans.is_empty()
    }

    /// Every process below `root`.
    pub(crate) fn below(&self, root: Pid) -> BTreeSet<i32> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, parent) in &self.parents {
            children.entry(*parent).or_default().push(*pid);
        }
        let mut found = BTreeSet::new();
        let mut todo = vec![root.as_raw()];
        while let Some(pid) = todo.pop() {
            for child in children.get(&pid).into_iter().flatten() {
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

fn page() -> u64 {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096)
}

/// The pid of a pidfd in this namespace; `None` when the process has ended or is not visible.
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

/// State, parent, threads and resident pages of a `/proc/PID/stat` line. The command name may hold anything, a closing
/// parenthesis included, so fields are counted after the last one.
fn parse_stat(stat: &[u8]) -> Option<(u8, i32, u64, u64)> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let threads = fields.nth(15)?.parse().ok()?;
    let resident = fields.nth(3)?.parse().ok()?;
    Some((state, parent, threads, resident))
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&stat).map(|(_, parent, ..)| parent)
}

/// Kills and reaps everything that descends from this process, until nothing is left.
pub(crate) fn kill_descendants() {
    sweep(None);
}

/// The same, until the deadline; whether nothing is left.
pub(crate) fn kill_descendants_until(deadline: Instant) -> bool {
    sweep(Some(deadline))
}

fn sweep(deadline: Option<Instant>) -> bool {
    let mut pause = Duration::from_micros(200);
    loop {
        let reaped = reap();
        if reaped == Reaped::NoneLeft {
            return true;
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return false;
        }
        for pid in Table::read().below(getpid()) {
            // It may have ended since the table was read.
            let _killed = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        if reaped == Reaped::SomeLeft {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }
}

/// Kills everything that descends from another process, until nothing of it is alive or the deadline has passed. Zombies count as
/// dead.
pub(crate) fn kill_below(root: Pid, deadline: Instant) {
    let mut pause = Duration::from_micros(200);
    loop {
        let table = Table::read();
        let alive: Vec<i32> = table.below(root).difference(&table.ended).copied().collect();
        if alive.is_empty() || deadline <= Instant::now() {
            return;
        }
        for pid in alive {
            let Ok(pidfd) = sys::open_pidfd(Pid::from_raw(pid)) else {
                continue;
            };
            // The pid may be reused since the table was read. A process with another parent is found in the next round.
            if parent(pid) == table.parents.get(&pid).copied() {
                // It may have ended since.
                let _killed = sys::signal_by(&pidfd, Signal::SIGKILL);
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Kills everything this process may signal, and reaps it. The caller has made sure that the Landlock
/// signal scope confines it to its own tree; then no fork bomb and no daemon escapes it, because the
/// kernel walks all processes under the lock that `fork` needs.
///
/// Where it has no child there is nothing to kill: what descends from a subreaper and is alive descends from a child that is.
/// So a command that left nothing behind costs no walk through all processes of the machine.
pub(crate) fn kill_scoped() {
    let mut pause = Duration::from_micros(50);
    loop {
        let reaped = reap();
        if reaped == Reaped::NoneLeft {
            return;
        }
        // ESRCH: nothing left to signal.
        let _killed = kill(Pid::from_raw(-1), Signal::SIGKILL);
        if reaped == Reaped::SomeLeft {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }
}

/// How many are reaped in one go. Children may end faster than they can be reaped, and the caller must still get to killing them.
pub(crate) const MOST_REAPED: usize = 256;

/// What is left after reaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// No child exists.
    NoneLeft,
    /// Some live on.
    SomeLeft,
    /// More may have ended than are reaped in one go.
    More,
}

/// Reaps ended children, those without an exit signal included.
pub(crate) fn reap() -> Reaped {
    for _ in 0..MOST_REAPED {
        match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Ok(WaitStatus::StillAlive) => return Reaped::SomeLeft,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Reaped::NoneLeft,
        }
    }
    Reaped::More
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) b) 7 (c) S 17 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 33 0 0";
        assert_eq!(parse_stat(line), Some((b'S', 17, 1, 33)));
    }

    #[test]
    fn what_a_parent_that_ended_left_behind_is_found_where_it_is_now() {
        let (me, parent) = (getpid().as_raw(), nix::unistd::getppid());
        let mut table = Table::default();
        table.parents.insert(me, i32::MAX);
        table.used.insert(me, Usage::default());
        assert!(!table.below(parent).contains(&me));
        while table.find_parents() {}
        assert!(table.below(parent).contains(&me));
        assert!(table.used.contains_key(&parent.as_raw()));
    }

    #[test]
    fn this_process_is_found_below_its_parent() {
        let table = Table::read();
        assert!(table.below(nix::unistd::getppid()).contains(&getpid().as_raw()));
    }
}
