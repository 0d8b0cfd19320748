//! What helps a person write a config: the JSON Schema for editors, and a file to start from.

use schemars::Schema;

use super::raw::RawConfig;

/// The config that `stockade init` writes.
pub const TEMPLATE: &str = include_str!("template.yaml");

/// The JSON Schema of a config file.
pub fn schema() -> Schema {
    schemars::schema_for!(RawConfig)
}
