//! Files of the tree that the config of a repository makes git run or read.
//!
//! `core.hooksPath` and `include.path` may lead to ordinary files beside the sources. Where an existing config
//! does, those files are as good as hooks and config, and are protected by path: the config of a repository in a root,
//! of one that a root is a part of, and of the person whose git it is. A config is theirs and may hold anything, so it
//! is read generously: too much found costs nothing but a file that stays as it is. One that is there and cannot be read
//! may lead anywhere, and is an error, unless git cannot reach it either.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::at::{insisting, join, split};
use super::error::ProtectError;
use super::hooks::{of_directory, scripts_of};
use super::leads::{leads_to, plain, trail};
use super::named;
use super::names::is_dot_git;
use super::patterns::Patterns;
use super::repository::{
    self, MAX_CONFIG, Person, Repository, Trusted, around, is_out_of_reach, repository, shared_by,
};
use super::roots::{Root, inside, shown};
use super::settings::{Setting, settings};
use super::sight::Sight;
use super::state::{Seen, State, glance};
use super::ways::{is_firm, way_from, ways_of_git, ways_to_directories};

/// How many files are read because another names them.
const MAX_INCLUDED: usize = 1_000;
/// How many bytes are read of such files in all.
const MAX_READ: u64 = MAX_CONFIG;
/// How many includes deep, as git limits it to a like number.
const MAX_NESTED: usize = 10;
/// Targets in all.
pub(super) const MAX_TARGETS: usize = 10_000;

/// Absolute paths in the roots that something protected leads to, beyond what the patterns protect.
#[derive(Debug, Default)]
pub(super) struct Targets {
    /// What git runs or obeys, also while a command is running.
    pub(super) run_at_once: BTreeSet<PathBuf>,
    /// The others.
    pub(super) others: BTreeSet<PathBuf>,
    /// Links on the way to what git runs or obeys, which lead nowhere by themselves.
    pub(super) ways: BTreeSet<PathBuf>,
    /// Directories of hooks that are relative to a work tree.
    pub(super) hooks: BTreeSet<PathBuf>,
}

/// What git is led to, and what other tools are by their own files. One that a root lies in stands for all of that root.
pub(super) fn of(roots: &[Root], patterns: &Patterns, sight: &Sight, person: &Person) -> Result<Targets, ProtectError> {
    let reader = Reader {
        roots,
        person,
        included: Cell::new(0),
        read: Cell::new(0),
    };
    let everywhere = reader.everywhere()?;
    let mut files = everywhere.files.clone();
    let mut hooks = BTreeSet::new();
    // In whichever repository somebody works. What lies deeper in such a directory is none of its hooks.
    let holds_a_root = |path: &Path| {
        roots
            .iter()
            .any(|root| root.path.starts_with(path) && root.path != path)
    };
    let is_outside = |path: &&PathBuf| !roots.iter().any(|root| path.starts_with(&root.path));
    let mut on_the_way = BTreeSet::new();
    for path in everywhere.hooks.iter().filter(|path| path.is_absolute()) {
        is_firm(roots, path, &trail(Path::new("/"), path))?;
        let all = ways_of_git(roots, Path::new("/"), path, &mut on_the_way)?;
        hooks.extend(all.into_iter().filter(|path| !holds_a_root(path)));
    }
    let repositories = repositories(roots, sight, everywhere.trusted, &mut on_the_way)?;
    let mut in_work_trees: BTreeSet<PathBuf> = relative(&everywhere.hooks).collect();
    for known in &repositories {
        let Repository { places, directories } = known;
        let mut leads = Leads::default();
        for config in known.configs() {
            let (base, name) = (config.parent(), config.file_name());
            if let (Some(base), Some(name)) = (base, name) {
                is_firm(roots, &config, &trail(base, Path::new(name)))?;
            }
            reader.follow(&config, MAX_NESTED, &mut leads)?;
        }
        for git in directories.iter().filter(is_outside) {
            hooks.append(&mut ways_of_git(roots, git, Path::new("hooks"), &mut on_the_way)?);
            on_the_way.extend(way_from(roots, &git.join("commondir"))?);
        }
        // Git runs some hooks in the git directory itself.
        for place in places.iter().chain(&leads.worktrees).chain(directories) {
            let values = leads.hooks.iter().chain(&everywhere.hooks);
            let mut all = BTreeSet::new();
            for value in values {
                all.append(&mut ways_of_git(roots, place, value, &mut on_the_way)?);
            }
            let holds = |path: &Path| place.starts_with(path) || directories.iter().any(|git| git.starts_with(path));
            let (around, apart): (Vec<PathBuf>, Vec<PathBuf>) = all.into_iter().partition(|target| holds(target));
            files.extend(around.iter().flat_map(|target| of_directory(target, holds)));
            for path in apart.iter().flat_map(|target| of_directory(target, holds)) {
                hooks.append(&mut ways_of_git(roots, Path::new("/"), &path, &mut on_the_way)?);
            }
        }
        in_work_trees.extend(relative(&leads.hooks));
        files.append(&mut leads.files);
        if files.len() + hooks.len() > MAX_TARGETS {
            return Err(ProtectError::TooManyTargets(hooks.pop_last().unwrap_or_default()));
        }
    }
    let mut scripts = BTreeSet::new();
    for directory in hooks.iter().filter(is_outside) {
        scripts.append(&mut scripts_of(roots, directory, &mut on_the_way)?);
    }
    // Also what the names alone protect: of that git runs nothing while a command is running, and nothing of it stays because
    // a branch has it so.
    let mut found = BTreeSet::new();
    for file in &files {
        found.append(&mut ways_of_git(roots, Path::new("/"), file, &mut on_the_way)?);
    }
    on_the_way.append(&mut ways_to_directories(roots, sight)?);
    on_the_way.retain(|path| inside(roots, path).is_some() && !found.contains(path));
    found.retain(|path| inside(roots, path).is_some());
    found.extend(
        hooks
            .into_iter()
            .filter(|path| inside(roots, path).is_some() || roots.iter().any(|root| root.path.starts_with(path))),
    );
    let is_open = |root: &Root, below: &Path| !patterns.covers(root.context, below.as_os_str().as_bytes());
    let named = named::of(roots, sight, |file| reader.content(file))?;
    let mut others: BTreeSet<PathBuf> = named.iter().flat_map(|path| ways(path)).collect();
    others.append(&mut scripts);
    others.retain(|path| inside(roots, path).is_some_and(|(root, below)| is_open(root, below)));
    if found.len() + others.len() > MAX_TARGETS {
        return Err(ProtectError::TooManyTargets(found.pop_last().unwrap_or_default()));
    }
    Ok(Targets {
        run_at_once: found,
        others,
        ways: on_the_way,
        hooks: in_work_trees,
    })
}

