//! Work trees and git directories that a command made, moved or led elsewhere: a relative `core.hooksPath` leads git to hooks there
//! as well.
//!
//! A work tree is known where the whole [way](super::super::referenced::ways) to what git obeys in it is as it was. In any other, what
//! git could run as a hook goes, unless a commit of the person has it; where one stays, so does nothing beside it that no commit has,
//! because a hook may run that. A link that leads a `.git` elsewhere than before goes, too.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::FileStat;

use super::super::entry::nofollow::{self, as_owner, join, split};
use super::super::entry::subtree::names;
use super::super::naming::markers::{if_present, metadata_if_present};
use super::super::naming::names::is_dot_git;
use super::super::naming::patterns::Patterns;
use super::super::referenced::git_paths::resolutions;
use super::super::referenced::hooks::{HOOKS, hooks_in_work_tree, may_be_called_hook};
use super::super::referenced::ways::{ObeyedDirectory, ways};
use super::super::roots::{RootPath, absolute, root_number};
use super::super::tree::inventory::Inventory;
use super::super::tree::walk::walk_through;
use super::settlement::Settlement;

/// What leads git to other hooks than before.
#[derive(Debug, Default)]
pub(crate) struct NewPlaces {
    /// Where hooks would lie, mostly directories.
    hooks: BTreeSet<RootPath>,
    /// Links that no way had.
    links: BTreeSet<RootPath>,
}

impl Settlement<'_> {
    /// The places of hooks in work trees that are not known, as far as the patterns do not cover them.
    pub(crate) fn new_places(&self, patterns: &Patterns, inventory: &Inventory) -> NewPlaces {
        let mut new = NewPlaces::default();
        for (begins, way) in ways(self.roots, inventory) {
            if way.is_some() && self.record.ways.get(&begins) == Some(&way) {
                continue;
            }
            let begins = Path::new(OsStr::from_bytes(&begins));
            let obeyed = way.iter().flatten().map(ObeyedDirectory::path);
            new.links.extend(self.first_new_link(begins, obeyed));
            let is_dot_git = begins.file_name().is_some_and(|name| is_dot_git(name.as_bytes()));
            // Git runs some hooks in the git directory itself.
            let work_tree = begins.parent().filter(|_| is_dot_git);
            let is_git_directory = !is_dot_git || begins.is_dir();
            for location in work_tree.into_iter().chain(is_git_directory.then_some(begins)) {
                for value in &self.record.hooks {
                    let all = hooks_in_work_tree(location, Path::new(OsStr::from_bytes(value)));
                    new.hooks
                        .extend(all.iter().filter_map(|path| self.uncovered(patterns, path)));
                }
            }
        }
        new
    }

    /// The first link on a way that is not as it was and that was on none.
    fn first_new_link<'p>(&self, begins: &'p Path, obeyed: impl Iterator<Item = &'p Path>) -> Option<RootPath> {
        let directories = std::iter::once(begins).chain(obeyed);
        let files = std::iter::once(begins.to_owned()).chain(directories.map(|git| git.join("commondir")));
        // What cannot be resolved git cannot follow either, or it lies outside of the roots.
        let followed = files.flat_map(|file| resolutions(self.roots, &file).unwrap_or_default());
        let links = followed.flat_map(|resolution| resolution.links);
        links.filter(|link| link != begins).find_map(|link| {
            let (root, path) = root_number(self.roots, &link)?;
            let path = path.as_os_str().as_bytes();
            self.work_trees
                .saved(root, path)
                .is_none()
                .then(|| (root, path.to_vec()))
        })
    }

    /// The path in its root, if something is there that the patterns do not cover.
    fn uncovered(&self, patterns: &Patterns, path: &Path) -> Option<RootPath> {
        let (root, below) = root_number(self.roots, path)?;
        let below = below.as_os_str().as_bytes();
        // In a directory that a command shut there may be something.
        let is_there = || !matches!(metadata_if_present(path), Ok(None));
        let is_uncovered = !patterns.covers(self.root(root).context, below) && is_there();
        is_uncovered.then(|| (root, below.to_vec()))
    }

    /// What git could run of these places, and what it could not be told of.
    fn runnable(&self, hooks: &BTreeSet<RootPath>) -> BTreeSet<RootPath> {
        let mut found = BTreeSet::new();
        for (root, place) in hooks {
            let fd = &self.root(*root).fd;
            let inside = as_owner(fd, place, None, || {
                let all = names(&nofollow::open_directory(fd, place)?)?;
                let mut all = all.into_iter().filter(|name| may_be_called_hook(name));
                all.try_fold(Vec::new(), |mut found, name| {
                    let path = join(place, &name);
                    if is_runnable(&name, &nofollow::stat(fd, &path)?) {
                        found.push((*root, path));
                    }
                    Ok(found)
                })
            });
            match inside {
                Ok(inside) => found.extend(inside),
                Err(Errno::ENOENT) => {}
                // A single hook, a link in the place of a directory, or what cannot be looked at.
                Err(_) => {
                    let is_there = !matches!(
                        if_present(std::fs::metadata(absolute(self.root(*root), place))),
                        Ok(None)
                    );
                    let may_run =
                        |found: &FileStat| nofollow::kind(found) == libc::S_IFDIR || is_runnable(split(place).1, found);
                    if is_there && nofollow::stat(fd, place).map_or(true, |found| may_run(&found)) {
                        found.insert((*root, place.clone()));
                    }
                }
            }
        }
        found
    }

    /// Takes away what leads git to other hooks, and these hooks. Returns what is there then; `None` where nothing had to be looked at.
    pub(crate) fn take_new_hooks(
        &mut self,
        patterns: &Patterns,
        new: &NewPlaces,
        earlier: Option<&Inventory>,
    ) -> Option<Inventory> {
        if new.hooks.is_empty() && new.links.is_empty() {
            return None;
        }
        self.tracked.note_hooks(new.hooks.iter().cloned().collect());
        self.are_hooks_new = true;
        let mut wanted = self.runnable(&new.hooks);
        wanted.extend(new.links.iter().cloned());
        // No walk before has looked at what these name.
        self.restore_until_stable(&self.protecting(patterns, &wanted), None, earlier);
        let all = self.protecting(patterns, &new.hooks);
        let seen = if self.runnable(&new.hooks).is_empty() {
            walk_through(self.roots, &all, None, &mut Vec::new()).ok()
        } else {
            self.restore_until_stable(&all, None, earlier)
        };
        self.are_hooks_new = false;
        seen
    }

    fn protecting(&self, patterns: &Patterns, paths: &BTreeSet<RootPath>) -> Patterns {
        let mut more = patterns.clone();
        for (root, path) in paths {
            more.protect(self.root(*root).context.path, path);
        }
        more
    }
}

/// Whether it is a file that somebody may execute, or that husky would run with a shell, or a link, which may lead to one.
fn is_runnable(name: &[u8], found: &FileStat) -> bool {
    match nofollow::kind(found) {
        libc::S_IFREG => {
            let is_hook = |hook: &&str| hook.as_bytes().eq_ignore_ascii_case(name);
            nofollow::permissions(found) & 0o111 != 0 || HOOKS.iter().any(is_hook)
        }
        libc::S_IFLNK => true,
        _ => false,
    }
}
