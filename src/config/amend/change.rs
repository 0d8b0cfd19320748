//! What may be added to a config.

use crate::policy::{AbsPath, Place, Rights, Scope};

/// One thing that a config is to grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A root that is not there yet.
    Root(NewRoot),
    /// More rights for a root of the file's own.
    Widen(Widened),
    /// The names in a directory and below it.
    List(AbsPath),
    /// Hosts, as an entry of `shell.network.allow`.
    Host(Place),
}

/// A root to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRoot {
    /// Its name under `sandbox.paths`.
    pub name: String,
    /// Where it is; links resolved.
    pub path: AbsPath,
    /// Whether it is one file or a directory.
    pub scope: Scope,
    /// What it gives: reading, and what else.
    pub rights: Rights,
    /// Who may write there.
    pub writing: Writing,
}

/// What a root of the file gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// Its name under `sandbox.paths`.
    pub name: String,
    /// Where it is.
    pub path: AbsPath,
    /// Whether it is one file or a directory.
    pub scope: Scope,
    /// The rights that it lacks.
    pub rights: Rights,
    /// Who may write there, where writing is new.
    pub writing: Writing,
}

/// Which commands may write in a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// Also those that nobody is asked about.
    Free,
    /// Those that were asked about: what holds where a root says nothing.
    Asked,
}
