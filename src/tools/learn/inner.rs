//! What was accepted and has become part of something larger that was accepted after it.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::amend::{Change, Writing};
use crate::policy::{AbsPath, Demand, Policy, Right, Rights, Root, Scope};

/// What a root gives once all changes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gives {
    rights: Rights,
    /// Who may write, where anybody may.
    writing: Option<Writing>,
    /// Whether that holds for all that is below, for every name and size, and with no question but who may write.
    is_plain: bool,
}

impl Gives {
    const fn nothing(scope: Scope) -> Self {
        Self {
            rights: Rights::NONE,
            writing: None,
            is_plain: matches!(scope, Scope::Tree),
        }
    }

    fn of_old(root: &Root) -> Self {
        let writing = match root.write_approval {
            Demand::None => Writing::Free,
            Demand::OncePerSession | Demand::Required | Demand::Deny => Writing::Asked,
        };
        let is_plain = root.suffixes.is_none() && root.max_file_bytes.is_none() && root.read_approval == Demand::None;
        Self {
            rights: root.rights,
            writing: root.rights.has(Right::Write).then_some(writing),
            is_plain: is_plain && root.scope == Scope::Tree,
        }
    }

    fn with(self, rights: Rights, writing: Writing) -> Self {
        let new = rights.has(Right::Write).then_some(writing);
        Self {
            rights: self.rights | rights,
            writing: self.writing.or(new),
            ..self
        }
    }

    /// With all that some change gives a root of this name.
    fn widened<'a>(self, name: &str, changes: impl Iterator<Item = &'a Change>) -> Self {
        changes.fold(self, |gives, change| {
            if let Change::Widen(more) = change
                && more.name == name
            {
                gives.with(more.rights, more.writing)
            } else {
                gives
            }
        })
    }

    /// Whether a root inside that gives this is not missed.
    fn holds(self, inner: Self) -> bool {
        let is_written_alike = inner.writing.is_none() || inner.writing == self.writing;
        self.is_plain && self.rights.contains(inner.rights) && is_written_alike
    }
}

/// These changes of a policy without the new roots that lie in another that gives as much, and without the names in new
/// roots: a clause that changes nothing is one more to be read, and to be forgotten when the other is taken out.
pub fn outermost<T>(mut all: Vec<T>, old: &Policy, change: impl Fn(&T) -> &Change) -> Vec<T> {
    // The root that is nearest around a place speaks of it, so outer ones are settled first.
    let mut speakers: BTreeMap<AbsPath, Gives> = BTreeMap::new();
    for root in &old.roots {
        speakers.insert(
            root.path.clone(),
            Gives::of_old(root).widened(&root.name, all.iter().map(&change)),
        );
    }
    let mut new: BTreeMap<(usize, AbsPath), (String, Gives)> = BTreeMap::new();
    for one in &all {
        if let Change::Root(root) = change(one) {
            let first = Gives::nothing(root.scope).with(root.rights, root.writing);
            let gives = first.widened(&root.name, all.iter().map(&change));
            new.insert(
                (root.path.ancestors().count(), root.path.clone()),
                (root.name.clone(), gives),
            );
        }
    }
    let mut dropped = BTreeSet::new();
    let mut kept = Vec::new();
    for ((_, path), (name, gives)) in new {
        let speaker = {
            let mut around = path.ancestors().filter(|above| *above != path);
            around.find_map(|above| speakers.get(&above).copied())
        };
        // A root in one that is executed is executed, as it says nothing of that.
        let gives = match speaker {
            Some(speaker) if speaker.rights.has(Right::Execute) => Gives {
                rights: gives.rights | Rights::EXECUTE,
                ..gives
            },
            Some(_) | None => gives,
        };
        if speaker.is_some_and(|speaker| speaker.holds(gives)) {
            dropped.insert(name);
            continue;
        }
        if gives.is_plain {
            kept.push(path.clone());
        }
        speakers.insert(path, gives);
    }
    all.retain(|one| match change(one) {
        Change::Root(root) => !dropped.contains(&root.name),
        Change::Widen(root) => !dropped.contains(&root.name),
        Change::List(path) => !kept.iter().any(|outer| path.is_within(outer)),
        Change::Host(_) | Change::Sockets(_) | Change::Undo => true,
    });
    all
}
