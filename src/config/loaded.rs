//! What comes out of a config.

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
    /// What a reader may not expect.
    pub warnings: Vec<Diagnostic>,
    /// What stands as it was meant, and is worth a word to somebody who looks at the config.
    pub notes: Vec<Diagnostic>,
    /// Roots whose directory is missing and asked for (`create: true`). A config that is loaded to be
    /// obeyed has none: its directories have been made.
    pub missing: Vec<Missing>,
    /// Roots whose directory was made by this load, by name.
    pub made: Vec<String>,
    /// Where it says that a log is kept, if it does.
    pub log: Option<Span>,
}

/// A root whose directory is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The root's name.
    pub name: String,
    /// The line that asks for it.
    pub place: Span,
}
