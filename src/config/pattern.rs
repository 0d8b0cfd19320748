//! The pattern of a shell rule → its words.

use super::error::Diagnostic;
use super::layers::Layer;
use super::scalar::At;

/// The words of a pattern.
pub(crate) fn parse(layer: &Layer, pattern: &At<String>) -> Result<Vec<String>, Box<Diagnostic>> {
    pattern_words(&pattern.value).map_err(|(why, hint)| {
        Diagnostic::error(format!("`{}` is not a rule pattern", pattern.value))
            .at(layer.source.span(pattern.at), why)
            .hint(hint)
    })
}

/// The words of a pattern; or why it is not valid, with a hint.
pub(crate) fn pattern_words(pattern: &str) -> Result<Vec<String>, (&'static str, &'static str)> {
    if pattern.contains(['\'', '"', '\\', '`']) {
        return Err((
            "holds a quote",
            "a pattern is split at spaces, and a word cannot hold one: leave the quotes out",
        ));
    }
    // `[` alone is the test command.
    let wild = |word: &str| word != "[" && word.contains(['*', '?', '[']);
    if pattern.split_whitespace().any(wild) {
        return Err((
            "holds a wildcard",
            "a pattern matches every command that begins with its words: leave the wildcard out",
        ));
    }
    if pattern.contains(['$', ';', '|', '&', '<', '>', '(', ')', '\n']) {
        return Err((
            "holds shell syntax",
            "a pattern is the first words of one simple command; lines are taken apart before rules are asked",
        ));
    }
    let parse: Vec<String> = pattern.split_whitespace().map(ToOwned::to_owned).collect();
    if parse.is_empty() {
        return Err((
            "is empty",
            "what holds for every other command stands in `shell.default`",
        ));
    }
    Ok(parse)
}
