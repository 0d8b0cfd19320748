//! Which file each program of a command is.
//!
//! A rule, a yes and a custom tool speak of programs by name, and what the session may write can take any name.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::call::{ShellCommand, ToolError};
use super::files::{Files, FoundFile, plain};
use super::outcome::Status;
use super::search::{Directory, Search, UngrantedFiles, directories, is_in_reach, own_path};
use super::session_policy::SessionPolicy;
use crate::policy::AbsPath;
use crate::policy::path::display;
use crate::policy::shell::{Names, is_builtin};
use crate::profile::Profile;

/// The most names that are searched for one command. A command with more of them finds none where the session may write.
const MAX_NAMES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// As the command names it.
    pub(super) name: String,
    /// The file that is executed for it.
    pub(super) path: PathBuf,
    /// Whether the session may put another there.
    pub(super) is_writable: bool,
}

#[derive(Debug, Default)]
pub(super) struct Programs {
    pub(super) found: Vec<Program>,
    /// The directories in the session's reach that the command, or a yes to it, names.
    pub(super) named: BTreeSet<AbsPath>,
    /// Where the files lie that the session may put in the place of these programs.
    pub(super) candidates: Vec<PathBuf>,
    /// The names for which there is no program.
    pub(super) missing: Vec<String>,
    /// Those that were passed over: the caller's PATH has them first, in what the session may write.
    pub(super) passed_over: Vec<PathBuf>,
}

impl Programs {
    /// The file in the session's reach that this name stands for, if it stands for one.
    pub(super) fn planted(&self, name: &str) -> Option<&Path> {
        let mut found = self.found.iter().filter(|program| !program.name.contains('/'));
        found
            .find(|program| program.name == name && program.is_writable)
            .map(|program| program.path.as_path())
    }
}

/// Which files these names stand for in a command that starts in `directory` with the caller's PATH.
///
/// A name stands for what lies outside the session's reach, if there is such a program; else for what the session may
/// write, whose directory the answer then names.
pub(super) async fn programs(
    files: &mut Files<'_>,
    names: &Names,
    directory: &AbsPath,
    environment: &[(OsString, OsString)],
) -> Result<Programs, ToolError> {
    let own = own_path(environment);
    let all = directories(
        own.as_deref(),
        (&files.session().envelope, &files.session().envelope),
        files.pool.ungranted(),
    );
    let (mut paths, bare): (Vec<&String>, Vec<&String>) = names.programs.iter().partition(|name| name.contains('/'));
    if names.changes_directory {
        // From where is known only when it runs.
        paths.retain(|path| path.starts_with('/'));
    }
    let locations: Vec<PathBuf> = paths.iter().map(|path| directory.as_path().join(path)).collect();
    let mut searched_writable: BTreeSet<AbsPath> = all
        .iter()
        .filter(|at| at.is_writable && locations.iter().any(|location| at.holds(location)))
        .map(|at| at.path.clone())
        .collect();
    let bare: BTreeSet<&str> = bare
        .into_iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    let mut found = Vec::new();
    let mut passed_over = Vec::new();
    let mut missing = Vec::new();
    for (name, location) in paths.iter().zip(&locations) {
        if let Some(program) = program_at_path(files, name, location, false).await? {
            found.push(program);
        }
    }
    if bare.len() > MAX_NAMES {
        // What was not looked for must not be found there.
        searched_writable.clear();
    } else {
        let mut searched = searched(files, &bare, &all, &mut searched_writable).await?;
        for program in searched.iter().filter(|program| !program.is_writable) {
            let before = all
                .iter()
                .take_while(|at| Some(at.path.as_path()) != program.path.parent());
            for at in before.filter(|at| at.is_writable && !searched_writable.contains(&at.path)) {
                let location = at.path.as_path().join(&program.name);
                let other = program_at_path(files, &program.name, &location, true).await?;
                passed_over.extend(other.map(|program| program.path));
            }
        }
        let is_found = |name: &str| searched.iter().any(|program| program.name == name);
        let none = bare.iter().filter(|name| !is_builtin(name) && !is_found(name));
        missing = none.map(|&name| name.to_owned()).collect();
        found.append(&mut searched);
    }
    let in_reach = all.iter().filter(|at| searched_writable.contains(&at.path));
    let candidates = in_reach.flat_map(|at| bare.iter().map(|name| at.path.as_path().join(name)));
    let writable = found.iter().filter(|program| program.is_writable);
    Ok(Programs {
        candidates: candidates.chain(writable.map(|program| program.path.clone())).collect(),
        found,
        named: searched_writable,
        missing,
        passed_over,
    })
}

/// Looks in every directory that is searched. Where a name is found in none, what the session may write is searched too.
async fn searched(
    files: &mut Files<'_>,
    bare: &BTreeSet<&str>,
    all: &[Directory],
    named: &mut BTreeSet<AbsPath>,
) -> Result<Vec<Program>, ToolError> {
    loop {
        let before = named.len();
        let mut found = Vec::new();
        for name in bare {
            match first_of(files, name, all, |at| !at.is_writable || named.contains(&at.path)).await? {
                Some((program, _)) => found.push(program),
                None => {
                    if let Some((program, at)) = first_of(files, name, all, |at| at.is_writable).await? {
                        found.push(program);
                        named.insert(at);
                    }
                }
            }
        }
        // One more directory may have others of these names, in front of those that were found.
        if named.len() == before {
            return Ok(found);
        }
    }
}

