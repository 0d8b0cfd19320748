//! The paths of the files of a log: all in one directory, named after the log.
//!
//! `audit.jsonl` is written; `audit.N.jsonl` are earlier files; `audit.head` says how far it was certainly written; `audit.lock`
//! is held by whoever writes.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::error::AuditError;
use crate::config::{OwnerCheck, state_files, walk};
use crate::policy::AbsPath;
use crate::policy::path::display;

/// Says why commands could reach a path, if they could.
pub type ReachCheck<'a> = &'a dyn Fn(&AbsPath) -> Option<String>;

/// The name of the default log, in the user's state directory.
const DEFAULT: &str = "audit.jsonl";
/// How the name of a log ends.
const ENDING: &[u8] = b".jsonl";

/// The paths of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPaths {
    log: PathBuf,
    /// The log's name without `.jsonl`.
    stem: OsString,
    directory: Directory,
}

/// Whose directory a log lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    /// Stockade's own, created with its parents.
    OfState,
    /// One that somebody named.
    RotatedFiles,
}

/// The entries with names of rotated files.
#[derive(Debug, Default)]
pub(super) struct RotatedFiles {
    /// Their numbers, in order.
    pub(super) numbers: Vec<u64>,
    /// Names that no log uses: `audit.007.jsonl`.
    pub(super) others: Vec<PathBuf>,
}

impl LogPaths {
    /// A log at this path.
    pub fn at(log: &Path) -> Self {
        let name = log.file_name().unwrap_or_default().as_bytes();
        let stem = name.strip_suffix(ENDING).unwrap_or(name);
        Self {
            log: log.to_owned(),
            stem: OsString::from_vec(stem.to_vec()),
            directory: Directory::RotatedFiles,
        }
    }

    /// The log in this state directory.
    pub fn default_in(state: &Path) -> Self {
        Self {
            directory: Directory::OfState,
            ..Self::at(&state.join(DEFAULT))
        }
    }

    /// The file that is written.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The directory of all its files.
    pub(super) fn directory(&self) -> &Path {
        match self.log.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        }
    }

    pub(super) fn head(&self) -> PathBuf {
        self.beside("head")
    }

    pub(super) fn new_head(&self) -> PathBuf {
        self.beside("head.new")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.beside("lock")
    }

    /// An earlier file.
    pub(super) fn rotated(&self, number: u64) -> PathBuf {
        self.beside(&format!("{number}.jsonl"))
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.stem.clone();
        name.push(".");
        name.push(end);
        self.log.with_file_name(name)
    }

    /// The entries with names of rotated files.
    pub(super) fn rotated_files(&self) -> io::Result<RotatedFiles> {
        let mut rotated_files = RotatedFiles::default();
        for entry in std::fs::read_dir(self.directory())? {
            let name = entry?.file_name();
            let digits = name.as_bytes().strip_prefix(self.stem.as_bytes());
            let digits = digits.and_then(|rest| rest.strip_prefix(b"."));
            let Some(digits) = digits.and_then(|rest| rest.strip_suffix(ENDING)) else {
                continue;
            };
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                continue;
            }
            let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            // Files are numbered from 1, without zeros before that.
            match number.filter(|number| *number > 0 && self.rotated(*number).file_name() == Some(&name)) {
                Some(number) => rotated_files.numbers.push(number),
                None => rotated_files.others.push(self.log.with_file_name(name)),
            }
        }
        rotated_files.numbers.sort_unstable();
        rotated_files.others.sort_unstable();
        Ok(rotated_files)
    }

    /// The same place with every link on the way resolved, for somebody who writes there: in a directory of the user's own,
    /// out of reach of commands.
    pub(super) fn prepare(&self, reached: ReachCheck<'_>) -> Result<Self, AuditError> {
        let real = self.out_of_reach(reached)?;
        let directory = real.directory();
        let created = match self.directory {
            Directory::OfState => state_files::create_directory(directory),
            Directory::RotatedFiles => state_files::create_subdirectory(directory),
        };
        created.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.refused(format!(
                "{} is not there; a log makes its own directory, and none above it, for a slip in the path would make \
                 others: make it, or name another place",
                display(directory.parent().unwrap_or(directory))
            )),
            _ => self.refused(format!("its directory: {error}")),
        })?;
        Ok(real)
    }

    fn refused(&self, why: String) -> AuditError {
        AuditError::Unsuitable {
            path: self.log.clone(),
            why,
        }
    }

    /// The same place with every link on the way resolved, out of reach of commands. Nothing is made.
    ///
    /// # Errors
    /// Why no log can be kept there.
    pub fn out_of_reach(&self, reached: ReachCheck<'_>) -> Result<Self, AuditError> {
        let refused = |why: String| self.refused(why);
        let name = self
            .log
            .file_name()
            .ok_or_else(|| refused("it names no file".to_owned()))?;
        // A config may name it, and an agent chooses much of what is written there: nothing that is read for another purpose.
        if !name.as_bytes().ends_with(ENDING) {
            return Err(refused("its name must end in `.jsonl`".to_owned()));
        }
        let absolute = std::path::absolute(self.directory()).map_err(|error| refused(error.to_string()))?;
        let walked = walk(&absolute).map_err(|error| refused(error.to_string()))?;
        let real = Self {
            directory: self.directory,
            ..Self::at(&walked.path.as_path().join(name))
        };
        let all = [
            real.log.clone(),
            real.head(),
            real.new_head(),
            real.lock(),
            real.rotated(1),
        ];
        let earlier = match real.rotated_files() {
            Ok(rotated_files) => rotated_files.numbers,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(refused(error.to_string())),
        };
        let earlier = earlier.into_iter().map(|number| real.rotated(number));
        let all = all
            .into_iter()
            .chain(earlier)
            .map(AbsPath::new)
            .collect::<Result<Vec<_>, _>>();
        let all = all.map_err(|error| refused(error.to_string()))?;
        for place in all.iter().chain(&walked.links) {
            if let Some(why) = reached(place) {
                return Err(refused(format!(
                    "{place} is in reach of commands, which could change what is recorded of them: {why}"
                )));
            }
        }
        Ok(real)
    }

    /// Why somebody but the user and root could put another file in the place of the log, if they could.
    pub(super) fn objection(&self) -> Option<String> {
        let guards = OwnerCheck {
            owners: vec![0, nix::unistd::Uid::effective().as_raw()],
            from: AbsPath::root(),
        };
        let log = match AbsPath::new(&self.log) {
            Ok(log) => log,
            Err(error) => return Some(error.to_string()),
        };
        match walk(&self.log) {
            Ok(walked) => guards.objection(&log, &walked),
            Err(error) => Some(error.to_string()),
        }
    }
}
