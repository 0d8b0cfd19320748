//! The laws of lists of hosts, held against an oracle that reads the entries by itself, host by host.

use std::net::IpAddr;
use std::sync::LazyLock;

use proptest::prelude::*;
use stockade::policy::{Host, HostAccess, HostList, HostRule, Network};

use super::make::{self, PLACES};

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Public,
    Special,
    Unusable,
}
use Kind::{Name, Public, Special, Unusable};

/// Hosts inside, outside and at the edges of everything in `PLACES`, each with its kind by hand.
const HOSTS: [(&str, Kind); 66] = [
    ("example", Name),
    ("a.example", Name),
    ("b.a.example", Name),
    ("c.b.a.example", Name),
    ("z.a.example", Name),
    ("z.example", Name),
    ("q.z.example", Name),
    ("xa.example", Name),
    ("aexample", Name),
    ("other.org", Name),
    ("z.other.org", Name),
    ("org", Name),
    ("localhost", Name),
    ("z", Name),
    ("8.8.8.8", Public),
    ("8.8.8.9", Public),
    ("8.8.8.0", Public),
    ("8.8.8.255", Public),
    ("8.8.9.0", Public),
    ("8.8.7.255", Public),
    ("7.255.255.255", Public),
    ("9.9.9.9", Public),
    ("11.0.0.0", Public),
    ("15.255.255.255", Public),
    ("16.0.0.0", Public),
    ("126.255.255.255", Public),
    ("128.0.0.0", Public),
    ("172.15.255.255", Public),
    ("172.32.0.0", Public),
    ("192.169.0.0", Public),
    ("223.255.255.255", Public),
    ("2606:4700::1", Public),
    ("2606:4701::", Public),
    ("2606:46ff:ffff::", Public),
    ("2000::", Public),
    ("3ffe::1", Public),
    ("10.0.0.0", Special),
    ("10.1.0.0", Special),
    ("10.1.2.3", Special),
    ("10.1.2.4", Special),
    ("10.2.0.0", Special),
    ("10.255.255.255", Special),
    ("100.64.0.1", Special),
    ("127.0.0.1", Special),
    ("127.0.0.2", Special),
    ("169.254.169.254", Special),
    ("169.254.0.1", Special),
    ("172.16.0.1", Special),
    ("192.168.1.1", Special),
    ("198.18.0.1", Special),
    ("203.0.113.1", Special),
    ("240.0.0.1", Special),
    ("::1", Special),
    ("::2", Special),
    ("2001:db8::1", Special),
    ("2001::1", Special),
    ("2002::1", Special),
    ("64:ff9b::808:808", Special),
    ("fc00::1", Special),
    ("fd00::1", Special),
    ("fe80::1", Special),
    ("4000::1", Special),
    ("0.0.0.0", Unusable),
    ("224.0.0.1", Unusable),
    ("255.255.255.255", Unusable),
    ("::", Unusable),
];

/// Ports inside, outside and at the edges of all sets.
const PORTS: [u16; 17] = [
    1, 2, 78, 79, 80, 81, 82, 442, 443, 444, 445, 1023, 1024, 1025, 65533, 65534, 65535,
];

static UNIVERSE: LazyLock<Vec<(Host, &'static str, Kind)>> = LazyLock::new(|| {
    let hosts = HOSTS.iter();
    hosts
        .map(|(text, kind)| (Host::parse(text).unwrap(), *text, *kind))
        .collect()
});

/// Whether an entry of [`PLACES`] names a host, from the two texts.
fn names(entry: &str, host: &str, kind: Kind) -> bool {
    let bits = |text: &str| match text.parse::<IpAddr>().unwrap() {
        IpAddr::V4(address) => (4, u128::from(address.to_bits()) << 96),
        IpAddr::V6(address) => (6, address.to_bits()),
    };
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let (net, prefix) = bare
        .split_once('/')
        .map_or((bare, None), |(net, prefix)| (net, prefix.parse::<u32>().ok()));
    match (entry, kind) {
        (_, Unusable) => false,
        ("*", _) => kind != Special,
        (_, Name) => match entry.strip_prefix('*') {
            Some(suffix) => host.ends_with(suffix) && host.len() > suffix.len(),
            None => host == entry,
        },
        (_, Public | Special) => {
            net.parse::<IpAddr>().is_ok() && {
                let ((family, net), (of_host, host)) = (bits(net), bits(host));
                let all = if family == 4 { 32 } else { 128 };
                let prefix = prefix.unwrap_or(all);
                family == of_host && (prefix == 0 || net >> (128 - prefix) == host >> (128 - prefix))
            }
        }
    }
}

/// Whether a set of ports of `make::PORTS` has one.
fn has(ports: &str, port: u16) -> bool {
    ports.split(',').any(|part| match part.split_once('-') {
        _ if part == "*" => true,
        Some((first, last)) => first.parse::<u16>().unwrap() <= port && port <= last.parse::<u16>().unwrap(),
        None => part.parse::<u16>().unwrap() == port,
    })
}

