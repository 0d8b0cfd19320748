//! The writable files that a command names: a yes to it is a yes to them as they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::file_client::Files;
use super::written_path::plain;
use crate::confine::ConfineError;
use crate::confine::files::protocol::{Found, Hash, Special, State, Why};
use crate::policy::AbsPath;
use crate::policy::path::escape;
use crate::policy::shell::Names;
use crate::tools::call::ToolError;

/// The most places where files of a command are looked for.
const MAX_PLACES: usize = 1024;

/// A writable file that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct Operand {
    /// Where it leads.
    path: AbsPath,
    /// Its content, or that it cannot be told from another.
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Hash([u8; 32]),
    /// Not hashed, being too large or unreadable: device, inode and time of the last change, which nobody can set. No yes to it is
    /// remembered.
    Stamp(u64, u64, i128),
    /// A path with links on the way: where it leads.
    Leads(AbsPath),
}

impl Operand {
    pub(in crate::tools) const fn path(&self) -> &AbsPath {
        &self.path
    }

    /// The bytes that an approval of it covers.
    pub(in crate::tools) fn payload(&self) -> Vec<u8> {
        let mut bytes = self.path.as_bytes().to_vec();
        bytes.push(0);
        match &self.content {
            Content::Hash(digest) => bytes.extend_from_slice(digest),
            Content::Leads(path) => bytes.extend_from_slice(path.as_bytes()),
            Content::Stamp(device, inode, changed) => {
                bytes.extend_from_slice(&device.to_le_bytes());
                bytes.extend_from_slice(&inode.to_le_bytes());
                bytes.extend_from_slice(&changed.to_le_bytes());
            }
        }
        bytes
    }
}

/// The files that a command names, and everything that was looked at to find them.
#[derive(Debug, Default)]
pub(in crate::tools) struct Operands {
    looked_at: Vec<PathBuf>,
    found: Vec<Operand>,
    /// Why a file that the command names may be another by the next time, and these the same.
    doubt: Option<String>,
}

impl Operands {
    pub(in crate::tools) fn found(&self) -> &[Operand] {
        &self.found
    }

    /// Why a yes to them is not a yes to everything that the command names; `None` where it is.
    pub(in crate::tools) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    fn take(&mut self, argument_files: &ArgumentFiles) {
        self.found.extend_from_slice(&argument_files.operands);
        if self.doubt.is_none() {
            self.doubt.clone_from(&argument_files.doubt);
        }
    }
}

/// What a word may name. Where all is empty, there is certainly nothing that a command could change and obey.
#[derive(Default)]
struct ArgumentFiles {
    operands: Vec<Operand>,
    /// A directory; other words may be meant from there.
    directory: Option<AbsPath>,
    /// Why this is not all.
    doubt: Option<String>,
}

/// The writable files at these places, and those that a command names which starts in `directory`, there and in directories
/// that it names.
pub(in crate::tools) async fn operands(
    files: &mut Files<'_>,
    places: &[PathBuf],
    names: &Names,
    directory: &AbsPath,
) -> Result<Operands, ToolError> {
    let mut operands = Operands::default();
    let mut arguments = BTreeSet::new();
    let mut executed = BTreeSet::new();
    let mut are_all = true;
    for argument in names.files.iter().chain(&names.programs) {
        are_all &= files_in(argument, &mut arguments);
    }
    for argument in &names.executed {
        are_all &= files_in(argument, &mut executed);
    }
    if !are_all {
        operands.doubt = Some(MORE.to_owned());
    }
    let mut starts = vec![directory.as_path().to_owned()];
    let mut visited = BTreeSet::from([directory.clone()]);
    for place in places {
        operands.take(&inspect(files, place).await?);
        operands.looked_at.push(place.clone());
    }
    let mut next = 0;
    'all: while let Some(start) = starts.get(next).cloned() {
        next += 1;
        for argument in &arguments {
            for path in spelled(&start, argument) {
                if operands.looked_at.contains(&path) {
                    continue;
                }
                if operands.looked_at.len() >= MAX_PLACES {
                    operands.doubt = Some(MORE.to_owned());
                    break 'all;
                }
                let mut argument_files = inspect(files, &path).await?;
                if let Some(at) = argument_files.directory.take() {
                    if executed.contains(argument) && files.session().takes_names(&at) {
                        let at = escape(at.as_bytes());
                        let why = format!("what lies in {at} may be run, and the session may write it");
                        argument_files.doubt.get_or_insert(why);
                    }
                    if visited.insert(at) {
                        starts.push(path.clone());
                    }
                }
                operands.take(&argument_files);
                operands.looked_at.push(path);
            }
        }
    }
    operands.found.sort_by_key(Operand::payload);
    operands.found.dedup();
    Ok(operands)
}

