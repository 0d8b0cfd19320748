//! Bounds on what one input may cost, and a directory to work in.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
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

/// A new directory for this process. The fuzzer ends without unwinding, so whoever starts it removes `TMPDIR`.
pub(crate) fn workplace() -> PathBuf {
    let path = std::env::temp_dir().join(format!("stockade-fuzz-{}", std::process::id()));
    std::fs::create_dir(&path).expect("a directory to work in");
    std::fs::canonicalize(path).expect("a directory to work in")
}

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count of what is held.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn held(more: usize) {
    let live = LIVE.fetch_add(more, Ordering::Relaxed) + more;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call is handed on as it is to the system's allocator; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        held(layout.size());
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        held(layout.size());
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        held(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the one asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
