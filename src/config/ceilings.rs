//! Ceilings: files that bound what a config may grant.
//!
//! A ceiling is written and resolved like a config. Those of the machine and the user apply to every
//! start; a config may name one (`sandbox.os_profile`), and so may a person (`--ceiling`). A ceiling that cannot
//! be read, parsed or trusted refuses the start.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::Context;
use super::error::{ConfigError, Diagnostic};
use super::extends;
use super::file::{self, ConfigFile, Links};
use super::finish_draft::ABSENT;
use super::layers::{Layer, Layers, Place, Role, sandbox};
use super::loaded::Loaded;
use super::owner_check::OwnerCheck;
use super::paths::{self, Variables, Walked};
use super::resolve;
use super::scalar::At;
use super::source::SourceName;
use super::system_paths::holds;
use super::yaml;
use crate::policy::{AbsPath, Access, Ceiling, Cut, Lost, Operation, Protect, Right, Rights, Root};

/// The file of a ceiling, and every path by which it was found.
struct CeilingFile {
    config: ConfigFile,
    file_paths: Vec<AbsPath>,
    /// The directory of the project, in which no link is followed: whoever writes the project could re-point it.
    project: Option<AbsPath>,
}

/// The default paths of ceilings: of the machine, of the user by passwd home, and by the environment. A variable can
/// add a ceiling, and never remove one.
pub fn paths(context: &Context) -> Vec<PathBuf> {
    let of_home = context.home.as_ref().map(|home| home.as_path().join(".config"));
    let of_variable = context
        .path_variable("XDG_CONFIG_HOME")
        .map(|dir| dir.as_path().to_owned());
    let users = [of_home, of_variable]
        .into_iter()
        .flatten()
        .map(|dir| dir.join("stockade/ceiling.yaml"));
    let mut all: Vec<PathBuf> = std::iter::once(context.system_ceiling.path.clone())
        .chain(users)
        .collect();
    all.dedup();
    all
}

/// Applies every ceiling to the policy. `layers` are those of a config file.
pub(crate) fn apply(loaded: &mut Loaded, layers: Option<&Layers>, context: &Context) -> Result<(), ConfigError> {
    let roots = loaded.policy.roots.iter().filter(|root| root.rights.has(Right::Write));
    let writable: Vec<AbsPath> = roots.map(|root| root.path.clone()).collect();
    let mut found = Vec::new();
    if let Some((layer, text)) = layers.and_then(|layers| sandbox(layers, |s| &s.os_profile)) {
        let profile = of_config(layers, layer, text, &writable, context)?;
        loaded.files.push(profile.config.file.clone());
        found.push(profile);
    }
    for path in &context.ceilings {
        found.push(named(path, &writable)?);
    }
    for path in paths(context) {
        found.extend(default_ceiling(&path, &writable, context)?);
    }
    if found.is_empty() {
        return Ok(());
    }
    let mut file_paths = Vec::new();
    for one in found {
        file_paths.extend(one.file_paths.iter().cloned());
        let ceiling = resolved(one, &writable, context, &mut loaded.warnings)?;
        if !loaded.policy.ceilings.all.contains(&ceiling) {
            loaded.policy.ceilings.all.push(ceiling);
        }
    }
    loaded.policy.cap();
    drop_missing_roots(loaded);
    protect(loaded, layers, file_paths, &writable)
}

/// Resolves roots of ceilings again that were missing. One that this load has not created grants nothing.
pub(crate) fn resolve_missing_roots(loaded: &mut Loaded) {
    let made = !loaded.made.is_empty();
    for ceiling in &mut loaded.policy.ceilings.all {
        for root in ceiling.policy.roots.iter_mut().filter(|root| root.identity == ABSENT) {
            let now = paths::walk(root.path.as_path()).ok();
            let now = now.filter(|walked| made && walked.links.is_empty() && walked.path == root.path);
            match now.and_then(|walked| walked.identity()) {
                Some(identity) => root.identity = identity,
                None => root.rights = Rights::NONE,
            }
        }
    }
}

