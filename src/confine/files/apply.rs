//! Making changes, all or none.
//!
//! First every change is compared with what was prepared, and its new content is written to a temporary file. Only then is anything
//! renamed.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;

use nix::unistd::{UnlinkatFlags, unlinkat};

use super::clock::Clock;
use super::effect::{self, Effect, path_of};
use super::failure::{About, Answer, failure};
use super::journal::{Action, Step, commit, sync_directories};
use super::location::{Location, Made, make_directory};
use super::protocol::{Bound, Change, State, Tree, Why};
use super::state::{digest, is_same};
use super::temporary::Temporary;
use super::tree;

pub(super) fn apply(changes: &[Bound]) -> Answer<()> {
    effect::check_independent(changes.iter().map(|bound| &bound.change))?;
    let mut made = Vec::new();
    let result = stage_all(changes, &mut made).and_then(commit);
    match result {
        Ok(()) => sync_directories(made.iter().map(|made| &made.location)),
        Err(_) => {
            for Made { location, .. } in made.iter().rev() {
                // It stays where others have put something there.
                let _removed = unlinkat(&location.directory, location.name.as_os_str(), UnlinkatFlags::RemoveDir);
            }
        }
    }
    result
}

fn stage_all(changes: &[Bound], made: &mut Vec<Made>) -> Answer<Vec<Step>> {
    let mut steps = Vec::with_capacity(changes.len());
    for bound in changes {
        steps.extend(stage(bound, made)?);
    }
    Ok(steps)
}

fn stage(bound: &Bound, made: &mut Vec<Made>) -> Answer<Option<Step>> {
    let path = path_of(&bound.change);
    // No time is spent on counting files.
    let effect = effect::of(&bound.change, Clock::start(0)).map_err(|failed| changed(bound, failed))?;
    let is_own = |path: &OsStr| made.iter().any(|made| made.path == path);
    let before = effect.before.iter().zip(&bound.before);
    let as_before = effect.before.len() == bound.before.len()
        && before.clone().all(|(now, expected)| {
            is_same(expected, now) || (*expected == State::Absent && is_own(path) && is_directory(now))
        });
    if !as_before || effect.new.as_deref().map(digest) != bound.after {
        return Err(failure(path, Why::Changed));
    }
    step(bound, &effect, made)
}

fn is_directory(state: &State) -> bool {
    matches!(state, State::Directory { .. })
}

/// Reports as changed what could be prepared and cannot be any more; other errors stay.
fn changed(bound: &Bound, failed: super::protocol::Failure) -> super::protocol::Failure {
    let was_there = bound.before.first().is_some_and(|before| *before != State::Absent);
    match failed.why {
        Why::Missing if !was_there => failed,
        Why::Missing
        | Why::Spelled(_)
        | Why::IsDirectory
        | Why::Special(_)
        | Why::Binary { .. }
        | Why::NoMatch { .. }
        | Why::Ambiguous { .. }
        | Why::Hunk { .. }
        | Why::Exists => failure(failed.path, Why::Changed),
        Why::NotPermitted
        | Why::NotDirectory
        | Why::TooLarge { .. }
        | Why::Changed
        | Why::NotEmpty
        | Why::EmptyEdit { .. }
        | Why::Malformed(_)
        | Why::Loop
        | Why::OtherFileSystem
        | Why::System(_) => failed,
    }
}

fn step(bound: &Bound, effect: &Effect<'_>, way: &mut Vec<Made>) -> Answer<Option<Step>> {
    let change = &bound.change;
    let expected = effect.before.first().cloned().unwrap_or(State::Absent);
    let path = path_of(change).to_owned();
    let action = match change {
        Change::Write { .. } | Change::Edit { .. } | Change::Patch { .. } => {
            let mode = match &expected {
                State::File(file) => Some(file.mode),
                State::Absent | State::Directory { .. } | State::Symlink(_) | State::Other(_) => None,
            };
            let content = effect.new.as_deref().unwrap_or_default();
            let location = Location::create_parents(&path, way)?;
            let temporary = Temporary::write(location.directory.as_fd(), content, mode).about(&path)?;
            Action::Put(location, temporary)
        }
        Change::Delete { tree, .. } => {
            let location = Location::of(&path)?;
            if let (State::Directory { .. }, Tree::Recursive) = (&expected, tree) {
                tree::check_removable(&location).about(&path)?;
            }
            Action::Remove(location, *tree, bound.contents)
        }
        Change::Move { from, to } => Action::Move(Location::of(from)?, Location::create_parents(to, way)?),
        Change::MakeDirectory { .. } => {
            if expected == State::Absent {
                let location = Location::create_parents(&path, way)?;
                make_directory(&path, location, way).about(&path)?;
            }
            return Ok(None);
        }
    };
    Ok(Some(Step { path, expected, action }))
}
