//! Names that a pattern denies, where commands may make names.
//!
//! Mounts cover what is there before a command. What is new after one is told, and covered from the next one on.

use schemars::JsonSchema;
use serde::Serialize;

use super::escape_truncated::escape_truncated;
use super::new_files::is_none;
use crate::backend::namespaces::Matches;
use crate::policy::AbsPath;
use crate::profile::Profile;

/// Names that appeared while a command ran and that a pattern denies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeniedNames {
    /// The first of them, escaped; absent where there are none.
    #[serde(rename = "new_denied_names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub names: Vec<String>,
    /// How many more there are; absent where there are none.
    #[serde(rename = "more_new_denied_names", skip_serializing_if = "is_none")]
    #[schemars(default)]
    pub more: u64,
    /// Whether not all could be looked at; absent where all was.
    #[serde(rename = "new_denied_names_cut", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_cut: bool,
}

const KEPT: usize = 50;
/// How many a line names.
const NAMED: usize = 5;

impl DeniedNames {
    /// What is named so now that was not there when the mounts of a forker for this profile were made, which cover this.
    pub(super) fn since(covered: &Matches, profile: &Profile) -> Self {
        match Matches::scan(profile) {
            Ok(now) => Self::of(now.new_since(covered)),
            // The next command says why, and does not start.
            Err(_) => Self {
                is_cut: true,
                ..Self::default()
            },
        }
    }

    fn of<'a>(mut new: impl Iterator<Item = &'a AbsPath>) -> Self {
        let names: Vec<String> = new
            .by_ref()
            .take(KEPT)
            .map(|path| escape_truncated(path.as_bytes()))
            .collect();
        Self {
            names,
            more: new.count() as u64,
            is_cut: false,
        }
    }

    /// What is to be said of them, in one line; nothing where there are none.
    pub fn message(&self) -> Option<String> {
        let named: Vec<&str> = self.names.iter().take(NAMED).map(String::as_str).collect();
        if named.is_empty() {
            let told =
                "new denied names: not everything could be looked at; the next command does not start before it can be";
            return self.is_cut.then(|| told.to_owned());
        }
        let more = match self.more + (self.names.len() - named.len()) as u64 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "new denied names: {}{more}; they appeared while the command ran and were open to it, and are covered from the \
             next one on",
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_five_and_counts_the_rest() {
        let paths: Vec<AbsPath> = (0..60)
            .map(|number| AbsPath::new(format!("/w/{number}/.env")).unwrap())
            .collect();
        assert_eq!(DeniedNames::of(std::iter::empty()).message(), None);
        let told = DeniedNames::of(paths.iter()).message().unwrap();
        assert!(
            told.starts_with("new denied names: /w/0/.env, ") && told.contains("/w/4/.env and 55 more; "),
            "{told}"
        );
        let one = DeniedNames::of(paths.iter().take(1)).message().unwrap();
        assert!(one.starts_with("new denied names: /w/0/.env; "), "{one}");
    }
}
