//! Polling for a moment before sleeping.
//!
//! Waking a process that sleeps, and often an idle processor with it, takes longer in a virtual machine than reading a small file.
//! So where a reply or the next request probably comes at once, the socket is polled for a moment, and other processes may run in
//! between. It only saves time: afterwards the caller waits as usual.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::thread::{available_parallelism, yield_now};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long the reply to a small request is polled for.
pub(crate) const REPLY_TIME: Duration = Duration::from_micros(50);
/// The same for the next request: as long as a caller and its relay take to wake up, too.
pub(crate) const REQUEST_TIME: Duration = Duration::from_micros(300);

/// Polls until one of these has an event or the time is over; never sleeps. Whether one has an event, which `fds` hold: some, like
/// a table of mounts, report it once. With one processor the other end could not run meanwhile, so this returns at once.
pub(crate) fn busy_poll(fds: &mut [PollFd<'_>], time: Duration) -> bool {
    if !is_multiprocessor() {
        return false;
    }
    let started = Instant::now();
    loop {
        match poll(fds, PollTimeout::ZERO) {
            Ok(0) if started.elapsed() < time => yield_now(),
            // The next wait reports an error.
            Ok(0) | Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

/// The same for input on one descriptor.
pub(crate) fn busy_poll_fd(fd: BorrowedFd<'_>, time: Duration) {
    let _is_ready = busy_poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], time);
}

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
