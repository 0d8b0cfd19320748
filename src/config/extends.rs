//! `extends`: a file or a preset and, after it, all that it extends.
//!
//! A file stands where a preset may stand. It means what it means on its own: its relative paths are relative to it, and
//! without `extends` it has the default ones.

use std::sync::Arc;

use super::context::Context;
use super::error::{ConfigError, Diagnostic};
use super::file::{self, ConfigFile, Links};
use super::layers::{self, FileLink, Layer, Place, Role};
use super::loaded::NamedFile;
use super::paths::{self, PathError, Variables};
use super::raw::RawConfig;
use super::scalar::At;
use super::source::{Source, SourceName};
use super::yaml;
use crate::policy::AbsPath;

/// How deep files and presets may extend each other.
const DEEPEST: usize = 8;

/// A text and all that it extends.
#[derive(Debug, Default)]
pub(crate) struct Stack {
    /// The text, then what it extends depth-first; each once.
    pub(crate) layers: Vec<Layer>,
    /// The files among them, but for the first text.
    pub(crate) files: Vec<NamedFile>,
    /// Their paths.
    pub(crate) paths: Vec<AbsPath>,
    /// The links on the way to them.
    pub(crate) links: Vec<FileLink>,
}

/// `raw` and, after it, everything it extends.
pub(crate) fn stack(
    (source, raw): (Arc<Source>, RawConfig),
    place: Place,
    role: Role,
    context: &Context,
) -> Result<Stack, Box<Diagnostic>> {
    let mut stacking = Stacking {
        role,
        context,
        open: vec![real_name(&source.name)],
        stack: Stack::default(),
    };
    stacking.push(Layer { source, raw, place })?;
    Ok(stacking.stack)
}

/// The name of a source, without links.
fn real_name(name: &SourceName) -> SourceName {
    match name {
        SourceName::File(path) => {
            let real = std::fs::canonicalize(&**path);
            SourceName::File(real.map_or_else(|_| Arc::clone(path), Arc::new))
        }
        SourceName::Preset(_) => name.clone(),
    }
}

struct Stacking<'a> {
    role: Role,
    context: &'a Context,
    /// What is being extended, outermost first.
    open: Vec<SourceName>,
    stack: Stack,
}

