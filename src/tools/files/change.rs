//! Calls that change files: looked at, judged, prepared, asked about, and then exactly that is done.

use std::path::Path;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::apply::apply;
use super::arguments::FileKind;
use super::failures;
use super::file_client::Files;
use super::judge::{AskingLine, Judged, Sum};
use super::present;
use super::question::{self, Facts};
use super::steps::{Step, steps};
use crate::approval::{Lazy, Presentation};
use crate::confine::ConfineError;
use crate::confine::files::FileServer;
use crate::confine::files::protocol::{Bound, Change, FileOperation, FileReply, Prepared as Measured, State, Tree};
use crate::policy::Demand;
use crate::profile::ApprovedRoots;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::output::{Output, OutputEnd};
use crate::tools::prepared::Prepared;
use crate::tools::restored::{Changed, MEANWHILE, Then};
use crate::tools::tool::{ApprovalContext, Assessed, Assessment, OverrideByConfig};

/// What was prepared, and what it is called.
#[derive(Debug)]
pub(super) struct Work {
    approved_roots: ApprovedRoots,
    /// What to do, or why it cannot be done.
    plan: Result<Vec<Bound>, ToolError>,
    /// What is done, in the past: for the answer.
    done: String,
    data: Value,
}

/// Assesses and prepares a change.
pub(super) async fn assess_change(
    executor: &mut Executor,
    kind: FileKind,
    context: &ApprovalContext,
    directory: &Path,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Assessed, ToolError> {
    let parts = match steps(&mut executor.files(stops), kind, &context.args, directory).await {
        Ok(parts) => parts,
        Err(ToolError::Blocked(why)) => return Ok(Assessment::Blocked(why).into()),
        Err(error) => return Err(error),
    };
    let judged: Vec<Judged> = parts.iter().flat_map(|step| step.judged.clone()).collect();
    let sum = executor.judge().sum(&judged);
    if sum.demand == Demand::Deny {
        return Ok(Assessment::Blocked(forbidden_by(&sum.why)).into());
    }
    let changes: Vec<Change> = parts.iter().map(|step| step.change.clone()).collect();
    let view_access = executor.judge().view_access(&judged);
    let (measured, server) = match measure(&mut executor.files(stops), &parts, &changes, &view_access).await? {
        Ok(ready) => ready,
        // Why not is told after a yes: it speaks of what nobody may read without one.
        Err(why) if view_access != ApprovedRoots::None => {
            return failing_question(executor, kind, context, &parts, sum, why);
        }
        Err(ToolError::Blocked(why)) => return Ok(Assessment::Blocked(why).into()),
        Err(why) => return Err(why),
    };
    let bound: Vec<Bound> = changes
        .iter()
        .zip(&measured)
        .map(|(change, measured)| Bound {
            change: change.clone(),
            before: measured.before.clone(),
            after: measured.after,
            contents: measured.contents.and_then(|contents| contents.digest),
        })
        .collect();
    let description: Vec<&str> = parts.iter().map(|step| step.description.as_str()).collect();
    let profile = executor.profiles.of_files(&sum.approved_roots)?;
    let once = once(executor, &bound);
    let facts = Facts {
        kind,
        // What a directory loses is another thing each time.
        places: if once.is_empty() { judged.clone() } else { Vec::new() },
        description: described(&description, &measured),
        subject: [question::of_changes(&bound), once].concat(),
        digest: profile.digest(),
        regime: executor.regime_line()?.to_string(),
        presentation: present::changes(server, changes, measured),
    };
    let Sum {
        demand,
        demand_source,
        why,
        approved_roots,
    } = sum;
    let is_safe = executor.judge().is_safe(kind, &judged, &approved_roots, &view_access);
    let demand = if is_safe { Demand::None } else { demand };
    let question = Box::new(question::request(context, facts, demand, why));
    let prepared = Prepared::of(Work {
        approved_roots,
        plan: Ok(bound),
        done: parts
            .iter()
            .map(|step| step.done.clone())
            .collect::<Vec<_>>()
            .join("\n"),
        data: data_of(&parts),
    });
    Ok(Assessed {
        override_by_config: OverrideByConfig::of_root(demand, demand_source),
        assessment: Assessment::demanded(demand, question),
        prepared,
    })
}

/// A yes to what becomes of a directory is a yes to nothing else: what is in it is another thing each time.
fn once(executor: &mut Executor, bound: &[Bound]) -> Vec<u8> {
    let takes = |one: &Bound| match (&one.change, one.before.first()) {
        (
            Change::Delete {
                tree: Tree::Recursive, ..
            }
            | Change::Move { .. },
            Some(State::Directory { .. }),
        ) => true,
        (_, _) => false,
    };
    if !bound.iter().any(takes) {
        return Vec::new();
    }
    executor.unknown += 1;
    executor.unknown.to_le_bytes().to_vec()
}

/// The lines that forbid it.
fn forbidden_by(lines: &[AskingLine]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.sentence.as_str()).collect();
    lines.join("; ")
}

/// What the changes amount to, and who says so; or why they cannot be made.
async fn measure(
    files: &mut Files<'_>,
    parts: &[Step],
    changes: &[Change],
    view_access: &ApprovedRoots,
) -> Result<Result<(Vec<Measured>, FileServer), ToolError>, ToolError> {
    let answer = files.ask(view_access, FileOperation::Prepare(changes.to_vec())).await?;
    let measured = match measured(answer.last, changes.len()) {
        Ok(measured) => measured,
        Err(error @ ToolError::Confine(_)) => return Err(error),
        Err(why) => return Ok(Err(why)),
    };
    if let Err(why) = check_emptied(files, parts, view_access).await? {
        return Ok(Err(why));
    }
    for (step, measured) in parts.iter().zip(&measured) {
        if let Some(limit) = step.judged.iter().filter_map(|one| one.limit).min()
            && size_of(&step.change, measured) > limit
        {
            let why = failures::over(&step.judged, size_of(&step.change, measured), limit);
            return Ok(Err(ToolError::Blocked(why)));
        }
    }
    Ok(Ok((measured, answer.server)))
}

