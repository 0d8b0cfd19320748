//! Namespaces and mounts, made for real by this program started again.
//!
//! What is tried is what a session does, in the same order and by the same code; the child side of it is the stage's.

use std::process::Stdio;

use super::trial::Trial;

/// The first argument of this program when it is started to try namespaces.
pub const PROBE: &str = "__probe";
/// What it prints when everything worked. A program that does not know the probe prints no such thing.
pub const PROBE_WORKED: &str = "stockade probe: works";

pub(super) static TRIAL: Trial<Result<(), String>> = Trial::new("namespaces", probe);

/// Whether Stockade can make namespaces here.
pub(super) fn tried() -> Result<(), String> {
    TRIAL.outcome().flatten()
}

/// Starts this program as a probe, and reads what it says.
#[expect(
    clippy::disallowed_methods,
    reason = "a probe; what runs a command is started by the stage"
)]
fn probe() -> Result<(), String> {
    let mut command = std::process::Command::new("/proc/self/exe");
    command
        .arg(PROBE)
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().map_err(|error| format!("start a probe: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.trim() {
        PROBE_WORKED if output.status.success() => Ok(()),
        "" => Err(format!("the probe ended without a word: {}", output.status)),
        why => Err(why.lines().next().unwrap_or_default().chars().take(200).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_knows_no_probe_is_not_taken_for_a_success() {
        // Here this program is the test harness, which ends with success and prints something else.
        assert!(probe().is_err());
    }
}
