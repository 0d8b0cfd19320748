//! Protected files as a trusted commit has them: what git put there for a branch that the host knows may stay.
//!
//! A command that checks out, rebases or merges changes tracked files, and some have protected names. Putting those back would
//! leave the old ones beside the new commit, and the next `git commit -a` would revert them. So a file may stay that
//! is, to the byte and at its path, in a commit that is reachable from a ref which no command moved (`tips`, `refs`). The
//! objects between are the agent's to write, so every one of them must hash to its name (`id`, `objects`, `pack`, `reach`),
//! and they are read by a process that can do nothing else (`reader`).
//!
//! Only files and directories of the table of names, in the work tree of a repository that was there before the command and
//! whose git directory lies in a root. Never links, never Stockade's own files or what is protected by its path, and nothing in a git
//! directory. What is not proven is put back; where HEAD then has another version than what is there, that is told.

mod id;
mod kind;
mod objects;
mod pack;
mod reach;
mod reader;
mod refs;
#[cfg(test)]
mod tests;
mod tips;
mod trees;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::entry::nofollow::{self, is_within, join, split};
use super::entry::state::{Found, LinkCount, State, observe};
use super::naming::class::Role;
use super::naming::lookup::protected_name;
use super::naming::names::is_dot_git;
use super::naming::vcs::is_judged_text;
use super::record::Record;
use super::referenced::repository::without_line_end;
use super::referenced::resolve::normalize;
use super::roots::{Root, absolute};
use id::{Algorithm, Id};
use reach::{Answer, Current, Query};
pub(super) use tips::Tips;

/// Longest file that is compared, in bytes.
pub(super) const MAX_TRACKED: u64 = 1 << 20;
/// How often a tree that does not come to rest is asked about.
const MAX_ATTEMPTS: u8 = 8;
/// Paths that are asked about at once.
const MAX_QUERIES: usize = 4096;

/// What is known of the paths of one settling.
#[derive(Debug)]
pub(super) struct Tracked<'a> {
    roots: &'a [Root],
    record: &'a Record,
    tips: Option<&'a Tips>,
    known: HashMap<(u16, Vec<u8>), (Found, Answer)>,
    /// The `.git` files of further work trees that a command made, as far as they lead to where git leads them.
    new_links: BTreeMap<(u16, Vec<u8>), State>,
    attempts: u8,
    /// Hooks in work trees that a command made: what a commit of the host's has there may stay, whatever it is called.
    hooks: Vec<(u16, Vec<u8>)>,
}

/// Where a path is in a work tree.
struct TreePath {
    /// The number of its repository.
    repository: usize,
    /// The ref that is HEAD in this work tree.
    head: Vec<u8>,
    path: Vec<Vec<u8>>,
}

/// A path and what was found there.
struct PathQuery {
    root: u16,
    path: Vec<u8>,
    observed: Found,
    location: TreePath,
    before: Option<State>,
}

impl<'a> Tracked<'a> {
    /// Without `tips` nothing may stay.
    pub(super) fn new(roots: &'a [Root], record: &'a Record, tips: Option<&'a Tips>) -> Self {
        Self {
            roots,
            record,
            tips,
            known: HashMap::new(),
            new_links: BTreeMap::new(),
            attempts: 0,
            hooks: Vec::new(),
        }
    }

    /// Notes hooks in work trees that a command made.
    pub(super) fn note_hooks(&mut self, hooks: Vec<(u16, Vec<u8>)>) {
        self.hooks = hooks;
        self.known.clear();
        self.attempts = 0;
    }

    /// Whether what a kept entry has become may stay.
    pub(super) fn may_stay(&mut self, root: u16, path: &[u8], role: Role, observed: &Found) -> bool {
        let entries = &self.record.entries;
        let all = entries
            .iter()
            .map(|kept| (kept.root, kept.path.as_slice(), kept.role, Some(&kept.state)));
        self.is_proven(root, path, role, observed, all)
    }

    /// Whether a new entry, one of these, may stay.
    pub(super) fn may_stay_new<'n>(
        &mut self,
        root: u16,
        path: &[u8],
        role: Role,
        observed: &Found,
        new: impl Iterator<Item = (u16, &'n [u8], Role)>,
    ) -> bool {
        self.is_proven(
            root,
            path,
            role,
            observed,
            new.map(|(root, path, role)| (root, path, role, None)),
        )
    }

