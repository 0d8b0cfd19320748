//! What a directory means to the walk, and what each name in it is.
//!
//! Two things decide: the [`Place`] (a plain directory, a git directory, inside a tree that is protected
//! whole) and how far the path so far has matched a pattern, held as a node of a small tree of names ([`Patterns`]).

use std::path::Path;

use super::names::is_dot_git;
use super::patterns::Patterns;
use super::repository::there;
use super::vcs::{self, List};

/// What a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Place {
    /// Nothing special.
    Plain,
    /// What git accepts as a git directory, or a `.git` that may become one.
    Git,
    /// `modules` of a git directory: git directories at any depth.
    Modules,
    /// `worktrees` of a git directory: its children are git directories.
    Worktrees,
    /// Protected with everything below it; the role its members have.
    Whole(Role),
    /// A directory of version control, of which it is known what is data.
    Listed(List),
    /// Nothing but data of version control, at any depth.
    Data,
    /// The same, by names that a person chooses: a branch may be called `mise.toml`.
    Refs,
}

/// What a protected entry is to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Role {
    /// A directory called `.git`.
    GitDirectory,
    /// Anything else called `.git`: a file that names a git directory, a symlink.
    GitLink,
    /// `config` or `config.worktree` of a git directory.
    GitConfig,
    /// `commondir` of a git directory.
    GitCommon,
    /// `gitdir` of a git directory: the way back to a worktree.
    GitBack,
    /// The `hooks` of a git directory, and what is in it.
    GitHook,
    /// A symlink where the way to something protected needs a directory.
    Way,
    /// A name of the table, or a member of a directory of the table.
    Name,
    /// Deeper than the walk goes.
    TooDeep,
    /// A text of version control that is data or orders.
    Judged,
    /// What version control does not write as data in a directory of its own.
    Unlisted,
}

/// What an entry is by the directory listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Kind {
    Directory,
    Symlink,
    /// A regular file, or it is not known.
    Other,
    /// A pipe, socket or device.
    Special,
}

/// What the walk does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Protected, and as what.
    pub(super) protect: Option<Role>,
    /// To be walked, and as what.
    pub(super) descend: Option<Context>,
}

/// A directory's place and how far patterns have matched on the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Context {
    pub(super) place: Place,
    /// Node of the pattern tree; [`Patterns::ANYWHERE`] when no pattern is under way.
    pub(super) pattern: u32,
    /// Node of the tree of files protected by path; [`Patterns::NOWHERE`] when none lies below.
    pub(super) path: u32,
    /// Whether it lies below a directory where names of the table say nothing.
    pub(super) passed_over: bool,
}

impl Context {
    /// Whether the directory lies on the way to something that a pattern or path below it names.
    pub(super) fn is_under_way(self) -> bool {
        self.pattern != Patterns::ANYWHERE || self.path != Patterns::NOWHERE
    }

    /// The same, protected with everything below it.
    pub(super) fn whole(self) -> Self {
        let place = match self.place {
            Place::Whole(_) => self.place,
            Place::Plain
            | Place::Git
            | Place::Modules
            | Place::Worktrees
            | Place::Listed(_)
            | Place::Data
            | Place::Refs => Place::Whole(Role::Name),
        };
        Self { place, ..self }
    }
}

