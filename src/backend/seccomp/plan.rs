//! The filters as data: what each role installs, and the stack of a process, in the order of installation.

use serde::{Deserialize, Serialize};

use super::instruction::Program;
use super::settings::{Attributes, Role};

/// The filters that one role installs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeccompPlan {
    /// Filters without a listener, in the order of installation; the strictest action wins.
    pub programs: Vec<Program>,
    /// The filter that hands attribute calls to the broker; installed first, with a listener, which the others refuse.
    pub notify: Option<Program>,
}

/// The filters of both roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filters {
    /// Of the forker and its runners.
    pub forker: SeccompPlan,
    /// What a command installs behind them.
    pub command: SeccompPlan,
    /// What it installs instead where mounts keep it from changing attributes outside; `None` where they do not.
    pub mounted: Option<SeccompPlan>,
}

impl Filters {
    /// The stack of a role; for a command, the one in which the broker judges attribute calls.
    pub const fn of(&self, role: Role) -> Stack<'_> {
        match role {
            Role::Forker => Stack::of_forker(&self.forker),
            Role::Command => Stack::of_command(&self.forker, &self.command),
        }
    }

    /// The stack of a command for which mounts keep attributes from changing outside.
    pub fn of_mounted(&self) -> Option<Stack<'_>> {
        let mounted = self.mounted.as_ref()?;
        Some(Stack::of_command(&self.forker, mounted))
    }

    /// Who keeps a command from changing attributes outside, if it may be mounts.
    pub fn kept_by(&self, attributes: Attributes) -> Attributes {
        match (attributes, &self.mounted) {
            (Attributes::Mounted, Some(_)) => Attributes::Mounted,
            (Attributes::Mounted, None) | (Attributes::Brokered, _) => Attributes::Brokered,
        }
    }

    /// The filters of a command. Mounts do not cover files that it inherits open: then the broker judges.
    pub fn of_command(&self, attributes: Attributes) -> &SeccompPlan {
        match (attributes, &self.mounted) {
            (Attributes::Mounted, Some(mounted)) => mounted,
            (Attributes::Mounted, None) | (Attributes::Brokered, _) => &self.command,
        }
    }
}

/// The stack of a role. A command inherits the forker's and cannot remove them; its own are installed
/// after them, and hold only what those lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack<'a> {
    forker: &'a SeccompPlan,
    command: Option<&'a SeccompPlan>,
}

impl<'a> Stack<'a> {
    /// The stack of the forker.
    pub const fn of_forker(forker: &'a SeccompPlan) -> Self {
        Self { forker, command: None }
    }

    /// The stack of a command: the forker's filters, then its own.
    pub const fn of_command(forker: &'a SeccompPlan, command: &'a SeccompPlan) -> Self {
        Self {
            forker,
            command: Some(command),
        }
    }

    /// The role.
    pub const fn role(self) -> Role {
        match self.command {
            None => Role::Forker,
            Some(_) => Role::Command,
        }
    }

    /// The filters that the role installs.
    pub(super) fn own(self) -> &'a SeccompPlan {
        self.command.unwrap_or(self.forker)
    }

    /// The filters that the role inherits.
    pub(super) fn behind(self) -> Option<&'a SeccompPlan> {
        self.command.map(|_| self.forker)
    }

    /// All programs, in the order of installation.
    pub fn programs(self) -> impl Iterator<Item = &'a Program> {
        let plans = std::iter::once(self.forker).chain(self.command);
        plans.flat_map(|plan| plan.notify.iter().chain(&plan.programs))
    }
}
