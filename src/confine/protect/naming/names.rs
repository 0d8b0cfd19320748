//! Which names are protected, and why each one is.
//!
//! The list is [`TOOLS`]. A config adds to it and takes off it ([`Names`]). Git directories are not on it: they are found by what they hold ([`markers`](super::markers)).

use crate::policy::protected::{TOOLS, Tool, is_excepted, is_of_this_program};

/// What a config makes of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Names {
    /// Patterns besides those of the list.
    pub add: Vec<String>,
    /// Patterns of the list that do not count.
    pub except: Vec<String>,
}

impl Names {
    /// Everything that is protected by its name.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.patterns().map(str::to_owned).collect()
    }

    /// What counts.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        let listed = TOOLS
            .iter()
            .flat_map(|tool| tool.reads.iter().map(move |pattern| (tool, *pattern)));
        let counts = |(tool, pattern): &(&Tool, &str)| {
            is_of_this_program(tool) || !self.except.iter().any(|except| is_excepted(pattern, except))
        };
        let listed = listed.filter(counts).map(|(_, pattern)| pattern);
        listed.chain(self.add.iter().map(String::as_str))
    }
}

/// Directories of what others made: tools write and remove them, with whatever is in them. Below such a one the names of
/// the table say nothing; git directories do, wherever they are. Their case counts: `Vendor` may be a person's own.
pub(crate) const THIRD_PARTY: [&str; 4] = ["node_modules", "vendor", ".venv", "target"];

/// Whether names of the table say nothing below a directory called so.
pub(crate) fn is_third_party(name: &[u8]) -> bool {
    THIRD_PARTY.iter().any(|one| one.as_bytes() == name)
}

/// Whether git may take the name for its own: `.git` in any ASCII case.
pub(crate) fn is_dot_git(name: &[u8]) -> bool {
    same_name(name, b".git")
}

/// Whether two names are one where ASCII case is folded.
pub(crate) fn same_name(one: &[u8], other: &[u8]) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_off_and_added_but_never_this_programs_own() {
        let names = Names {
            add: vec!["deploy.sh".to_owned()],
            except: [".IDEA", ".envrc", "stockade.yaml", ".vscode/*.json"]
                .map(str::to_owned)
                .to_vec(),
        };
        let left: Vec<&str> = names.patterns().collect();
        for gone in [".idea/**", ".envrc", ".vscode/*.json"] {
            assert!(!left.contains(&gone), "{gone}");
        }
        for stays in ["deploy.sh", "stockade.yaml", ".envrc.*", ".claude/**"] {
            assert!(left.contains(&stays), "{stays}");
        }
    }
}
