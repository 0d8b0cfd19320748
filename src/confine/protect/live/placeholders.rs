//! Empty placeholders for missing configs and hooks of git directories: a mount needs a file or directory to stand on.
//!
//! They stay: an empty config, an empty directory of hooks, change nothing, and git makes both itself.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};

use super::super::entry::nofollow::{self, join};
use super::super::entry::state::State;
use super::super::error::ProtectError;
use super::super::guard::Guard;
use super::super::naming::class::Role;
use super::super::roots::{Root, absolute};

/// The setting with which git reads `config.worktree` too.
const OF_A_WORK_TREE: &[u8] = b"worktreeconfig";

/// The kind of a placeholder.
#[derive(Debug, Clone, Copy)]
enum PlaceholderKind {
    File,
    Directory,
}

/// Makes, empty, what git would obey in the git directories that no command made and is not there, for mounts to stand on;
/// whether anything was made.
///
/// # Errors
/// Nothing may run where it cannot be covered.
pub(crate) fn create_placeholders(guard: &Guard) -> Result<bool, ProtectError> {
    let is_made_by_commands = |(root, git): &(u16, Vec<u8>)| guard.is_made_by_command(*root, git);
    let has_settings_of_a_work_tree = guard.record().entries.iter().any(|kept| {
        matches!((kept.role, &kept.state), (Role::GitConfig, State::File { content, .. })
            if content.to_ascii_lowercase().windows(OF_A_WORK_TREE.len()).any(|window| window == OF_A_WORK_TREE))
    });
    let mut made_any = false;
    for (root, git) in guard
        .inventory
        .git_directories()
        .into_iter()
        .filter(|location| !is_made_by_commands(location))
    {
        let root_dir = &guard.roots()[usize::from(root)];
        let is_there = |name: &[u8]| nofollow::stat(&root_dir.fd, &join(&git, name)).is_ok();
        // Git does not take it for a git directory.
        if !(is_there(b"HEAD") || is_there(b"objects") && is_there(b"refs")) {
            continue;
        }
        let mut missing: Vec<(&[u8], PlaceholderKind)> = Vec::new();
        // One with a `commondir` has these elsewhere.
        if !is_there(b"commondir") {
            missing.extend([
                (b"config".as_slice(), PlaceholderKind::File),
                (b"hooks".as_slice(), PlaceholderKind::Directory),
            ]);
        }
        if has_settings_of_a_work_tree {
            missing.push((b"config.worktree", PlaceholderKind::File));
        }
        for (name, kind) in missing.into_iter().filter(|(name, _)| !is_there(name)) {
            made_any |= make_one(root_dir, &git, name, kind)?;
        }
    }
    Ok(made_any)
}

fn make_one(root_dir: &Root, git: &[u8], name: &[u8], kind: PlaceholderKind) -> Result<bool, ProtectError> {
    let made = nofollow::open_path(&root_dir.fd, git).and_then(|git| match kind {
        PlaceholderKind::File => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            openat(&git, name, flags, Mode::from_bits_truncate(0o644)).map(drop)
        }
        PlaceholderKind::Directory => mkdirat(&git, name, Mode::from_bits_truncate(0o755)),
    });
    match made {
        Ok(()) => Ok(true),
        // It exists, or no command can create it either.
        Err(Errno::EEXIST | Errno::ENOENT | Errno::EACCES | Errno::EPERM | Errno::EROFS) => Ok(false),
        Err(errno) => Err(ProtectError::io("make", absolute(root_dir, &join(git, name)), errno)),
    }
}
