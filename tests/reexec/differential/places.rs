//! Where random operations happen: existing names and new ones, and the ways to spell them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stockade::policy::AbsPath;

use super::operations::Beyond;
use super::random::Random;
use super::tree::{Kind, Tree, abs};

/// Picks places, and remembers which are used up.
pub(crate) struct Planner<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) tree: &'a Tree,
    /// Entries that a grant names, and those that have several names.
    pub(crate) named: Vec<(PathBuf, Kind)>,
    /// Entries that a grant reaches.
    pub(crate) within: Vec<(PathBuf, Kind)>,
    pub(crate) beyond: &'a Beyond,
    pub(crate) used_up: BTreeSet<PathBuf>,
    pub(crate) fresh: usize,
}

impl Planner<'_> {
    /// Whether no earlier operation may have touched the way to `path`.
    pub(crate) fn is_free(&self, path: &Path) -> bool {
        !self.used_up.iter().any(|used| path.starts_with(used))
    }

    /// A name of that kind, as the tree has it.
    pub(crate) fn existing(&mut self, kind: Kind) -> Option<PathBuf> {
        let from = match self.random.below(100) {
            0..15 => &self.named,
            15..70 => &self.within,
            _ => &self.tree.entries,
        };
        let all: Vec<_> = from.iter().filter(|(_, is)| *is == kind).collect();
        if all.is_empty() {
            return None;
        }
        let (path, _) = *self.random.pick(&all);
        self.is_free(path).then(|| path.clone())
    }

    /// A way to an object of that kind, and where it really is.
    pub(crate) fn spelled(&mut self, kind: Kind) -> Option<(PathBuf, AbsPath)> {
        let path = match self.random.below(6) {
            0 => {
                let path = self.existing(kind)?;
                let detour = path.parent()?.join("empty");
                if !self.is_free(&detour) || path.starts_with(&detour) {
                    return None;
                }
                detour.join("..").join(path.file_name()?)
            }
            1 => self.existing(Kind::Link)?,
            2 => {
                let link = self.existing(Kind::Link)?;
                let folder = fs::canonicalize(&link).unwrap();
                let here = |(path, is): &&(PathBuf, Kind)| *is == kind && path.parent() == Some(&folder);
                let all: Vec<_> = self.tree.entries.iter().filter(here).collect();
                if all.is_empty() {
                    return None;
                }
                link.join(self.random.pick(&all).0.file_name()?)
            }
            _ => self.existing(kind)?,
        };
        // Not every folder has one to make a detour through.
        let canonical = fs::canonicalize(&path).ok()?;
        let is = self.tree.entries.iter().find(|(entry, _)| *entry == canonical)?.1;
        (is == kind && self.is_free(&canonical)).then(|| (path, abs(&canonical)))
    }

    /// Now and then the same path through a link that only the kernel can make.
    pub(crate) fn through_own_root(&mut self, path: PathBuf) -> PathBuf {
        match path.strip_prefix("/") {
            Ok(below) if self.random.chance(8) => Path::new("/proc/self/root").join(below),
            Ok(_) | Err(_) => path,
        }
    }

    /// A name that is not taken, in some folder.
    pub(crate) fn new_name(&mut self) -> Option<(PathBuf, AbsPath)> {
        let kind = if self.random.chance(85) {
            Kind::Folder
        } else {
            Kind::Empty
        };
        let (folder, _) = self.spelled(kind)?;
        let (path, entry) = self.new_name_in(&folder);
        // What is made in an empty folder keeps it from being removed later.
        self.used_up.insert(entry.as_path().to_owned());
        if kind == Kind::Empty {
            self.used_up.insert(entry.as_path().parent()?.to_owned());
        }
        Some((path, entry))
    }

    pub(crate) fn new_name_in(&mut self, folder: &Path) -> (PathBuf, AbsPath) {
        self.fresh += 1;
        let endings: [&[u8]; 7] = [b"", b"", b".txt", b".md", b".pem", b"\n'\"", b"\xff"];
        let start = if self.random.chance(20) { "-n" } else { "n" };
        let name = [format!("{start}{}", self.fresh).as_bytes(), *self.random.pick(&endings)].concat();
        let name = OsStr::from_bytes(&name);
        let entry = abs(&fs::canonicalize(folder).unwrap().join(name));
        (folder.join(name), entry)
    }
}
