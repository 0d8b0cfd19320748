//! Text and parameters of a Seatbelt profile, as a shell script that hands them to `sandbox-exec`.

use std::fmt::Write as _;

use super::error::ExportError;
use crate::backend::seatbelt::SeatbeltPlan;
use crate::confine::seatbelt::SANDBOX_EXEC;
use crate::policy::path::{display, is_escaped};

const FORM: &str = "a Seatbelt script";

const HEAD: &str = "\
#!/bin/sh
# Made by `stockade profile export --format seatbelt`; never weaker than the profile for files, sockets and network.
# Untested on a Mac: the text was checked by reading it back, on another system.
# Not held here: limits, the environment, protected names that no clause denies.
#
#   sh THIS-FILE COMMAND [ARGUMENT...]
";

/// The script.
pub(super) fn script(plan: &SeatbeltPlan) -> Result<String, ExportError> {
    let mut text = String::from(HEAD);
    // Writing to a String cannot fail.
    let _infallible = write!(text, "exec {SANDBOX_EXEC} -p {}", quoted(&plan.text));
    for parameter in &plan.parameters {
        if is_escaped(parameter.value.as_bytes()) {
            return Err(ExportError::Name {
                form: FORM,
                path: display(&parameter.value),
                why: "it has a character that cannot be seen",
            });
        }
        let argument = format!("{}={}", parameter.name, parameter.value);
        let _infallible = write!(text, " \\\n  -D {}", quoted(&argument));
    }
    text.push_str(" \\\n  -- \"$@\"\n");
    Ok(text)
}

/// One word of a shell, whatever is in it.
fn quoted(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', "'\\''"))
}
