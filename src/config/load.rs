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
/// It creates the roots with `create: true`. It starts nothing.
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
    changed_preset(name, workspace, None, &PresetChanges::default(), context)
}

/// Loads a built-in preset on its own, with what flags change of it.
///
/// `git` is one more root: the git directory of the workspace, where that lies elsewhere.
pub fn changed_preset(
    name: &str,
    workspace: &Path,
    git: Option<&AbsPath>,
    changes: &PresetChanges,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let workspace = canonical(workspace)?;
    let git = git.map(|git| git_directory(git, &workspace)).transpose()?;
    let loaded = resolve_preset(name, &workspace, &[], git, context)?;
    changed_under_ceilings(loaded, &workspace, changes, context)
}

/// The git directory of a workspace as a root of its own.
pub(crate) fn git_directory(git: &AbsPath, workspace: &AbsPath) -> Result<Layer, ConfigError> {
    let not_text = || Diagnostic::error(format!("{git} cannot be written in a config"));
    let root = git.as_path().to_str().ok_or_else(not_text)?;
    let root = serde_json::to_string(root).map_err(|_| not_text())?;
    let text = format!(
        "sandbox: {{paths: {{git: {{root: {root}, mode: rw, execute: true, approval: {{read: none, write: none}}}}}}}}\n"
    );
    let (source, raw) = yaml::mirror(SourceName::Preset("git-directory".into()), text.as_bytes())?;
    let place = started_at(workspace);
    Ok(Layer { source, raw, place })
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
    build_named(None, file, bytes, context)
}

/// Resolves a config that was read. Nothing is created.
pub(crate) fn build(config: ConfigFile, context: &Context) -> Result<Loaded, ConfigError> {
    build_below(None, config, context)
}

/// The same, with a text above it whose values win.
pub(crate) fn build_below(above: Option<Layer>, config: ConfigFile, context: &Context) -> Result<Loaded, ConfigError> {
    let ConfigFile { file, bytes, .. } = config;
    build_named(above, file, &bytes, context)
}

fn build_named(above: Option<Layer>, file: NamedFile, bytes: &[u8], context: &Context) -> Result<Loaded, ConfigError> {
    let (source, raw) = yaml::mirror(SourceName::File(Arc::new(file.path.clone())), bytes)?;
    if bytes.len() < LONG {
        yaml::refuse_empty_values(&source, bytes)?;
        return build_read(above, file, source, raw, context);
    }
    thread::scope(|scope| {
        let filled = scope.spawn({
            let source = Arc::clone(&source);
            move || yaml::refuse_empty_values(&source, bytes)
        });
        let loaded = build_read(above, file, source, raw, context);
        filled.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        loaded
    })
}

/// Resolves a config that was parsed, and applies the ceilings.
fn build_read(
    above: Option<Layer>,
    file: NamedFile,
    source: Arc<Source>,
    raw: RawConfig,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let default_presets = match &raw.extends {
        Some(_) => Vec::new(),
        None => layers::default_presets().into_iter().map(|entry| entry.value).collect(),
    };
    let raw = extends::with_default(raw);
    let dir = canonical(file.path.parent().unwrap_or(Path::new("/")))?;
    let named = dir.child(file.path.file_name().unwrap_or(OsStr::new("")));
    let target = std::fs::canonicalize(&file.path)
        .ok()
        .and_then(|path| AbsPath::new(path).ok());
    let place = Place {
        base: dir.clone(),
        directory: Some(dir),
    };
    let stacking = Stacking {
        config: Some(Layer { source, raw, place }),
        paths: named.into_iter().chain(target).collect(),
        file: Some(file),
        below: None,
    };
    let loaded = resolve_stack(above, stacking, context)?;
    Ok(Loaded {
        default_presets,
        ..loaded
    })
}

/// A config below a text whose values win.
#[derive(Debug, Default)]
pub(crate) struct Stacking {
    /// The config.
    pub(crate) config: Option<Layer>,
    /// Its file, if it is one.
    pub(crate) file: Option<NamedFile>,
    /// The paths of the file.
    pub(crate) paths: Vec<AbsPath>,
    /// What counts where nothing else says anything.
    pub(crate) below: Option<Layer>,
}

/// Resolves a text above a config, each with all that it extends, and applies the ceilings. Nothing is created.
pub(crate) fn resolve_stack(
    above: Option<Layer>,
    stacking: Stacking,
    context: &Context,
) -> Result<Loaded, ConfigError> {
    let Stacking {
        config,
        file,
        mut paths,
        below,
    } = stacking;
    let config_dir = config.as_ref().and_then(|config| config.place.directory.clone());
    let (mut stack, mut file_links, mut files): (Vec<Layer>, _, Vec<NamedFile>) = (Vec::new(), Vec::new(), Vec::new());
    files.extend(file);
    for Layer { source, raw, place } in above.into_iter().chain(config) {
        let extended = extends::stack((source, raw), place, Role::Config, context)?;
        paths.extend(extended.paths);
        paths.extend(extended.links.iter().map(|link| link.link.clone()));
        files.extend(extended.files);
        file_links.extend(extended.links);
        for layer in extended.layers {
            // What both extend counts once.
            if !stack.iter().any(|known| known.source.name == layer.source.name) {
                stack.push(layer);
            }
        }
    }
    stack.extend(below);
    paths.sort();
    paths.dedup();
    let layers = Layers {
        role: Role::Config,
        stack,
        file_links,
        config_dir,
        config_files: paths,
        writable: Vec::new(),
    };
    let mut loaded = resolve::resolve(&layers, context)?;
    loaded.files.extend(files);
    ceilings::apply(&mut loaded, Some(&layers), context)?;
    Ok(loaded)
}
