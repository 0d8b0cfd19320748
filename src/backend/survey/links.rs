//! The links of system directories that lead to what is granted: `/bin`, `/lib64`, `/etc/localtime`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::policy::AbsPath;

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What stands in it.
    pub target: OsString,
    /// Where it leads, every link on the way followed.
    pub leads_to: AbsPath,
}

/// The links in one directory, if nobody but its system's owner can put any there.
///
/// A directory that cannot be looked at has no links: fewer are shown.
pub fn links_in(directory: &AbsPath) -> Vec<(AbsPath, Link)> {
    if !directory.ancestors().all(|path| is_the_systems(&path)) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(directory.as_path()) else {
        return Vec::new();
    };
    let kinds = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)));
    let kinds: HashMap<OsString, FileType> = kinds.collect();
    let links = kinds.iter().filter(|(_, kind)| kind.is_symlink());
    let found = links.filter_map(|(name, _)| {
        let path = directory.child(name)?;
        let target = fs::read_link(path.as_path()).ok()?.into_os_string();
        // A directory of libraries has a thousand links to what lies beside them. No link is on the way to here.
        let leads_to = match kinds.get(&target) {
            Some(kind) if !kind.is_symlink() => directory.child(&target)?,
            Some(_) | None => end_of(&path)?,
        };
        Some((path, Link { target, leads_to }))
    });
    found.collect()
}

/// The link at this path, if it leads somewhere.
pub fn link_at(path: &AbsPath) -> Option<Link> {
    let target = fs::read_link(path.as_path()).ok()?.into_os_string();
    let leads_to = end_of(path)?;
    Some(Link { target, leads_to })
}

fn end_of(path: &AbsPath) -> Option<AbsPath> {
    AbsPath::new(fs::canonicalize(path.as_path()).ok()?).ok()
}

/// Whether the directory belongs to whom `/` belongs to, and nobody else may write it.
fn is_the_systems(directory: &AbsPath) -> bool {
    let (Ok(root), Ok(metadata)) = (fs::symlink_metadata("/"), fs::symlink_metadata(directory.as_path())) else {
        return false;
    };
    metadata.is_dir() && metadata.uid() == root.uid() && metadata.permissions().mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_that_others_may_write_has_no_links_worth_showing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = AbsPath::new(scratch.path().canonicalize().unwrap()).unwrap();
        symlink("/usr", scratch.path().join("link")).unwrap();
        // Some directory above it, /tmp, is everybody's.
        assert_eq!(links_in(&path), []);
    }

    #[test]
    fn each_link_of_the_system_leads_where_the_kernel_says() {
        for directory in ["/", "/usr/lib/x86_64-linux-gnu", "/usr/bin", "/etc", "/usr/lib"] {
            let directory = AbsPath::new(directory).unwrap();
            let mut found = links_in(&directory);
            let Ok(entries) = fs::read_dir(directory.as_path()) else {
                continue;
            };
            let mut expected: Vec<(AbsPath, Link)> = entries
                .filter_map(|entry| {
                    let path = directory.child(entry.ok()?.file_name())?;
                    Some((path.clone(), link_at(&path)?))
                })
                .collect();
            found.sort_by(|a, b| a.0.cmp(&b.0));
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(found, expected, "{directory}");
        }
    }

    #[test]
    fn links_of_the_root_directory_are_resolved() {
        let links = links_in(&AbsPath::root());
        for (path, link) in &links {
            assert_eq!(fs::read_link(path.as_path()).unwrap().as_os_str(), link.target);
            assert!(link.leads_to.as_path().exists());
        }
    }
}
