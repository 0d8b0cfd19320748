//! What a directory means to the walk, and what each name in it is.
//!
//! Two things decide: the [`Place`] (a plain directory, a git directory, inside a tree that is protected
//! whole) and how far the path so far has matched a pattern, held as a node of a small tree of names.
//! Patterns and files protected by path share that tree: the first hang on the node every directory has
//! beside its own, the second on the node of their root.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::names::{NAMES, is_dot_git, is_passed_over};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pattern: u32,
    /// Node of the tree of files protected by path; [`Patterns::NOWHERE`] when none lies below.
    path: u32,
    /// Whether it lies below a directory where names of the table say nothing.
    passed_over: bool,
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

/// How every pattern begins that begins neither with a dot nor with `*`.
const OWN: &[u8] = b"stockade.";
/// The one other name without a dot.
const MISE: &[u8] = b"mise.toml";

/// The tree of protected names.
#[derive(Debug)]
pub(super) struct Patterns {
    nodes: Vec<Node>,
    /// Patterns beginning with `*`: the rest of the name.
    suffixes: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Node {
    children: Vec<(Vec<u8>, u32)>,
    end: End,
}

/// What ends at a node.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing: the way to something longer.
    #[default]
    Way,
    /// A pattern that names this entry.
    Entry,
    /// A pattern that names this entry with everything in it.
    Whole,
}

impl Patterns {
    const ANYWHERE: u32 = 0;
    const NOWHERE: u32 = 1;

    /// The default names.
    pub(super) fn new() -> Self {
        let mut patterns = Self {
            nodes: vec![Node::default(), Node::default()],
            suffixes: Vec::new(),
        };
        for name in NAMES {
            let bytes = name.pattern.as_bytes();
            match bytes.strip_prefix(b"*") {
                Some(suffix) => patterns.suffixes.push(suffix.to_vec()),
                None => match bytes.strip_suffix(b"/**") {
                    Some(directory) => patterns.insert(Self::ANYWHERE, directory, End::Whole),
                    None => patterns.insert(Self::ANYWHERE, bytes, End::Entry),
                },
            }
        }
        patterns
    }

    /// A new root below which files are protected by path.
    pub(super) fn root(&mut self) -> u32 {
        self.push()
    }

    /// Protects the file `path`, relative to the root that [`Patterns::root`] gave.
    pub(super) fn protect(&mut self, root: u32, path: &[u8]) {
        self.insert(root, path, End::Entry);
    }

    /// The context of a root directory whose absolute path is `path`.
    ///
    /// A root may itself lie in a git directory or in a directory of the table, so the names on the way
    /// to it count, and what the directories on that way hold beside it. One that lies in a directory of what others made
    /// is somebody's own work all the same.
    pub(super) fn start(&self, root: u32, path: &Path) -> Context {
        let mut context = Context {
            place: Place::Plain,
            pattern: Self::ANYWHERE,
            path: Self::NOWHERE,
            passed_over: false,
        };
        let mut above = PathBuf::new();
        for component in path.components() {
            if let Component::Normal(name) = component {
                context.passed_over = false;
                context = Markers::look(&above).refine(context);
                if let Some(next) = self.judge(context, name.as_bytes(), Kind::Directory).descend {
                    context = next;
                }
            }
            above.push(component);
        }
        Context {
            path: root,
            passed_over: false,
            ..context
        }
    }

    /// Whether the names alone protect `path` in a directory of this context.
    pub(super) fn covers(&self, context: Context, path: &[u8]) -> bool {
        let mut context = context;
        for name in path.split(|&b| b == b'/').filter(|n| !n.is_empty()) {
            let verdict = self.judge(context, name, Kind::Directory);
            match (verdict.protect, verdict.descend) {
                (None | Some(Role::GitDirectory), Some(next)) => context = next,
                (Some(_), _) => return true,
                (None, None) => return false,
            }
        }
        false
    }

    fn push(&mut self) -> u32 {
        self.nodes.push(Node::default());
        u32::try_from(self.nodes.len() - 1).unwrap_or(Self::NOWHERE)
    }

    fn insert(&mut self, from: u32, path: &[u8], end: End) {
        let mut at = from;
        for name in path.split(|&b| b == b'/').filter(|n| !n.is_empty()) {
            at = if let Some(next) = self.step(at, name) {
                next
            } else {
                let next = self.push();
                self.nodes[at as usize].children.push((name.to_vec(), next));
                next
            };
        }
        self.nodes[at as usize].end = end;
    }

    fn step(&self, from: u32, name: &[u8]) -> Option<u32> {
        let children = &self.nodes[from as usize].children;
        children.iter().find(|(n, _)| n == name).map(|&(_, next)| next)
    }

    /// What the entry `name` of a directory is.
    pub(super) fn judge(&self, context: Context, name: &[u8], kind: Kind) -> Verdict {
        let table = !context.passed_over && context.place != Place::Refs;
        let nested = (context.pattern != Self::ANYWHERE)
            .then(|| self.step(context.pattern, name))
            .flatten();
        // Most names are none of ours, and this is asked of every name of the tree.
        let may_be_ours = table && (name.starts_with(b".") || name.starts_with(OWN) || name == MISE);
        let fresh = may_be_ours.then(|| self.step(Self::ANYWHERE, name)).flatten();
        let pattern = nested.or(fresh);
        let path = self.step(context.path, name);
        let mut protect = None;
        let mut whole = None;
        for node in [pattern, path].into_iter().flatten() {
            match (self.nodes[node as usize].end, kind) {
                (End::Entry, _) => protect = Some(Role::Name),
                (End::Whole, _) => {
                    protect = Some(Role::Name);
                    whole = Some(Role::Name);
                }
                (End::Way, Kind::Symlink) => protect = protect.or(Some(Role::Way)),
                (End::Way, Kind::Directory | Kind::Other | Kind::Special) => {}
            }
        }
        if protect.is_none() && table && self.suffixes.iter().any(|suffix| name.ends_with(suffix)) {
            protect = Some(Role::Name);
        }
        // A directory where a single file is meant: whatever is in it came with it.
        if protect == Some(Role::Name) {
            whole = Some(Role::Name);
        }
        let (role, place) = of_git(context.place, name, kind);
        let place = match (place, whole) {
            (None, _) => None,
            (Some(Place::Plain), Some(role)) => Some(Place::Whole(role)),
            (Some(place), _) => Some(place),
        };
        let descend = match kind {
            Kind::Symlink | Kind::Other | Kind::Special => None,
            Kind::Directory => place.map(|place| Context {
                place,
                pattern: pattern.unwrap_or(Self::ANYWHERE),
                path: path.unwrap_or(Self::NOWHERE),
                passed_over: context.passed_over
                    || (context.place == Place::Plain && place == Place::Plain && is_passed_over(name)),
            }),
        };
        // A name of the table is kept whatever its size.
        let role = role.filter(|role| *role != Role::Unlisted || protect.is_none());
        Verdict {
            protect: role.or(protect),
            descend,
        }
    }
}

/// What git makes of an entry: its role, and its place if it is a directory to walk.
fn of_git(place: Place, name: &[u8], kind: Kind) -> (Option<Role>, Option<Place>) {
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
    fn every_pattern_is_found_by_its_first_letters() {
        for name in NAMES {
            let first = name.pattern.as_bytes();
            assert!(
                first.starts_with(b".") || first.starts_with(b"*") || first.starts_with(OWN) || first == MISE,
                "{}",
                name.pattern
            );
        }
    }

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
