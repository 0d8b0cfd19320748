//! A registry of the directories with approval sockets, in Stockade's state directory.
//!
//! The environment of a session decides where its sockets are, and another session may have another environment. So each
//! directory is registered before there is a token in it, as a link in the state directory, and every start denies all of them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::policy::path::display;

/// The directory of the links.
const FOLDER: &str = "approvals-elsewhere";
/// The most directories that are registered.
const MAX_DIRECTORIES: usize = 256;

/// Creates a directory for sockets, and registers it so that every later start denies it. Removes entries of missing directories.
///
/// # Errors
/// It cannot be registered, so no token may be put there.
pub fn register_socket_dir(state: &Path, directory: &Path) -> io::Result<()> {
    let make = |path: &Path| DirBuilder::new().mode(0o700).recursive(true).create(path);
    make(directory)?;
    let real = fs::canonicalize(directory)?;
    if fs::canonicalize(state).is_ok_and(|state| real.starts_with(state)) {
        return Ok(());
    }
    let folder = state.join(FOLDER);
    make(&folder)?;
    let mut count = 0;
    for entry in fs::read_dir(&folder)? {
        let link = entry?.path();
        let target = match fs::read_link(&link) {
            Ok(target) => target,
            // Another start has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if target == real {
            return Ok(());
        }
        if !is_missing(&target) {
            count += 1;
        } else if let Err(error) = fs::remove_file(&link)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    if count >= MAX_DIRECTORIES {
        let folder = display(&folder);
        let message =
            format!("{MAX_DIRECTORIES} directories of sockets are noted in {folder}; remove those that nobody uses");
        return Err(io::Error::other(message));
    }
    let is_taken = |made: &io::Result<()>| matches!(made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
    let mut linked = (0..2 * MAX_DIRECTORIES).map(|number| symlink(&real, folder.join(number.to_string())));
    linked
        .find(|made| !is_taken(made))
        .unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
}

/// The registered directories that exist.
pub(super) fn registered(state: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(state.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries {
        match fs::read_link(entry?.path()) {
            Ok(target) if is_missing(&target) => {}
            Ok(target) => all.push(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Whether nothing exists at the path; `false` if that is unknown.
fn is_missing(directory: &Path) -> bool {
    let found = fs::symlink_metadata(directory);
    found.is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_noted_once_and_only_as_long_as_it_is_there() {
        let scene = tempfile::tempdir().unwrap();
        let base = scene.path().canonicalize().unwrap();
        let (state, one, two) = (base.join("state"), base.join("run/one"), base.join("run/two"));
        assert_eq!(registered(&state).unwrap(), Vec::<PathBuf>::new());
        register_socket_dir(&state, &one).unwrap();
        register_socket_dir(&state, &one).unwrap();
        assert_eq!(registered(&state).unwrap(), std::slice::from_ref(&one));
        fs::remove_dir(&one).unwrap();
        register_socket_dir(&state, &two).unwrap();
        assert_eq!(registered(&state).unwrap(), [two]);
        // What lies in the state directory is denied anyhow.
        register_socket_dir(&state, &state.join("approvals")).unwrap();
        assert_eq!(registered(&state).unwrap().len(), 1);
    }

    #[test]
    fn no_more_are_noted_than_every_start_can_deny() {
        let scene = tempfile::tempdir().unwrap();
        let state = scene.path().join("state");
        for number in 0..MAX_DIRECTORIES {
            register_socket_dir(&state, &scene.path().join(format!("run/{number}"))).unwrap();
        }
        assert!(register_socket_dir(&state, &scene.path().join("run/more")).is_err());
        assert_eq!(registered(&state).unwrap().len(), MAX_DIRECTORIES);
    }
}
