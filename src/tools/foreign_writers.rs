//! Who else could put something in a place.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User};

use crate::policy::AbsPath;

const STICKY: u32 = 0o1000;

/// Why somebody other than this user and root could have something else found there, if one could: by the place itself or a
/// directory on the way.
pub(crate) fn objection(path: &AbsPath, user: Uid) -> Option<String> {
    path.ancestors().find_map(|directory| {
        let found = match std::fs::symlink_metadata(&directory) {
            Ok(found) => found,
            Err(error) => return Some(format!("{directory} cannot be looked at: {error}")),
        };
        if ![0, user.as_raw()].contains(&found.uid()) {
            return Some(format!("{directory} belongs to another user (uid {})", found.uid()));
        }
        match has_list(directory.as_path()) {
            Ok(false) => {}
            // Its group bits are but a bound of what the list gives.
            Ok(true) => {
                return Some(format!(
                    "{directory} has an access list, which may let others write there"
                ));
            }
            Err(error) => return Some(format!("the access list of {directory} cannot be read: {error}")),
        }
        let sticky = found.is_dir() && found.mode() & STICKY != 0 && directory != *path;
        let group = found.mode() & 0o020 != 0 && !is_alone(Gid::from_raw(found.gid()), user);
        let everybody = found.mode() & 0o002 != 0;
        ((group || everybody) && !sticky)
            .then(|| format!("others can write {directory}, and so put something else there"))
    })
}

/// Whether it has an access list (acl(5)), and not its mode alone.
fn has_list(directory: &Path) -> io::Result<bool> {
    match xattr::get(directory, "system.posix_acl_access") {
        Ok(list) => Ok(list.is_some()),
        // A file system without lists.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a group is a user's own, as many systems give each user one; root's counts for everybody.
fn is_alone(group: Gid, user: Uid) -> bool {
    let (Ok(Some(group)), Ok(Some(user))) = (Group::from_gid(group), User::from_uid(user)) else {
        return group.as_raw() == 0;
    };
    group.gid.as_raw() == 0
        || (group.gid == user.gid && group.name == user.name && group.mem.iter().all(|name| *name == user.name))
}
