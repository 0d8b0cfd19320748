//! A control group for one command: in it the kernel bounds the processes and the memory of the whole tree.
//!
//! [`DelegatedGroup`] finds where one can be made. The runner enters it before it forks its command, and nothing in it can leave: no
//! command can write to a control group. The group of a killed parent is removed by the next one; an unlocked directory shows that
//! its owner is dead. Source: the kernel's cgroup v2 guide.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use super::error::ConfineError;
use super::sys;
use crate::backend::host::{DelegatedGroup, GROUP_PREFIX, ProcessLocation, own_group_name};
use crate::confine::wire::protocol::{CommandLimits, End, LimitKind};

/// The runner, which is in the group as well.
const RUNNER_PROCESSES: u64 = 1;
/// More processes than the kernel can have at once; it takes no larger number.
const MOST_PROCESSES: u64 = 4 * 1024 * 1024;
/// How often it is checked that its bounds still exist.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How often, and at what interval, removing an ended group is tried: killed processes take a moment to exit.
const REMOVE_ATTEMPTS: usize = 40;
const REMOVE_PAUSE: Duration = Duration::from_millis(5);

/// A control group that was made; killed and removed when it is dropped.
#[derive(Debug)]
pub struct Group {
    directory: PathBuf,
    /// The files of its bounds, unreadable once its manager takes the bounds away.
    bounds: Vec<File>,
    is_memory_bounded: bool,
    _lock: Flock<File>,
}

impl Group {
    /// A group with these bounds.
    ///
    /// # Errors
    /// It cannot be made or bounded. The command must not run then.
    pub fn make(limits: CommandLimits) -> Result<Self, ConfineError> {
        let parent = match DelegatedGroup::find() {
            Ok(DelegatedGroup {
                directory,
                location: ProcessLocation::InSubgroup,
            }) => directory,
            Ok(DelegatedGroup {
                directory: _,
                location: ProcessLocation::InGroupItself,
            }) => {
                return Err(ConfineError::Group(io::Error::other(
                    "this process is in the delegated one itself",
                )));
            }
            Err(why) => return Err(ConfineError::Group(io::Error::other(why.why()))),
        };
        sweep(&parent);
        Self::make_in(&parent, limits).map_err(ConfineError::Group)
    }

