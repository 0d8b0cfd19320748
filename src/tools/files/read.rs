//! Calls that only look: lines of a file, listings, searches.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::arguments::{FileKind, ListFiles, ReadFile, SearchFiles, parse};
use super::failures;
use super::file_client::Files;
use super::judge::{Judged, Sum};
use super::question::{self, Facts};
use super::render::{entries_data, entries_text, matches_data, matches_text, text_of};
use crate::approval::{Lazy, Presentation};
use crate::confine::ConfineError;
use crate::confine::files::protocol::{
    Case, Done, End, Entry, FileOperation, FileReply, Include, Last, List, Match, Read, Search, Select, State, Text,
};
use crate::confine::wire;
use crate::policy::{AbsPath, Demand, Operation};
use crate::profile::ApprovedRoots;
use crate::tools::approval_authority::ApprovalAuthority;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::output::{Output, OutputEnd};
use crate::tools::prepared::Prepared;
use crate::tools::tool::{ApprovalContext, Assessed, Assessment, OverrideByConfig};

const MAX_BYTES: u64 = 256 * 1024;
/// The most entries or matches that may be asked for.
const MAX_LIMIT: u64 = 10_000;

/// What was prepared: what to ask, and with what open.
#[derive(Debug)]
pub(super) struct Work {
    approved_roots: ApprovedRoots,
    ask: FileOperation,
    start: AbsPath,
    /// What was read already, where nobody is asked about it.
    preread: Option<Text>,
}

