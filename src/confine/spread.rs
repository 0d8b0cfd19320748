//! Where a new thread or process starts to run.
//!
//! The kernel starts it on its creator's processor, and while the creator goes on working there it may wait for
//! the next clock tick, 4 ms at 250 Hz, with another processor idle. A start has a handful of short steps that can go
//! side by side, so who makes a task and goes on says where each is to be. What a task may use later is
//! not narrowed: its mask is put back at once, and it stays where it is until the kernel moves it.

use std::io;
use std::thread::{Builder, JoinHandle, Scope};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::{Pid, pipe2, read};

use super::sys::{self, Scheduling};

/// The calling thread.
const MYSELF: Pid = Pid::from_raw(0);

/// Moves a child that was just made to another processor than this one.
///
/// It only saves time: where it fails, the child starts when the kernel has it start. Not for one that may start others meanwhile,
/// which would keep to those processors.
pub(super) fn send_off(child: Pid) {
    let Ok(all) = sched_getaffinity(MYSELF) else { return };
    if let Some(others) = without_this(&all)
        && sched_setaffinity(child, &others).is_ok()
    {
        let _narrowed = sched_setaffinity(child, &all);
    }
}

/// Duplicates this process, as [`sys::fork`] does; the child begins on another processor, and this one goes on here.
///
/// The kernel may run the child first, on this processor, before it can be sent off. What it holds for batch work it lets
/// displace nobody, and so parent and child are that until they have parted.
pub(super) fn fork_away() -> nix::Result<Option<Pid>> {
    let parting = sys::scheduling() == Some(Scheduling::Ordinary) && sys::set_scheduling(Scheduling::Batch).is_ok();
    // A child of the child would keep the mask of a child that is being sent off. Without this it is not.
    let gate = pipe2(OFlag::O_CLOEXEC).ok();
    let forked = sys::fork();
    if parting {
        // It only saves time: batch work gets its share all the same.
        let _as_before = sys::set_scheduling(Scheduling::Ordinary);
    }
    match (&forked, gate) {
        (Ok(Some(child)), Some(gate)) => {
            send_off(*child);
            drop(gate);
        }
        (Ok(None), Some((released, held))) => {
            drop(held);
            // Open until the parent is done with it, or is dead.
            while read(&released, &mut [0]) == Err(Errno::EINTR) {}
        }
        (Ok(_), None) | (Err(_), _) => {}
    }
    forked
}

/// Has a thread that was just started begin on another processor than this one.
pub(crate) fn send_thread_off(thread: &JoinHandle<()>) {
    let Ok(all) = sched_getaffinity(MYSELF) else { return };
    if let Some(others) = without_this(&all) {
        // Of a thread that has ended it is this one that is moved. What was narrowed is wide again after the second call, whoever it was.
        let _narrowed = sys::set_thread_affinity(thread, &others);
        let _widened = sys::set_thread_affinity(thread, &all);
    }
}

/// The processors that this thread may use.
#[derive(Debug)]
pub(super) struct Processors {
    all: CpuSet,
    /// Those that no thread of [`start`](Self::start) was given.
    free: CpuSet,
}

impl Processors {
    /// What may be used now.
    pub(super) fn mine() -> Self {
        let all = sched_getaffinity(MYSELF).unwrap_or_default();
        Self { all, free: all }
    }

    /// How many; one where that cannot be told. A quota of the group is not looked up: that costs more than it tells.
    pub(super) fn count(&self) -> usize {
        count(&self.all).max(1)
    }

    /// Starts a thread on the processor at hand, and goes on on another.
    pub(super) fn start<'scope, 'env>(
        &mut self,
        builder: Builder,
        scope: &'scope Scope<'scope, 'env>,
        work: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        let all = self.all;
        let stays = stay().is_ok();
        let started = builder.spawn_scoped(scope, move || {
            // It was born where its maker was held, and may go where it likes.
            let _narrowed = sched_setaffinity(MYSELF, &all);
            work();
        });
        if let Some(others) = without_this(&self.free)
            && started.is_ok()
            && sched_setaffinity(MYSELF, &others).is_ok()
        {
            self.free = others;
        }
        if stays {
            let _narrowed = sched_setaffinity(MYSELF, &all);
        }
        started.map(drop)
    }
}

/// Holds this thread on the processor that it runs on.
fn stay() -> nix::Result<()> {
    let mut here = CpuSet::new();
    here.set(sched_getcpu()?)?;
    sched_setaffinity(MYSELF, &here)
}

/// `set` without the processor that this thread runs on, if that leaves any.
fn without_this(set: &CpuSet) -> Option<CpuSet> {
    let mut others = *set;
    others.unset(sched_getcpu().ok()?).ok()?;
    (count(&others) > 0).then_some(others)
}

fn count(set: &CpuSet) -> usize {
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .count()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn neither_who_starts_a_thread_nor_the_thread_is_held_anywhere_afterwards() {
        let before = sched_getaffinity(MYSELF).unwrap();
        let seen = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let mut processors = Processors::mine();
            for _ in 0..4 {
                let note = || seen.lock().unwrap().push(sched_getaffinity(MYSELF).unwrap());
                processors.start(Builder::new(), scope, note).unwrap();
            }
        });
        assert_eq!(*seen.lock().unwrap(), vec![before; 4]);
        assert_eq!(sched_getaffinity(MYSELF).unwrap(), before);
    }

    #[test]
    fn neither_is_who_sends_a_thread_off_that_has_ended() {
        let before = sched_getaffinity(MYSELF).unwrap();
        let (sent, task) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || sent.send(nix::unistd::gettid()).unwrap());
        let task = std::path::PathBuf::from(format!("/proc/self/task/{}", task.recv().unwrap()));
        while task.exists() {
            std::thread::yield_now();
        }
        send_thread_off(&thread);
        assert_eq!(sched_getaffinity(MYSELF).unwrap(), before);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_is_sent_off_may_go_anywhere_afterwards() {
        let before = sched_getaffinity(MYSELF).unwrap();
        let (go, released) = std::sync::mpsc::channel::<()>();
        let (sent, seen) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            released.recv().unwrap();
            sent.send(sched_getaffinity(MYSELF).unwrap()).unwrap();
        });
        send_thread_off(&thread);
        go.send(()).unwrap();
        assert_eq!(seen.recv().unwrap(), before);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_that_may_use_one_processor_only_starts_others_all_the_same() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                stay().unwrap();
                let held = sched_getaffinity(MYSELF).unwrap();
                let mut ran = false;
                std::thread::scope(|scope| {
                    let mut processors = Processors::mine();
                    assert_eq!(processors.count(), 1);
                    processors.start(Builder::new(), scope, || ran = true).unwrap();
                });
                assert!(ran);
                assert_eq!(sched_getaffinity(MYSELF).unwrap(), held);
            });
        });
    }
}