    /// Whether HEAD has something there that is not what was put back.
    pub(super) fn is_other_in_head(&self, root: u16, path: &[u8]) -> bool {
        self.known
            .get(&(root, path.to_vec()))
            .is_some_and(|(_, answer)| answer.is_other_in_head)
    }

    fn is_proven<'n>(
        &mut self,
        root: u16,
        path: &[u8],
        role: Role,
        observed: &Found,
        all: impl Iterator<Item = (u16, &'n [u8], Role, Option<&'n State>)>,
    ) -> bool {
        if !may_be_tracked(role, path) || self.tips.is_none_or(|tips| tips.repositories.is_empty()) {
            return false;
        }
        let key = (root, path.to_vec());
        if self.known.get(&key).is_none_or(|(known, _)| known != observed) && self.attempts < MAX_ATTEMPTS {
            self.attempts += 1;
            // One process answers for all that has changed by now.
            self.query_all(all);
        }
        self.known
            .get(&key)
            .is_some_and(|(known, answer)| known == observed && answer.may_stay)
    }

    fn query_all<'n>(&mut self, all: impl Iterator<Item = (u16, &'n [u8], Role, Option<&'n State>)>) {
        let mut queries: Vec<PathQuery> = Vec::new();
        for (root, path, _, before) in all.filter(|(_, path, role, _)| may_be_tracked(*role, path)) {
            let Some(root_dir) = self.roots.get(usize::from(root)) else {
                continue;
            };
            let observed = observe(&root_dir.fd, path, MAX_TRACKED);
            if matches!((&observed, before), (Found::Present(now), Some(before)) if now == before) {
                continue;
            }
            match self.location(root, path).filter(|_| queries.len() < MAX_QUERIES) {
                Some(location) => queries.push(PathQuery {
                    root,
                    path: path.to_vec(),
                    observed,
                    location,
                    before: before.cloned(),
                }),
                // No further query is needed.
                None => {
                    self.known.insert((root, path.to_vec()), (observed, Answer::default()));
                }
            }
        }
        queries
            .sort_by(|a, b| (a.location.repository, &a.location.head).cmp(&(b.location.repository, &b.location.head)));
        let mut remaining = queries;
        while let Some(first) = remaining.first() {
            let group = (first.location.repository, first.location.head.clone());
            let end =
                remaining.partition_point(|one| (one.location.repository, &one.location.head) <= (group.0, &group.1));
            let behind = remaining.split_off(end);
            let answers = self
                .answers(group.0, &group.1, &remaining)
                .unwrap_or_else(|| vec![Answer::default(); remaining.len()]);
            for (one, answer) in remaining.into_iter().zip(answers) {
                self.known.insert((one.root, one.path), (one.observed, answer));
            }
            remaining = behind;
        }
    }

    /// What the objects of a repository say of paths in one of its work trees.
    fn answers(&self, repository: usize, head: &[u8], queries: &[PathQuery]) -> Option<Vec<Answer>> {
        let repository = self.tips?.repositories.get(repository)?;
        let (root, path) = repository.location.as_ref()?;
        let git = nofollow::open_directory(&self.roots.get(usize::from(*root))?.fd, path).ok()?;
        let absolute = absolute(self.roots.get(usize::from(*root))?, path);
        if refs::key(&git, absolute.as_os_str().as_bytes()).as_ref() != Some(&repository.key) {
            return None;
        }
        let objects = nofollow::open_directory(&git, b"objects").ok()?;
        let now = refs::read(&git, repository.refs());
        let head = now.as_ref().and_then(|now| refs::find(now, head)?.value);
        let algorithm = repository.trusted().last().copied().or(head)?.algorithm();
        let alike = |id: &Id| id.algorithm() == algorithm;
        let tips: Vec<Id> = repository.trusted().iter().copied().filter(alike).collect();
        let queries_sent: Vec<Query> = queries.iter().map(|one| query(one, algorithm)).collect();
        reader::run(objects, &tips, head.filter(alike), &queries_sent)
    }

    /// The work tree that a path is in, if it may stay there at all.
    fn location(&self, root: u16, path: &[u8]) -> Option<TreePath> {
        let repositories = &self.tips?.repositories;
        let root_dir = self.roots.get(usize::from(root))?;
        let is_hook = self
            .hooks
            .iter()
            .any(|(at, hooks)| *at == root && is_within(path, hooks));
        if !is_hook {
            protected_name(Path::new(OsStr::from_bytes(path)))?;
        }
        let is_own = |name: &[u8]| {
            let name = name.to_ascii_lowercase();
            name.starts_with(b"stockade.") || name.starts_with(b".stockade")
        };
        if path
            .split(|byte| *byte == b'/')
            .any(|name| is_dot_git(name) || is_own(name))
        {
            return None;
        }
        let absolute = absolute(root_dir, path);
        let absolute = absolute.as_os_str().as_bytes();
        // What is protected by its path, and whatever holds it.
        if self
            .record
            .extra
            .iter()
            .any(|extra| is_within(absolute, extra) || is_within(extra, absolute))
        {
            return None;
        }
        let at = |git: &[u8], number: u16| {
            let is = |location: &(u16, Vec<u8>)| location.0 == number && location.1 == git;
            repositories
                .iter()
                .position(|one| one.location.as_ref().is_some_and(is))
        };
        let mut top = split(path).0;
        loop {
            // What lies in a git directory is in no work tree.
            if at(top, root).is_some() {
                return None;
            }
            let entry = join(top, b".git");
            let found = match at(&entry, root) {
                Some(repository) => Some((repository, b"HEAD".to_vec())),
                None => match self.link(root, &entry) {
                    Some(link) => {
                        let (number, git) = self.git_directory_named_by(root, top, link)?;
                        let further = self.common(number, &git);
                        Some(match further {
                            Some((common, head)) => (at(&common, number)?, head),
                            None => (at(&git, number)?, b"HEAD".to_vec()),
                        })
                    }
                    None => None,
                },
            };
            if let Some((repository, head)) = found {
                let below = path.get(top.len()..)?;
                let names = below.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
                return Some(TreePath {
                    repository,
                    head,
                    path: names.map(<[u8]>::to_vec).collect(),
                });
            }
            if top.is_empty() {
                return None;
            }
            top = split(top).0;
        }
    }

    /// The git directory that a `.git` file named before the command.
    fn git_directory_named_by(&self, root: u16, top: &[u8], link: &State) -> Option<(u16, Vec<u8>)> {
        let State::File { content, .. } = link else {
            return None;
        };
        let target = without_line_end(content.strip_prefix(b"gitdir: ")?);
        let from = absolute(self.roots.get(usize::from(root))?, top);
        let path = normalize(&from.join(OsStr::from_bytes(target)));
        let mut roots = self.roots.iter().zip(0_u16..);
        roots.find_map(|(root, number)| {
            let below = path.strip_prefix(&root.path).ok()?;
            Some((number, below.as_os_str().as_bytes().to_vec()))
        })
    }

    /// Of the git directory of a further work tree: the one whose refs and objects it shares, and which of its refs is HEAD.
    fn common(&self, root: u16, git: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let state = self.link(root, &join(git, b"commondir"))?;
        let (worktrees, name) = split(git);
        let (common, word) = split(worktrees);
        let is_usual = matches!(state, State::File { content, .. } if content == b"../..\n") && word == b"worktrees";
        is_usual.then(|| (common.to_vec(), [b"worktrees/", name, b"/HEAD"].concat()))
    }
}

