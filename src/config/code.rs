//! Settings that a program makes in code → a config of their own, with a line for each.
//!
//! They are parsed and resolved as every config is, so a message quotes the line, and the call that made it stands behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::context::Context;
use super::error::{ConfigError, Diagnostic};
use super::extends;
use super::file::{self, Links, canonical};
use super::layers::{self, Layer, Place};
use super::load::{self, Stacking};
use super::loaded::{Loaded, NamedFile};
use super::source::SourceName;
use super::yaml;
use crate::policy::AbsPath;

/// What messages call the settings.
const SETTINGS: &str = "Session::builder()";
/// What messages call a config that is given as a text.
const TEXT: &str = "the config text";

/// What the settings are added to.
#[derive(Debug, Clone, Default)]
pub(crate) enum Base {
    /// The default presets.
    #[default]
    Nothing,
    /// A config file.
    File(PathBuf),
    /// A config as a text. Its relative paths are relative to the session's directory.
    Text(String),
    /// A shipped preset.
    Preset(String),
}

/// Settings by key, each with the call that made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    entries: Entries,
}

type Entries = Vec<(String, Node)>;

#[derive(Debug, Clone)]
enum Node {
    /// With the first call that set something in it.
    Mapping(Settings, String),
    List(Vec<Written>),
    Value(Written),
}

/// A value, and the call that it was given to.
#[derive(Debug, Clone)]
struct Written {
    value: Value,
    call: String,
}

impl Settings {
    /// Sets the value of a key, which is named by the keys on the way to it.
    ///
    /// # Errors
    /// It has one already, or a part of the way has.
    pub(crate) fn set(&mut self, keys: &[&str], value: Value, call: String) -> Result<(), Box<Diagnostic>> {
        let written = Written { value, call };
        match self.node(keys, &written.call)? {
            (entries, key) if entries.iter().all(|(known, _)| known != key) => {
                entries.push((key.to_owned(), Node::Value(written)));
                Ok(())
            }
            (_, key) => Err(twice(key, &written.call)),
        }
    }

