//! Loading a config: its file → its layers → its policy, under every ceiling.

use std::ffi::OsStr;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use super::ceilings;
use super::context::Context;
use super::error::{ConfigError, Diagnostic};
use super::extends;
use super::file::{self, ConfigFile, Links, canonical};
use super::flag_denies::PresetChanges;
use super::layers::{self, Layer, Layers, Place, Role};
use super::loaded::{Loaded, NamedFile};
use super::own_paths;
use super::paths;
use super::raw::RawConfig;
use super::resolve;
use super::source::{Source, SourceName};
use super::yaml;
use crate::policy::{AbsPath, Identity};

/// The size, in bytes, from which empty values are searched in a second thread.
const LONG: usize = 32 << 10;

/// Creates missing roots. One that exists by now is an error: the config was checked without it.
pub(crate) fn create_missing(loaded: &mut Loaded) -> Result<(), ConfigError> {
    for missing in std::mem::take(&mut loaded.missing) {
        let Some(root) = loaded.policy.roots.iter_mut().find(|root| root.name == missing.name) else {
            continue;
        };
        root.identity = create_root(&root.path).map_err(|error| {
            Diagnostic::error(format!("failed to make root `{}`: {}: {error}", root.name, root.path))
                .at(missing.place, "`create: true`")
        })?;
        loaded.made.push(missing.name);
    }
    own_paths::create_missing(&loaded.policy.roots);
    ceilings::resolve_missing_roots(loaded);
    Ok(())
}

fn create_root(path: &AbsPath) -> io::Result<Identity> {
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

/// Loads a config that the caller trusts, with its presets and under every ceiling.
///
/// Use it where [`Session::with_config`](crate::Session::with_config) is not enough: to change the policy, to print warnings,
/// to add flags. It creates the roots with `create: true`. It starts nothing. The example of [`Loaded`] uses it.
///
/// # Errors
/// A file cannot be read, the config is wrong, a ceiling cannot be held to, or a root cannot be created.
pub fn load(path: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    let mut loaded = examine(path, context)?;
    create_missing(&mut loaded)?;
    Ok(loaded)
}

/// Loads a config that a person named, to examine it: nothing is created, and nothing may run under it.
pub fn examine(path: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    build(file::read(path, Links::Follow)?, context)
}

/// Loads a built-in preset on its own; `.` in it is `workspace`.
pub fn preset(name: &str, workspace: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    changed_preset(name, workspace, &PresetChanges::default(), context)
}

/// Loads a built-in preset on its own, with what flags change of it.
pub fn changed_preset(
    name: &str,
    workspace: &Path,
    changes: &PresetChanges,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let workspace = canonical(workspace)?;
    let loaded = resolve_preset(name, &workspace, &[], None, context)?;
    changed_under_ceilings(loaded, &workspace, changes, context)
}

/// Loads a preset with one more root: the git directory of the workspace, which lies elsewhere.
pub fn preset_with_git(
    name: &str,
    workspace: &Path,
    git: &AbsPath,
    changes: &PresetChanges,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let not_text = || Diagnostic::error(format!("{git} cannot be written in a config"));
    let root = git.as_path().to_str().ok_or_else(not_text)?;
    let root = serde_json::to_string(root).map_err(|_| not_text())?;
    let text = format!(
        "sandbox: {{paths: {{git: {{root: {root}, mode: rw, execute: true, approval: {{read: none, write: none}}}}}}}}\n"
    );
    let (source, raw) = yaml::mirror(SourceName::Preset("git-directory".into()), text.as_bytes())?;
    let workspace = canonical(workspace)?;
    let place = started_at(&workspace);
    let extra = Layer { source, raw, place };
    let loaded = resolve_preset(name, &workspace, &[], Some(extra), context)?;
    changed_under_ceilings(loaded, &workspace, changes, context)
}

/// Where the relative paths of a preset on its own start.
fn started_at(workspace: &AbsPath) -> Place {
    Place {
        base: workspace.clone(),
        directory: None,
    }
}

fn changed_under_ceilings(
    mut loaded: Loaded,
    workspace: &AbsPath,
    changes: &PresetChanges,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    changes.apply(&mut loaded, workspace)?;
    ceilings::apply(&mut loaded, None, context)?;
    create_missing(&mut loaded)?;
    Ok(loaded)
}

/// Resolves a preset together with writable roots that the caller adds later. Nothing is created, and no ceiling is applied.
pub(crate) fn resolve_preset(
    name: &str,
    base: &AbsPath,
    writable: &[AbsPath],
    extra: Option<Layer>,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let context = &context.started_in(base);
    let (source, raw) = layers::preset(&Arc::from(name), context, |unplaced| unplaced)?;
    let mut stack = extends::stack((source, raw), started_at(base), Role::Config, context)?.layers;
    stack.extend(extra);
    let layers = Layers {
        role: Role::Config,
        stack,
        file_links: Vec::new(),
        config_dir: None,
        config_files: Vec::new(),
        writable: writable.to_owned(),
    };
    Ok(resolve::resolve(&layers, context)?)
}

/// `stockade.yaml` in `cwd`, and nowhere else.
pub fn discover(cwd: &Path) -> Option<PathBuf> {
    let path = cwd.join("stockade.yaml");
    // A file that cannot be used is an error later, not a fallback.
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Ok(_) | Err(_) => Some(path),
    }
}

