//! Raw keywords and numbers → values of the policy.

use std::sync::Arc;

use super::error::Diagnostic;
use super::scalar::{At, DEMANDS, Position, RawDemand};
use super::source::Source;
use super::units::UnitError;
use super::yaml::BOOLEANS;
use crate::policy::Demand;

/// The demand of a keyword.
pub(crate) fn demand(source: &Arc<Source>, raw: &At<RawDemand>) -> Result<Demand, Box<Diagnostic>> {
    match &raw.value {
        RawDemand::None => Ok(Demand::None),
        RawDemand::Required => Ok(Demand::Required),
        RawDemand::OncePerSession => Ok(Demand::OncePerSession),
        RawDemand::Deny => Ok(Demand::Deny),
        RawDemand::Other(keyword) => {
            let wrong = unknown_keyword(source, raw.at, keyword);
            Err(wrong.did_you_mean(keyword, DEMANDS.iter().copied()))
        }
    }
}

/// The error for an unknown keyword.
pub(crate) fn unknown_keyword(source: &Arc<Source>, at: Position, keyword: &str) -> Box<Diagnostic> {
    let wrong = Diagnostic::error(format!("unknown value `{keyword}`")).at(source.span(at), "not a value here");
    if matches!(
        keyword,
        "yes" | "no" | "on" | "off" | "y" | "n" | "Yes" | "No" | "On" | "Off"
    ) {
        wrong.hint(BOOLEANS)
    } else {
        wrong
    }
}

/// The error for a name that no root has.
pub(crate) fn unknown_root<'a>(
    source: &Arc<Source>,
    name: &At<String>,
    roots: impl IntoIterator<Item = &'a str>,
) -> Box<Diagnostic> {
    Diagnostic::error(format!("no root is called `{}`", name.value))
        .at(source.span(name.at), "not a root")
        .did_you_mean(&name.value, roots)
}

/// A size or duration, or an error that lists the units.
pub(crate) fn unit<T>(
    source: &Arc<Source>,
    at: Position,
    value: Result<T, UnitError>,
    hint: &str,
) -> Result<T, Box<Diagnostic>> {
    value.map_err(|error| {
        Diagnostic::error(error.to_string())
            .at(source.span(at), "not understood")
            .hint(hint)
    })
}