/// What a set of entries gives.
fn naive(rules: &[HostRule], host: &str, kind: Kind, port: u16) -> HostAccess {
    let matching = rules.iter().filter(|rule| {
        let text = rule.destination.to_string();
        let (hosts, ports) = text.rsplit_once(':').unwrap();
        names(hosts, host, kind) && has(ports, port)
    });
    matching.map(|rule| rule.access).max().unwrap_or(HostAccess::Denied)
}

/// Every question of the universe.
fn questions() -> impl Iterator<Item = (&'static Host, &'static str, Kind, u16)> {
    let hosts = UNIVERSE.iter();
    hosts.flat_map(|(host, text, kind)| PORTS.map(|port| (host, *text, *kind, port)))
}

/// The first question that `a` answers more freely than `b`.
fn freer(a: &Network, b: &Network) -> Option<String> {
    let more = questions().find(|(host, .., port)| a.access(host, *port) > b.access(host, *port));
    more.map(|(host, .., port)| format!("{host}:{port}"))
}

fn list(rules: &[HostRule]) -> HostList {
    HostList::new(rules.iter().cloned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_answers_as_its_entries_say(rules in make::hosts()) {
        let list = list(&rules);
        for (host, text, kind, port) in questions() {
            prop_assert_eq!(list.access(host, port), naive(&rules, text, kind, port), "{}:{}", text, port);
        }
    }

    #[test]
    fn a_list_has_one_form(rules in make::hosts()) {
        let made = list(&rules);
        prop_assert_eq!(&list(made.rules()), &made);
        let turned: Vec<HostRule> = rules.iter().rev().chain(&rules).cloned().collect();
        prop_assert_eq!(&list(&turned), &made);
    }

    #[test]
    fn the_order_agrees_with_every_host_and_its_witness_is_one(a in make::network(), b in make::network()) {
        match a.within(&b) {
            Ok(()) => prop_assert_eq!(freer(&a, &b), None),
            Err(stockade::policy::NetworkWitness::EveryHost) => prop_assert_eq!(&a, &Network::Full),
            Err(stockade::policy::NetworkWitness::Host(witness)) => {
                prop_assert_eq!(a.access(&witness.host, witness.port), witness.access);
                prop_assert_eq!(b.access(&witness.host, witness.port), witness.other_access);
                prop_assert!(witness.access > witness.other_access);
            }
        }
        prop_assert_eq!(a.beyond(&b).is_empty(), a.within(&b).is_ok());
        prop_assert_eq!(a.within(&a), Ok(()));
    }

    #[test]
    fn one_entry_more_is_seen(rules in make::hosts(), more in make::hosts()) {
        let all: Vec<HostRule> = rules.iter().chain(&more).cloned().collect();
        let (few, many) = (Network::hosts(list(&rules)), Network::hosts(list(&all)));
        prop_assert_eq!(few.within(&many), Ok(()));
        if freer(&many, &few).is_some() {
            prop_assert!(many.within(&few).is_err());
        }
    }

    #[test]
    fn the_meet_is_the_greatest_below_both(a in make::network(), b in make::network()) {
        let meet = a.and(&b);
        prop_assert_eq!(meet.within(&a), Ok(()));
        prop_assert_eq!(meet.within(&b), Ok(()));
        for (host, .., port) in questions() {
            prop_assert_eq!(meet.access(host, port), a.access(host, port).min(b.access(host, port)), "{}:{}", host, port);
        }
        prop_assert_eq!(meet.and(&a), meet.clone());
        prop_assert_eq!(b.and(&a), meet);
    }

    #[test]
    fn the_meet_is_idempotent_and_associative(a in make::network(), b in make::network(), c in make::network()) {
        prop_assert_eq!(&a.and(&a), &a);
        let (left, right) = (a.and(&b).and(&c), a.and(&b.and(&c)));
        prop_assert_eq!(left.within(&right), Ok(()));
        prop_assert_eq!(right.within(&left), Ok(()));
    }

    #[test]
    fn who_is_not_asked_gets_what_is_free(a in make::network(), b in make::network()) {
        let unasked = a.free_only();
        prop_assert_eq!(unasked.within(&a), Ok(()));
        for (host, .., port) in questions() {
            let expected = match a.access(host, port) {
                HostAccess::Free => HostAccess::Free,
                HostAccess::Asked | HostAccess::Denied => HostAccess::Denied,
            };
            prop_assert_eq!(unasked.access(host, port), expected, "{}:{}", host, port);
        }
        // It never widens, whichever way round it is taken.
        let (first, last) = (a.free_only().and(&b.free_only()), a.and(&b).free_only());
        prop_assert_eq!(first.within(&last), Ok(()));
        prop_assert_eq!(last.within(&first), Ok(()));
    }
}

#[test]
fn every_entry_is_told_apart_by_some_host() {
    for entry in PLACES {
        let named = HOSTS.iter().filter(|(host, kind)| names(entry, host, *kind)).count();
        assert!(named > 0 && named < HOSTS.len(), "{entry}");
    }
}