/// Resolves these bytes as the config at `path`, whatever the file contains.
pub(crate) fn build_text(path: &Path, bytes: &[u8], context: &Context) -> Result<Loaded, ConfigError> {
    let file = NamedFile {
        path: path.to_owned(),
        sha256: file::hash(path, bytes)?,
    };
    build_named(file, bytes, context)
}

/// Resolves a config that was read. Nothing is created.
pub(crate) fn build(config: ConfigFile, context: &Context) -> Result<Loaded, ConfigError> {
    let ConfigFile { file, bytes, .. } = config;
    build_named(file, &bytes, context)
}

fn build_named(file: NamedFile, bytes: &[u8], context: &Context) -> Result<Loaded, ConfigError> {
    let (source, raw) = yaml::mirror(SourceName::File(Arc::new(file.path.clone())), bytes)?;
    if bytes.len() < LONG {
        yaml::refuse_empty_values(&source, bytes)?;
        return build_read(file, source, raw, context);
    }
    thread::scope(|scope| {
        let filled = scope.spawn({
            let source = Arc::clone(&source);
            move || yaml::refuse_empty_values(&source, bytes)
        });
        let loaded = build_read(file, source, raw, context);
        filled.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        loaded
    })
}

/// Resolves a config that was parsed, and applies the ceilings.
fn build_read(file: NamedFile, source: Arc<Source>, raw: RawConfig, context: &Context) -> Result<Loaded, ConfigError> {
    let raw = extends::with_default(raw);
    let dir = canonical(file.path.parent().unwrap_or(Path::new("/")))?;
    let named = dir.child(file.path.file_name().unwrap_or(OsStr::new("")));
    let target = std::fs::canonicalize(&file.path)
        .ok()
        .and_then(|path| AbsPath::new(path).ok());
    let place = Place {
        base: dir.clone(),
        directory: Some(dir.clone()),
    };
    let extended = extends::stack((source, raw), place, Role::Config, context)?;
    let links = extended.links.iter().map(|link| link.link.clone());
    let extended_files = extended.paths.into_iter().chain(links);
    let mut config_files: Vec<AbsPath> = named.into_iter().chain(target).chain(extended_files).collect();
    config_files.sort();
    config_files.dedup();
    let layers = Layers {
        role: Role::Config,
        stack: extended.layers,
        file_links: extended.links,
        config_dir: Some(dir),
        config_files,
        writable: Vec::new(),
    };
    let mut loaded = resolve::resolve(&layers, context)?;
    loaded.files.push(file);
    loaded.files.extend(extended.files);
    ceilings::apply(&mut loaded, Some(&layers), context)?;
    Ok(loaded)
}
