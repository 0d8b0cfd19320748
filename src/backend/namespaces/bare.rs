//! What mounts alone let be changed and show, held against what clauses speak of.

use super::own::{Tmp, WithOwn, in_own};
use super::reader::{Mount, PLAN, View};
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Access, Deny, Operation, Right, Target};
use crate::profile::index::Index;
use crate::profile::{FileReach, Landmarks, Profile, Reach, Witness, files_within};

/// Whether a mount would hide too much: all that lies in what it covers.
fn hides_part(deny: &Deny) -> bool {
    deny.rights.has(Right::Read) && !deny.ends.is_empty()
}

/// What mounts alone let be changed, and what they show, is what clauses speak of: grants, and denies of
/// paths that exist. (Denies that the layer must hold are the layer's.)
pub(super) fn alone(
    (view, tmp): (&View, Tmp),
    loader: &[AbsPath],
    profile: &Profile,
    survey: &Survey,
) -> Result<(), Witness> {
    let mut clauses = profile.clone();
    clauses.denies.retain(|deny| match &deny.target {
        Target::Path(path) => {
            let there = survey.node(path).is_some_and(|node| node.kind != Kind::Symlink);
            there && deny.except.is_none() && !hides_part(deny) && !in_own(path)
        }
        Target::Pattern { .. } => false,
    });
    // Mounts hide what may not be read. What may only not be executed or changed is not hidden by them, even
    // where nothing else was granted.
    let mut hiding = clauses.clone();
    hiding.denies.retain(|deny| deny.rights.has(Right::Read));
    let with_own = |profile| WithOwn { profile, tmp };
    let spoken = Spoken {
        changed: with_own(&clauses),
        shown: with_own(&hiding),
        loader,
        survey,
    };
    let bare = Bare { view };
    files_within(&bare, &spoken)
}

/// What mounts show: reading stands for being shown, writing for being changed.
struct Bare<'a> {
    view: &'a View,
}

impl FileReach for Bare<'_> {
    fn name(&self) -> &'static str {
        PLAN
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.view.landmarks(landmarks);
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let mounts = self.view.index();
        Box::new(move |path| {
            let mount = Mount::around(&mounts, path);
            let reach = mount.reach(path);
            Reach::of(|operation| match operation {
                // The regime's own mounts show nothing of the host but harmless devices.
                Operation::Read | Operation::Write if mount.is_of_the_host() => reach.get(operation),
                Operation::Read | Operation::List | Operation::Write | Operation::Execute => Access::Denied,
            })
        })
    }
}

/// What clauses speak of at all.
struct Spoken<'a> {
    changed: WithOwn<'a>,
    shown: WithOwn<'a>,
    loader: &'a [AbsPath],
    survey: &'a Survey,
}

impl FileReach for Spoken<'_> {
    fn name(&self) -> &'static str {
        self.changed.name()
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.changed.landmarks(landmarks);
        self.loader.iter().for_each(|path| landmarks.path(path));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let (changes, hides) = (self.changed.prepared(), self.shown.prepared());
        let files = self.survey.nodes().filter(|(_, node)| node.kind != Kind::Directory);
        let files: Index<'_, &AbsPath> = files.map(|(path, _)| (path, path)).collect();
        Box::new(move |path| {
            let reach = hides(path);
            let spoken = Operation::ALL.into_iter().any(|op| reach.get(op) != Access::Denied);
            // A file has nothing below it.
            let below_a_file = files.above(path).any(|file| *file != path);
            let shown = spoken || below_a_file || self.loader.contains(path);
            let shown = if shown { Access::Full } else { Access::Denied };
            Reach::of(|operation| match operation {
                Operation::Write if below_a_file => Access::Full,
                Operation::Write => changes(path).get(Operation::Write),
                Operation::Read | Operation::List | Operation::Execute => shown,
            })
        })
    }
}
