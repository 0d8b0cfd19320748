//! Tests that start their own program again, as Stockade's stage or as a stand-in for `sandbox-exec`, so `main` is their own.
//! [`libtest`] speaks the language of libtest and nextest.

#[cfg(test)]
mod differential;
#[cfg(test)]
mod embedding;
#[cfg(test)]
#[path = "../common/libtest.rs"]
mod libtest;
#[cfg(test)]
mod seatbelt_launch;
#[cfg(test)]
mod workers;

fn main() -> std::process::ExitCode {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|program| program.file_name()?.to_str());
    if let Some(main) = name.and_then(embedding::programs::named) {
        return main();
    }
    let first = std::env::args_os().nth(1);
    if first.as_deref().is_some_and(stockade::confine::is_internal_subcommand) {
        stockade::confine::main();
    }
    // The first argument of `sandbox-exec`.
    if first.is_some_and(|first| first == "-p") {
        return seatbelt_launch::stand_in::main();
    }
    let trials = [
        differential::trials::all(),
        seatbelt_launch::trials::TRIALS.to_vec(),
        workers::trials::all(),
        embedding::trials::TRIALS.to_vec(),
    ];
    libtest::main(&trials.concat(), &differential::trials::planted())
}
