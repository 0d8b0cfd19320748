//! Warnings about valid lines that may not mean what their writer thinks.

use std::collections::BTreeMap;

use super::custom_tool::CustomTool;
use super::error::Diagnostic;
use super::keywords::RawProtectWord;
use super::layers::{Layers, sandbox};
use super::scalar::RawProtect;
use crate::policy::{
    AbsPath, Demand, DemandSource, HostAccess, Network, Origin, Policy, Rights, Root, ShellRule, ToolRule,
};

/// Tools that write; a root's write demand is theirs.
pub(super) const WRITERS: &[&str] = &[
    "write_file",
    "edit_file",
    "patch_file",
    "delete_file",
    "move_file",
    "make_directory",
];
/// Tools that read.
const READERS: &[&str] = &["read_file", "list_files", "search_files"];

/// The tool that runs commands.
pub(crate) const SHELL: &str = "shell";

/// A warning for each override that switches off what a rule demands, or does not answer what a root demands.
pub(crate) fn switched_off(
    layers: &Layers,
    tools: &BTreeMap<String, ToolRule>,
    roots: &[Root],
    rules: &[&ShellRule],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (name, rule) in tools.iter().filter(|(_, rule)| rule.approval == Demand::None) {
        // What a root demands by default, the entry answers.
        let writes = |r: &&Root| {
            WRITERS.contains(&name.as_str())
                && r.rights.contains(Rights::WRITE)
                && (r.read_approval > Demand::None
                    || r.write_approval > Demand::None && r.write_demand_source == DemandSource::Config)
        };
        let reads = |r: &&Root| READERS.contains(&name.as_str()) && r.read_approval > Demand::None;
        for root in roots.iter().filter(|root| writes(root) || reads(root)) {
            let message = format!(
                "`tools: {name}` ({}) does not answer what root `{}` ({}) demands: it names no root",
                rule.origin, root.name, root.origin
            );
            found.push(*marked(
                layers,
                message,
                (&rule.origin, "asks nobody"),
                (&root.origin, "demands approval, and is asked about"),
            ));
        }
        let asks = |r: &&&ShellRule| name == SHELL && matches!(r.approval, Demand::Required | Demand::OncePerSession);
        for asking in rules.iter().filter(asks) {
            let what = if asking.pattern.is_empty() {
                "`shell.default`".to_owned()
            } else {
                format!("rule `{}`", asking.pattern.join(" "))
            };
            found.push(*overridden(layers, name, rule, &what, &asking.origin));
        }
    }
    found
}

/// A warning for each override that makes `ask: true` of a network void: a command that needs no approval never asks about
/// hosts.
pub(crate) fn never_asking(layers: &Layers, policy: &Policy, custom: &[CustomTool]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (name, rule) in policy.tools.iter().filter(|(_, rule)| rule.approval == Demand::None) {
        let own = policy.tool_networks.get(name).map(|own| &own.network);
        let of_rules = policy.rules.iter().filter_map(|rule| rule.network.as_ref());
        let networks: Vec<&Network> = if name == SHELL {
            std::iter::once(&policy.network)
                .chain(of_rules.map(|own| &own.network))
                .collect()
        } else if custom.iter().any(|tool| tool.name == *name) {
            vec![own.unwrap_or(&policy.network)]
        } else {
            Vec::new()
        };
        for origin in networks.into_iter().filter_map(asking) {
            let warning = overridden(layers, name, rule, "`ask: true`", origin);
            found.push(*warning.hint("what nobody is asked about reaches what `allow` lists, and no more"));
        }
    }
    found
}

/// The line of a list that asks about hosts, if it does.
fn asking(network: &Network) -> Option<&Origin> {
    match network {
        Network::Hosts(list) => list.only(HostAccess::Asked).next().map(|rule| &rule.origin),
        Network::Off | Network::Full => None,
    }
}

fn overridden(layers: &Layers, tool: &str, rule: &ToolRule, what: &str, origin: &Origin) -> Box<Diagnostic> {
    let message = format!(
        "`tools: {tool}` ({}) switches off what {what} ({origin}) demands",
        rule.origin
    );
    marked(
        layers,
        message,
        (&rule.origin, "asks nobody"),
        (origin, "demands approval"),
    )
}

/// A warning about two lines.
fn marked(
    layers: &Layers,
    message: String,
    first: (&Origin, &'static str),
    second: (&Origin, &'static str),
) -> Box<Diagnostic> {
    let mut warning = Diagnostic::warning(message);
    for (origin, label) in [first, second] {
        warning = match (layers.span_of(origin), &warning.mark) {
            (Some(span), None) => warning.at(span, label),
            (Some(span), Some(_)) => warning.and(span, label),
            (None, _) => warning,
        };
    }
    warning
}

/// A warning if the agent may write its own config, which the next start would use.
pub(crate) fn unprotected_config(layers: &Layers, writable: &[AbsPath]) -> Option<Diagnostic> {
    let (layer, found) = sandbox(layers, |s| &s.protect)?;
    let mut files = layers.config_files.iter();
    let config = files.find(|file| writable.iter().any(|root| file.is_within(root)))?;
    matches!(found.value, RawProtect::Keyword(RawProtectWord::None)).then(|| {
        *Diagnostic::warning(format!("`protect: none` leaves {config} to the agent"))
            .at(layer.source.span(found.at), "the next start would obey what it wrote")
    })
}
