//! What must lie out of reach of commands: what answers for the user, and what is recorded of them.

use crate::config::holds;
use crate::policy::{AbsPath, Access, Operation, Policy};

/// Why commands could get at the path, asked or not, if they could.
pub(crate) fn reachable_reason(policy: &Policy, path: &AbsPath) -> Option<String> {
    if let Some(root) = policy.roots.iter().find(|root| holds(&root.path, path)) {
        return Some(format!("it lies in the root `{}`, {}", root.name, root.path));
    }
    let mut operations = Operation::ALL.into_iter();
    operations
        .find(|operation| policy.access(*operation, path) != Access::Denied)
        .map(|operation| format!("the config permits to {operation} it"))
}
