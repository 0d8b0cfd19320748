//! `tools:` and `custom_tools:`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::custom_tool::{ArgKind, CustomArg, CustomTool};
use super::error::{Diagnostic, nearest};
use super::hosts;
use super::keywords::RawArgKind;
use super::layers::{Layer, Layers};
use super::raw::{RawArg, RawCustomTool, RawTool};
use super::scalar::At;
use super::short_forms;
use super::values;
use crate::policy::{Demand, OwnNetwork, ToolRule};

/// The tools every config can speak of.
pub const TOOL_NAMES: &[&str] = &[
    "read_file",
    "write_file",
    "edit_file",
    "patch_file",
    "list_files",
    "search_files",
    "delete_file",
    "move_file",
    "make_directory",
    "shell",
];

/// The overrides, the file's own winning.
pub(crate) fn overrides(
    layers: &Layers,
    custom: &[CustomTool],
    warnings: &mut Vec<Diagnostic>,
) -> Result<BTreeMap<String, ToolRule>, Box<Diagnostic>> {
    let functions = functions(layers)?;
    let known = || {
        let custom = custom.iter().map(|tool| tool.name.as_str());
        let functions = functions.keys().map(String::as_str);
        TOOL_NAMES.iter().copied().chain(custom).chain(functions)
    };
    let names: HashSet<&str> = known().collect();
    let mut tools = BTreeMap::new();
    for layer in &layers.stack {
        for (name, raw) in layer.raw.tools.iter().flat_map(|tools| &tools.0) {
            if !names.contains(name.value.as_str()) {
                warnings.push(*unknown(layer, name, known())?);
            }
            short_forms::misplaced(layer, name, raw)?;
            let Some(approval) = override_demand(layer, name, raw)? else {
                continue;
            };
            let origin = layer.source.origin(name.at);
            tools.entry(name.value.clone()).or_insert(ToolRule { approval, origin });
        }
    }
    for (name, rule) in functions {
        if let Some(rule) = rule {
            tools.entry(name).or_insert(rule);
        }
    }
    Ok(tools)
}

/// A warning for a tool that only the program that embeds Stockade may know; an error where the name looks like a known one
/// written wrong, because its entry would count for nothing.
fn unknown<'a>(
    layer: &Layer,
    name: &At<String>,
    known: impl Iterator<Item = &'a str>,
) -> Result<Box<Diagnostic>, Box<Diagnostic>> {
    let span = layer.source.span(name.at);
    if let Some(meant) = nearest(&name.value, &known.collect::<Vec<_>>()) {
        return Err(Diagnostic::error(format!("unknown tool `{}`", name.value))
            .at(span, format!("did you mean `{meant}`?"))
            .hint(format!(
                "a tool of your own program of that name is written `custom_tools: {{{}: {{}}}}`",
                name.value
            )));
    }
    Ok(
        Diagnostic::warning(format!("no tool of Stockade is called `{}`", name.value))
            .at(
                span,
                "it counts for a function of the program that embeds Stockade, or a tool of an MCP server behind it",
            )
            .hint(format!("`custom_tools: {{{}: {{}}}}` says that it is one", name.value)),
    )
}

/// The functions of the program that embeds Stockade, custom tools without a command, with what their entries demand.
fn functions(layers: &Layers) -> Result<BTreeMap<String, Option<ToolRule>>, Box<Diagnostic>> {
    let mut functions = BTreeMap::new();
    for layer in &layers.stack {
        let entries = layer.raw.custom_tools.iter().flat_map(|tools| &tools.0);
        for (name, raw) in entries.filter(|(_, raw)| raw.command.is_none()) {
            // Servers may have dots in the names of their tools.
            if !is_free(&name.value.replace('.', "_")) {
                return Err(Diagnostic::error(format!("`{}` cannot name a function", name.value))
                    .at(layer.source.span(name.at), "taken, or not a name")
                    .hint(FUNCTION_NAMING));
            }
            let only_for_commands = [
                raw.args.as_ref().map(|_| "args"),
                raw.sandbox_paths.as_ref().map(|_| "sandbox_paths"),
                raw.network.as_ref().map(|_| "network"),
            ];
            if let Some(key) = only_for_commands.into_iter().flatten().next() {
                return Err(
                    Diagnostic::error(format!("`{}` has `{key}` and no `command`", name.value))
                        .at(
                            layer.source.span(name.at),
                            "without a command it is a function of your program, which nothing confines",
                        )
                        .hint("write `command: [PROGRAM, ARGUMENT, …]`, or drop the key"),
                );
            }
            let rule = raw.approval.as_ref().map(|demand| {
                Ok(ToolRule {
                    approval: values::demand(&layer.source, demand)?,
                    origin: layer.source.origin(name.at),
                })
            });
            let rule: Option<Result<ToolRule, Box<Diagnostic>>> = rule;
            functions.entry(name.value.clone()).or_insert(rule.transpose()?);
        }
    }
    Ok(functions)
}

