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

use super::super::entry::nofollow::{as_owner, join, split};
use super::super::entry::state::{Found, State, observe};
use super::super::error::ProtectError;
use super::super::gitconfig::settings::{Setting, settings};
use super::super::naming::markers::is_git_directory;
use super::super::naming::names::is_dot_git;
use super::super::naming::patterns::Patterns;
use super::super::roots::{Root, absolute, root_of};
use super::super::tree::inventory::Inventory;
use super::git_paths::{git_paths, leads_into, links_from, links_to_directories, refuse_detour};
use super::hooks::{linked_scripts, protected_hooks};
use super::references;
use super::repository::{
    self, MAX_CONFIG, Person, Repository, Trusted, enclosing, is_out_of_reach, repository, shared_by,
};
use super::resolve::{normalize, resolve, resolve_from};

/// How many files are read because another names them.
const MAX_INCLUDED: usize = 1_000;
/// How many bytes are read of such files in all.
const MAX_READ: u64 = MAX_CONFIG;
/// How many includes deep, as git limits it to a like number.
const MAX_NESTED: usize = 10;
/// Targets in all.
pub(crate) const MAX_TARGETS: usize = 10_000;

/// Absolute paths in the roots that protected files refer to, beyond what the patterns protect.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// What git runs or obeys, also while a command is running.
    pub(crate) live: BTreeSet<PathBuf>,
    /// The others.
    pub(crate) others: BTreeSet<PathBuf>,
    /// Links in the paths to what git runs or obeys.
    pub(crate) links: BTreeSet<PathBuf>,
    /// Directories of hooks that are relative to a work tree.
    pub(crate) hooks: BTreeSet<PathBuf>,
}

/// What git is led to, and what other tools are by their own files. One that a root lies in stands for all of that root.
pub(crate) fn of(
    roots: &[Root],
    patterns: &Patterns,
    inventory: &Inventory,
    person: &Person,
) -> Result<Targets, ProtectError> {
    let reader = Reader {
        roots,
        person,
        included: Cell::new(0),
        read: Cell::new(0),
    };
    let user_configs = reader.user_configs()?;
    let mut files = user_configs.files.clone();
    let mut hooks = BTreeSet::new();
    // In whichever repository somebody works. What lies deeper in such a directory is none of its hooks.
    let holds_a_root = |path: &Path| {
        roots
            .iter()
            .any(|root| root.path.starts_with(path) && root.path != path)
    };
    let is_outside = |path: &&PathBuf| !roots.iter().any(|root| path.starts_with(&root.path));
    let mut links = BTreeSet::new();
    for path in user_configs.hooks.iter().filter(|path| path.is_absolute()) {
        refuse_detour(roots, path, &resolve_from(Path::new("/"), path))?;
        let all = git_paths(roots, Path::new("/"), path, &mut links)?;
        hooks.extend(all.into_iter().filter(|path| !holds_a_root(path)));
    }
    let (repositories, dangling) = repositories(roots, inventory, user_configs.trusted, &mut links)?;
    let mut relative_hooks: BTreeSet<PathBuf> = relative(&user_configs.hooks).collect();
    for known in &repositories {
        let Repository { work_dirs, directories } = known;
        let mut targets_found = ConfigTargets::default();
        for config in known.configs() {
            let (base, name) = (config.parent(), config.file_name());
            if let (Some(base), Some(name)) = (base, name) {
                refuse_detour(roots, &config, &resolve_from(base, Path::new(name)))?;
            }
            reader.read_config(&config, MAX_NESTED, &mut targets_found)?;
        }
        for git in directories.iter().filter(is_outside) {
            hooks.append(&mut git_paths(roots, git, Path::new("hooks"), &mut links)?);
            links.extend(links_from(roots, &git.join("commondir"))?);
        }
        // Git runs some hooks in the git directory itself.
        for work_dir in work_dirs.iter().chain(&targets_found.worktrees).chain(directories) {
            let values = targets_found.hooks.iter().chain(&user_configs.hooks);
            let mut all = BTreeSet::new();
            for value in values {
                all.append(&mut git_paths(roots, work_dir, value, &mut links)?);
            }
            let holds = |path: &Path| work_dir.starts_with(path) || directories.iter().any(|git| git.starts_with(path));
            let (holding, separate): (Vec<PathBuf>, Vec<PathBuf>) = all.into_iter().partition(|target| holds(target));
            files.extend(holding.iter().flat_map(|target| protected_hooks(target, holds)));
            for path in separate.iter().flat_map(|target| protected_hooks(target, holds)) {
                hooks.append(&mut git_paths(roots, Path::new("/"), &path, &mut links)?);
            }
        }
        relative_hooks.extend(relative(&targets_found.hooks));
        files.append(&mut targets_found.files);
        if files.len() + hooks.len() > MAX_TARGETS {
            return Err(ProtectError::TooManyTargets(hooks.pop_last().unwrap_or_default()));
        }
    }
    // A `.git` that leads to no git directory can be made to lead to any git directory, and its hooks are where one of these says.
    for work_dir in &dangling {
        let holds = |path: &Path| work_dir.starts_with(path);
        for value in &relative_hooks {
            let all = git_paths(roots, work_dir, value, &mut links)?;
            files.extend(all.iter().flat_map(|target| protected_hooks(target, holds)));
        }
        if files.len() + hooks.len() > MAX_TARGETS {
            return Err(ProtectError::TooManyTargets(work_dir.join(".git")));
        }
    }
    let mut scripts = BTreeSet::new();
    for directory in hooks.iter().filter(is_outside) {
        scripts.append(&mut linked_scripts(roots, directory, &mut links)?);
    }
    // Also what the names alone protect: of that git runs nothing while a command is running, and nothing of it stays because
    // a branch has it so.
    let mut found = BTreeSet::new();
    for file in &files {
        found.append(&mut git_paths(roots, Path::new("/"), file, &mut links)?);
    }
    links.append(&mut links_to_directories(roots, inventory)?);
    links.retain(|path| root_of(roots, path).is_some() && !found.contains(path));
    found.retain(|path| root_of(roots, path).is_some());
    found.extend(
        hooks
            .into_iter()
            .filter(|path| root_of(roots, path).is_some() || roots.iter().any(|root| root.path.starts_with(path))),
    );
    let is_open = |root: &Root, below: &Path| !patterns.covers(root.context, below.as_os_str().as_bytes());
    let named = references::of(roots, inventory, |file| reader.content(file))?;
    let mut others: BTreeSet<PathBuf> = named.iter().flat_map(|path| written_and_resolved(path)).collect();
    others.append(&mut scripts);
    others.retain(|path| root_of(roots, path).is_some_and(|(root, below)| is_open(root, below)));
    if found.len() + others.len() > MAX_TARGETS {
        return Err(ProtectError::TooManyTargets(found.pop_last().unwrap_or_default()));
    }
    Ok(Targets {
        live: found,
        others,
        links,
        hooks: relative_hooks,
    })
}

