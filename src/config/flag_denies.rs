//! `--deny` and `--net` where there is no config: what they change of a preset, or of what `--rw` and `--ro` grant.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Diagnostic};
use super::loaded::Loaded;
use super::paths::{self, Walked};
use crate::policy::path::display;
use crate::policy::{AbsPath, Deny, Network, Origin, Right, Rights, Root};

/// What flags change of a preset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PresetChanges {
    /// Paths that are denied. One that lies in no root of the preset changes nothing here.
    pub deny: Vec<PathBuf>,
    /// Reach over IP, if it is another.
    pub net: Option<Network>,
}

impl PresetChanges {
    /// Changes the policy of a preset, before any ceiling is applied.
    pub(crate) fn apply(&self, loaded: &mut Loaded, cwd: &AbsPath) -> Result<(), ConfigError> {
        let policy = &mut loaded.policy;
        let mut links = Vec::new();
        for path in &self.deny {
            let argument = format!("--deny {}", display(path));
            let found = find(path, &argument, cwd)?;
            if let Some(root) = policy.roots.iter().find(|root| root.path.is_within(&found.path)) {
                let why = format!("covers all of {}, and a deny always wins", root.path);
                return Err(Diagnostic::error(format!("{argument}: {why}"))
                    .hint("deny something in it; `--ro .` lets nothing be written, and `--ro` or `--rw` of another directory grants that in its place")
                    .into());
            }
            add(&found.path, &argument, &mut policy.roots);
            links.extend(found.links.into_iter().map(|link| (link, argument.clone())));
        }
        refuse_links(&links, &policy.roots)?;
        policy.links.extend(links.into_iter().map(|(link, _)| link));
        if let Some(net) = &self.net {
            policy.network = net.clone();
            let flag = Origin::Flag("--net".into());
            policy.ceilings.lines.set("shell.network", flag);
        }
        Ok(())
    }
}

pub(crate) fn refused(flag: &str, why: impl AsRef<str>) -> ConfigError {
    Diagnostic::error(format!("{flag}: {}", why.as_ref())).into()
}

/// Where the path of a flag leads.
pub(crate) fn walk(path: &Path, argument: &str, cwd: &AbsPath) -> Result<Walked, ConfigError> {
    if path.as_os_str().is_empty() || path.as_os_str().as_bytes().contains(&0) {
        return Err(refused(argument, "not a path"));
    }
    paths::walk(&cwd.as_path().join(path)).map_err(|error| refused(argument, error.to_string()))
}

/// What `--deny` names: a misspelled path would deny nothing without notice.
pub(crate) fn find(path: &Path, argument: &str, cwd: &AbsPath) -> Result<Walked, ConfigError> {
    let walked = walk(path, argument, cwd)?;
    if walked.found.is_some() {
        return Ok(walked);
    }
    Err(Diagnostic::error(format!("{argument}: does not exist"))
        .hint("a flag forbids what is there; in a config, `deny` also holds for what is not")
        .into())
}

/// Adds a deny to the innermost root around it; `false` where there is none.
pub(crate) fn add(path: &AbsPath, argument: &str, roots: &mut [Root]) -> bool {
    let around = roots.iter_mut().filter(|root| path.is_within(&root.path));
    let Some(root) = around.max_by_key(|root| root.path.as_path().components().count()) else {
        return false;
    };
    let deny = Deny::tree(path.clone(), Rights::ALL, Origin::Flag(argument.into()));
    if !root.denies.contains(&deny) {
        root.denies.push(deny);
    }
    true
}

/// Refuses links on the way of a flag's path that an agent could re-point before the next start.
pub(crate) fn refuse_links(links: &[(AbsPath, String)], roots: &[Root]) -> Result<(), ConfigError> {
    let is_writable = |link: &AbsPath| {
        let mut writable = roots.iter().filter(|root| root.rights.has(Right::Write));
        writable.any(|root| link.is_within(&root.path))
    };
    match links.iter().find(|(link, _)| is_writable(link)) {
        None => Ok(()),
        Some((link, argument)) => Err(refused(
            argument,
            format!("the symlink {link} lies inside a writable root, where the agent could re-point it"),
        )),
    }
}

/// Refuses a root that a deny covers.
pub(crate) fn refuse_roots_under_denies(roots: &[Root]) -> Result<(), ConfigError> {
    for deny in roots.iter().flat_map(|root| &root.denies) {
        if let Some(root) = roots.iter().find(|root| deny.target.covers(&root.path)) {
            return Err(refused(
                &root.origin.to_string(),
                format!("lies under {}, and a deny always wins", deny.origin),
            ));
        }
    }
    Ok(())
}
