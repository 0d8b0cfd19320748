//! Which commits a person's own refs have named, kept in the store.
//!
//! For each git directory: the commits that are trusted, and what its refs named when the last command had ended. What a ref
//! names before a command and did not name then, the host made it name, and that is trusted from now on. On first sight all of
//! it is. What a command makes a ref name never is, as long as the host does not move that ref.
//!
//! Whatever cannot be told is not trusted. While a command of another session runs in the same place nothing new is. A note
//! of what is under way lies beside the records until the command is settled; where one is left over, its process
//! died, and what the refs of its repositories name then is only written down. A repository that a command made is written
//! down with nothing trusted. Records are never dropped, for that would make a known repository a new one; beyond [`MOST`] of
//! them nothing new is trusted on first sight.
//!
//! A session with another store, or none, is the host to this one.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::super::at;
use super::super::journal::JOURNAL;
use super::super::markers::Markers;
use super::super::overlap::is_overlap;
use super::super::record::Record;
use super::super::roots::{Root, shown};
use super::super::sight::Sight;
use super::super::store::{folder, in_folder};
use super::id::Id;
use super::refs::{self, Ref};

/// The folder of records.
const TIPS: &str = "tips";
/// The folder of notes, one for each command under way.
const UNDER_WAY: &str = "tips-under-way";
/// Records in all.
const MOST: usize = 4096;
/// Commits that are trusted of one repository; of more, those that were trusted last.
const MOST_TRUSTED: usize = 20_000;
/// First bytes of a record; the last one is the version of the format.
const MAGIC: &[u8] = b"stockade tips 2\n";

/// A directory, by the number of its root and the path in it.
type Place = (u16, Vec<u8>);

/// What is kept of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Kept {
    /// Those trusted last come last.
    trusted: Vec<Id>,
    refs: Vec<Ref>,
    /// Whether that is what the refs named when the last command had ended.
    is_known: bool,
    /// Whether a command made the repository, and no ref of it was the host's since.
    is_made: bool,
}

/// What is there of a record.
#[derive(Debug)]
enum Loaded {
    Kept(Kept),
    Nothing,
    /// Something, and it cannot be read.
    Unreadable,
}

/// A repository below a root, or around one.
#[derive(Debug)]
pub(super) struct Repository {
    /// Its git directory. One around a root is in none.
    pub(super) place: Option<Place>,
    path: PathBuf,
    pub(super) key: String,
    loaded: Loaded,
    refs: Option<Vec<Ref>>,
    kept: Kept,
}

impl Repository {
    /// The commits that are trusted.
    pub(super) fn trusted(&self) -> &[Id] {
        &self.kept.trusted
    }

    /// What its refs named before the command.
    pub(super) fn refs(&self) -> &[Ref] {
        &self.kept.refs
    }
}

/// The repositories of a guard.
#[derive(Debug, Default)]
pub(in super::super) struct Tips {
    store: PathBuf,
    pub(super) repositories: Vec<Repository>,
    under_way: Option<PathBuf>,
}

impl Tips {
    /// Reads the refs of all repositories. What they are worth is [judged](Self::judge) afterwards: a command of another
    /// session that has moved one of them by then has its journal in the store.
    pub(in super::super) fn look(roots: &[Root], sight: &Sight, store: &Path) -> Self {
        let unknown = left_over(store);
        let mut repositories = Vec::new();
        let mut met = BTreeSet::new();
        for (place, path, git) in git_directories(roots, sight) {
            let Some(key) = refs::key(&git, path.as_os_str().as_bytes()) else {
                continue;
            };
            if !met.insert(key.clone()) {
                continue;
            }
            let mut loaded = load(store, &key);
            if let Loaded::Kept(kept) = &mut loaded {
                kept.is_known &= !unknown.contains(&key);
            }
            let earlier = match &loaded {
                Loaded::Kept(kept) => kept.refs.as_slice(),
                Loaded::Nothing | Loaded::Unreadable => &[],
            };
            repositories.push(Repository {
                place,
                path,
                refs: refs::read(&git, earlier),
                key,
                loaded,
                kept: Kept::default(),
            });
        }
        Self {
            store: store.to_owned(),
            repositories,
            under_way: None,
        }
    }

