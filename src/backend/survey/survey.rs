//! What was seen: named paths, the entries of directories, links and mounts.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;

use foldhash::quality::RandomState;

use super::error::SurveyError;
use super::links::Link;
use super::listing::{Entry, Lister, Listing, ParentCache};
use super::mounts::Mounts;
use super::node::{Kind, Node};
use crate::policy::{AbsPath, Identity};

/// Named paths, the entries of the opened directories, and the mounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    nodes: HashMap<AbsPath, Node, RandomState>,
    entries: HashMap<AbsPath, Vec<OsString>, RandomState>,
    links: BTreeMap<AbsPath, Link>,
    mounts: Mounts,
    /// Directories that are not there yet, and will be before anything starts.
    to_come: BTreeMap<AbsPath, Node>,
    listings: Listings,
}

/// What was listed, and when; equal to every other, so that surveys compare by what they saw.
#[derive(Debug, Clone, Default)]
struct Listings(Vec<Listing>);

impl PartialEq for Listings {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Listings {}

impl Survey {
    /// Looks at `paths`, and lists those directories, at and below them, that `opens` names.
    pub fn take<'a>(
        paths: impl IntoIterator<Item = &'a AbsPath>,
        opens: impl Fn(&AbsPath) -> bool,
        mounts: Mounts,
    ) -> Result<Self, SurveyError> {
        Self::take_after(&Self::default(), paths, opens, mounts)
    }