async fn first_of(
    files: &mut Files<'_>,
    name: &str,
    all: &[Directory],
    is_searched: impl Fn(&Directory) -> bool,
) -> Result<Option<(Program, AbsPath)>, ToolError> {
    let is_searched = |at: &&Directory| is_searched(at) && at.runs(name, &files.session().envelope);
    let searched: Vec<&Directory> = all.iter().filter(is_searched).collect();
    for at in searched {
        let location = at.path.as_path().join(name);
        if let Some(program) = program_at_path(files, name, &location, at.is_writable).await? {
            return Ok(Some((program, at.path.clone())));
        }
    }
    Ok(None)
}

/// The program at a place, if there is one that can be executed.
async fn program_at_path(
    files: &mut Files<'_>,
    name: &str,
    location: &Path,
    is_writable: bool,
) -> Result<Option<Program>, ToolError> {
    let program = |is_writable| Program {
        name: name.to_owned(),
        path: location.to_owned(),
        is_writable,
    };
    Ok(match files.look_at(location).await? {
        FoundFile::File { path, mode } if mode & 0o111 != 0 => {
            let link = plain(location);
            Some(program(
                is_writable || files.session().is_in_reach(&path) || files.session().is_in_reach(&link),
            ))
        }
        FoundFile::File { .. } | FoundFile::Nothing => None,
    })
}

/// The program of a command that names it by an absolute path.
pub(super) fn program_at(session: &SessionPolicy, command: &ShellCommand) -> Vec<Program> {
    let first = match command {
        ShellCommand::Argv(argv) => argv.first().map(PathBuf::from),
        ShellCommand::Line(_) => None,
    };
    let absolute = first.filter(|path| path.is_absolute());
    let program = absolute.map(|path| Program {
        name: String::new(),
        is_writable: session.is_in_reach(&plain(&path)),
        path,
    });
    program.into_iter().collect()
}

/// Where the programs of a command are searched whose own program is at this path.
pub(super) fn search_of(session: &SessionPolicy, ungranted: UngrantedFiles, path: &Path) -> Search {
    let all = directories(
        own_path(&[]).as_deref(),
        (&session.envelope, &session.envelope),
        ungranted,
    );
    let named = all.into_iter().filter(|at| at.holds(path)).map(|at| at.path);
    Search::outside(named.collect())
}

/// The file that the first word stands for, and where its programs are searched; `None` where there is none. An error is the
/// file that a bare name stands for in what the session may write.
pub(super) async fn find_program(
    files: &mut Files<'_>,
    argv: &[OsString],
    directory: &AbsPath,
) -> Result<Result<Option<(PathBuf, Search)>, PathBuf>, ToolError> {
    let Some(name) = argv.first().and_then(|word| word.to_str()) else {
        return Ok(Ok(None));
    };
    if name.contains('/') {
        let path = directory.as_path().join(name);
        let in_reach = search_of(files.session(), files.pool.ungranted(), &path);
        return Ok(Ok(Some((path, in_reach))));
    }
    // The first that is found is outside then.
    if !searches_in_reach(files.session(), &[]) {
        return Ok(Ok(None));
    }
    files.pool.check_directory(directory)?;
    let names = Names {
        programs: vec![name.to_owned()],
        ..Names::default()
    };
    let programs = programs(files, &names, directory, &[]).await?;
    if let Some(planted) = programs.planted(name) {
        return Ok(Err(planted.to_owned()));
    }
    let search = Search::outside(programs.named);
    let found = programs.found.into_iter().next();
    Ok(Ok(found.map(|program| (program.path, search))))
}

/// What is to be known of a command whose programs were not searched everywhere: which were passed over, or, where it failed as
/// if one was missing, where in what the session may write none was searched.
pub(super) fn left_out(
    session: &SessionPolicy,
    search: &Search,
    (environment, profile): (&[(OsString, OsString)], &Profile),
    status: &Status,
    stderr: &str,
) -> Option<String> {
    const KEEP: &str = "which this session may write, because a rule or a yes answers for the command; a root for that directory with \
                        `mode: ro` and `execute: true` keeps it, and so does the path of the program in rule and command";
    if let Search::Outside { passed_over, .. } = search
        && !passed_over.is_empty()
    {
        let paths: Vec<String> = passed_over.iter().map(display).collect();
        return Some(format!("not run: {}, {KEEP}", paths.join(", ")));
    }
    let is_missed = match status {
        Status::NotFound { .. } | Status::Exited { code: 127 } => true,
        Status::Exited { code } => {
            *code != 0 && (stderr.contains("not found") || stderr.contains("No such file or directory"))
        }
        _ => false,
    };
    if !is_missed {
        return None;
    }
    let left_out = search.left_out(own_path(environment).as_deref(), profile, &session.envelope);
    let names: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    if !names.is_empty() {
        return Some(format!("no program was searched in {}, {KEEP}", names.join(", ")));
    }
    None
}

/// Whether a directory of PATH is in the session's reach.
pub(super) fn searches_in_reach(session: &SessionPolicy, environment: &[(OsString, OsString)]) -> bool {
    is_in_reach(environment, &session.envelope)
}
