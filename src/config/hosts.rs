//! `network:` of commands, of a rule, of a custom tool → [`Network`], and warnings about its lines.

use std::collections::HashMap;

use super::custom_tool::CustomTool;
use super::error::Diagnostic;
use super::keywords::RawBackend;
use super::layers::{Layer, Layers, sandbox};
use super::scalar::{At, Position, RawHosts, RawNetwork};
use super::values;
use super::warnings::SHELL;
use crate::policy::hosts::{AddressKind, kinds};
use crate::policy::{
    Demand, Destination, HostList, HostPattern, HostRule, Network, OwnNetwork, PatternError, Policy, Ports,
};

/// The network that a line gives.
pub(crate) fn network(layer: &Layer, raw: &At<RawNetwork>) -> Result<Network, Box<Diagnostic>> {
    match &raw.value {
        RawNetwork::Off => Ok(Network::Off),
        RawNetwork::Full => Ok(Network::Full),
        RawNetwork::Hosts(hosts) => list(layer, raw.at, hosts).map(Network::hosts),
        RawNetwork::Other(keyword) => {
            let unknown = values::unknown_keyword(&layer.source, raw.at, keyword);
            Err(unknown.hint("network is `true`, `false` or `{allow: [HOST:PORTS]}`"))
        }
    }
}

/// The network of a rule or tool, which replaces `shell.network`.
pub(crate) fn own(layer: &Layer, raw: &At<RawNetwork>) -> Result<OwnNetwork, Box<Diagnostic>> {
    Ok(OwnNetwork {
        network: network(layer, raw)?,
        origin: layer.source.origin(raw.at),
    })
}

fn list(layer: &Layer, at: Position, raw: &RawHosts) -> Result<HostList, Box<Diagnostic>> {
    if let (None, None) = (&raw.allow, &raw.ask) {
        return Err(Diagnostic::error("`network` says nothing")
            .at(layer.source.span(at), "neither `allow` nor `ask`")
            .hint("write `network: false`, or `network: {allow: [HOST:PORTS]}`"));
    }
    let mut rules = Vec::new();
    for entry in raw.allow.iter().flatten() {
        rules.push(HostRule::free(
            destination(layer, entry)?,
            layer.source.origin(entry.at),
        ));
    }
    if let Some(ask) = raw.ask.as_ref().filter(|ask| ask.value) {
        rules.push(HostList::ask_for_others(layer.source.origin(ask.at)));
    }
    Ok(HostList::new(rules))
}

fn destination(layer: &Layer, entry: &At<String>) -> Result<Destination, Box<Diagnostic>> {
    Destination::parse(&entry.value).map_err(|error| {
        let wrong = Diagnostic::error(error.to_string()).at(layer.source.span(entry.at), "not HOST:PORTS");
        match hint(&entry.value, &error) {
            Some(hint) => wrong.hint(hint),
            None => wrong,
        }
    })
}

/// Advice for an invalid entry.
fn hint(entry: &str, error: &PatternError) -> Option<String> {
    match error {
        PatternError::Url => in_url(entry).map(|destination| format!("write `{destination}`")),
        PatternError::Bits(_, net) => Some(format!("write `{net}`, or the one address without a prefix")),
        PatternError::Prefix(_) => {
            Some("a prefix is 0 to 32 for IPv4, 0 to 128 for IPv6, without leading zeros".into())
        }
        PatternError::Host { .. } if Ports::parse(entry).is_ok() => Some(
            "ports stand behind their host, and a comma ends an entry unless it is quoted: `\"example.org:80,443\"`"
                .into(),
        ),
        PatternError::Host { .. } => Some(
            "a host is a name, an IPv4 address of four decimal numbers, or an IPv6 address in brackets: \
             `example.org:443`, `192.0.2.1:22`, `\"[2001:db8::1]:443\"`"
                .into(),
        ),
        PatternError::Star => {
            Some("`*.example.org` is every name below `example.org`; any other names are written one by one".into())
        }
        PatternError::Unusable(..) => Some("name the host's own address".into()),
        PatternError::Ports(_) | PatternError::Bare(..) => None,
    }
}

/// The host and port of a URL.
fn in_url(text: &str) -> Option<Destination> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => ":443",
        "http" | "ws" => ":80",
        "ssh" => ":22",
        "git" => ":9418",
        _ => "",
    };
    // An explicit port, or the default port of the scheme.
    let parsed = Destination::parse(host).ok()?;
    let with_port = Destination::parse(&format!("{host}{port}")).ok();
    Some(with_port.unwrap_or(parsed))
}

/// Every `network:` of every layer.
fn all(layers: &Layers) -> impl Iterator<Item = (&Layer, &At<RawNetwork>)> {
    layers.stack.iter().flat_map(|layer| {
        let shell = layer.raw.shell.as_ref();
        let rules = shell.into_iter().flat_map(|shell| shell.rules.iter().flatten());
        let tools = layer.raw.custom_tools.iter().flat_map(|tools| &tools.0);
        let of_commands = shell.and_then(|shell| shell.network.as_ref());
        let networks = of_commands
            .into_iter()
            .chain(rules.filter_map(|rule| rule.value.network.as_ref()));
        networks
            .chain(tools.filter_map(|(_, tool)| tool.network.as_ref()))
            .map(move |network| (layer, network))
    })
}

/// Every list of hosts, with where it stands.
fn lists(layers: &Layers) -> impl Iterator<Item = (&Layer, Position, &RawHosts)> {
    all(layers).filter_map(|(layer, network)| match &network.value {
        RawNetwork::Hosts(hosts) => Some((layer, network.at, hosts)),
        RawNetwork::Off | RawNetwork::Full | RawNetwork::Other(_) => None,
    })
}

