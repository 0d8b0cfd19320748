//! Statuses of clauses, as text for people.

use super::spelling::{self, canonical_denies};
use crate::backend::status::ClauseStatus;
use crate::policy::{Deny, Grant, Network, Right, Target, UnixSockets};
use crate::profile::Profile;

/// What the text denies beyond the deny of the config.
pub(super) fn deny_losses(deny: &Deny, grants: &[Grant]) -> Vec<String> {
    let mut losses = Vec::new();
    let mut lose = |what: &str| losses.push(what.to_owned());
    if deny.beyond.is_some() && deny.rights.has(Right::Write) {
        lose("a size limit cannot be held for commands: they write nothing there");
    }
    if deny.except.is_some() {
        lose("entries there cannot be removed or renamed, and directories not be listed");
    }
    if !deny.ends.is_empty() {
        lose("it holds below the roots inside it as well");
    }
    if spelling::is_moved_elsewhere(deny, grants) {
        lose("entries of that name are out of reach in every writable tree, so that none is got at by moving it");
    }
    let (path, spelled) = match &deny.target {
        Target::Path(path) => (path, spelling::is_spellable(path)),
        Target::Pattern { root, .. } => (
            root,
            canonical_denies(deny)
                .iter()
                .any(|deny| matches!(deny.target, Target::Pattern { .. })),
        ),
    };
    if !spelled {
        lose("a name that is not UTF-8 cannot be named: the directory around it is denied");
    } else if !path.as_bytes().is_ascii() {
        lose("other names that some volume could take for this one are denied too");
    }
    losses
}

/// The statuses of the profile's clauses that are not about files.
pub(super) fn regime_statuses(profile: &Profile) -> [ClauseStatus; 3] {
    let of =
        |clause: String, origin: &str, loss: Option<&str>| ClauseStatus::with_losses(&clause, &origin, loss.as_slice());
    let resolves = profile.network == Network::Off || profile.unix_sockets == UnixSockets::All;
    let names = (!resolves).then_some("host names are not resolved: the resolver is a Unix socket");
    let (network, sockets) = (&profile.network, profile.unix_sockets);
    let within = sockets == UnixSockets::WithinRoots;
    let plain = within.then_some("not in trees that are limited to some names or sizes");
    [
        of(format!("network {network}"), "shell.network", names),
        of(format!("unix sockets {sockets}"), "shell.unix_sockets", plain),
        of(
            "signals and shared memory stay inside".to_owned(),
            "built in",
            Some(
                "no shared memory, semaphores or hard links at all, and code is loaded only from where it may be executed",
            ),
        ),
    ]
}
