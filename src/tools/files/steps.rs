//! The arguments of a call that changes files → its changes, each judged where it leads.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::arguments::{DeleteFile, EditFile, FileKind, MakeDirectory, MoveFile, PatchFile, WriteFile, parse};
use super::file_client::Files;
use super::judge::Judged;
use super::patch::{self, PatchChange};
use crate::confine::files::protocol::{Change, Edit, Last, Occurrences, State, Tree};
use crate::policy::{Demand, Operation};
use crate::tools::call::ToolError;

/// One change before it is prepared.
pub(super) struct Step {
    pub(super) change: Change,
    pub(super) judged: Vec<Judged>,
    /// What it would do, in a line.
    pub(super) description: String,
    pub(super) done: String,
    /// The same for a program.
    pub(super) data: Value,
    /// A change that must leave nothing in its file; it is only tried out.
    pub(super) empties: Option<Change>,
}

/// The changes of a call, each with where it leads judged.
pub(super) async fn steps(
    files: &mut Files<'_>,
    kind: FileKind,
    args: &Value,
    directory: &Path,
) -> Result<Vec<Step>, ToolError> {
    let name = kind.name();
    let step = match kind {
        FileKind::Write => {
            let WriteFile { path, content } = parse(name, args)?;
            let looked = files.target(directory, &path, Last::Target).await?;
            let judged = files.judge().writable(&looked.path)?;
            let (path, limit) = (os(&judged), judged.limit);
            let verb = match looked.state {
                State::Absent => "write the new file",
                _ => "overwrite",
            };
            let content = content.into_bytes();
            let size = content.len();
            Step {
                change: Change::Write {
                    path,
                    content,
                    max_bytes: limit,
                },
                description: format!("{verb} {}", judged.path),
                done: format!(
                    "wrote {} ({size} {})",
                    judged.path,
                    if size == 1 { "byte" } else { "bytes" }
                ),
                data: json!({"path": judged.path.to_string(), "bytes": size}),
                empties: None,
                judged: vec![judged],
            }
        }
        FileKind::Edit => {
            let EditFile { path, edits } = parse(name, args)?;
            let looked = files.target(directory, &path, Last::Target).await?;
            let judged = files.judge().writable(&looked.path)?;
            let count = edits.len();
            let plural = if count == 1 { "" } else { "s" };
            Step {
                change: Change::Edit {
                    path: os(&judged),
                    edits: edits
                        .into_iter()
                        .map(|edit| Edit {
                            old: edit.old,
                            new: edit.new,
                            occurrences: if edit.all { Occurrences::Every } else { Occurrences::One },
                        })
                        .collect(),
                    max_bytes: judged.limit,
                },
                description: format!("edit {} ({count} replacement{plural})", judged.path),
                done: format!("edited {} ({count} replacement{plural})", judged.path),
                data: json!({"path": judged.path.to_string(), "replacements": count}),
                empties: None,
                judged: vec![judged],
            }
        }
        FileKind::Patch => return patch_steps(files, parse(name, args)?, directory).await,
        FileKind::Delete => {
            let DeleteFile { path, recursive } = parse(name, args)?;
            let looked = files.target(directory, &path, Last::Itself).await?;
            let judged = files.judge().writable(&looked.path)?;
            files.judge().judge_tree(&judged.path).map_err(ToolError::Blocked)?;
            Step {
                change: Change::Delete {
                    path: os(&judged),
                    tree: if recursive { Tree::Recursive } else { Tree::Empty },
                },
                description: format!("delete {}", judged.path),
                done: format!("deleted {}", judged.path),
                data: json!({"path": judged.path.to_string()}),
                empties: None,
                judged: vec![judged],
            }
        }
        FileKind::Move => {
            let MoveFile { from, to } = parse(name, args)?;
            move_step(files, &from, &to, directory).await?
        }
        FileKind::MakeDirectory => {
            let MakeDirectory { path } = parse(name, args)?;
            let looked = files.target(directory, &path, Last::Target).await?;
            let judged = files.judge().writable_directory(&looked.path)?;
            Step {
                change: Change::MakeDirectory { path: os(&judged) },
                description: format!("make the directory {}", judged.path),
                done: format!("made {}", judged.path),
                data: json!({"path": judged.path.to_string()}),
                empties: None,
                judged: vec![judged],
            }
        }
        FileKind::Read | FileKind::List | FileKind::Search => {
            return Err(ToolError::NoSuchTool(format!("{name} changes nothing")));
        }
    };
    Ok(vec![step])
}