    /// The same, where what another survey has seen a moment before is not looked at again.
    pub fn take_after<'a>(
        seen: &Self,
        paths: impl IntoIterator<Item = &'a AbsPath>,
        opens: impl Fn(&AbsPath) -> bool,
        mounts: Mounts,
    ) -> Result<Self, SurveyError> {
        let mut survey = Self {
            mounts,
            to_come: seen.to_come.clone(),
            ..Self::default()
        };
        let mut near = ParentCache::default();
        let mut lists = Lister::default();
        for path in paths {
            // What a listing has found is known; what it has not found is not there.
            let listed_in = |parent: &AbsPath| survey.entries.contains_key(parent);
            let in_a_listing = || !survey.entries.is_empty() && path.parent().as_ref().is_some_and(listed_in);
            if survey.nodes.contains_key(path) || in_a_listing() {
                continue;
            }
            let node = match seen.node(path).or_else(|| seen.to_come.get(path).copied()) {
                Some(node) => Some(node),
                None => near.lookup(path)?,
            };
            if let Some(node) = node {
                survey.nodes.insert(path.clone(), node);
                survey.list_from(path.clone(), &opens, seen, &mut lists)?;
            }
        }
        survey.listings = Listings(lists.listings);
        Ok(survey)
    }

    /// A directory whose entries may have been others at the end than when it was listed, if there is one. What is moved from a
    /// directory that is listed later to one that was listed earlier is in neither listing.
    pub fn unsettled(&self) -> Option<&AbsPath> {
        self.listings.0.iter().find_map(Listing::unsettled)
    }

    /// Lists the directories at and below `top` that `opens` names.
    fn list_from(
        &mut self,
        top: AbsPath,
        opens: &impl Fn(&AbsPath) -> bool,
        seen: &Self,
        lists: &mut Lister,
    ) -> Result<(), SurveyError> {
        let mut open = vec![top];
        while let Some(path) = open.pop() {
            let Some(node) = self.nodes.get(&path).copied() else {
                continue;
            };
            if node.kind != Kind::Directory || self.entries.contains_key(&path) || !opens(&path) {
                continue;
            }
            // Its entries are those of the directory that is there now.
            let known = if seen.to_come.contains_key(&path) {
                Some(Vec::new())
            } else {
                seen.listing(&path).filter(|_| seen.node(&path) == Some(node))
            };
            let mut found = match known {
                Some(known) => lists.count(&path, known)?,
                None => lists.take(&path, node.identity)?,
            };
            let to_come = seen.to_come_in(&path);
            found.extend(
                to_come
                    .filter(|(name, ..)| found.iter().all(|(there, ..)| there != name))
                    .collect::<Vec<_>>(),
            );
            let mut names = Vec::with_capacity(found.len());
            for (name, child, node) in found {
                names.push(name);
                open.push(child.clone());
                self.nodes.insert(child, node);
            }
            self.entries.insert(path, names);
        }
        Ok(())
    }

    /// A directory as it was listed.
    fn listing(&self, directory: &AbsPath) -> Option<Vec<Entry>> {
        let entry = |name: &OsString| {
            let child = directory.child(name)?;
            let node = self.node(&child)?;
            Some((name.clone(), child, node))
        };
        self.entries.get(directory)?.iter().map(entry).collect()
    }

    /// One that has seen nothing yet but directories that will be made at `paths`, and all above them that are missing.
    /// They are empty, and are `made`.
    pub fn foreseeing<'a>(paths: impl IntoIterator<Item = &'a AbsPath>, made: Identity) -> Self {
        let node = Node {
            kind: Kind::Directory,
            identity: made,
            links: 2,
        };
        // What is there and cannot be looked at is not taken for missing.
        let missing = |path: &AbsPath| {
            let looked = path.as_path().symlink_metadata();
            looked.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let each = paths.into_iter().flat_map(|path| path.ancestors().take_while(missing));
        Self {
            to_come: each.map(|path| (path, node)).collect(),
            ..Self::default()
        }
    }

    /// Those directories to come that will lie in this one.
    fn to_come_in<'a>(&'a self, directory: &'a AbsPath) -> impl Iterator<Item = Entry> + 'a {
        let inside = self
            .to_come
            .iter()
            .filter(move |(path, _)| path.parent().as_ref() == Some(directory));
        inside.filter_map(|(path, node)| Some((path.name()?.to_owned(), path.clone(), *node)))
    }

    /// Records what a path leads to.
    pub fn insert(&mut self, path: AbsPath, node: Node) {
        self.nodes.insert(path, node);
    }

    /// Records the names in a directory.
    pub fn insert_entries(&mut self, directory: AbsPath, names: Vec<OsString>) {
        self.entries.insert(directory, names);
    }

    /// Records a link that may be shown.
    pub fn insert_link(&mut self, path: AbsPath, link: Link) {
        self.links.insert(path, link);
    }

    /// Records the mounts.
    pub fn set_mounts(&mut self, mounts: Mounts) {
        self.mounts = mounts;
    }

    /// What the path leads to; `None` if there is nothing this user can get to, or if it was not looked at.
    pub fn node(&self, path: &AbsPath) -> Option<Node> {
        self.nodes.get(path).copied()
    }

    /// The entries of a directory that was listed.
    pub fn entries(&self, directory: &AbsPath) -> Option<impl Iterator<Item = AbsPath>> {
        let names = self.entries.get(directory)?;
        Some(names.iter().filter_map(|name| directory.child(name)))
    }

    /// What lies in a directory that was listed, or the path that nobody looked at.
    pub fn children(&self, directory: &AbsPath) -> Result<Vec<(AbsPath, Node)>, AbsPath> {
        let entries = self.entries(directory).ok_or_else(|| directory.clone())?;
        let seen = entries.map(|child| match self.node(&child) {
            Some(node) => Ok((child, node)),
            None => Err(child),
        });
        seen.collect()
    }

    /// Everything that was seen, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = (&AbsPath, Node)> {
        self.nodes.iter().map(|(path, node)| (path, *node))
    }

    /// Whether there is nothing at the path: a directory on the way, or its own, was listed without it.
    pub fn is_absent(&self, path: &AbsPath) -> bool {
        if self.nodes.contains_key(path) {
            return false;
        }
        let mut children = path.ancestors();
        path.ancestors().skip(1).any(|parent| {
            children.next().is_some_and(|child| !self.nodes.contains_key(&child))
                && (self.entries.contains_key(&parent)
                    || self.nodes.get(&parent).is_some_and(|node| node.kind != Kind::Directory))
        })
    }

    /// The links that may be shown.
    pub fn links(&self) -> impl Iterator<Item = (&AbsPath, &Link)> {
        self.links.iter()
    }

    /// The mounts.
    pub const fn mounts(&self) -> &Mounts {
        &self.mounts
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn scratch() -> (tempfile::TempDir, AbsPath) {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        (dir, path)
    }

    #[test]
    fn what_is_to_come_is_an_empty_directory_in_what_is_listed_above_it() {
        let (_dir, root) = scratch();
        fs::write(root.as_path().join("file"), "").unwrap();
        let above = root.child("above").unwrap();
        let to_come = above.child("new").unwrap();
        let made = Identity { device: 0, inode: 0 };
        let foreseen = Survey::foreseeing([&to_come], made);
        let survey = Survey::take_after(&foreseen, [&root], |_| true, Mounts::default()).unwrap();
        let mut names = survey.children(&root).unwrap();
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        assert_eq!(
            names.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            [&above, &root.child("file").unwrap()]
        );
        assert_eq!(
            survey.children(&above).unwrap(),
            [(to_come.clone(), survey.node(&above).unwrap())]
        );
        assert_eq!(survey.children(&to_come).unwrap(), []);
        // Whoever looks after this one knows of it too.
        let again = Survey::take_after(&survey, [&to_come], |_| false, Mounts::default()).unwrap();
        assert_eq!(again.node(&to_come).unwrap().identity, made);
    }

    #[test]
    fn only_the_directories_that_must_be_opened_are_listed() {
        let (_dir, root) = scratch();
        fs::create_dir_all(root.as_path().join("open/in")).unwrap();
        fs::create_dir_all(root.as_path().join("shut/in")).unwrap();
        let shut = root.child("shut").unwrap();
        let survey = Survey::take([&root], |path| !path.is_within(&shut), Mounts::default()).unwrap();
        assert!(survey.entries(&root.child("open").unwrap()).is_some());
        assert!(survey.node(&shut).is_some());
        assert!(survey.entries(&shut).is_none());
        assert!(survey.node(&shut.child("in").unwrap()).is_none());
    }

    #[test]
    fn what_another_survey_has_seen_is_taken_over_and_what_it_has_not_is_looked_at() {
        let (_dir, root) = scratch();
        let at = |names: &[&str]| names.iter().fold(root.clone(), |path, name| path.child(name).unwrap());
        fs::create_dir_all(at(&["a", "b"])).unwrap();
        fs::write(at(&["a", "b", "file"]), "x").unwrap();
        fs::create_dir(at(&["c"])).unwrap();
        let opens_a = |path: &AbsPath| *path == at(&["a"]) || *path == root;
        let seen = Survey::take([&root], opens_a, Mounts::default()).unwrap();
        // What comes after the look is not there yet where it was looked at, and is elsewhere.
        fs::write(at(&["a", "late"]), "x").unwrap();
        fs::write(at(&["c", "late"]), "x").unwrap();
        let after = Survey::take_after(&seen, [&root], |_| true, Mounts::default()).unwrap();
        assert_eq!(after.node(&at(&["a", "late"])), None);
        assert_eq!(after.node(&at(&["c", "late"])).unwrap().kind, Kind::File);
        assert_eq!(after.node(&at(&["a", "b", "file"])).unwrap().kind, Kind::File);
        fs::remove_file(at(&["a", "late"])).unwrap();
        assert_eq!(after, Survey::take([&root], |_| true, Mounts::default()).unwrap());
        // It opens nothing that it was not asked to open.
        let shut = Survey::take_after(&after, [&root], |_| false, Mounts::default()).unwrap();
        assert_eq!(shut, Survey::take([&root], |_| false, Mounts::default()).unwrap());
    }

    #[test]
    fn links_are_seen_and_never_followed() {
        let (_dir, root) = scratch();
        fs::create_dir(root.as_path().join("real")).unwrap();
        fs::write(root.as_path().join("real/file"), "x").unwrap();
        symlink("real", root.as_path().join("link")).unwrap();
        let link = root.child("link").unwrap();
        let survey = Survey::take([&root], |_| true, Mounts::default()).unwrap();
        assert_eq!(survey.node(&link).unwrap().kind, Kind::Symlink);
        assert!(survey.entries(&link).is_none());
        let real = root.child("real").unwrap();
        assert_eq!(survey.node(&real.child("file").unwrap()).unwrap().kind, Kind::File);
        // A path that leads through a link is refused, not followed.
        let through = link.child("file").unwrap();
        assert!(Survey::take([&through], |_| true, Mounts::default()).is_err());
        let direct = real.child("file").unwrap();
        assert!(
            Survey::take([&direct], |_| true, Mounts::default())
                .unwrap()
                .node(&direct)
                .is_some()
        );
    }

    #[test]
    fn hostile_names_and_hard_links_are_seen_as_they_are() {
        let (_dir, root) = scratch();
        let hostile = root.child(OsString::from_vec(b"a'\"\n\xff".to_vec())).unwrap();
        fs::write(hostile.as_path(), "x").unwrap();
        fs::hard_link(hostile.as_path(), root.as_path().join("twin")).unwrap();
        let survey = Survey::take([&root], |_| true, Mounts::default()).unwrap();
        let twin = survey.node(&root.child("twin").unwrap()).unwrap();
        assert_eq!(survey.node(&hostile), Some(twin));
        assert_eq!(twin.links, 2);
    }

    #[test]
    fn what_does_not_exist_is_absent() {
        let (_dir, root) = scratch();
        let absent = root.child("no").unwrap().child("such").unwrap();
        let survey = Survey::take([&absent], |_| true, Mounts::default()).unwrap();
        assert_eq!(survey.node(&absent), None);
    }

    #[test]
    fn a_listing_is_settled_until_a_name_comes_or_goes() {
        let (_dir, root) = scratch();
        let [one, other] = ["one", "other"].map(|name| root.child(name).unwrap());
        for directory in [&one, &other] {
            std::fs::create_dir(directory.as_path()).unwrap();
        }
        std::fs::create_dir(one.as_path().join("d")).unwrap();
        let take = || Survey::take([&root], |_| true, Mounts::default()).unwrap();
        // A change of a moment ago could hide another.
        assert!(take().unsettled().is_some());
        let survey = loop {
            let survey = take();
            if survey.unsettled().is_none() {
                break survey;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        std::fs::rename(one.as_path().join("d"), other.as_path().join("d")).unwrap();
        assert!(survey.unsettled().is_some());
    }

    #[test]
    fn the_mounts_of_this_machine_can_be_parsed() {
        assert_ne!(Mounts::take().unwrap(), Mounts::default());
    }
}
