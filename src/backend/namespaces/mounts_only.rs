//! Checks that mounts alone permit no more than a profile, for a bwrap without a Landlock layer.

use std::ffi::OsString;

use super::own::is_internal;
use super::reader::{Mount, PLAN, View, read};
use super::validate::{check_namespaces, check_pins};
use crate::backend::survey::{Kind, Survey};
use crate::policy::{AbsPath, Access, Operation};
use crate::profile::{FileReach, Landmarks, Profile, Reach, Witness, files_within};

/// Checks the arguments of bwrap against a profile in which all readable files are executable.
pub fn mounts_within(argv: &[OsString], profile: &Profile, survey: &Survey) -> Result<(), Witness> {
    let view = read(argv, &[], survey)?;
    check_namespaces(&view, profile)?;
    check_pins(&view, profile, &[])?;
    files_within(&MountsOnly { view, survey }, profile)
}

/// What mounts permit on the host's files.
struct MountsOnly<'a> {
    view: View,
    survey: &'a Survey,
}

impl FileReach for MountsOnly<'_> {
    fn name(&self) -> &'static str {
        PLAN
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.view.landmarks(landmarks);
        // Whether a path exists matters too.
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
            // A path that does not exist and cannot be created is out of reach; a link counts as its target.
            let nothing = reach.get(Operation::Write) == Access::Denied && self.survey.is_absent(path)
                || kind(path) == Some(Kind::Symlink);
            let is_file = kind(path).is_some_and(|kind| kind != Kind::Directory);
            // Kernel internals in /proc belong to the host, and can only be read.
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
