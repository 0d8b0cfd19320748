//! The presets that ship with Stockade: files in `profiles/`, built in.
//!
//! A preset is a config that only adds. Beyond the schema it may begin a path with `$NAME/` or
//! `~/`, skipped where this user has no such thing, and its `env.set` values may be alternatives
//! (`$NAME | ~/path`): the first variable that is set or path that exists.
//!
//! Reading YAML is slow beside everything else that a start does, so the build script reads them
//! once (`build.rs`), and what is built in beside each text is its raw mirror.

use super::raw::RawConfig;

/// One preset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preset {
    /// What people read, and what messages point into.
    pub(crate) text: &'static str,
    /// Its raw mirror in the form the build script gave it; without one the text is parsed.
    pub(crate) parsed: Option<&'static [u8]>,
}

impl Preset {
    /// The raw mirror that was built in, if one was.
    pub(crate) fn mirror(&self) -> Option<Result<RawConfig, postcard::Error>> {
        self.parsed.map(postcard::from_bytes)
    }
}

/// Each name with its text and its mirror.
macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, Preset {
            text: include_str!(concat!("../../profiles/", $name, ".yaml")),
            parsed: Some(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".preset"))),
        })),+]
    };
}

/// Every preset, by name.
const PRESETS: [(&str, Preset); 10] = shipped![
    "git",
    "go",
    "java",
    "managers",
    "node",
    "python",
    "rust",
    "system",
    "toolchains",
    "workspace-write",
];

/// The names of all presets, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    preset(name).map(|preset| preset.text)
}

/// A preset, by name.
pub(crate) fn preset(name: &str) -> Option<Preset> {
    PRESETS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, preset)| *preset)
}
