//! The launcher of macOS, with a stand-in for `sandbox-exec` that answers from the profile text alone.
//!
//! This program is its own stand-in, so it has its own `main`.

#[cfg(test)]
#[path = "common/libtest.rs"]
mod libtest;
#[cfg(test)]
#[path = "seatbelt_launch/stand_in.rs"]
mod stand_in;
#[cfg(test)]
#[path = "seatbelt_launch/trials.rs"]
mod trials;

fn main() -> std::process::ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == "-p") {
        return stand_in::main();
    }
    libtest::main(trials::TRIALS, &[])
}
