//! The effect of a change, computed without changing anything.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use super::clock::Clock;
use super::contents::{self, Listed};
use super::failure::{About, Answer, failure};
use super::location::Location;
use super::protocol::{Change, Hash, MAX_LOADED, Prepared, State, Tree, Why};
use super::{edit, magic, patch, state, tree};

/// The state before a change, and the result.
#[derive(Debug)]
pub(super) struct Effect<'a> {
    /// What is there now: of a move, at the old path and the new one.
    pub(super) before: Vec<State>,
    /// The content of the file that is there, as far as it was loaded.
    pub(super) old: Option<Vec<u8>>,
    /// The content it leads to, where it leads to any.
    pub(super) new: Option<Cow<'a, [u8]>>,
    /// Files that go with a directory that is moved.
    pub(super) files: u64,
    /// What goes with a directory that is removed.
    pub(super) contents: Option<Listed>,
}

impl Effect<'_> {
    pub(super) fn prepared(&self) -> Prepared {
        Prepared {
            before: self.before.clone(),
            after: self.new.as_deref().map(state::digest),
            size: self.new.as_ref().map_or(0, |new| new.len() as u64),
            files: self.files,
            contents: self.contents.as_ref().map(|listed| listed.contents),
        }
    }

    fn without_content(before: Vec<State>, files: u64) -> Self {
        Self {
            before,
            old: None,
            new: None,
            files,
            contents: None,
        }
    }
}

pub(super) fn path_of(change: &Change) -> &OsStr {
    match change {
        Change::Write { path, .. }
        | Change::Edit { path, .. }
        | Change::Patch { path, .. }
        | Change::Delete { path, .. }
        | Change::MakeDirectory { path }
        | Change::Move { from: path, .. } => path,
    }
}

/// Checks that no two changes have the same path, and none is in a directory that another removes: the result would depend on
/// their order.
pub(super) fn check_independent<'a>(changes: impl Iterator<Item = &'a Change> + Clone) -> Answer<()> {
    let taken: HashSet<&Path> = changes
        .clone()
        .filter_map(|change| match change {
            Change::Delete { path, .. } | Change::Move { from: path, .. } => Some(Path::new(path)),
            Change::Write { .. } | Change::Edit { .. } | Change::Patch { .. } | Change::MakeDirectory { .. } => None,
        })
        .collect();
    let paths = changes.flat_map(|change| match change {
        Change::Move { from, to } => [Some(from.as_os_str()), Some(to.as_os_str())],
        other => [Some(path_of(other)), None],
    });
    let mut paths_so_far = HashSet::new();
    for path in paths.flatten() {
        if !paths_so_far.insert(path) {
            let why = "it is changed twice at once";
            return Err(failure(path, Why::Malformed(why.to_owned())));
        }
        if Path::new(path).ancestors().skip(1).any(|above| taken.contains(above)) {
            let why = "it lies in what is moved or removed together with it";
            return Err(failure(path, Why::Malformed(why.to_owned())));
        }
    }
    Ok(())
}

pub(super) fn of(change: &Change, clock: Clock) -> Answer<Effect<'_>> {
    match change {
        Change::Write {
            path,
            content,
            max_bytes,
        } => write(path, content, *max_bytes),
        Change::Edit { path, edits, max_bytes } => rewrite(path, Absence::Fails, |content| {
            edit::replace(content, edits, limit(*max_bytes))
        }),
        Change::Patch { path, hunks, max_bytes } => rewrite(path, Absence::IsEmpty, |content| {
            patch::apply(content, hunks, limit(*max_bytes))
        }),
        Change::Delete { path, tree } => delete(path, *tree, clock),
        Change::Move { from, to } => moved(from, to, clock),
        Change::MakeDirectory { path } => make_directory(path),
    }
}

/// What a missing file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// An error.
    Fails,
    /// Empty content.
    IsEmpty,
}

fn limit(max_bytes: Option<u64>) -> u64 {
    max_bytes.map_or(MAX_LOADED, |most| most.min(MAX_LOADED))
}

