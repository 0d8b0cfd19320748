//! YAML text → raw mirror, or one error that says where.

use std::sync::Arc;

use serde_yaml::budget::BudgetBreach;
use serde_yaml::{Error, Location, MessageFormatter as _, UserMessageFormatter};

use super::empty_values::{Filled, Node};
use super::error::Diagnostic;
use super::options::options;
use super::raw::RawConfig;
use super::scalar::Position;
use super::source::{Source, SourceName, Span};
use super::unquoted;

/// The raw mirror of `bytes`, with the source that later messages point into.
pub(crate) fn parse(name: SourceName, bytes: &[u8]) -> Result<(Arc<Source>, RawConfig), Box<Diagnostic>> {
    let (source, raw) = mirror(name, bytes)?;
    refuse_empty_values(&source, bytes)?;
    Ok((source, raw))
}

/// Parses without [`refuse_empty_values`], which the caller runs.
pub(crate) fn mirror(name: SourceName, bytes: &[u8]) -> Result<(Arc<Source>, RawConfig), Box<Diagnostic>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(not_text(name, bytes, error.valid_up_to())),
    };
    let source = Source::new(name, text);
    let meaningful =
        |line: &str| !matches!(line.trim(), "" | "---" | "..." | "{}" | "null" | "~") && !line.trim().starts_with('#');
    if !source.shown().lines().any(meaningful) {
        return Err(Diagnostic::error("the config is empty")
            .at(source.span(Position::START), "nothing is granted here")
            .hint("`stockade init` writes a commented one to start from"));
    }
    match serde_yaml::from_str_with_options(text, options()) {
        Ok(raw) => Ok((source, raw)),
        Err(error) => Err(explain(&source, &error)),
    }
}

/// Refuses a key, or a list entry, without a value.
pub(crate) fn refuse_empty_values(source: &Arc<Source>, bytes: &[u8]) -> Result<(), Box<Diagnostic>> {
    let empty = || {
        let text = String::from_utf8_lossy(bytes);
        if serde_yaml::from_str_with_options::<Filled>(&text, options())? == Filled::Yes {
            return Ok(None);
        }
        let node = serde_yaml::from_str_with_options::<Node>(&text, options())?;
        Ok(node.first_empty().map(|(key, at)| (key.map(str::to_owned), at)))
    };
    match empty().map_err(|error: Error| explain(source, &error))? {
        None => Ok(()),
        Some((key, at)) => {
            let what = key.map_or("a list entry".to_owned(), |key| format!("`{key}`"));
            Err(Diagnostic::error(format!("{what} has no value"))
                .at(source.span(at), "nothing here")
                .hint("write a value, or remove the key: `[]` is an empty list, `{}` an empty mapping"))
        }
    }
}

fn not_text(name: SourceName, bytes: &[u8], valid: usize) -> Box<Diagnostic> {
    let source = Source::new(name, &String::from_utf8_lossy(bytes));
    let before = String::from_utf8_lossy(&bytes[..valid]).chars().count();
    let (mut line, mut column) = (1, 1);
    for c in source.shown().chars().take(before) {
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    let span = Span {
        source,
        line,
        column,
        length: 1,
    };
    Diagnostic::error("the config is not UTF-8 text").at(span, "not UTF-8 from here")
}

/// What a parser error means to the person who wrote the file.
fn explain(source: &Arc<Source>, error: &Error) -> Box<Diagnostic> {
    if let Error::AliasError { error, locations, .. } = error {
        let inner = explain(source, error);
        return inner.and(source.span(locations.reference_location.into()), "used here");
    }
    let at = error.location().unwrap_or(Location::UNKNOWN);
    let (message, label) = headline(error);
    let span = source.span(at.into());
    let found = Diagnostic::error(message).at(span.clone(), label);
    match error {
        Error::UnknownAnchor { .. } | Error::Unexpected { .. } | Error::ExternalMessage { .. } => {
            match unquoted::hint(&span) {
                Some(hint) => found.hint(hint),
                None => found,
            }
        }
        Error::SerdeUnknownField { field, expected, .. } => match replacement(field) {
            Some(line) => found.hint(line),
            None => found.did_you_mean(field, expected.iter().copied()),
        },
        Error::SerdeUnknownVariant { variant, expected, .. } => found.did_you_mean(variant, expected.iter().copied()),
        Error::InvalidBooleanStrict { .. } => found.hint(BOOLEANS),
        Error::DuplicateMappingKey { .. } => found.hint("each key may stand once: merge the two, or drop one"),
        Error::MergeKeyNotAllowed { .. } => {
            found.hint("write the keys out: what a line grants must stand on that line")
        }
        Error::NullIntoString { .. } => {
            found.hint("`~` alone means \"nothing\" in YAML; for the home directory write `~/`")
        }
        Error::MultipleDocuments { .. }
        | Error::Budget {
            breach: BudgetBreach::Documents { .. },
            ..
        } => found.hint("a config is one document: remove what follows `---`"),
        _ => found,
    }
}

/// The line to write in place of a key that other programs, or earlier drafts, have.
fn replacement(key: &str) -> Option<&'static str> {
    Some(match key {
        "tool_rules" => "write `tools: {write_file: {approval: required}}`, with an entry for each tool",
        "pre_approved" => "write `tools: {read_file: {pre_approved: true}}`, with an entry for each tool",
        "action" => {
            "write `approval: none` for what is approved, `approval: required` for what is asked about, `allowed: false` for what is blocked"
        }
        "host_tools" => "write `custom_tools: {NAME: {}}`, with an entry for each function of your program",
        "safe_commands" => "write `tools: {shell: {safe_commands: [git status, ls]}}`",
        "dangerous_patterns" => {
            "write `tools: {shell: {dangerous_patterns: ['\\brm\\b']}}`: regular expressions that force a question; a rule with `allowed: false` forbids"
        }
        "safe_paths" => "write `tools: {write_file: {safe_paths: [./cache/]}}`: paths relative to this file",
        _ => return None,
    })
}

