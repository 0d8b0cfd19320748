//! The rules that every profile has. The text files give the reason for each.

use super::parse::{ParseError, parse_text};
use super::syntax::Rule;
use crate::policy::Network;

/// The shipped texts: the base, and what a full network adds.
pub const TEXTS: [&str; 2] = [
    include_str!("../../../profiles/seatbelt-base.sbpl"),
    include_str!("../../../profiles/seatbelt-network.sbpl"),
];

/// The rules of every profile with this network.
pub fn rules(network: &Network) -> Result<Vec<Rule>, ParseError> {
    let [always, full] = TEXTS;
    let text = match network {
        // Lowering refuses a list of hosts, so it gets no rules here.
        Network::Off | Network::Hosts(_) => format!("(version 1)\n{always}"),
        Network::Full => format!("(version 1)\n{always}\n{full}"),
    };
    parse_text(&text, &[]).map(|script| script.rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::seatbelt::operation::Name;
    use crate::backend::seatbelt::syntax::{Filter, Verdict};

    #[test]
    fn the_shipped_rules_are_understood_and_only_allow() {
        let rules = rules(&Network::Full).unwrap();
        assert!(rules.len() > 30);
        assert!(rules.iter().all(|rule| rule.verdict == Verdict::Allow));
    }

    #[test]
    fn every_shipped_line_gives_its_reason() {
        for line in TEXTS.iter().flat_map(|text| text.lines()) {
            let (rule, reason) = line.split_once(';').unwrap_or((line, ""));
            assert!(!reason.trim().is_empty(), "{line}");
            assert!(
                rule.is_empty() || rule.trim_end().ends_with(')'),
                "one rule a line: {line}"
            );
        }
    }

    #[test]
    fn the_base_gives_no_content_no_change_and_no_code() {
        let content = [
            "file-write",
            "file-map",
            "process-exec",
            "file-read-xattr",
            "file-ioctl",
            "ipc",
            "system",
        ];
        for rule in rules(&Network::Full).unwrap() {
            for name in rule.operations.iter().map(Name::to_string) {
                assert!(!content.iter().any(|bad| name.starts_with(bad)), "{name}");
                let listing = matches!(rule.filters.as_slice(), [Filter::All(all)] if all.contains(&Filter::Directory));
                assert!(name != "file-read-data" || listing, "{rule}");
                assert!(!rule.filters.is_empty() || name == "process-fork", "{rule}");
            }
        }
    }
}
