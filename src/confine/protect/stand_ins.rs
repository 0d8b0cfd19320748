//! Empty stand-ins for what git obeys in a git directory, where it is not there: a mount needs something to stand on.
//!
//! They stay: an empty config, an empty directory of hooks, change nothing, and git makes both itself.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};

use super::at::{self, join};
use super::error::ProtectError;
use super::place::Role;
use super::roots::{Root, shown};
use super::snapshot::Guard;
use super::state::State;

/// The setting with which git reads `config.worktree` too.
const OF_A_WORK_TREE: &[u8] = b"worktreeconfig";

/// What stands in.
#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Directory,
}

/// Makes, empty, what git would obey in the git directories that no command made and is not there, for mounts to stand on;
/// whether anything was made.
///
/// # Errors
/// Nothing may run where it cannot be covered.
pub(crate) fn stand_in(guard: &Guard) -> Result<bool, ProtectError> {
    let is_made_by_commands = |(root, git): &(u16, Vec<u8>)| guard.is_made(*root, git);
    let has_settings_of_a_work_tree = guard.record().entries.iter().any(|kept| {
        matches!((kept.role, &kept.state), (Role::GitConfig, State::File { content, .. })
            if content.to_ascii_lowercase().windows(OF_A_WORK_TREE.len()).any(|word| word == OF_A_WORK_TREE))
    });
    let mut is_any = false;
    for (root, git) in guard
        .git_directories()
        .into_iter()
        .filter(|place| !is_made_by_commands(place))
    {
        let holder = &guard.roots()[usize::from(root)];
        let is_there = |name: &[u8]| at::stat(&holder.fd, &join(&git, name)).is_ok();
        // Git would not obey it, nor one that leads to it.
        if !(is_there(b"HEAD") || is_there(b"objects") && is_there(b"refs")) {
            continue;
        }
        let mut missing: Vec<(&[u8], Kind)> = Vec::new();
        // One with a `commondir` has these elsewhere.
        if !is_there(b"commondir") {
            missing.extend([
                (b"config".as_slice(), Kind::File),
                (b"hooks".as_slice(), Kind::Directory),
            ]);
        }
        if has_settings_of_a_work_tree {
            missing.push((b"config.worktree", Kind::File));
        }
        for (name, kind) in missing.into_iter().filter(|(name, _)| !is_there(name)) {
            is_any |= make_one(holder, &git, name, kind)?;
        }
    }
    Ok(is_any)
}

fn make_one(holder: &Root, git: &[u8], name: &[u8], kind: Kind) -> Result<bool, ProtectError> {
    let made = at::open_place(&holder.fd, git).and_then(|git| match kind {
        Kind::File => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            openat(&git, name, flags, Mode::from_bits_truncate(0o644)).map(drop)
        }
        Kind::Directory => mkdirat(&git, name, Mode::from_bits_truncate(0o755)),
    });
    match made {
        Ok(()) => Ok(true),
        // It is there, or a command cannot make it either.
        Err(Errno::EEXIST | Errno::ENOENT | Errno::EACCES | Errno::EPERM | Errno::EROFS) => Ok(false),
        Err(errno) => Err(ProtectError::io("make", shown(holder, &join(git, name)), errno)),
    }
}
