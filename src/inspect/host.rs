//! One host and port: what becomes of a connection, which line decides, and what would change it.

use serde::Serialize;

use super::hosts::{NetworkStatus, Reach, access_name, network_status};
use super::inspection::Inspection;
pub use super::sources::Decider;
use super::sources::Sources;
use crate::policy::hosts::{AddressKind, kind};
use crate::policy::{Host, HostAccess};
use crate::tools::explain::Clause;
use crate::tools::network::Bounds;

/// The answers about one host and port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// The host, in canonical form.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What kind of address it is: `public`, `private`, … None for a name.
    pub kind: Option<String>,
    /// What holds whatever any list says.
    pub notes: Vec<String>,
    /// For every command, and for what has a network of its own.
    pub answers: Vec<HostAnswer>,
}

/// The answer of one network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostAnswer {
    /// Whose network it is.
    pub of: String,
    /// What an approved command gets: `free`, `asked about` or `denied`.
    pub access: &'static str,
    /// What a command gets that nobody was asked about.
    pub unasked: &'static str,
    /// Who decides: the first of those that give least.
    pub decides: Decider,
    /// The line of theirs that does, or what stands for one.
    pub origin: String,
    /// The entry of theirs that does, or the whole network where it is off or full; none where no entry names the host.
    pub clause: Option<Clause>,
    /// What each backend makes of it.
    pub backends: Vec<NetworkStatus>,
    /// What would change the answer.
    pub change: Vec<String>,
    /// What else holds.
    pub notes: Vec<String>,
}

impl HostReport {
    /// Whether somebody may connect, be it after a yes.
    pub fn permits(&self) -> bool {
        self.answers
            .iter()
            .any(|answer| answer.access != access_name(HostAccess::Denied))
    }
}

impl Inspection {
    /// Explains a connection to a host and port.
    pub fn explain_host(&self, host: &Host, port: u16) -> HostReport {
        let answers = self
            .reaches()
            .into_iter()
            .map(|reach| self.host_answer(&reach, host, port));
        let (kind, note) = match host {
            Host::Name(_) => (
                None,
                "a name leads to public addresses only: to any other where that address is listed itself".to_owned(),
            ),
            Host::Address(address) => {
                let kind = kind(*address);
                let note = match kind {
                    AddressKind::Public => "a host of the internet".to_owned(),
                    AddressKind::Special(name) => {
                        format!("not of the internet ({name}): reached only where it is listed by number")
                    }
                    AddressKind::Unusable(name) => format!("no host is reached there: it is {name}"),
                };
                (Some(kind.to_string()), note)
            }
        };
        HostReport {
            host: host.to_string(),
            port,
            kind,
            notes: vec![note],
            answers: answers.collect(),
        }
    }

    fn host_answer(&self, reach: &Reach, host: &Host, port: u16) -> HostAnswer {
        let (network, access) = (&reach.approved.network, reach.approved.network.access(host, port));
        let backends = self.backends.iter().map(|backend| network_status(network, *backend));
        let bounds = Bounds::of(&self.policy, &self.narrowing);
        let sources = Sources::of(reach, &bounds, host, port);
        let deciding = sources.deciding();
        HostAnswer {
            of: reach.of.clone(),
            access: access_name(access),
            unasked: access_name(reach.unasked.network.access(host, port)),
            decides: deciding.who,
            origin: deciding.line.clone(),
            clause: deciding.clause(host, port),
            backends: backends.collect(),
            change: sources.change(),
            notes: sources.notes(),
        }
    }
}
