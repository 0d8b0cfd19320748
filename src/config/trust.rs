//! Trust in configs that were found in the working directory, kept outside every root.
//!
//! A config that came with a repository is used only after a person trusted it. The record has its
//! path, the hash of its bytes, every file it names, and each root and base path of its own with
//! its inode: a change in any of them revokes the trust. The store is found through the passwd entry, not the environment.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::Context;
use super::error::ConfigError;
use super::file::{self, Links};
use super::load;
use super::loaded::{Loaded, NamedFile};
use super::state_files;
use super::trust_records::{
    StoredBase, StoredFile, StoredPath, StoredRoot, own_base, stored_base, stored_file, stored_roots,
};

pub use super::state_files::state_dir;

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 8 << 20;

/// One trusted config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    files: Vec<StoredFile>,
    roots: Vec<StoredRoot>,
    // Absent in a record without base paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    base: Vec<StoredBase>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    configs: Vec<Entry>,
}

/// A trusted config as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// Where it is.
    pub path: PathBuf,
    /// The hash that was trusted.
    pub sha256: String,
    /// Whether the file is unchanged.
    pub state: TrustState,
}

/// Whether a config is still what was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    /// It is unchanged.
    Same,
    /// It or a file that it names has changed, or cannot be read.
    Changed,
    /// It does not exist.
    Missing,
}

/// The trust store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    content: Content,
}

