//! What a worker is started for, as far as that decides what it makes ready.

use serde::{Deserialize, Serialize};

use super::io::InputKind;
use super::protocol::CommandLimits;

/// What a worker is asked for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// Nothing that could be made ready.
    Nothing,
    /// A command; its process is made ready before it is asked for.
    Command,
    /// A command at a terminal, which may read its own files in /proc. The worker's layer lets files of /proc be read, so
    /// that the layer of each command at a terminal can name the command's own; for others /proc is closed to the worker, and so to
    /// what it starts.
    AtTerminal,
}

impl Expected {
    /// A command, which gets a terminal or does not.
    pub const fn command(input: InputKind, limits: CommandLimits) -> Self {
        match (input, limits.is_counted()) {
            (InputKind::Terminal, _) => Self::AtTerminal,
            (InputKind::Pipe | InputKind::Null, false) => Self::Command,
            (InputKind::Pipe | InputKind::Null, true) | (InputKind::File, _) => Self::Nothing,
        }
    }
}
