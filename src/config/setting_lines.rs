//! Which line each setting comes from.

use super::layers::{Layer, Layers, sandbox, shell};
use super::raw::RawLimits;
use super::scalar::{At, Position};
use crate::policy::{Lines, Origin, VarName};

/// The lines of all settings that some layer names.
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
    let mode = layers.first(|raw| raw.approval.as_ref().and_then(|approval| approval.mode.as_ref()));
    set("approval.mode", origin(mode));
    let channel = layers.first(|raw| raw.approval.as_ref().and_then(|approval| approval.channel.as_ref()));
    set("approval.channel", origin(channel));
    let log = layers.first(|raw| raw.audit.as_ref().and_then(|audit| audit.log.as_ref()));
    set("audit.log", origin(log));
    set("shell.limits.timeout", limit(layers, |l| at(l.timeout.as_ref())));
    set("shell.limits.memory", limit(layers, |l| at(l.memory.as_ref())));
    set("shell.limits.processes", limit(layers, |l| at(l.processes.as_ref())));
    set("shell.limits.open_files", limit(layers, |l| at(l.open_files.as_ref())));
    set("shell.limits.file_size", limit(layers, |l| at(l.file_size.as_ref())));
    set("shell.limits.output", limit(layers, |l| at(l.output.as_ref())));
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

fn at<T>(found: Option<&At<T>>) -> Option<Position> {
    found.map(|found| found.at)
}

fn limit(layers: &Layers, get: fn(&RawLimits) -> Option<Position>) -> Option<Origin> {
    layers.shells().find_map(|(layer, shell)| {
        let at = shell.limits.as_ref().and_then(get)?;
        Some(layer.source.origin(at))
    })
}
