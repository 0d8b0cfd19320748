//! The short forms under `approval:`, and their contradictions.

use std::collections::BTreeSet;

use super::error::Diagnostic;
use super::keywords::RawChannel;
use super::layers::{Layer, Layers, Role};
use super::pattern;
use super::roots::Draft;
use super::scalar::{At, Position, RawDemand};
use super::values;
use crate::policy::{Channel, Channels, Demand, Rights, ShellRule};

/// The rules for `safe_commands` and `dangerous_patterns` of a file, with their positions. `written` are the full rules of
/// the file.
pub(super) fn rules(
    layer: &Layer,
    written: &[(ShellRule, Position)],
) -> Result<Vec<(ShellRule, Position)>, Box<Diagnostic>> {
    let mut rules: Vec<(ShellRule, Position)> = Vec::new();
    let Some(approval) = &layer.raw.approval else {
        return Ok(rules);
    };
    let safe = approval
        .safe_commands
        .iter()
        .flatten()
        .map(|entry| (entry, Demand::None));
    let dangerous = approval
        .dangerous_patterns
        .iter()
        .flatten()
        .map(|entry| (entry, Demand::Deny));
    for (entry, demand) in safe.chain(dangerous) {
        let origin = layer.source.origin(entry.at);
        let rule = ShellRule::plain(pattern::parse(layer, entry)?, demand, origin);
        // A rule with `sandbox_paths` is no contradiction.
        let alike = |other: &&(ShellRule, Position)| {
            other.0.pattern == rule.pattern && other.0.sandbox_paths.is_none() && other.0.approval != demand
        };
        if let Some((_, at)) = written.iter().chain(&rules).find(alike) {
            return Err(contradicts(layer, entry, demand, *at));
        }
        rules.push((rule, entry.at));
    }
    Ok(rules)
}

fn contradicts(layer: &Layer, entry: &At<String>, demand: Demand, other: Position) -> Box<Diagnostic> {
    let class = if demand == Demand::Deny { "dangerous" } else { "safe" };
    Diagnostic::error(format!(
        "`{}` cannot be {class}: another line says otherwise",
        entry.value
    ))
    .at(layer.source.span(entry.at), format!("says that it is {class}"))
    .and(layer.source.span(other), "says otherwise of the same command")
    .hint("keep one of them")
}

/// The names under `safe_paths`: roots that are written without a question.
pub(super) fn safe_paths<'a>(layers: &'a Layers, drafts: &[Draft<'_>]) -> Result<BTreeSet<&'a str>, Box<Diagnostic>> {
    let mut safe = BTreeSet::new();
    if layers.role == Role::Ceiling {
        return Ok(safe);
    }
    for layer in &layers.stack {
        let named = layer.raw.approval.iter().flat_map(|a| a.safe_paths.iter().flatten());
        for entry in named {
            match drafts.iter().find(|draft| draft.name.value == entry.value) {
                Some(draft) => check(layer, entry, draft)?,
                None if is_omitted(layers, &entry.value) => {}
                None => {
                    let known = drafts.iter().map(|draft| draft.name.value.as_str());
                    return Err(values::unknown_root(&layer.source, entry, known));
                }
            }
            safe.insert(entry.value.as_str());
        }
    }
    Ok(safe)
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

/// Whether a root of this name is optional and missing.
fn is_omitted(layers: &Layers, name: &str) -> bool {
    let sandboxes = layers.stack.iter().filter_map(|layer| layer.raw.sandbox.as_ref());
    let mut roots = sandboxes.flat_map(|sandbox| sandbox.paths.iter().flat_map(|paths| &paths.0));
    roots.any(|(root, _)| root.value == name)
}

fn check(layer: &Layer, entry: &At<String>, draft: &Draft<'_>) -> Result<(), Box<Diagnostic>> {
    let of_root = |at| draft.layer.source.span(at);
    if !draft.rights.contains(Rights::WRITE) {
        return Err(
            Diagnostic::error(format!("`{}` cannot be safe to write: it is read-only", entry.value))
                .at(layer.source.span(entry.at), "says that writing it needs no yes")
                .and(of_root(draft.name.at), "grants no writing")
                .hint("drop it here, or give the root `mode: rw`"),
        );
    }
    let long = draft.raw.approval.as_ref().and_then(|a| a.value.write.as_ref());
    let long =
        long.map(|demand: &At<RawDemand>| values::demand(&draft.layer.source, demand).map(|value| (value, demand.at)));
    let short = draft.raw.write_approval.as_ref();
    let short = short.map(|short| (if short.value { Demand::Required } else { Demand::None }, short.at));
    match long.transpose()?.or(short) {
        Some((Demand::Required | Demand::OncePerSession | Demand::Deny, at)) => Err(Diagnostic::error(format!(
            "`{}` cannot be safe to write: its root says otherwise",
            entry.value
        ))
        .at(layer.source.span(entry.at), "says that writing it needs no yes")
        .and(of_root(at), "says that it needs one")
        .hint("keep one of them")),
        Some((Demand::None, _)) | None => Ok(()),
    }
}
