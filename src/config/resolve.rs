//! Layers → one [`Policy`]. Scalars: the first layer that speaks wins. Lists: all of them, the
//! file's own first.

use super::audit;
use super::base;
use super::ceiling_keys;
use super::context::Context;
use super::contradictions;
use super::credentials;
use super::environment;
use super::error::Diagnostic;
use super::hosts;
use super::keywords::{
    RawApprovalMode, RawBackend, RawDenyFallback, RawExplain, RawFallback, RawHome, RawProtectFallback, RawResiduals,
    RawUnixSockets,
};
use super::layers::{Layers, Role, sandbox, shell};
use super::loaded::{Loaded, Missing};
use super::own_paths;
use super::path_cache::PathCache;
use super::protect;
use super::roots;
use super::rules;
use super::setting_lines;
use super::short_forms;
use super::tools;
use super::warnings;
use crate::policy::{
    AbsPath, BackendChoice, Ceilings, Demand, DenyFallback, Explain, HomeChoice, Mode, Network, OsSandbox, Policy,
    ProtectFallback, Residuals, Rights, ShellRule, UnixSockets,
};

/// Resolves the layers to a policy. Creates nothing, and names no files.
pub(crate) fn resolve(layers: &Layers, context: &Context) -> Result<Loaded, Box<Diagnostic>> {
    if layers.role == Role::Ceiling {
        ceiling_keys::check(layers)?;
    }
    let (mut warnings, mut notes) = (Vec::new(), Vec::new());
    let cache = PathCache::default();
    let mut drafts = roots::drafts(layers, context, &cache, &mut notes)?;
    contradictions::check(layers, &drafts, context)?;
    // A ceiling grants nothing by itself, so this is checked for the config alone.
    if layers.role == Role::Config {
        contradictions::refuse_writable_state(&drafts, context)?;
        contradictions::refuse_kernel_file_systems(&drafts, context)?;
    }
    let at_start = roots::at_start(&drafts);
    let links = drafts.iter().flat_map(|draft| draft.links.iter().cloned()).collect();
    let of_roots = drafts
        .iter()
        .filter(|d| layers.role == Role::Config && d.rights.contains(Rights::WRITE))
        .map(|d| &d.path);
    let writable: Vec<AbsPath> = of_roots.chain(&layers.writable).cloned().collect();
    let base = base::resolve(layers, &writable, context, &cache, &mut warnings)?;
    roots::inherit_execute(&mut drafts, &base);
    let names: Vec<&str> = drafts.iter().map(|d| d.name.value.as_str()).collect();
    let custom_tools = tools::custom(layers, &names)?;
    let tools = tools::overrides(layers, &custom_tools, &mut warnings)?;
    let rules = rules::rules(layers, &names)?;
    let default_rule = rules::default_rule(layers)?;
    let environment = environment::environment(layers, context, &mut warnings)?;
    let limits = environment::limits(layers)?;
    let network = network(layers)?;
    let mut missing = Vec::new();
    let mut finished = Vec::new();
    for draft in drafts {
        let writing = match layers.role {
            Role::Config => Demand::Required,
            // A ceiling that says nothing demands nothing.
            Role::Ceiling => Demand::None,
        };
        let (root, missing_at) = draft.finish(writing)?;
        missing.extend(missing_at.map(|place| Missing {
            name: root.name.clone(),
            place,
        }));
        finished.push(root);
    }
    if layers.role == Role::Config {
        own_paths::deny_all(&mut finished, &base, context, &cache, |origin| layers.span_of(origin))?;
        warnings.extend(credentials::deny(&mut finished, &base, context, &cache, |origin| {
            layers.span_of(origin)
        }));
    }
    let dangerous = short_forms::dangerous(layers)?;
    let safe_paths = short_forms::safe_paths(layers, &finished, context, &mut warnings)?;
    let asking: Vec<&ShellRule> = rules.iter().chain([&default_rule]).collect();
    warnings.extend(warnings::switched_off(layers, &tools, &finished, &asking));
    warnings.extend(warnings::unprotected_config(layers, &writable));
    warnings.extend(hosts::duplicates(layers));
    let policy = Policy {
        roots: finished,
        links,
        base,
        protect: protect::protect(layers)?,
        names: protect::names(layers)?,
        protect_fallback: protect_fallback(layers),
        deny_fallback: deny_fallback(layers),
        residuals: residuals(layers),
        os_sandbox: os_sandbox(layers),
        backend: backend(layers)?,
        network,
        tool_networks: tools::networks(layers)?,
        unix_sockets: unix_sockets(layers),
        home: home(layers),
        explain: explain(layers),
        environment,
        limits,
        rules,
        default_rule,
        dangerous,
        tools,
        safe_paths,
        mode: mode(layers),
        channels: short_forms::channels(layers)?,
        audit: audit::audit(layers, context)?,
        ceilings: Ceilings {
            lines: setting_lines::of(layers),
            ..Ceilings::default()
        },
    };
    warnings.extend(warnings::never_asking(layers, &policy, &custom_tools));
    notes.extend(hosts::notes(layers, &policy, &custom_tools));
    Ok(Loaded {
        policy,
        custom_tools,
        files: Vec::new(),
        warnings,
        notes,
        missing,
        made: Vec::new(),
        at_start,
        log: audit::log_span(layers),
        default_presets: Vec::new(),
    })
}