/// The repositories of the roots and those around them, and the directories whose `.git` leads to no git directory.
fn repositories(
    roots: &[Root],
    inventory: &Inventory,
    trusted: Trusted,
    links: &mut BTreeSet<PathBuf>,
) -> Result<(Vec<Repository>, Vec<PathBuf>), ProtectError> {
    let (mut found, dangling) = repositories_in_roots(roots, inventory)?;
    for root in roots {
        for one in enclosing(&root.path, trusted)? {
            for work_dir in &one.work_dirs {
                links.extend(links_from(roots, &work_dir.join(".git"))?);
            }
            found.push(one);
        }
    }
    Ok((found, dangling))
}

fn relative(hooks: &[PathBuf]) -> impl Iterator<Item = PathBuf> + '_ {
    hooks.iter().filter(|path| path.is_relative()).cloned()
}

/// A path as it is written and where it leads, which what a command makes may be reached by as well.
fn written_and_resolved(path: &Path) -> BTreeSet<PathBuf> {
    [Some(normalize(path)), resolve(path)].into_iter().flatten().collect()
}

/// The repositories whose git directory lies in a root, those that something called `.git` in a root makes, and the directories
/// whose `.git` leads to no git directory.
fn repositories_in_roots(
    roots: &[Root],
    inventory: &Inventory,
) -> Result<(Vec<Repository>, Vec<PathBuf>), ProtectError> {
    let mut dangling = Vec::new();
    let gits = inventory.git_directories();
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
        let mut work_dirs = vec![if is_dot_git(name) {
            root.path.join(OsStr::from_bytes(above))
        } else {
            git_path.clone()
        }];
        // The worktrees that share the config, each of which says where it is.
        let folder = join(git, b"worktrees");
        let of_it = worktrees.get(&(*number, folder.as_slice()));
        for other in of_it.into_iter().flatten() {
            if let Found::Present(State::File { content, .. }) = observe(&root.fd, &join(other, b"gitdir"), MAX_CONFIG)
            {
                let back = Path::new(OsStr::from_bytes(content.trim_ascii()));
                let worktree = root.path.join(OsStr::from_bytes(other)).join(back);
                work_dirs.extend(worktree.parent().map(Path::to_owned));
            }
        }
        let shared = with_access_to(root, git, || shared_by(&git_path))?;
        let directories = std::iter::once(git_path.clone()).chain(shared).collect();
        found.insert(git_path, Repository { work_dirs, directories });
    }
    for (number, link) in inventory.git_links() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let entry = root.path.join(OsStr::from_bytes(&link));
        let linked = with_access_to(root, split(&link).0, || repository(&entry))?;
        let git = linked.as_ref().and_then(|linked| linked.directories.first().cloned());
        if !git.as_deref().is_some_and(is_git_directory)
            && with_access_to(root, split(&link).0, || leads_into(roots, &entry))?
        {
            dangling.extend(entry.parent().map(Path::to_owned));
        }
        let (Some(linked), Some(git)) = (linked, git) else {
            continue;
        };
        let known = found.entry(git).or_insert_with(|| Repository {
            work_dirs: Vec::new(),
            directories: linked.directories,
        });
        known.work_dirs.extend(linked.work_dirs);
    }
    Ok((found.into_values().collect(), dangling))
}

