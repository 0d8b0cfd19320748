//! The tree of protected names, and what it makes of each name of a directory.
//!
//! Patterns and files protected by path share the tree: the first hang on the node every directory has beside its own,
//! the second on the node of their root. ASCII case is not looked at, as on a file system that folds it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::super::entry::nofollow::{join, split};
use super::class::{Class, Classification, Context, Kind, Role};
use super::lookup::matches_wildcard;
use super::markers::Markers;
use super::names::{Names, is_third_party, same_name};
use super::vcs::{classify_in, is_judged_text};

/// The tree.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    nodes: Vec<Node>,
    /// For each first byte, in lower case, what of the first node's children begins so. Most names are none of ours, and
    /// every name of the tree is asked about.
    by_first: Vec<Vec<(Vec<u8>, u32)>>,
}

#[derive(Debug, Default, Clone)]
struct Node {
    children: Vec<(Vec<u8>, u32)>,
    /// Names with a `*` in them that end a pattern here.
    wildcards: Vec<Vec<u8>>,
    end: End,
}

/// What ends at a node.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing ends here: a longer pattern goes on.
    #[default]
    LinkOnPath,
    /// A pattern that names this entry.
    Entry,
    /// A pattern that names this entry with everything in it.
    Tree,
}

impl Patterns {
    /// The default names, but for what a config takes off them and adds.
    pub(crate) fn new(names: &Names) -> Self {
        let mut patterns = Self {
            nodes: vec![Node::default(), Node::default()],
            by_first: vec![Vec::new(); 256],
        };
        for pattern in names.patterns() {
            let bytes = pattern.as_bytes();
            let (directory, last) = split(bytes);
            match bytes.strip_suffix(b"/**") {
                Some(directory) => {
                    let node = patterns.insert(Context::ANYWHERE, directory);
                    patterns.nodes[node as usize].end = End::Tree;
                }
                None if last.contains(&b'*') => {
                    let node = patterns.insert(Context::ANYWHERE, directory);
                    patterns.nodes[node as usize].wildcards.push(last.to_vec());
                }
                None => patterns.protect(Context::ANYWHERE, bytes),
            }
        }
        for child in &patterns.nodes[Context::ANYWHERE as usize].children {
            patterns.by_first[first(&child.0)].push(child.clone());
        }
        patterns
    }

    /// A new root below which files are protected by path.
    pub(crate) fn add_root(&mut self) -> u32 {
        self.push()
    }

    /// Protects the file `path`, relative to the root that [`Patterns::add_root`] gave.
    pub(crate) fn protect(&mut self, add_root: u32, path: &[u8]) {
        let node = self.insert(add_root, path);
        let end = &mut self.nodes[node as usize].end;
        if *end == End::LinkOnPath {
            *end = End::Entry;
        }
    }

    /// The context of a root directory whose absolute path is `path`.
    ///
    /// A root may itself lie in a git directory or in a directory of the table, so the names on the way
    /// to it count, and what the directories on that way hold beside it. One that lies in a directory of what others made
    /// is somebody's own work all the same.
    pub(crate) fn root_context(&self, add_root: u32, path: &Path) -> Context {
        let mut context = Context {
            class: Class::Plain,
            pattern: Context::ANYWHERE,
            path: Context::NOWHERE,
            third_party: false,
        };
        let mut above = PathBuf::new();
        for component in path.components() {
            if let Component::Normal(name) = component {
                context.third_party = false;
                context = Markers::of_directory(&above).refine(context, None);
                if let Some(next) = self.classify(context, name.as_bytes(), Kind::Directory).descend {
                    context = next;
                }
            }
            above.push(component);
        }
        Context {
            path: add_root,
            third_party: false,
            ..context
        }
    }

    /// Whether the names alone protect `path` in a directory of this context.
    pub(crate) fn covers(&self, context: Context, path: &[u8]) -> bool {
        let mut context = context;
        for name in path.split(|&b| b == b'/').filter(|n| !n.is_empty()) {
            let classification = self.classify(context, name, Kind::Directory);
            match (classification.protect, classification.descend) {
                (None | Some(Role::GitDirectory), Some(next)) => context = next,
                (Some(_), _) => return true,
                (None, None) => return false,
            }
        }
        false
    }

