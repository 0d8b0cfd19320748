//! Applies an edit to the parsed content of a config. It does not use the text editor, so that its result can verify the edited text.

use serde_json::{Map, Value};

use super::flow::Flow;
use crate::config::options::options;

/// An edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A value for a missing key. Missing mappings above it are created.
    Entry(Vec<String>, Flow),
    /// Another value for a scalar.
    Replace(Vec<String>, Flow),
    /// One more entry for an existing list.
    Push(Vec<String>, Flow),
}

/// Parses a text; `None` if it is not valid.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_yaml::from_str_with_options(text, options()).ok()
}

/// The value of these keys.
pub(super) fn get<'a>(content: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(content, |value, key| value.get(key))
}

/// Applies a step; `None` if it does not fit the content.
pub(super) fn apply(mut content: Value, step: &Step) -> Option<Value> {
    match step {
        Step::Entry(keys, value) => {
            let (key, around) = keys.split_last()?;
            let map = get_or_insert(&mut content, around)?.as_object_mut()?;
            if map.insert(key.clone(), value.content()).is_some() {
                return None;
            }
        }
        Step::Replace(keys, value) => {
            let slot = get_mut(&mut content, keys)?;
            if slot.is_object() || slot.is_array() {
                return None;
            }
            *slot = value.content();
        }
        Step::Push(keys, value) => get_mut(&mut content, keys)?.as_array_mut()?.push(value.content()),
    }
    Some(content)
}

fn get_mut<'a>(content: &'a mut Value, keys: &[String]) -> Option<&'a mut Value> {
    keys.iter().try_fold(content, |value, key| value.get_mut(key))
}

fn get_or_insert<'a>(content: &'a mut Value, keys: &[String]) -> Option<&'a mut Value> {
    keys.iter().try_fold(content, |value, key| {
        Some(
            value
                .as_object_mut()?
                .entry(key)
                .or_insert_with(|| Value::Object(Map::new())),
        )
    })
}