/// Assesses a call that only reads.
pub(super) async fn assess_read(
    executor: &mut Executor,
    kind: FileKind,
    context: &ApprovalContext,
    directory: &Path,
    authority: ApprovalAuthority,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Assessed, ToolError> {
    let (judged, ask, preread) = match look_up(&mut executor.files(stops), kind, &context.args, directory).await {
        Ok(found) => found,
        Err(ToolError::Blocked(why)) => return Ok(Assessment::Blocked(why).into()),
        Err(error) => return Err(error),
    };
    let Sum {
        demand,
        demand_source,
        why,
        approved_roots,
    } = executor.judge().sum(std::slice::from_ref(&judged));
    if demand == Demand::None && !authority.may_ask(&executor.session().policy, kind.name()) {
        // A question that is never asked is not made.
        return Ok(Assessed {
            override_by_config: OverrideByConfig::Possible,
            assessment: Assessment::PreApproved(None),
            prepared: Prepared::of(Work {
                approved_roots,
                ask,
                start: judged.path,
                preread,
            }),
        });
    }
    let verb = match kind {
        FileKind::List => "list",
        FileKind::Search => "search",
        _ => "read",
    };
    let description = format!("{verb} {}", judged.path);
    let shown = format!("{description}\n{}", context.args);
    let facts = Facts {
        kind,
        places: vec![judged.clone()],
        description,
        subject: wire::encode(&ask).unwrap_or_default(),
        digest: executor.profiles.of_files(&approved_roots)?.digest(),
        regime: executor.regime_line()?.to_string(),
        presentation: Lazy::new(move || Ok(Presentation::Text(shown.clone()))),
    };
    let question = Box::new(question::request(context, facts, demand, why));
    let prepared = Prepared::of(Work {
        approved_roots,
        ask,
        start: judged.path,
        preread: None,
    });
    Ok(Assessed {
        override_by_config: OverrideByConfig::of_root(demand, demand_source),
        assessment: Assessment::demanded(demand, question),
        prepared,
    })
}

pub(super) async fn look(
    executor: &mut Executor,
    work: Work,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Output, ToolError> {
    let Work {
        approved_roots,
        ask,
        start,
        preread,
    } = work;
    if let Some(text) = preread {
        return Ok(text_of(&start, text));
    }
    let stream_kind = StreamKind::by(&ask);
    let answer = executor.files(stops).ask(&approved_roots, ask).await?;
    render_reply(
        executor,
        &start,
        &approved_roots,
        stream_kind,
        answer.parts,
        answer.last,
    )
}

/// Renders a reply for the agent.
pub(super) fn render_reply(
    executor: &Executor,
    start: &AbsPath,
    approved_roots: &ApprovedRoots,
    stream_kind: StreamKind,
    parts: Vec<FileReply>,
    last: FileReply,
) -> Result<Output, ToolError> {
    match last {
        FileReply::Text(text) => Ok(text_of(start, text)),
        FileReply::Failed(failure) => Err(failures::error(&failure)),
        FileReply::Done(done) => stream_of(executor, start, approved_roots, stream_kind, parts, done),
        _ => Err(ConfineError::Malformed.into()),
    }
}

async fn look_up(
    files: &mut Files<'_>,
    kind: FileKind,
    args: &Value,
    directory: &Path,
) -> Result<(Judged, FileOperation, Option<Text>), ToolError> {
    let blocked = ToolError::Blocked;
    match kind {
        FileKind::Read => {
            let ReadFile {
                path,
                first_line,
                skip_bytes,
                lines,
            } = parse(kind.name(), args)?;
            let read = Read {
                path: OsString::new(),
                first: first_line.unwrap_or(1).max(1),
                skip: skip_bytes.unwrap_or(0),
                lines,
                max_bytes: MAX_BYTES,
            };
            let (looked, text) = files.peek(directory, &path, read.clone()).await?;
            let judged = files.judge().judge(Operation::Read, &looked.path).map_err(blocked)?;
            let ask = FileOperation::Read(Read {
                path: looked.path.as_path().as_os_str().to_owned(),
                ..read
            });
            Ok((judged, ask, text))
        }
        FileKind::List => {
            let list: ListFiles = parse(kind.name(), args)?;
            let path = files
                .judge()
                .path_or_working_directory(list.path.as_deref(), directory)?;
            let looked = files.target(directory, path, Last::Target).await?;
            let judged = files.judge().judge(Operation::List, &looked.path).map_err(blocked)?;
            let depth = list.depth.unwrap_or(if list.glob.is_some() { u32::MAX } else { 1 });
            let ask = FileOperation::List(List {
                path: looked.path.as_path().as_os_str().to_owned(),
                depth: depth.max(1),
                select: select(list.glob, list.hidden, list.ignored),
                limit: list.limit.unwrap_or(500).min(MAX_LIMIT),
            });
            Ok((judged, ask, None))
        }
        _ => {
            let search: SearchFiles = parse(kind.name(), args)?;
            let path = files
                .judge()
                .path_or_working_directory(search.path.as_deref(), directory)?;
            let looked = files.target(directory, path, Last::Target).await?;
            let operation = match looked.state {
                State::Directory { .. } => Operation::List,
                State::Absent | State::File(_) | State::Symlink(_) | State::Other(_) => Operation::Read,
            };
            let judged = files.judge().judge(operation, &looked.path).map_err(blocked)?;
            let ask = FileOperation::Search(Search {
                path: looked.path.as_path().as_os_str().to_owned(),
                pattern: search.pattern,
                case: if search.ignore_case { Case::Either } else { Case::Exact },
                select: select(search.glob, search.hidden, search.ignored),
                context: search.context.unwrap_or(0).min(20),
                limit: search.limit.unwrap_or(100).min(MAX_LIMIT),
            });
            Ok((judged, ask, None))
        }
    }
}

fn stream_of(
    executor: &Executor,
    start: &AbsPath,
    approved_roots: &ApprovedRoots,
    stream_kind: StreamKind,
    parts: Vec<FileReply>,
    done: Done,
) -> Result<Output, ToolError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut matches: Vec<Match> = Vec::new();
    for part in parts {
        match (part, stream_kind) {
            (FileReply::Entries(more), StreamKind::Entries) => entries.extend(more),
            (FileReply::Matches(more), StreamKind::Matches) => matches.extend(more),
            _ => return Err(ConfineError::Malformed.into()),
        }
    }
    let mut render_reply: BTreeMap<AbsPath, bool> = BTreeMap::new();
    let mut may = |operation, path: &std::ffi::OsStr| -> Result<bool, ToolError> {
        let path = AbsPath::new(path).map_err(|_| ConfineError::Malformed)?;
        if !path.is_within(start) {
            return Err(ConfineError::Malformed.into());
        }
        Ok(*render_reply
            .entry(path.clone())
            .or_insert_with(|| executor.judge().may_report(operation, &path, approved_roots)))
    };
    let before = entries.len() + matches.len();
    let mut kept_entries = Vec::new();
    for entry in entries {
        if may(Operation::List, &entry.path)? {
            kept_entries.push(entry);
        }
    }
    let mut kept_matches = Vec::new();
    for found in matches {
        if may(Operation::Read, &found.path)? {
            kept_matches.push(found);
        }
    }
    let withheld = u64::try_from(before - kept_entries.len() - kept_matches.len()).unwrap_or(u64::MAX);
    let (mut text, what, members) = match stream_kind {
        StreamKind::Matches => (
            matches_text(start, &kept_matches),
            "matches",
            matches_data(&kept_matches),
        ),
        StreamKind::Entries => (
            entries_text(start, &kept_entries),
            "entries",
            entries_data(&kept_entries),
        ),
    };
    let shown = kept_entries.len() + kept_matches.len();
    let total = done.total.saturating_sub(withheld);
    match done.end {
        End::Complete if shown == 0 => text.push_str("nothing found\n"),
        End::Complete => {}
        End::Limit => {
            let _infallible = writeln!(
                text,
                "… [{shown} of {total} {what}; a higher `limit` or a narrower `path` or `glob` shows others]"
            );
        }
        End::Time => {
            let _infallible = writeln!(
                text,
                "… [the time was over; {shown} {what} by then; a narrower `path` takes less]"
            );
        }
    }
    if done.unreadable > 0 {
        let _infallible = writeln!(text, "[{} files or directories could not be read]", done.unreadable);
    }
    let data = json!({
        "path": start.to_string(),
        what: members,
        "total": total,
        "complete": done.end == End::Complete,
        "unreadable": done.unreadable,
        "regime": executor.regime_line()?.to_string(),
    });
    Ok(Output::new(OutputEnd::Done, text, data))
}

/// The items of a streamed reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Entries,
    Matches,
}

impl StreamKind {
    pub(super) const fn by(ask: &FileOperation) -> Self {
        match ask {
            FileOperation::Search(_) => Self::Matches,
            _ => Self::Entries,
        }
    }
}

fn select(glob: Option<String>, hidden: bool, ignored: bool) -> Select {
    let include = |yes| if yes { Include::Yes } else { Include::No };
    Select {
        glob,
        hidden: include(hidden),
        ignored: include(ignored),
    }
}
