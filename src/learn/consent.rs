//! What flags accept in advance.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::proposal::{AcceptedBy, Proposal};
use super::risk::Risk;
use crate::config::{self, amend::Change};
use crate::policy::{AbsPath, Destination, PatternError, Rights};
use crate::tools::call::pasted;

/// One `--include`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Include {
    /// These rights on this path.
    Path(Rights, PathBuf),
    /// A host.
    Host(Destination),
}

/// Why an `--include` is invalid.
#[derive(Debug, thiserror::Error)]
pub enum IncludeError {
    /// No mode stands before the path.
    #[error("write MODE:PATH (`r`, `rw`, `rx`, `rwx`) or HOST:PORTS: {0}")]
    Form(#[from] PatternError),
    /// A mode without a path.
    #[error("no path stands behind the mode")]
    NoPath,
}

impl Include {
    /// Reads `MODE:PATH` or `HOST:PORTS`. A path need not be text.
    pub fn parse(text: &OsStr) -> Result<Self, IncludeError> {
        let bytes = text.as_bytes();
        let colon = bytes.iter().position(|byte| *byte == b':').unwrap_or(bytes.len());
        let (mode, rest) = bytes.split_at(colon);
        let rights = match mode {
            b"r" | b"ro" => Some(Rights::READ),
            b"rw" => Some(Rights::READ | Rights::WRITE),
            b"rx" | b"rox" => Some(Rights::READ | Rights::EXECUTE),
            b"rwx" => Some(Rights::ALL),
            _ => None,
        };
        match (rights, rest) {
            (Some(_), [] | [_]) => Err(IncludeError::NoPath),
            (Some(rights), [_, path @ ..]) => Ok(Self::Path(rights, PathBuf::from(OsStr::from_bytes(path)))),
            // No host has a byte that is no text.
            (None, _) => Ok(Self::Host(Destination::parse(
                &text
                    .to_str()
                    .map_or_else(|| crate::policy::path::display(text), str::to_owned),
            )?)),
        }
    }
}

/// A path that was included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IncludedPath {
    rights: Rights,
    /// The resolved path.
    path: AbsPath,
    /// Whether that is what was written: no link, and no `..`, led there.
    as_written: bool,
}

/// What is accepted without a question.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    low: bool,
    paths: Vec<IncludedPath>,
    hosts: Vec<Destination>,
}

impl Consent {
    /// What flags accept; relative paths start at `cwd`.
    pub fn of(yes: bool, includes: &[Include], cwd: &Path) -> std::io::Result<Self> {
        let mut consent = Self {
            low: yes,
            ..Self::default()
        };
        for include in includes {
            match include {
                Include::Path(rights, path) => {
                    let written = config::resolve_path(cwd)?.as_path().join(path);
                    let path = config::resolve_path(&written)?;
                    let as_written = AbsPath::new(&written).is_ok_and(|written| written == path);
                    consent.paths.push(IncludedPath {
                        rights: *rights,
                        path,
                        as_written,
                    });
                }
                Include::Host(host) => consent.hosts.push(host.clone()),
            }
        }
        Ok(consent)
    }

    /// The included hosts.
    pub fn hosts(&self) -> Vec<Change> {
        self.hosts.iter().cloned().map(Change::Host).collect()
    }

    /// Whether a proposal is accepted. What is secret or broad is only by its own name, and by no directory around it.
    pub fn accepts(&self, proposal: &Proposal) -> Option<AcceptedBy> {
        let risk = proposal.rating.risk;
        let is_included = |path: &AbsPath, rights: Rights| {
            self.paths.iter().any(|included| {
                let names = match risk {
                    Risk::Low | Risk::High => path.is_within(&included.path),
                    // Whoever wrote the name of a link may not know where it leads.
                    Risk::Secret => *path == included.path && included.as_written,
                };
                names && included.rights.contains(rights)
            })
        };
        let included = match &proposal.change {
            Change::Root(root) => is_included(&root.path, proposal.adds),
            Change::Widen(root) => is_included(&root.path, proposal.adds),
            Change::List(path) => is_included(path, proposal.adds),
            Change::Host(host) => self.hosts.iter().any(|included| included == host),
        };
        match (included, self.low && risk == Risk::Low) {
            (true, _) => Some(AcceptedBy::Include),
            (false, true) => Some(AcceptedBy::Yes),
            (false, false) => None,
        }
    }
}

/// The flag that accepts a proposal, for a shell.
pub fn flag(proposal: &Proposal) -> String {
    let path = |path: &AbsPath| {
        let letters = [(Rights::WRITE, "w"), (Rights::EXECUTE, "x")];
        let letters = letters.iter().filter(|(right, _)| proposal.adds.contains(*right));
        let mode: String = std::iter::once("r").chain(letters.map(|(_, letter)| *letter)).collect();
        let mut argument = OsString::from(mode);
        argument.push(":");
        argument.push(path.as_path());
        argument
    };
    let argument = match &proposal.change {
        Change::Root(root) => path(&root.path),
        Change::Widen(root) => path(&root.path),
        Change::List(names) => path(names),
        Change::Host(host) => host.to_string().into(),
    };
    format!("--include {}", pasted(&argument))
}
