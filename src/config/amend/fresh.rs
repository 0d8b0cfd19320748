//! A config for who began without one: what held, written out.

use super::error::AmendError;
use super::flow::{self, Flow};
use crate::config::loaded::Loaded;
use crate::policy::{AbsPath, Demand, DenyFallback, HostAccess, Network, ProtectFallback, Right, Root, Target};

/// What somebody began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// A preset, which means this directory where it says `.`.
    Preset(String, AbsPath),
    /// Flags on the preset `system`.
    Flags,
}

/// The text of a config in `dir` that says what was loaded.
pub fn fresh(loaded: &Loaded, beginning: &Beginning, dir: &AbsPath) -> Result<String, AmendError> {
    let policy = &loaded.policy;
    let mut text = String::from("# Written by `stockade learn`; `stockade check` says what it comes to.\n");
    let (extends, roots) = match beginning {
        Beginning::Preset(name, workspace) => (name.clone(), if workspace == dir { &[][..] } else { &policy.roots }),
        Beginning::Flags => ("system".to_owned(), &policy.roots[..]),
    };
    let extends = Flow::List(vec![Flow::Text(extends)]);
    text.extend(["extends: ", &extends.written(), "\n"]);
    let mut sandbox = String::new();
    match beginning {
        Beginning::Preset(..) => {}
        Beginning::Flags => {
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
            sandbox.extend(["  deny_fallback: ", fallback.word(), "\n"]);
        }
    }
    if !roots.is_empty() {
        sandbox.push_str("  paths:\n");
        for root in roots {
            let value = of_root(root, &policy.roots, dir)?.written();
            sandbox.extend(["    ", &root.name, ": ", &value, "\n"]);
        }
    }
    if !sandbox.is_empty() {
        text.extend(["sandbox:\n", &sandbox]);
    }
    match beginning {
        Beginning::Preset(..) => {}
        Beginning::Flags => {
            let network = of_network(&policy.network).written();
            let default = "  default: {allowed: true, approval: none}\n";
            text.extend(["shell:\n  network: ", &network, "\n", default]);
        }
    }
    Ok(text)
}

fn of_root(root: &Root, all: &[Root], dir: &AbsPath) -> Result<Flow, AmendError> {
    let pair = |key: &str, value| (key.to_owned(), value);
    let mut entries = vec![pair("root", flow::path(&root.path, dir)?)];
    if root.rights.has(Right::Write) {
        entries.push(pair("mode", Flow::Word("rw")));
    }
    if root.rights.has(Right::Execute) {
        entries.push(pair("execute", Flow::Word("true")));
    } else if all
        .iter()
        .any(|outer| root.path.is_below(&outer.path) && outer.rights.has(Right::Execute))
    {
        // It would be what the root around it is.
        entries.push(pair("execute", Flow::Word("false")));
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

fn of_network(network: &Network) -> Flow {
    match network {
        Network::Off => Flow::Word("false"),
        Network::Full => Flow::Word("true"),
        Network::Hosts(list) => {
            let places = list
                .only(HostAccess::Free)
                .map(|rule| Flow::Text(rule.place.to_string()));
            let mut entries = vec![("allow".to_owned(), Flow::List(places.collect()))];
            if list.asks() {
                entries.push(("ask".to_owned(), Flow::Word("true")));
            }
            Flow::Map(entries)
        }
    }
}
