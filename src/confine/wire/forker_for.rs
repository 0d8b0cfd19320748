//! What the commands of a forker have as standard input, as far as that decides what the forker may read.

use serde::{Deserialize, Serialize};

use crate::confine::io::InputKind;

/// Which commands a forker is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForkerFor {
    /// Any but those at a terminal. /proc is closed to the forker, and so to what it starts.
    Others,
    /// Those at a terminal, which may read their own files in /proc. The forker's layer lets files of /proc be read, so
    /// that the layer of each of them can name the command's own.
    Terminal,
}

impl ForkerFor {
    /// A command with this input.
    pub const fn input(input: InputKind) -> Self {
        match input {
            InputKind::Terminal => Self::Terminal,
            InputKind::Pipe | InputKind::Null | InputKind::File => Self::Others,
        }
    }
}
