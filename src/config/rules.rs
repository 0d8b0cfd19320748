//! `shell.rules` and `shell.default`.

use super::error::Diagnostic;
use super::examples;
use super::hosts;
use super::layers::{Layer, Layers};
use super::pattern;
use super::raw::RawRule;
use super::scalar::At;
use super::short_forms;
use super::values;
use crate::policy::{Demand, Origin, ShellRule};

/// The rules, the file's own first; in each file full rules come before short forms.
pub(crate) fn rules(layers: &Layers, roots: &[&str]) -> Result<Vec<ShellRule>, Box<Diagnostic>> {
    let mut rules = Vec::new();
    for layer in &layers.stack {
        let mut own = Vec::new();
        let written = layer.raw.shell.iter().flat_map(|shell| shell.rules.iter().flatten());
        for raw in written {
            let rule = rule(layer, raw, roots)?;
            examples::check(&layer.source, &raw.value, &rule)?;
            own.push((rule, raw.value.pattern.at));
        }
        own.extend(short_forms::rules(layer, &own)?);
        rules.extend(own.into_iter().map(|(rule, _)| rule));
    }
    Ok(rules)
}

fn rule(layer: &Layer, at: &At<RawRule>, roots: &[&str]) -> Result<ShellRule, Box<Diagnostic>> {
    let (source, raw) = (&layer.source, &at.value);
    let allowed = raw.allowed.as_ref().is_none_or(|a| a.value);
    let approval = match (&raw.approval, allowed) {
        (Some(demand), false) => {
            return Err(Diagnostic::error("a rule that blocks has nothing to approve")
                .at(source.span(demand.at), "no answer changes `allowed: false`")
                .hint("drop one of the two"));
        }
        (Some(demand), true) => match values::demand(source, demand)? {
            Demand::Deny => {
                return Err(
                    Diagnostic::error("a rule blocks with `allowed: false`, not by approval")
                        .at(source.span(demand.at), "not for rules"),
                );
            }
            other => other,
        },
        (None, true) => Demand::Required,
        (None, false) => Demand::Deny,
    };
    if let (Some(network), false) = (&raw.network, allowed) {
        return Err(Diagnostic::error("a rule that blocks gives no network")
            .at(source.span(network.at), "nothing runs that could reach it")
            .hint("drop one of the two"));
    }
    for root in raw.sandbox_paths.iter().flatten() {
        if !roots.contains(&root.value.as_str()) {
            return Err(values::unknown_root(source, root, roots.iter().copied()));
        }
    }
    let texts = |list: &Option<Vec<At<String>>>| list.iter().flatten().map(|t| t.value.clone()).collect();
    Ok(ShellRule {
        pattern: pattern::parse(layer, &raw.pattern)?,
        allowed,
        approval,
        sandbox_paths: raw
            .sandbox_paths
            .as_ref()
            .map(|list| list.iter().map(|t| t.value.clone()).collect()),
        network: raw
            .network
            .as_ref()
            .map(|network| hosts::own(layer, network))
            .transpose()?,
        description: raw.description.clone(),
        reason: raw.reason.clone(),
        matches: texts(&raw.matches),
        not_matches: texts(&raw.not_matches),
        origin: source.origin(at.at),
    })
}

/// What holds where no rule matches.
pub(crate) fn default_rule(layers: &Layers) -> Result<ShellRule, Box<Diagnostic>> {
    let found = layers.first(|raw| raw.shell.as_ref()?.default.as_ref());
    let default_origin = Origin::Builtin("commands need approval unless a rule says otherwise");
    let mut rule = ShellRule::plain(Vec::new(), Demand::Required, default_origin);
    let Some((layer, raw)) = found else {
        return Ok(rule);
    };
    rule.allowed = raw.value.allowed.as_ref().is_none_or(|a| a.value);
    rule.reason.clone_from(&raw.value.reason);
    rule.origin = layer.source.origin(raw.at);
    match &raw.value.approval {
        Some(demand) => match values::demand(&layer.source, demand)? {
            Demand::Deny => {
                return Err(
                    Diagnostic::error("the default blocks with `allowed: false`, not by approval")
                        .at(layer.source.span(demand.at), "not for rules"),
                );
            }
            other => rule.approval = other,
        },
        None if !rule.allowed => rule.approval = Demand::Deny,
        None => {}
    }
    Ok(rule)
}
