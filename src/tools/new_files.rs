//! What is new after a command, and may be read or run by programs of the host, for people, agents and `--json`.

use std::os::unix::ffi::OsStrExt as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::escape_truncated::escape_truncated;
use crate::confine::wire::protocol;

/// New or changed dotfiles and executables that no list protects. Nothing of it was undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewFiles {
    /// The first of them, escaped; absent where there are none.
    #[serde(rename = "new_files", skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub files: Vec<String>,
    /// How many more there are at least; absent where there are none.
    #[serde(rename = "more_new_files", skip_serializing_if = "is_none")]
    #[schemars(default)]
    pub more: u64,
    /// Whether there was too much to look at all of it; absent where all was looked at.
    #[serde(rename = "new_files_cut", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_cut: bool,
}

/// How many a line names.
const NAMED: usize = 5;

impl NewFiles {
    /// What is to be said of them, in one line; nothing where there are none.
    pub fn message(&self) -> Option<String> {
        let named: Vec<&str> = self.files.iter().take(NAMED).map(String::as_str).collect();
        let more = self.more + (self.files.len() - named.len()) as u64;
        let more = match (more, self.is_cut) {
            (0, false) => String::new(),
            (0, true) => " and perhaps more".to_owned(),
            (more, false) => format!(" and {more} more"),
            (more, true) => format!(" and at least {more} more"),
        };
        if named.is_empty() && !self.is_cut {
            return None;
        }
        let all = if named.is_empty() {
            "too many files to look at".to_owned()
        } else {
            format!("{}{more}", named.join(", "))
        };
        Some(format!(
            "new or changed dotfiles and executables: {all}; look at them before a program of yours reads or runs them"
        ))
    }
}

impl From<protocol::Appeared> for NewFiles {
    fn from(new: protocol::Appeared) -> Self {
        let files = new.paths.iter().map(|path| escape_truncated(path.as_bytes()));
        Self {
            files: files.collect(),
            more: new.more,
            is_cut: new.is_cut,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
pub(super) fn is_none(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_five_and_counts_the_rest() {
        let of = |count: usize, more, is_cut| {
            let paths = (0..count).map(|number| format!("/w/.{number}").into()).collect();
            let told = NewFiles::from(protocol::Appeared { paths, more, is_cut }).message();
            told.map(|told| {
                told.strip_prefix("new or changed dotfiles and executables: ")
                    .unwrap()
                    .to_owned()
            })
        };
        let end = "; look at them before a program of yours reads or runs them";
        assert_eq!(of(0, 0, false), None);
        assert_eq!(of(1, 0, false), Some(format!("/w/.0{end}")));
        assert_eq!(
            of(7, 3, false),
            Some(format!("/w/.0, /w/.1, /w/.2, /w/.3, /w/.4 and 5 more{end}"))
        );
        assert_eq!(of(1, 0, true), Some(format!("/w/.0 and perhaps more{end}")));
        assert_eq!(of(0, 0, true), Some(format!("too many files to look at{end}")));
    }
}
