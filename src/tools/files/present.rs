//! What a person is shown of a change: made in the confined child, when somebody is really asked.

use std::path::PathBuf;

use crate::approval::{Content, FileView, Lazy, Presentation};
use crate::confine::files::FileServer;
use crate::confine::files::protocol::{Change, FileOperation, FileReply, FileRequest, Prepared, Shown, View};
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
            .all(|(shown, prepared)| shown.prepared == *prepared)
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
        View::Names(names) => {
            let names: Vec<String> = names.iter().map(display).collect();
            Presentation::Text(names.join("\n"))
        }
    };
    (display(path), presentation)
}