impl Stacking<'_> {
    fn push(&mut self, layer: Layer) -> Result<(), Box<Diagnostic>> {
        let extends = layer.raw.extends.clone().unwrap_or_default();
        let (outer, place) = (Arc::clone(&layer.source), layer.place.clone());
        self.stack.layers.push(layer);
        for entry in extends {
            let inner = if names_a_file(&entry.value) && !outer.is_preset() {
                self.file(&outer, &place, &entry)?
            } else {
                let name: Arc<str> = entry.value.as_str().into();
                self.unless_open(&outer, &entry, SourceName::Preset(name))?
            };
            let Some(name) = inner else { continue };
            let layer = match &name {
                SourceName::Preset(preset) => {
                    let (source, raw) = layers::preset(preset, self.context, |found| {
                        found.at(outer.span(entry.at), "no such preset")
                    })?;
                    let base = place.base.clone();
                    Layer {
                        source,
                        raw,
                        place: Place { base, directory: None },
                    }
                }
                SourceName::File(_) => self.read(&outer, &entry, &name)?,
            };
            self.open.push(name);
            self.push(layer)?;
            self.open.pop();
        }
        Ok(())
    }

    /// The name, if it is not extended yet; an error if it is being extended, or lies too deep.
    fn unless_open(
        &self,
        outer: &Arc<Source>,
        entry: &At<String>,
        name: SourceName,
    ) -> Result<Option<SourceName>, Box<Diagnostic>> {
        let chain = |from: usize| {
            let open = self.open.iter().skip(from).chain([&name]);
            open.map(shown).collect::<Vec<_>>().join(" → ")
        };
        let wrong = |message: String, label: &str| Err(Diagnostic::error(message).at(outer.span(entry.at), label));
        if let Some(from) = self.open.iter().position(|open| *open == name) {
            let what = if matches!(name, SourceName::Preset(_)) {
                "presets"
            } else {
                "files"
            };
            return wrong(
                format!("{what} extend each other in a circle: {}", chain(from)),
                "closes the circle",
            );
        }
        if self.stack.layers.iter().skip(1).any(|layer| layer.source.name == name) {
            return Ok(None);
        }
        if self.open.len() > DEEPEST {
            return wrong(
                format!(
                    "files and presets extend each other more than {DEEPEST} deep: {}",
                    chain(0)
                ),
                "one too many",
            );
        }
        Ok(Some(name))
    }

    /// Where an entry leads that names a file.
    fn file(
        &mut self,
        outer: &Arc<Source>,
        place: &Place,
        entry: &At<String>,
    ) -> Result<Option<SourceName>, Box<Diagnostic>> {
        let text = entry.value.as_str();
        let span = outer.span(entry.at);
        let wrong =
            |why: &str, label: &str| Diagnostic::error(format!("`extends: {text}`: {why}")).at(span.clone(), label);
        if text.contains("://") {
            return Err(wrong("a config is not fetched from an address", "not a file here")
                .hint("save it beside this file, read it, and name it by its path"));
        }
        if self.role == Role::Ceiling {
            return Err(wrong("a ceiling is one file", "another file")
                .hint("copy its lines here, or name it with a `--ceiling` of its own: all ceilings hold together"));
        }
        let unresolved = |error: PathError| {
            let hint = match &error {
                PathError::Start => Some("a file of the project would then speak for you: write the path out"),
                PathError::Variable => Some("write the path out, relative to this file, or begin it with `~/`"),
                _ => None,
            };
            let error = wrong(&error.to_string(), "leads nowhere");
            hint.into_iter().fold(error, Diagnostic::hint)
        };
        let expanded = paths::expand(text, &place.base, Variables::Refuse, self.context).map_err(unresolved)?;
        let walked = paths::walk(&expanded.unwrap_or_default()).map_err(unresolved)?;
        if walked.found.is_none() {
            let missing = wrong(&format!("{} does not exist", walked.path), "nothing there");
            return Err(match presets_like(text) {
                Some(preset) => missing.hint(format!("the shipped preset is written `{preset}`")),
                None => missing.hint("the path is relative to the file it stands in"),
            });
        }
        self.stack.links.extend(walked.links.into_iter().map(|link| FileLink {
            link,
            span: span.clone(),
            text: text.to_owned(),
        }));
        self.unless_open(
            outer,
            entry,
            SourceName::File(Arc::new(walked.path.as_path().to_owned())),
        )
    }

    /// The file, read and parsed.
    fn read(&mut self, outer: &Arc<Source>, entry: &At<String>, name: &SourceName) -> Result<Layer, Box<Diagnostic>> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Diagnostic::error(format!("`extends: {}`: {why}", entry.value)).at(outer.span(entry.at), "cannot be used")
        };
        let SourceName::File(path) = name else {
            return Err(unreadable(&"not a file"));
        };
        let ConfigFile { file, bytes, .. } = file::read(path, Links::Refuse).map_err(|error| match error {
            ConfigError::Invalid(found) => found,
            error => unreadable(&error.line()),
        })?;
        let real = AbsPath::new(path.as_path()).map_err(|error| unreadable(&error))?;
        let directory = real.parent().unwrap_or_else(AbsPath::root);
        let (source, raw) = yaml::parse(name.clone(), &bytes)?;
        self.stack.files.push(file);
        self.stack.paths.push(real);
        Ok(Layer {
            source,
            raw: with_default(raw),
            place: Place {
                base: directory.clone(),
                directory: Some(directory),
            },
        })
    }
}

/// The config with the default `extends`, where it says nothing of it.
pub(crate) fn with_default(raw: RawConfig) -> RawConfig {
    let extends = raw.extends.or_else(|| Some(layers::default_presets()));
    RawConfig { extends, ..raw }
}

/// Whether an entry names a file and not a shipped preset.
fn names_a_file(text: &str) -> bool {
    let is_yaml = |end: &str| text.len() > end.len() && text.ends_with(end);
    text.contains('/') || is_yaml(".yaml") || is_yaml(".yml")
}

/// The preset that is meant by `system.yaml` and the like.
fn presets_like(text: &str) -> Option<&str> {
    let name = text.strip_suffix(".yaml").or_else(|| text.strip_suffix(".yml"))?;
    let name = name.strip_prefix("./").unwrap_or(name);
    super::presets::names().any(|known| known == name).then_some(name)
}

fn shown(name: &SourceName) -> String {
    match name {
        SourceName::File(_) => name.to_string(),
        SourceName::Preset(name) => name.to_string(),
    }
}
