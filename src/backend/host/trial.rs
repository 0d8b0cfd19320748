//! Something that is tried on a thread of its own, if need be before anybody asks what came of it.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A trial that many may ask for, each for one of its own.
#[derive(Debug)]
pub(super) struct Trial<T> {
    name: &'static str,
    run: fn() -> T,
    /// The one that was begun before anybody asked.
    begun: Mutex<Option<Running<T>>>,
}

#[derive(Debug)]
struct Running<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<T>,
}

impl<T: Send + 'static> Trial<T> {
    pub(super) const fn new(name: &'static str, run: fn() -> T) -> Self {
        Self {
            name,
            run,
            begun: Mutex::new(None),
        }
    }

    /// Begins it for whoever asks next.
    pub(super) fn begin(&self) {
        // Whoever asks tries again where no thread was to be had.
        *self.begun() = self.start().ok();
    }

    /// Waits for the one that was begun if nobody asked for it.
    pub(super) fn end(&self) {
        let begun = self.begun().take();
        begun.map(|running| running.thread.join());
    }

    /// What came of the one that was begun, or comes of a new one; why there is none.
    pub(super) fn outcome(&self) -> Result<T, String> {
        let begun = self.begun().take();
        match begun.map_or_else(|| self.start(), Ok) {
            Ok(running) => {
                let ended = running.thread.join().is_ok();
                let outcome = running.outcome.recv().ok().filter(|_| ended);
                outcome.ok_or_else(|| "the trial panicked".to_owned())
            }
            Err(error) => Err(format!("no thread for the trial: {error}")),
        }
    }

    fn start(&self) -> io::Result<Running<T>> {
        let (told, outcome) = sync_channel(1);
        let run = self.run;
        let work = move || {
            // Who began it may be gone.
            let _heard = told.send(run());
        };
        let thread = Builder::new().name(self.name.to_owned()).spawn(work)?;
        Ok(Running { thread, outcome })
    }

    fn begun(&self) -> MutexGuard<'_, Option<Running<T>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_was_begun_is_what_the_first_that_asks_is_told() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        static TRIAL: Trial<usize> = Trial::new("counts", || COUNT.fetch_add(1, Ordering::SeqCst));
        assert_eq!(TRIAL.outcome(), Ok(0));
        TRIAL.begin();
        TRIAL.end();
        assert_eq!(COUNT.load(Ordering::SeqCst), 2);
        TRIAL.begin();
        assert_eq!(TRIAL.outcome(), Ok(2));
        assert_eq!(TRIAL.outcome(), Ok(3));
    }

    #[test]
    fn a_trial_that_panics_is_no_success() {
        static TRIAL: Trial<()> = Trial::new("panics", || panic!("as it should"));
        assert_eq!(TRIAL.outcome(), Err("the trial panicked".to_owned()));
    }
}
