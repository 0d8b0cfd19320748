//! The short forms of `tools:`, their contradictions, and the channels of `approval:`.

use std::collections::BTreeMap;
use std::path::Path;

use regex::RegexBuilder;

use super::context::Context;
use super::error::Diagnostic;
use super::keywords::RawChannel;
use super::layers::{Layer, Layers};
use super::paths::{self, Variables};
use super::pattern;
use super::raw::RawTool;
use super::scalar::{At, Position};
use super::warnings::{SHELL, WRITERS};
use crate::policy::{AbsPath, Channel, Channels, Demand, LinePattern, Right, Root, SafePath, ShellRule};

/// Bytes that one expression may take when compiled.
const MAX_EXPRESSION: usize = 1 << 20;

/// The entry of a tool in a file.
fn entry<'a>(layer: &'a Layer, tool: &str) -> Option<&'a RawTool> {
    let entries = layer.raw.tools.iter().flat_map(|tools| &tools.0);
    entries
        .into_iter()
        .find_map(|(name, raw)| (name.value == tool).then_some(raw))
}

/// The rules for the `safe_commands` of a file, with their positions. `written` are the full rules of the file.
pub(super) fn rules(
    layer: &Layer,
    written: &[(ShellRule, Position)],
) -> Result<Vec<(ShellRule, Position)>, Box<Diagnostic>> {
    let mut rules = Vec::new();
    for command in entry(layer, SHELL)
        .iter()
        .flat_map(|shell| shell.safe_commands.iter().flatten())
    {
        let origin = layer.source.origin(command.at);
        let rule = ShellRule::plain(pattern::parse(layer, command)?, Demand::None, origin);
        // A rule with `sandbox_paths` is no contradiction.
        let alike = |other: &&(ShellRule, Position)| {
            other.0.pattern == rule.pattern && other.0.sandbox_paths.is_none() && other.0.approval != Demand::None
        };
        if let Some((_, at)) = written.iter().find(alike) {
            return Err(Diagnostic::error(format!(
                "`{}` cannot be safe: another line says otherwise",
                command.value
            ))
            .at(layer.source.span(command.at), "says that it is safe")
            .and(layer.source.span(*at), "says otherwise of the same command")
            .hint("keep one of them"));
        }
        rules.push((rule, command.at));
    }
    Ok(rules)
}

/// The `dangerous_patterns` of all files.
pub(super) fn dangerous(layers: &Layers) -> Result<Vec<LinePattern>, Box<Diagnostic>> {
    let mut patterns = Vec::new();
    for layer in &layers.stack {
        let written = entry(layer, SHELL).and_then(|shell| shell.dangerous_patterns.as_ref());
        for text in written.into_iter().flatten() {
            let expression = RegexBuilder::new(&text.value)
                .size_limit(MAX_EXPRESSION)
                .multi_line(true)
                .build();
            let expression = expression.map_err(|error| {
                Diagnostic::error(format!("`{}` is no regular expression", text.value))
                    .at(layer.source.span(text.at), reason(&error))
                    .hint("a command of that name is `'\\brm\\b'`; a sign with a meaning of its own has a backslash before it: `'\\|'`")
            })?;
            patterns.push(LinePattern {
                expression,
                origin: layer.source.origin(text.at),
            });
        }
    }
    Ok(patterns)
}

/// Why an expression is none, in a line.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "too large".to_owned(),
        other => {
            let text = other.to_string();
            text.lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned()
        }
    }
}

