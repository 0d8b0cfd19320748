//! The policy flags → a policy and its narrowing.

use std::path::{Path, PathBuf};

use super::error::CliError;
use super::flags::{BackendFlag, PolicyFlags};
use super::net;
use crate::config::{self, Context, Diagnostic, FlagPolicy, Loaded, PresetChanges};
use crate::policy::path::display;
use crate::policy::{AbsPath, BackendChoice, Identity, Network, Origin, Policy, Right};
use crate::tools::{self, Narrowing, UserPaths};

/// The preset that is used if nothing else is named.
pub(super) const DEFAULT_PRESET: &str = "workspace-write";

/// What a session runs under.
#[derive(Debug)]
pub(super) struct Chosen {
    /// The policy and its source.
    pub loaded: Loaded,
    /// What the flags take away from it.
    pub narrowing: Narrowing,
}

/// The context of this process, with the named ceilings.
pub(super) fn context(ceilings: &[PathBuf]) -> Context {
    Context {
        ceilings: ceilings.to_owned(),
        ..Context::host()
    }
}

/// Where Stockade keeps its own state.
pub(super) fn places(context: &Context) -> Result<UserPaths, CliError> {
    UserPaths::of_user(context).ok_or_else(|| {
        CliError::failed("this user has no home directory in the passwd database, so there is no place for the journal")
            .remedy("run as a user with a passwd entry")
    })
}

/// What a policy is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Commands run under it: a discovered config must be trusted, and missing roots are created.
    Run,
    /// It is inspected: nothing is created, and nothing may run under it.
    Inspect,
}

/// Turns the flags into a policy: a named config, a named preset, flags alone, a trusted
/// `stockade.yaml` here, or the default preset.
pub(super) fn choose(flags: &PolicyFlags, cwd: &Path, context: &Context, purpose: Purpose) -> Result<Chosen, CliError> {
    let network = net::network(&flags.net)?;
    let unchanged = PresetChanges::default();
    let mut chosen = if let Some(file) = &flags.config {
        let loaded = match purpose {
            Purpose::Run => config::load(file, context),
            Purpose::Inspect => config::examine(file, context),
        };
        let loaded = loaded.map_err(CliError::failed)?;
        Chosen {
            narrowing: narrowing(flags, network, cwd, &loaded.policy)?,
            loaded,
        }
    } else if let Some(preset) = &flags.preset {
        let loaded = tools::preset(preset, cwd, &unchanged, context).map_err(CliError::failed)?;
        Chosen {
            narrowing: narrowing(flags, network, cwd, &loaded.policy)?,
            loaded,
        }
    } else if replaces_config(flags) {
        let policy = FlagPolicy {
            rw: flags.rw.clone(),
            ro: flags.ro.clone(),
            deny: flags.deny.clone(),
            net: network.unwrap_or(Network::Off),
        };
        let loaded = config::from_flags(&policy, cwd, context).map_err(CliError::failed)?;
        Chosen {
            loaded,
            narrowing: Narrowing::default(),
        }
    } else if let Some(found) = config::discover(cwd) {
        let loaded = match purpose {
            Purpose::Run => config::trust::load_discovered(&found, context),
            Purpose::Inspect => config::trust::review(&found, context).map(|(loaded, _)| loaded),
        };
        let loaded = loaded.map_err(CliError::failed)?;
        Chosen {
            narrowing: narrowing(flags, network, cwd, &loaded.policy)?,
            loaded,
        }
    } else {
        let changes = PresetChanges {
            deny: flags.deny.clone(),
            net: network,
        };
        let loaded = tools::preset(DEFAULT_PRESET, cwd, &changes, context).map_err(CliError::failed)?;
        Chosen {
            narrowing: denied_elsewhere(&flags.deny, cwd, &loaded.policy)?,
            loaded,
        }
    };
    apply_flags(flags, &mut chosen.loaded.policy, purpose)?;
    Ok(chosen)
}

/// Whether flags grant access in place of a config. Those that only change a preset narrow a config that is there.
fn replaces_config(flags: &PolicyFlags) -> bool {
    let grants = !flags.rw.is_empty() || !flags.ro.is_empty();
    grants && flags.config.is_none() && flags.preset.is_none()
}

/// The config in `cwd` that flags replace.
pub(super) fn unused_config(flags: &PolicyFlags, cwd: &Path) -> Option<PathBuf> {
    replaces_config(flags).then(|| config::discover(cwd))?
}

/// Applies the flags that override a config to its policy.
pub(super) fn apply_flags(flags: &PolicyFlags, policy: &mut Policy, purpose: Purpose) -> Result<(), CliError> {
    let flag = |name: &str| Origin::Flag(name.into());
    if let Some(fallback) = flags.deny_fallback {
        policy.deny_fallback = fallback.into();
        policy
            .ceilings
            .lines
            .set("sandbox.deny_fallback", flag("--deny-fallback"));
    }
    if purpose == Purpose::Run {
        require_commands(flags.backend)?;
    }
    policy.backend = backend(flags.backend).unwrap_or(policy.backend);
    if let Some((mode, name)) = flags.mode() {
        policy.mode = mode.into();
        policy.ceilings.lines.set("approval.mode", flag(name));
    }
    // A flag cannot exceed a ceiling either.
    policy.cap();
    Ok(())
}

