//! Which commits a person's own refs have named, kept in the store.
//!
//! For each git directory: the commits that are trusted, and what its refs named when the last command had ended. What a ref
//! names before a command and did not name then, the host made it name, and that is trusted from now on. On first sight all of
//! it is. What a command makes a ref name never is, as long as the host does not move that ref.
//!
//! Whatever cannot be told is not trusted. While a command of another session runs in the same place nothing new is. A note
//! of what is under way lies beside the records until the command is settled; where one is left over, its process
//! died, and what the refs of its repositories name then is only written down. A repository that a command made is written
//! down with nothing trusted. Records are never dropped, for that would make a known repository a new one; beyond [`MAX_RECORDS`] of
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

use super::super::entry::nofollow;
use super::super::naming::markers::Markers;
use super::super::overlap::overlaps;
use super::super::record::Record;
use super::super::roots::{Root, absolute};
use super::super::storage::journal::JOURNAL;
use super::super::storage::store::{folder, in_folder};
use super::super::tree::inventory::Inventory;
use super::id::Id;
use super::refs::{self, Ref};

/// The folder of records.
const TIPS: &str = "tips";
/// The folder of notes, one for each command under way.
const UNDER_WAY: &str = "tips-under-way";
/// Records in all.
const MAX_RECORDS: usize = 4096;
/// Commits that are trusted of one repository; of more, those that were trusted last.
const MOST_TRUSTED: usize = 20_000;
/// First bytes of a record; the last one is the version of the format.
const MAGIC: &[u8] = b"stockade tips 2\n";

/// A directory, by the number of its root and the path in it.
type RootPath = (u16, Vec<u8>);

/// What is kept of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct TipRecord {
    /// Those trusted last come last.
    trusted: Vec<Id>,
    refs: Vec<Ref>,
    /// Whether that is what the refs named when the last command had ended.
    is_known: bool,
    /// Whether a command made the repository and the host has moved no ref of it since.
    is_made_by_command: bool,
}

/// What is there of a record.
#[derive(Debug)]
enum Loaded {
    TipRecord(TipRecord),
    Nothing,
    /// Something, and it cannot be read.
    Unreadable,
}

/// A repository below a root, or around one.
#[derive(Debug)]
pub(super) struct Repository {
    /// Its git directory. One around a root is in none.
    pub(super) location: Option<RootPath>,
    path: PathBuf,
    pub(super) key: String,
    loaded: Loaded,
    refs: Option<Vec<Ref>>,
    record: TipRecord,
}

impl Repository {
    /// The commits that are trusted.
    pub(super) fn trusted(&self) -> &[Id] {
        &self.record.trusted
    }

