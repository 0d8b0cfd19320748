//! YAML text → raw mirror → one resolved [`Policy`](crate::policy::Policy).
//!
//! The story, file by file: `file` reads a config once, and `load` makes [`Loaded`] of it; `yaml` turns its bytes
//! (as strictly as `options` says) into the raw mirror (`raw`, `scalar`, `words`; `nothing` finds keys without a
//! value) or into one error that says where; `layers` stacks the `presets` it extends below it, which the build
//! script has parsed; `resolve` brings the stack to a policy, with a file for each part: `roots`, `denies` and
//! `finish` (through `paths`, which finds every symlink, `path_cache`, which remembers for one load, and `ground`,
//! which knows the machine's own places), `base` and the `toolchains` that variables name, `environment`,
//! `audit`, `rules` (their `pattern`s, `examples` and `short` forms), `hosts`, `tools`; `contradictions` holds the
//! parts against each other, and `warnings` tells what stands but may surprise. Beside that: [`amend`], which
//! writes into a config what a person accepted, [`trust`] (with `stored`, and `kept` for files of the user's state
//! directory) for configs found in the working directory, [`ceilings`] (with `ceiling_keys`, which knows what they
//! may say, and `guarded`, which knows whom to believe), `lines` for what names them, `flags` for policies without
//! a file, [`schema()`] for editors.

pub mod amend;
mod audit;
mod base;
mod ceiling_keys;
pub mod ceilings;
mod context;
mod contradictions;
mod credentials;
mod custom_tool;
mod denies;
mod empty_values;
mod environment;
mod error;
mod examples;
mod file;
mod finish_draft;
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

pub use context::{Context, Matchers, SystemCeiling};
pub use custom_tool::{ArgKind, CustomArg, CustomTool};
pub use error::{ConfigError, Diagnostic, Mark, Severity};
pub(crate) use finish_draft::ABSENT;
pub use flags::{FlagPolicy, from_flags};
pub use load::{discover, examine, load, preset, preset_with_git};
pub use loaded::{Loaded, Missing, NamedFile};
pub(crate) use owner_check::OwnerCheck;
pub use paths::resolve_path;
pub(crate) use paths::{Walked, walk};
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
