//! Finding and reading a config, and what comes out of it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use sha2::{Digest as _, Sha256};

use super::ceilings;
use super::context::Context;
use super::error::{ConfigError, Diagnostic};
use super::layers::{self, Layer, Layers, Role};
use super::own_places;
use super::paths;
use super::raw::RawConfig;
use super::resolve::{self, Resolved};
use super::source::{Place, Source, SourceName};
use super::tools::CustomTool;
use super::yaml;
use crate::policy::{AbsPath, Identity, Policy};

/// Larger than any config a person writes.
const MAX_BYTES: u64 = 1 << 20;

/// What is worth a thread to read a second time, in bytes.
const LONG: usize = 32 << 10;

/// A file that a config's meaning depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// The hash of the bytes that were read.
    pub sha256: [u8; 32],
}

impl NamedFile {
    /// The hash in hexadecimal, as `sha256sum` prints it.
    pub fn hex(&self) -> String {
        crate::policy::hex::hex(&self.sha256)
    }
}

/// A policy and what it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the config says.
    pub policy: Policy,
    /// Custom tools.
    pub custom_tools: Vec<CustomTool>,
    /// The config, and every file it names. Empty for a preset or flags. Presets are built in.
    pub files: Vec<NamedFile>,
    /// What a reader may not expect.
    pub warnings: Vec<Diagnostic>,
    /// What stands as it was meant, and is worth a word to somebody who looks at the config.
    pub notes: Vec<Diagnostic>,
    /// Roots whose directory is missing and asked for (`create: true`). A config that is loaded to be
    /// obeyed has none: its directories have been made.
    pub missing: Vec<Missing>,
    /// Roots whose directory was made by this load, by name.
    pub made: Vec<String>,
    /// Where it says that a log is kept, if it does.
    pub log: Option<Place>,
}

/// A root whose directory is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The root's name.
    pub name: String,
    /// The line that asks for it.
    pub place: Place,
}

impl Loaded {
    /// Makes what is missing. Whatever has appeared there meanwhile is not what the config was checked with.
    pub(crate) fn make(&mut self) -> Result<(), ConfigError> {
        for missing in std::mem::take(&mut self.missing) {
            let Some(root) = self.policy.roots.iter_mut().find(|root| root.name == missing.name) else {
                continue;
            };
            root.identity = make(&root.path).map_err(|error| {
                Diagnostic::error(format!("failed to make root `{}`: {}: {error}", root.name, root.path))
                    .at(missing.place, "`create: true`")
            })?;
            self.made.push(missing.name);
        }
        own_places::make(&self.policy.roots);
        ceilings::settle(self);
        Ok(())
    }
}

fn make(path: &AbsPath) -> io::Result<Identity> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::create_dir(path)?;
    let made = paths::walk(path.as_path()).map_err(io::Error::other)?;
    match made.identity() {
        Some(identity) if made.links.is_empty() => Ok(identity),
        Some(_) | None => Err(io::Error::other("a symlink has appeared on the way")),
    }
}

/// What to do when the config itself is a symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// A person named the file: follow.
    Follow,
    /// It was found lying there: refuse.
    Refuse,
}

/// The bytes of a config, read once, with their hash.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) file: NamedFile,
    pub(crate) bytes: Vec<u8>,
    pub(crate) identity: Identity,
}

/// The config a person named. Naming it is trusting it.
pub fn load(path: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    let mut loaded = examine(path, context)?;
    loaded.make()?;
    Ok(loaded)
}

/// The config a person named, to be looked at: nothing is made, and nothing may run under it.
pub fn examine(path: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    build(read(path, Links::Follow)?, context)
}

/// A built-in preset on its own; where it says `.` it means `workspace`.
pub fn preset(name: &str, workspace: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    let loaded = preset_below(name, &canonical(workspace)?, &[], context)?;
    alone(loaded, context)
}

/// The same with the git directory of the workspace as one more root, which lies elsewhere.
pub fn preset_with_git(name: &str, workspace: &Path, git: &AbsPath, context: &Context) -> Result<Loaded, ConfigError> {
    let unfit = || Diagnostic::error(format!("{git} cannot be written in a config"));
    let root = git.as_path().to_str().ok_or_else(unfit)?;
    let root = serde_json::to_string(root).map_err(|_| unfit())?;
    let text = format!(
        "sandbox: {{paths: {{git: {{root: {root}, mode: rw, execute: true, approval: {{read: none, write: none}}}}}}}}\n"
    );
    let (source, raw) = yaml::mirror(SourceName::Preset("git-directory".into()), text.as_bytes())?;
    let more = Layer { source, raw };
    let loaded = preset_stacked(name, &canonical(workspace)?, (&[], Some(more)), context)?;
    alone(loaded, context)
}

fn alone(mut loaded: Loaded, context: &Context) -> Result<Loaded, ConfigError> {
    ceilings::hold(&mut loaded, None, context)?;
    loaded.make()?;
    Ok(loaded)
}