impl Store {
    /// The store of this user; empty if there is none yet.
    pub fn open(user: &Context) -> Result<Self, ConfigError> {
        let path = store_path(user)?;
        let failed = |why: String| ConfigError::TrustStore {
            path: path.clone(),
            why,
        };
        let content = match state_files::read(&path, MAX_BYTES) {
            Ok(bytes) => serde_json::from_slice::<Content>(&bytes).map_err(|error| failed(error.to_string()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Content {
                version: VERSION,
                configs: Vec::new(),
            },
            Err(error) => return Err(failed(error.to_string())),
        };
        if content.version != VERSION {
            return Err(failed(format!(
                "it is of version {}, this is version {VERSION}",
                content.version
            )));
        }
        Ok(Self { path, content })
    }

    /// The trusted configs, and whether each is still what was trusted.
    pub fn configs(&self) -> impl Iterator<Item = Trusted> {
        let is_same = |file: &StoredFile| {
            let now = file::read(&file.path.to_path(), Links::Refuse);
            now.is_ok_and(|now| stored_file(&now.file) == *file)
        };
        let entries = self.content.configs.iter();
        entries.filter_map(move |entry| {
            let config = entry.files.first()?;
            let path = config.path.to_path();
            Some(Trusted {
                state: if path.symlink_metadata().is_err() {
                    TrustState::Missing
                } else if entry.files.iter().all(is_same) {
                    TrustState::Same
                } else {
                    TrustState::Changed
                },
                path,
                sha256: config.sha256.clone(),
            })
        })
    }

    /// Edits the store on disk, atomically and under a lock, so that no concurrent edit is lost.
    pub fn change<T>(user: &Context, edit: impl FnOnce(&mut Self) -> T) -> Result<T, ConfigError> {
        let path = store_path(user)?;
        let failed = |error: io::Error| ConfigError::TrustStore {
            path: path.clone(),
            why: error.to_string(),
        };
        let _lock = lock(&path).map_err(failed)?;
        let mut store = Self::open(user)?;
        let done = edit(&mut store);
        let bytes = serde_json::to_vec_pretty(&store.content).map_err(|error| failed(error.into()))?;
        state_files::replace(&store.path, &bytes).map_err(failed)?;
        Ok(done)
    }

    /// Trusts a loaded config, and replaces an earlier record of its path.
    fn trust(&mut self, loaded: &Loaded) {
        if let Some(config) = loaded.files.first() {
            self.forget(&config.path);
            self.content.configs.push(Entry {
                files: loaded.files.iter().map(stored_file).collect(),
                roots: stored_roots(loaded),
                base: stored_base(loaded),
            });
        }
    }

    fn forget(&mut self, config: &Path) -> bool {
        let before = self.content.configs.len();
        let key = StoredPath::new(config);
        self.content
            .configs
            .retain(|entry| entry.files.first().is_none_or(|file| file.path != key));
        self.content.configs.len() != before
    }

    /// The record of these bytes at this path, or why there is none.
    fn entry(&self, config: &NamedFile) -> Result<&Entry, String> {
        let key = StoredPath::new(&config.path);
        let of_path = self
            .content
            .configs
            .iter()
            .find(|entry| entry.files.first().is_some_and(|file| file.path == key));
        let entry = of_path.ok_or("nobody has said that it may be used")?;
        let same = entry.files.first().is_some_and(|file| *file == stored_file(config));
        if same {
            Ok(entry)
        } else {
            Err("it has changed since it was trusted".to_owned())
        }
    }
}

/// Loads a config found in the working directory, if it is trusted. Nothing in it is used before its hash
/// is verified.
pub fn load_discovered(path: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    let context = &beside(path, context)?;
    let config = file::read(path, Links::Refuse)?;
    let untrusted = |why| ConfigError::Untrusted {
        path: path.to_owned(),
        why,
    };
    let store = Store::open(context)?;
    let entry = store.entry(&config.file).map_err(untrusted)?;
    let mut loaded = load::build(config, context)?;
    same_reach(entry, &loaded).map_err(untrusted)?;
    let makes = !loaded.missing.is_empty();
    load::create_missing(&mut loaded)?;
    if makes {
        // Record the inodes of the new directories.
        Store::change(context, |store| store.trust(&loaded))?;
    }
    Ok(loaded)
}

/// The config at `path` with its text, for a person to read before [`record`]; no link is followed.
pub fn review(path: &Path, context: &Context) -> Result<(Loaded, Vec<u8>), ConfigError> {
    let context = &beside(path, context)?;
    let config = file::read(path, Links::Refuse)?;
    let text = config.bytes.clone();
    Ok((load::build(config, context)?, text))
}

/// The context in which a found config is used: started in its own directory. So `$CWD` in it is what a person saw when they
/// trusted it, wherever that was done from, and another directory in its place revokes the trust.
fn beside(path: &Path, context: &Context) -> Result<Context, ConfigError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    Ok(context.started_in(&file::canonical(directory)?))
}

/// Trusts what was loaded: the bytes that a person has seen, even if the file has changed since.
pub fn record(loaded: &Loaded, context: &Context) -> Result<(), ConfigError> {
    Store::change(context, |store| store.trust(loaded))
}

/// Withdraws trust from the config at `path`, which need not exist any more; whether there was any.
pub fn forget(path: &Path, context: &Context) -> Result<bool, ConfigError> {
    let absolute = std::path::absolute(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    Store::change(context, |store| store.forget(&absolute))
}

/// Whether a loaded config is trusted as it stands.
pub fn is_trusted(loaded: &Loaded, context: &Context) -> Result<bool, ConfigError> {
    let store = Store::open(context)?;
    let entry = loaded.files.first().and_then(|config| store.entry(config).ok());
    Ok(entry.is_some_and(|entry| same_reach(entry, loaded).is_ok()))
}

/// Verifies that files, roots and base paths are those of the record.
fn same_reach(entry: &Entry, loaded: &Loaded) -> Result<(), String> {
    let files: Vec<StoredFile> = loaded.files.iter().map(stored_file).collect();
    if files != entry.files {
        return Err("a file it names has changed since it was trusted".to_owned());
    }
    for (now, root) in stored_roots(loaded).iter().zip(&loaded.policy.roots) {
        let mut then = entry.roots.iter();
        let then = then.find(|then| then.name == now.name && then.path == now.path);
        let what = match then {
            // A missing root is created again, empty.
            Some(then) if then == now || now.inode.is_none() => continue,
            Some(then) if then.inode.is_none() => "exists now, and was yet to be made when it was trusted:",
            Some(_) => "is another directory than the one that was trusted:",
            None => "leads elsewhere than when it was trusted:",
        };
        return Err(format!("root `{}` {what} {}", root.name, root.path));
    }
    for (now, base) in stored_base(loaded).iter().zip(own_base(loaded)) {
        if !entry.base.contains(now) {
            return Err(format!(
                "base path {} is not what it was when it was trusted",
                base.grant.path
            ));
        }
    }
    Ok(())
}

fn store_path(user: &Context) -> Result<PathBuf, ConfigError> {
    let dir = state_dir(user).ok_or_else(|| ConfigError::TrustStore {
        path: PathBuf::from("trust.json"),
        why: "this user has no passwd entry, so no home to keep it in".to_owned(),
    })?;
    Ok(dir.as_path().join("trust.json"))
}

/// Locks the store for a change, until the file is closed.
fn lock(store: &Path) -> io::Result<File> {
    let dir = store.parent().ok_or(io::ErrorKind::InvalidInput)?;
    state_files::create_directory(dir)?;
    let file = state_files::open_lock(&dir.join("trust.lock"))?;
    file.lock()?;
    Ok(file)
}
