//! Accepted grants → an edit of the config's text, and no other change.
//!
//! A [`Change`] is what was accepted. [`amend`] makes it in the text, so that comments and everything else
//! stay: `edit` adds or replaces a value with the crate `yaml-edit`, and `flow` quotes it. After each step the text is
//! parsed again, and must equal the old content with the same step applied by `content`; else the edit is
//! refused and the person is shown what to write. `new_config` writes a config
//! for a session that started without one. [`Original`] is the file: read once, replaced atomically, and only if it is
//! unchanged.

mod change;
mod content;
mod edit;
mod error;
mod file;
mod flow;
mod new_config;

#[cfg(test)]
mod tests;

pub use change::{Change, NewRoot, Widened, Writing};
pub use error::AmendError;
pub use file::{Original, create};
pub use flow::{quoted, quoted_path};
pub use new_config::{Basis, new_config};

use super::context::Context;
use super::error::ConfigError;
use super::load;
use super::loaded::Loaded;
use crate::policy::AbsPath;
use std::path::Path;

/// The text of a config that lies in `dir`, with these changes made in it.
pub fn amend(text: &str, dir: &AbsPath, changes: &[Change]) -> Result<String, AmendError> {
    let mut text = text.to_owned();
    for change in changes {
        text = edit::apply(&text, dir, change)?;
    }
    Ok(text)
}

/// The config that a text comes to at this path, whatever lies there; what it asks to be made is made.
pub fn load_amended(path: &Path, text: &str, context: &Context) -> Result<Loaded, ConfigError> {
    let mut loaded = load::build_text(path, text.as_bytes(), context)?;
    load::create_missing(&mut loaded)?;
    Ok(loaded)
}
