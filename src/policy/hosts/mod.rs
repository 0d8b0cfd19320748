//! Hosts that may be reached: a function from host and port to denied, asked or free.
//!
//! Text becomes a [`Host`] or a [`HostPattern`] once, in one canonical form: lower case, no trailing dot, IDNA,
//! addresses as numbers, an IPv4 address inside an IPv6 one taken out of it. Nothing is compared before that.
//!
//! A [`HostList`] is a set of rules; the widest that matches decides. So order, intersection and canonical form are
//! exact: each is decided on the finitely many classes into which two lists divide hosts and ports, and a
//! failure has a witness.
//!
//! An address that is not public (private, loopback, link-local, metadata) is reached only where a rule names
//! it by number: no name, and no `*`, ever leads there.

mod address;
mod host;
mod index;
mod list;
mod order;
mod pattern;
mod ports;
mod rule;
#[cfg(test)]
mod tests;

pub use address::{AddressKind, kind, kinds};
pub use host::{Host, HostError, HostName};
pub use list::HostList;
pub use order::HostWitness;
pub use pattern::{Destination, HostPattern, PatternError};
pub use ports::{Ports, PortsError};
pub use rule::{HostAccess, HostRule};
