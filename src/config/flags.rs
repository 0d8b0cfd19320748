//! `--rw` and `--ro`, with `--deny` and `--net` → a policy on the presets of the system and the toolchains.

use std::path::{Path, PathBuf};

use super::ceilings;
use super::context::Context;
use super::credentials;
use super::error::{ConfigError, Diagnostic};
use super::file::canonical;
use super::flag_denies::{self, refused, walk};
use super::load;
use super::loaded::Loaded;
use super::mounts::MountTable;
use super::own_paths;
use super::path_cache::PathCache;
use super::paths;
use super::state_files::state_dir;
use super::system_paths::{holds, pseudo_file_system};
use crate::policy::path::display;
use crate::policy::{AbsPath, Demand, DemandSource, Network, Origin, ProtectFallback, Rights, Root, Scope, ShellRule};

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
        let argument = format!("--deny {}", display(path));
        let found = flag_denies::find(path, &argument, &cwd)?;
        if !flag_denies::add(&found.path, &argument, &mut roots) {
            return Err(Diagnostic::error(format!("{argument}: lies in no --rw or --ro, so nothing grants it"))
                .hint("name it below one of these, or leave them out: --deny alone stands on `workspace-write`, which grants what you start in")
                .into());
        }
        links.extend(found.links.into_iter().map(|link| (link, argument.clone())));
    }
    flag_denies::refuse_links(&links, &roots)?;
    flag_denies::refuse_roots_under_denies(&roots)?;
    let writable: Vec<AbsPath> = roots
        .iter()
        .filter(|r| r.rights.has(crate::policy::Right::Write))
        .map(|r| r.path.clone())
        .collect();
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