/// Runs `read`, also where a directory above `directory` in the root is closed.
pub(crate) fn with_access_to<T>(
    root: &Root,
    directory: &[u8],
    read: impl Fn() -> Result<T, ProtectError>,
) -> Result<T, ProtectError> {
    let found = as_owner(&root.fd, directory, None, || match read() {
        Err(ProtectError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Err(Errno::EACCES),
        found => Ok(found),
    });
    found.map_err(|error| ProtectError::io("look at", absolute(root, directory), error))?
}

/// What configs make git read or run; paths as written.
#[derive(Debug, Default)]
struct ConfigTargets {
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
    /// What a person's own settings make git read or run in all repositories.
    fn user_configs(&self) -> Result<ConfigTargets, ProtectError> {
        let mut targets_found = ConfigTargets::default();
        for config in self.person.configs() {
            if config.is_relative() {
                return Err(ProtectError::Relative(config.to_owned()));
            }
            refuse_detour(self.roots, config, &resolve_from(Path::new("/"), config))?;
            // It may lie in a root itself.
            targets_found.files.insert(config.to_owned());
            self.read_config(config, MAX_NESTED, &mut targets_found)?;
        }
        Ok(targets_found)
    }

    /// Reads a config and what it includes.
    fn read_config(&self, config: &Path, nested: usize, targets_found: &mut ConfigTargets) -> Result<(), ProtectError> {
        // Reached by fewer includes, it may include more.
        if targets_found.visited.get(config).is_some_and(|deep| *deep >= nested) {
            return Ok(());
        }
        targets_found.visited.insert(config.to_owned(), nested);
        let Some(real) = resolve(config) else {
            return Ok(());
        };
        if real != normalize(config) {
            // The link itself may lie in a root.
            targets_found.files.insert(config.to_owned());
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
                    refuse_detour(self.roots, &target, &resolve_from(here, value))?;
                    targets_found.worktrees.extend(written_and_resolved(&target));
                }
                (b"core", b"hookspath") => targets_found.hooks.extend(expand(&value)?),
                (b"safe", b"directory") => targets_found.trusted = Trusted::Others,
                (b"include" | b"includeif", b"path") => {
                    for path in expand(&value)? {
                        let target = here.join(&path);
                        refuse_detour(self.roots, &target, &resolve_from(here, &path))?;
                        targets_found.files.insert(target.clone());
                        if let Some(nested) = nested.checked_sub(1) {
                            self.include(&target, nested, targets_found)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn include(&self, target: &Path, nested: usize, targets_found: &mut ConfigTargets) -> Result<(), ProtectError> {
        self.included.set(self.included.get() + 1);
        if self.included.get() > MAX_INCLUDED {
            let why = "is one of more includes than are read";
            return Err(ProtectError::Unclear(target.to_owned(), why));
        }
        self.read_config(target, nested, targets_found)
    }

    /// What git reads there, if anything; the path is resolved.
    fn content(&self, file: PathBuf) -> Result<Option<Vec<u8>>, ProtectError> {
        let Some((root, below)) = root_of(self.roots, &file) else {
            return match repository::read(&file) {
                Err(error) if is_out_of_reach(&error) => Ok(None),
                read => read,
            };
        };
        match observe(&root.fd, below.as_os_str().as_bytes(), MAX_CONFIG) {
            Found::Present(State::File { content, .. }) => Ok(Some(content)),
            // A link has come there since.
            Found::Present(State::Symlink { .. }) => Err(ProtectError::Unclear(file, "has just become a link")),
            Found::Absent | Found::Present(State::Directory { .. } | State::Special { .. } | State::Ignored) => {
                Ok(None)
            }
            Found::TooLong { .. } => Err(ProtectError::Unclear(file, "is too long to be read")),
            Found::Unreadable(error) => Err(ProtectError::io("read", file, error)),
        }
    }
}
