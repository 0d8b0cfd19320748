//! Whether git could be led to run or obey files below a new root, by a config that the guard of protected names does not see.
//!
//! The guard reads the git directories that lie in a writable root. A smaller root has none in it, while the repository
//! around it may lead git there: by `core.hooksPath`, by `include.path`. So who wants to write there without a question must
//! not be led to by anything.

use std::path::Path;

use crate::confine::protect::{Person, metadata_if_present, read, repository};
use crate::policy::AbsPath;
use crate::policy::path::display;

/// Settings that make git read or run other files, in lower case.
const REDIRECTS: [&str; 6] = [
    "hookspath",
    "[include",
    "fsmonitor",
    "sshcommand",
    "pager",
    "attributesfile",
];
/// Those that do so in every repository.
const REDIRECTS_FOR_ALL: [&str; 2] = ["hookspath", "[include"];

/// Why writing below `root` may change what git runs or obeys, if it may.
pub(super) fn objection(root: &AbsPath, person: &Person) -> Option<String> {
    // A person's own settings name pagers and the like; what could put the hooks of every repository elsewhere counts.
    if let Some(why) = person
        .configs()
        .find_map(|config| redirects(config, &REDIRECTS_FOR_ALL))
    {
        return Some(why);
    }
    // Where the entry lies in the root, the guard sees it.
    root.ancestors().find_map(|directory| {
        let entry = directory.as_path().join(".git");
        match metadata_if_present(&entry) {
            Ok(None) => None,
            Ok(Some(found)) if found.is_dir() && directory == *root => None,
            Ok(Some(_)) => match repository(&entry) {
                Ok(Some(found)) => found.configs().find_map(|config| redirects(&config, &REDIRECTS)),
                Ok(None) | Err(_) => Some(format!(
                    "{} names a git directory that cannot be followed",
                    display(&entry)
                )),
            },
            Err(error) => Some(format!("{} cannot be looked at: {error}", display(&entry))),
        }
    })
}

/// Whether a config says one of these; one that cannot be read may.
fn redirects(config: &Path, settings: &[&str]) -> Option<String> {
    let bytes = match read(config) {
        Ok(None) => return None,
        Ok(Some(bytes)) => bytes,
        Err(_) => return Some(format!("{} cannot be read, and git may obey it", display(config))),
    };
    let text = bytes.to_ascii_lowercase();
    let contains = |setting: &&&str| text.windows(setting.len()).any(|window| window == setting.as_bytes());
    let setting = settings.iter().find(contains)?;
    Some(format!(
        "{} has git run or read other files (`{}`), which may lie here",
        display(config),
        setting.trim_start_matches('[')
    ))
}
