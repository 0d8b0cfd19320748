//! Whether mounts alone keep to a profile, for a bwrap with no layer inside.

use std::ffi::OsString;

use super::own::is_internal;
use super::reader::{Mount, PLAN, View, read};
use super::validate::{pinned, surroundings};
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Access, Operation};
use crate::profile::{FileReach, Landmarks, Profile, Reach, Witness, files_within};

/// Holds what the arguments permit of the host's files against a profile in which whatever may be read may be executed.
pub fn mounts_within(argv: &[OsString], profile: &Profile, survey: &Survey) -> Result<(), Witness> {
    let view = read(argv, &[], survey)?;
    surroundings(&view, profile)?;
    pinned(&view, profile, &[])?;
    files_within(&Alone { view, survey }, profile)
}

/// What mounts let be done with the host's files. What the regime brings along is nobody else's.
struct Alone<'a> {
    view: View,
    survey: &'a Survey,
}

impl FileReach for Alone<'_> {
    fn name(&self) -> &'static str {
        PLAN
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.view.landmarks(landmarks);
        // Whether something is there decides as well.
        self.survey.nodes().for_each(|(path, _)| landmarks.path(path));
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let mounts = self.view.index();
        Box::new(move |path| {
            let mount = Mount::around(&mounts, path);
            let kind = |path: &AbsPath| self.survey.node(path).map(|node| node.kind);
            let below_a_file = path
                .ancestors()
                .skip(1)
                .any(|above| kind(&above).is_some_and(|kind| kind != Kind::Directory));
            let reach = mount.reach(path);
            // What does not exist, and cannot be made, is not there to be reached; a link is reached where it leads.
            let nothing = reach.get(Operation::Write) == Access::Denied && self.survey.is_absent(path)
                || kind(path) == Some(Kind::Symlink);
            let is_file = kind(path).is_some_and(|kind| kind != Kind::Directory);
            // What the kernel tells of the whole machine is not the regime's; to be read is all it is there for.
            if matches!(mount, Mount::Proc(_)) && is_internal(path) && kind(path).is_some() {
                return Reach::of(|operation| match operation {
                    Operation::Read => Access::Full,
                    Operation::List if !is_file => Access::Full,
                    Operation::List | Operation::Write | Operation::Execute => Access::Denied,
                });
            }
            if !mount.is_of_the_host() || below_a_file || nothing {
                return Reach::of(|_| Access::Denied);
            }
            Reach::of(|operation| match operation {
                Operation::List if is_file => Access::Denied,
                Operation::Read | Operation::List | Operation::Write | Operation::Execute => reach.get(operation),
            })
        })
    }
}
