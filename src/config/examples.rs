//! The `match` and `not_match` lines of shell rules, checked when the file is loaded.

use super::error::Diagnostic;
use super::raw::RawRule;
use super::source::Source;
use crate::policy::ShellRule;
use crate::policy::shell::{rule_covers, rule_matches};
use std::sync::Arc;

/// An error for the first example that contradicts the rule.
///
/// A rule that lets something through must not cover a `not_match` line by itself: in
/// `git status; rm x` the rule `git status` matches a part, and that is not enough.
pub(crate) fn check(source: &Arc<Source>, raw: &RawRule, rule: &ShellRule) -> Result<(), Box<Diagnostic>> {
    let pattern = rule.pattern.join(" ");
    for line in raw.matches.iter().flatten() {
        if !rule_matches(rule, &line.value) {
            return Err(
                Diagnostic::error(format!("the rule `{pattern}` does not match its own example"))
                    .at(
                        source.span(line.at),
                        "in `match`, but no command of this line begins so",
                    )
                    .and(source.span(raw.pattern.at), "the rule"),
            );
        }
    }
    for line in raw.not_matches.iter().flatten() {
        if rule_covers(rule, &line.value) {
            let label = if rule.allowed {
                "covers this whole line"
            } else {
                "blocks this line"
            };
            return Err(
                Diagnostic::error(format!("the rule `{pattern}` matches its own counter-example"))
                    .at(source.span(line.at), format!("in `not_match`, but the rule {label}"))
                    .and(source.span(raw.pattern.at), "the rule"),
            );
        }
    }
    Ok(())
}
