//! The rules of a list by their patterns, so that a lookup does not scan all of them.

use core::net::IpAddr;
use std::collections::{BTreeSet, HashMap};

use ipnet::IpNet;

use super::host::Host;
use super::pattern::{Destination, HostPattern};
use super::rule::HostRule;

/// Rules by their pattern.
#[derive(Debug, Default)]
pub(super) struct Index<'a> {
    rules: HashMap<&'a HostPattern, Vec<(usize, &'a HostRule)>>,
    /// The port ranges by pattern, in order, each with the largest last port of the ranges up to it.
    ranges: HashMap<&'a HostPattern, Vec<Range>>,
    /// The prefix lengths of its networks.
    prefixes: BTreeSet<u8>,
}

/// Some ports of a rule.
#[derive(Debug)]
struct Range {
    first: u16,
    last: u16,
    up_to: u16,
    /// The rule.
    at: usize,
}

impl<'a> Index<'a> {
    /// Indexes these rules by their position in the list.
    pub(super) fn of(rules: &'a [HostRule]) -> Self {
        let mut index = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            let hosts = &rule.destination.hosts;
            if let HostPattern::Net(net) | HostPattern::PublicNet(net) = hosts {
                index.prefixes.insert(net.prefix_len());
            }
            index.rules.entry(hosts).or_default().push((at, rule));
            let ranges = rule.destination.ports.ranges().iter();
            index
                .ranges
                .entry(hosts)
                .or_default()
                .extend(ranges.map(|(first, last)| Range {
                    first: *first,
                    last: *last,
                    up_to: *last,
                    at,
                }));
        }
        for ranges in index.ranges.values_mut() {
            ranges.sort_unstable_by_key(|range| (range.first, range.at));
            let mut up_to = 0;
            for range in ranges {
                up_to = up_to.max(range.last);
                range.up_to = up_to;
            }
        }
        index
    }

    /// The rules that match this host on some port.
    pub(super) fn holding(&self, host: &Host) -> Vec<&'a HostRule> {
        let around = match host {
            Host::Name(name) => self.around(&HostPattern::Name(name.clone())),
            Host::Address(address) => self.around(&HostPattern::Net((*address).into())),
        };
        let all = around.into_iter().map(|(_, rule)| rule);
        all.filter(|rule| rule.destination.hosts.holds(host)).collect()
    }

    /// The rules that may cover a place: around its hosts, with its first port among their own.
    pub(super) fn covering(&self, destination: &Destination) -> Vec<usize> {
        let Some((port, _)) = destination.ports.ranges().first() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for ranges in self
            .patterns(&destination.hosts)
            .iter()
            .filter_map(|pattern| self.ranges.get(pattern))
        {
            let begun = ranges.partition_point(|range| range.first <= *port);
            let begun = ranges.get(..begun).unwrap_or_default().iter().rev();
            let open = begun.take_while(|range| range.up_to >= *port);
            found.extend(open.filter(|range| range.last >= *port).map(|range| range.at));
        }
        found
    }

    /// The rules that may match all hosts of this pattern, or all its public addresses. Any other rule that matches one of its hosts
    /// lies within it.
    pub(super) fn around(&self, pattern: &HostPattern) -> Vec<(usize, &'a HostRule)> {
        let patterns = self.patterns(pattern);
        let found = patterns.iter().filter_map(|pattern| self.rules.get(pattern));
        found.flatten().copied().collect()
    }

    fn patterns(&self, pattern: &HostPattern) -> Vec<HostPattern> {
        let mut patterns = vec![HostPattern::Every];
        match pattern {
            HostPattern::Every => {}
            HostPattern::Name(name) | HostPattern::Below(name) => {
                patterns.push(pattern.clone());
                patterns.extend(name.above().map(HostPattern::Below));
            }
            HostPattern::Net(net) | HostPattern::PublicNet(net) => {
                for net in self.prefixes.iter().filter_map(|prefix| around(*net, *prefix)) {
                    patterns.extend([HostPattern::Net(net), HostPattern::PublicNet(net)]);
                }
            }
        }
        patterns
    }
}

/// The network with this prefix length that contains another.
fn around(net: IpNet, prefix: u8) -> Option<IpNet> {
    if prefix > net.prefix_len() {
        return None;
    }
    let address: IpAddr = net.network();
    IpNet::new(address, prefix).ok().map(|net| net.trunc())
}

#[cfg(test)]
mod tests {
    use super::super::HostList;
    use super::*;
    use crate::policy::Origin;

    #[test]
    fn of_very_many_rules_only_those_around_a_host_are_looked_at() {
        let rule = |entry: String| HostRule::free(Destination::parse(&entry).unwrap(), Origin::Builtin("a test"));
        let names = (0..40_000).map(|number| rule(format!("h{number}.example.org:443")));
        let nets = (0..20_000_u32).map(|number| rule(format!("10.{}.{}.0/24:443", number / 250, number % 250)));
        let wide = [rule("*.example.org:80".to_owned()), rule("10.0.0.0/8:22".to_owned())];
        let list = HostList::new(names.chain(nets).chain(wide));
        assert_eq!(list.rules().len(), 60_002);
        let index = Index::of(list.rules());
        for (host, count) in [
            ("h7.example.org", 2),
            ("x.example.org", 1),
            ("10.3.4.5", 2),
            ("192.0.2.1", 0),
        ] {
            let host = Host::parse(host).unwrap();
            assert_eq!(index.holding(&host).len(), count, "{host}");
        }
        let ports = HostList::new((1..=40_000).map(|port| rule(format!("h.example.org:{port}"))));
        assert_eq!(ports.rules().len(), 40_000);
        assert_eq!(
            Index::of(ports.rules()).covering(&ports.rules()[7].destination).len(),
            1
        );
        assert_eq!(ports.within(&ports), Ok(()));
        assert_eq!(list.within(&list), Ok(()));
        assert_eq!(list.and(&list), list);
    }
}
