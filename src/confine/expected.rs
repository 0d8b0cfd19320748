//! What a worker is started for, as far as that decides what it makes ready.

use serde::{Deserialize, Serialize};

use super::protocol::{CommandLimits, Kind};

/// Whether commands at a terminal may read their own files in /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnProcess {
    /// They may not: /proc is closed to the worker, and so to what it starts.
    Closed,
    /// They may. The worker's layer lets files of /proc be read, so that the layer of each command at a terminal
    /// can name the command's own.
    Readable,
}

/// What a worker is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// What commands at a terminal may read of themselves.
    pub own_process: OwnProcess,
    /// The kind of what is asked for at once, where what does that can be made ready before.
    pub first: Option<Kind>,
}

impl Expected {
    /// Nothing that could be made ready.
    pub const NOTHING: Self = Self {
        own_process: OwnProcess::Closed,
        first: None,
    };

    /// A command, which gets a terminal or does not.
    pub const fn command(at_terminal: bool, limits: CommandLimits) -> Self {
        if at_terminal {
            return Self {
                own_process: OwnProcess::Readable,
                first: None,
            };
        }
        let first = if limits.is_counted() { None } else { Some(Kind::Command) };
        Self { first, ..Self::NOTHING }
    }
}