    fn make_in(parent: &Path, limits: CommandLimits) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("{GROUP_PREFIX}{}-{count}", std::process::id()));
        let mut group = Self {
            _lock: create_locked(&directory)?,
            directory,
            bounds: Vec::new(),
            is_memory_bounded: limits.memory.is_some(),
        };
        if let Some(processes) = limits.processes {
            match processes.saturating_add(RUNNER_PROCESSES) {
                MOST_PROCESSES.. => group.set("pids.max", "max")?,
                most => group.set("pids.max", &most.to_string())?,
            }
        }
        if let Some(memory) = limits.memory {
            group.set("memory.max", &memory.to_string())?;
            if group.directory.join("memory.swap.max").exists() {
                group.set("memory.swap.max", "0")?;
            } else if has_swap()? {
                return Err(io::Error::other("the kernel counts no swap here, and there is some"));
            }
        }
        Ok(group)
    }

    fn set(&mut self, name: &str, value: &str) -> io::Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, value)?;
        self.bounds.push(File::open(path)?);
        Ok(())
    }

    /// Its `cgroup.procs`, for [`enter`].
    ///
    /// # Errors
    /// The group was removed.
    pub fn procs_file(&self) -> Result<OwnedFd, ConfineError> {
        let procs_file = File::options().write(true).open(self.directory.join("cgroup.procs"));
        procs_file.map(OwnedFd::from).map_err(ConfineError::Group)
    }

    /// Waits until its processes must be killed: they exceeded its memory, or its bounds were removed.
    pub async fn must_end(&self) {
        tokio::select! {
            () = self.is_out_of_memory() => {}
            () = self.lost_bounds() => {}
        }
    }

    /// Never completes where that cannot be watched: the kernel kills all the same.
    async fn is_out_of_memory(&self) {
        let Ok(events) = File::open(self.events()) else {
            return std::future::pending().await;
        };
        let Ok(watched) = sys::watch_changes(events.into()) else {
            return std::future::pending().await;
        };
        while !self.was_out_of_memory() {
            match watched.ready(tokio::io::Interest::PRIORITY).await {
                Ok(mut changed) => {
                    // Only reading the open file clears the event.
                    let mut read = [0; 512];
                    if nix::sys::uio::pread(watched.get_ref().as_fd(), &mut read, 0).is_err() {
                        return std::future::pending().await;
                    }
                    changed.clear_ready();
                }
                Err(_) => return std::future::pending().await,
            }
        }
    }

    async fn lost_bounds(&self) {
        while self.is_bounded() {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    fn is_bounded(&self) -> bool {
        let is_present = |bound: &File| nix::sys::uio::pread(bound, &mut [0; 32], 0).is_ok();
        self.bounds.iter().all(is_present)
    }

    /// Whether the kernel has killed a process in it for this group's memory limit, not for an outer one.
    fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.events()).unwrap_or_default();
        let has = |event: &str| {
            let count = events.lines().find_map(|line| line.strip_prefix(event));
            count.is_some_and(|count| count.trim() != "0")
        };
        // `oom` counts where the limit is, `oom_kill` where the process was.
        self.is_memory_bounded && has("oom ") && has("oom_kill ")
    }

    /// The end of the command, where the group caused it.
    pub fn end(&self) -> Option<End> {
        if self.was_out_of_memory() {
            Some(End::OverLimit(LimitKind::Memory))
        } else if self.is_bounded() {
            None
        } else {
            Some(End::Unbounded)
        }
    }

    fn events(&self) -> PathBuf {
        self.directory.join("memory.events")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty, unless the runner was killed. What cannot be removed now the next parent removes.
        for _ in 0..REMOVE_ATTEMPTS {
            match fs::remove_dir(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    let _killed = fs::write(self.directory.join("cgroup.kill"), "1");
                    std::thread::sleep(REMOVE_PAUSE);
                }
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// Moves this process into the group of this `cgroup.procs`.
pub(super) fn enter(procs_file: &OwnedFd) -> nix::Result<()> {
    // Zero is the writing process, in any PID namespace.
    nix::unistd::write(procs_file, b"0").map(drop)
}

/// Moves this process out of a delegated group in which it is alone, into a child group, so that bounded groups can be made beside
/// it. If that fails nothing changes. For a process that has no child yet.
pub(super) fn leave_delegated() {
    let Ok(DelegatedGroup {
        directory,
        location: ProcessLocation::InGroupItself,
    }) = DelegatedGroup::find()
    else {
        return;
    };
    let own = directory.join(own_group_name());
    let Ok(_lock) = create_locked(&own) else { return };
    let moved = fs::write(own.join("cgroup.procs"), "0");
    if moved.is_err() || fs::write(directory.join("cgroup.subtree_control"), "+pids +memory").is_err() {
        // Back to where it was; what stays is removed by the next start.
        let _back = fs::write(directory.join("cgroup.procs"), "0");
        let _removed = fs::remove_dir(&own);
    }
}

/// Whether memory can be swapped out anywhere.
fn has_swap() -> io::Result<bool> {
    match fs::read_to_string("/proc/swaps") {
        // The first line is the heading.
        Ok(swaps) => Ok(swaps.lines().nth(1).is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a directory and locks it.
fn create_locked(directory: &Path) -> io::Result<Flock<File>> {
    fs::create_dir(directory)?;
    lock(directory)
}

fn lock(directory: &Path) -> io::Result<Flock<File>> {
    let opened = File::open(directory)?;
    Flock::lock(opened, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}

/// Removes groups that are unlocked and empty.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let is_ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(GROUP_PREFIX.as_bytes());
    for entry in entries.flatten().filter(|entry| is_ours(&entry.file_name())) {
        if let Ok(_lock) = lock(&entry.path()) {
            // Fails where something runs in it.
            let _removed = fs::remove_dir(entry.path());
        }
    }
}
