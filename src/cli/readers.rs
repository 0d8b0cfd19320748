//! How long output waits for a reader that does not read: until shortly after a stop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long output waits for a reader after a stop.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// The stops so far.
static STOPS: Mutex<Stops> = Mutex::new(Stops {
    first: None,
    latest: None,
    has_given_up: false,
});

#[derive(Debug)]
struct Stops {
    /// The first that ends the program, or the end of the command.
    first: Option<Instant>,
    /// The latest that ends a call.
    latest: Option<Instant>,
    /// Whether a reader was given up.
    has_given_up: bool,
}

fn stops() -> MutexGuard<'static, Stops> {
    STOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a stop that ends the program.
pub(super) fn program_ends(now: Instant) {
    stops().first.get_or_insert(now);
}

/// Notes a stop that ends a call.
pub(super) fn call_ends(now: Instant) {
    stops().latest = Some(now);
}

/// Notes that Stockade killed the command, on a timeout or the end key. Readers are then waited for as after a stop.
pub(super) fn command_ended() {
    program_ends(Instant::now());
}

/// Whether a write that began at `begun` still waits for its reader. A reader that was given up once is not waited for again.
pub(super) fn waits_for_readers(begun: Instant) -> bool {
    let mut stops = stops();
    let is_over = |stop: Instant| stop.elapsed() > READER_TIMEOUT && begun.elapsed() > READER_TIMEOUT;
    stops.has_given_up |= stops.first.is_some_and(is_over);
    // An earlier stop was for another call.
    let is_over_for_now = stops.latest.is_some_and(|stop| stop >= begun && is_over(stop));
    !stops.has_given_up && !is_over_for_now
}