/// The repositories of the roots, and those around them.
fn repositories(
    roots: &[Root],
    sight: &Sight,
    trusted: Trusted,
    on_the_way: &mut BTreeSet<PathBuf>,
) -> Result<Vec<Repository>, ProtectError> {
    let mut found = in_sight(roots, sight)?;
    for root in roots {
        for one in around(&root.path, trusted)? {
            for place in &one.places {
                on_the_way.extend(way_from(roots, &place.join(".git"))?);
            }
            found.push(one);
        }
    }
    Ok(found)
}

fn relative(hooks: &[PathBuf]) -> impl Iterator<Item = PathBuf> + '_ {
    hooks.iter().filter(|path| path.is_relative()).cloned()
}

/// A path as it is written and where it leads, which what a command makes may be reached by as well.
fn ways(path: &Path) -> BTreeSet<PathBuf> {
    [Some(plain(path)), leads_to(path)].into_iter().flatten().collect()
}

/// The repositories whose git directory lies in a root, and those that something called `.git` in a root makes.
fn in_sight(roots: &[Root], sight: &Sight) -> Result<Vec<Repository>, ProtectError> {
    let gits = sight.git_directories();
    let mut worktrees: HashMap<(u16, &[u8]), Vec<&[u8]>> = HashMap::new();
    for (number, git) in &gits {
        let above = split(git).0;
        if split(above).1 == b"worktrees" {
            worktrees.entry((*number, above)).or_default().push(git);
        }
    }
    let mut found: BTreeMap<PathBuf, Repository> = BTreeMap::new();
    for (number, git) in &gits {
        let Some(root) = roots.get(usize::from(*number)) else {
            continue;
        };
        let git_path = root.path.join(OsStr::from_bytes(git));
        let (above, name) = split(git);
        let mut places = vec![if is_dot_git(name) {
            root.path.join(OsStr::from_bytes(above))
        } else {
            git_path.clone()
        }];
        // The worktrees that share the config, each of which says where it is.
        let folder = join(git, b"worktrees");
        let of_it = worktrees.get(&(*number, folder.as_slice()));
        for other in of_it.into_iter().flatten() {
            if let Seen::Present(State::File { content, .. }) = glance(&root.fd, &join(other, b"gitdir"), MAX_CONFIG) {
                let back = Path::new(OsStr::from_bytes(content.trim_ascii()));
                let worktree = root.path.join(OsStr::from_bytes(other)).join(back);
                places.extend(worktree.parent().map(Path::to_owned));
            }
        }
        let shared = reaching(root, git, || shared_by(&git_path))?;
        let directories = std::iter::once(git_path.clone()).chain(shared).collect();
        found.insert(git_path, Repository { places, directories });
    }
    for (number, link) in sight.git_links() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let entry = root.path.join(OsStr::from_bytes(&link));
        let Some(linked) = reaching(root, split(&link).0, || repository(&entry))? else {
            continue;
        };
        let Some(git) = linked.directories.first().cloned() else {
            continue;
        };
        let known = found.entry(git).or_insert_with(|| Repository {
            places: Vec::new(),
            directories: linked.directories,
        });
        known.places.extend(linked.places);
    }
    Ok(found.into_values().collect())
}

