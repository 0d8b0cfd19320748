//! Opens what a client asks for: the gate decides, then a server is connected.

use tokio::net::TcpStream;

use super::attempt::Outcome;
use super::client::Client;
use super::connect::{Connected, Rejected, connect};
use super::gate::{Verdict, Wanted};
use super::record::Record;
use super::served::Served;
use crate::policy::Host;

/// A tunnel whose ends are connected, and whose client knows it.
pub(super) struct Opened<'a> {
    pub(super) record: Record<'a>,
    pub(super) server: TcpStream,
    pub(super) host: Host,
    pub(super) port: u16,
}

/// Has the gate decide, and connects. A client that leaves meanwhile ends both.
pub(super) async fn open(served: &Served, client: &mut Client, wanted: &Wanted) -> Result<Connected, Outcome> {
    let gate = &*served.gate;
    let verdict = client.watched(gate.decide(wanted.clone())).await;
    match verdict.map_err(Outcome::Abandoned)? {
        Verdict::Allowed => {}
        Verdict::Refused(why) => return Err(Outcome::Refused(why)),
    }
    let connecting = connect(gate, &*served.resolver, &served.bounds, &wanted.host, wanted.port);
    match client.watched(connecting).await.map_err(Outcome::Abandoned)? {
        Ok(connected) => Ok(connected),
        Err(Rejected::Refused(why)) => Err(Outcome::Refused(why)),
        Err(Rejected::Failed(why)) => Err(Outcome::Failed(why)),
    }
}
