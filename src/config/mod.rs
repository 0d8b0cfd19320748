//! YAML text → raw mirror → one resolved [`Policy`](crate::policy::Policy).
//!
//! `file` reads a config once, and `load` makes [`Loaded`] of it. `yaml` parses its bytes, with the strictness of
//! `options`, to the raw mirror (`raw`, `scalar`, `keywords`; `empty_values` finds keys without a value) or to one error with
//! its span (`source`). `extends` stacks on it the files and the `presets` that it extends, which the
//! build script has parsed; `layers` are what it makes of them.
//!
//! `resolve` turns the stack into a policy, with a file for each part: `roots`, `denies` and `finish_draft` (with `paths`, which
//! reports every symlink, its `path_cache`, and `system_paths`), `base` and the `toolchains` that variables name,
//! `environment`, `audit`, `rules` (`pattern`, `examples`, `short_forms`), `hosts`, `tools`. `own_paths` and `credentials` add
//! denies. `contradictions` checks the parts against each other, and `warnings` reports lines that are valid but may surprise.
//!
//! Beside that: [`amend`] writes accepted grants into a config. [`trust`] (with `trust_records`, and `state_files` for files in
//! the state directory) is for configs found in the working directory. [`ceilings`] bound a policy (`ceiling_keys` has
//! their keys, `owner_check` who may have written them). `setting_lines` has the line of each setting, `flags` policies without
//! a file, `code` settings that a program makes, [`schema()`] the schema for editors.

pub mod amend;
mod audit;
mod base;
mod ceiling_keys;
pub mod ceilings;
mod code;
mod context;
mod contradictions;
mod credentials;
mod custom_tool;
mod denies;
mod empty_values;
mod environment;
mod error;
mod examples;
mod extends;
mod file;
mod finish_draft;
mod flag_denies;
mod flags;
mod hosts;
mod keywords;
mod layers;
mod load;
mod loaded;
mod mounts;
mod options;
mod own_paths;
mod owner_check;
mod path_cache;
mod paths;
mod pattern;
mod presets;
mod protect;
mod raw;
mod resolve;
mod roots;
mod rules;
mod scalar;
mod schema;
mod setting_lines;
mod short_forms;
mod socket_dirs;
mod source;
pub(crate) mod state_files;
mod system_paths;
mod toolchains;
mod tools;
pub mod trust;
mod trust_records;
mod units;
mod unquoted;
mod values;
mod warnings;
mod yaml;

#[cfg(test)]
mod tests;

pub(crate) use code::{Base, Settings};
pub use context::{Context, SystemCeiling};
pub use custom_tool::{ArgKind, CustomArg, CustomTool};
pub use error::{ConfigError, Diagnostic, Mark, Severity};
pub(crate) use finish_draft::ABSENT;
pub use flag_denies::PresetChanges;
pub use flags::{FlagPolicy, from_flags};
pub use load::{changed_preset, discover, examine, load, preset};
pub use loaded::{Loaded, Missing, NamedFile};
pub(crate) use owner_check::OwnerCheck;
pub use paths::resolve_path;
pub(crate) use paths::{Walked, identity, walk};
pub(crate) use pattern::pattern_words;
pub use presets::{names as preset_names, text as preset_text};
pub use schema::{TEMPLATE, schema};
pub use socket_dirs::register_socket_dir;
pub use source::{Source, SourceName, Span};
pub(crate) use system_paths::holds;
pub use tools::TOOL_NAMES;
pub(crate) use trust_records::StoredPath;
pub use trust_records::own_base;

pub use units::{UnitError, time as duration};