    /// Adds an entry to the list of a key.
    ///
    /// # Errors
    /// Something else than a list is there.
    pub(crate) fn push(&mut self, keys: &[&str], value: Value, call: String) -> Result<(), Box<Diagnostic>> {
        let written = Written { value, call };
        let (entries, key) = self.node(keys, &written.call)?;
        match entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, Node::List(list))) => list.push(written),
            Some(_) => return Err(twice(key, &written.call)),
            None => entries.push((key.to_owned(), Node::List(vec![written]))),
        }
        Ok(())
    }

    /// The entries in which the last of the keys stands, and that key.
    fn node<'a, 'k>(&'a mut self, keys: &[&'k str], call: &str) -> Result<(&'a mut Entries, &'k str), Box<Diagnostic>> {
        match keys {
            [] => Err(twice("", call)),
            [key] => Ok((&mut self.entries, key)),
            [key, rest @ ..] => {
                let at = self.entries.iter().position(|(known, _)| known == key);
                let at = at.unwrap_or_else(|| {
                    self.entries
                        .push(((*key).to_owned(), Node::Mapping(Self::default(), call.to_owned())));
                    self.entries.len() - 1
                });
                match self.entries.get_mut(at) {
                    Some((_, Node::Mapping(inner, _))) => inner.node(rest, call),
                    Some(_) | None => Err(twice(key, call)),
                }
            }
        }
    }

    /// The settings as a config: a value never takes more than a line.
    fn text(&self) -> String {
        let mut lines = Vec::new();
        self.write("", &mut lines);
        lines.concat()
    }

    fn write(&self, indent: &str, lines: &mut Vec<String>) {
        let deeper = format!("{indent}  ");
        for (key, node) in &self.entries {
            let key = Value::from(key.as_str());
            match node {
                Node::Value(Written { value, call }) => lines.push(format!("{indent}{key}: {value} # {call}\n")),
                Node::Mapping(inner, call) => {
                    lines.push(format!("{indent}{key}: # {call}\n"));
                    inner.write(&deeper, lines);
                }
                Node::List(list) => {
                    lines.push(format!("{indent}{key}:\n"));
                    for Written { value, call } in list {
                        lines.push(format!("{deeper}- {value} # {call}\n"));
                    }
                }
            }
        }
    }

    /// Loads the settings on top of `base`, under every ceiling. `directory` is where relative paths of settings, text and
    /// preset start, and `$CWD`. `git` is one more root: the git directory of the workspace, which lies elsewhere.
    pub(crate) fn load(
        &self,
        base: &Base,
        directory: &Path,
        git: Option<&AbsPath>,
        context: &Context,
    ) -> Result<Loaded, ConfigError> {
        let directory = canonical(directory)?;
        let context = &context.started_in(&directory);
        let (above, own) = self.layer(base, &directory)?.unzip();
        let mut loaded = match base {
            Base::File(path) => load::build_below(above, file::read(path, Links::Follow)?, context)?,
            Base::Nothing => load::resolve_stack(above, Stacking::default(), context)?,
            Base::Text(text) => {
                // Before it is parsed: a text that is too large is not.
                let file = Some(hashed(TEXT, text)?);
                let (source, raw) = yaml::parse(named(TEXT), text.as_bytes())?;
                let raw = extends::with_default(raw);
                let place = beside(&directory);
                let stacking = Stacking {
                    config: Some(Layer { source, raw, place }),
                    file,
                    ..Stacking::default()
                };
                load::resolve_stack(above, stacking, context)?
            }
            Base::Preset(name) => {
                let (source, raw) = layers::preset(&Arc::from(name.as_str()), context, |unplaced| unplaced)?;
                let place = Place {
                    base: directory.clone(),
                    directory: None,
                };
                let stacking = Stacking {
                    config: Some(Layer { source, raw, place }),
                    below: git.map(|git| load::git_directory(git, &directory)).transpose()?,
                    ..Stacking::default()
                };
                load::resolve_stack(above, stacking, context)?
            }
        };
        // The log names what the session was opened with.
        loaded.files.extend(own);
        load::create_missing(&mut loaded)?;
        Ok(loaded)
    }

    /// The settings, parsed, and their hash; `None` where there are none.
    fn layer(&self, base: &Base, directory: &AbsPath) -> Result<Option<(Layer, NamedFile)>, ConfigError> {
        let stands_alone = matches!(base, Base::Nothing);
        if self.entries.is_empty() && !stands_alone {
            return Ok(None);
        }
        let mut settings = self.clone();
        if self.entries.is_empty() {
            settings.set(
                &["extends"],
                Value::from(vec!["system", "toolchains"]),
                "the default".to_owned(),
            )?;
        }
        let text = settings.text();
        let own = hashed(SETTINGS, &text)?;
        let (source, raw) = yaml::parse(named(SETTINGS), text.as_bytes())?;
        let layer = Layer {
            source,
            raw: if stands_alone { extends::with_default(raw) } else { raw },
            place: beside(directory),
        };
        Ok(Some((layer, own)))
    }
}

/// Where a text's relative paths start, if it counts as a file of the directory: whoever writes there could re-point a link.
fn beside(directory: &AbsPath) -> Place {
    Place {
        base: directory.clone(),
        directory: Some(directory.clone()),
    }
}

fn named(what: &str) -> SourceName {
    SourceName::File(Arc::new(PathBuf::from(what)))
}

fn hashed(what: &str, text: &str) -> Result<NamedFile, ConfigError> {
    let path = PathBuf::from(what);
    let sha256 = file::hash(&path, text.as_bytes())?;
    Ok(NamedFile { path, sha256 })
}

fn twice(key: &str, call: &str) -> Box<Diagnostic> {
    Diagnostic::error(format!("`{key}` is set twice, the second time by `{call}`"))
        .hint(format!("keep one of the two calls on {SETTINGS}"))
}