    /// What its refs named before the command.
    pub(super) fn refs(&self) -> &[Ref] {
        &self.record.refs
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
    pub(in super::super) fn read(roots: &[Root], inventory: &Inventory, store: &Path) -> Self {
        let unknown = abandoned(store);
        let mut repositories = Vec::new();
        let mut listed = BTreeSet::new();
        for (location, path, git) in git_directories(roots, inventory) {
            let Some(key) = refs::key(&git, path.as_os_str().as_bytes()) else {
                continue;
            };
            if !listed.insert(key.clone()) {
                continue;
            }
            let mut loaded = load(store, &key);
            if let Loaded::TipRecord(record) = &mut loaded {
                record.is_known &= !unknown.contains(&key);
            }
            let earlier = match &loaded {
                Loaded::TipRecord(record) => record.refs.as_slice(),
                Loaded::Nothing | Loaded::Unreadable => &[],
            };
            repositories.push(Repository {
                location,
                path,
                refs: refs::read(&git, earlier),
                key,
                loaded,
                record: TipRecord::default(),
            });
        }
        Self {
            store: store.to_owned(),
            repositories,
            under_way: None,
        }
    }

    /// Trusts what the host made the refs name, beside the commands that are under way.
    pub(in super::super) fn update_trust(&mut self, others: &[Record]) {
        if self.repositories.is_empty() {
            return;
        }
        let has_room =
            fs::read_dir(self.store.join(TIPS)).map_or(true, |all| all.take(MAX_RECORDS).count() < MAX_RECORDS);
        for repository in &mut self.repositories {
            let is_shared = others
                .iter()
                .flat_map(|other| &other.roots)
                .any(|(path, who)| overlaps((Path::new(OsStr::from_bytes(path)), *who), &repository.path));
            let refs = repository.refs.take();
            let is_known = refs.is_some();
            let now = refs.unwrap_or_default();
            let (mut trusted, before) = match std::mem::replace(&mut repository.loaded, Loaded::Nothing) {
                Loaded::TipRecord(record) => (record.trusted.clone(), Some(record)),
                Loaded::Nothing | Loaded::Unreadable if is_shared || !has_room => (Vec::new(), None),
                Loaded::Unreadable => (Vec::new(), None),
                Loaded::Nothing => (now.iter().filter_map(|one| one.value).collect(), None),
            };
            if let Some(before) = before
                .as_ref()
                .filter(|before| before.is_known && is_known && !is_shared)
            {
                let moved = now.iter().filter(|one| match refs::find(&before.refs, &one.name) {
                    // An odd ref does not show who moved it.
                    Some(earlier) => earlier.value.is_some() && earlier.value != one.value,
                    None => true,
                });
                let moved: Vec<Id> = moved.filter_map(|one| one.value).collect();
                trusted.retain(|id| !moved.contains(id));
                trusted.extend(moved);
            }
            tidy(&mut trusted);
            let is_made_by_command =
                trusted.is_empty() && before.as_ref().is_some_and(|before| before.is_made_by_command);
            repository.record = TipRecord {
                trusted,
                refs: now,
                is_known,
                is_made_by_command,
            };
            if before.as_ref() != Some(&repository.record)
                && save(&self.store, &repository.key, &repository.record).is_err()
            {
                // What was not written down is not built upon.
                repository.record.trusted.clear();
            }
        }
    }

    /// Notes that a command is under way whose journal will have this name.
    pub(in super::super) fn mark_under_way(&mut self, journal: &OsStr) {
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
                    repository.record.trusted.clear();
                    let path = self.store.join(TIPS).join(&repository.key);
                    let _doubted = fs::rename(&path, doubtful(&path));
                }
            }
        }
    }

    /// Writes down what the refs name now that the command has ended, also of repositories that it made.
    pub(in super::super) fn record_refs(self, roots: &[Root], inventory: &Inventory) {
        let mut all_written = true;
        for (_, path, git) in git_directories(roots, inventory) {
            let Some(key) = refs::key(&git, path.as_os_str().as_bytes()) else {
                all_written = false;
                continue;
            };
            let ours = self
                .repositories
                .iter()
                .find(|one| one.key == key)
                .map(|one| &one.record);
            // One that came from elsewhere is known from there.
            let theirs = match ours {
                Some(_) => None,
                None => match load(&self.store, &key) {
                    Loaded::TipRecord(record) => Some(record),
                    Loaded::Nothing | Loaded::Unreadable => None,
                },
            };
            let before = ours.or(theirs.as_ref());
            let refs = refs::read(&git, before.map_or(&[], |record| record.refs.as_slice()));
            let record = TipRecord {
                trusted: before.map_or_else(Vec::new, |record| record.trusted.clone()),
                is_known: refs.is_some(),
                refs: refs.unwrap_or_default(),
                is_made_by_command: before.is_none_or(|record| record.is_made_by_command),
            };
            if before != Some(&record) {
                all_written &= save(&self.store, &key, &record).is_ok();
            }
        }
        if all_written {
            self.forget();
        }
    }

    /// Whether a command made the git directory.
    pub(in super::super) fn is_made_by_command(&self, root: u16, git: &[u8]) -> bool {
        let is_it = |one: &&Repository| {
            one.location
                .as_ref()
                .is_some_and(|(number, path)| *number == root && path == git)
        };
        self.repositories
            .iter()
            .find(is_it)
            .is_some_and(|one| one.record.is_made_by_command)
    }

    /// Removes the note of a command that did not come.
    pub(in super::super) fn forget(self) {
        if let Some(path) = self.under_way {
            // Left over, it makes us trust less.
            let _stays = fs::remove_file(path);
        }
    }
}

