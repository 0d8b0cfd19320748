//! A way out, for as long as one command lives.

use std::sync::Arc;

use super::gate::{HostGate, ReportRefusal};
use super::question::{About, Asker};
use super::tried::NetworkUse;
use crate::confine::Confinement;
use crate::confine::io::IoError;
use crate::confine::way_out::{WayOut, client_process as process_of};
use crate::policy::Network;
use crate::profile::Profile;
use crate::proxy::{Bounds, Proxy, SystemResolver};
use crate::tools::call::ToolError;

/// A proxy between the sockets in a command's network namespace and the hosts that it may reach.
#[derive(Debug)]
pub(in crate::tools) struct ProxySession {
    proxy: Proxy,
    gate: GateGuard,
    out: WayOut,
}

/// Withdraws the gate's questions when it is dropped.
#[derive(Debug)]
struct GateGuard(Arc<HostGate>);

impl Drop for GateGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl ProxySession {
    /// A way out for the next command of this forker, if its profile has one.
    pub(in crate::tools) async fn open(
        forker: &mut Confinement,
        profile: &Profile,
        about: About,
        asker: Option<Asker>,
        report: Option<ReportRefusal>,
    ) -> Result<Option<Self>, ToolError> {
        let list = match &profile.network {
            Network::Off | Network::Full => return Ok(None),
            Network::Hosts(list) => list.clone(),
        };
        let out = forker.way_out().await?;
        let supervisor = forker.supervisor_pid();
        let find_process = Arc::new(move |client| process_of(supervisor, client).map(|asker| asker.to_string()));
        let gate = Arc::new(HostGate::new(list, about, asker, find_process, report));
        let unwatched = |error| ToolError::Io(IoError::Watch(error));
        let listeners = out.listeners().map_err(unwatched)?;
        let (shared_gate, resolver) = (Arc::clone(&gate), Arc::new(SystemResolver::default()));
        let proxy = Proxy::start(listeners, shared_gate, resolver, Bounds::default()).map_err(unwatched)?;
        Ok(Some(Self {
            proxy,
            gate: GateGuard(gate),
            out,
        }))
    }

    /// The port of the proxy, on the loopback of the command's network namespace.
    pub(in crate::tools) fn port(&self) -> u16 {
        self.out.port()
    }

    /// The gate, for whoever knows first that the command has ended.
    pub(in crate::tools) fn gate(&self) -> Arc<HostGate> {
        Arc::clone(&self.gate.0)
    }

    /// Ends the proxy, if there is one, and reports what was tried.
    pub(in crate::tools) async fn close(session: Option<Self>) -> Option<NetworkUse> {
        let session = session?;
        session.gate.0.end();
        // No new connections; those that wait are refused.
        drop(session.out);
        session.proxy.stop().await;
        Some(session.gate.0.tried())
    }
}