pub(crate) const BOOLEANS: &str = "write `true` or `false`: `yes`, `no`, `on` and `off` are plain words in YAML 1.2";

/// The message, and the label under the line.
fn headline(error: &Error) -> (String, String) {
    let both = |message: &str, label: &str| (message.to_owned(), label.to_owned());
    match error {
        Error::SerdeUnknownField { field, .. } => (format!("unknown key `{field}`"), "not a key here".to_owned()),
        Error::SerdeUnknownVariant { variant, .. } => {
            (format!("unknown value `{variant}`"), "not a value here".to_owned())
        }
        Error::SerdeMissingField { field, .. } => {
            (format!("missing key `{field}`"), format!("`{field}` is needed here"))
        }
        Error::SerdeInvalidType {
            unexpected, expected, ..
        }
        | Error::SerdeInvalidValue {
            unexpected, expected, ..
        } => (
            format!("expected {expected}, found {unexpected}"),
            format!("expected {expected}"),
        ),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("duplicate key `{key}`"), "stands a second time".to_owned())
        }
        Error::DuplicateMappingKey { key: None, .. } => both("duplicate key", "stands a second time"),
        Error::MergeKeyNotAllowed { .. } => both("merge keys (`<<`) are not read", "here"),
        Error::Unexpected { expected, .. } => {
            let wanted = match *expected {
                "mapping start" => "a mapping (`key: value`)",
                "sequence start" => "a list (`[a, b]`)",
                "string scalar" => "text",
                other => other,
            };
            (format!("expected {wanted}"), "here".to_owned())
        }
        Error::UnknownAnchor { .. } => both("a reference to nothing", "nothing has this name"),
        Error::InvalidScalar { .. } => both("expected a whole number", "not one"),
        Error::InvalidBooleanStrict { .. } => both("not a boolean", "expected `true` or `false`"),
        Error::NullIntoString { .. } => both("expected text, found nothing", "nothing here"),
        Error::MultipleDocuments { .. } => both("more than one YAML document", "a second one starts here"),
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { .. } => both("nested too deep", "no config needs this many levels"),
            BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. } | BudgetBreach::AliasAnchorRatio { .. } => {
                both("too many aliases: refused as an alias bomb", "here")
            }
            BudgetBreach::Documents { .. } => both("more than one YAML document", "another one starts here"),
            _ => both("the config is too large", "read up to here"),
        },
        Error::ExternalMessage { msg, .. } if msg == "recursion limit exceeded" => {
            both("nested too deep", "no config needs this many levels")
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => both(
            "the aliases grow without measure: refused as an alias bomb",
            "expanded up to here",
        ),
        other => (
            UserMessageFormatter.format_message(other).into_owned(),
            "here".to_owned(),
        ),
    }
}
