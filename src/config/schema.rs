//! What helps a person write a config: the JSON Schema for editors, and a file to start from.

use schemars::Schema;

use super::raw::RawConfig;

/// The config that `stockade init` writes.
pub const TEMPLATE: &str = include_str!("template.yaml");

/// The JSON Schema of a config file, for editors and for checks before a config is used.
///
/// `stockade schema` prints the same.
///
/// ```
/// let schema = stockade::schema();
/// assert!(schema.get("properties").is_some_and(|keys| keys.get("sandbox").is_some()));
/// ```
pub fn schema() -> Schema {
    schemars::schema_for!(RawConfig)
}
