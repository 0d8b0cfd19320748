//! What a policy requests and a ceiling does not give, with the lines of both.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::environment::VarName;
use super::grant::Origin;
use super::network::{NetworkWitness, UnixSockets};
use super::path::{AbsPath, display, escape};
use super::right::Rights;

/// Which line each setting comes from, by the key as a person writes it: `shell.network`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines(BTreeMap<String, Origin>);

impl Lines {
    /// The line of a key.
    pub fn get(&self, key: &str) -> Option<&Origin> {
        self.0.get(key)
    }

    /// Sets the line of a key.
    pub fn set(&mut self, key: impl Into<String>, origin: Origin) {
        self.0.insert(key.into(), origin);
    }

    /// The key of one variable of the environment.
    pub fn of_variable(name: &VarName) -> String {
        format!("shell.env {name}")
    }
}

/// A request that a ceiling does not give.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// The line of the request.
    pub origin: Origin,
    /// The ceiling that does not give it.
    pub ceiling: Arc<PathBuf>,
    /// The line of the ceiling that decides, if there is one.
    pub clause: Option<Origin>,
    /// What is lost.
    pub what: Lost,
}

/// What a [`Cut`] takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// Rights on files.
    Files {
        /// The rights that some file below the path loses.
        rights: Rights,
        /// The path that the line grants.
        path: AbsPath,
        /// One path that loses them.
        witness: AbsPath,
    },
    /// Rights on files without approval: an approval gives them back.
    Unasked {
        /// The rights that some file below the path loses.
        rights: Rights,
        /// The path that the line grants.
        path: AbsPath,
        /// One path that loses them.
        witness: AbsPath,
    },
    /// Hosts, or all of them.
    Network(NetworkWitness),
    /// Unix sockets.
    UnixSockets(UnixSockets),
    /// A variable of the environment.
    Variable(VarName),
    /// A bound, by its key, that was wider.
    Limit(&'static str),
    /// Some other setting.
    Setting {
        /// Its key.
        key: &'static str,
        /// The requested value.
        value: String,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut files = |rights: &Rights, path: &AbsPath, witness: &AbsPath, end: &str| {
            if path == witness {
                write!(f, "{rights} {path}{end}")
            } else {
                write!(f, "{rights} below {path}, such as {witness}{end}")
            }
        };
        match self {
            Self::Files { rights, path, witness } => files(rights, path, witness, ""),
            Self::Unasked { rights, path, witness } => files(rights, path, witness, " without a question"),
            Self::Network(network) => network.fmt(f),
            Self::UnixSockets(sockets) => write!(f, "unix sockets {sockets}"),
            Self::Variable(name) => write!(f, "the environment variable {}", escape(name.as_str().as_bytes())),
            Self::Limit(key) => write!(f, "going beyond the limit `{key}`"),
            Self::Setting { key, value } => write!(f, "`{key}: {value}`"),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: not given by the ceiling ", self.origin, self.what)?;
        f.write_str(&line_of(&self.ceiling, self.clause.as_ref()))
    }
}

/// A line of a ceiling for a message; the file if there is none.
pub fn line_of(ceiling: &Path, line: Option<&Origin>) -> String {
    match line {
        Some(line @ Origin::File { .. }) => line.to_string(),
        Some(line) => format!("{} ({line})", display(ceiling.as_os_str())),
        None => display(ceiling.as_os_str()),
    }
}