/// What git makes of an entry: its role, and its place if it is a directory to walk.
pub(super) fn of_git(place: Place, name: &[u8], kind: Kind) -> (Option<Role>, Option<Place>) {
    if let Place::Whole(role) = place {
        return (Some(role), Some(place));
    }
    if is_dot_git(name) {
        return match kind {
            Kind::Directory => (Some(Role::GitDirectory), Some(Place::Git)),
            Kind::Symlink | Kind::Other | Kind::Special => (Some(Role::GitLink), None),
        };
    }
    if let (Some(list), Kind::Directory) = (vcs::list_of(name), kind) {
        return (None, Some(Place::Listed(list)));
    }
    let file = |role| match kind {
        Kind::Directory => (Some(role), Some(Place::Whole(role))),
        Kind::Symlink | Kind::Other | Kind::Special => (Some(role), None),
    };
    let directory = |place| match kind {
        Kind::Directory => (None, Some(place)),
        Kind::Symlink => (Some(Role::Way), None),
        Kind::Other | Kind::Special => (None, None),
    };
    match (place, name) {
        (Place::Git, b"config" | b"config.worktree") => file(Role::GitConfig),
        (Place::Git, b"commondir") => file(Role::GitCommon),
        (Place::Git, b"gitdir") => file(Role::GitBack),
        (Place::Git, b"hooks") => file(Role::GitHook),
        (Place::Git, b"modules") => directory(Place::Modules),
        (Place::Git, b"worktrees") => directory(Place::Worktrees),
        // A submodule may be called `config`; only what could become a git directory's file counts here.
        (Place::Modules, b"config" | b"config.worktree") if kind != Kind::Directory => file(Role::GitConfig),
        (Place::Modules, b"commondir") if kind != Kind::Directory => file(Role::GitCommon),
        (Place::Modules, b"gitdir") if kind != Kind::Directory => file(Role::GitBack),
        (Place::Modules, _) => (None, Some(Place::Modules)),
        (Place::Worktrees, _) => (None, Some(Place::Git)),
        (Place::Git, _) => vcs::judge(List::Git, name, kind),
        (Place::Listed(list), _) => vcs::judge(list, name, kind),
        (Place::Data | Place::Refs, _) => vcs::judge_data(place, kind),
        (Place::Plain | Place::Whole(_), _) => (None, Some(Place::Plain)),
    }
}

/// Which of the names by which git knows a git directory have been seen in a listing.
#[derive(Debug, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four names, each seen or not")]
pub(super) struct Markers {
    head: bool,
    objects: bool,
    refs: bool,
    common: bool,
}

impl Markers {
    /// What a directory holds that is not listed. What cannot be looked at may be there: at worst hooks and
    /// settings stay as they are where git would run none.
    pub(super) fn look(directory: &Path) -> Self {
        let mut markers = Self::default();
        // Without the first the others decide nothing, and most directories are not asked for more.
        for name in ["HEAD", "commondir", "objects", "refs"] {
            if !matches!(there(&directory.join(name)), Ok(None)) {
                markers.see(name.as_bytes());
            } else if !markers.head {
                break;
            }
        }
        markers
    }

    /// Notes a name.
    pub(super) fn see(&mut self, name: &[u8]) {
        match name {
            b"HEAD" => self.head = true,
            b"objects" => self.objects = true,
            b"refs" => self.refs = true,
            b"commondir" => self.common = true,
            _ => {}
        }
    }

    /// Whether git would accept the directory: it asks for a HEAD, and for objects and refs either here
    /// or where `commondir` points. Their kinds are not looked at: git accepts more kinds than one.
    pub(super) fn is_git_directory(self) -> bool {
        self.head && (self.common || (self.objects && self.refs))
    }

    /// The context the directory has, given what it holds.
    pub(super) fn refine(self, context: Context) -> Context {
        match context.place {
            // It takes three empty files to make any directory a git directory, and nothing keeps a person from working below it.
            Place::Plain | Place::Modules | Place::Data | Place::Refs if self.is_git_directory() => Context {
                place: Place::Git,
                ..context
            },
            Place::Plain
            | Place::Modules
            | Place::Git
            | Place::Worktrees
            | Place::Whole(_)
            | Place::Listed(_)
            | Place::Data
            | Place::Refs => context,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_directory_is_known_by_what_git_asks_for() {
        let holds = |names: &[&str]| {
            let mut markers = Markers::default();
            for name in names {
                markers.see(name.as_bytes());
            }
            markers.is_git_directory()
        };
        assert!(holds(&["HEAD", "objects", "refs"]));
        assert!(holds(&["HEAD", "commondir"]));
        assert!(!holds(&["objects", "refs", "config"]));
        assert!(!holds(&["HEAD", "refs"]));
    }
}