/// What `look` finds, also where a directory of the root that leads to `directory` is shut.
pub(super) fn reaching<T>(
    root: &Root,
    directory: &[u8],
    look: impl Fn() -> Result<T, ProtectError>,
) -> Result<T, ProtectError> {
    let found = insisting(&root.fd, directory, None, || match look() {
        Err(ProtectError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Err(Errno::EACCES),
        found => Ok(found),
    });
    found.map_err(|error| ProtectError::io("look at", shown(root, directory), error))?
}

/// What configs lead git to; paths as they are written.
#[derive(Debug, Default)]
struct Leads {
    /// Directories of hooks, below wherever they are run if not absolute.
    hooks: Vec<PathBuf>,
    /// Where else hooks are run.
    worktrees: Vec<PathBuf>,
    /// Files with more settings.
    files: BTreeSet<PathBuf>,
    /// What was read, and how deep its includes may still be.
    visited: BTreeMap<PathBuf, usize>,
    /// Whose repositories are obeyed.
    trusted: Trusted,
}

struct Reader<'a> {
    roots: &'a [Root],
    person: &'a Person,
    /// How many files were read because another names them.
    included: Cell<usize>,
    /// How many bytes were read of such files.
    read: Cell<u64>,
}

impl Reader<'_> {
    /// What a person's own settings lead git to in all repositories.
    fn everywhere(&self) -> Result<Leads, ProtectError> {
        let mut leads = Leads::default();
        for config in self.person.configs() {
            if config.is_relative() {
                return Err(ProtectError::Relative(config.to_owned()));
            }
            is_firm(self.roots, config, &trail(Path::new("/"), config))?;
            // It may lie in a root itself.
            leads.files.insert(config.to_owned());
            self.follow(config, MAX_NESTED, &mut leads)?;
        }
        Ok(leads)
    }

    /// Reads a config and what it includes.
    fn follow(&self, config: &Path, nested: usize, leads: &mut Leads) -> Result<(), ProtectError> {
        // By a shorter way more of what it includes counts.
        if leads.visited.get(config).is_some_and(|deep| *deep >= nested) {
            return Ok(());
        }
        leads.visited.insert(config.to_owned(), nested);
        let Some(real) = leads_to(config) else {
            return Ok(());
        };
        if real != plain(config) {
            // What it leads to may have another name in a root.
            leads.files.insert(config.to_owned());
        }
        let Some(content) = self.content(real)? else {
            return Ok(());
        };
        if nested < MAX_NESTED {
            self.read.set(self.read.get().saturating_add(content.len() as u64));
            if self.read.get() > MAX_READ {
                let why = "is more than is read of includes";
                return Err(ProtectError::Unclear(config.to_owned(), why));
            }
        }
        let here = config.parent().unwrap_or(config);
        let expand = |value: &[u8]| {
            let unknown = |_| ProtectError::Unclear(config.to_owned(), "names a home that cannot be looked up");
            self.person.expand(value).map_err(unknown)
        };
        for Setting { section, key, value } in settings(&content) {
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"worktree") => {
                    let value = Path::new(OsStr::from_bytes(&value));
                    let target = here.join(value);
                    is_firm(self.roots, &target, &trail(here, value))?;
                    leads.worktrees.extend(ways(&target));
                }
                (b"core", b"hookspath") => leads.hooks.extend(expand(&value)?),
                (b"safe", b"directory") => leads.trusted = Trusted::Others,
                (b"include" | b"includeif", b"path") => {
                    for path in expand(&value)? {
                        let target = here.join(&path);
                        is_firm(self.roots, &target, &trail(here, &path))?;
                        leads.files.insert(target.clone());
                        if let Some(nested) = nested.checked_sub(1) {
                            self.include(&target, nested, leads)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn include(&self, target: &Path, nested: usize, leads: &mut Leads) -> Result<(), ProtectError> {
        self.included.set(self.included.get() + 1);
        if self.included.get() > MAX_INCLUDED {
            let why = "is one of more includes than are read";
            return Err(ProtectError::Unclear(target.to_owned(), why));
        }
        self.follow(target, nested, leads)
    }

    /// What git reads there, if anything; the path is where its own name leads.
    fn content(&self, file: PathBuf) -> Result<Option<Vec<u8>>, ProtectError> {
        let Some((root, below)) = inside(self.roots, &file) else {
            return match repository::read(&file) {
                Err(error) if is_out_of_reach(&error) => Ok(None),
                read => read,
            };
        };
        match glance(&root.fd, below.as_os_str().as_bytes(), MAX_CONFIG) {
            Seen::Present(State::File { content, .. }) => Ok(Some(content)),
            // A link has come there since.
            Seen::Present(State::Symlink { .. }) => Err(ProtectError::Unclear(file, "has just become a link")),
            Seen::Absent | Seen::Present(State::Directory { .. } | State::Special { .. } | State::Left) => Ok(None),
            Seen::Long { .. } => Err(ProtectError::Unclear(file, "is too long to be read")),
            Seen::Unreadable(error) => Err(ProtectError::io("read", file, error)),
        }
    }
}