fn network(layers: &Layers) -> Result<Network, Box<Diagnostic>> {
    shell(layers, |s| &s.network).map_or(Ok(Network::Off), |(layer, found)| hosts::network(layer, found))
}

fn backend(layers: &Layers) -> Result<BackendChoice, Box<Diagnostic>> {
    let Some((layer, found)) = sandbox(layers, |s| &s.backend) else {
        return Ok(BackendChoice::Auto);
    };
    let name = match found.value {
        RawBackend::Auto => return Ok(BackendChoice::Auto),
        RawBackend::Landlock => return Ok(BackendChoice::Landlock),
        RawBackend::Namespaces => return Ok(BackendChoice::Namespaces),
        RawBackend::Bwrap => return Ok(BackendChoice::Bwrap),
        RawBackend::Seatbelt => "seatbelt",
    };
    Err(
        Diagnostic::error(format!("the backend `{name}` is not supported by this version"))
            .at(layer.source.span(found.at), "cannot confine")
            .hint("write `backend: auto`, `backend: namespaces`, `backend: bwrap` or `backend: landlock`"),
    )
}

fn protect_fallback(layers: &Layers) -> ProtectFallback {
    match sandbox(layers, |s| &s.protect_fallback).map(|(_, found)| found.value) {
        None | Some(RawProtectFallback::Undo) => ProtectFallback::Undo,
        Some(RawProtectFallback::Refuse) => ProtectFallback::Refuse,
    }
}

fn deny_fallback(layers: &Layers) -> DenyFallback {
    match sandbox(layers, |s| &s.deny_fallback).map(|(_, found)| found.value) {
        None | Some(RawDenyFallback::CoverExisting) => DenyFallback::CoverExisting,
        Some(RawDenyFallback::Refuse) => DenyFallback::Refuse,
        Some(RawDenyFallback::Decompose) => DenyFallback::Decompose,
    }
}

fn residuals(layers: &Layers) -> Residuals {
    match sandbox(layers, |s| &s.residuals).map(|(_, found)| found.value) {
        None | Some(RawResiduals::Report) => Residuals::Report,
        Some(RawResiduals::Refuse) => Residuals::Refuse,
    }
}

/// `require_os_sandbox: false` still confines wherever confining works.
fn os_sandbox(layers: &Layers) -> OsSandbox {
    let required = sandbox(layers, |s| &s.require_os_sandbox).is_none_or(|(_, found)| found.value);
    let fallback = sandbox(layers, |s| &s.os_sandbox_fallback).map(|(_, found)| found.value);
    match (required, fallback) {
        (false, _) => OsSandbox::NotRequired,
        // Either way nothing runs unconfined; a ceiling that names neither minds neither.
        (true, None) if layers.role == Role::Ceiling => OsSandbox::RefuseTools,
        (true, None | Some(RawFallback::FailFast)) => OsSandbox::FailFast,
        (true, Some(RawFallback::RefuseTools)) => OsSandbox::RefuseTools,
    }
}

fn unix_sockets(layers: &Layers) -> UnixSockets {
    match shell(layers, |s| &s.unix_sockets).map(|(_, found)| found.value) {
        None | Some(RawUnixSockets::None) => UnixSockets::None,
        Some(RawUnixSockets::WithinRoots) => UnixSockets::WithinRoots,
        Some(RawUnixSockets::All) => UnixSockets::All,
    }
}

fn explain(layers: &Layers) -> Explain {
    match shell(layers, |s| &s.explain).map(|(_, found)| found.value) {
        None | Some(RawExplain::Off) => Explain::Off,
        Some(RawExplain::OnFailure) => Explain::OnFailure,
        Some(RawExplain::Always) => Explain::Always,
    }
}

fn home(layers: &Layers) -> HomeChoice {
    match shell(layers, |s| &s.home).map(|(_, found)| found.value) {
        None | Some(RawHome::Private) => HomeChoice::Private,
        Some(RawHome::Real) => HomeChoice::Real,
    }
}

fn mode(layers: &Layers) -> Mode {
    let warnings = layers.first(|raw| raw.approval.as_ref()?.mode.as_ref());
    match warnings.map(|(_, found)| found.value) {
        None if layers.role == Role::Ceiling => Mode::ApproveAll,
        None | Some(RawApprovalMode::Interactive) => Mode::Interactive,
        Some(RawApprovalMode::ApproveAll) => Mode::ApproveAll,
        Some(RawApprovalMode::Strict) => Mode::Strict,
    }
}
