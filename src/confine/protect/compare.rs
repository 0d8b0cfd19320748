//! What was there: compared with what is there now, and put back.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use nix::errno::Errno;

use super::access;
use super::at::{self, split};
use super::error::ProtectError;
use super::gitconfig::{self, Verdict};
use super::gitscope::Scope;
use super::inspect::MAX_NEW;
use super::place::Role;
use super::record::Kept;
use super::restore::{can_be_made, is_blocked, put, replace, set_mode};
use super::roots::{Root, shown};
use super::state::{Seen, State, glance};
use super::tracked;
use super::vcs;
use super::violation::{Named, What};
use super::work::Work;

/// What was undone of one entry.
struct Undone {
    /// What had become of it.
    what: What,
    /// Where that is kept.
    quarantined: Option<PathBuf>,
    /// Why it could not be put back.
    failed: Option<ProtectError>,
    /// The settings that were undone, where they are the reason.
    named: Named,
}

impl Undone {
    fn of(what: What, failed: Option<ProtectError>) -> Self {
        Self {
            what,
            quarantined: None,
            failed,
            named: Named::default(),
        }
    }
}

impl Work<'_> {
    /// Puts back what was there and is not, or not as it was.
    pub(super) fn compare(&mut self) {
        // What is below a reported entry went with it; but what is kept aside is told of.
        let mut reported: BTreeSet<(u16, &[u8])> = BTreeSet::new();
        let lost = self.lost();
        for kept in &self.record.entries {
            let undone = self.undo(kept, &lost);
            let regained = match &kept.access {
                Some(access) => access.restore(self.root(kept.root), &kept.path),
                None => Ok(false),
            };
            let undone = match (undone, regained) {
                (Ok(None), Ok(false)) => continue,
                (Ok(None), Ok(true)) => Undone::of(What::Access, None),
                (Ok(None), Err(error)) => Undone::of(What::Access, Some(error)),
                (Ok(Some(undone)), Ok(_)) => undone,
                (Ok(Some(undone)), Err(error)) => {
                    self.settled.errors.push(error);
                    undone
                }
                (Err(error), _) => {
                    self.settled.errors.push(error);
                    continue;
                }
            };
            match undone.failed {
                None => self.changes += 1,
                Some(error) => {
                    // What is kept of it shows that there is one thing less in the way.
                    self.changes += usize::from(undone.quarantined.is_some());
                    let path = shown(self.root(kept.root), &kept.path);
                    self.failed.insert(path, error.to_string());
                    self.settled.errors.push(error);
                }
            }
            let mut above = kept.path.as_slice();
            let mut news = true;
            while !above.is_empty() {
                above = split(above).0;
                news &= !reported.contains(&(kept.root, above));
            }
            reported.insert((kept.root, &kept.path));
            if news || undone.quarantined.is_some() {
                self.report(kept.root, &kept.path, undone.what, undone.quarantined, undone.named);
            }
        }
    }

    /// Puts one entry back if it differs: what had become of it, where that is kept, and the error if nothing
    /// could be put in its place.
    fn undo(&mut self, kept: &Kept, lost: &HashSet<(u16, Vec<u8>)>) -> Result<Option<Undone>, ProtectError> {
        let root = self.root(kept.root);
        let limit = match &kept.state {
            // A config may have been added to, and a trusted commit may have a longer one of the others.
            State::File { content, .. } if matches!(kept.role, Role::GitConfig | Role::Judged) => {
                (content.len() as u64).max(1 << 20)
            }
            State::File { content, .. } if kept.role == Role::Name => (content.len() as u64).max(tracked::LONGEST),
            State::File { content, .. } if matches!(kept.role, Role::GitLink | Role::GitBack) => {
                (content.len() as u64).max(1 << 13)
            }
            State::File { content, .. } => content.len() as u64,
            State::Directory { .. } if kept.role == Role::GitDirectory => 1 << 13,
            State::Symlink { .. } | State::Directory { .. } | State::Special { .. } => 0,
            State::Left => return Ok(None),
        };
        let seen = glance(&root.fd, &kept.path, limit);
        let mut tamed = None;
        match (&kept.state, &seen) {
            (old, Seen::Present(new)) if old == new => return Ok(self.part(kept, new)),
            _ if self.has_gone_along(kept, &seen) => {
                let narrowed = access::narrow(root, &kept.path)?;
                return Ok(narrowed.then(|| Undone::of(What::Access, None)));
            }
            _ if self.tracked.may_stay(kept.root, &kept.path, kept.role, &seen) => {
                return Ok(narrowed(root, kept, &seen));
            }
            (State::Directory { mode }, Seen::Present(State::Directory { .. })) => {
                return Ok(Some(Undone::of(What::Changed, set_mode(root, &kept.path, *mode).err())));
            }
            (
                State::File { mode, content: old, .. },
                Seen::Present(
                    state @ State::File {
                        mode: now,
                        content: new,
                        names,
                        ..
                    },
                ),
            ) => {
                if old == new && !names.have_grown_from(kept.state.names()) {
                    let change = self.settled.changes.note(root, kept, &seen);
                    self.settled.changes.keep(change);
                    let failed = set_mode(root, &kept.path, *mode).err();
                    return Ok(Some(Undone::of(What::Changed, failed)));
                }
                if let Some(verdict) = self.verdict(kept, old, new) {
                    match verdict {
                        Verdict::Harmless if mode == now => return Ok(self.part(kept, state)),
                        Verdict::Harmless => tamed = Some((new.clone(), Named::default())),
                        Verdict::Tamed(text, named) => tamed = Some((text, named)),
                        Verdict::Unclear => {}
                    }
                }
            }
            // What is under way has ended.
            (_, Seen::Absent) if kept.role == Role::Judged => return Ok(None),
            (old, Seen::Absent) => {
                // Only where it is certain that nothing is there: anything else is put right.
                if matches!(at::stat(&root.fd, &kept.anchor), Err(Errno::ENOENT)) && !is_blocked(root, &kept.path) {
                    return Ok(None);
                }
                if went_with_its_work_tree(kept, lost) {
                    return Ok(None);
                }
                if !can_be_made(old) {
                    self.report(kept.root, &kept.path, What::Gone, None, Named::default());
                    return Ok(None);
                }
            }
            (_, Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_)) => {}
        }
        if let Some((text, named)) = tamed
            && let Some(undone) = self.tame(kept, &seen, text, named)
        {
            return Ok(Some(undone));
        }
        self.put_whole(kept, &seen)
    }

    /// Puts one entry back as it was.
    fn put_whole(&mut self, kept: &Kept, seen: &Seen) -> Result<Option<Undone>, ProtectError> {
        let root = self.root(kept.root);
        let change = self.settled.changes.note(root, kept, seen);
        let (what, mut quarantined) = match seen {
            Seen::Absent => (What::Removed, None),
            Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_) => {
                (What::Changed, self.quarantine.take(root, &kept.path, What::Changed)?)
            }
        };
        let what = if can_be_made(&kept.state) { what } else { What::Gone };
        let undone = |quarantined, failed| Undone {
            what,
            quarantined,
            failed,
            named: Named::default(),
        };
        if !can_be_made(&kept.state) {
            return Ok(Some(undone(quarantined, None)));
        }
        let mut made = put(root, &kept.path, &kept.state, &mut self.quarantine);
        // Room for what was there counts for more than a copy of what took its place.
        if made.as_ref().is_err_and(ProtectError::is_for_want_of_room)
            && let Some(place) = &quarantined
            && std::fs::remove_file(place).is_ok()
        {
            quarantined = None;
            made = put(root, &kept.path, &kept.state, &mut self.quarantine);
        }
        Ok(Some(match made {
            Ok(in_the_way) => {
                // Something else stood in its way: that was more than one change.
                self.settled.changes.keep(change.filter(|_| in_the_way.is_none()));
                undone(quarantined.or(in_the_way), None)
            }
            Err(error) => undone(quarantined, Some(error)),
        }))
    }

    /// What of a changed text may stay; none where all of it is put back.
    fn verdict(&self, kept: &Kept, old: &[u8], new: &[u8]) -> Option<Verdict> {
        if new.len() > old.len().max(MAX_NEW) {
            return None;
        }
        let (_, name) = split(&kept.path);
        match kept.role {
            Role::GitConfig => Some(gitconfig::of_change(Scope::of(name), old, new, &|place| {
                self.may_work(kept.root, &kept.path, place)
            })),
            Role::Judged => Some(vcs::verdict(name, Some(old), new)),
            Role::GitLink | Role::GitBack => self.leads_rightly(kept, old, new).then_some(Verdict::Harmless),
            Role::GitDirectory
            | Role::GitCommon
            | Role::GitHook
            | Role::Way
            | Role::Name
            | Role::TooDeep
            | Role::Unlisted => None,
        }
    }

    /// Makes a file that has been given another name one of its own, with what it holds.
    fn part(&mut self, kept: &Kept, now: &State) -> Option<Undone> {
        if !now.names().have_grown_from(kept.state.names()) {
            return None;
        }
        let made = put(self.root(kept.root), &kept.path, now, &mut self.quarantine);
        Some(Undone::of(What::Linked, made.err()))
    }

    /// Leaves of a changed config what may stay; none where that could not be written.
    fn tame(&mut self, kept: &Kept, seen: &Seen, text: Vec<u8>, named: Named) -> Option<Undone> {
        let root = self.root(kept.root);
        let state = kept.state.with_content(text)?;
        let change = self.settled.changes.note(root, kept, seen);
        let quarantined = replace(root, &kept.path, &state, What::Changed, &mut self.quarantine).ok()?;
        self.settled.changes.keep(change.map(|change| change.leaving(state)));
        Some(Undone {
            what: What::Changed,
            quarantined,
            failed: None,
            named,
        })
    }
}

/// Gives a tracked entry that stays no other mode than git gives it, or that there was; none where it has such a one.
fn narrowed(root: &Root, kept: &Kept, seen: &Seen) -> Option<Undone> {
    let Seen::Present(now) = seen else { return None };
    let mode = access::mode_of_tracked(&kept.state, now, kept.access.as_ref())?;
    Some(Undone::of(What::Access, set_mode(root, &kept.path, mode).err()))
}

/// Whether the entry lay in a work tree of which nothing is left but its empty directory.
fn went_with_its_work_tree(kept: &Kept, lost: &HashSet<(u16, Vec<u8>)>) -> bool {
    let goes = matches!(kept.role, Role::GitLink | Role::Name | Role::Judged);
    let mut above = kept.path.as_slice();
    while goes && !lost.is_empty() && !above.is_empty() {
        above = split(above).0;
        if lost.contains(&(kept.root, above.to_vec())) {
            return true;
        }
    }
    false
}
