//! Denied files with a second name. A hard link elsewhere is the same file, and a grant there would reach it. Its path cannot
//! be found, so the start is refused.

use std::collections::BTreeSet;

use super::obstacles::Operations;
use crate::backend::status::Refusal;
use crate::backend::survey::{Kind, Node, Survey};
use crate::policy::private_names::ORIGIN_OF_STOCKADE;
use crate::policy::{AbsPath, Access, Deny, Operation, Target};
use crate::profile::Profile;

/// The denied files of a profile.
pub(in crate::backend) struct Links<'a> {
    profile: &'a Profile,
    survey: &'a Survey,
    /// Directories and operations already checked.
    visited: BTreeSet<(AbsPath, Operation)>,
}

impl<'a> Links<'a> {
    /// The denied files of a profile.
    pub(in crate::backend) const fn new(profile: &'a Profile, survey: &'a Survey) -> Self {
        Self {
            profile,
            survey,
            visited: BTreeSet::new(),
        }
    }

    /// Refuses if a file that a deny names has another name.
    pub(in crate::backend) fn refuse_targets(&self) -> Result<(), Refusal> {
        for deny in &self.profile.denies {
            if let Target::Path(path) = &deny.target
                && let Some(node) = self.survey.node(path)
                && node.kind != Kind::Directory
            {
                self.refuse(path, node, Operation::ALL.into_iter().collect())?;
            }
        }
        Ok(())
    }

    /// Refuses if the file has another name and a deny takes one of the operations.
    pub(in crate::backend) fn refuse(&self, path: &AbsPath, node: Node, operations: Operations) -> Result<(), Refusal> {
        if node.links < 2 {
            return Ok(());
        }
        let takes = |deny: &&Deny| operations.iter().any(|op| deny.leaves(op, path) != Access::Full);
        match self.profile.denies.iter().find(takes) {
            Some(deny) => Err(Refusal::HardLink {
                path: path.clone(),
                clause: deny.to_string(),
                origin: deny.origin.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Whether no deny holds there but that of Stockade's own directories.
    fn is_exempt(&self, directory: &AbsPath) -> bool {
        let mut holding = self.profile.denies.iter().filter(|deny| deny.covers(directory));
        holding.all(|deny| deny.origin == ORIGIN_OF_STOCKADE)
    }

    /// The same for every file below a denied directory.
    pub(in crate::backend) fn refuse_below(
        &mut self,
        directory: &AbsPath,
        operation: Operation,
    ) -> Result<(), Refusal> {
        let operations = [operation].into_iter().collect();
        let mut todo = vec![directory.clone()];
        while let Some(path) = todo.pop() {
            if self.is_exempt(&path) || !self.visited.insert((path.clone(), operation)) {
                continue;
            }
            for (child, node) in self.survey.children(&path).map_err(Refusal::NotSurveyed)? {
                match node.kind {
                    Kind::Directory => todo.push(child),
                    Kind::File | Kind::Device | Kind::Fifo | Kind::Socket => self.refuse(&child, node, operations)?,
                    Kind::Symlink => {}
                }
            }
        }
        Ok(())
    }
}
