//! A resolved config.

use std::path::PathBuf;

use super::custom_tool::CustomTool;
use super::error::Diagnostic;
use super::source::Span;
use crate::policy::Policy;

/// A file that a config's meaning depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of the bytes that were read.
    pub sha256: [u8; 32],
}

impl NamedFile {
    /// The hash in hexadecimal, as `sha256sum` prints it.
    pub fn hex(&self) -> String {
        crate::policy::hex::hex(&self.sha256)
    }
}

/// A policy, and the files and findings that it came with.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The policy.
    pub policy: Policy,
    /// The tools that the config defines itself (`custom_tools`).
    pub custom_tools: Vec<CustomTool>,
    /// The config and every file that it names, with their hashes. Empty for a preset and for flags.
    pub files: Vec<NamedFile>,
    /// Lines that may not mean what their writer thinks.
    pub warnings: Vec<Diagnostic>,
    /// Remarks for somebody who reviews the config: `stockade check` prints them.
    pub notes: Vec<Diagnostic>,
    /// The roots with `create: true` that do not exist. [`load`](super::load()) creates them, so it leaves none.
    pub missing: Vec<Missing>,
    /// The names of the roots whose directory this load created.
    pub made: Vec<String>,
    /// Roots that are told from the directory Stockade was started in: the name, and the path as it is written.
    pub at_start: Vec<(String, String)>,
    /// The place of `audit.log` in the config, if it is set.
    pub log: Option<Span>,
    /// The presets that hold because the config does not say `extends`.
    pub default_presets: Vec<String>,
}

/// A missing root that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The root's name.
    pub name: String,
    /// The span of its path.
    pub place: Span,
}
