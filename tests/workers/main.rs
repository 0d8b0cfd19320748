//! Several profiles in one executor: each has a worker of its own, and what one's commands did is left alone by the
//! others.
//!
//! This program is its own stage, so it has its own `main`.

#[cfg(test)]
#[path = "../common/libtest.rs"]
mod libtest;
#[cfg(test)]
mod trials;

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| stockade::confine::stage::is_ours(&first))
    {
        stockade::confine::stage::main();
    }
    trials::main()
}