    /// Trusts what the host made the refs name, beside the commands that are under way.
    pub(in super::super) fn judge(&mut self, others: &[Record]) {
        if self.repositories.is_empty() {
            return;
        }
        let has_room = fs::read_dir(self.store.join(TIPS)).map_or(true, |all| all.take(MOST).count() < MOST);
        for repository in &mut self.repositories {
            let is_shared = others
                .iter()
                .flat_map(|other| &other.roots)
                .any(|(path, who)| is_overlap((Path::new(OsStr::from_bytes(path)), *who), &repository.path));
            let refs = repository.refs.take();
            let is_known = refs.is_some();
            let now = refs.unwrap_or_default();
            let (mut trusted, before) = match std::mem::replace(&mut repository.loaded, Loaded::Nothing) {
                Loaded::Kept(kept) => (kept.trusted.clone(), Some(kept)),
                Loaded::Nothing | Loaded::Unreadable if is_shared || !has_room => (Vec::new(), None),
                Loaded::Unreadable => (Vec::new(), None),
                Loaded::Nothing => (now.iter().filter_map(|one| one.value).collect(), None),
            };
            if let Some(before) = before
                .as_ref()
                .filter(|before| before.is_known && is_known && !is_shared)
            {
                let moved = now.iter().filter(|one| match refs::find(&before.refs, &one.name) {
                    // From what git may have read otherwise nobody can tell who moved it.
                    Some(earlier) => earlier.value.is_some() && earlier.value != one.value,
                    None => true,
                });
                let moved: Vec<Id> = moved.filter_map(|one| one.value).collect();
                trusted.retain(|id| !moved.contains(id));
                trusted.extend(moved);
            }
            tidy(&mut trusted);
            let is_made = trusted.is_empty() && before.as_ref().is_some_and(|before| before.is_made);
            repository.kept = Kept {
                trusted,
                refs: now,
                is_known,
                is_made,
            };
            if before.as_ref() != Some(&repository.kept)
                && save(&self.store, &repository.key, &repository.kept).is_err()
            {
                // What was not written down is not built upon.
                repository.kept.trusted.clear();
            }
        }
    }

    /// Notes that a command is under way whose journal will have this name.
    pub(in super::super) fn begin(&mut self, journal: &OsStr) {
        if self.repositories.is_empty() {
            return;
        }
        let keys: Vec<&str> = self.repositories.iter().map(|one| one.key.as_str()).collect();
        let keys = keys.join("\n");
        let written = in_folder(&self.store, UNDER_WAY, |folder| {
            let path = folder.join(journal);
            write_new(&path, keys.as_bytes()).map(|()| path)
        });
        match written {
            Ok(Ok(path)) => self.under_way = Some(path),
            // Nobody could tell after a crash that there was a command. The journal, which needs the same room, is most often
            // refused as well.
            Ok(Err(_)) | Err(_) => {
                for repository in &mut self.repositories {
                    repository.kept.trusted.clear();
                    let path = self.store.join(TIPS).join(&repository.key);
                    let _doubted = fs::rename(&path, doubted(&path));
                }
            }
        }
    }

    /// Writes down what the refs name now that the command has ended, also of repositories that it made.
    pub(in super::super) fn end(self, roots: &[Root], sight: &Sight) {
        let mut all_written = true;
        for (_, path, git) in git_directories(roots, sight) {
            let Some(key) = refs::key(&git, path.as_os_str().as_bytes()) else {
                all_written = false;
                continue;
            };
            let ours = self.repositories.iter().find(|one| one.key == key).map(|one| &one.kept);
            // One that came from elsewhere is known from there.
            let theirs = match ours {
                Some(_) => None,
                None => match load(&self.store, &key) {
                    Loaded::Kept(kept) => Some(kept),
                    Loaded::Nothing | Loaded::Unreadable => None,
                },
            };
            let before = ours.or(theirs.as_ref());
            let refs = refs::read(&git, before.map_or(&[], |kept| kept.refs.as_slice()));
            let kept = Kept {
                trusted: before.map_or_else(Vec::new, |kept| kept.trusted.clone()),
                is_known: refs.is_some(),
                refs: refs.unwrap_or_default(),
                is_made: before.is_none_or(|kept| kept.is_made),
            };
            if before != Some(&kept) {
                all_written &= save(&self.store, &key, &kept).is_ok();
            }
        }
        if all_written {
            self.forget();
        }
    }