/// Checks that the same files are there with the same content.
pub(in crate::tools) async fn check_operands(files: &mut Files<'_>, operands: &Operands) -> Result<(), ToolError> {
    let mut now = Vec::new();
    for path in &operands.looked_at {
        now.extend(inspect(files, path).await?.operands);
    }
    let missing = operands.found.iter().find(|before| !now.contains(before));
    match missing.or_else(|| now.iter().find(|operand| !operands.found.contains(operand))) {
        Some(changed) => Err(ToolError::Changed(changed.path.to_string())),
        None => Ok(()),
    }
}

async fn inspect(files: &mut Files<'_>, path: &Path) -> Result<ArgumentFiles, ToolError> {
    let link = plain(path);
    let mut argument_files = ArgumentFiles::default();
    let shown = || escape(path.as_os_str().as_encoded_bytes());
    let Found {
        state,
        is_of_process,
        path: at,
        ..
    } = match files.found_at(path, Hash::Content).await? {
        Ok(found) => found,
        Err(why) => {
            if !is_nothing(path, &why) {
                argument_files.doubt = Some(format!("what {} leads to cannot be told", shown()));
            }
            return Ok(argument_files);
        }
    };
    let at = AbsPath::new(&at).map_err(|_| ConfineError::Malformed)?;
    if is_harmless(&at, &state) {
        return Ok(argument_files);
    }
    if is_of_process || files.session().is_private(&at) {
        argument_files.doubt = Some(format!(
            "{} is the session's own or a process's, and another by the next time",
            shown()
        ));
    } else if files.judge().view_access_of([&at]) != files.judge().view_access_of([&link]) {
        argument_files.doubt = Some(format!("{} leads to what may not be looked at unasked", shown()));
    }
    if link != at && state != State::Absent {
        let content = Content::Leads(at.clone());
        argument_files.operands.push(Operand { path: link, content });
    }
    match state {
        State::Directory { .. } => argument_files.directory = Some(at),
        State::Symlink(_) | State::Other(_) => {
            argument_files
                .doubt
                .get_or_insert_with(|| format!("{} is no regular file", shown()));
        }
        State::File(file) if files.session().is_in_reach(&at) => {
            let content = file
                .digest
                .map_or_else(|| Content::Stamp(file.device, file.inode, file.changed), Content::Hash);
            if file.digest.is_none() {
                argument_files
                    .doubt
                    .get_or_insert_with(|| format!("{} is too large, or closed, to be told from another", shown()));
            }
            argument_files.operands.push(Operand { path: at, content });
        }
        State::File(_) | State::Absent => {}
    }
    Ok(argument_files)
}

const MORE: &str = "it names more files than are looked at";

/// A word as a path from a directory: as the kernel takes it, and, with `..` in it, as shells and programs may that resolve it themselves.
fn spelled(start: &Path, argument: &str) -> impl Iterator<Item = PathBuf> {
    let path = start.join(argument);
    let resolved = argument
        .split('/')
        .any(|part| part == "..")
        .then(|| plain(&path).as_path().to_owned());
    [path].into_iter().chain(resolved)
}

