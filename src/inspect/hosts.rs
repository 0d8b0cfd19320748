//! The hosts that may be reached, entry by entry, and which backend holds a list of them.

use serde::Serialize;

use super::inspection::Inspection;
use crate::backend::Regime;
use crate::backend::status::refuse_hosts;
use crate::policy::{HostAccess, Network, Origin};
use crate::profile::{ApprovedRoots, Call, Profile, derive};

/// One network of the policy, with the profiles of what has it.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// Whose it is, in words.
    pub(super) of: String,
    /// The line that says so, where one does.
    pub(super) origin: Option<Origin>,
    /// The requested network, before ceilings and flags.
    pub(super) requested: Network,
    /// What an approved call with it gets.
    pub(super) approved: Profile,
    /// What one gets that nobody was asked about.
    pub(super) unasked: Profile,
}

/// One network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetworkRow {
    /// Whose it is: every command's, or what has its own.
    pub of: String,
    /// `off`, `full`, or its hosts.
    pub network: String,
    /// The line that says so.
    pub origin: Option<String>,
    /// Its hosts; none where it is off or full.
    pub hosts: Vec<HostRow>,
    /// Which backend holds it.
    pub backends: Vec<NetworkStatus>,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostRow {
    /// `HOST:PORTS`.
    pub hosts: String,
    /// What an approved command gets.
    pub access: &'static str,
    /// What a command gets that nobody was asked about.
    pub unasked: &'static str,
    /// The line that names it.
    pub origin: String,
}

/// What one backend makes of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetworkStatus {
    /// The backend.
    pub backend: Regime,
    /// `enforced`, `stricter`, or `refused` where this backend starts nothing with it.
    pub status: &'static str,
    /// What more is blocked, or why it is refused.
    pub detail: Option<&'static str>,
}

/// The name of an access.
pub(super) const fn access_name(access: HostAccess) -> &'static str {
    match access {
        HostAccess::Denied => "denied",
        HostAccess::Asked => "asked about",
        HostAccess::Free => "free",
    }
}

impl Inspection {
    /// All networks: first that of all commands, then those of rules and tools.
    pub(super) fn reaches(&self) -> Vec<Reach> {
        let mut requested = self.policy.requested_networks();
        let all = Reach {
            of: "every command".to_owned(),
            origin: self.policy.network_line().cloned(),
            requested: requested.next().unwrap_or(&self.policy.network).clone(),
            approved: self.approved.clone(),
            unasked: self.unasked.clone(),
        };
        let own = self
            .policy
            .own_networks()
            .zip(requested)
            .map(|((whose, own), requested_network)| {
                let profile = |requested| self.derived_with(&own.network, requested).1;
                Reach {
                    of: whose.to_string(),
                    origin: Some(own.origin.clone()),
                    requested: requested_network.clone(),
                    approved: profile(ApprovedRoots::All),
                    unasked: profile(ApprovedRoots::None),
                }
            });
        std::iter::once(all).chain(own).collect()
    }

    /// The profile of a call that has this network, and the call.
    pub(super) fn derived_with(&self, network: &Network, requested: ApprovedRoots) -> (Call, Profile) {
        let call = Call {
            network: Some(network.clone()),
            ..Call::of(requested)
        };
        let profile = self.narrowing.narrow(derive(&self.policy, &call));
        (call, profile)
    }
}

impl NetworkRow {
    pub(super) fn of(reach: &Reach) -> Self {
        let network = &reach.approved.network;
        Self {
            of: reach.of.clone(),
            network: network.to_string(),
            origin: reach.origin.as_ref().map(ToString::to_string),
            hosts: match network {
                Network::Off | Network::Full => Vec::new(),
                Network::Hosts(list) => list.rules().iter().map(row).collect(),
            },
            backends: Regime::WITH_PLANS
                .into_iter()
                .map(|regime| network_status(network, regime))
                .collect(),
        }
    }
}

fn row(rule: &crate::policy::HostRule) -> HostRow {
    HostRow {
        hosts: rule.destination.to_string(),
        access: access_name(rule.access),
        unasked: access_name(match rule.access {
            HostAccess::Free => HostAccess::Free,
            // Without a question about the command there is none about its hosts.
            HostAccess::Asked | HostAccess::Denied => HostAccess::Denied,
        }),
        origin: rule.origin.to_string(),
    }
}

/// What is blocked beyond the network; in namespaces there is a private loopback.
const NO_SOCKETS: &str = "no socket of the internet or of netlink can be made, not even for a loopback";

/// The status of a network in a backend.
pub(super) fn network_status(network: &Network, regime: Regime) -> NetworkStatus {
    const WHY: &str = "a list of hosts takes a network namespace, and there is none";
    let (status, detail) = match (refuse_hosts(network, regime), network, regime) {
        (Err(_refusal), ..) => ("refused", Some(WHY)),
        (Ok(()), Network::Off, Regime::None) => ("refused", Some("nothing confines a command there")),
        (Ok(()), Network::Off, Regime::Landlock) => ("stricter", Some(NO_SOCKETS)),
        (Ok(()), Network::Off, Regime::Namespaces | Regime::Seatbelt)
        | (Ok(()), Network::Full | Network::Hosts(_), _) => ("enforced", None),
    };
    NetworkStatus {
        backend: regime,
        status,
        detail,
    }
}
