//! The presets that ship with Stockade: files in `profiles/`, built in.
//!
//! A preset is a config that only adds. Beyond the schema it may begin a path with `$NAME/` or
//! `~/`, skipped where this user has no such thing, and its `env.set` values may be alternatives
//! (`$NAME | ~/path`): the first variable that is set or path that exists.

/// Every preset, by name.
const PRESETS: &[(&str, &str)] = &[
    ("git", include_str!("../../profiles/git.yaml")),
    ("go", include_str!("../../profiles/go.yaml")),
    ("java", include_str!("../../profiles/java.yaml")),
    ("node", include_str!("../../profiles/node.yaml")),
    ("python", include_str!("../../profiles/python.yaml")),
    ("rust", include_str!("../../profiles/rust.yaml")),
    ("system", include_str!("../../profiles/system.yaml")),
    ("workspace-write", include_str!("../../profiles/workspace-write.yaml")),
];

/// The names of all presets, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