/// [`preset`], with writable roots that are added afterwards; nothing is made, and no ceiling holds yet.
pub(crate) fn preset_below(
    name: &str,
    base: &AbsPath,
    writable: &[AbsPath],
    context: &Context,
) -> Result<Loaded, ConfigError> {
    preset_stacked(name, base, (writable, None), context)
}

fn preset_stacked(
    name: &str,
    base: &AbsPath,
    (writable, more): (&[AbsPath], Option<Layer>),
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let (source, raw) = layers::preset(&Arc::from(name), context, |unplaced| unplaced)?;
    let mut stack = layers::stack(source, raw, context)?;
    stack.extend(more);
    let layers = Layers {
        role: Role::Config,
        stack,
        base: base.clone(),
        config_dir: None,
        config_files: Vec::new(),
        writable: writable.to_owned(),
    };
    Ok(loaded(resolve::resolve(&layers, context)?, Vec::new()))
}

/// `stockade.yaml` in `cwd`, and nowhere else.
pub fn discover(cwd: &Path) -> Option<PathBuf> {
    let path = cwd.join("stockade.yaml");
    // Anything of that name is the config; what cannot be used is an error later, not a fallback.
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Ok(_) | Err(_) => Some(path),
    }
}

/// Reads a config once.
pub(crate) fn read(path: &Path, links: Links) -> Result<ConfigFile, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let file = open(path, links).map_err(|source| match (links, source.raw_os_error()) {
        (Links::Refuse, Some(libc::ELOOP)) => ConfigError::Link(path.to_owned()),
        (Links::Refuse | Links::Follow, _) => failed(source),
    })?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(ConfigError::NotAFile(path.to_owned()));
    }
    let identity = paths::identity(&found);
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MAX_BYTES) {
        return Err(ConfigError::TooLarge(path.to_owned()));
    }
    let sha256 = Sha256::digest(&bytes).into();
    let path = std::path::absolute(path).map_err(failed)?;
    Ok(ConfigFile {
        file: NamedFile { path, sha256 },
        bytes,
        identity,
    })
}

fn open(path: &Path, links: Links) -> io::Result<File> {
    // A FIFO must not hang the start, a terminal must not become ours.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let flags = match links {
        Links::Follow => flags,
        Links::Refuse => flags | libc::O_NOFOLLOW,
    };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The policy that these bytes come to as the config at `path`, whatever lies there.
pub(crate) fn build_text(path: &Path, bytes: &[u8], context: &Context) -> Result<Loaded, ConfigError> {
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MAX_BYTES) {
        return Err(ConfigError::TooLarge(path.to_owned()));
    }
    let file = NamedFile {
        path: path.to_owned(),
        sha256: Sha256::digest(bytes).into(),
    };
    build_named(file, bytes, context)
}

/// The policy of a config that was read; nothing is made.
pub(crate) fn build(config: ConfigFile, context: &Context) -> Result<Loaded, ConfigError> {
    let ConfigFile { file, bytes, .. } = config;
    build_named(file, &bytes, context)
}

fn build_named(file: NamedFile, bytes: &[u8], context: &Context) -> Result<Loaded, ConfigError> {
    let (source, raw) = yaml::mirror(SourceName::File(Arc::new(file.path.clone())), bytes)?;
    if bytes.len() < LONG {
        yaml::filled(&source, bytes)?;
        return build_read(file, source, raw, context);
    }
    thread::scope(|scope| {
        let filled = scope.spawn({
            let source = Arc::clone(&source);
            move || yaml::filled(&source, bytes)
        });
        let loaded = build_read(file, source, raw, context);
        filled.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        loaded
    })
}

/// The policy of a config that was parsed.
fn build_read(file: NamedFile, source: Arc<Source>, raw: RawConfig, context: &Context) -> Result<Loaded, ConfigError> {
    let dir = canonical(file.path.parent().unwrap_or(Path::new("/")))?;
    let named = dir.child(file.path.file_name().unwrap_or(OsStr::new("")));
    let target = std::fs::canonicalize(&file.path)
        .ok()
        .and_then(|path| AbsPath::new(path).ok());
    let mut config_files: Vec<AbsPath> = named.into_iter().chain(target).collect();
    config_files.sort();
    config_files.dedup();
    let layers = Layers {
        role: Role::Config,
        stack: layers::stack(source, raw, context)?,
        base: dir.clone(),
        config_dir: Some(dir),
        config_files,
        writable: Vec::new(),
    };
    let mut loaded = loaded(resolve::resolve(&layers, context)?, vec![file]);
    ceilings::hold(&mut loaded, Some(&layers), context)?;
    Ok(loaded)
}

/// A directory that must exist, without links.
pub(crate) fn canonical(path: &Path) -> Result<AbsPath, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let real = std::fs::canonicalize(path).map_err(failed)?;
    AbsPath::new(real).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))
}

fn loaded(resolved: Resolved, files: Vec<NamedFile>) -> Loaded {
    Loaded {
        policy: resolved.policy,
        custom_tools: resolved.custom_tools,
        files,
        warnings: resolved.warnings,
        notes: resolved.notes,
        missing: resolved.missing,
        made: Vec::new(),
        log: resolved.log,
    }
}
