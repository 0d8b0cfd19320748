//! Which tools a config offers.

use super::call::NAME;
use super::files::FileKind;
use crate::config::CustomTool;
use crate::policy::{Access, Demand, Operation, Policy, Right, ShellRule};

#[derive(Debug)]
pub(super) struct OfferedTools {
    files: Vec<FileKind>,
    shell: bool,
    custom: Vec<CustomTool>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfferedTool<'a> {
    /// A tool for files.
    File(FileKind),
    /// The one that runs commands.
    Shell,
    /// One of the config's own.
    Custom(&'a CustomTool),
}

impl OfferedTool<'_> {
    /// What agents call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::File(kind) => kind.name(),
            Self::Shell => NAME,
            Self::Custom(tool) => &tool.name,
        }
    }
}

/// Whether some call of a policy might run a command.
pub(crate) fn offers_commands(policy: &Policy, custom: &[CustomTool]) -> bool {
    let offered = OfferedTools::by(policy, custom.to_vec());
    offered.shell || offered.custom.iter().any(|tool| !tool.command.is_empty())
}

impl OfferedTools {
    /// A tool is offered if some call of it might be allowed.
    pub(super) fn by(policy: &Policy, custom: Vec<CustomTool>) -> Self {
        let denied = |name: &str| policy.tools.get(name).is_some_and(|rule| rule.approval == Demand::Deny);
        let open = |demand: Demand| demand != Demand::Deny;
        let reads = policy
            .roots
            .iter()
            .any(|root| root.rights.has(Right::Read) && open(root.read_approval));
        let writes = policy
            .roots
            .iter()
            .any(|root| root.rights.has(Right::Write) && open(root.write_approval) && open(root.read_approval))
            && policy.roots.iter().any(|root| {
                policy.ceilings.all.is_empty()
                    || policy.access(Operation::Write, &root.path) > Access::Denied
                    || root.suffixes.is_some()
            });
        let files = FileKind::ALL
            .into_iter()
            .filter(|kind| !denied(kind.name()) && if kind.changes() { writes } else { reads })
            .collect();
        let allows = |rule: &ShellRule| rule.allowed && open(rule.approval);
        Self {
            files,
            shell: !denied(NAME) && (allows(&policy.default_rule) || policy.rules.iter().any(allows)),
            custom: custom
                .into_iter()
                .filter(|tool| !denied(&tool.name) && open(tool.approval))
                .collect(),
        }
    }

    /// All of them, in the order in which they are listed.
    pub(super) fn all(&self) -> impl Iterator<Item = OfferedTool<'_>> {
        let files = self.files.iter().copied().map(OfferedTool::File);
        let shell = self.shell.then_some(OfferedTool::Shell);
        files.chain(shell).chain(self.custom.iter().map(OfferedTool::Custom))
    }

    /// The names of the config's own.
    pub(super) fn custom_names(&self) -> Vec<String> {
        self.custom.iter().map(|tool| tool.name.clone()).collect()
    }
}
