//! Looking again before going to sleep.
//!
//! Who sleeps until the other end of a socket speaks is woken through the scheduler, and with it often a processor
//! that sleeps as well: in a virtual machine that takes longer than reading a small file does. So where an answer, or the next of
//! many requests, is likely to come at once, one looks again and again for a moment, and gives way to whoever wants the
//! processor. It only saves time: afterwards one waits as one would have.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::thread::{available_parallelism, yield_now};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long the answer to a small request is looked for.
pub(crate) const REPLY_TIME: Duration = Duration::from_micros(50);
/// How long the next request is looked for: as long as a caller and who passes its calls on take to wake up, too.
pub(crate) const REQUEST_TIME: Duration = Duration::from_micros(300);

/// Looks until one of these has something to tell, or the moment is over; never sleeps. Whether one has, which they
/// say themselves: some, like a table of mounts, tell it once.
///
/// With one processor the other end could not speak meanwhile, so this returns at once.
pub(crate) fn busy_poll(fds: &mut [PollFd<'_>], time: Duration) -> bool {
    if !is_multiprocessor() {
        return false;
    }
    let started = Instant::now();
    loop {
        match poll(fds, PollTimeout::ZERO) {
            Ok(0) if started.elapsed() < time => yield_now(),
            // Whoever waits next finds out about an error.
            Ok(0) | Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

/// The same for whoever waits for one to speak.
pub(crate) fn busy_poll_fd(fd: BorrowedFd<'_>, time: Duration) {
    let _is_ready = busy_poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], time);
}

/// Whether there is another processor.
fn is_multiprocessor() -> bool {
    static MULTIPROCESSOR: OnceLock<bool> = OnceLock::new();
    *MULTIPROCESSOR.get_or_init(|| available_parallelism().is_ok_and(|all| all.get() > 1))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_hours(1);

    #[test]
    fn a_byte_that_is_there_ends_it() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"x").unwrap();
        busy_poll_fd(ours.as_fd(), LONG);
    }

    #[test]
    fn a_byte_that_arrives_ends_it() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || theirs.write_all(b"x").unwrap());
            busy_poll_fd(ours.as_fd(), LONG);
        });
    }

    #[test]
    fn end_of_file_ends_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        busy_poll_fd(ours.as_fd(), LONG);
    }

    #[test]
    fn without_an_event_it_ends_in_time() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut fds = [PollFd::new(ours.as_fd(), PollFlags::POLLIN)];
        assert!(!busy_poll(&mut fds, REPLY_TIME));
    }
}
