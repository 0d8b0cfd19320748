//! The filters that answer for a process, in the order they are installed.

use serde::{Deserialize, Serialize};

use super::{Attributes, Program, Role, SeccompPlan};

/// The filters of both roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filters {
    /// Of the worker and its runners.
    pub worker: SeccompPlan,
    /// What a command installs behind them.
    pub command: SeccompPlan,
    /// What it installs in the place of that where mounts keep it from changing attributes outside; `None` where they do not.
    pub mounted: Option<SeccompPlan>,
}

impl Filters {
    /// Those that answer the calls of a role; of a command, where the broker judges attribute calls.
    pub const fn of(&self, role: Role) -> Stack<'_> {
        match role {
            Role::Worker => Stack::of_worker(&self.worker),
            Role::Command => Stack::of_command(&self.worker, &self.command),
        }
    }

    /// Those that answer the calls of a command where mounts keep it from changing attributes outside.
    pub fn of_mounted(&self) -> Option<Stack<'_>> {
        let mounted = self.mounted.as_ref()?;
        Some(Stack::of_command(&self.worker, mounted))
    }

    /// Who keeps a command from changing attributes outside, if it may be mounts.
    pub fn kept_by(&self, attributes: Attributes) -> Attributes {
        match (attributes, &self.mounted) {
            (Attributes::Mounted, Some(_)) => Attributes::Mounted,
            (Attributes::Mounted, None) | (Attributes::Brokered, _) => Attributes::Brokered,
        }
    }

    /// What a command installs. Mounts say nothing of a file that it was given open: then the broker judges.
    pub fn of_command(&self, attributes: Attributes) -> &SeccompPlan {
        match (attributes, &self.mounted) {
            (Attributes::Mounted, Some(mounted)) => mounted,
            (Attributes::Mounted, None) | (Attributes::Brokered, _) => &self.command,
        }
    }
}

/// The filters that answer the calls of a role: a command's are installed behind the worker's, which it is born with and
/// cannot take off. So they say only what those do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack<'a> {
    worker: &'a SeccompPlan,
    command: Option<&'a SeccompPlan>,
}

impl<'a> Stack<'a> {
    /// Those of the worker alone.
    pub const fn of_worker(worker: &'a SeccompPlan) -> Self {
        Self { worker, command: None }
    }

    /// Those of the worker, and behind them a command's.
    pub const fn of_command(worker: &'a SeccompPlan, command: &'a SeccompPlan) -> Self {
        Self {
            worker,
            command: Some(command),
        }
    }

    /// Whose calls they answer.
    pub const fn role(self) -> Role {
        match self.command {
            None => Role::Worker,
            Some(_) => Role::Command,
        }
    }

    /// What the role installs itself.
    pub(super) fn own(self) -> &'a SeccompPlan {
        self.command.unwrap_or(self.worker)
    }

    /// What it stands in already.
    pub(super) fn behind(self) -> Option<&'a SeccompPlan> {
        self.command.map(|_| self.worker)
    }

    /// In the order they are installed.
    pub fn programs(self) -> impl Iterator<Item = &'a Program> {
        let plans = std::iter::once(self.worker).chain(self.command);
        plans.flat_map(|plan| plan.notify.iter().chain(&plan.programs))
    }
}
