//! Runs a trial on a thread of its own.

use std::thread::Builder;

/// The result of the trial, or why there is none.
pub(super) fn outcome<T: Send + 'static>(name: &str, run: fn() -> T) -> Result<T, String> {
    let thread = Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| format!("no thread for the trial: {error}"))?;
    thread.join().map_err(|_| "the trial panicked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_says_what_came_of_it_and_one_that_panics_is_no_success() {
        assert_eq!(outcome("counts", || 7), Ok(7));
        let panics: fn() = || panic!("as it should");
        assert_eq!(outcome("panics", panics), Err("the trial panicked".to_owned()));
    }
}
