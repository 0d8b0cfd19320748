//! Calls that change files: looked at, judged, prepared, asked about, and then exactly that is done.

use std::path::Path;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::arguments::FileKind;
use super::failures;
use super::judge::{Judged, Sum};
use super::present;
use super::question::{self, Facts};
use super::steps::Step;
use crate::confine::ConfineError;
use crate::confine::files::protocol::{Bound, Change, FileAsk, FileReply, Prepared as Measured, State};
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

impl Executor {
    /// Says what a change needs; prepares it.
    pub(super) async fn assess_change(
        &mut self,
        kind: FileKind,
        context: &ApprovalContext,
        directory: &Path,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Assessed, ToolError> {
        let parts = match self.steps(kind, &context.args, directory, stops).await {
            Ok(parts) => parts,
            Err(ToolError::Blocked(why)) => return Ok(Assessment::Blocked(why).into()),
            Err(error) => return Err(error),
        };
        let judged: Vec<Judged> = parts.iter().flat_map(|step| step.judged.clone()).collect();
        let sum = self.sum(&judged);
        let changes: Vec<Change> = parts.iter().map(|step| step.change.clone()).collect();
        let sight = self.sight(&judged);
        let answer = self.ask_files(&sight, FileAsk::Prepare(changes.clone()), stops).await?;
        let measured = match answer.last {
            FileReply::Prepared(measured) if measured.len() == changes.len() => measured,
            FileReply::Failed(failure) => return Err(failures::error(&failure)),
            _ => return Err(ConfineError::Malformed.into()),
        };
        for (step, measured) in parts.iter().zip(&measured) {
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
        let wants: Vec<&str> = parts.iter().map(|step| step.wants.as_str()).collect();
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
            done: parts
                .iter()
                .map(|step| step.done.clone())
                .collect::<Vec<_>>()
                .join("\n"),
            data: data_of(&parts),
        });
        Ok(Assessed {
            assessment: Assessment::demanded(demand, question),
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
    match (wants, files) {
        ([one], 0) => (*one).to_owned(),
        ([one], 1) => format!("{one} with the one file in it"),
        ([one], _) => format!("{one} with the {files} files in it"),
        (several, _) => format!("change {} files: {}", several.len(), several.join(", ")),
    }
}

fn data_of(parts: &[Step]) -> Value {
    match parts {
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
