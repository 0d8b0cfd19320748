//! Opens a tunnel or a request: the gate decides, then a server is connected.

use tokio::net::TcpStream;

use super::attempt::AttemptResult;
use super::client::Client;
use super::connect::{Connected, Rejected, connect};
use super::gate::{ConnectRequest, Verdict};
use super::record::Record;
use super::state::ProxyState;
use crate::policy::Host;

/// A tunnel with both ends connected, after the client was told so.
pub(super) struct Opened<'a> {
    pub(super) record: Record<'a>,
    pub(super) server: TcpStream,
    pub(super) host: Host,
    pub(super) port: u16,
}

/// Asks the gate, then connects. Both stop when the client closes its connection.
pub(super) async fn open(
    state: &ProxyState,
    client: &mut Client,
    request: &ConnectRequest,
) -> Result<Connected, AttemptResult> {
    let gate = &*state.gate;
    let verdict = client.unless_closed(gate.decide(request.clone())).await;
    match verdict.map_err(AttemptResult::Abandoned)? {
        Verdict::Allowed => {}
        Verdict::Refused(why) => return Err(AttemptResult::Refused(why)),
    }
    let connecting = connect(gate, &*state.resolver, &state.bounds, &request.host, request.port);
    match client
        .unless_closed(connecting)
        .await
        .map_err(AttemptResult::Abandoned)?
    {
        Ok(connected) => Ok(connected),
        Err(Rejected::Refused(why)) => Err(AttemptResult::Refused(why)),
        Err(Rejected::Failed(why)) => Err(AttemptResult::Failed(why)),
    }
}