/// What a tool that is none of Stockade's may be called.
const NAMING: &str = "use up to 64 letters, digits, `_` and `-`, and no built-in tool's name";

const FUNCTION_NAMING: &str = "use up to 64 letters, digits, `_`, `-` and `.`, and no built-in tool's name";

fn is_free(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !TOOL_NAMES.contains(&name) && !name.is_empty() && name.len() <= 64 && name.chars().all(good)
}

/// What an entry demands; `None` where it says nothing of approval.
fn override_demand(layer: &Layer, name: &At<String>, raw: &RawTool) -> Result<Option<Demand>, Box<Diagnostic>> {
    let span = |at| layer.source.span(at);
    match (&raw.approval, &raw.pre_approved) {
        (Some(long), Some(short)) => Err(
            Diagnostic::error(format!("the approval of `{}` is given twice", name.value))
                .at(span(short.at), "`pre_approved`")
                .and(span(long.at), "`approval`")
                .hint("keep one of them"),
        ),
        (Some(long), None) => values::demand(&layer.source, long).map(Some),
        (None, Some(short)) => Ok(Some(if short.value { Demand::None } else { Demand::Required })),
        (None, None) => Ok(None),
    }
}

/// The custom tools of all layers.
pub(crate) fn custom(layers: &Layers, roots: &[&str]) -> Result<Vec<CustomTool>, Box<Diagnostic>> {
    let mut tools: Vec<CustomTool> = Vec::new();
    let mut names: HashSet<&str> = HashSet::new();
    for layer in &layers.stack {
        for (name, raw) in layer.raw.custom_tools.iter().flat_map(|tools| &tools.0) {
            if names.insert(&name.value)
                && let Some(command) = &raw.command
            {
                tools.push(custom_tool(layer, name, raw, command, roots)?);
            }
        }
    }
    Ok(tools)
}

/// The networks of those custom tools that have their own.
pub(crate) fn networks(layers: &Layers) -> Result<BTreeMap<String, OwnNetwork>, Box<Diagnostic>> {
    let mut networks = BTreeMap::new();
    let mut names = BTreeSet::new();
    for layer in &layers.stack {
        for (name, raw) in layer.raw.custom_tools.iter().flat_map(|tools| &tools.0) {
            // The first layer that names a tool says all of it.
            if let (true, Some(network)) = (names.insert(&name.value), &raw.network) {
                networks.insert(name.value.clone(), hosts::own(layer, network)?);
            }
        }
    }
    Ok(networks)
}