/// The `safe_paths` of all files, by tool, and a warning for each that lies in no root that is written.
pub(super) fn safe_paths(
    layers: &Layers,
    roots: &[Root],
    context: &Context,
    warnings: &mut Vec<Diagnostic>,
) -> Result<BTreeMap<String, Vec<SafePath>>, Box<Diagnostic>> {
    let mut safe: BTreeMap<String, Vec<SafePath>> = BTreeMap::new();
    for layer in &layers.stack {
        for (name, raw) in layer.raw.tools.iter().flat_map(|tools| &tools.0) {
            for written in raw.safe_paths.iter().flatten() {
                let span = || layer.source.span(written.at);
                let expanded = paths::expand(&written.value, &layer.place.base, Variables::of(&layer.source), context);
                let expanded = expanded.map_err(|error| {
                    Diagnostic::error(format!("`{}` cannot be a safe path: {error}", written.value)).at(span(), "here")
                })?;
                let Some(path) = expanded else { continue };
                let path = without_links(&path).map_err(|why| {
                    Diagnostic::error(format!("`{}` cannot be a safe path: {why}", written.value)).at(span(), "here")
                })?;
                let writable = |root: &&Root| root.rights.has(Right::Write);
                if !roots
                    .iter()
                    .filter(writable)
                    .any(|root| path.is_within(&root.path) || root.path.is_within(&path))
                {
                    warnings.push(*no_root(layer, written, name));
                }
                let origin = layer.source.origin(written.at);
                safe.entry(name.value.clone())
                    .or_default()
                    .push(SafePath { path, origin });
            }
        }
    }
    Ok(safe)
}

/// The path without `..`; what a link on the way leads to is to be written, for a command may put another in its place.
fn without_links(path: &Path) -> Result<AbsPath, String> {
    let walked = paths::walk(path).map_err(|error| error.to_string())?;
    match walked.links.first() {
        None => Ok(walked.path),
        Some(link) => Err(format!("{link} is a link; write {}", walked.path)),
    }
}

fn no_root(layer: &Layer, written: &At<String>, tool: &At<String>) -> Box<Diagnostic> {
    let text = written.value.trim_end_matches('/');
    let name = text.rsplit('/').next().unwrap_or_default();
    Diagnostic::warning(format!(
        "`{}` is in no writable root, so `{}` cannot write there",
        written.value, tool.value
    ))
    .at(layer.source.span(written.at), "it says only that nobody is asked")
    .hint(format!(
        "write `sandbox: {{paths: {{{name}: {{root: {text}, mode: rw}}}}}}` to make it writable"
    ))
}

/// Refuses keys of one tool in the entry of another.
pub(super) fn misplaced(layer: &Layer, name: &At<String>, raw: &RawTool) -> Result<(), Box<Diagnostic>> {
    let is_shell = name.value == SHELL;
    let writes = WRITERS.contains(&name.value.as_str());
    let wrong = [
        ("safe_commands", raw.safe_commands.is_some() && !is_shell, "`shell`"),
        (
            "dangerous_patterns",
            raw.dangerous_patterns.is_some() && !is_shell,
            "`shell`",
        ),
        (
            "safe_paths",
            raw.safe_paths.is_some() && !writes,
            "tools that change files",
        ),
    ];
    match wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
        Some((key, _, tools)) => Err(Diagnostic::error(format!("`{key}` says nothing for `{}`", name.value))
            .at(layer.source.span(name.at), format!("it is a key of {tools}"))),
        None => Ok(()),
    }
}

/// The channels of `approval.channel`; all of them by default.
pub(super) fn channels(layers: &Layers) -> Result<Channels, Box<Diagnostic>> {
    let Some((layer, found)) = layers.first(|raw| raw.approval.as_ref()?.channel.as_ref()) else {
        return Ok(Channels::default());
    };
    let mut named: Vec<(Channel, Position)> = Vec::new();
    for entry in &found.value {
        let channel = match entry.value {
            RawChannel::Terminal => Channel::Terminal,
            RawChannel::Socket => Channel::Socket,
            RawChannel::Program => Channel::Program,
            RawChannel::Elicitation => Channel::Elicitation,
        };
        if let Some((_, before)) = named.iter().find(|(other, _)| *other == channel) {
            return Err(Diagnostic::error(format!("`{channel}` is named twice"))
                .at(layer.source.span(entry.at), "here")
                .and(layer.source.span(*before), "and here")
                .hint("each is tried once"));
        }
        named.push((channel, entry.at));
    }
    Ok(Channels::only(named.into_iter().map(|(channel, _)| channel).collect()))
}
