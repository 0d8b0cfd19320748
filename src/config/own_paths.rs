//! Stockade's own paths: state, journal, audit log, configs, and the tokens of approval sockets and of MCP over HTTP.
//!
//! No config grants them: a command that reads another session's token could approve requests as the person.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use nix::unistd::geteuid;

use super::context::Context;
use super::error::Diagnostic;
use super::path_cache::PathCache;
use super::socket_dirs::registered;
use super::source::Span;
use super::state_files::state_dir;
use crate::policy::private_names::{OF_STOCKADE, ORIGIN_OF_STOCKADE};
use crate::policy::{AbsPath, BasePath, Deny, Origin, Rights, Root, Scope, Target};

/// Denies them in the roots that contain them; an error if a root lies in one, or a base path grants one.
pub(crate) fn deny_all(
    roots: &mut [Root],
    base: &[BasePath],
    context: &Context,
    cache: &PathCache,
    span_of: impl Fn(&Origin) -> Option<Span>,
) -> Result<(), Box<Diagnostic>> {
    let wrong = |message: String, origin: &Origin| {
        let error = Diagnostic::error(message);
        match span_of(origin) {
            Some(span) => error.at(span, "could answer for a person"),
            None => error,
        }
    };
    for own in own_paths(context, cache)? {
        let named = roots.iter().map(|root| (&root.path, &root.origin));
        let all = named.chain(base.iter().map(|base| (&base.grant.path, &base.grant.origin)));
        if let Some((path, origin)) = all.into_iter().find(|(path, _)| cache.holds(&own, path)) {
            let message = format!("{path} lies in {own}, which belongs to Stockade: no command may have it");
            return Err(
                wrong(message, origin).hint("leave it out: `stockade audit` and `stockade approvals` show it to you")
            );
        }
        let around = roots.iter_mut().filter(|root| root.scope != Scope::File);
        let around = around.filter_map(|root| Some((below(&root.path, &own, cache)?, root)));
        let mut denied = false;
        for (path, root) in around {
            denied |= path == own;
            root.denies.push(Deny::tree(path, Rights::ALL, ORIGIN_OF_STOCKADE));
            root.denies.sort();
            root.denies.dedup();
        }
        // A deny of a root applies to base paths too. `/` is refused elsewhere.
        let granted = base.iter().find(|base| {
            let path = &base.grant.path;
            base.grant.scope != Scope::File
                && *path != AbsPath::root()
                && below(path, &own, cache).is_some_and(|path| !denied || path != own)
        });
        if let Some(granted) = granted {
            let message = format!(
                "base path {} holds {own}, which belongs to Stockade",
                granted.grant.path
            );
            return Err(wrong(message, &granted.grant.origin)
                .hint("make it a root under `sandbox.paths` (`mode: ro`), in which that is denied, or name less"));
        }
    }
    Ok(())
}

/// Creates missing ones inside roots, so that a mount can cover them: another session could create them later. A missing runtime
/// directory is left to the system.
pub(crate) fn create_missing(roots: &[Root]) {
    let denies = roots.iter().flat_map(|root| &root.denies);
    for deny in denies.filter(|deny| deny.origin == ORIGIN_OF_STOCKADE) {
        if let Target::Path(path) = &deny.target {
            let recursive = path.name().is_some_and(|name| name == "stockade");
            // What this user cannot create, no other session of theirs can.
            let _unwritable = DirBuilder::new().mode(0o700).recursive(recursive).create(path);
        }
    }
}

/// The path of `own` below `around`, which may be a second path of a directory above it.
fn below(around: &AbsPath, own: &AbsPath, cache: &PathCache) -> Option<AbsPath> {
    if own.is_within(around) {
        return Some(own.clone());
    }
    let identity = cache.identity(around)?;
    let above = own.ancestors().find(|above| cache.identity(above) == Some(identity))?;
    let rest = own.as_path().strip_prefix(above.as_path()).ok()?;
    AbsPath::new(around.as_path().join(rest)).ok()
}

/// The paths with links resolved. Those that come from the environment count only if they exist: a variable may name any
/// directory as a home.
fn own_paths(context: &Context, cache: &PathCache) -> Result<Vec<AbsPath>, Box<Diagnostic>> {
    let below = |start: Option<AbsPath>, name: &str| Some(start?.as_path().join(name));
    let of_home = |home: Option<AbsPath>| OF_STOCKADE.map(|name| below(home.clone(), name));
    let named = |variable: &str, name: &str| below(context.path_variable(variable), name);
    let sure = [
        named("XDG_RUNTIME_DIR", "stockade-approvals"),
        // A session that was started with the variable has its sockets there.
        Some(PathBuf::from(format!("/run/user/{}/stockade-approvals", geteuid()))),
    ];
    let others = [
        named("XDG_CONFIG_HOME", "stockade"),
        named("XDG_STATE_HOME", "stockade"),
    ];
    let others = of_home(context.path_variable("HOME"))
        .into_iter()
        .chain(others)
        .flatten();
    let all = of_home(context.home.clone()).into_iter().chain(sure).flatten();
    let all = all.chain(others.filter(|path| path.symlink_metadata().is_ok()));
    let registered = match state_dir(context) {
        Some(state) => registered(state.as_path()).map_err(|error| {
            let message = format!("the directories of sockets that sessions noted in {state} cannot be read: {error}");
            Diagnostic::error(message)
        })?,
        None => Vec::new(),
    };
    let all = all.chain(registered);
    let mut all: Vec<AbsPath> = all
        .filter_map(|path| Some(cache.real(&AbsPath::new(path).ok()?)))
        .collect();
    all.sort();
    all.dedup();
    Ok(all)
}
