//! Why a file operation could not be done, told so that an agent can act on it.

use super::judge::Judged;
use crate::confine::files::protocol::{Failure, Near, Special, Why};
use crate::policy::path::{display, escape};
use crate::tools::call::ToolError;

/// The error of a failure. A child said it: everything in it is escaped.
pub(super) fn error(failure: &Failure) -> ToolError {
    let path = display(&failure.path);
    if failure.why == Why::Changed {
        return ToolError::Changed(path);
    }
    ToolError::File(format!("{path}: {}", reason(&failure.why)))
}

/// A file that would be larger than its root permits.
pub(super) fn over(judged: &[Judged], size: u64, limit: u64) -> String {
    let location = judged
        .iter()
        .find(|one| one.limit == Some(limit))
        .map_or_else(String::new, |one| format!("{} in the root `{}`", one.path, one.root));
    format!("{location} would have {size} bytes; the most is {limit} (`max_file_bytes`)")
}

fn reason(why: &Why) -> String {
    match why {
        Why::Missing => "does not exist".to_owned(),
        Why::Spelled(there) => format!(
            "does not exist. {} does: its name has other characters that look the same, or another case; use that path",
            display(there)
        ),
        Why::NotPermitted => "not permitted: the sandbox, or the file's own mode, forbids it".to_owned(),
        Why::IsDirectory => "is a directory".to_owned(),
        Why::NotDirectory => "is no directory, or something on the way to it is none".to_owned(),
        Why::Special(special) => format!("is {}, which no file tool touches", kind(*special)),
        Why::Binary { what, size } => format!(
            "is no text ({}, {size} bytes); a command can read it",
            escape(what.as_bytes())
        ),
        Why::TooLarge { size, limit } => format!("has {size} bytes; the most is {limit}"),
        Why::Changed => "changed after it was looked at".to_owned(),
        Why::Exists => "exists already".to_owned(),
        Why::NotEmpty => "is not empty; `recursive` deletes a directory with everything in it".to_owned(),
        Why::NoMatch { edit, near } => format!(
            "the text of edit {edit} is not there; it must match exactly, white space included{}",
            nearest(near.as_ref())
        ),
        Why::Ambiguous { edit, lines, count } => {
            let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
            format!(
                "the text of edit {edit} is there {count} times, at lines {}; add lines around it, or set `all`",
                lines.join(", ")
            )
        }
        Why::EmptyEdit { edit } => format!("edit {edit} looks for nothing, or changes nothing"),
        Why::Hunk { hunk, near } => format!("hunk {hunk} of the patch does not fit{}", nearest(near.as_ref())),
        Why::Malformed(what) => escape(what.as_bytes()),
        Why::Loop => "leads through too many symlinks, or in a circle".to_owned(),
        Why::OtherFileSystem => "is on another file system than where it would go; copy and delete it".to_owned(),
        Why::System(errno) => nix::errno::Errno::from_raw(*errno).desc().to_owned(),
    }
}

fn nearest(near: Option<&Near>) -> String {
    let Some(near) = near else { return String::new() };
    let mut text = String::new();
    for line in near.text.lines() {
        text.extend(["\n  ", &escape(line.as_bytes())]);
    }
    format!(
        ". The nearest is at line {} ({}):{text}",
        near.line,
        escape(near.difference.as_bytes())
    )
}

const fn kind(special: Special) -> &'static str {
    match special {
        Special::Fifo => "a named pipe",
        Special::Socket => "a socket",
        Special::Device => "a device",
    }
}