/// Refuses a backend in which no command runs.
pub(super) fn require_commands(backend: BackendFlag) -> Result<(), CliError> {
    match backend {
        BackendFlag::Seatbelt => Err(
            CliError::failed("the backend `seatbelt` is not offered by this version")
                .remedy("`stockade profile check --backend seatbelt` says what it would hold"),
        ),
        BackendFlag::Auto | BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap => Ok(()),
    }
}

/// The backend that the flag names for commands, if it names one.
pub(super) const fn backend(flag: BackendFlag) -> Option<BackendChoice> {
    match flag {
        BackendFlag::Auto | BackendFlag::Seatbelt => None,
        BackendFlag::Landlock => Some(BackendChoice::Landlock),
        BackendFlag::Namespaces => Some(BackendChoice::Namespaces),
        BackendFlag::Bwrap => Some(BackendChoice::Bwrap),
    }
}

/// What the flags take away from a config or a preset that was named or found.
fn narrowing(
    flags: &PolicyFlags,
    network: Option<Network>,
    cwd: &Path,
    policy: &Policy,
) -> Result<Narrowing, CliError> {
    if network == Some(Network::Full) {
        return Err(cannot_widen(flags));
    }
    let writable = flags.rw.iter().map(|path| existing("--rw", path, cwd));
    Ok(Narrowing {
        writable: writable
            .map(|found| found.map(|(path, identity, _)| (path, identity)))
            .collect::<Result<_, _>>()?,
        readable: taken("--ro", &flags.ro, cwd, policy)?,
        denied: taken("--deny", &flags.deny, cwd, policy)?,
        network,
    })
}

fn cannot_widen(flags: &PolicyFlags) -> CliError {
    let (whose, remedy) = match &flags.preset {
        None => ("config", "set `shell: {network: true}` in the config".to_owned()),
        Some(preset) if preset == DEFAULT_PRESET => (
            "preset",
            format!("leave out `--preset {DEFAULT_PRESET}`, which is the default: then `--net on` opens its network"),
        ),
        Some(preset) => (
            "preset",
            format!(
                "write a config with `extends: [{}]` and `shell: {{network: true}}`",
                display(preset)
            ),
        ),
    };
    CliError::failed(format!(
        "`--net on` cannot widen what a {whose} says; flags beside a {whose} only narrow it"
    ))
    .remedy(remedy)
}

/// What `--deny` takes from the system and the toolchains, in no root of the preset.
fn denied_elsewhere(paths: &[PathBuf], cwd: &Path, policy: &Policy) -> Result<Narrowing, CliError> {
    let mut denied = taken("--deny", paths, cwd, policy)?;
    denied.retain(|path| !policy.roots.iter().any(|root| path.is_within(&root.path)));
    Ok(Narrowing {
        denied,
        ..Narrowing::default()
    })
}

/// Where the paths lead from which a flag takes rights. What a command could re-point would be another path at the next start.
fn taken(flag: &str, paths: &[PathBuf], cwd: &Path, policy: &Policy) -> Result<Vec<AbsPath>, CliError> {
    let one = |path: &PathBuf| {
        let (found, _, links) = existing(flag, path, cwd)?;
        let is_writable = |link: &&AbsPath| {
            let mut writable = policy.roots.iter().filter(|root| root.rights.has(Right::Write));
            writable.any(|root| link.is_within(&root.path))
        };
        match links.iter().find(is_writable) {
            None => Ok(found),
            Some(link) => Err(CliError::failed(format!(
                "{flag} {}: the symlink {link} lies inside a writable root, where the agent could re-point it",
                display(path)
            ))
            .remedy(format!("name where it leads: {found}"))),
        }
    };
    paths.iter().map(one).collect()
}

/// Where the path of a flag leads, and by which links.
fn existing(flag: &str, path: &Path, cwd: &Path) -> Result<(AbsPath, Identity, Vec<AbsPath>), CliError> {
    let failed = |why: &dyn std::fmt::Display| CliError::failed(format!("{flag} {}: {why}", display(path)));
    if path.as_os_str().is_empty() {
        return Err(failed(&"not a path"));
    }
    let walked = config::walk(&cwd.join(path)).map_err(|error| failed(&error))?;
    match walked.identity() {
        Some(identity) => Ok((walked.path, identity, walked.links)),
        None => Err(failed(&"does not exist")),
    }
}

/// The most warnings that are printed: a long list in a config may cause tens of thousands.
const MOST_WARNINGS: usize = 50;

/// The first warnings, and how many more there are.
pub(super) fn warnings<'a>(mut all: impl Iterator<Item = &'a Diagnostic>) -> Vec<String> {
    let mut shown: Vec<String> = all.by_ref().take(MOST_WARNINGS).map(ToString::to_string).collect();
    let more = all.count();
    if more > 0 {
        shown.push(format!("stockade: … and {more} more warnings"));
    }
    shown
}
