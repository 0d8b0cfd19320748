//! Writable roots in which root writes nothing.
//!
//! In the sandbox root has no capabilities, so the modes of files bind it like anybody. In the directory of another user, as a
//! checkout that a container has mounted is, it may then read what others may, and change nothing.

use std::os::unix::fs::MetadataExt;

use nix::unistd::{Gid, Uid, User, getegid, geteuid, getgroups};

use crate::policy::path::escape;
use crate::policy::{AbsPath, Identity, Policy, Right};

/// The line about the first such root, and how many more there are; `None` where there is none.
pub fn unwritable_root_warning(policy: &Policy) -> Option<String> {
    if !geteuid().is_root() {
        return None;
    }
    let mut groups: Vec<u32> = getgroups().unwrap_or_default().into_iter().map(Gid::as_raw).collect();
    groups.push(getegid().as_raw());
    let owner = |path: &AbsPath, known: Identity| {
        let found = std::fs::symlink_metadata(path.as_path()).ok()?;
        let is_same = (found.dev(), found.ino()) == (known.device, known.inode);
        let bits = match (found.uid(), groups.contains(&found.gid())) {
            (0, _) => 0o200,
            (_, true) => 0o020,
            (_, false) => 0o002,
        };
        (is_same && found.mode() & bits == 0).then(|| (found.uid(), found.gid()))
    };
    let writable = policy.roots.iter().filter(|root| root.rights.has(Right::Write));
    let mut closed = writable.filter_map(|root| Some((&root.path, owner(&root.path, root.identity)?)));
    let (path, (uid, gid)) = closed.next()?;
    let more = closed.count();
    let more = if more > 0 {
        format!(" (and {more} more roots)")
    } else {
        String::new()
    };
    let what = match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!(
            "start it as that user (`runuser -u {} -- stockade …`, `docker run --user {uid}:{gid} …`)",
            escape(user.name.as_bytes())
        ),
        // Without an entry there is no home, and no place for the journal.
        Ok(None) | Err(_) => format!("make that user (`useradd --create-home --uid {uid} NAME`) and start it as them"),
    };
    Some(format!(
        "{path}{more} belongs to user {uid}, and you are root: in the sandbox root has no rights over the files of others, so nothing \
         can be written there\n  → {what}, or `chown` the directory"
    ))
}
