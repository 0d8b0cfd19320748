//! How long somebody who does not read what is written is waited for: until a moment after a stop.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long somebody who does not read is waited for after a stop.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// What stops came so far.
static STOPS: Mutex<Stops> = Mutex::new(Stops {
    first: None,
    latest: None,
    has_given_up: false,
});

#[derive(Debug)]
struct Stops {
    /// The first that ends the program, or what stands for one.
    first: Option<Instant>,
    /// The latest that ends what is under way.
    latest: Option<Instant>,
    /// Whether somebody did not read when it was time.
    has_given_up: bool,
}

fn stops() -> MutexGuard<'static, Stops> {
    STOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a stop that ends the program.
pub(super) fn program_ends(now: Instant) {
    stops().first.get_or_insert(now);
}

/// Notes a stop that ends what is under way.
pub(super) fn call_ends(now: Instant) {
    stops().latest = Some(now);
}

/// Notes that the command was ended, and not by a signal: because its time was over, or by the end key. Who has not read its
/// output so far may never read, and is waited for as after a stop.
pub(super) fn command_ended() {
    program_ends(Instant::now());
}

/// Whether somebody who does not read is still waited for, by a write that was begun then. One who has not read when it was
/// time is not waited for again.
pub(super) fn waits_for_readers(begun: Instant) -> bool {
    let mut stops = stops();
    let is_over = |stop: Instant| stop.elapsed() > READER_TIMEOUT && begun.elapsed() > READER_TIMEOUT;
    stops.has_given_up |= stops.first.is_some_and(is_over);
    // One that came before was for another call.
    let is_over_for_now = stops.latest.is_some_and(|stop| stop >= begun && is_over(stop));
    !stops.has_given_up && !is_over_for_now
}
