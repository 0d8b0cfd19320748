//! What a project's ignore files name.
//!
//! They are read like any file that an agent may have made: no symlink, no pipe, no more than a bounded part.

use std::io::Read as _;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::state::open_file;
use super::tree::DirectoryItem;

/// The most bytes of an ignore file that count.
const MAX_BYTES: u64 = 64 * 1024;
/// The most lines of one that count.
const MAX_LINES: usize = 2000;

/// The ignore files of one directory.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    /// `.ignore`.
    plain: Option<Gitignore>,
    /// `.gitignore`.
    git: Option<Gitignore>,
    /// Git's own exclude file.
    exclude: Option<Gitignore>,
    /// Whether a repository begins here: what lies above says nothing about it.
    is_repository: bool,
}

impl Ignored {
    /// Those of a directory with these entries.
    pub(super) fn of(directory: &Path, entries: &[DirectoryItem]) -> Self {
        let has = |name: &str| entries.iter().any(|listed| listed.name == name);
        let load = |name: &str| has(name).then(|| read(directory, name)).flatten();
        let is_repository = has(".git");
        Self {
            plain: load(".ignore"),
            git: load(".gitignore"),
            exclude: is_repository.then(|| read(directory, ".git/info/exclude")).flatten(),
            is_repository,
        }
    }
}

/// Whether the ignore files of the directories on the way, the outermost first, name a path.
pub(super) fn is_ignored<'a>(
    levels: impl DoubleEndedIterator<Item = &'a Ignored> + Clone,
    path: &Path,
    is_directory: bool,
) -> bool {
    // The innermost says it last. What lies above a repository's own directory is not its.
    let plain = levels.clone().rev().filter_map(|level| level.plain.as_ref());
    let mut outside = false;
    let repository = levels.rev().take_while(move |level| {
        let within = !outside;
        outside |= level.is_repository;
        within
    });
    let git = repository.clone().filter_map(|level| level.git.as_ref());
    let exclude = repository.filter_map(|level| level.exclude.as_ref());
    for file in plain.chain(git).chain(exclude) {
        match file.matched(path, is_directory) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}

fn read(directory: &Path, name: &str) -> Option<Gitignore> {
    let (file, _) = open_file(directory.join(name).as_os_str()).ok()?;
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
    let mut builder = GitignoreBuilder::new(directory);
    for line in content.split(|byte| *byte == b'\n').take(MAX_LINES) {
        // A line that is no pattern names nothing.
        if let Ok(line) = std::str::from_utf8(line) {
            let _added = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line));
        }
    }
    builder.build().ok()
}
