//! Lists of hosts. What is read is written in one form that reads as the same; the order and the meet of two lists
//! agree with what they answer.
//!
//! The input is lines of entries: those up to an empty line are one list, the rest another. `?` in front asks.

use std::time::Duration;

use crate::bounds::{Bounds, bounded};
use stockade::policy::{Destination, Host, HostAccess, HostList, HostRule, Network, NetworkWitness, Origin};

const BOUNDS: Bounds = Bounds {
    bytes: 64 << 20,
    per_byte: 64 << 10,
    time: Duration::from_secs(5),
};

/// More entries than this say nothing new, and the order tries each against each.
const MAX_RULES: usize = 12;

pub(crate) fn run(input: &[u8]) {
    bounded(input, BOUNDS, || read(&String::from_utf8_lossy(input)));
}

fn read(text: &str) {
    for line in text.lines() {
        if let Ok(host) = Host::parse(line) {
            assert_eq!(Host::parse(&host.to_string()).as_ref(), Ok(&host), "{line:?}");
        }
    }
    let mut lists = text.split("\n\n");
    let mut list = || {
        Network::hosts(HostList::new(
            lists
                .next()
                .unwrap_or_default()
                .lines()
                .filter_map(rule)
                .take(MAX_RULES),
        ))
    };
    let (a, b) = (list(), list());
    let meet = a.and(&b);
    for (tight, wide) in [(&meet, &a), (&meet, &b), (&a.free_only(), &a)] {
        assert_eq!(tight.within(wide), Ok(()), "{tight} {wide}");
    }
    assert_eq!(a.and(&a), a);
    assert_eq!(b.and(&a), meet);
    for (wide, tight) in [(&a, &b), (&b, &a)] {
        match wide.within(tight) {
            Ok(()) => assert_eq!(wide.within(&meet), Ok(())),
            Err(NetworkWitness::EveryHost) => unreachable!("neither gives every host"),
            Err(NetworkWitness::Host(witness)) => {
                assert_eq!(wide.access(&witness.host, witness.port), witness.access);
                assert_eq!(tight.access(&witness.host, witness.port), witness.other_access);
                assert!(witness.access > witness.other_access);
            }
        }
    }
}

fn rule(line: &str) -> Option<HostRule> {
    let (access, entry) = match line.strip_prefix('?') {
        Some(entry) => (HostAccess::Asked, entry),
        None => (HostAccess::Free, line),
    };
    let destination = Destination::parse(entry).ok()?;
    assert_eq!(
        Destination::parse(&destination.to_string()).as_ref(),
        Ok(&destination),
        "{entry:?}"
    );
    Some(HostRule {
        destination,
        access,
        origin: Origin::Builtin("fuzzing"),
    })
}
