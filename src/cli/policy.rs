//! The policy flags → a policy and its narrowing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::flags::{BackendFlag, PolicyFlags};
use super::net;
use crate::config::{self, Context, Diagnostic, FlagPolicy, Loaded, Matchers};
use crate::policy::path::display;
use crate::policy::shell::{rule_covers, rule_matches};
use crate::policy::{AbsPath, BackendChoice, Identity, Network, Origin, Policy};
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
    let matchers = Matchers {
        matches: rule_matches,
        covers: rule_covers,
    };
    Context {
        ceilings: ceilings.to_owned(),
        ..Context::host(matchers)
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
    let mut chosen = if let Some(file) = &flags.config {
        let loaded = match purpose {
            Purpose::Run => config::load(file, context),
            Purpose::Inspect => config::examine(file, context),
        };
        let loaded = loaded.map_err(CliError::failed)?;
        Chosen {
            loaded,
            narrowing: narrowing(flags, network, cwd)?,
        }
    } else if let Some(preset) = &flags.preset {
        let loaded = tools::preset(preset, cwd, context).map_err(CliError::failed)?;
        Chosen {
            loaded,
            narrowing: narrowing(flags, network, cwd)?,
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
            loaded,
            narrowing: narrowing(flags, network, cwd)?,
        }
    } else {
        Chosen {
            loaded: tools::preset(DEFAULT_PRESET, cwd, context).map_err(CliError::failed)?,
            narrowing: Narrowing::default(),
        }
    };
    apply_flags(flags, &mut chosen.loaded.policy, purpose)?;
    Ok(chosen)
}

/// Whether flags grant access in place of a config.
fn replaces_config(flags: &PolicyFlags) -> bool {
    let has_any = [&flags.rw, &flags.ro, &flags.deny]
        .into_iter()
        .any(|paths| !paths.is_empty())
        || !flags.net.is_empty();
    has_any && flags.config.is_none() && flags.preset.is_none()
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
    if (flags.backend, purpose) == (BackendFlag::Seatbelt, Purpose::Run) {
        return Err(
            CliError::failed("the backend `seatbelt` is not offered by this version")
                .remedy("`stockade profile check --backend seatbelt` says what it would hold"),
        );
    }
    policy.backend = backend(flags).unwrap_or(policy.backend);
    if let Some((mode, name)) = flags.mode() {
        policy.mode = mode.into();
        policy.ceilings.lines.set("approval.mode", flag(name));
    }
    // A flag cannot exceed a ceiling either.
    policy.cap();
    Ok(())
}

/// The backend that the flags name for commands, if they name one.
pub(super) const fn backend(flags: &PolicyFlags) -> Option<BackendChoice> {
    match flags.backend {
        BackendFlag::Auto | BackendFlag::Seatbelt => None,
        BackendFlag::Landlock => Some(BackendChoice::Landlock),
        BackendFlag::Namespaces => Some(BackendChoice::Namespaces),
        BackendFlag::Bwrap => Some(BackendChoice::Bwrap),
    }
}

fn narrowing(flags: &PolicyFlags, network: Option<Network>, cwd: &Path) -> Result<Narrowing, CliError> {
    let resolve = |flag: &str, path: &PathBuf| -> Result<(AbsPath, Identity), CliError> {
        let missing = |error: &dyn std::fmt::Display| CliError::failed(format!("{flag} {}: {error}", display(path)));
        let canonical = std::fs::canonicalize(cwd.join(path)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => missing(&"does not exist"),
            _ => missing(&error),
        })?;
        let meta = std::fs::symlink_metadata(&canonical).map_err(|error| missing(&error))?;
        let identity = Identity {
            device: meta.dev(),
            inode: meta.ino(),
        };
        Ok((AbsPath::new(canonical).map_err(|error| missing(&error))?, identity))
    };
    let paths = |flag: &'static str, list: &[PathBuf]| {
        list.iter()
            .map(|path| resolve(flag, path).map(|(path, _)| path))
            .collect::<Result<Vec<_>, _>>()
    };
    if network == Some(Network::Full) {
        return Err(CliError::failed(
            "`--net on` cannot widen what a config says; flags beside a config only narrow it",
        )
        .remedy("set `shell: {network: true}` in the config"));
    }
    Ok(Narrowing {
        writable: flags
            .rw
            .iter()
            .map(|path| resolve("--rw", path))
            .collect::<Result<_, _>>()?,
        readable: paths("--ro", &flags.ro)?,
        denied: paths("--deny", &flags.deny)?,
        network,
    })
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
