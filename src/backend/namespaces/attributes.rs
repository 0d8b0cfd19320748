//! Whether mounts keep attributes from changing wherever the attribute plan forbids it.
//!
//! chmod, chown, utime and the xattr calls fail with EROFS on a read-only mount, whoever asks. So no broker is needed where
//! all that is not read-only is what the plan permits. It holds for mounts that Stockade makes: bwrap cannot make
//! a device that acts read-only.

use super::copies::PrivateCopy;
use super::plan::BindAccess;
use super::reader::{Frozen, Mount, PLAN, View, read, refused};
use crate::backend::attributes::AttributePlan;
use crate::backend::survey::{Kind, Survey};
use crate::backend::{MadeBy, NamespacePlan};
use crate::policy::{AbsPath, Access, Operation, UnixSockets};
use crate::profile::index::Index;
use crate::profile::{FileReach, Landmarks, Reach, Witness, files_within};

/// Checks that what the mounts leave to be changed is within the attribute plan.
///
/// # Errors
/// What they leave beyond that: then the broker must judge.
pub fn attributes_within(
    namespace_plan: Option<&NamespacePlan>,
    sockets: UnixSockets,
    copies: &[PrivateCopy],
    plan: &AttributePlan,
    survey: &Survey,
) -> Result<(), Witness> {
    let mounts = match namespace_plan.map(|namespace_plan| (&namespace_plan.made_by, &namespace_plan.mounts)) {
        Some((MadeBy::Stockade, mounts)) => mounts,
        Some((MadeBy::Bwrap(_), _)) => return Err(refused("attributes of devices".to_owned())),
        None => return Err(refused("attributes outside: there are no mounts".to_owned())),
    };
    match sockets {
        UnixSockets::None => {}
        // It lies on a mount of whoever sends it.
        UnixSockets::WithinRoots | UnixSockets::All => {
            return Err(refused("attributes of a file that comes over a socket".to_owned()));
        }
    }
    let view = read(&mounts.render(), copies, survey)?;
    files_within(&Changeable { view: &view, survey }, plan)
}

/// Where mounts let attributes change: writing stands for that.
struct Changeable<'a> {
    view: &'a View,
    survey: &'a Survey,
}

impl FileReach for Changeable<'_> {
    fn name(&self) -> &'static str {
        PLAN
    }

    fn landmarks<'a>(&'a self, landmarks: &mut Landmarks<'a>) {
        self.view.landmarks(landmarks);
    }

    fn prepared(&self) -> Box<dyn Fn(&AbsPath) -> Reach + '_> {
        let mounts = self.view.index();
        let is_file = |path: &AbsPath| self.survey.node(path).is_some_and(|node| node.kind != Kind::Directory);
        let files: Index<'_, &AbsPath> = self
            .view
            .mounts
            .keys()
            .filter(|point| is_file(point))
            .map(|point| (point, point))
            .collect();
        Box::new(move |path| {
            let changes = match Mount::around(&mounts, path) {
                Mount::Host(BindAccess::Writable) | Mount::Copy | Mount::Tmpfs(Frozen::No) | Mount::Dev(Frozen::No) => {
                    true
                }
                // A device by itself is read-only, and acts all the same. A tree of devices is not.
                Mount::Host(BindAccess::Device) => files.exactly(path).next().is_none(),
                Mount::Proc(frozen) => frozen == Frozen::No,
                // The terminals in a /dev are of an instance of their own.
                Mount::Host(BindAccess::ReadOnly)
                | Mount::Mask
                | Mount::Tmpfs(Frozen::Yes)
                | Mount::Dev(Frozen::Yes) => false,
            };
            // A file that is a mount has nothing below it.
            let below_a_file = files.above(path).any(|file| *file != path);
            Reach::of(|operation| match operation {
                Operation::Write if changes && !below_a_file => Access::Full,
                Operation::Read | Operation::List | Operation::Write | Operation::Execute => Access::Denied,
            })
        })
    }
}
