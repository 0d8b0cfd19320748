//! A host and a port → a connection to one of its permitted addresses.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::attempt::{Failure, Refusal};
use super::bounds::Bounds;
use super::gate::Gate;
use super::resolve::Resolve;
use crate::policy::Host;
use crate::policy::hosts::{AddressKind, kind};

/// Why no connection was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejected {
    /// None of its addresses may be reached.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name has no address, or no server accepted the connection.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A connection with its address.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
}

/// Connects to a permitted destination. A name is resolved once, and only addresses that passed the checks are connected.
///
/// # Errors
/// No address may be reached, or none takes the connection: the last one's reason.
pub(super) async fn connect(
    gate: &dyn Gate,
    resolver: &dyn Resolve,
    bounds: &Bounds,
    host: &Host,
    port: u16,
) -> Result<Connected, Rejected> {
    let found = match host {
        Host::Name(name) => resolver.resolve(name).await?,
        Host::Address(address) => vec![*address],
    };
    let addresses = judge(gate, own_addresses, &found, port)?;
    let mut failed = Failure::NoAddress;
    for address in addresses.into_iter().take(bounds.addresses) {
        let target = SocketAddr::new(address, port);
        match timeout(bounds.connect_time, TcpStream::connect(target)).await {
            Ok(Ok(stream)) => {
                refuse_self_connection(gate, &stream, target)?;
                // Message boundaries are unknown here, so nothing is delayed.
                drop(stream.set_nodelay(true));
                return Ok(Connected {
                    stream,
                    address: target,
                });
            }
            Ok(Err(why)) if why.kind() == io::ErrorKind::ConnectionRefused => {
                failed = Failure::ConnectionRefused(target);
            }
            Ok(Err(_)) => failed = Failure::Unreachable(target),
            Err(_late) => failed = Failure::ConnectTime(target),
        }
    }
    Err(failed.into())
}

/// The permitted addresses, in order and without duplicates.
pub(super) fn judge(
    gate: &dyn Gate,
    own: impl FnOnce() -> Result<BTreeSet<IpAddr>, Refusal>,
    found: &[IpAddr],
    port: u16,
) -> Result<Vec<IpAddr>, Rejected> {
    if found.is_empty() {
        return Err(Failure::NoAddress.into());
    }
    let own = own()?;
    let (mut allowed, mut refused) = (Vec::new(), None);
    for address in found.iter().map(IpAddr::to_canonical) {
        let why = match kind(address) {
            kind @ AddressKind::Unusable(_) => Some(Refusal::Address { address, kind }),
            kind @ AddressKind::Special(_) => {
                (!gate.reaches(address, port)).then_some(Refusal::Address { address, kind })
            }
            AddressKind::Public => {
                (own.contains(&address) && !gate.reaches(address, port)).then_some(Refusal::OwnAddress(address))
            }
        };
        match why {
            Some(why) => refused = refused.or(Some(why)),
            None if allowed.contains(&address) => {}
            None => allowed.push(address),
        }
    }
    match refused {
        Some(why) if allowed.is_empty() => Err(why.into()),
        Some(_) | None => Ok(allowed),
    }
}

/// The addresses of this machine's interfaces.
fn own_addresses() -> Result<BTreeSet<IpAddr>, Refusal> {
    let interfaces = getifaddrs()
        .map_err(|_| Refusal::Other("cannot be told from this machine, whose addresses cannot be read".into()))?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    });
    Ok(addresses.map(|address| address.to_canonical()).collect())
}

/// Refuses a connection of this machine to itself. The check of addresses may miss one that no interface has.
fn refuse_self_connection(gate: &dyn Gate, stream: &TcpStream, target: SocketAddr) -> Result<(), Rejected> {
    let here = stream.local_addr().map_err(|_| Failure::Unreachable(target))?;
    if here == target {
        // The socket connected to itself: nothing listens there.
        return Err(Failure::ConnectionRefused(target).into());
    }
    if here.ip() == target.ip() && !gate.reaches(target.ip(), target.port()) {
        return Err(Refusal::OwnAddress(target.ip()).into());
    }
    Ok(())
}
