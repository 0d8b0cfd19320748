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

/// A policy and what it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the config says.
    pub policy: Policy,
    /// Custom tools.
    pub custom_tools: Vec<CustomTool>,
    /// The config, and every file it names. Empty for a preset or flags. Presets are built in.
    pub files: Vec<NamedFile>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// Notes for somebody who examines the config.
    pub notes: Vec<Diagnostic>,
    /// Missing roots that are to be created (`create: true`). Empty once the config is applied.
    pub missing: Vec<Missing>,
    /// Roots whose directory was made by this load, by name.
    pub made: Vec<String>,
    /// Roots that are told from the directory Stockade was started in: the name, and the path as it is written.
    pub at_start: Vec<(String, String)>,
    /// The span of `audit.log`, if it is set.
    pub log: Option<Span>,
}

/// A missing root that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The root's name.
    pub name: String,
    /// The span of its path.
    pub place: Span,
}
