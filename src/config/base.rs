//! `sandbox.base` → base paths: what commands get besides the roots.
//!
//! Missing paths are skipped: a preset lists what it may find on any machine. Symlinks are
//! resolved, and paths below an entry with the same rights are dropped.

use super::context::Context;
use super::error::Diagnostic;
use super::layers::{Layer, Layers};
use super::path_cache::PathCache;
use super::paths::{self, Variables};
use super::scalar::At;
use super::toolchains;
use crate::policy::{AbsPath, BasePath, Grant, Rights, Scope};

/// What every entry is resolved with.
struct Resolver<'a> {
    layers: &'a Layers,
    writable: &'a [AbsPath],
    context: &'a Context,
    cache: &'a PathCache,
}

/// Resolves the base paths of all layers, sorted by path. One that goes through a link in a `writable` root is left out.
pub(crate) fn resolve(
    layers: &Layers,
    writable: &[AbsPath],
    context: &Context,
    cache: &PathCache,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Vec<BasePath>, Box<Diagnostic>> {
    let resolver = Resolver {
        layers,
        writable,
        context,
        cache,
    };
    let mut found: Vec<BasePath> = Vec::new();
    for layer in &layers.stack {
        let Some(base) = layer.raw.sandbox.as_ref().and_then(|s| s.base.as_ref()) else {
            continue;
        };
        let lists = [
            (&base.read, Rights::READ, Scope::Tree),
            (&base.read_execute, Rights::READ | Rights::EXECUTE, Scope::Tree),
            (&base.read_write, Rights::READ | Rights::WRITE, Scope::Tree),
            (&base.list, Rights::READ, Scope::Names),
        ];
        for (entries, rights, scope) in lists {
            for entry in entries.iter().flatten() {
                if let Some(path) = base_path(layer, entry, rights, scope, &resolver, warnings)? {
                    add(&mut found, path);
                }
            }
        }
    }
    let trees = found.clone();
    let held = |a: &BasePath, b: &BasePath| {
        b.grant.scope == Scope::Tree && a.grant.path.is_below(&b.grant.path) && b.grant.rights.contains(a.grant.rights)
    };
    found.retain(|path| !trees.iter().any(|tree| held(path, tree)));
    found.sort_by(|a, b| a.grant.path.cmp(&b.grant.path));
    Ok(found)
}

/// Adds a path, or the rights to one that is listed already.
fn add(found: &mut Vec<BasePath>, new: BasePath) {
    let same = |old: &&mut BasePath| old.grant.path == new.grant.path && old.grant.scope == new.grant.scope;
    match found.iter_mut().find(same) {
        Some(old) => old.grant.rights = old.grant.rights | new.grant.rights,
        None => found.push(new),
    }
}

fn base_path(
    layer: &Layer,
    entry: &At<String>,
    rights: Rights,
    scope: Scope,
    resolver: &Resolver<'_>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Option<BasePath>, Box<Diagnostic>> {
    let text = entry.value.as_str();
    let wrong = |why: String| {
        Diagnostic::error(format!("base path `{text}`: {why}")).at(layer.source.span(entry.at), "not a base path")
    };
    let variables = if layer.source.is_preset() {
        Variables::Expand
    } else {
        Variables::Refuse
    };
    if !text.starts_with(['/', '~', '$']) || paths::below_start(text).is_some() {
        return Err(
            wrong("not an absolute path".into()).hint("a relative place is a root: name it under `sandbox.paths`")
        );
    }
    let expanded =
        paths::expand(text, &AbsPath::root(), variables, resolver.context).map_err(|error| wrong(error.to_string()))?;
    let Some(path) = expanded else {
        return Ok(None);
    };
    // What cannot be resolved is not granted.
    let Ok(walked) = resolver.cache.walk(&path) else {
        return Ok(None);
    };
    let (Some(metadata), Some(identity)) = (&walked.found, walked.identity()) else {
        return Ok(None);
    };
    let beside = |link: &&AbsPath| resolver.layers.lies_beside(layer, link);
    if let Some(link) = walked.links.iter().find(beside).filter(|_| !layer.source.is_preset()) {
        return Err(wrong(format!("goes through the symlink {link}")).hint(
            "the link lies beside this config, where whoever writes the project could re-point it: write the path it \
             leads to",
        ));
    }
    // A base path has no approval and no protected names, so files of a person must be in a root.
    if rights.contains(Rights::WRITE) && (metadata.is_dir() || metadata.is_file()) {
        return Err(wrong("only a device can be a writable base path".into())
            .hint("a writable file or directory is a root: name it under `sandbox.paths`"));
    }
    let held = |link: &&AbsPath| resolver.writable.iter().any(|root| link.is_within(root));
    if let Some(link) = walked.links.iter().find(held) {
        let message = format!("base path `{text}` is left out: the symlink {link} lies inside a writable root");
        warnings.push(*Diagnostic::warning(message).at(layer.source.span(entry.at), "the agent could re-point it"));
        return Ok(None);
    }
    if let Some(why) = text
        .strip_prefix('$')
        .and_then(|text| variable_objection(text, &walked.path, resolver))
    {
        let name = text.split('/').next().unwrap_or(text);
        let warning = Diagnostic::warning(format!("`{name}` is not followed: {why}"));
        if !warnings.iter().any(|earlier| earlier.message == warning.message) {
            warnings.push(*warning.at(layer.source.span(entry.at), "grants nothing"));
        }
        return Ok(None);
    }
    let scope = match (metadata.is_dir(), scope) {
        (true, scope) => scope,
        (false, Scope::Names) => return Ok(None),
        (false, Scope::File | Scope::Tree) => Scope::File,
    };
    Ok(Some(BasePath {
        grant: Grant {
            scope,
            ..Grant::tree(walked.path, rights, layer.source.origin(entry.at))
        },
        identity,
    }))
}

/// Why an entry `NAME/rest` that resolves to `path` is not granted: a variable must not widen a preset.
fn variable_objection(text: &str, path: &AbsPath, resolver: &Resolver<'_>) -> Option<String> {
    let Resolver { context, cache, .. } = *resolver;
    let (name, _) = text.split_once('/').unwrap_or((text, ""));
    let start = context.path_variable(name)?;
    toolchains::objection(name, &start, context, cache).or_else(|| toolchains::conflict(path, context, cache))
}
