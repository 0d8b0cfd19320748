//! A change → steps → text.

use std::str::FromStr as _;

use serde_json::Value;
use yaml_edit::{Document, YamlFile};

use super::change::{Change, NewRoot, Widened, Writing};
use super::content::{self, Step};
use super::error::AmendError;
use super::flow::{self, Flow};
use crate::policy::{AbsPath, Right};

/// The text with the change made.
pub(super) fn make(text: &str, dir: &AbsPath, change: &Change) -> Result<String, AmendError> {
    match change {
        Change::Root(root) => {
            let value = new_root(root, dir)?;
            take(text, &Step::Entry(keys(&["sandbox", "paths", &root.name]), value))
        }
        Change::Widen(root) => widen(text, root),
        Change::List(path) => push(text, &["sandbox", "base", "list"], flow::path(path, &AbsPath::root())?),
        Change::Host(place) => host(text, Flow::Text(place.to_string())),
    }
}

fn new_root(root: &NewRoot, dir: &AbsPath) -> Result<Flow, AmendError> {
    let mut entries = vec![("root".to_owned(), flow::path(&root.path, dir)?)];
    if root.rights.has(Right::Write) {
        entries.push(("mode".to_owned(), Flow::Word("rw")));
        match root.writing {
            Writing::Free => entries.push(("write_approval".to_owned(), Flow::Word("false"))),
            Writing::Asked => {}
        }
    }
    if root.rights.has(Right::Execute) {
        entries.push(("execute".to_owned(), Flow::Word("true")));
    }
    Ok(Flow::Map(entries))
}

fn widen(text: &str, root: &Widened) -> Result<String, AmendError> {
    let there = ["sandbox", "paths", &root.name];
    let at = |key| [&there[..], &[key]].concat();
    let Some(content) = found(text, &there) else {
        return Err(AmendError::Form {
            why: format!("it has no root `{}`", root.name),
            what: block(&keys(&there), ""),
        });
    };
    let mut text = text.to_owned();
    if root.rights.has(Right::Write) {
        text = set(&text, &at("mode"), Flow::Word("rw"))?;
        let says = ["/write_approval", "/approval/write"]
            .iter()
            .any(|key| content.pointer(key).is_some());
        match root.writing {
            Writing::Free if !says => text = set(&text, &at("write_approval"), Flow::Word("false"))?,
            Writing::Free | Writing::Asked => {}
        }
    }
    if root.rights.has(Right::Execute) {
        text = set(&text, &at("execute"), Flow::Word("true"))?;
    }
    Ok(text)
}

fn host(text: &str, entry: Flow) -> Result<String, AmendError> {
    match found(text, &["shell", "network"]) {
        Some(Value::Object(_)) => push(text, &["shell", "network", "allow"], entry),
        Some(_) | None => set(
            text,
            &["shell", "network"],
            Flow::Map(vec![("allow".to_owned(), Flow::List(vec![entry]))]),
        ),
    }
}

/// Puts a value where a scalar stands, or nothing.
fn set(text: &str, at: &[&str], value: Flow) -> Result<String, AmendError> {
    let step = match found(text, at) {
        Some(_) => Step::Replace(keys(at), value),
        None => Step::Entry(keys(at), value),
    };
    take(text, &step)
}

/// Adds to a list, which is made where it is missing.
fn push(text: &str, at: &[&str], value: Flow) -> Result<String, AmendError> {
    let step = match found(text, at) {
        Some(_) => Step::Push(keys(at), value),
        None => Step::Entry(keys(at), Flow::List(vec![value])),
    };
    take(text, &step)
}

/// What stands behind these keys.
fn found(text: &str, at: &[&str]) -> Option<Value> {
    content::at(&content::of(text)?, &keys(at)).cloned()
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Takes a step, and holds the text against what the step comes to.
fn take(text: &str, step: &Step) -> Result<String, AmendError> {
    let refused = |why: &str| AmendError::Form {
        why: why.to_owned(),
        what: shown(step),
    };
    let wanted = content::of(text).and_then(|content| content::after(content, step));
    let wanted = wanted.ok_or_else(|| refused("something else stands where it belongs"))?;
    let edited = written(text, step).ok_or_else(|| refused("where it belongs cannot be told"))?;
    if content::of(&edited) == Some(wanted) {
        Ok(edited)
    } else {
        Err(refused("the edit would mean something else as well"))
    }
}

/// The step as a person would write it.
fn shown(step: &Step) -> String {
    match step {
        Step::Entry(keys, value) | Step::Replace(keys, value) => block(keys, &value.written()),
        Step::Push(keys, value) => {
            let indent = " ".repeat(2 * keys.len());
            format!("{}\n{indent}- {}", block(keys, ""), value.written())
        }
    }
}

/// A value behind these keys, each on a line of its own.
fn block(keys: &[String], value: &str) -> String {
    let lines = keys.iter().enumerate();
    let lines: Vec<String> = lines
        .map(|(depth, key)| format!("{}{}:", " ".repeat(2 * depth), flow::quoted(key)))
        .collect();
    format!("{} {value}", lines.join("\n")).trim_end().to_owned()
}

/// The text with the step taken, by an editor that [`take`] does not believe; nothing where it finds no way.
fn written(text: &str, step: &Step) -> Option<String> {
    let file = YamlFile::from_str(text).ok()?;
    let mut map = file.document()?.as_mapping()?;
    let (Step::Entry(keys, value) | Step::Replace(keys, value) | Step::Push(keys, value)) = step;
    let mut left = &keys[..];
    while let [key, below @ ..] = left {
        match map.get_mapping(key.as_str()) {
            Some(inner) if !below.is_empty() => (map, left) = (inner, below),
            Some(_) | None => break,
        }
    }
    let key = left.first()?.as_str();
    match step {
        // What is missing on the way is written with it.
        Step::Entry(..) | Step::Replace(..) => {
            let new = Document::from_str(&block(left, &value.written())).ok()?;
            map.set(key, new.get(key)?);
        }
        Step::Push(..) => {
            let new = Document::from_str(&value.written()).ok()?;
            map.get_sequence(key)?.push(new.as_scalar()?);
        }
    }
    Some(file.to_string())
}
