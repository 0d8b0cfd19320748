//! The reach of a network, in a few words.

use crate::policy::{HostAccess, Network};

/// A network in a few words; questions and `profile show` name all of its hosts.
pub(super) fn network_summary(network: &Network) -> String {
    const MAX_HOSTS: usize = 4;
    match network {
        Network::Off => "off".to_owned(),
        Network::Full => "on".to_owned(),
        Network::Hosts(list) => {
            let free: Vec<String> = list
                .only(HostAccess::Free)
                .map(|rule| rule.destination.to_string())
                .collect();
            let asks = if list.asks() { "asks for others" } else { "" };
            let more = free.len().saturating_sub(MAX_HOSTS);
            let mut parts: Vec<String> = free.into_iter().take(MAX_HOSTS).collect();
            if more > 0 {
                parts.push(format!("and {more} more"));
            }
            let only = if parts.is_empty() {
                String::new()
            } else {
                format!("only {}", parts.join(", "))
            };
            let both: Vec<&str> = [only.as_str(), asks]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            both.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Destination, HostList, HostRule, Origin};

    fn list(entries: &[&str]) -> Network {
        Network::hosts(HostList::new(entries.iter().map(|entry| HostRule {
            destination: Destination::parse(entry.trim_start_matches('?')).unwrap(),
            access: if entry.starts_with('?') {
                HostAccess::Asked
            } else {
                HostAccess::Free
            },
            origin: Origin::Builtin("a test"),
        })))
    }

    #[test]
    fn a_network_is_told_in_a_few_words() {
        for (network, parts) in [
            (Network::Off, "off"),
            (Network::Full, "on"),
            (list(&[]), "off"),
            (list(&["a.example:443"]), "only a.example:443"),
            (list(&["?*:*"]), "asks for others"),
            (list(&["a.example:443", "?*:*"]), "only a.example:443, asks for others"),
            (
                list(&["a:1", "b:1", "c:1", "d:1", "e:1", "f:1"]),
                "only a:1, b:1, c:1, d:1, and 2 more",
            ),
        ] {
            assert_eq!(network_summary(&network), parts);
        }
    }
}
