//! What a directory means to the walk, and what each name in it is.
//!
//! Two things decide: the [`Class`] (a plain directory, a git directory, inside a tree that is protected
//! whole) and how far the path so far has matched a pattern, held as a node of a small tree of names ([`super::patterns`]).

/// What a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Class {
    /// Nothing special.
    Plain,
    /// What git accepts as a git directory, or a `.git` that may become one.
    Git,
    /// `modules` of a git directory: git directories at any depth.
    Modules,
    /// `worktrees` of a git directory: its children are git directories.
    Worktrees,
    /// Protected with everything below it; the role its members have.
    Protected(Role),
    /// A directory of version control, of which it is known what is data.
    Listed(Layout),
    /// Nothing but data of version control, at any depth.
    Data,
    /// The same, by names that a person chooses: a branch may be called `mise.toml`.
    Refs,
}

/// A directory with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Layout {
    /// A git directory.
    Git,
    /// The state of a rebase, merge or cherry-pick in progress.
    Steps,
    /// `branches` and `remotes`, the old places for remotes: nothing new may appear here.
    Remotes,
    /// `.hg` or `.sl`, or `sl` in a git directory.
    Mercurial,
    /// `.jj`.
    Jujutsu,
    /// `.jj/repo`.
    JujutsuRepository,
    /// `.jj/repo/store`.
    JujutsuStore,
}

/// What a protected entry is to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Role {
    /// A directory called `.git`.
    GitDirectory,
    /// Anything else called `.git`: a file that names a git directory, a symlink.
    GitLink,
    /// `config` or `config.worktree` of a git directory.
    GitConfig,
    /// `commondir` of a git directory.
    GitCommon,
    /// `gitdir` of a git directory: the path back to its work tree.
    GitBacklink,
    /// The `hooks` of a git directory, and what is in it.
    GitHook,
    /// A symlink in the place of a directory above something protected.
    LinkOnPath,
    /// A name of the table, or a member of a directory of the table.
    Name,
    /// Deeper than the walk goes.
    TooDeep,
    /// A text of version control that may order commands.
    JudgedText,
    /// An entry in a directory of version control that is not on its list of data.
    Unlisted,
}

/// What an entry is by the directory listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Kind {
    Directory,
    Symlink,
    /// A regular file, or it is not known.
    Other,
    /// A pipe, socket or device.
    Special,
}

/// What the walk does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classification {
    /// Protected, and as what.
    pub(crate) protect: Option<Role>,
    /// To be walked, and as what.
    pub(crate) descend: Option<Context>,
}

/// The class of a directory, and how far patterns have matched its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Context {
    pub(crate) class: Class,
    /// Node of the pattern tree; [`Context::ANYWHERE`] where no pattern has begun to match.
    pub(crate) pattern: u32,
    /// Node of the tree of files protected by path; [`Context::NOWHERE`] when none lies below.
    pub(crate) path: u32,
    /// Whether it lies below a directory where names of the table say nothing.
    pub(crate) third_party: bool,
}

impl Context {
    /// The node that every directory has beside its own.
    pub(crate) const ANYWHERE: u32 = 0;
    /// The node that nothing hangs on.
    pub(crate) const NOWHERE: u32 = 1;

    /// Whether a pattern or a protected path may still match below the directory.
    pub(crate) fn is_on_path(self) -> bool {
        self.pattern != Self::ANYWHERE || self.path != Self::NOWHERE
    }

    /// The same context, protected with everything below it.
    pub(crate) fn protected(self) -> Self {
        let class = match self.class {
            Class::Protected(_) => self.class,
            Class::Plain
            | Class::Git
            | Class::Modules
            | Class::Worktrees
            | Class::Listed(_)
            | Class::Data
            | Class::Refs => Class::Protected(Role::Name),
        };
        Self { class, ..self }
    }
}
