//! Namespaces and mounts, made for real by this program started again.
//!
//! The probe takes the steps of a session, in the same order and by the same code.

use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::probe::Probe;

/// The first argument of this program when it is started to try namespaces.
pub const PROBE: &str = "__probe";

/// The result of a probe, printed as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probed {
    /// Whether descriptors can be closed by range, which every start does.
    pub close_range: Probe,
    /// Whether the memory of a process that it started can be read, as the broker of attribute calls does.
    pub memory: Probe,
    /// Whether namespaces and mounts can be made.
    pub namespaces: Probe,
}

impl Probed {
    /// The result where the probe gave none.
    fn failed(why: String) -> Self {
        Self {
            close_range: Probe::Untried,
            memory: Probe::Untried,
            namespaces: Probe::Fails(why),
        }
    }
}

/// Probes namespaces and mounts, in this program started again.
pub(super) fn probe() -> Probed {
    run_probe().unwrap_or_else(Probed::failed)
}

/// Starts this program as a probe, and parses its output.
#[expect(
    clippy::disallowed_methods,
    reason = "a probe; what runs a command is started by the supervisor"
)]
fn run_probe() -> Result<Probed, String> {
    let mut command = std::process::Command::new("/proc/self/exe");
    command
        .arg(PROBE)
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().map_err(|error| format!("start a probe: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|_| format!("the probe ended without an answer: {}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_knows_no_probe_is_not_taken_for_a_success() {
        // Here this program is the test harness, which ends with success and prints something else.
        assert!(run_probe().is_err());
    }
}
