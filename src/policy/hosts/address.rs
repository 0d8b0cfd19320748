//! Kinds of IP addresses.
//!
//! Sources: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890 and its updates).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeSet;
use std::fmt;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The kind of an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressKind {
    /// A host of the internet.
    Public,
    /// Not on the internet: private, loopback, link-local, metadata, reserved, or a tunnel to such.
    Special(&'static str),
    /// No single host: the unspecified address (which Linux takes for loopback), multicast, broadcast. Never reached.
    Unusable(&'static str),
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Special(name) | Self::Unusable(name) => name,
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(head: [u16; 4], prefix: u8) -> Ipv6Net {
    let [a, b, c, d] = head;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix)
}

use AddressKind::{Special, Unusable};

/// The first network that contains an address decides.
const SPECIAL_V4: [(Ipv4Net, AddressKind); 18] = [
    (v4(0, 0, 0, 0, 8), Unusable("the unspecified network")),
    (v4(10, 0, 0, 0, 8), Special("private")),
    (v4(100, 64, 0, 0, 10), Special("shared by a carrier or a cloud")),
    (v4(127, 0, 0, 0, 8), Special("loopback")),
    (
        v4(169, 254, 0, 0, 16),
        Special("link-local, where clouds serve metadata"),
    ),
    (v4(172, 16, 0, 0, 12), Special("private")),
    (v4(192, 0, 0, 0, 24), Special("reserved")),
    (v4(192, 0, 2, 0, 24), Special("for documentation")),
    (v4(192, 88, 99, 0, 24), Special("a relay")),
    (v4(192, 168, 0, 0, 16), Special("private")),
    (v4(198, 18, 0, 0, 15), Special("for benchmarks")),
    (v4(198, 51, 100, 0, 24), Special("for documentation")),
    (v4(203, 0, 113, 0, 24), Special("for documentation")),
    (v4(168, 63, 129, 16, 32), Special("a cloud's own service")),
    (v4(255, 255, 255, 255, 32), Unusable("broadcast")),
    (v4(224, 0, 0, 0, 4), Unusable("multicast")),
    (v4(240, 0, 0, 0, 5), Special("reserved")),
    (v4(248, 0, 0, 0, 5), Special("reserved")),
];

const SPECIAL_V6: [(Ipv6Net, AddressKind); 11] = [
    (v6([0x2001, 0, 0, 0], 23), Special("reserved for protocols")),
    (v6([0x2001, 0xdb8, 0, 0], 32), Special("for documentation")),
    (v6([0x2002, 0, 0, 0], 16), Special("a tunnel to an IPv4 address")),
    (v6([0x3fff, 0, 0, 0], 20), Special("for documentation")),
    (v6([0x64, 0xff9b, 0, 0], 32), Special("a translated IPv4 address")),
    (v6([0xfc00, 0, 0, 0], 7), Special("private")),
    (v6([0xfe80, 0, 0, 0], 10), Special("link-local")),
    (v6([0xfec0, 0, 0, 0], 10), Special("private")),
    (v6([0xff00, 0, 0, 0], 8), Unusable("multicast")),
    (v6([0x100, 0, 0, 0], 64), Special("discarded")),
    (v6([0x5f00, 0, 0, 0], 16), Special("reserved")),
];

/// The only addresses of IPv6 that are handed out to hosts of the internet.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0], 3);

/// The kind of an address; a mapped IPv4 address has the kind of the IPv4 address.
pub fn kind(address: IpAddr) -> AddressKind {
    match address.to_canonical() {
        IpAddr::V4(address) => SPECIAL_V4
            .iter()
            .find(|(net, _)| net.contains(&address))
            .map_or(AddressKind::Public, |(_, kind)| *kind),
        IpAddr::V6(address) if address.is_unspecified() => Unusable("the unspecified address"),
        IpAddr::V6(address) if address.is_loopback() => Special("loopback"),
        IpAddr::V6(address) => SPECIAL_V6
            .iter()
            .find(|(net, _)| net.contains(&address))
            .map(|(_, kind)| *kind)
            .or_else(|| GLOBAL_V6.contains(&address).then_some(AddressKind::Public))
            .unwrap_or(Special("reserved")),
    }
}

/// The kinds of the addresses in a network.
pub fn kinds(net: IpNet) -> BTreeSet<AddressKind> {
    let inside = boundaries().filter(|address| net.contains(address));
    inside.chain([net.network()]).map(kind).collect()
}

/// The addresses at which the kind may change, in ascending order of each family: the first of each range, and the first after it.
pub(super) fn boundaries() -> impl Iterator<Item = IpAddr> {
    let four = SPECIAL_V4.iter().flat_map(|(net, _)| {
        let after = u32::from(net.broadcast()).checked_add(1).map(Ipv4Addr::from);
        [Some(net.network()), after].into_iter().flatten().map(IpAddr::V4)
    });
    let six = SPECIAL_V6
        .iter()
        .map(|(net, _)| *net)
        .chain([GLOBAL_V6])
        .flat_map(|net| {
            let after = u128::from(net.broadcast()).checked_add(1).map(Ipv6Addr::from);
            [Some(net.network()), after].into_iter().flatten().map(IpAddr::V6)
        });
    // Mapped IPv4 addresses are no IPv6 range; the address after them is a boundary.
    let low = [0, 1, 2, 1 << 48].map(|bits: u128| IpAddr::V6(Ipv6Addr::from(bits)));
    four.chain(six).chain(low)
}