fn write<'a>(path: &OsStr, content: &'a [u8], max_bytes: Option<u64>) -> Answer<Effect<'a>> {
    let (size, limit) = (content.len() as u64, max_bytes.unwrap_or(u64::MAX));
    if size > limit {
        return Err(failure(path, Why::TooLarge { size, limit }));
    }
    let (before, old) = state::with_content(path)?;
    match &before {
        State::Absent | State::File(_) => {}
        State::Directory { .. } | State::Symlink(_) | State::Other(_) => return Err(no_file(path, &before)),
    }
    Ok(Effect {
        before: vec![before],
        old,
        new: Some(Cow::Borrowed(content)),
        files: 0,
        contents: None,
    })
}

fn rewrite<'a>(
    path: &OsStr,
    absence: Absence,
    compute: impl FnOnce(&[u8]) -> Result<Vec<u8>, Why>,
) -> Answer<Effect<'a>> {
    let (before, old) = match (state::at(path, Hash::Skip)?, absence) {
        (State::Absent, Absence::IsEmpty) => (State::Absent, Vec::new()),
        (State::File(_), _) => {
            let loaded = state::load(path)?;
            (State::File(loaded.state), loaded.content)
        }
        (other, _) => return Err(no_file(path, &other)),
    };
    if magic::is_binary(&old) {
        let (what, size) = (magic::what(&old), old.len() as u64);
        return Err(failure(path, Why::Binary { what, size }));
    }
    let new = compute(&old).about(path)?;
    Ok(Effect {
        before: vec![before],
        old: Some(old),
        new: Some(Cow::Owned(new)),
        files: 0,
        contents: None,
    })
}

fn delete<'a>(path: &OsStr, tree: Tree, clock: Clock) -> Answer<Effect<'a>> {
    let (before, old) = state::with_content(path)?;
    let contents = match (&before, tree) {
        (State::File(_) | State::Symlink(_), _) => None,
        (State::Directory { .. }, Tree::Recursive) => Some(contents::of(&Location::of(path)?, clock)),
        (State::Directory { .. }, Tree::Empty) => {
            if !tree::is_empty(&Location::of(path)?).about(path)? {
                return Err(failure(path, Why::NotEmpty));
            }
            None
        }
        (State::Absent | State::Other(_), _) => return Err(no_file(path, &before)),
    };
    Ok(Effect {
        old,
        contents,
        ..Effect::without_content(vec![before], 0)
    })
}

fn moved<'a>(from: &OsStr, to: &OsStr, clock: Clock) -> Answer<Effect<'a>> {
    let before = state::at(from, Hash::Content)?;
    let existing = state::at(to, Hash::Skip)?;
    if existing != State::Absent {
        return Err(failure(to, Why::Exists));
    }
    let files = match &before {
        State::File(_) | State::Symlink(_) => 0,
        State::Directory { .. } => tree::count(&Location::of(from)?, clock),
        State::Absent | State::Other(_) => return Err(no_file(from, &before)),
    };
    Ok(Effect::without_content(vec![before, existing], files))
}

/// A directory that is there already will do.
fn make_directory<'a>(path: &OsStr) -> Answer<Effect<'a>> {
    let before = state::at(path, Hash::Skip)?;
    match &before {
        State::Absent | State::Directory { .. } => Ok(Effect::without_content(vec![before], 0)),
        State::File(_) | State::Symlink(_) | State::Other(_) => Err(failure(path, Why::Exists)),
    }
}

/// Why what is there cannot be changed like a file.
fn no_file(path: &OsStr, state: &State) -> super::protocol::Failure {
    let why = match state {
        State::Absent => Why::Missing,
        State::Directory { .. } => Why::IsDirectory,
        State::Other(special) => Why::Special(*special),
        // A look returns no symlinks.
        State::File(_) | State::Symlink(_) => Why::Changed,
    };
    failure(path, why)
}
