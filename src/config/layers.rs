//! A file and the presets it extends, in the order in which they win.

use std::sync::Arc;

use super::context::Context;
use super::error::Diagnostic;
use super::presets;
use super::raw::{RawConfig, RawLimits, RawSandbox, RawShell};
use super::scalar::{At, Position};
use super::source::{Source, SourceName, Span};
use super::yaml;
use crate::policy::{AbsPath, Origin};

/// One parsed text.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) source: Arc<Source>,
    pub(crate) raw: RawConfig,
    pub(crate) place: Place,
}

/// Where the relative paths of a text start.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The directory.
    pub(crate) base: AbsPath,
    /// The same, if the text is a file that lies in it; `None` for a preset or flags.
    pub(crate) directory: Option<AbsPath>,
}

/// A link on the way to a file that is extended.
#[derive(Debug, Clone)]
pub(crate) struct FileLink {
    pub(crate) link: AbsPath,
    /// The entry that names the file.
    pub(crate) span: Span,
    /// The entry as it is written.
    pub(crate) text: String,
}

/// The role of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It grants.
    Config,
    /// It bounds what may be granted.
    Ceiling,
}

/// A file and the presets below it.
#[derive(Debug)]
pub(crate) struct Layers {
    /// The role of the file.
    pub(crate) role: Role,
    /// The file, then its presets depth-first; each preset once.
    pub(crate) stack: Vec<Layer>,
    /// The directory the config lies in; `None` for a bare preset or flags.
    pub(crate) config_dir: Option<AbsPath>,
    /// The links on the way to files that are extended, with the layer and entry that name each.
    pub(crate) file_links: Vec<FileLink>,
    /// The config's own paths, protected against the agent.
    pub(crate) config_files: Vec<AbsPath>,
    /// Writable paths that are in no layer: those of flags, or of the config above a ceiling.
    pub(crate) writable: Vec<AbsPath>,
}

impl Layers {
    /// Whether a link lies beside this layer's file or beside the config, where whoever writes the project could re-point it.
    pub(crate) fn lies_beside(&self, layer: &Layer, link: &AbsPath) -> bool {
        let mut beside = self.config_dir.iter().chain(&layer.place.directory);
        beside.any(|directory| link.is_below(directory))
    }

    /// The first value any layer gives, with the layer.
    pub(crate) fn first<'a, T>(
        &'a self,
        get: impl Fn(&'a RawConfig) -> Option<&'a At<T>>,
    ) -> Option<(&'a Layer, &'a At<T>)> {
        self.stack
            .iter()
            .find_map(|layer| get(&layer.raw).map(|found| (layer, found)))
    }

    /// Every `shell:`, the file's own first.
    pub(crate) fn shells(&self) -> impl Iterator<Item = (&Layer, &RawShell)> {
        self.stack
            .iter()
            .filter_map(|layer| layer.raw.shell.as_ref().map(|shell| (layer, shell)))
    }

    /// The span of an origin, if it is in one of the layers.
    pub(crate) fn span_of(&self, origin: &Origin) -> Option<Span> {
        let (name, line) = match origin {
            Origin::File { file, line } => (SourceName::File(Arc::clone(file)), *line),
            Origin::Preset { name, line } => (SourceName::Preset(Arc::clone(name)), *line),
            Origin::Flag(_) | Origin::Builtin(_) => return None,
        };
        let source = self
            .stack
            .iter()
            .map(|layer| &layer.source)
            .find(|source| source.name == name)?;
        Some(source.line(line))
    }
}

/// The first value that any layer gives under `sandbox:`, with the layer.
pub(crate) fn sandbox<'a, T>(
    layers: &'a Layers,
    get: fn(&'a RawSandbox) -> &'a Option<At<T>>,
) -> Option<(&'a Layer, &'a At<T>)> {
    layers.first(|raw: &'a RawConfig| raw.sandbox.as_ref().and_then(|s| get(s).as_ref()))
}

/// The same under `shell:`.
pub(crate) fn shell<'a, T>(
    layers: &'a Layers,
    get: fn(&'a RawShell) -> &'a Option<At<T>>,
) -> Option<(&'a Layer, &'a At<T>)> {
    layers.first(|raw: &'a RawConfig| raw.shell.as_ref().and_then(|s| get(s).as_ref()))
}

/// The first value that any layer gives under `shell.limits:`, with the layer.
pub(crate) fn limit<'a, T>(
    layers: &'a Layers,
    get: fn(&'a RawLimits) -> &'a Option<At<T>>,
) -> Option<(&'a Layer, &'a At<T>)> {
    layers.first(|raw: &'a RawConfig| get(raw.shell.as_ref()?.limits.as_ref()?).as_ref())
}

/// The presets of a config file without `extends`. A ceiling grants only what it names.
pub(crate) fn default_presets() -> Vec<At<String>> {
    ["system", "toolchains"]
        .map(|name| At {
            value: name.to_owned(),
            at: Position::START,
        })
        .into()
}

/// A preset, parsed.
pub(crate) fn preset(
    name: &Arc<str>,
    context: &Context,
    with_span: impl Fn(Box<Diagnostic>) -> Box<Diagnostic>,
) -> Result<(Arc<Source>, RawConfig), Box<Diagnostic>> {
    let Some(preset) = (context.presets)(name) else {
        let unknown = with_span(Diagnostic::error(format!("unknown preset `{name}`")));
        return Err(unknown.did_you_mean(name, presets::names()));
    };
    let source = SourceName::Preset(Arc::clone(name));
    match preset.mirror() {
        Some(Ok(raw)) => Ok((Source::built_in(source, preset.text), raw)),
        Some(Err(error)) => Err(Diagnostic::error(format!(
            "the preset `{name}` is damaged in this program: {error}"
        ))),
        None => yaml::parse(source, preset.text.as_bytes()),
    }
}
