//! Roots of a config, and base paths of presets.

use super::decision::{Demand, DemandSource};
use super::grant::{Access, Deny, Grant, GrantTerms, Origin, Scope};
use super::path::AbsPath;
use super::right::{Operation, Rights};
use super::suffix::SuffixSet;

/// A named directory (or file) that tools and commands may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The name under `sandbox.paths`.
    pub name: String,
    /// Where it is; symlinks resolved.
    pub path: AbsPath,
    /// The inode when the config was resolved.
    pub identity: Identity,
    /// Whether it is one file or a directory.
    pub scope: Scope,
    /// What may be done below it.
    pub rights: Rights,
    /// If present, only files with one of these suffixes.
    pub suffixes: Option<SuffixSet>,
    /// If present, the largest file that may be written.
    pub max_file_bytes: Option<u64>,
    /// What reading below it demands.
    pub read_approval: Demand,
    /// What writing below it demands.
    pub write_approval: Demand,
    /// Who decided what writing demands.
    pub write_demand_source: DemandSource,
    /// What is forbidden below it.
    pub denies: Vec<Deny>,
    /// Where it was written.
    pub origin: Origin,
}

/// The device and inode a path led to when it was resolved; checked again where it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

/// A path that presets give to commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasePath {
    /// What it gives.
    pub grant: Grant,
    /// The inode when the config was resolved.
    pub identity: Identity,
}

impl Root {
    /// What it gives for `operation` on `path`, without its denies.
    pub fn gives(&self, operation: Operation, path: &AbsPath) -> Access {
        let terms = GrantTerms {
            path: &self.path,
            rights: self.rights,
            scope: self.scope,
            suffixes: self.suffixes.as_ref(),
            max_file_bytes: self.max_file_bytes,
        };
        terms.gives(operation, path)
    }

    /// The root as a grant, without its denies.
    pub fn grant(&self) -> Grant {
        Grant {
            path: self.path.clone(),
            rights: self.rights,
            scope: self.scope,
            suffixes: self.suffixes.clone(),
            max_file_bytes: self.max_file_bytes,
            origin: self.origin.clone(),
        }
    }
}
