//! A change → steps → text.

use std::str::FromStr as _;

use serde_json::Value;
use yaml_edit::{Document, YamlFile};

use super::change::{Change, NewRoot, Widened, Writing};
use super::content::{self, Step};
use super::error::AmendError;
use super::flow::{self, Flow};
use crate::policy::{AbsPath, Right};

/// Applies a change to the text.
pub(super) fn apply(text: &str, dir: &AbsPath, change: &Change) -> Result<String, AmendError> {
    match change {
        Change::Root(root) => {
            let value = new_root(root, dir)?;
            apply_step(text, &Step::Entry(keys(&["sandbox", "paths", &root.name]), value))
        }
        Change::Widen(root) => widen(text, root),
        Change::List(path) => push(text, &["sandbox", "base", "list"], flow::path(path, &AbsPath::root())?),
        Change::Host(destination) => host(text, Flow::Text(destination.to_string())),
    }
}

fn new_root(root: &NewRoot, dir: &AbsPath) -> Result<Flow, AmendError> {
    let mut entries = vec![("root".to_owned(), flow::path(&root.path, dir)?)];
    if root.rights.has(Right::Write) {
        entries.push(("mode".to_owned(), Flow::Keyword("rw")));
        match root.writing {
            Writing::Free => entries.push(("write_approval".to_owned(), Flow::Keyword("false"))),
            Writing::Asked => {}
        }
    }
    if root.rights.has(Right::Execute) {
        entries.push(("execute".to_owned(), Flow::Keyword("true")));
    }
    Ok(Flow::Map(entries))
}

fn widen(text: &str, root: &Widened) -> Result<String, AmendError> {
    let path_keys = ["sandbox", "paths", &root.name];
    let at = |key| [&path_keys[..], &[key]].concat();
    let Some(content) = value_at(text, &path_keys) else {
        return Err(AmendError::Form {
            why: format!("it has no root `{}`", root.name),
            what: block(&keys(&path_keys), ""),
        });
    };
    let mut text = text.to_owned();
    if root.rights.has(Right::Write) {
        text = set(&text, &at("mode"), Flow::Keyword("rw"))?;
        let is_set = ["/write_approval", "/approval/write"]
            .iter()
            .any(|key| content.pointer(key).is_some());
        match root.writing {
            Writing::Free if !is_set => text = set(&text, &at("write_approval"), Flow::Keyword("false"))?,
            Writing::Free | Writing::Asked => {}
        }
    }
    if root.rights.has(Right::Execute) {
        text = set(&text, &at("execute"), Flow::Keyword("true"))?;
    }
    Ok(text)
}

fn host(text: &str, entry: Flow) -> Result<String, AmendError> {
    match value_at(text, &["shell", "network"]) {
        Some(Value::Object(_)) => push(text, &["shell", "network", "allow"], entry),
        Some(_) | None => set(
            text,
            &["shell", "network"],
            Flow::Map(vec![("allow".to_owned(), Flow::List(vec![entry]))]),
        ),
    }
}

/// Sets or replaces a scalar.
fn set(text: &str, at: &[&str], value: Flow) -> Result<String, AmendError> {
    let step = match value_at(text, at) {
        Some(_) => Step::Replace(keys(at), value),
        None => Step::Entry(keys(at), value),
    };
    apply_step(text, &step)
}

/// Appends to a list, which is created if it is missing.
fn push(text: &str, at: &[&str], value: Flow) -> Result<String, AmendError> {
    let step = match value_at(text, at) {
        Some(_) => Step::Push(keys(at), value),
        None => Step::Entry(keys(at), Flow::List(vec![value])),
    };
    apply_step(text, &step)
}

/// The value of these keys.
fn value_at(text: &str, at: &[&str]) -> Option<Value> {
    content::get(&content::parse(text)?, &keys(at)).cloned()
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Applies a step to the text, and verifies the result against [`content::apply`].
fn apply_step(text: &str, step: &Step) -> Result<String, AmendError> {
    let refused = |why: &str| AmendError::Form {
        why: why.to_owned(),
        what: step_yaml(step),
    };
    let expected = content::parse(text).and_then(|content| content::apply(content, step));
    let expected = expected.ok_or_else(|| refused("something else stands where it belongs"))?;
    let edited = edit_text(text, step).ok_or_else(|| refused("where it belongs cannot be told"))?;
    if content::parse(&edited) == Some(expected) {
        Ok(edited)
    } else {
        Err(refused("the edit would mean something else as well"))
    }
}

/// The step as a person would write it.
fn step_yaml(step: &Step) -> String {
    match step {
        Step::Entry(keys, value) | Step::Replace(keys, value) => block(keys, &value.to_yaml()),
        Step::Push(keys, value) => {
            let indent = " ".repeat(2 * keys.len());
            format!("{}\n{indent}- {}", block(keys, ""), value.to_yaml())
        }
    }
}

/// A value in nested mappings, one key per line.
fn block(keys: &[String], value: &str) -> String {
    let lines = keys.iter().enumerate();
    let lines: Vec<String> = lines
        .map(|(depth, key)| format!("{}{}:", " ".repeat(2 * depth), flow::quoted(key)))
        .collect();
    format!("{} {value}", lines.join("\n")).trim_end().to_owned()
}

/// Edits the text with `yaml-edit`, whose result [`apply_step`] verifies; `None` if it cannot.
fn edit_text(text: &str, step: &Step) -> Option<String> {
    let file = YamlFile::from_str(text).ok()?;
    let mut map = file.document()?.as_mapping()?;
    let (Step::Entry(keys, value) | Step::Replace(keys, value) | Step::Push(keys, value)) = step;
    let mut rest = &keys[..];
    while let [key, below @ ..] = rest {
        match map.get_mapping(key.as_str()) {
            Some(inner) if !below.is_empty() => (map, rest) = (inner, below),
            Some(_) | None => break,
        }
    }
    let key = rest.first()?.as_str();
    match step {
        // Missing mappings above the key are written with it.
        Step::Entry(..) | Step::Replace(..) => {
            let new = Document::from_str(&block(rest, &value.to_yaml())).ok()?;
            map.set(key, new.get(key)?);
        }
        Step::Push(..) => {
            let new = Document::from_str(&value.to_yaml()).ok()?;
            map.get_sequence(key)?.push(new.as_scalar()?);
        }
    }
    Some(file.to_string())
}
