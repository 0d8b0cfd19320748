//! Whether a question has unprintable characters.

use std::os::unix::ffi::OsStrExt as _;

use super::layout::Charset;
use super::text::{Backslash, hides};
use crate::approval::presentation::{Content, Presentation};
use crate::approval::removal::Removed;
use crate::approval::request::ApprovalRequest;

/// How backslashes are shown in a question.
pub(super) fn in_question(request: &ApprovalRequest, presentation: &Presentation, charset: Charset) -> Backslash {
    let write_request = [&request.tool_name, &request.description]
        .into_iter()
        .chain(&request.group_id)
        .chain(&request.changed)
        .chain(&request.caller);
    backslash(in_presentation(presentation, charset) || any(write_request, charset))
}

/// How backslashes are shown in the reasons.
pub(super) fn in_reasons(request: &ApprovalRequest, charset: Charset) -> Backslash {
    backslash(any(request.why.iter().chain([&request.allowed_by]), charset))
}

/// How backslashes are shown in what a yes can cover.
pub(super) fn in_scopes(request: &ApprovalRequest, charset: Charset) -> Backslash {
    backslash(any(request.scopes.iter().map(|scope| &scope.covers), charset))
}

const fn backslash(hides: bool) -> Backslash {
    if hides { Backslash::Doubled } else { Backslash::Single }
}

fn any<'t>(mut texts: impl Iterator<Item = &'t String>, charset: Charset) -> bool {
    texts.any(|text| in_text(text.as_bytes(), charset))
}

/// Line breaks and tabs do not count: they are common, and shown as such.
fn in_text(bytes: &[u8], charset: Charset) -> bool {
    bytes
        .split(|byte| matches!(byte, b'\n' | b'\t'))
        .any(|line| hides(line, charset))
}

fn in_presentation(presentation: &Presentation, charset: Charset) -> bool {
    let text = |shown: &[u8]| in_text(shown, charset);
    let path = |shown: &std::path::PathBuf| hides(shown.as_os_str().as_bytes(), charset);
    match presentation {
        Presentation::Text(shown) => text(shown.as_bytes()),
        // Without the sign, so that a combining mark on it counts too.
        Presentation::Diff(shown) => {
            let mut lines = shown.split('\n');
            lines.any(|line| {
                let rest = line.strip_prefix(['+', '-', ' ', '@', '\\']);
                text(rest.unwrap_or(line).as_bytes())
            })
        }
        Presentation::Command(view) => {
            let programs = view.programs.iter().chain(&view.writable_programs);
            let mut paths = view
                .may_write
                .iter()
                .chain(&view.may_read)
                .chain([&view.directory])
                .chain(programs);
            let weaker = view.weaker.iter().map(String::as_bytes);
            let notes = view
                .notes
                .iter()
                .flat_map(|(part, note)| [part.as_bytes(), note.as_bytes()]);
            text(&view.command) || weaker.chain(notes).any(text) || text(view.may_reach.as_bytes()) || paths.any(path)
        }
        Presentation::FileContent(view) => {
            let (Content::Text(shown) | Content::Binary(shown)) = &view.content;
            text(shown.as_bytes()) || path(&view.path)
        }
        Presentation::Removal(view) => {
            path(&view.path)
                || match &view.what {
                    Removed::Text { begins: shown, .. } | Removed::Binary(shown) => text(shown.as_bytes()),
                    Removed::Symlink(target) => path(target),
                    Removed::Tree { entries, .. } => entries.iter().any(path),
                }
        }
        Presentation::Structured(fields) => fields
            .iter()
            .any(|(name, value)| text(name.as_bytes()) || text(value.as_bytes())),
        Presentation::Several(parts) => parts
            .iter()
            .any(|(title, part)| text(title.as_bytes()) || in_presentation(part, charset)),
    }
}
