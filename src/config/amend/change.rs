//! What may be added to a config.

use crate::policy::{AbsPath, Destination, Rights, Scope};

/// A grant to be added to a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new root.
    Root(NewRoot),
    /// More rights for an existing root.
    Widen(Widened),
    /// The names in a directory and below it.
    List(AbsPath),
    /// Hosts, as an entry of `shell.network.allow`.
    Host(Destination),
}

/// A root to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRoot {
    /// Its name under `sandbox.paths`.
    pub name: String,
    /// Where it is; links resolved.
    pub path: AbsPath,
    /// Whether it is one file or a directory.
    pub scope: Scope,
    /// Its rights, read among them.
    pub rights: Rights,
    /// Who may write there.
    pub writing: Writing,
}

/// Rights to be added to a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// Its name under `sandbox.paths`.
    pub name: String,
    /// Where it is.
    pub path: AbsPath,
    /// Whether it is one file or a directory.
    pub scope: Scope,
    /// The new rights.
    pub rights: Rights,
    /// Who may write there, if writing is new.
    pub writing: Writing,
}

/// Which commands may write in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// All commands.
    Free,
    /// Approved commands only, which is the default of a root.
    Asked,
}
