//! What is accepted before anybody is asked.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::risk::Risk;
use super::{AcceptedBy, Needs, Proposal};
use crate::config::{self, amend::Change};
use crate::policy::{AbsPath, PatternError, Place, Rights, UnixSockets};
use crate::tools::call::pasted;

/// Something that was named to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Include {
    /// These rights on this path.
    Path(Rights, PathBuf),
    /// A host.
    Host(Place),
    /// Unix sockets.
    Sockets(UnixSockets),
    /// That protected names are put back afterwards.
    Undo,
}

/// What names that protected names are put back afterwards.
const UNDO: &[u8] = b"protect_fallback:undo";

/// Why a word names nothing.
#[derive(Debug, thiserror::Error)]
pub enum IncludeError {
    /// No mode stands before the path.
    #[error("write MODE:PATH (`r`, `rw`, `rx`, `rwx`), HOST:PORTS, `unix_sockets:all` or `protect_fallback:undo`: {0}")]
    Form(#[from] PatternError),
    /// A mode without a path.
    #[error("no path stands behind the mode")]
    NoPath,
}

impl Include {
    /// Reads `MODE:PATH`, `HOST:PORTS`, `unix_sockets:all`, `protect_fallback:undo`. A path need not be text.
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
            (None, _) => match bytes {
                b"unix_sockets:all" => Ok(Self::Sockets(UnixSockets::All)),
                UNDO => Ok(Self::Undo),
                b"unix_sockets:within_roots" => Ok(Self::Sockets(UnixSockets::WithinRoots)),
                // No host has a byte that is no text.
                _ => Ok(Self::Host(Place::parse(
                    &text
                        .to_str()
                        .map_or_else(|| crate::policy::path::display(text), str::to_owned),
                )?)),
            },
        }
    }
}

/// A path that was named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    rights: Rights,
    /// Where it leads.
    place: AbsPath,
    /// Whether that is what was written: no link, and no `..`, led there.
    as_written: bool,
}

/// What is accepted without a question.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    low: bool,
    paths: Vec<Named>,
    hosts: Vec<Place>,
    sockets: Option<UnixSockets>,
    undo: bool,
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
                    let path = config::leads_to(cwd)?.as_path().join(path);
                    let place = config::leads_to(&path)?;
                    let as_written = AbsPath::new(&path).is_ok_and(|written| written == place);
                    consent.paths.push(Named {
                        rights: *rights,
                        place,
                        as_written,
                    });
                }
                Include::Host(place) => consent.hosts.push(place.clone()),
                Include::Sockets(sockets) => consent.sockets = consent.sockets.max(Some(*sockets)),
                Include::Undo => consent.undo = true,
            }
        }
        Ok(consent)
    }

    /// The hosts that were named: where nobody knows which one a command wants, these are listed.
    pub fn hosts(&self) -> impl Iterator<Item = Change> {
        self.hosts.iter().cloned().map(Change::Host)
    }

    /// Whether a proposal is accepted. What is secret or broad is only by its own name, and by no directory around it.
    pub fn accepts(&self, proposal: &Proposal) -> Option<AcceptedBy> {
        let risk = proposal.judged.risk;
        let place = |path: &AbsPath, rights: Rights| {
            self.paths.iter().any(|named| {
                let names = match risk {
                    Risk::Low | Risk::High => path.is_within(&named.place),
                    // Whoever wrote the name of a link may not know where it leads.
                    Risk::Secret => *path == named.place && named.as_written,
                };
                names && named.rights.contains(rights)
            })
        };
        let included = match &proposal.change {
            Change::Root(root) => place(&root.path, proposal.adds),
            Change::Widen(root) => place(&root.path, proposal.adds),
            Change::List(path) => place(path, proposal.adds),
            Change::Host(host) => self.hosts.iter().any(|named| named == host),
            Change::Sockets(sockets) => self.sockets.is_some_and(|named| named >= *sockets),
            Change::Undo => self.undo,
        };
        match (included, self.low && risk == Risk::Low) {
            (true, _) => Some(AcceptedBy::Include),
            (false, true) => Some(AcceptedBy::Yes),
            (false, false) => None,
        }
    }
}

/// The flag that accepts a proposal, for a shell; with the one for what it needs.
pub fn flag(proposal: &Proposal) -> String {
    let path = |path: &AbsPath| {
        let letters = [(Rights::WRITE, "w"), (Rights::EXECUTE, "x")];
        let letters = letters.iter().filter(|(right, _)| proposal.adds.contains(*right));
        let mode: String = std::iter::once("r").chain(letters.map(|(_, letter)| *letter)).collect();
        let mut word = OsString::from(mode);
        word.push(":");
        word.push(path.as_path());
        word
    };
    let word = match &proposal.change {
        Change::Root(root) => path(&root.path),
        Change::Widen(root) => path(&root.path),
        Change::List(names) => path(names),
        Change::Host(place) => place.to_string().into(),
        Change::Sockets(sockets) => format!("unix_sockets:{sockets}").into(),
        Change::Undo => OsStr::from_bytes(UNDO).to_owned(),
    };
    let undo = match proposal.needs {
        Needs::Nothing => String::new(),
        Needs::Undo => format!(" --include {}", pasted(OsStr::from_bytes(UNDO))),
    };
    format!("--include {}{undo}", pasted(&word))
}
