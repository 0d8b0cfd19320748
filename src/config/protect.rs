//! `sandbox.protect`: the keyword, and the names that are added to the list or removed from it.

use super::error::Diagnostic;
use super::keywords::RawProtectWord;
use super::layers::{Layer, Layers, Role};
use super::scalar::{At, RawProtect, RawProtectNames};
use crate::policy::protected::{TOOLS, exception_objection, is_excepted};
use crate::policy::{NameChanges, NamePattern, Protect};

/// Most names that a config may add.
const MAX_NAMES: usize = 1_000;

/// Every `protect:` of the layers, the file first.
fn entries(layers: &Layers) -> impl Iterator<Item = (&Layer, &At<RawProtect>)> {
    layers.stack.iter().filter_map(|layer| {
        let entry = layer.raw.sandbox.as_ref()?.protect.as_ref()?;
        Some((layer, entry))
    })
}

/// The keyword that applies, with the files that are protected by path. A mapping means `default`, or `prevent` if a preset says so.
pub(crate) fn protect(layers: &Layers) -> Result<Protect, Box<Diagnostic>> {
    let files = || layers.config_files.clone();
    let mut has_names = false;
    for (layer, entry) in entries(layers) {
        return Ok(match &entry.value {
            RawProtect::Keyword(RawProtectWord::Prevent) => Protect::Prevent(files()),
            RawProtect::Keyword(RawProtectWord::None) if !has_names => Protect::None,
            RawProtect::Keyword(RawProtectWord::Default | RawProtectWord::None) => Protect::Default(files()),
            RawProtect::Names(_) => {
                has_names = true;
                continue;
            }
            RawProtect::Other(keyword) => {
                return Err(Diagnostic::error(format!("`protect: {keyword}` means nothing"))
                    .at(layer.source.span(entry.at), "not known")
                    .did_you_mean(keyword, ["default", "prevent", "none"]));
            }
        });
    }
    Ok(match layers.role {
        Role::Ceiling if !has_names => Protect::None,
        Role::Ceiling | Role::Config => Protect::Default(files()),
    })
}

/// The names that the layers add to the list and remove from it.
pub(crate) fn names(layers: &Layers) -> Result<NameChanges, Box<Diagnostic>> {
    let mut changes = NameChanges::default();
    for (layer, entry) in entries(layers) {
        let RawProtect::Names(RawProtectNames { add, except }) = &entry.value else {
            continue;
        };
        for name in add.iter().flatten() {
            changes.add.insert(pattern(layer, name)?);
            if changes.add.len() > MAX_NAMES {
                return Err(
                    Diagnostic::error(format!("more than {MAX_NAMES} names under `protect: {{add: …}}`"))
                        .at(layer.source.span(name.at), "one too many"),
                );
            }
        }
        for name in except.iter().flatten() {
            if layers.role == Role::Ceiling {
                return Err(Diagnostic::error("a ceiling takes no name off the list")
                    .at(layer.source.span(name.at), "would permit more")
                    .hint("a ceiling may `add` names; `except` belongs to a config"));
            }
            let taken_off = pattern(layer, name)?;
            if let Some(why) = exception_objection(taken_off.as_str()) {
                return Err(Diagnostic::error(format!("`except: {taken_off}`: {why}"))
                    .at(layer.source.span(name.at), "cannot be taken off")
                    .hint(instead(taken_off.as_str())));
            }
            changes.except.insert(taken_off);
        }
    }
    contradiction(layers).map_or(Ok(changes), Err)
}

/// An error for a name under both `add` and `except`.
fn contradiction(layers: &Layers) -> Option<Box<Diagnostic>> {
    let lists = || {
        entries(layers).filter_map(|(layer, entry)| match &entry.value {
            RawProtect::Names(names) => Some((layer, names)),
            RawProtect::Keyword(_) | RawProtect::Other(_) => None,
        })
    };
    let excepted = lists().flat_map(|(layer, names)| names.except.iter().flatten().map(move |name| (layer, name)));
    excepted.into_iter().find_map(|(layer, except)| {
        let mut added = lists().flat_map(|(layer, names)| names.add.iter().flatten().map(move |name| (layer, name)));
        let (other, add) = added.find(|(_, add)| is_excepted(&add.value, &except.value))?;
        let error = Diagnostic::error(format!(
            "`{}` is to be added to the protected names, and to be taken off them",
            except.value.escape_debug()
        ))
        .at(layer.source.span(except.at), "taken off here")
        .and(other.source.span(add.at), "added here");
        Some(error.hint("leave it under `add` to have it protected, or under `except` to have it left alone"))
    })
}

/// Advice for a name that cannot be removed.
fn instead(except: &str) -> String {
    let lower = except.to_ascii_lowercase();
    let holds = |listed: &&&str| {
        let directory = listed.strip_suffix("**").map(str::to_ascii_lowercase);
        directory.is_some_and(|directory| lower.starts_with(&directory))
    };
    match TOOLS.iter().flat_map(|tool| tool.reads).find(holds) {
        Some(listed) if exception_objection(listed).is_none() => {
            format!("`{listed}` is on the list, and is taken off as it stands there or not at all")
        }
        Some(_) | None => "`stockade profile show` prints the list; write a name as it stands there".to_owned(),
    }
}

fn pattern(layer: &Layer, name: &At<String>) -> Result<NamePattern, Box<Diagnostic>> {
    NamePattern::new(&name.value).map_err(|error| {
        Diagnostic::error(format!(
            "`{}` is no pattern of names: {error}",
            name.value.escape_debug()
        ))
        .at(layer.source.span(name.at), "not understood")
        .hint("write a name (`deploy.sh`), a path (`ops/run.sh`), `*.ps1`, or a directory with all in it (`.mine/**`)")
    })
}
