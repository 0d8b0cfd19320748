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
pub(crate) const ANSWER: Duration = Duration::from_micros(50);
/// How long the next request is looked for: as long as a caller and who passes its calls on take to wake up, too.
pub(crate) const REQUEST: Duration = Duration::from_micros(300);

/// Looks until one of these has something to tell, or the moment is over; never sleeps. Whether one has, which they
/// say themselves: some, like a table of mounts, tell it once.
///
/// With one processor the other end could not speak meanwhile, so this returns at once.
pub(crate) fn linger(fds: &mut [PollFd<'_>], moment: Duration) -> bool {
    if !has_company() {
        return false;
    }
    let begun = Instant::now();
    loop {
        match poll(fds, PollTimeout::ZERO) {
            Ok(0) if begun.elapsed() < moment => yield_now(),
            // Whoever waits next finds out about an error.
            Ok(0) | Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

/// The same for whoever waits for one to speak.
pub(crate) fn linger_for(fd: BorrowedFd<'_>, moment: Duration) {
    let _spoke = linger(&mut [PollFd::new(fd, PollFlags::POLLIN)], moment);
}

/// Whether there is another processor.
fn has_company() -> bool {
    static COMPANY: OnceLock<bool> = OnceLock::new();
    *COMPANY.get_or_init(|| available_parallelism().is_ok_and(|all| all.get() > 1))
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
    fn a_word_that_is_there_ends_it() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"x").unwrap();
        linger_for(ours.as_fd(), LONG);
    }

    #[test]
    fn a_word_that_comes_ends_it() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || theirs.write_all(b"x").unwrap());
            linger_for(ours.as_fd(), LONG);
        });
    }

    #[test]
    fn an_end_that_comes_ends_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        linger_for(ours.as_fd(), LONG);
    }

    #[test]
    fn silence_is_not_listened_to_for_longer_than_a_moment() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut fds = [PollFd::new(ours.as_fd(), PollFlags::POLLIN)];
        assert!(!linger(&mut fds, ANSWER));
    }
}
