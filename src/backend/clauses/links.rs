//! Denied files with a second name: a hard link elsewhere is the same file, and a rule there would hold
//! for it. Nobody can say where the other name is, so the start is refused.

use std::collections::BTreeSet;

use super::obstacles::Operations;
use crate::backend::status::Refusal;
use crate::backend::survey::{Kind, Node, Survey};
use crate::policy::private_names::ORIGIN_OF_STOCKADE;
use crate::policy::{AbsPath, Access, Deny, Operation, Target};
use crate::profile::Profile;

/// Denied files, and the names they have.
pub(in crate::backend) struct Links<'a> {
    profile: &'a Profile,
    survey: &'a Survey,
    /// Directories and operations that were gone through.
    seen: BTreeSet<(AbsPath, Operation)>,
}

impl<'a> Links<'a> {
    /// The denied files of a profile.
    pub(in crate::backend) const fn new(profile: &'a Profile, survey: &'a Survey) -> Self {
        Self {
            profile,
            survey,
            seen: BTreeSet::new(),
        }
    }

    /// Refuses when a file that a deny names has another name, wherever it lies.
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

    /// Refuses when the file has another name and a deny takes one of the operations from it.
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

    /// Whether no deny holds there, because it ended above, or only one of what belongs to Stockade.
    fn is_left_alone(&self, directory: &AbsPath) -> bool {
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
            if self.is_left_alone(&path) || !self.seen.insert((path.clone(), operation)) {
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
