//! `--rw`, `--ro`, `--deny` and `--net` → a policy on the presets of the system and the toolchains.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::ceilings;
use super::context::Context;
use super::credentials;
use super::error::{ConfigError, Diagnostic};
use super::file::canonical;
use super::load;
use super::loaded::Loaded;
use super::mounts::MountTable;
use super::own_paths;
use super::path_cache::PathCache;
use super::paths;
use super::state_files::state_dir;
use super::system_paths::{holds, pseudo_file_system};
use crate::policy::path::display;
use crate::policy::{
    AbsPath, Demand, DemandSource, Deny, Network, Origin, ProtectFallback, Rights, Root, Scope, ShellRule,
};

/// What the flags say.
#[derive(Debug, Clone)]
pub struct FlagPolicy {
    /// Directories or files that are readable, writable and executable.
    pub rw: Vec<PathBuf>,
    /// Directories or files that are readable and executable.
    pub ro: Vec<PathBuf>,
    /// Paths in them that are denied.
    pub deny: Vec<PathBuf>,
    /// Reach over IP.
    pub net: Network,
}

/// Resolves the flags to a policy; relative paths start at `cwd`. No command needs approval:
/// the flags are the person's approval.
pub fn from_flags(flags: &FlagPolicy, cwd: &Path, context: &Context) -> Result<Loaded, ConfigError> {
    let cwd = canonical(cwd)?;
    let mut roots: Vec<Root> = Vec::new();
    let mut links: Vec<(AbsPath, String)> = Vec::new();
    let named = [
        ("--rw", &flags.rw, Rights::ALL),
        ("--ro", &flags.ro, Rights::READ | Rights::EXECUTE),
    ];
    for (flag, paths, rights) in named {
        for (index, path) in paths.iter().enumerate() {
            let argument = format!("{flag} {}", display(path));
            let name = format!("{}{}", flag.trim_start_matches('-'), index + 1);
            let (root, followed) = root(name, path, rights, &argument, &cwd)?;
            if let Some(first) = roots
                .iter()
                .find(|r| r.path == root.path || r.identity == root.identity)
            {
                return Err(refused(
                    &argument,
                    format!("the same place is given by {}", first.origin),
                ));
            }
            links.extend(followed.into_iter().map(|link| (link, argument.clone())));
            roots.push(root);
        }
    }
    roots.sort_by(|a, b| a.path.cmp(&b.path));
    for path in &flags.deny {
        links.extend(deny(path, &cwd, &mut roots)?);
    }
    let writable: Vec<AbsPath> = roots
        .iter()
        .filter(|r| r.rights.has(crate::policy::Right::Write))
        .map(|r| r.path.clone())
        .collect();
    if let Some((link, argument)) = links
        .iter()
        .find(|(link, _)| writable.iter().any(|root| link.is_within(root)))
    {
        return Err(refused(
            argument,
            format!("the symlink {link} lies inside a writable root, where the agent could re-point it"),
        ));
    }
    under_denies(&roots)?;
    if writable.contains(&AbsPath::root()) {
        return Err(refused("--rw /", "the whole file system cannot be writable"));
    }
    let state = state_dir(context).map(|state| paths::real(&state));
    let mounted = MountTable::read();
    for root in &writable {
        if let Some(why) = mounted.objection(root, state.as_ref()) {
            return Err(refused(&format!("--rw {root}"), why));
        }
        if let Some(kind) = pseudo_file_system(root) {
            let why = format!("on a file system of the kernel's ({kind}), where a write changes the host");
            return Err(refused(&format!("--rw {root}"), why));
        }
    }
    let around = |state: &AbsPath| writable.iter().find(|root| holds(root, state) || holds(state, root));
    if let Some((state, root)) = state.as_ref().and_then(|state| Some((state, around(state)?))) {
        return Err(refused(
            &format!("--rw {root}"),
            format!("would make stockade's own state writable: {state}"),
        ));
    }
    let mut loaded = load::resolve_preset("toolchains", &cwd, &writable, None, context)?;
    let base = &loaded.policy.base;
    let cache = PathCache::default();
    own_paths::deny_all(&mut roots, base, context, &cache, |_| None)?;
    let private = credentials::deny(&mut roots, base, context, &cache, |_| None);
    loaded.warnings.extend(private);
    loaded.policy.roots = roots;
    loaded.policy.links = links.into_iter().map(|(link, _)| link).collect();
    loaded.policy.network = flags.net.clone();
    loaded.policy.protect_fallback = ProtectFallback::Undo;
    loaded.policy.default_rule = ShellRule {
        approval: Demand::None,
        origin: Origin::Flag("command line".into()),
        ..loaded.policy.default_rule
    };
    loaded
        .policy
        .ceilings
        .lines
        .set("shell.network", Origin::Flag("--net".into()));
    ceilings::apply(&mut loaded, None, context)?;
    load::create_missing(&mut loaded)?;
    Ok(loaded)
}

