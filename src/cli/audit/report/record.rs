//! A record of the log, and its fields.

use serde_json::{Map, Value};

use crate::cli::audit::describe;

pub(super) type Record = Map<String, Value>;

pub(super) fn field(record: &Record, name: &str) -> String {
    record.get(name).map(describe::value_text).unwrap_or_default()
}

pub(super) fn number(record: &Record, name: &str) -> u64 {
    record.get(name).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn list<'r>(record: &'r Record, name: &str) -> impl Iterator<Item = &'r Record> {
    let items = record.get(name).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}
