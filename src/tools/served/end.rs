//! How a command that lives as long as the session ended.

use crate::tools::outcome::Status;
use crate::tools::restored::{Changed, MEANWHILE, Restored};

/// How such a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedEnd {
    /// How.
    pub status: Status,
    /// Protected names that it changed and that were restored.
    pub restored: Vec<Restored>,
    /// Why protected names could not be restored, if they could not.
    pub unsettled: Option<String>,
    /// Why the audit log does not say so, if it was to and does not.
    pub unrecorded: Option<String>,
}

impl ServedEnd {
    /// How it ended, in a few words.
    pub fn message(&self) -> String {
        self.status.message().unwrap_or_else(|| "exit code 0".to_owned())
    }

    /// What else is to be said of it, a line each.
    pub fn aftermath(&self) -> Vec<String> {
        let restored = Changed::of(&self.restored).messages(MEANWHILE);
        let unsettled = self
            .unsettled
            .iter()
            .map(|why| format!("protected names could not be restored: {why}"));
        let unrecorded = self
            .unrecorded
            .iter()
            .map(|why| format!("its end is not in the audit log: {why}"));
        restored.into_iter().chain(unsettled).chain(unrecorded).collect()
    }
}