/// The valid entries of a list.
fn entries(hosts: &RawHosts) -> impl Iterator<Item = (&At<String>, Destination)> {
    let entries = hosts.allow.iter().flatten();
    entries.filter_map(|entry| Some((entry, Destination::parse(&entry.value).ok()?)))
}

/// A warning for each duplicate entry of a list.
pub(crate) fn duplicates(layers: &Layers) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (layer, _, hosts) in lists(layers) {
        let mut before: HashMap<Destination, Position> = HashMap::new();
        for (entry, destination) in entries(hosts) {
            if let Some(first) = before.get(&destination) {
                let warning = Diagnostic::warning(format!("`{destination}` is listed twice"))
                    .at(layer.source.span(entry.at), "says nothing new")
                    .and(layer.source.span(*first), "listed here");
                found.push(*warning);
            }
            before.entry(destination).or_insert(entry.at);
        }
    }
    found
}

/// Notes for somebody who examines the config.
pub(crate) fn notes(layers: &Layers, policy: &Policy, tools: &[CustomTool]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (layer, at, hosts) in lists(layers) {
        for (entry, destination) in entries(hosts) {
            let remark = remark(&destination.hosts).map(|(what, label)| {
                Diagnostic::warning(format!("`{destination}` {what}")).at(layer.source.span(entry.at), label)
            });
            found.extend(remark.map(|note| *note));
        }
        if let Some((by, backend)) = sandbox(layers, |s| &s.backend)
            && backend.value == RawBackend::Landlock
        {
            let note =
                Diagnostic::warning("the `landlock` backend cannot hold a list of hosts: such calls are refused")
                    .at(layer.source.span(at), "needs a network namespace")
                    .and(by.source.span(backend.at), "has none")
                    .hint("write `backend: auto` or `backend: namespaces`; or give no network, or all of it");
            found.push(*note);
        }
    }
    found.extend(never_asked(layers, policy, tools));
    found
}

/// What an entry includes that its writer may not expect.
fn remark(hosts: &HostPattern) -> Option<(String, &'static str)> {
    let wide = "wider than it looks";
    match hosts {
        HostPattern::Every => Some((
            "is every host of the internet: whatever a command reads, it can send anywhere".to_owned(),
            wide,
        )),
        HostPattern::Below(name) | HostPattern::Name(name) if name.as_str().rsplit('.').next() == Some("localhost") => {
            Some((
                "leads to this machine, which is reached only where its address is listed".to_owned(),
                "write `127.0.0.1:PORT`",
            ))
        }
        HostPattern::Below(suffix) if suffix.parents().next().is_none() => {
            Some((format!("is every name that anybody registers below `{suffix}`"), wide))
        }
        HostPattern::Net(net) if net.prefix_len() == 0 => Some((
            "is every address of its kind, this machine and its networks among them".to_owned(),
            wide,
        )),
        HostPattern::Net(net) => {
            let kinds = kinds(*net);
            let special = kinds.iter().filter_map(|kind| match kind {
                AddressKind::Special(name) => Some(*name),
                AddressKind::Public | AddressKind::Unusable(_) => None,
            });
            let special: Vec<&str> = special.collect();
            (!special.is_empty()).then(|| {
                let remark = format!("names addresses that are not of the internet: {}", special.join("; "));
                (remark, "reached because it is named")
            })
        }
        HostPattern::Below(_) | HostPattern::Name(_) | HostPattern::PublicNet(_) => None,
    }
}

/// A note for each network with `ask: true` that applies to commands which need no approval.
fn never_asked(layers: &Layers, policy: &Policy, tools: &[CustomTool]) -> Vec<Diagnostic> {
    let asks = |network: &Network| match network {
        Network::Hosts(list) => list.asks(),
        Network::Off | Network::Full => false,
    };
    // An override has a warning of its own.
    let overruled = |tool: &str| policy.tools.contains_key(tool);
    let rules = || policy.rules.iter().chain([&policy.default_rule]);
    let mut lines = Vec::new();
    for rule in rules().filter(|rule| rule.approval == Demand::None && !overruled(SHELL)) {
        match &rule.network {
            Some(own) if asks(&own.network) => lines.push((Some(&own.origin), &rule.origin)),
            None if asks(&policy.network) => lines.push((policy.network_line(), &rule.origin)),
            Some(_) | None => {}
        }
    }
    for tool in tools
        .iter()
        .filter(|tool| tool.approval == Demand::None && !overruled(&tool.name))
    {
        match policy.tool_networks.get(&tool.name) {
            Some(own) if asks(&own.network) => lines.push((Some(&own.origin), &tool.origin)),
            None if asks(&policy.network) => lines.push((policy.network_line(), &tool.origin)),
            Some(_) | None => {}
        }
    }
    let mut found: Vec<Diagnostic> = Vec::new();
    for (network, by) in lines {
        let Some(network) = network.and_then(|origin| layers.span_of(origin)) else {
            continue;
        };
        // One note per network.
        if found
            .iter()
            .any(|note| note.mark.as_ref().is_some_and(|mark| mark.span == network))
        {
            continue;
        }
        let note = Diagnostic::warning("`ask: true` asks for approved commands only: others get what is listed")
            .at(network, "asks about every other host");
        let note = match layers.span_of(by) {
            Some(span) => note.and(span, "nobody is asked about this one"),
            None => note,
        };
        found.push(*note);
    }
    found
}
