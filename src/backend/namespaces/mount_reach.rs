//! Checks that mounts alone show and change only what some clause names.

use super::own::{ProfileWithOwnMounts, Tmp, in_own_mount};
use super::reader::{Mount, PLAN, View};
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Access, Deny, Operation, Right, Target};
use crate::profile::index::Index;
use crate::profile::{FileReach, Landmarks, Profile, Reach, Witness, files_within};

/// Whether a mount would hide too much: a mask has no ends.
fn hides_part(deny: &Deny) -> bool {
    deny.rights.has(Right::Read) && !deny.ends.is_empty()
}

/// Checks what mounts show and let be changed against the grants, and the denies of paths that exist. Landlock enforces the
/// other denies.
pub(super) fn check_mount_reach(
    (view, tmp): (&View, Tmp),
    loader: &[AbsPath],
    profile: &Profile,
    survey: &Survey,
) -> Result<(), Witness> {
    let mut clauses = profile.clone();
    clauses.denies.retain(|deny| match &deny.target {
        Target::Path(path) => {
            let there = survey.node(path).is_some_and(|node| node.kind != Kind::Symlink);
            there && deny.except.is_none() && !hides_part(deny) && !in_own_mount(path)
        }
        Target::Pattern { .. } => false,
    });
    // Mounts hide only what may not be read.
    let mut hiding = clauses.clone();
    hiding.denies.retain(|deny| deny.rights.has(Right::Read));
    let with_own_mounts = |profile| ProfileWithOwnMounts { profile, tmp };
    let clause_reach = ClauseReach {
        changed: with_own_mounts(&clauses),
        shown: with_own_mounts(&hiding),
        loader,
        survey,
    };
    let mount_reach = MountReach { view };
    files_within(&mount_reach, &clause_reach)
}

/// The reach of mounts alone: read means shown, write means changeable.
struct MountReach<'a> {
    view: &'a View,
}

impl FileReach for MountReach<'_> {
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

/// The paths that clauses name.
struct ClauseReach<'a> {
    changed: ProfileWithOwnMounts<'a>,
    shown: ProfileWithOwnMounts<'a>,
    loader: &'a [AbsPath],
    survey: &'a Survey,
}

impl FileReach for ClauseReach<'_> {
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
            let clause_reach = Operation::ALL.into_iter().any(|op| reach.get(op) != Access::Denied);
            // A file has nothing below it.
            let below_a_file = files.above(path).any(|file| *file != path);
            let shown = clause_reach || below_a_file || self.loader.contains(path);
            let shown = if shown { Access::Full } else { Access::Denied };
            Reach::of(|operation| match operation {
                Operation::Write if below_a_file => Access::Full,
                Operation::Write => changes(path).get(Operation::Write),
                Operation::Read | Operation::List | Operation::Execute => shown,
            })
        })
    }
}