    /// The protected paths below the entry `name` of a directory.
    pub(crate) fn protected_below(&self, context: Context, name: &[u8]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let nodes = self.nodes_of(context, name);
        let mut todo: Vec<(u32, Vec<u8>)> = nodes.into_iter().flatten().map(|node| (node, Vec::new())).collect();
        while let Some((node, path)) = todo.pop() {
            let node = &self.nodes[node as usize];
            // What ends with a `*` may be called anything: all of what would hold it.
            if node.end == End::LinkOnPath && node.wildcards.is_empty() {
                let longer = |(name, next): &(Vec<u8>, u32)| (*next, join(&path, name));
                todo.extend(node.children.iter().map(longer));
            } else {
                found.push(path);
            }
        }
        found
    }

    fn push(&mut self) -> u32 {
        self.nodes.push(Node::default());
        u32::try_from(self.nodes.len() - 1).unwrap_or(Context::NOWHERE)
    }

    /// The node of a path, made where there is none.
    fn insert(&mut self, from: u32, path: &[u8]) -> u32 {
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
        at
    }

    fn step(&self, from: u32, name: &[u8]) -> Option<u32> {
        let children = &self.nodes[from as usize].children;
        children.iter().find(|(n, _)| same_name(n, name)).map(|&(_, next)| next)
    }

    /// The nodes of an entry: of a pattern that goes on, of one that begins, and of a protected path.
    fn nodes_of(&self, context: Context, name: &[u8]) -> [Option<u32>; 3] {
        let nested = (context.pattern != Context::ANYWHERE)
            .then(|| self.step(context.pattern, name))
            .flatten();
        let fresh = (!ignores_names(context))
            .then(|| self.by_first[first(name)].iter().find(|(n, _)| same_name(n, name)))
            .flatten()
            .map(|&(_, node)| node);
        [nested, fresh, self.step(context.path, name)]
    }

    /// What the entry `name` of a directory is.
    pub(crate) fn classify(&self, context: Context, name: &[u8], kind: Kind) -> Classification {
        let nodes = self.nodes_of(context, name);
        let [nested, fresh, path] = nodes;
        let mut protect = None;
        for node in nodes.into_iter().flatten() {
            match (self.nodes[node as usize].end, kind) {
                (End::Entry | End::Tree, _) => protect = Some(Role::Name),
                (End::LinkOnPath, Kind::Symlink) => protect = protect.or(Some(Role::LinkOnPath)),
                (End::LinkOnPath, Kind::Directory | Kind::Other | Kind::Special) => {}
            }
        }
        let says = |node: &u32| *node != Context::ANYWHERE || !ignores_names(context);
        let like = |node: u32| {
            self.nodes[node as usize]
                .wildcards
                .iter()
                .any(|want| matches_wildcard(want, name))
        };
        if protect != Some(Role::Name) && [context.pattern, Context::ANYWHERE].into_iter().filter(says).any(like) {
            protect = Some(Role::Name);
        }
        // Also a directory in the place of a protected file, with all it holds.
        let protected_role = protect.filter(|role| *role == Role::Name);
        let (role, class) = classify_in(context.class, name, kind);
        let class = match (class, protected_role) {
            (None, _) => None,
            (Some(Class::Plain | Class::Data), Some(role)) => Some(Class::Protected(role)),
            (Some(class), _) => Some(class),
        };
        let descend = match kind {
            Kind::Symlink | Kind::Other | Kind::Special => None,
            Kind::Directory => class.map(|class| Context {
                class,
                pattern: nested.or(fresh).unwrap_or(Context::ANYWHERE),
                path: path.unwrap_or(Context::NOWHERE),
                third_party: context.third_party
                    || (context.class == Class::Plain && class == Class::Plain && is_third_party(name)),
            }),
        };
        let is_by_path = path.is_some_and(|node| self.nodes[node as usize].end != End::LinkOnPath);
        if kind == Kind::Other && protect == Some(Role::Name) && is_judged_text(name) && !is_by_path {
            protect = Some(Role::JudgedText);
        }
        // A name of the table is kept whatever its size, and what is protected by its path whatever it says.
        let is_overridden =
            |role: Role| (role == Role::Unlisted && protect.is_some()) || (role == Role::JudgedText && is_by_path);
        let role = role.filter(|role| !is_overridden(*role));
        Classification {
            protect: role.or(protect),
            descend,
        }
    }
}

/// Whether names of the table say nothing in the directory: what lies there others made, or a person's branches are called so.
fn ignores_names(context: Context) -> bool {
    context.third_party || context.class == Class::Refs
}

/// The first byte of a name, in lower case.
fn first(name: &[u8]) -> usize {
    usize::from(name.first().map_or(0, u8::to_ascii_lowercase))
}
