//! The list of protected names: files that programs of the host run or obey later.
//!
//! The data is in `profiles/protected.yaml`, with its format and what is deliberately absent. Git directories are not on
//! the list: they are found by their content.

use Start::{Above, Here};

/// A program of the host.
#[derive(Debug)]
pub struct Tool {
    /// What it is called.
    pub name: &'static str,
    /// How it uses them.
    pub runs: &'static str,
    /// The names it reads, as patterns.
    pub reads: &'static [&'static str],
    /// The files that name other files to run.
    pub leads: &'static [Lead],
}

/// A file that names other files.
#[derive(Debug)]
pub struct Lead {
    /// Its name, or the end of its path.
    pub file: &'static str,
    /// The last parts of the setting names that do.
    pub keys: &'static [&'static str],
    /// Commands in it that do.
    pub words: &'static [&'static str],
    /// Where relative paths start.
    pub from: Start,
}

/// Where a relative path in a file starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// In the directory of the file.
    Here,
    /// In the directory that holds it.
    Above,
}

/// The default names by tool.
pub const TOOLS: &[Tool] = include!(concat!(env!("OUT_DIR"), "/protected.rs"));

/// This program, whose names cannot be removed from the list.
const OWN: &str = "stockade";

/// Whether it is this program, whose names cannot be removed from the list.
#[must_use]
pub fn is_of_this_program(tool: &Tool) -> bool {
    tool.name == OWN
}

/// Why a name under `except` cannot be removed from the list; `None` if it can.
#[must_use]
pub fn exception_objection(except: &str) -> Option<&'static str> {
    if except
        .split('/')
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case(".git"))
    {
        return Some("git directories are always protected");
    }
    let is_of = |tool: &&Tool| tool.reads.iter().any(|pattern| is_excepted(pattern, except));
    match TOOLS.iter().find(is_of) {
        Some(tool) if is_of_this_program(tool) => {
            Some("what decides how the next command is confined is always protected")
        }
        Some(_) => None,
        None => Some("no name on the list of protected names is written so"),
    }
}

/// Whether `except` names this pattern, with or without `/**`.
#[must_use]
pub fn is_excepted(pattern: &str, except: &str) -> bool {
    let plain = |text: &str| text.strip_suffix("/**").unwrap_or(text).to_ascii_lowercase();
    plain(pattern) == plain(except)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::NamePattern;

    #[test]
    fn every_name_is_a_pattern_has_a_reason_and_stands_once() {
        let mut seen = BTreeSet::new();
        for tool in TOOLS {
            assert!(tool.runs.len() > 8 && !tool.reads.is_empty(), "{}", tool.name);
            for pattern in tool.reads {
                assert!(NamePattern::new(pattern).is_ok(), "{pattern}");
                assert!(seen.insert(pattern.to_ascii_lowercase()), "{pattern}");
            }
            for lead in tool.leads {
                assert!(lead.keys.is_empty() != lead.words.is_empty(), "{}", lead.file);
            }
        }
    }

    #[test]
    fn what_may_be_taken_off_is_on_the_list_and_not_this_programs_own() {
        for (except, can) in [
            (".idea/**", true),
            (".idea", true),
            (".claude/commands/**", false),
            (".VSCode/*.json", true),
            (".stockade", false),
            (".git/hooks/**", false),
        ] {
            assert_eq!(exception_objection(except).is_none(), can, "{except}");
        }
    }
}
