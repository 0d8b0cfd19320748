//! Cuts: what a config asks for and its ceilings do not give.

use std::ffi::OsString;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::policy::path::display;
use crate::policy::{Cut, Origin, Policy};
use crate::profile;

/// The most cuts that a run lists.
const MOST_LINES: usize = 3;

/// A few lines for standard error; empty if nothing was cut.
pub(super) fn short(policy: &Policy, variables: &[(OsString, OsString)]) -> String {
    let mut lines = Vec::new();
    for (name, value) in variables {
        if let Some(ceiling) = policy.variable_beyond(name, value) {
            let (name, file) = (display(name), display(ceiling.file.as_os_str()));
            lines.push(format!(
                "--env: the environment variable {name}: not given by the ceiling {file}"
            ));
        }
    }
    let (own, of_presets): (Vec<Cut>, Vec<Cut>) = profile::cuts(policy).into_iter().partition(is_own);
    lines.extend(own.iter().map(ToString::to_string));
    let mut left = lines.len().saturating_sub(MOST_LINES) + of_presets.len();
    if lines.is_empty()
        && let Some(first) = of_presets.first()
    {
        lines.push(first.to_string());
        left -= 1;
    }
    let mut text = String::new();
    for line in lines.iter().take(MOST_LINES) {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "stockade: {line}");
    }
    if left > 0 {
        let _infallible = writeln!(text, "stockade: and {left} more that a ceiling does not give");
    }
    text
}

/// Every cut as a warning.
pub(super) fn warnings(cuts: &[Cut]) -> String {
    cuts.iter().fold(String::new(), |mut text, cut| {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "warning: {cut}");
        text
    })
}

/// A cut as a JSON object.
pub(super) fn object(cut: &Cut) -> Value {
    json!({
        "origin": cut.origin.to_string(),
        "ceiling": display(cut.ceiling.as_os_str()),
        "clause": cut.clause.as_ref().map(ToString::to_string),
        "what": cut.what.to_string(),
    })
}

/// Whether the cut line is of the config or a flag, not of a preset.
fn is_own(cut: &Cut) -> bool {
    match cut.origin {
        Origin::File { .. } | Origin::Flag(_) => true,
        Origin::Preset { .. } | Origin::Builtin(_) => false,
    }
}
