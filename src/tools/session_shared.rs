//! What the tools of one session share.

use std::path::PathBuf;
use std::sync::Arc;

use nix::sys::signal::Signal;
use tokio::sync::{Mutex, mpsc};

use super::call::ToolError;
use super::command_slots::CommandSlots;
use super::executor::Executor;
use super::tool::Reach;
use crate::config::Diagnostic;
use crate::policy::AbsPath;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) executor: Mutex<Executor>,
    pub(super) stops: Arc<Mutex<mpsc::Receiver<Signal>>>,
    /// What relative paths are relative to, and where commands start.
    pub(super) directory: PathBuf,
    pub(super) reach: Reach,
    /// What commands and changes of all sessions beside one another share.
    pub(super) slots: CommandSlots,
    /// Lines of the policy that may not mean what their writer thinks.
    pub(super) warnings: Arc<[Diagnostic]>,
}

impl Shared {
    pub(super) fn started_in(&self) -> Result<AbsPath, ToolError> {
        AbsPath::new(&self.directory).map_err(|_| ToolError::Directory(self.directory.clone()))
    }
}