fn refused(flag: &str, why: impl AsRef<str>) -> ConfigError {
    Diagnostic::error(format!("{flag}: {}", why.as_ref())).into()
}

fn root(
    name: String,
    path: &Path,
    rights: Rights,
    argument: &str,
    cwd: &AbsPath,
) -> Result<(Root, Vec<AbsPath>), ConfigError> {
    let walked = walk(path, argument, cwd)?;
    let (Some(found), Some(identity)) = (&walked.found, walked.identity()) else {
        return Err(Diagnostic::error(format!("{argument}: does not exist"))
            .hint("make it first: a flag grants what is there")
            .into());
    };
    let scope = match (found.is_dir(), found.is_file()) {
        (true, _) => Scope::Tree,
        (_, true) => Scope::File,
        (false, false) => return Err(refused(argument, "neither a file nor a directory")),
    };
    let root = Root {
        name,
        path: walked.path,
        identity,
        scope,
        rights,
        suffixes: None,
        max_file_bytes: None,
        read_approval: Demand::None,
        write_approval: Demand::None,
        write_demand_source: DemandSource::Config,
        denies: Vec::new(),
        origin: Origin::Flag(argument.into()),
    };
    Ok((root, walked.links))
}

fn walk(path: &Path, argument: &str, cwd: &AbsPath) -> Result<paths::Walked, ConfigError> {
    if path.as_os_str().is_empty() || path.as_os_str().as_bytes().contains(&0) {
        return Err(refused(argument, "not a path"));
    }
    paths::walk(&cwd.as_path().join(path)).map_err(|error| refused(argument, error.to_string()))
}

/// Adds a deny to the innermost root around it.
fn deny(path: &Path, cwd: &AbsPath, roots: &mut [Root]) -> Result<Vec<(AbsPath, String)>, ConfigError> {
    let argument = format!("--deny {}", display(path));
    let walked = walk(path, &argument, cwd)?;
    // A misspelled path would deny nothing without notice.
    if walked.found.is_none() {
        return Err(Diagnostic::error(format!("{argument}: does not exist"))
            .hint("a flag forbids what is there; in a config, `deny` also holds for what is not")
            .into());
    }
    let around = roots.iter_mut().filter(|root| walked.path.is_within(&root.path));
    let Some(root) = around.max_by_key(|root| root.path.as_path().components().count()) else {
        let error = Diagnostic::error(format!("{argument}: lies in no --rw or --ro, so nothing grants it"));
        return Err(error
            .hint("without --config or --preset, flags stand on the system and the toolchains; beside `--preset workspace-write` or a config they narrow it")
            .into());
    };
    root.denies.push(Deny::tree(
        walked.path,
        Rights::ALL,
        Origin::Flag(argument.as_str().into()),
    ));
    Ok(walked.links.into_iter().map(|link| (link, argument.clone())).collect())
}

fn under_denies(roots: &[Root]) -> Result<(), ConfigError> {
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