/// Whether what a patch removes is what the patch says it is: nothing of it may be left.
async fn check_emptied(
    files: &mut Files<'_>,
    parts: &[Step],
    view_access: &ApprovedRoots,
) -> Result<Result<(), ToolError>, ToolError> {
    let emptied: Vec<Change> = parts.iter().filter_map(|step| step.empties.clone()).collect();
    if emptied.is_empty() {
        return Ok(Ok(()));
    }
    let answer = files.ask(view_access, FileOperation::Prepare(emptied.clone())).await?;
    let measured = match measured(answer.last, emptied.len()) {
        Ok(measured) => measured,
        Err(error @ ToolError::Confine(_)) => return Err(error),
        Err(why) => return Ok(Err(why)),
    };
    let is_emptied = |(change, measured): (&Change, &Measured)| match (change, measured.before.first()) {
        // Nothing is taken out of it: there must be nothing in it.
        (Change::Write { .. }, Some(State::File(file))) => file.size == 0,
        (Change::Write { .. }, _) => false,
        _ => measured.size == 0,
    };
    Ok(if emptied.iter().zip(&measured).all(is_emptied) {
        Ok(())
    } else {
        let why = "the patch removes a file and leaves some of its lines out; delete_file removes it whatever is in it";
        Err(ToolError::File(why.to_owned()))
    })
}

/// The question about changes that would fail: after a yes the agent gets the reason.
fn failing_question(
    executor: &mut Executor,
    kind: FileKind,
    context: &ApprovalContext,
    parts: &[Step],
    sum: Sum,
    why: ToolError,
) -> Result<Assessed, ToolError> {
    let Sum {
        demand,
        demand_source,
        why: lines,
        approved_roots,
    } = sum;
    let description: Vec<&str> = parts.iter().map(|step| step.description.as_str()).collect();
    let changes: Vec<&Change> = parts.iter().map(|step| &step.change).collect();
    let shown = format!("It cannot be done; the agent would be told why:\n{why}");
    let facts = Facts {
        kind,
        places: Vec::new(),
        description: described(&description, &[]),
        subject: question::of_failure(&changes, &shown),
        digest: executor.profiles.of_files(&approved_roots)?.digest(),
        regime: executor.regime_line()?.to_string(),
        presentation: Lazy::new(move || Ok(Presentation::Text(shown.clone()))),
    };
    let question = Box::new(question::request(context, facts, demand, lines));
    Ok(Assessed {
        override_by_config: OverrideByConfig::of_root(demand, demand_source),
        assessment: Assessment::demanded(demand, question),
        prepared: Prepared::of(Work {
            approved_roots,
            plan: Err(why),
            done: String::new(),
            data: Value::Null,
        }),
    })
}

pub(super) async fn make_change(
    executor: &mut Executor,
    work: Work,
    call: Option<&str>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Output, ToolError> {
    let started = Instant::now();
    let Work {
        approved_roots,
        plan,
        done,
        data,
    } = work;
    let (reply, restored, unsettled) = apply(executor, &approved_roots, plan?, call, stops).await?;
    match reply {
        FileReply::Applied => {}
        FileReply::Failed(failure) => return Err(failures::error(&failure).with_put_back(&restored, unsettled)),
        _ => return Err(ToolError::from(ConfineError::Malformed).with_put_back(&restored, unsettled)),
    }
    let changed = Changed::of(&restored);
    let is_undone = restored.iter().any(|restored| restored.then != Then::PutBack);
    let told = if is_undone {
        changed.messages(MEANWHILE)
    } else {
        Vec::new()
    };
    let undone: Vec<String> = told
        .into_iter()
        .chain(unsettled.map(|why| format!("protected names could not be restored: {why}")))
        .collect();
    let mut data = data;
    if let Value::Object(members) = &mut data {
        members.insert("regime".to_owned(), json!(executor.regime_line()?.to_string()));
        members.insert("duration".to_owned(), json!(started.elapsed().as_secs_f64()));
        if let Value::Object(changed) = json!(changed) {
            members.extend(changed);
        }
    }
    Ok(if undone.is_empty() {
        Output::new(OutputEnd::Done, done, data)
    } else {
        Output::new(OutputEnd::Failed, undone.join("\n"), data)
    })
}

/// What so many changes amount to, as the server says.
pub(super) fn measured(reply: FileReply, count: usize) -> Result<Vec<Measured>, ToolError> {
    match reply {
        FileReply::Prepared(measured) if measured.len() == count => Ok(measured),
        FileReply::Failed(failure) => Err(failures::error(&failure)),
        _ => Err(ConfineError::Malformed.into()),
    }
}

/// The bytes of what a change would leave there.
pub(super) fn size_of(change: &Change, measured: &Measured) -> u64 {
    match (change, measured.before.first()) {
        (Change::Move { .. }, Some(State::File(file))) => file.size,
        _ => measured.size,
    }
}

pub(super) fn described(description: &[&str], measured: &[Measured]) -> String {
    let count = |one: &Measured| one.contents.map_or(one.files, |contents| contents.files);
    let files: u64 = measured.iter().fold(0, |sum, one| sum.saturating_add(count(one)));
    let is_part = measured
        .iter()
        .filter_map(|one| one.contents)
        .any(|contents| contents.digest.is_none());
    match (description, files) {
        ([one], _) if is_part => format!("{one} with the more than {files} files in it"),
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
