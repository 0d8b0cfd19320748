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
use std::path::{Component, Path, PathBuf};

use super::at::{self, is_within, join, split};
use super::lookup::protected_name;
use super::names::is_dot_git;
use super::place::Role;
use super::record::Record;
use super::roots::{Root, shown};
use super::state::{Names, Seen, State, glance};
use super::vcs::is_judged_text;
use id::{Algorithm, Id};
use reach::{Answer, Now, Question};
pub(super) use tips::Tips;

/// Longest file that is compared, in bytes.
pub(super) const LONGEST: u64 = 1 << 20;
/// How often a tree that does not come to rest is asked about.
const MOST_TIMES: u8 = 8;
/// Paths that are asked about at once.
const MOST: usize = 4096;

/// What is known of the paths of one settling.
#[derive(Debug)]
pub(super) struct Tracked<'a> {
    roots: &'a [Root],
    record: &'a Record,
    tips: Option<&'a Tips>,
    known: HashMap<(u16, Vec<u8>), (Seen, Answer)>,
    /// The `.git` files of further work trees that a command made, as far as they lead to where git leads them.
    met: BTreeMap<(u16, Vec<u8>), State>,
    times: u8,
    /// Hooks in work trees that a command made: what a commit of the host's has there may stay, whatever it is called.
    hooks: Vec<(u16, Vec<u8>)>,
}

/// Where a path is in a work tree.
struct Place {
    /// The number of its repository.
    repository: usize,
    /// The ref that is HEAD in this work tree.
    head: Vec<u8>,
    path: Vec<Vec<u8>>,
}

