//! `deny:` entries of a root.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::context::Context;
use super::error::Diagnostic;
use super::layers::Layer;
use super::path_cache::PathCache;
use super::paths::{self, Variables, Walked};
use super::scalar::At;
use crate::policy::{AbsPath, Deny, Pattern, Rights, Target};

/// A deny, and the links that were followed to resolve it.
#[derive(Debug)]
pub(crate) struct DenyDraft {
    pub(crate) deny: Deny,
    pub(crate) entry: At<String>,
    pub(crate) links: Vec<AbsPath>,
}

const SYNTAX: &str = "without a slash an entry is a `name` or a `*suffix` at any depth; with one it is a path, such as `secrets/` or `./secrets`";

/// One entry, inside `root`.
pub(crate) fn draft(
    layer: &Layer,
    (root, variables): (&AbsPath, Variables),
    entry: &At<String>,
    context: &Context,
    cache: &PathCache,
) -> Result<DenyDraft, Box<Diagnostic>> {
    let text = entry.value.as_str();
    let wrong = |message: String, label: &str| Diagnostic::error(message).at(layer.source.span(entry.at), label);
    let (target, links) = if text.contains('/') || paths::below_start(text).is_some() {
        if text.contains(['*', '?', '[']) {
            return Err(wrong(format!("`{text}` is not a deny"), "a path with a wildcard").hint(SYNTAX));
        }
        let walked =
            resolve_entry(variables, root, text, context, cache).map_err(|why| wrong(why, "cannot be denied"))?;
        if !walked.path.is_within(root) {
            let message = format!("`{text}` leads to {}, outside the root {root}", walked.path);
            return Err(wrong(message, "denies nothing here")
                .hint("a deny takes from its own root; move it to the root it is about"));
        }
        (Target::Path(walked.path), walked.links)
    } else {
        let pattern =
            pattern(text).ok_or_else(|| wrong(format!("`{text}` is not a deny"), "not a name").hint(SYNTAX))?;
        let root = root.clone();
        (Target::Pattern { root, pattern }, Vec::new())
    };
    Ok(DenyDraft {
        deny: Deny {
            target,
            rights: Rights::ALL,
            except: None,
            beyond: None,
            ends: BTreeSet::new(),
            origin: layer.source.origin(entry.at),
        },
        entry: entry.clone(),
        links,
    })
}

/// Resolves a path entry. It may be missing: a command may create it later.
fn resolve_entry(
    variables: Variables,
    root: &AbsPath,
    text: &str,
    context: &Context,
    cache: &PathCache,
) -> Result<Walked, String> {
    let describe = |error: paths::PathError| format!("`{text}`: {error}");
    let path = paths::expand(text, root, variables, context)
        .map_err(describe)?
        .ok_or_else(|| format!("`{text}` names what this user does not have"))?;
    cache.walk(&path).map_err(describe)
}

/// `name` or `*suffix`.
fn pattern(text: &str) -> Option<Pattern> {
    let plain = |part: &str| !part.is_empty() && !part.contains(['*', '?', '[', '\0']);
    if let Some(end) = text.strip_prefix('*') {
        return plain(end).then(|| Pattern::Suffix(OsString::from(end)));
    }
    let name = plain(text) && !matches!(text, "." | "..") && !text.starts_with('~');
    name.then(|| Pattern::Name(OsString::from(text)))
}
