//! In which directories of PATH a command's programs are searched.
//!
//! A command that somebody answers for is not searched in directories that the session may write, except those that the rule
//! or the yes names. A command that nobody has to answer for has the caller's PATH.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::backend_options::Mechanism;
use super::enforcement::{ChosenRegime, Enforcement};
use super::files::plain;
use crate::policy::{AbsPath, Access, Operation, Right, Scope};
use crate::profile::{FileReach, Profile};

/// The directories searched when none of the caller's own PATH is executable inside.
const FALLBACK: &str = "/usr/local/bin:/usr/bin:/bin";

/// A name that stands for every name that no clause speaks of.
const ANY: &str = ".any-program";

/// What a command sees of a directory in which single files are granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UngrantedFiles {
    /// Those files alone: mounts show nothing else.
    Hidden,
    /// The names of all its files. A shell that finds one of the others looks no further, and cannot run it; so such a directory
    /// comes last in PATH.
    Visible,
}

impl UngrantedFiles {
    /// What commands see in this regime.
    pub(super) const fn of(chosen: &ChosenRegime) -> Self {
        match &chosen.enforcement {
            Enforcement::Confined(options) => match options.mechanism {
                Mechanism::Namespaces(_) => Self::Hidden,
                Mechanism::Landlock => Self::Visible,
            },
            Enforcement::Unconfined(_) | Enforcement::Refused(_) => Self::Visible,
        }
    }
}

/// In which directories of PATH a command's programs are searched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Search {
    /// In all in which it may execute.
    #[default]
    Everywhere,
    /// In none that the session may write.
    Outside {
        /// Except these.
        named: BTreeSet<AbsPath>,
        /// The programs of the command that the caller's PATH has first, and that are not run.
        passed_over: Vec<PathBuf>,
    },
}

impl Search {
    /// The PATH of a command under `profile`, made of the caller's `own`; `envelope` is what the session may do at most.
    ///
    /// It keeps the caller's order (but see [`UngrantedFiles`]) and loses what cannot be executed inside.
    pub(super) fn path(
        &self,
        own: Option<&OsStr>,
        (profile, envelope): (&Profile, &Profile),
        ungranted: UngrantedFiles,
    ) -> OsString {
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for directory in directories(own, (profile, envelope), ungranted) {
            let written = match self {
                Self::Everywhere => directory.written.as_bytes(),
                // Without symlinks: who may write one of them could lead it elsewhere.
                Self::Outside { named, .. } if !directory.is_writable || named.contains(&directory.path) => {
                    directory.path.as_bytes()
                }
                Self::Outside { .. } => continue,
            };
            if !kept.iter().any(|known| known == written) {
                kept.push(written.to_vec());
            }
        }
        if kept.is_empty() {
            // An empty PATH is the working directory, and none is the shell's own choice.
            return "/dev/null".into();
        }
        OsString::from_vec(kept.join(&b':'))
    }

    /// No directory that the session may write, except these.
    pub(super) const fn outside(named: BTreeSet<AbsPath>) -> Self {
        Self::Outside {
            named,
            passed_over: Vec::new(),
        }
    }

    /// The directories of the caller's PATH that this leaves out because the session may write them.
    pub(super) fn left_out(&self, own: Option<&OsStr>, profile: &Profile, envelope: &Profile) -> Vec<AbsPath> {
        let is_left_out = |directory: &Directory| match self {
            Self::Everywhere => false,
            Self::Outside { named, .. } => directory.is_writable && !named.contains(&directory.path),
        };
        let all = directories(own, (profile, envelope), UngrantedFiles::Hidden).into_iter();
        all.filter(is_left_out).map(|directory| directory.path).collect()
    }
}

/// A directory of PATH in which programs can be executed inside.
#[derive(Debug)]
pub(super) struct Directory {
    written: OsString,
    pub(super) path: AbsPath,
    pub(super) is_writable: bool,
    holds: ExecutableIn,
}

/// Which files of a directory can be executed inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExecutableIn {
    /// All that is in it, now and later.
    Everything,
    /// Files that the profile names.
    Files,
}

