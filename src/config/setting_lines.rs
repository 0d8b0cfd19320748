//! The line that each setting comes from.

use super::layers::{Layer, Layers, limit, sandbox, shell};
use super::scalar::At;
use crate::policy::{Lines, Origin, VarName};

/// The lines of all settings in the layers.
pub(crate) fn of(layers: &Layers) -> Lines {
    let mut lines = Lines::default();
    let mut set = |key: &str, found: Option<Origin>| {
        if let Some(origin) = found {
            lines.set(key, origin);
        }
    };
    set("shell.network", origin(shell(layers, |s| &s.network)));
    set("shell.unix_sockets", origin(shell(layers, |s| &s.unix_sockets)));
    set("shell.home", origin(shell(layers, |s| &s.home)));
    set(
        "sandbox.require_os_sandbox",
        origin(sandbox(layers, |s| &s.require_os_sandbox)),
    );
    set("sandbox.protect", origin(sandbox(layers, |s| &s.protect)));
    set(
        "sandbox.protect_fallback",
        origin(sandbox(layers, |s| &s.protect_fallback)),
    );
    set("sandbox.deny_fallback", origin(sandbox(layers, |s| &s.deny_fallback)));
    set("sandbox.residuals", origin(sandbox(layers, |s| &s.residuals)));
    let mode = layers.first(|raw| raw.approval.as_ref()?.mode.as_ref());
    set("approval.mode", origin(mode));
    let channel = layers.first(|raw| raw.approval.as_ref()?.channel.as_ref());
    set("approval.channel", origin(channel));
    let log = layers.first(|raw| raw.audit.as_ref()?.log.as_ref());
    set("audit.log", origin(log));
    set("shell.limits.timeout", origin(limit(layers, |l| &l.timeout)));
    set("shell.limits.memory", origin(limit(layers, |l| &l.memory)));
    set("shell.limits.processes", origin(limit(layers, |l| &l.processes)));
    set("shell.limits.open_files", origin(limit(layers, |l| &l.open_files)));
    set("shell.limits.file_size", origin(limit(layers, |l| &l.file_size)));
    set("shell.limits.output", origin(limit(layers, |l| &l.output)));
    for (layer, shell) in layers.shells() {
        let Some(env) = &shell.env else {
            continue;
        };
        let set = env.set.iter().flat_map(|set| &set.0).map(|(name, _)| name);
        for name in set.chain(env.pass.iter().flatten()) {
            let Ok(variable) = VarName::new(&name.value) else {
                continue;
            };
            let key = Lines::of_variable(&variable);
            // The first layer that names a variable decides about it.
            if lines.get(&key).is_none() {
                lines.set(key, layer.source.origin(name.at));
            }
        }
    }
    lines
}

fn origin<T>(found: Option<(&Layer, &At<T>)>) -> Option<Origin> {
    found.map(|(layer, found)| layer.source.origin(found.at))
}