    /// Whether a command made the git directory.
    pub(in super::super) fn are_made(&self, root: u16, git: &[u8]) -> bool {
        let is_it = |one: &&Repository| {
            one.place
                .as_ref()
                .is_some_and(|(number, path)| *number == root && path == git)
        };
        self.repositories.iter().find(is_it).is_some_and(|one| one.kept.is_made)
    }

    /// No command came.
    pub(in super::super) fn forget(self) {
        if let Some(path) = self.under_way {
            // Left over, it makes us trust less.
            let _stays = fs::remove_file(path);
        }
    }
}

/// The git directories with refs of their own below the roots; and those around them, whose refs a command may move all the same.
fn git_directories(roots: &[Root], sight: &Sight) -> Vec<(Option<Place>, PathBuf, OwnedFd)> {
    let mut found = Vec::new();
    for (number, path) in sight.git_directories() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        // The refs of a further work tree are those of the repository that it belongs to.
        if at::stat(&root.fd, &at::join(&path, b"commondir")).is_ok() {
            continue;
        }
        if let Ok(git) = at::open_directory(&root.fd, &path) {
            found.push((Some((number, path.clone())), shown(root, &path), git));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    for root in roots {
        for above in root.path.ancestors().skip(1) {
            if Markers::look(above).is_git_directory()
                && let Ok(top) = open("/", flags, Mode::empty())
                && let Ok(git) =
                    at::open_directory(top, above.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or_default())
            {
                found.push((None, above.to_owned(), git));
            }
        }
    }
    found
}

/// Each once, where it was trusted last, and no more than are kept.
fn tidy(trusted: &mut Vec<Id>) {
    let mut met = BTreeSet::new();
    trusted.reverse();
    trusted.retain(|id| met.insert(*id));
    trusted.truncate(MOST_TRUSTED);
    trusted.reverse();
}

fn doubted(path: &Path) -> PathBuf {
    path.with_extension("doubted")
}

fn load(store: &Path, key: &str) -> Loaded {
    let path = store.join(TIPS).join(key);
    let parse = |bytes: &[u8]| postcard::from_bytes(bytes.strip_prefix(MAGIC)?).ok();
    match fs::read(&path) {
        Ok(bytes) => parse(&bytes).map_or(Loaded::Unreadable, Loaded::Kept),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read(doubted(&path)) {
            Ok(bytes) => parse(&bytes).map_or(Loaded::Unreadable, |kept: Kept| {
                Loaded::Kept(Kept {
                    is_known: false,
                    ..kept
                })
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Loaded::Nothing,
            Err(_) => Loaded::Unreadable,
        },
        Err(_) => Loaded::Unreadable,
    }
}

fn save(store: &Path, key: &str, kept: &Kept) -> io::Result<()> {
    let bytes = postcard::to_extend(kept, MAGIC.to_vec()).map_err(io::Error::other)?;
    let path = folder(store, TIPS).map_err(io::Error::other)?.join(key);
    let unfinished = path.with_extension(super::super::store::unique_name());
    let written = write_new(&unfinished, &bytes).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _gone = fs::remove_file(&unfinished);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// The repositories of commands that nobody settled: their journals are gone, or never were finished.
fn left_over(store: &Path) -> BTreeSet<String> {
    let mut unknown = BTreeSet::new();
    let Ok(notes) = fs::read_dir(store.join(UNDER_WAY)) else {
        return unknown;
    };
    let journals = store.join(JOURNAL);
    for note in notes.flatten() {
        let name = note.file_name();
        let mut unfinished = OsString::from(".");
        unfinished.push(&name);
        // Whatever is not known to be gone may be under way.
        if [&name, &unfinished].iter().any(|name| {
            !matches!(fs::symlink_metadata(journals.join(name)), Err(error) if error.kind() == io::ErrorKind::NotFound)
        }) {
            continue;
        }
        let Ok(keys) = fs::read_to_string(note.path()) else {
            continue;
        };
        let mut all_written = true;
        for key in keys.lines() {
            unknown.insert(key.to_owned());
            match load(store, key) {
                Loaded::Kept(kept) => {
                    let kept = Kept {
                        is_known: false,
                        ..kept
                    };
                    all_written &= save(store, key, &kept).is_ok();
                }
                // It was not written down before it could be moved: nothing of it is trusted at its next sight.
                Loaded::Nothing => all_written &= save(store, key, &Kept::default()).is_ok(),
                Loaded::Unreadable => {}
            }
        }
        if all_written {
            let _stays = fs::remove_file(note.path());
        }
    }
    unknown
}
