//! What a person is shown of a change: made in the confined child, when somebody is really asked.

use std::path::PathBuf;

use crate::approval::{Content, FileView, Lazy, Presentation, RemovalView, Removed as Shows};
use crate::confine::files::FileServer;
use crate::confine::files::protocol::{
    Change, Contents, FileOperation, FileReply, FileRequest, Prepared, Removed, Shown, View,
};
use crate::policy::path::display;

/// How long it may take to make.
const DEADLINE_MS: u64 = 20_000;

/// The presentation of changes that were prepared so. Where they are others by now it cannot be had, which denies.
pub(super) fn changes(server: FileServer, changes: Vec<Change>, prepared: Vec<Prepared>) -> Lazy {
    Lazy::new(move || {
        let request = FileRequest {
            deadline_ms: DEADLINE_MS,
            operation: FileOperation::Show(changes.clone()),
        };
        let answer = server
            .request(&request, &mut |_| Ok(()))
            .map_err(|error| error.to_string())?;
        let shown = match answer {
            FileReply::Shown(shown) if shown.len() == changes.len() => shown,
            // Why is not said: who asked for the change is told this too.
            FileReply::Failed(_) => return Err("it can no longer be made as it was prepared".to_owned()),
            _ => return Err("the file server answered out of turn".to_owned()),
        };
        if !shown
            .iter()
            .zip(&prepared)
            .all(|(shown, prepared)| comparable(&shown.prepared) == comparable(prepared))
        {
            return Err("what it would change has changed meanwhile".to_owned());
        }
        let mut parts: Vec<(String, Presentation)> = changes
            .iter()
            .zip(shown)
            .map(|(change, shown)| part(change, shown))
            .collect();
        Ok(match parts.pop() {
            Some((_, only)) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                Presentation::Several(parts)
            }
            None => Presentation::Text(String::new()),
        })
    })
}

/// What must be the same. The numbers of a directory that was not looked through to its end are another each time.
pub(super) fn comparable(prepared: &Prepared) -> Prepared {
    Prepared {
        contents: prepared.contents.map(|contents| match contents.digest {
            Some(_) => contents,
            None => Contents::default(),
        }),
        ..prepared.clone()
    }
}

/// What is removed.
fn removal(path: PathBuf, removed: Removed, contents: Option<Contents>) -> Presentation {
    let (size, what) = match removed {
        Removed::Text { begins, lines, size } => (size, Shows::Text { begins, lines }),
        Removed::Binary { what, size } => (size, Shows::Binary(what)),
        Removed::Unread { size } => (
            size,
            Shows::Binary("a file that is too large to be shown, or may not be read".to_owned()),
        ),
        Removed::Symlink(target) => (0, Shows::Symlink(target.into())),
        Removed::Tree(entries) => {
            let Contents {
                directories,
                files,
                bytes,
                digest,
            } = contents.unwrap_or_default();
            let what = Shows::Tree {
                directories,
                files,
                complete: digest.is_some(),
                entries: entries.into_iter().map(PathBuf::from).collect(),
            };
            (bytes, what)
        }
    };
    Presentation::Removal(RemovalView { path, size, what })
}

fn part(change: &Change, shown: Shown) -> (String, Presentation) {
    let path = match change {
        Change::Write { path, .. }
        | Change::Edit { path, .. }
        | Change::Patch { path, .. }
        | Change::Delete { path, .. }
        | Change::MakeDirectory { path }
        | Change::Move { from: path, .. } => path,
    };
    let file = |content, size| {
        Presentation::FileContent(FileView {
            path: PathBuf::from(path),
            content,
            size,
        })
    };
    let presentation = match shown.view {
        View::Diff(text) => Presentation::Diff(text),
        View::Content(text) => {
            let size = shown.prepared.size;
            file(Content::Text(text), size)
        }
        View::Binary { what, size } => file(Content::Binary(what), size),
        View::Removed(removed) => removal(PathBuf::from(path), removed, shown.prepared.contents),
        View::Names(names) => {
            let names: Vec<String> = names.iter().map(display).collect();
            Presentation::Text(names.join("\n"))
        }
    };
    (display(path), presentation)
}
