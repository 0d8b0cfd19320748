//! What an edit comes to, done to the content of a config: it knows nothing of text, so the two can be held against each other.

use serde_json::{Map, Value};

use super::flow::Flow;
use crate::config::options::options;

/// One edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A value where nothing stands behind these keys. Missing mappings on the way are made.
    Entry(Vec<String>, Flow),
    /// Another value in the place of a scalar.
    Replace(Vec<String>, Flow),
    /// One more entry for the list at this place, which is there.
    Push(Vec<String>, Flow),
}

/// The content of a text; none where it has none.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_yaml::from_str_with_options(text, options()).ok()
}

/// The content behind these keys.
pub(super) fn get<'a>(content: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(content, |value, key| value.get(key))
}

/// The content with the step done; none where it cannot be.
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
