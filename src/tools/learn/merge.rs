//! What is wanted of many places, taken together.

use std::collections::BTreeMap;

use super::gathered::{Gathered, Wanting};
use super::propose::FEW;
use super::risk::Surroundings;
use crate::policy::{AbsPath, Policy, Rights, Scope};

impl<'a> Gathered<'a> {
    /// Takes together what lies in one directory, where that gives nothing more away, and drops what lies in something larger.
    pub(super) fn merge(&mut self, around: &Surroundings, policy: &Policy) {
        let mut by_directory: BTreeMap<AbsPath, Vec<AbsPath>> = BTreeMap::new();
        for (path, scope) in self.files.keys() {
            if let (Scope::File, Some(parent)) = (scope, path.parent()) {
                by_directory.entry(parent).or_default().push(path.clone());
            }
        }
        for (directory, files) in by_directory.into_iter().filter(|(_, files)| files.len() > FEW) {
            let wanted = || {
                files
                    .iter()
                    .filter_map(|file| self.files.get(&(file.clone(), Scope::File)))
            };
            let rights = wanted().fold(Rights::NONE, |all, wanting| all | wanting.rights);
            let alike = wanted().all(|wanting| wanting.rights == rights);
            let risk = |path: &AbsPath, scope| around.place(path, scope, rights, policy).risk;
            let each = files.iter().map(|file| risk(file, Scope::File)).max();
            if alike && each.is_some_and(|each| risk(&directory, Scope::Tree) <= each) {
                let mut all = Wanting::default();
                for file in files {
                    all.take(self.files.remove(&(file, Scope::File)).unwrap_or_default());
                }
                self.files.entry((directory, Scope::Tree)).or_default().take(all);
            }
        }
        let trees: Vec<(AbsPath, Rights)> = self
            .files
            .iter()
            .filter(|((_, scope), _)| *scope == Scope::Tree)
            .map(|((path, _), wanting)| (path.clone(), wanting.rights))
            .collect();
        let around_it = |path: &AbsPath, rights: Rights| {
            trees
                .iter()
                .find(|(tree, given)| path.is_below(tree) && given.contains(rights))
                .map(|(tree, _)| tree.clone())
        };
        let inner = self
            .files
            .iter()
            .filter_map(|(key, wanting)| Some((key.clone(), around_it(&key.0, wanting.rights)?)));
        for (key, tree) in inner.collect::<Vec<_>>() {
            let inner = self.files.remove(&key).unwrap_or_default();
            self.denied_by(tree, inner);
        }
        let listed = self.names.keys().filter_map(|path| {
            let tree = trees.iter().find(|(tree, _)| path.is_within(tree))?;
            Some((path.clone(), tree.0.clone()))
        });
        for (path, tree) in listed.collect::<Vec<_>>() {
            let inner = Wanting {
                denied: self.names.remove(&path).unwrap_or_default(),
                ..Wanting::default()
            };
            self.denied_by(tree, inner);
        }
        let outer: Vec<AbsPath> = self.names.keys().cloned().collect();
        self.names
            .retain(|path, _| !outer.iter().any(|other| path.is_below(other)));
    }

    fn denied_by(&mut self, tree: AbsPath, inner: Wanting<'a>) {
        // An outermost tree stays; one in between has gone with what it took.
        if let Some(wanting) = self.files.get_mut(&(tree, Scope::Tree)) {
            wanting.take(inner);
        }
    }
}