/// A path and what was found there.
struct Asked {
    root: u16,
    path: Vec<u8>,
    seen: Seen,
    place: Place,
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
            met: BTreeMap::new(),
            times: 0,
            hooks: Vec::new(),
        }
    }

    /// Notes hooks in work trees that a command made.
    pub(super) fn note_hooks(&mut self, hooks: Vec<(u16, Vec<u8>)>) {
        self.hooks = hooks;
        self.known.clear();
        self.times = 0;
    }

    /// Whether what a kept entry has become may stay.
    pub(super) fn may_stay(&mut self, root: u16, path: &[u8], role: Role, seen: &Seen) -> bool {
        let entries = &self.record.entries;
        let all = entries
            .iter()
            .map(|kept| (kept.root, kept.path.as_slice(), kept.role, Some(&kept.state)));
        self.is_proven(root, path, role, seen, all)
    }

    /// Whether a new entry, one of these, may stay.
    pub(super) fn may_stay_new<'n>(
        &mut self,
        root: u16,
        path: &[u8],
        role: Role,
        seen: &Seen,
        new: impl Iterator<Item = (u16, &'n [u8], Role)>,
    ) -> bool {
        self.is_proven(
            root,
            path,
            role,
            seen,
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
        seen: &Seen,
        all: impl Iterator<Item = (u16, &'n [u8], Role, Option<&'n State>)>,
    ) -> bool {
        if !may_be_tracked(role, path) || self.tips.is_none_or(|tips| tips.repositories.is_empty()) {
            return false;
        }
        let key = (root, path.to_vec());
        if self.known.get(&key).is_none_or(|(known, _)| known != seen) && self.times < MOST_TIMES {
            self.times += 1;
            // One process answers for all that has changed by now.
            self.ask(all);
        }
        self.known
            .get(&key)
            .is_some_and(|(known, answer)| known == seen && answer.may_stay)
    }

    fn ask<'n>(&mut self, all: impl Iterator<Item = (u16, &'n [u8], Role, Option<&'n State>)>) {
        let mut asked: Vec<Asked> = Vec::new();
        for (root, path, _, before) in all.filter(|(_, path, role, _)| may_be_tracked(*role, path)) {
            let Some(holder) = self.roots.get(usize::from(root)) else {
                continue;
            };
            let seen = glance(&holder.fd, path, LONGEST);
            if matches!((&seen, before), (Seen::Present(now), Some(before)) if now == before) {
                continue;
            }
            match self.place(root, path).filter(|_| asked.len() < MOST) {
                Some(place) => asked.push(Asked {
                    root,
                    path: path.to_vec(),
                    seen,
                    place,
                    before: before.cloned(),
                }),
                // Nobody need ask for it again.
                None => {
                    self.known.insert((root, path.to_vec()), (seen, Answer::default()));
                }
            }
        }
        asked.sort_by(|a, b| (a.place.repository, &a.place.head).cmp(&(b.place.repository, &b.place.head)));
        let mut rest = asked;
        while let Some(first) = rest.first() {
            let who = (first.place.repository, first.place.head.clone());
            let end = rest.partition_point(|one| (one.place.repository, &one.place.head) <= (who.0, &who.1));
            let behind = rest.split_off(end);
            let answers = self
                .answers(who.0, &who.1, &rest)
                .unwrap_or_else(|| vec![Answer::default(); rest.len()]);
            for (one, answer) in rest.into_iter().zip(answers) {
                self.known.insert((one.root, one.path), (one.seen, answer));
            }
            rest = behind;
        }
    }

    /// What the objects of a repository say of paths in one of its work trees.
    fn answers(&self, repository: usize, head: &[u8], asked: &[Asked]) -> Option<Vec<Answer>> {
        let repository = self.tips?.repositories.get(repository)?;
        let (root, path) = repository.place.as_ref()?;
        let git = at::open_directory(&self.roots.get(usize::from(*root))?.fd, path).ok()?;
        let shown = shown(self.roots.get(usize::from(*root))?, path);
        if refs::key(&git, shown.as_os_str().as_bytes()).as_ref() != Some(&repository.key) {
            return None;
        }
        let objects = at::open_directory(&git, b"objects").ok()?;
        let now = refs::read(&git, repository.refs());
        let head = now.as_ref().and_then(|now| refs::find(now, head)?.value);
        let algorithm = repository.trusted().last().copied().or(head)?.algorithm();
        let alike = |id: &Id| id.algorithm() == algorithm;
        let tips: Vec<Id> = repository.trusted().iter().copied().filter(alike).collect();
        let questions: Vec<Question> = asked.iter().map(|one| question(one, algorithm)).collect();
        reader::ask(objects, &tips, head.filter(alike), &questions)
    }

    /// The work tree that a path is in, if it may stay there at all.
    fn place(&self, root: u16, path: &[u8]) -> Option<Place> {
        let repositories = &self.tips?.repositories;
        let holder = self.roots.get(usize::from(root))?;
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
        let absolute = shown(holder, path);
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
            let is = |place: &(u16, Vec<u8>)| place.0 == number && place.1 == git;
            repositories.iter().position(|one| one.place.as_ref().is_some_and(is))
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
                        let (number, git) = self.named(root, top, link)?;
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
                return Some(Place {
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
    fn named(&self, root: u16, top: &[u8], link: &State) -> Option<(u16, Vec<u8>)> {
        let State::File { content, .. } = link else {
            return None;
        };
        let target = content.strip_prefix(b"gitdir: ")?.trim_ascii_end();
        let from = shown(self.roots.get(usize::from(root))?, top);
        let mut path = PathBuf::new();
        for part in from.join(OsStr::from_bytes(target)).components() {
            match part {
                Component::ParentDir => {
                    path.pop();
                }
                Component::RootDir | Component::Normal(_) | Component::CurDir | Component::Prefix(_) => path.push(part),
            }
        }
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
    role == Role::Name || (role == Role::Judged && is_judged_text(split(path).1))
}

/// What is asked of a path in a repository of that kind.
fn question(asked: &Asked, algorithm: Algorithm) -> Question {
    let blob = |content: &[u8]| algorithm.name("blob", content);
    // By another name somebody could write to it. Its mode is set where it is found to stay.
    let is_plain = |names: &Names| !names.have_grown_from(Names::default());
    let now = match (&asked.seen, &asked.before) {
        (
            Seen::Present(State::File {
                mode, names, content, ..
            }),
            None | Some(State::File { .. }),
        ) if is_plain(names) => blob(content).map(|blob| Now::File {
            blob,
            is_executable: mode & 0o100 != 0,
        }),
        (Seen::Present(State::Directory { .. }), None | Some(State::Directory { .. })) => Some(Now::Directory),
        (Seen::Absent, Some(State::File { .. } | State::Directory { .. })) => Some(Now::Absent),
        (Seen::Absent | Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_), _) => None,
    };
    let (before, is_file) = match &asked.before {
        Some(State::File { content, .. }) => (blob(content), true),
        None => (None, !matches!(asked.seen, Seen::Present(State::Directory { .. }))),
        Some(State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Left) => (None, false),
    };
    Question {
        path: asked.place.path.clone(),
        now: now.unwrap_or(Now::Other),
        before,
        is_file,
    }
}
