//! The keys that are valid in a ceiling; any other is an error.

use super::error::Diagnostic;
use super::layers::{Layer, Layers};
use super::paths;
use super::raw::{RawConfig, RawRoot};
use super::scalar::{At, Position};

/// Refuses keys without a meaning in a ceiling. In presets that it extends, keys about approval are ignored.
pub(crate) fn check(layers: &Layers) -> Result<(), Box<Diagnostic>> {
    for layer in &layers.stack {
        for (name, root) in roots(&layer.raw) {
            check_root(layer, name, root)?;
        }
    }
    match layers.stack.first() {
        Some(layer) => check_own(layer),
        None => Ok(()),
    }
}

fn roots(raw: &RawConfig) -> impl Iterator<Item = &(At<String>, RawRoot)> {
    let paths = raw.sandbox.as_ref().and_then(|sandbox| sandbox.paths.as_ref());
    paths.into_iter().flat_map(|paths| &paths.0)
}

fn check_root(layer: &Layer, name: &At<String>, root: &RawRoot) -> Result<(), Box<Diagnostic>> {
    let text = root.root.value.as_str();
    if layer.source.is_preset() && (!text.starts_with(['/', '~', '$']) || paths::below_start(text).is_some()) {
        return Err(Diagnostic::error(format!(
            "a ceiling has no workspace: {} grants `{text}`",
            layer.source.name
        ))
        .at(layer.source.span(root.root.at), "the directory a command is started in")
        .hint(
            "extend `system` and the toolchain presets instead, and name under `sandbox.paths` where work may be done",
        ));
    }
    match &root.create {
        Some(create) if create.value && !layer.source.is_preset() => Err(meaningless(
            layer,
            create.at,
            "a ceiling makes no directory",
            format!(
                "remove `create`: while root `{}` is missing, nothing is given there",
                name.value
            ),
        )),
        Some(_) | None => match &root.optional {
            Some(optional) if !optional.value => Err(meaningless(
                layer,
                optional.at,
                "a ceiling asks for no directory",
                "remove `optional`: where a root of a ceiling is missing, nothing is given".to_owned(),
            )),
            Some(_) | None => Ok(()),
        },
    }
}

fn check_own(layer: &Layer) -> Result<(), Box<Diagnostic>> {
    let raw = &layer.raw;
    let sandbox = raw.sandbox.as_ref();
    let shell = raw.shell.as_ref();
    let rules = "commands are judged by the config; a ceiling says what any command reaches at most";
    let found: [(&str, Option<Position>, &str); 7] = [
        (
            "sandbox.backend",
            sandbox.and_then(|s| s.backend.as_ref()).map(|found| found.at),
            "a backend takes nothing away; `residuals: refuse` refuses what a weak one leaves open",
        ),
        (
            "sandbox.os_profile",
            sandbox.and_then(|s| s.os_profile.as_ref()).map(|found| found.at),
            "a ceiling stands under no other: `--ceiling` may be given more than once",
        ),
        (
            "shell.explain",
            shell.and_then(|s| s.explain.as_ref()).map(|found| found.at),
            "an explanation takes nothing away",
        ),
        (
            "shell.default",
            shell.and_then(|s| s.default.as_ref()).map(|found| found.at),
            rules,
        ),
        (
            "shell.rules",
            shell
                .and_then(|s| s.rules.as_ref())
                .and_then(|rules| rules.first())
                .map(|rule| rule.at),
            rules,
        ),
        (
            "tools",
            raw.tools
                .as_ref()
                .and_then(|tools| tools.0.first())
                .map(|(name, _)| name.at),
            "an override belongs to a config; `approval: {mode: …}` bounds the mode of every call",
        ),
        (
            "custom_tools",
            raw.custom_tools
                .as_ref()
                .and_then(|tools| tools.0.first())
                .map(|(name, _)| name.at),
            "tools belong to a config; a ceiling says what any of them reaches at most",
        ),
    ];
    for (key, at, hint) in found {
        if let Some(at) = at {
            return Err(meaningless(
                layer,
                at,
                &format!("`{key}` says nothing in a ceiling"),
                hint.to_owned(),
            ));
        }
    }
    Ok(())
}

fn meaningless(layer: &Layer, at: Position, what: &str, hint: String) -> Box<Diagnostic> {
    Diagnostic::error(what)
        .at(layer.source.span(at), "would be ignored, so it is refused")
        .hint(hint)
}
