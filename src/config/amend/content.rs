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
pub(super) fn of(text: &str) -> Option<Value> {
    serde_yaml::from_str_with_options(text, options()).ok()
}

/// The content behind these keys.
pub(super) fn at<'a>(content: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(content, |value, key| value.get(key))
}

/// The content with the step done; none where it cannot be.
pub(super) fn after(mut content: Value, step: &Step) -> Option<Value> {
    match step {
        Step::Entry(keys, value) => {
            let (key, around) = keys.split_last()?;
            let map = made(&mut content, around)?.as_object_mut()?;
            if map.insert(key.clone(), value.content()).is_some() {
                return None;
            }
        }
        Step::Replace(keys, value) => {
            let place = found(&mut content, keys)?;
            if place.is_object() || place.is_array() {
                return None;
            }
            *place = value.content();
        }
        Step::Push(keys, value) => found(&mut content, keys)?.as_array_mut()?.push(value.content()),
    }
    Some(content)
}

fn found<'a>(content: &'a mut Value, keys: &[String]) -> Option<&'a mut Value> {
    keys.iter().try_fold(content, |value, key| value.get_mut(key))
}

fn made<'a>(content: &'a mut Value, keys: &[String]) -> Option<&'a mut Value> {
    keys.iter().try_fold(content, |value, key| {
        Some(
            value
                .as_object_mut()?
                .entry(key)
                .or_insert_with(|| Value::Object(Map::new())),
        )
    })
}
