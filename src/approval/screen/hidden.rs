//! Whether something in a question does not print.

use std::os::unix::ffi::OsStrExt as _;

use super::look::Letters;
use super::text::{Backslash, hides, told};
use crate::approval::request::{ApprovalRequest, Content, Presentation};

/// How backslashes are shown in a question.
pub(super) fn in_question(request: &ApprovalRequest, presentation: &Presentation, letters: Letters) -> Backslash {
    let asked = [&request.tool_name, &request.description]
        .into_iter()
        .chain(&request.group_id)
        .chain(&request.caller);
    backslash(in_presentation(presentation, letters) || any(asked, letters))
}

/// How they are in the reasons why it is asked.
pub(super) fn in_reasons(request: &ApprovalRequest, letters: Letters) -> Backslash {
    backslash(any(request.why.iter().chain([&request.allowed_by]), letters))
}

const fn backslash(hides: bool) -> Backslash {
    if hides { Backslash::Doubled } else { Backslash::Single }
}

fn any<'t>(mut texts: impl Iterator<Item = &'t String>, letters: Letters) -> bool {
    texts.any(|text| in_text(text.as_bytes(), letters))
}

/// The end of a line is shown as one; a tab is a blank of unknown width, and common.
fn in_text(bytes: &[u8], letters: Letters) -> bool {
    bytes
        .split(|byte| matches!(byte, b'\n' | b'\t'))
        .any(|line| hides(line, letters))
}

fn in_presentation(presentation: &Presentation, letters: Letters) -> bool {
    let text = |shown: &[u8]| in_text(shown, letters);
    let path = |shown: &std::path::PathBuf| hides(shown.as_os_str().as_bytes(), letters);
    match presentation {
        Presentation::Text(shown) => text(shown.as_bytes()),
        // A mark may not stand on the sign of a line either.
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
            text(&view.command)
                || text(told(&view.regime, letters).as_bytes())
                || text(view.may_reach.as_bytes())
                || paths.any(path)
        }
        Presentation::FileContent(view) => {
            let (Content::Text(shown) | Content::Binary(shown)) = &view.content;
            text(shown.as_bytes()) || path(&view.path)
        }
        Presentation::Structured(fields) => fields
            .iter()
            .any(|(name, value)| text(name.as_bytes()) || text(value.as_bytes())),
        Presentation::Several(parts) => parts
            .iter()
            .any(|(title, part)| text(title.as_bytes()) || in_presentation(part, letters)),
    }
}