async fn patch_steps(files: &mut Files<'_>, args: PatchFile, directory: &Path) -> Result<Vec<Step>, ToolError> {
    let arguments = |why: String| ToolError::Arguments {
        tool: FileKind::Patch.name().to_owned(),
        why: crate::policy::path::escape(why.as_bytes()),
    };
    let patches = patch::read(&args.patch).map_err(arguments)?;
    let base = match &args.directory {
        None => directory.to_owned(),
        Some(written) => PathBuf::from(files.target(directory, written, Last::Target).await?.path.as_path()),
    };
    let mut parts = Vec::new();
    for file in patches {
        let looked = files.target(&base, &file.path, Last::Target).await?;
        let judged = files.judge().writable(&looked.path)?;
        let path = judged.path.to_string();
        let (change, empties, description, done) = match file.change {
            PatchChange::Hunks(hunks) => (
                Change::Patch {
                    path: os(&judged),
                    hunks,
                    max_bytes: judged.limit,
                },
                None,
                format!("patch {path}"),
                format!("patched {path}"),
            ),
            PatchChange::Delete(hunks) => (
                Change::Delete {
                    path: os(&judged),
                    tree: Tree::Empty,
                },
                Some(emptied(&judged, hunks)),
                format!("delete {path}"),
                format!("deleted {path}"),
            ),
        };
        parts.push(Step {
            change,
            judged: vec![judged],
            description,
            done,
            data: json!({"path": path}),
            empties,
        });
    }
    Ok(parts)
}

async fn move_step(files: &mut Files<'_>, from: &str, to: &str, directory: &Path) -> Result<Step, ToolError> {
    let from = files.target(directory, from, Last::Itself).await?;
    let to = files.target(directory, to, Last::Itself).await?;
    let judge = files.judge();
    let (source, target) = (judge.writable(&from.path)?, judge.writable(&to.path)?);
    judge.judge_tree(&source.path).map_err(ToolError::Blocked)?;
    // What is moved can be read where it goes: that is reading it.
    let read = match from.state {
        State::Directory { .. } => {
            if let Some(limit) = target.limit {
                let why = format!(
                    "files in the root `{}` may have at most {limit} bytes: move the files of {} one by one",
                    target.root, source.path
                );
                return Err(ToolError::Blocked(why));
            }
            judge
                .judge_kinds(&source.path, &target.path)
                .map_err(ToolError::Blocked)?;
            judge.judge(Operation::List, &source.path)
        }
        State::Absent | State::File(_) | State::Symlink(_) | State::Other(_) => {
            judge.judge(Operation::Read, &source.path)
        }
    };
    // What is moved stays the same file: whoever has it open, or another name of it, could still write it there.
    if source.root != target.root && target.demand > Demand::None {
        return Err(ToolError::Blocked(format!(
            "writing the root `{}` needs a yes, and commands that nobody was asked about could go on writing what is moved \
             there from `{}`; write its content there with write_file, and delete it here",
            target.root, source.root
        )));
    }
    let source = Judged {
        demand: source.demand.max(read.map_err(ToolError::Blocked)?.demand),
        ..source
    };
    Ok(Step {
        change: Change::Move {
            from: os(&source),
            to: os(&target),
        },
        description: format!("move {} to {}", source.path, target.path),
        done: format!("moved {} to {}", source.path, target.path),
        data: json!({"from": source.path.to_string(), "to": target.path.to_string()}),
        empties: None,
        judged: vec![source, target],
    })
}

/// What a patch that removes a file does to its content. An empty file goes without a hunk.
fn emptied(judged: &Judged, hunks: String) -> Change {
    let (path, max_bytes) = (os(judged), None);
    if hunks.is_empty() {
        let content = Vec::new();
        return Change::Write {
            path,
            content,
            max_bytes,
        };
    }
    Change::Patch { path, hunks, max_bytes }
}

fn os(judged: &Judged) -> OsString {
    judged.path.as_path().as_os_str().to_owned()
}
