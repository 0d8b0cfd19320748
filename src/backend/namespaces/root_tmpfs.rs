//! What is made on the root tmpfs beside mounts: links of system directories, and the directory that commands start in.

use std::ffi::OsString;

use super::mounting::{MountRequest, Mounting};
use super::own::{PROC, TMP};
use super::plan::Step;
use super::visibility::Visibility;
use crate::backend::survey::Kind;
use crate::policy::AbsPath;

impl Mounting<'_> {
    /// Links of system directories on the root tmpfs that lead to what is shown: `/bin`, `/lib64`.
    pub(super) fn links(&mut self, request: &MountRequest<'_>) {
        let survey = self.survey;
        // On the way to the loader there may be links to links, in directories where nothing else is shown.
        let on_the_way = |path: &AbsPath| {
            request.loader.contains(path)
                && path
                    .ancestors()
                    .skip(1)
                    .all(|above| survey.node(&above).is_none_or(|node| node.kind != Kind::Symlink))
        };
        for (path, link) in survey.links().filter(|(path, _)| on_the_way(path)) {
            let is_room = match self.around(path) {
                (None, _) => true,
                (Some(own), Visibility::Nothing) => own.as_bytes() == TMP.as_bytes(),
                (Some(_), Visibility::Masked | Visibility::ReadOnly | Visibility::Writable | Visibility::Device) => {
                    false
                }
            };
            if is_room {
                self.skeleton.extend(path.ancestors().skip(1));
                self.symlink(path, link.target.clone());
            }
        }
        for (path, link) in survey.links() {
            let in_skeleton = path.parent().is_some_and(|parent| self.skeleton.contains(&parent));
            let leads = match self.around(&link.leads_to) {
                (Some(_), Visibility::ReadOnly | Visibility::Writable | Visibility::Device) => true,
                (Some(own), Visibility::Nothing) => own.as_bytes() == PROC.as_bytes(),
                (Some(_), Visibility::Masked) | (None, _) => false,
            };
            let is_new =
                !self.skeleton.contains(path) && !self.made.contains_key(path) && !request.loader.contains(path);
            if in_skeleton && leads && is_new {
                self.symlink(path, link.target.clone());
            }
        }
    }

    /// The directory that commands start in, empty where nothing else is shown there.
    pub(super) fn start(&mut self, start: &AbsPath) {
        let is_in_memory = match self.around(start) {
            (None, _) => true,
            (Some(own), Visibility::Nothing) => own.as_bytes() == TMP.as_bytes() && own != *start,
            (Some(_), Visibility::Masked | Visibility::ReadOnly | Visibility::Writable | Visibility::Device) => false,
        };
        // The host's links are followed before: what is called so inside is something else.
        let links = |path: &AbsPath| self.survey.links().any(|(link, _)| link == path);
        if is_in_memory && start.parent().is_some() && !start.ancestors().any(|path| links(&path)) {
            self.steps.push(Step::Directory {
                path: start.as_path().as_os_str().to_owned(),
            });
        }
    }

    fn symlink(&mut self, path: &AbsPath, target: OsString) {
        self.steps.push(Step::Symlink {
            path: path.as_path().as_os_str().to_owned(),
            target,
        });
    }
}