/// Whether git may have put it there for a commit.
fn may_be_tracked(role: Role, path: &[u8]) -> bool {
    role == Role::Name || (role == Role::JudgedText && is_judged_text(split(path).1))
}

/// The query for a path in a repository with this hash.
fn query(queries: &PathQuery, algorithm: Algorithm) -> Query {
    let blob = |content: &[u8]| algorithm.name("blob", content);
    // By another name somebody could write to it. Its mode is set where it is found to stay.
    let is_plain = |links: &LinkCount| !links.exceeds(LinkCount::default());
    let now = match (&queries.observed, &queries.before) {
        (
            Found::Present(State::File {
                mode, links, content, ..
            }),
            None | Some(State::File { .. }),
        ) if is_plain(links) => blob(content).map(|blob| Current::File {
            blob,
            is_executable: mode & 0o100 != 0,
        }),
        (Found::Present(State::Directory { .. }), None | Some(State::Directory { .. })) => Some(Current::Directory),
        (Found::Absent, Some(State::File { .. } | State::Directory { .. })) => Some(Current::Absent),
        (Found::Absent | Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_), _) => None,
    };
    let (before, is_file) = match &queries.before {
        Some(State::File { content, .. }) => (blob(content), true),
        None => (
            None,
            !matches!(queries.observed, Found::Present(State::Directory { .. })),
        ),
        Some(State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Ignored) => (None, false),
    };
    Query {
        path: queries.location.path.clone(),
        now: now.unwrap_or(Current::Other),
        before,
        is_file,
    }
}