fn custom_tool(
    layer: &Layer,
    name: &At<String>,
    raw: &RawCustomTool,
    command: &[At<String>],
    roots: &[&str],
) -> Result<CustomTool, Box<Diagnostic>> {
    let span = |at| layer.source.span(at);
    if !is_free(&name.value) {
        return Err(Diagnostic::error(format!("`{}` cannot name a custom tool", name.value))
            .at(span(name.at), "taken, or not a name")
            .hint(NAMING));
    }
    let pairs: Vec<&(At<String>, At<RawArg>)> = raw.args.iter().flat_map(|args| &args.0).collect();
    let names: Vec<&str> = pairs.iter().map(|(arg, _)| arg.value.as_str()).collect();
    let args = pairs.iter().map(|(name, raw)| {
        Ok(CustomArg {
            name: name.value.clone(),
            kind: arg_kind(layer, name, raw, roots)?,
            description: raw.value.description.clone(),
        })
    });
    let args = args.collect::<Result<Vec<_>, Box<Diagnostic>>>()?;
    let mut used = Vec::new();
    for (index, argument) in command.iter().enumerate() {
        for placeholder in placeholders(&argument.value) {
            if index == 0 {
                return Err(Diagnostic::error("the program of a custom tool is fixed")
                    .at(span(argument.at), "an argument would choose what runs"));
            }
            if !names.contains(&placeholder) {
                let unknown = Diagnostic::error(format!("`{{{placeholder}}}` names no argument"))
                    .at(span(argument.at), "no such argument");
                return Err(unknown.did_you_mean(placeholder, names.iter().copied()));
            }
            used.push(placeholder);
        }
    }
    if command.first().is_none_or(|program| program.value.is_empty()) {
        return Err(
            Diagnostic::error(format!("custom tool `{}` has no command", name.value))
                .at(span(name.at), "`command` is empty"),
        );
    }
    if let Some((unused, _)) = pairs.iter().find(|(arg, _)| !used.contains(&arg.value.as_str())) {
        return Err(Diagnostic::error(format!("argument `{}` is not used", unused.value))
            .at(span(unused.at), "not in the command")
            .hint(format!("write `{{{}}}` where it goes", unused.value)));
    }
    let Some(description) = raw.description.clone() else {
        return Err(
            Diagnostic::error(format!("custom tool `{}` has no `description`", name.value))
                .at(span(name.at), "the agent is told what it does")
                .hint("write `description: What it does`"),
        );
    };
    Ok(CustomTool {
        name: name.value.clone(),
        description,
        command: command.iter().map(|argument| argument.value.clone()).collect(),
        args,
        approval: match &raw.approval {
            Some(demand) => values::demand(&layer.source, demand)?,
            None => Demand::Required,
        },
        sandbox_paths: sandbox_paths(layer, raw, roots)?,
        origin: layer.source.origin(name.at),
    })
}

fn sandbox_paths(layer: &Layer, raw: &RawCustomTool, roots: &[&str]) -> Result<Option<Vec<String>>, Box<Diagnostic>> {
    let Some(names) = &raw.sandbox_paths else {
        return Ok(None);
    };
    for name in names {
        if !roots.contains(&name.value.as_str()) {
            return Err(values::unknown_root(&layer.source, name, roots.iter().copied()));
        }
    }
    Ok(Some(names.iter().map(|name| name.value.clone()).collect()))
}

/// What stands between `{` and `}` in a word of the command.
fn placeholders(argument: &str) -> impl Iterator<Item = &str> {
    argument
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

fn arg_kind(layer: &Layer, name: &At<String>, raw: &At<RawArg>, roots: &[&str]) -> Result<ArgKind, Box<Diagnostic>> {
    let span = |at| layer.source.span(at);
    let only_for = |at, key: &str, kind: &str| {
        Err(Diagnostic::error(format!("`{key}` is for arguments of type {kind}"))
            .at(span(at), format!("`{}` is of another type", name.value)))
    };
    let arg = &raw.value;
    match (arg.kind.value, &arg.root, &arg.choices) {
        (RawArgKind::Path, Some(root), None) if !roots.contains(&root.value.as_str()) => {
            Err(values::unknown_root(&layer.source, root, roots.iter().copied()))
        }
        (RawArgKind::Path, root, None) => Ok(ArgKind::Path(root.as_ref().map(|r| r.value.clone()))),
        (_, Some(root), _) => only_for(root.at, "root", "path"),
        (RawArgKind::Choice, None, Some(choices)) if !choices.is_empty() => {
            Ok(ArgKind::Choice(choices.iter().map(|c| c.value.clone()).collect()))
        }
        (RawArgKind::Choice, None, _) => Err(Diagnostic::error("a choice needs `choices`")
            .at(span(arg.kind.at), format!("nothing to choose for `{}`", name.value))),
        (_, None, Some(_)) => only_for(arg.kind.at, "choices", "choice"),
        (RawArgKind::String, None, None) => Ok(ArgKind::Text),
        (RawArgKind::Integer, None, None) => Ok(ArgKind::Integer),
        (RawArgKind::Boolean, None, None) => Ok(ArgKind::Boolean),
    }
}
