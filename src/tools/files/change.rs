//! Calls that change files: looked at, judged, prepared, asked about, and then exactly that is done.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::arguments::{DeleteFile, EditFile, FileKind, MakeDirectory, MoveFile, PatchFile, WriteFile, parse};
use super::failures;
use super::judge::{Judged, Sum};
use super::look::Looked;
use super::patch::{self, PatchChange};
use super::present;
use super::question::{self, Facts};
use crate::confine::ConfineError;
use crate::confine::files::protocol::{
    Bound, Change, Edit, FileAsk, FileReply, Last, Occurrences, Prepared as Measured, State, Tree,
};
use crate::policy::{Demand, Operation};
use crate::profile::Asked;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::outcome::{Restored, Then};
use crate::tools::tool::{ApprovalContext, Assessed, Assessment, Output, OutputEnd, Prepared};

/// What was prepared, and what it is called.
#[derive(Debug)]
pub(super) struct Work {
    asked: Asked,
    bound: Vec<Bound>,
    /// What is done, in the past: for the answer.
    done: String,
    data: Value,
}

/// One change before it is prepared.
struct Step {
    change: Change,
    judged: Vec<Judged>,
    /// What it wants, in a line.
    wants: String,
    done: String,
    data: Value,
}

impl Executor {
    /// Says what a change needs; prepares it.
    pub(super) async fn assess_change(
        &mut self,
        kind: FileKind,
        context: &ApprovalContext,
        directory: &Path,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Assessed, ToolError> {
        let steps = match self.steps(kind, &context.args, directory, stops).await {
            Ok(steps) => steps,
            Err(ToolError::Blocked(why)) => return Ok(Assessment::Blocked(why).into()),
            Err(error) => return Err(error),
        };
        let judged: Vec<Judged> = steps.iter().flat_map(|step| step.judged.clone()).collect();
        let sum = self.sum(&judged);
        let changes: Vec<Change> = steps.iter().map(|step| step.change.clone()).collect();
        let sight = self.sight(&judged);
        let answer = self.ask_files(&sight, FileAsk::Prepare(changes.clone()), stops).await?;
        let measured = match answer.last {
            FileReply::Prepared(measured) if measured.len() == changes.len() => measured,
            FileReply::Failed(failure) => return Err(failures::error(&failure)),
            _ => return Err(ConfineError::Malformed.into()),
        };
        for (step, measured) in steps.iter().zip(&measured) {
            if let Some(limit) = step.judged.iter().filter_map(|one| one.limit).min()
                && size_of(&step.change, measured) > limit
            {
                let size = size_of(&step.change, measured);
                return Ok(Assessment::Blocked(failures::over(&step.judged, size, limit)).into());
            }
        }
        let bound: Vec<Bound> = changes
            .iter()
            .zip(&measured)
            .map(|(change, measured)| Bound {
                change: change.clone(),
                before: measured.before.clone(),
                after: measured.after,
            })
            .collect();
        let wants: Vec<&str> = steps.iter().map(|step| step.wants.as_str()).collect();
        let profile = self.file_profile(&sum.asked)?;
        let facts = Facts {
            kind,
            description: described(&wants, &measured),
            subject: question::of_changes(&bound),
            digest: profile.digest,
            regime: self.regime_line()?.to_string(),
            presentation: present::changes(answer.server, changes, measured),
        };
        let Sum { demand, why, asked } = sum;
        let question = Box::new(question::request(context, facts, demand, why));
        let prepared = Prepared::of(Work {
            asked,
            bound,
            done: steps
                .iter()
                .map(|step| step.done.clone())
                .collect::<Vec<_>>()
                .join("\n"),
            data: data_of(&steps),
        });
        Ok(Assessed {
            assessment: match demand {
                Demand::None => Assessment::PreApproved(Some(question)),
                Demand::OncePerSession | Demand::Required => Assessment::NeedsApproval(question),
                Demand::Deny => Assessment::Blocked(format!("{} forbids it", question.why.join("; "))),
            },
            prepared,
        })
    }

    /// Makes a prepared change.
    pub(super) async fn make_change(
        &mut self,
        work: Work,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Output, ToolError> {
        let started = Instant::now();
        let Work {
            asked,
            bound,
            done,
            data,
        } = work;
        let (reply, restored, unsettled) = self.apply_files(&asked, bound, stops).await?;
        match reply {
            FileReply::Applied => {}
            FileReply::Failed(failure) => return Err(failures::error(&failure)),
            _ => return Err(ConfineError::Malformed.into()),
        }
        let undone: Vec<String> = restored
            .iter()
            .filter(|restored| restored.then != Then::PutBack)
            .map(told)
            .chain(unsettled.map(|why| format!("protected names could not be restored: {why}")))
            .collect();
        let mut data = data;
        if let Value::Object(members) = &mut data {
            members.insert("regime".to_owned(), json!(self.regime_line()?.to_string()));
            members.insert("duration".to_owned(), json!(started.elapsed().as_secs_f64()));
            members.insert("restored".to_owned(), json!(restored));
        }
        Ok(if undone.is_empty() {
            Output {
                end: OutputEnd::Done,
                text: done,
                data,
            }
        } else {
            Output {
                end: OutputEnd::Failed,
                text: undone.join("\n"),
                data,
            }
        })
    }

    /// The changes of a call, each with where it leads judged.
    async fn steps(
        &mut self,
        kind: FileKind,
        args: &Value,
        directory: &Path,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<Step>, ToolError> {
        let name = kind.name();
        let step = match kind {
            FileKind::Write => {
                let WriteFile { path, content } = parse(name, args)?;
                let looked = self.target(directory, &path, Last::Target, stops).await?;
                let judged = self.writable(&looked)?;
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
                    wants: format!("{verb} {}", judged.path),
                    done: format!("wrote {} ({size} bytes)", judged.path),
                    data: json!({"path": judged.path.to_string(), "bytes": size}),
                    judged: vec![judged],
                }
            }
            FileKind::Edit => {
                let EditFile { path, edits } = parse(name, args)?;
                let looked = self.target(directory, &path, Last::Target, stops).await?;
                let judged = self.writable(&looked)?;
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
                    wants: format!("edit {} ({count} replacement{plural})", judged.path),
                    done: format!("edited {} ({count} replacement{plural})", judged.path),
                    data: json!({"path": judged.path.to_string(), "replacements": count}),
                    judged: vec![judged],
                }
            }
            FileKind::Patch => return self.patch_steps(parse(name, args)?, directory, stops).await,
            FileKind::Delete => {
                let DeleteFile { path, recursive } = parse(name, args)?;
                let looked = self.target(directory, &path, Last::Itself, stops).await?;
                let judged = self.writable(&looked)?;
                self.judge_whole(&judged.path).map_err(ToolError::Blocked)?;
                Step {
                    change: Change::Delete {
                        path: os(&judged),
                        tree: if recursive { Tree::Whole } else { Tree::Empty },
                    },
                    wants: format!("delete {}", judged.path),
                    done: format!("deleted {}", judged.path),
                    data: json!({"path": judged.path.to_string()}),
                    judged: vec![judged],
                }
            }
            FileKind::Move => {
                let MoveFile { from, to } = parse(name, args)?;
                self.move_step(&from, &to, directory, stops).await?
            }
            FileKind::MakeDirectory => {
                let MakeDirectory { path } = parse(name, args)?;
                let looked = self.target(directory, &path, Last::Target, stops).await?;
                let judged = self.writable_directory(&looked)?;
                Step {
                    change: Change::MakeDirectory { path: os(&judged) },
                    wants: format!("make the directory {}", judged.path),
                    done: format!("made {}", judged.path),
                    data: json!({"path": judged.path.to_string()}),
                    judged: vec![judged],
                }
            }
            FileKind::Read | FileKind::List | FileKind::Search => {
                return Err(ToolError::NoSuchTool(format!("{name} changes nothing")));
            }
        };
        Ok(vec![step])
    }

    async fn patch_steps(
        &mut self,
        args: PatchFile,
        directory: &Path,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<Step>, ToolError> {
        let arguments = |why: String| ToolError::Arguments {
            tool: FileKind::Patch.name().to_owned(),
            why: crate::policy::path::escape(why.as_bytes()),
        };
        let files = patch::read(&args.patch).map_err(arguments)?;
        let base = match &args.directory {
            None => directory.to_owned(),
            Some(written) => PathBuf::from(
                self.target(directory, written, Last::Target, stops)
                    .await?
                    .path
                    .as_path(),
            ),
        };
        let mut steps = Vec::new();
        for file in files {
            let looked = self.target(&base, &file.path, Last::Target, stops).await?;
            let judged = self.writable(&looked)?;
            let path = judged.path.to_string();
            let (change, wants, done) = match file.change {
                PatchChange::Hunks(hunks) => (
                    Change::Patch {
                        path: os(&judged),
                        hunks,
                        max_bytes: judged.limit,
                    },
                    format!("patch {path}"),
                    format!("patched {path}"),
                ),
                PatchChange::Delete(_) => (
                    Change::Delete {
                        path: os(&judged),
                        tree: Tree::Empty,
                    },
                    format!("delete {path}"),
                    format!("deleted {path}"),
                ),
            };
            steps.push(Step {
                change,
                judged: vec![judged],
                wants,
                done,
                data: json!({"path": path}),
            });
        }
        Ok(steps)
    }

    async fn move_step(
        &mut self,
        from: &str,
        to: &str,
        directory: &Path,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Step, ToolError> {
        let from = self.target(directory, from, Last::Itself, stops).await?;
        let to = self.target(directory, to, Last::Itself, stops).await?;
        let (source, target) = (self.writable(&from)?, self.writable(&to)?);
        self.judge_whole(&source.path).map_err(ToolError::Blocked)?;
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
                self.judge(Operation::List, &source.path)
            }
            State::Absent | State::File(_) | State::Symlink(_) | State::Other(_) => {
                self.judge(Operation::Read, &source.path)
            }
        };
        let source = Judged {
            demand: source.demand.max(read.map_err(ToolError::Blocked)?.demand),
            ..source
        };
        Ok(Step {
            change: Change::Move {
                from: os(&source),
                to: os(&target),
            },
            wants: format!("move {} to {}", source.path, target.path),
            done: format!("moved {} to {}", source.path, target.path),
            data: json!({"from": source.path.to_string(), "to": target.path.to_string()}),
            judged: vec![source, target],
        })
    }

    fn writable(&self, looked: &Looked) -> Result<Judged, ToolError> {
        self.judge(Operation::Write, &looked.path).map_err(ToolError::Blocked)
    }

    /// Suffixes say which files there may be, not which directories: one is judged by a file that may be in it.
    fn writable_directory(&self, looked: &Looked) -> Result<Judged, ToolError> {
        let suffixes = self
            .policy
            .speaker(&looked.path)
            .and_then(|root| root.suffixes.as_ref());
        let file = suffixes
            .and_then(|suffixes| suffixes.iter().next())
            .and_then(|suffix| looked.path.child(format!("file{suffix}")));
        let judged = self.judge(Operation::Write, file.as_ref().unwrap_or(&looked.path));
        Ok(Judged {
            path: looked.path.clone(),
            ..judged.map_err(ToolError::Blocked)?
        })
    }
}

fn os(judged: &Judged) -> OsString {
    judged.path.as_path().as_os_str().to_owned()
}

/// The bytes of what a change would leave there.
fn size_of(change: &Change, measured: &Measured) -> u64 {
    match (change, measured.before.first()) {
        (Change::Move { .. }, Some(State::File(file))) => file.size,
        _ => measured.size,
    }
}

fn described(wants: &[&str], measured: &[Measured]) -> String {
    let files: u64 = measured.iter().map(|one| one.files).sum();
    match wants {
        [one] if files > 1 => format!("{one} with the {files} files in it"),
        [one] => (*one).to_owned(),
        several => format!("change {} files: {}", several.len(), several.join(", ")),
    }
}

fn data_of(steps: &[Step]) -> Value {
    match steps {
        [one] => one.data.clone(),
        several => json!({"files": several.iter().map(|step| step.data.clone()).collect::<Vec<_>>()}),
    }
}

fn told(restored: &Restored) -> String {
    format!(
        "{} is protected and was {} meanwhile; restored",
        restored.path, restored.what
    )
}