/// The git directories with refs of their own below the roots; and those around them, whose refs a command may move all the same.
fn git_directories(roots: &[Root], inventory: &Inventory) -> Vec<(Option<RootPath>, PathBuf, OwnedFd)> {
    let mut found = Vec::new();
    for (number, path) in inventory.git_directories() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        // The refs of a further work tree are those of the repository that it belongs to.
        if nofollow::stat(&root.fd, &nofollow::join(&path, b"commondir")).is_ok() {
            continue;
        }
        if let Ok(git) = nofollow::open_directory(&root.fd, &path) {
            found.push((Some((number, path.clone())), absolute(root, &path), git));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    for root in roots {
        for above in root.path.ancestors().skip(1) {
            if Markers::of_directory(above).is_git_directory()
                && let Ok(top) = open("/", flags, Mode::empty())
                && let Ok(git) =
                    nofollow::open_directory(top, above.as_os_str().as_bytes().strip_prefix(b"/").unwrap_or_default())
            {
                found.push((None, above.to_owned(), git));
            }
        }
    }
    found
}

/// Each once, where it was trusted last, and no more than are kept.
fn tidy(trusted: &mut Vec<Id>) {
    let mut listed = BTreeSet::new();
    trusted.reverse();
    trusted.retain(|id| listed.insert(*id));
    trusted.truncate(MOST_TRUSTED);
    trusted.reverse();
}

fn doubtful(path: &Path) -> PathBuf {
    path.with_extension("doubted")
}

fn load(store: &Path, key: &str) -> Loaded {
    let path = store.join(TIPS).join(key);
    let parse = |bytes: &[u8]| postcard::from_bytes(bytes.strip_prefix(MAGIC)?).ok();
    match fs::read(&path) {
        Ok(bytes) => parse(&bytes).map_or(Loaded::Unreadable, Loaded::TipRecord),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read(doubtful(&path)) {
            Ok(bytes) => parse(&bytes).map_or(Loaded::Unreadable, |record: TipRecord| {
                Loaded::TipRecord(TipRecord {
                    is_known: false,
                    ..record
                })
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Loaded::Nothing,
            Err(_) => Loaded::Unreadable,
        },
        Err(_) => Loaded::Unreadable,
    }
}

fn save(store: &Path, key: &str, record: &TipRecord) -> io::Result<()> {
    let bytes = postcard::to_extend(record, MAGIC.to_vec()).map_err(io::Error::other)?;
    let path = folder(store, TIPS).map_err(io::Error::other)?.join(key);
    let unfinished = path.with_extension(super::super::storage::store::unique_name());
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
fn abandoned(store: &Path) -> BTreeSet<String> {
    let mut unknown = BTreeSet::new();
    let Ok(notes) = fs::read_dir(store.join(UNDER_WAY)) else {
        return unknown;
    };
    let journals = store.join(JOURNAL);
    for note in notes.flatten() {
        let name = note.file_name();
        let mut unfinished = OsString::from(".");
        unfinished.push(&name);
        // Unless the journal is certainly gone, the command may still run.
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
                Loaded::TipRecord(record) => {
                    let record = TipRecord {
                        is_known: false,
                        ..record
                    };
                    all_written &= save(store, key, &record).is_ok();
                }
                // It was not written down before it could be moved: nothing of it is trusted at its next sight.
                Loaded::Nothing => all_written &= save(store, key, &TipRecord::default()).is_ok(),
                Loaded::Unreadable => {}
            }
        }
        if all_written {
            let _stays = fs::remove_file(note.path());
        }
    }
    unknown
}