/// The file that `sandbox.os_profile` names.
fn of_config(
    layers: Option<&Layers>,
    layer: &Layer,
    text: &At<String>,
    writable: &[AbsPath],
    context: &Context,
) -> Result<CeilingFile, ConfigError> {
    let wrong = |why: String, label: &str| {
        Diagnostic::error(format!("os_profile `{}`: {why}", text.value)).at(layer.source.span(text.at), label)
    };
    let project = layers.and_then(|layers| layers.config_dir.clone());
    let expanded = paths::expand(&text.value, &layer.place.base, Variables::Refuse, context)
        .map_err(|error| wrong(error.to_string(), "leads nowhere"))?
        .unwrap_or_default();
    let walked = paths::walk(&expanded).map_err(|error| wrong(error.to_string(), "leads nowhere"))?;
    let beside = |link: &&AbsPath| layers.is_some_and(|layers| layers.lies_beside(layer, link));
    let link = walked.links.iter().find(beside);
    if let Some(link) = link.or_else(|| walked.links.iter().find(|link| lies_in(link, writable))) {
        return Err(wrong(
            format!("goes through the symlink {link}"),
            "leads where the link says today",
        )
        .hint("the link could be re-pointed by whoever writes the project, or by the agent: write the path it leads to")
        .into());
    }
    let config = file::read(walked.path.as_path(), Links::Refuse)
        .map_err(|error| wrong(error.to_string(), "a ceiling that cannot be read refuses the start"))?;
    Ok(CeilingFile {
        config,
        file_paths: vec![walked.path],
        project,
    })
}

/// A file that a person named.
fn named(path: &Path, writable: &[AbsPath]) -> Result<CeilingFile, ConfigError> {
    let wrong = |why: String| ConfigError::Ceiling {
        path: path.to_owned(),
        why,
    };
    let absolute = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
    let walked = paths::walk(&absolute).map_err(|error| wrong(error.to_string()))?;
    let config = read(&walked, writable).map_err(wrong)?;
    let file_paths = walked.links.into_iter().chain([walked.path]).collect();
    Ok(CeilingFile {
        config,
        file_paths,
        project: None,
    })
}

/// The file at a default path, if it exists; an error if others could have written it.
fn default_ceiling(path: &Path, writable: &[AbsPath], context: &Context) -> Result<Option<CeilingFile>, ConfigError> {
    let wrong = |why: String| ConfigError::Ceiling {
        path: path.to_owned(),
        why,
    };
    match std::fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(wrong(format!("it cannot be told whether it exists: {error}"))),
    }
    let at = AbsPath::new(path).map_err(|error| wrong(error.to_string()))?;
    let walked = paths::walk(path).map_err(|error| wrong(error.to_string()))?;
    let owner = context.system_ceiling.owner;
    let guards = if path == context.system_ceiling.path {
        OwnerCheck {
            owners: vec![0, owner],
            from: AbsPath::root(),
        }
    } else {
        let home = context.home.clone().filter(|home| at.is_within(home));
        OwnerCheck {
            owners: vec![0, nix::unistd::Uid::effective().as_raw()],
            from: home.unwrap_or_else(AbsPath::root),
        }
    };
    if let Some(why) = guards.objection(&at, &walked) {
        return Err(wrong(why));
    }
    let config = read(&walked, writable).map_err(wrong)?;
    if walked.identity() != Some(config.identity) {
        return Err(wrong("it was replaced while it was looked at".to_owned()));
    }
    let file_paths = walked.links.into_iter().chain([at, walked.path]).collect();
    Ok(Some(CeilingFile {
        config,
        file_paths,
        project: None,
    }))
}

/// Reads the file that a path leads to, unless the agent could re-point a link on the way.
fn read(walked: &Walked, writable: &[AbsPath]) -> Result<ConfigFile, String> {
    if let Some(link) = walked.links.iter().find(|link| lies_in(link, writable)) {
        return Err(format!(
            "the symlink {link} lies inside a writable root, where the agent could re-point it"
        ));
    }
    file::read(walked.path.as_path(), Links::Refuse).map_err(|error| error.to_string())
}

