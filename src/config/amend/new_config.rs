//! Writes a config for a session that was started without one.

use super::error::AmendError;
use super::flow::{self, Flow};
use crate::config::loaded::Loaded;
use crate::policy::{AbsPath, Demand, DenyFallback, HostAccess, Network, ProtectFallback, Right, Root, Target};

/// What the session was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// A preset, and the directory that `.` in it stands for.
    Preset(String, AbsPath),
    /// A preset, with `--deny` and `--net` in it.
    Changed(String),
    /// Flags on the preset `toolchains`.
    Flags,
}

/// The text of a config in `dir` that gives the same policy.
pub fn new_config(loaded: &Loaded, basis: &Basis, dir: &AbsPath) -> Result<String, AmendError> {
    let policy = &loaded.policy;
    let mut text = String::from("# Written by `stockade learn`; `stockade check` says what it comes to.\n");
    let (extends, roots) = match basis {
        Basis::Preset(name, workspace) => (name.clone(), if workspace == dir { &[][..] } else { &policy.roots }),
        Basis::Changed(name) => (name.clone(), &policy.roots[..]),
        Basis::Flags => ("toolchains".to_owned(), &policy.roots[..]),
    };
    let extends = Flow::List(vec![Flow::Text(extends)]);
    text.extend(["extends: ", &extends.to_yaml(), "\n"]);
    let mut sandbox = String::new();
    match basis {
        Basis::Preset(..) | Basis::Changed(_) => {}
        Basis::Flags => {
            let protect = match policy.protect_fallback {
                ProtectFallback::Refuse => "refuse",
                ProtectFallback::Undo => "undo",
            };
            sandbox.extend(["  protect_fallback: ", protect, "\n"]);
        }
    }
    match policy.deny_fallback {
        DenyFallback::CoverExisting => {}
        fallback @ (DenyFallback::Refuse | DenyFallback::Decompose) => {
            sandbox.extend(["  deny_fallback: ", fallback.keyword(), "\n"]);
        }
    }
    if !roots.is_empty() {
        sandbox.push_str("  paths:\n");
        for root in roots {
            let value = root_yaml(root, &policy.roots, dir)?.to_yaml();
            sandbox.extend(["    ", &root.name, ": ", &value, "\n"]);
        }
    }
    if !sandbox.is_empty() {
        text.extend(["sandbox:\n", &sandbox]);
    }
    match basis {
        Basis::Preset(..) => {}
        Basis::Changed(_) => {
            let network = network_yaml(&policy.network).to_yaml();
            text.extend(["shell:\n  network: ", &network, "\n"]);
        }
        Basis::Flags => {
            let network = network_yaml(&policy.network).to_yaml();
            let default = "  default: {allowed: true, approval: none}\n";
            text.extend(["shell:\n  network: ", &network, "\n", default]);
        }
    }
    Ok(text)
}

fn root_yaml(root: &Root, all: &[Root], dir: &AbsPath) -> Result<Flow, AmendError> {
    let pair = |key: &str, value| (key.to_owned(), value);
    let mut entries = vec![pair("root", flow::path(&root.path, dir)?)];
    if root.rights.has(Right::Write) {
        entries.push(pair("mode", Flow::Keyword("rw")));
    }
    if root.rights.has(Right::Execute) {
        entries.push(pair("execute", Flow::Keyword("true")));
    } else if all
        .iter()
        .any(|outer| root.path.is_below(&outer.path) && outer.rights.has(Right::Execute))
    {
        // Else it would inherit the right of the root around it.
        entries.push(pair("execute", Flow::Keyword("false")));
    }
    let demand = |demand: Demand| Flow::Text(demand.to_string());
    let approval = vec![
        pair("read", demand(root.read_approval)),
        pair("write", demand(root.write_approval)),
    ];
    entries.push(pair("approval", Flow::Map(approval)));
    let denied = root.denies.iter().map(|deny| match &deny.target {
        Target::Path(path) => flow::path(path, &AbsPath::root()),
        Target::Pattern { pattern, .. } => Ok(Flow::Text(pattern.to_string())),
    });
    let denied = denied.collect::<Result<Vec<_>, _>>()?;
    if !denied.is_empty() {
        entries.push(pair("deny", Flow::List(denied)));
    }
    Ok(Flow::Map(entries))
}

fn network_yaml(network: &Network) -> Flow {
    match network {
        Network::Off => Flow::Keyword("false"),
        Network::Full => Flow::Keyword("true"),
        Network::Hosts(list) => {
            let destinations = list
                .only(HostAccess::Free)
                .map(|rule| Flow::Text(rule.destination.to_string()));
            let mut entries = vec![("allow".to_owned(), Flow::List(destinations.collect()))];
            if list.asks() {
                entries.push(("ask".to_owned(), Flow::Keyword("true")));
            }
            Flow::Map(entries)
        }
    }
}
