//! Bounds on what one input may cost, and a directory to work in.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// What one input may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes on the heap at once, whatever the input.
    pub(crate) bytes: usize,
    /// Bytes on the heap at once, for each byte of input.
    pub(crate) per_byte: usize,
    /// Time on the processor; how busy the machine is does not matter.
    pub(crate) time: Duration,
}

/// Runs `work` on one input and panics where it costs more than the bounds allow.
pub(crate) fn bounded<T>(input: &[u8], bounds: Bounds, work: impl FnOnce() -> T) -> T {
    let (start, before) = (processor_time(), LIVE.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    let done = work();
    let time = processor_time().saturating_sub(start);
    let bytes = PEAK.load(Ordering::Relaxed) - before;
    let most = bounds.bytes + bounds.per_byte * input.len();
    assert!(bytes <= most, "{bytes} bytes on the heap, at most {most} expected");
    assert!(time <= bounds.time, "{time:?} on the processor");
    done
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// The directories that [`workplace`] made.
static WORKPLACES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A new directory. The fuzzer ends without unwinding, so its caller removes `TMPDIR`; a test calls [`remove_workplaces`].
pub(crate) fn workplace() -> PathBuf {
    let mut made = WORKPLACES.lock().expect("no target panicked here");
    let name = format!("stockade-fuzz-{}-{}", std::process::id(), made.len());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir(&path).expect("a directory to work in");
    made.push(path.clone());
    std::fs::canonicalize(path).expect("a directory to work in")
}

/// Removes what [`workplace`] made, when no target will run again.
#[allow(dead_code, reason = "the fuzzer has no end of its own")]
pub(crate) fn remove_workplaces() {
    for path in WORKPLACES.lock().expect("no target panicked here").drain(..) {
        std::fs::remove_dir_all(path).expect("a directory to remove");
    }
}

/// Bytes on the heap, and the most there were. They stay zero where no counting allocator is installed.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(dead_code, reason = "only the fuzzer counts the heap")]
pub(crate) fn allocated(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

#[allow(dead_code, reason = "only the fuzzer counts the heap")]
pub(crate) fn freed(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}