fn lies_in(path: &AbsPath, writable: &[AbsPath]) -> bool {
    writable.iter().any(|root| holds(root, path))
}

/// Resolves a ceiling to a policy.
fn resolved(
    found: CeilingFile,
    writable: &[AbsPath],
    context: &Context,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Ceiling, ConfigError> {
    let file = Arc::new(found.config.file.path);
    let (source, raw) = yaml::parse(SourceName::File(Arc::clone(&file)), &found.config.bytes)?;
    let place = Place {
        base: file::canonical(file.parent().unwrap_or(Path::new("/")))?,
        directory: None,
    };
    let layers = Layers {
        role: Role::Ceiling,
        stack: extends::stack((source, raw), place, Role::Ceiling, context)?.layers,
        file_links: Vec::new(),
        config_dir: found.project,
        config_files: Vec::new(),
        writable: writable.to_owned(),
    };
    let resolved = resolve::resolve(&layers, context)?;
    // Warnings of presets are about a config, or have been reported for it.
    let own = |warning: &Diagnostic| warning.mark.as_ref().is_some_and(|mark| !mark.span.source.is_preset());
    warnings.extend(resolved.warnings.into_iter().filter(own));
    Ok(Ceiling {
        file,
        policy: resolved.policy,
    })
}

/// Drops missing roots that a ceiling does not grant: to create them would be a write beyond the ceiling.
fn drop_missing_roots(loaded: &mut Loaded) {
    let mut cuts = Vec::new();
    let missing_roots = std::mem::take(&mut loaded.missing);
    for missing in missing_roots {
        let policy = &loaded.policy;
        let root = policy.roots.iter().find(|root| root.name == missing.name);
        let closed = root.and_then(|root| {
            let mut ceilings = policy.ceilings.all.iter();
            ceilings
                .find(|ceiling| !grants(ceiling, root))
                .map(|ceiling| (root, ceiling))
        });
        let Some((root, ceiling)) = closed else {
            loaded.missing.push(missing);
            continue;
        };
        cuts.push(Cut {
            origin: root.origin.clone(),
            ceiling: Arc::clone(&ceiling.file),
            clause: ceiling.policy.root_for(&root.path).map(|over| over.origin.clone()),
            what: Lost::Files {
                rights: root.rights,
                path: root.path.clone(),
                witness: root.path.clone(),
            },
        });
        loaded.policy.roots.retain(|root| root.name != missing.name);
    }
    loaded.policy.ceilings.cuts.extend(cuts);
}

fn grants(ceiling: &Ceiling, root: &Root) -> bool {
    let requested = root.rights.and(Rights::READ | Rights::WRITE);
    let speaks = |over: &Root| over.rights.contains(requested);
    ceiling.policy.root_for(&root.path).is_some_and(speaks)
        && ceiling.policy.access(Operation::List, &root.path) != Access::Denied
}

/// Protects ceilings inside writable roots, as the config is: the next start must find them unchanged.
fn protect(
    loaded: &mut Loaded,
    layers: Option<&Layers>,
    mut file_paths: Vec<AbsPath>,
    writable: &[AbsPath],
) -> Result<(), ConfigError> {
    file_paths.retain(|path| lies_in(path, writable));
    match &mut loaded.policy.protect {
        Protect::Default(files) | Protect::Prevent(files) => {
            files.extend(file_paths);
            files.extend(layers.iter().flat_map(|layers| layers.config_files.iter().cloned()));
            files.sort();
            files.dedup();
            Ok(())
        }
        Protect::None => match file_paths.pop() {
            None => Ok(()),
            Some(path) => Err(ConfigError::Ceiling {
                path: path.as_path().to_owned(),
                why: "it lies inside a writable root, and `protect: none` would leave it to the agent".to_owned(),
            }),
        },
    }
}