/// Whether a path that cannot be looked at for this reason certainly leads to nothing.
fn is_nothing(path: &Path, why: &Why) -> bool {
    match why {
        Why::Missing | Why::NotDirectory => true,
        // No name is so long.
        Why::System(errno) => {
            *errno == libc::ENAMETOOLONG && path.iter().any(|name| name.as_encoded_bytes().len() > 255)
        }
        _ => false,
    }
}

/// Whether it is a device without state, such as `/dev/null`.
fn is_harmless(path: &AbsPath, state: &State) -> bool {
    let visited = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
    *state == State::Other(Special::Device) && visited.iter().any(|device| path.as_path() == Path::new(device))
}

/// What the parts of a word are divided by: lists, values, and what is quoted in it.
const BETWEEN: [char; 15] = [
    ':', ',', ';', '=', ' ', '\t', '\n', '"', '\'', '(', ')', '<', '>', '|', '&',
];
const LONGEST: usize = 4096;

/// Adds what of a word may name a file: all of it, its parts, and of each what follows letters of options or an `@`. Whether that is all.
fn files_in<'a>(argument: &'a str, files: &mut BTreeSet<&'a str>) -> bool {
    let mut parts = vec![argument];
    parts.extend(argument.split_once('=').map(|(_, value)| value));
    parts.extend([':', ',', ';', ' ', '='].iter().flat_map(|one| argument.split(*one)));
    parts.extend(argument.split(BETWEEN));
    if parts.len() > MAX_PLACES {
        return false;
    }
    for part in parts {
        let letters = part.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let glued = letters.map_or(0..0, |letters| 1..letters.len());
        if glued.len() > MAX_PLACES {
            return false;
        }
        let glued = glued.filter_map(|at| letters.and_then(|letters| letters.get(at..)));
        for file in [part].into_iter().chain(glued) {
            let behind = file.strip_prefix('@');
            let named = [Some(file), behind].into_iter().flatten();
            files.extend(named.filter(|file| !file.is_empty() && file.len() < LONGEST && !file.contains('\0')));
        }
    }
    files.len() <= MAX_PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(argument: &str) -> Vec<&str> {
        let mut files = BTreeSet::new();
        assert!(files_in(argument, &mut files), "{argument}");
        files.into_iter().collect()
    }

    #[test]
    fn a_word_names_a_file_as_a_whole_or_by_its_end() {
        assert_eq!(named("./x"), ["./x"]);
        assert_eq!(named("a=b"), ["a", "a=b", "b"]);
        assert_eq!(named("--config=a/b"), ["--config", "--config=a/b", "a/b"]);
        assert_eq!(named("--config="), ["--config", "--config="]);
        assert_eq!(named("-fx"), ["-fx", "x"]);
        assert_eq!(named("-sfx.mk"), ["-sfx.mk", ".mk", "fx.mk", "k", "mk", "x.mk"]);
        assert_eq!(named("-d@list"), ["-d@list", "@list", "ist", "list", "st", "t"]);
        assert_eq!(named("-x"), ["-x"]);
        assert_eq!(named("@list"), ["@list", "list"]);
        assert_eq!(named("a.jar:b.jar"), ["a.jar", "a.jar:b.jar", "b.jar"]);
        assert_eq!(named(""), [""; 0]);
    }

    #[test]
    fn no_part_of_a_word_is_left_out_unsaid() {
        for argument in [
            "a:b:c:d:e:f:g:h:f9",
            "-ssssssssssssff9",
            "x f9",
            "x,f9",
            "-Wp,-include,f9",
            "MAKEFILES=x f9",
            "MAKEFLAGS=-ff9",
            "'CC=\"sh f9\"'",
            "X=a=f9",
            "do \"f9\"",
        ] {
            assert!(named(argument).contains(&"f9"), "{argument}: {:?}", named(argument));
        }
        for argument in ["x:".repeat(2000), format!("-{}", "s".repeat(2000)), "-s ".repeat(1200)] {
            assert!(!files_in(&argument, &mut BTreeSet::new()));
        }
    }
}
