//! Ceilings: files that only take away. This version does not read them, so it refuses to run
//! beside one rather than ignore what an operator wrote.

use std::io;
use std::path::PathBuf;

use super::context::Context;
use super::error::ConfigError;

/// Where a ceiling may lie: the machine's, and the user's by passwd home (and by environment, where that differs).
pub fn paths(context: &Context) -> Vec<PathBuf> {
    let machine = PathBuf::from("/etc/stockade/ceiling.yaml");
    let of_home = context.home.as_ref().map(|home| home.as_path().join(".config"));
    let of_variable = context
        .path_variable("XDG_CONFIG_HOME")
        .map(|dir| dir.as_path().to_owned());
    let users = [of_home, of_variable]
        .into_iter()
        .flatten()
        .map(|dir| dir.join("stockade/ceiling.yaml"));
    std::iter::once(machine).chain(users).collect()
}

/// An error if there is a ceiling, or if that cannot be told.
pub fn refuse_if_present(context: &Context) -> Result<(), ConfigError> {
    for path in paths(context) {
        match std::fs::symlink_metadata(&path) {
            Ok(_) => return Err(ConfigError::Ceiling(path)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(source) => return Err(ConfigError::CeilingUnknown { path, source }),
        }
    }
    Ok(())
}