impl Directory {
    /// Whether a command under `profile` may execute what is called so in it.
    pub(super) fn runs(&self, name: &str, profile: &Profile) -> bool {
        match self.holds {
            ExecutableIn::Everything => true,
            ExecutableIn::Files => self.path.child(name).is_some_and(|file| may_run(profile, &file)),
        }
    }

    /// Whether a file lies in it, by the path that names the file.
    pub(super) fn holds(&self, file: &Path) -> bool {
        let folder = file.parent().unwrap_or(file);
        folder == Path::new(&self.written) || plain(folder) == self.path
    }
}

/// The directories of the caller's PATH in which a command under `profile` may execute, in the order in which they are searched;
/// usual ones where there are none. `envelope` is what the session may do at most.
pub(super) fn directories(
    own: Option<&OsStr>,
    (profile, envelope): (&Profile, &Profile),
    ungranted: UngrantedFiles,
) -> Vec<Directory> {
    let of_caller = executable(own.unwrap_or_default(), profile, envelope);
    let mut all = if of_caller.is_empty() {
        executable(OsStr::new(FALLBACK), profile, envelope)
    } else {
        of_caller
    };
    match ungranted {
        UngrantedFiles::Hidden => {}
        UngrantedFiles::Visible => all.sort_by_key(|directory| directory.holds == ExecutableIn::Files),
    }
    all
}

fn executable(path: &OsStr, profile: &Profile, envelope: &Profile) -> Vec<Directory> {
    path.as_bytes()
        .split(|byte| *byte == b':')
        .filter(|directory| directory.starts_with(b"/"))
        .filter_map(|directory| {
            let written = OsStr::from_bytes(directory);
            // Where /bin is a link to /usr/bin, the profile knows the latter.
            let path = AbsPath::new(std::fs::canonicalize(written).ok()?).ok()?;
            let program = path.child(ANY)?;
            Some(Directory {
                written: written.to_owned(),
                holds: holds(profile, &path, &program)?,
                is_writable: may_take_names(envelope, &path, &program),
                path,
            })
        })
        .collect()
}

/// What of a directory a command under `profile` may execute; `None` where nothing.
fn holds(profile: &Profile, directory: &AbsPath, program: &AbsPath) -> Option<ExecutableIn> {
    if may_run(profile, program) {
        return Some(ExecutableIn::Everything);
    }
    let mut files = profile.grants.iter().filter(|grant| grant.scope == Scope::File);
    files
        .any(|file| file.path.parent().as_ref() == Some(directory) && may_run(profile, &file.path))
        .then_some(ExecutableIn::Files)
}

pub(super) fn may_run(profile: &Profile, file: &AbsPath) -> bool {
    profile.access(Operation::Execute, file) == Access::Full
}

/// Whether anything in a directory may be written.
pub(super) fn may_take_names(envelope: &Profile, directory: &AbsPath, program: &AbsPath) -> bool {
    let part = |grant: &&crate::policy::Grant| {
        grant.path.is_below(directory) || grant.suffixes.is_some() && directory.is_within(&grant.path)
    };
    let mut writing = envelope.grants.iter().filter(|grant| grant.rights.has(Right::Write));
    envelope.access(Operation::Write, program) != Access::Denied || writing.any(|grant| part(&grant))
}

/// Whether a directory in which programs are searched may be written by a session under `envelope`.
pub(super) fn is_in_reach(environment: &[(OsString, OsString)], envelope: &Profile) -> bool {
    let own = own_path(environment);
    directories(own.as_deref(), (envelope, envelope), UngrantedFiles::Hidden)
        .iter()
        .any(|at| at.is_writable)
}

/// The PATH that a command would have of its caller.
pub(super) fn own_path(environment: &[(OsString, OsString)]) -> Option<OsString> {
    let given = environment.iter().rev().find(|(name, _)| name == "PATH");
    given
        .map(|(_, value)| value.clone())
        .or_else(|| std::env::var_os("PATH"))
}
