//! What happens, in the words of the log.

use std::os::unix::ffi::OsStrExt as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::command::{CallId, CommandEnd};
use crate::approval::{DecidedBy, Record, Remember};
use crate::audit::event::{self, Answer, Attempt, Clauses, ConfigFile, Denial, Needs, SelfTest, SessionStart};
use crate::audit::{Text, bounded};
use crate::backend::status::{ClauseStatus, Status as Held};
use crate::config::NamedFile;
use crate::policy::hex::hex;
use crate::policy::path::{display, escape};
use crate::policy::{AbsPath, Mode, Policy};
use crate::tools::call::{ShellCall, ShellCommand, ToolError, argv, words};
use crate::tools::explain::{Blocked, Explained};
use crate::tools::network::{NetworkUse, TriedResult};
use crate::tools::outcome::Status;
use crate::tools::plan::ProfileDigest;
use crate::tools::restored::{Restored, Then};
use crate::tools::tool::{ApprovalContext, Assessment};

/// The most clauses of a profile that are told of, and the most bytes of them.
const MOST_CLAUSES: usize = 500;
const MOST_OF_A_MAP: usize = 128 << 10;
/// The most of what was denied to a command that is told of, the most bytes of it, and of one text in it.
const MOST_DENIALS: usize = 500;
const MOST_OF_DENIALS: usize = 128 << 10;
const MOST_OF_A_DENIAL: usize = 1 << 10;
/// The most entries of one list in a record.
const MAX_ENTRIES: usize = 50;

pub(super) fn session_start(policy: &Policy, mode: Mode) -> SessionStart {
    let ceilings = policy.ceilings.all.iter().take(MAX_ENTRIES);
    SessionStart {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uid: nix::unistd::getuid().as_raw(),
        mode: mode.to_string(),
        config: Vec::new(),
        ceilings: ceilings
            .map(|ceiling| Text::of(&display(ceiling.file.as_os_str())))
            .collect(),
        regime_line: Text::of(""),
    }
}

pub(super) fn complete(start: &mut SessionStart, files: &[NamedFile], regime_line: &str) {
    let files = files.iter().take(MAX_ENTRIES);
    start.config = files
        .map(|file| ConfigFile {
            path: Text::of(&display(&file.path)),
            sha256: file.hex(),
        })
        .collect();
    start.regime_line = Text::of(regime_line);
}

pub(super) fn profile(digest: &ProfileDigest, regime: &str, statuses: Option<&[ClauseStatus]>) -> event::Profile {
    let mut clauses = Clauses::default();
    let mut inexact = Vec::new();
    for status in statuses.unwrap_or_default() {
        let count = match &status.status {
            Held::Enforced => &mut clauses.enforced,
            Held::Stricter(_) => &mut clauses.stricter,
            Held::Undone => &mut clauses.undone,
            Held::Residual(_) => &mut clauses.residual,
        };
        *count += 1;
        if status.status != Held::Enforced && inexact.len() < MAX_ENTRIES {
            inexact.push(Text::of(&format!("{}: {}", status.clause, status.status)));
        }
    }
    let all = statuses.unwrap_or_default();
    let mut bytes = 0;
    let fits = |status: &&ClauseStatus| {
        bytes += status.clause.len() + status.origin.len() + 64;
        bytes <= MOST_OF_A_MAP
    };
    let map = all.iter().take(MOST_CLAUSES).take_while(fits).map(|status| {
        let (held, detail) = match &status.status {
            Held::Enforced => ("enforced", None),
            Held::Stricter(_) => ("stricter", Some(&status.status)),
            Held::Undone => ("undone", Some(&status.status)),
            Held::Residual(_) => ("residual", Some(&status.status)),
        };
        event::Clause {
            clause: Text::of(&status.clause),
            origin: Text::of(&status.origin),
            held,
            detail: detail.map(|detail| Text::of(&detail.to_string())),
        }
    });
    let map: Vec<event::Clause> = map.collect();
    event::Profile {
        more: (all.len() - map.len()) as u64,
        map,
        profile: hex(digest),
        regime: regime.to_owned(),
        clauses,
        inexact,
        self_test: match statuses {
            Some(_) => SelfTest::Passed,
            None => SelfTest::NotConfined,
        },
    }
}

pub(super) fn call(call: CallId, context: &ApprovalContext, arguments: &Value) -> event::Call {
    let text = |text: &Option<String>| text.as_deref().map(Text::of);
    event::Call {
        operation: event::EXECUTE_TOOL,
        tool: Text::of(&context.tool_name),
        call,
        arguments: bounded(arguments),
        caller: text(&context.caller),
        run: text(&context.run_id),
        conversation: text(&context.session_id),
        request: context.request.as_ref().map(|request| event::Request {
            method: request.method,
            session: text(&request.session),
            id: Text::of(&request.id),
        }),
    }
}

pub(super) fn command_arguments(call: &ShellCall) -> Value {
    let shown = |bytes: &[u8]| Value::String(escape(bytes));
    let directory = shown(call.directory.as_os_str().as_bytes());
    let arguments = match &call.command {
        ShellCommand::Line(line) => serde_json::json!({"command": shown(line.as_bytes()), "directory": directory}),
        ShellCommand::Argv(argv) => {
            let argv: Vec<Value> = argv.iter().map(|outcome_name| shown(outcome_name.as_bytes())).collect();
            serde_json::json!({"argv": argv, "directory": directory})
        }
    };
    bounded(&arguments)
}

/// The event for an assessment.
pub(in crate::tools) fn assessment(call: &str, assessment: &Assessment) -> event::Event {
    let (needs, why) = match assessment {
        Assessment::Blocked(why) => (Needs::Blocked, vec![Text::of(why)]),
        Assessment::PreApproved(_) => (Needs::Nothing, Vec::new()),
        Assessment::NeedsApproval(request) => (Needs::Approval, lines(&request.why)),
        Assessment::NoOpinion(question) => {
            let why = question.as_ref().map(|question| lines(&question.why));
            (Needs::Approval, why.unwrap_or_default())
        }
    };
    event::Event::Assessment(event::Assessment {
        call: call.to_owned(),
        needs,
        why,
    })
}

fn lines(lines: &[String]) -> Vec<Text> {
    lines.iter().take(MAX_ENTRIES).map(|line| Text::of(line)).collect()
}

pub(super) fn decision(record: &Record, mode: Mode) -> event::Decision {
    let verdict = &record.verdict;
    let (by, failure) = match &verdict.by {
        DecidedBy::Mode(_) => ("mode", None),
        DecidedBy::Memory => ("memory", None),
        DecidedBy::Approver => ("approver", None),
        DecidedBy::Failure(why) | DecidedBy::Unrecorded(why) => ("failure", Some(Text::of(why))),
        DecidedBy::Pending => ("pending", None),
    };
    event::Decision {
        call: record.call.clone(),
        tool: Text::of(&record.tool_name),
        decision: if verdict.decision.approved {
            Answer::Approved
        } else {
            Answer::Denied
        },
        by,
        mode: mode.to_string(),
        channel: verdict.channel.map(crate::policy::Channel::name),
        remember: match verdict.decision.remember {
            Remember::None => "none",
            Remember::Session => "session",
            Remember::Scope(_) => "scope",
        },
        covers: record.covers.as_deref().map(Text::of),
        note: verdict.decision.note.as_deref().map(Text::of),
        failure,
        description: Text::of(&record.description),
        why: lines(&record.why),
        fingerprint: record.fingerprint.to_string(),
        group: record.group_id.as_deref().map(Text::of),
        caller: record.caller.as_deref().map(Text::of),
    }
}

pub(in crate::tools) fn command_start(
    call: &str,
    command: &ShellCommand,
    directory: &AbsPath,
    digest: &ProfileDigest,
    regime: &str,
) -> event::Event {
    let mut hash = Sha256::new();
    for outcome_name in argv(command.clone()) {
        hash.update((outcome_name.len() as u64).to_le_bytes());
        hash.update(outcome_name.as_bytes());
    }
    event::Event::Start(event::Start {
        call: call.to_owned(),
        command: Text::of_bytes(&words(command)),
        command_sha256: hex(&hash.finalize()),
        directory: Text::of(&directory.to_string()),
        profile: hex(digest),
        regime: regime.to_owned(),
    })
}

pub(super) fn end(call: &str, end: &CommandEnd<'_>) -> event::End {
    let (status, code, signal, why) = match end.status {
        Status::Exited { code } => ("exited", Some(*code), None, None),
        Status::Signaled { signal } => ("signaled", None, Some(*signal), None),
        Status::TimedOut => ("timed_out", None, None, None),
        Status::Cancelled { signal } => ("cancelled", None, Some(*signal), None),
        Status::OverLimit { limit } => ("over_limit", None, None, Some(limit)),
        Status::NotFound { program } => ("not_found", None, None, Some(program)),
        Status::NotExecutable { why } => ("not_executable", None, None, Some(why)),
        Status::Failed { why } => ("failed", None, None, Some(why)),
    };
    event::End {
        call: call.to_owned(),
        status,
        code,
        signal,
        why: why.map(|why| Text::of(why)),
        duration: end.duration,
        output_bytes: end.output_bytes,
        unsettled: end.unsettled.map(Text::of),
    }
}

pub(super) fn violation(call: &str, restored: &Restored) -> event::Violation {
    event::Violation {
        call: call.to_owned(),
        path: Text::of(&display(&restored.full_path)),
        what: Text::of(&restored.what),
        quarantined: restored.quarantined.as_deref().map(Text::of),
        settings: restored.settings.iter().map(|name| Text::of(name)).collect(),
        more_settings: (restored.more_settings > 0).then_some(restored.more_settings),
        is_other_in_head: restored.is_other_in_head,
        then: match restored.then {
            Then::StayedUndone => "stayed_undone",
            Then::PutBack => "put_back",
            Then::NotPutBack(_) => "not_put_back",
            Then::NotRestored(_) => "not_restored",
        },
    }
}

pub(super) fn network(call: &str, used: &NetworkUse) -> event::Network {
    let attempts = used.attempts.iter().take(MAX_ENTRIES);
    let left = used.attempts.iter().skip(MAX_ENTRIES).map(|tried| tried.times);
    event::Network {
        call: call.to_owned(),
        attempts: attempts
            .map(|tried| Attempt {
                place: Text::of(&tried.place),
                result: match tried.result {
                    TriedResult::Passed => "passed",
                    TriedResult::Failed => "failed",
                    TriedResult::Refused => "refused",
                    TriedResult::Abandoned => "abandoned",
                },
                why: Text::of(&tried.why),
                times: tried.times,
                up: tried.up,
                down: tried.down,
            })
            .collect(),
        more: left.fold(
            used.more_reached.saturating_add(used.more_unreached),
            u64::saturating_add,
        ),
        up: used.up,
        down: used.down,
    }
}

/// What was denied to a command: as many as may be told of, and how many there were beside.
pub(super) fn denials(call: &str, explained: &Explained) -> event::Denials {
    let mut bytes = 0;
    let fits = |denial: &Denial| {
        let written = serde_json::to_vec(denial).map_or(MOST_OF_DENIALS, |written| written.len());
        bytes += written;
        bytes <= MOST_OF_DENIALS
    };
    let listed = explained.blocked.iter().take(MOST_DENIALS).map(denial);
    let blocked: Vec<Denial> = listed.take_while(fits).collect();
    let left = (explained.blocked.len() - blocked.len()) as u64;
    event::Denials {
        call: call.to_owned(),
        blocked,
        more: explained.more.saturating_add(left),
        unseen: explained.unseen,
    }
}

fn denial(blocked: &Blocked) -> Denial {
    let short = |text: &str| Text::within(text, MOST_OF_A_DENIAL);
    let all = |texts: &[String]| texts.iter().take(MAX_ENTRIES).map(|text| short(text)).collect();
    Denial {
        wanted: blocked.wanted.name(),
        what: short(&blocked.what),
        times: blocked.times,
        by: blocked.by.name(),
        clause: blocked.clause.as_deref().map(short),
        origin: blocked.origin.as_deref().map(short),
        change: all(&blocked.change),
        notes: all(&blocked.notes),
    }
}

/// The outcome name of a failed call.
pub(super) const fn outcome_name(error: &ToolError) -> &'static str {
    match error {
        ToolError::Blocked(_) => "blocked",
        ToolError::Denied(_) => "denied",
        ToolError::Pending => "pending",
        ToolError::Stopped(_) => "cancelled",
        ToolError::UnderWay { failure, .. } | ToolError::PutBack { failure, .. } => outcome_name(failure),
        ToolError::Refused(_)
        | ToolError::Changed(_)
        | ToolError::Arguments { .. }
        | ToolError::NoSuchTool(_)
        | ToolError::File(_)
        | ToolError::Function(_)
        | ToolError::Directory(_)
        | ToolError::Plan(_)
        | ToolError::Confine(_)
        | ToolError::Io(_)
        | ToolError::Private(_)
        | ToolError::Audit(_)
        | ToolError::AuditAfter(_) => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::explain::{Layer, Subject, Wanted};

    fn explained(count: usize, what: &str) -> Explained {
        let blocked = |number: usize| Blocked {
            wanted: Wanted::Make,
            what: format!("/{what}{number}"),
            times: 1,
            by: Layer::Mounts,
            clause: Some("grant read /".to_owned()),
            origin: Some("agent.yaml:3".to_owned()),
            change: vec![format!("a root that holds /{what}{number} would permit it")],
            notes: Vec::new(),
            subject: Subject::Nothing,
        };
        Explained {
            blocked: (0..count).map(blocked).collect(),
            more: 7,
            unseen: 2,
            ..Explained::default()
        }
    }

    #[test]
    fn what_was_denied_is_on_record_as_it_was_told() {
        let to_event = denials("3", &explained(2, "usr/"));
        assert_eq!((to_event.blocked.len(), to_event.more, to_event.unseen), (2, 7, 2));
        let written = serde_json::to_value(&to_event.blocked[1]).unwrap();
        let expected = serde_json::json!({
            "wanted": "make", "what": "/usr/1", "times": 1, "by": "mounts", "clause": "grant read /", "origin": "agent.yaml:3",
            "change": ["a root that holds /usr/1 would permit it"],
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn a_flood_of_long_paths_is_cut_and_what_is_left_out_is_counted() {
        for what in ["x".repeat(4000), "\\xff".repeat(4000)] {
            let to_event = denials("3", &explained(500, &what));
            let written = serde_json::to_string(&to_event).unwrap().len();
            assert!(written < MOST_OF_DENIALS + 1024, "{written}");
            assert!(to_event.blocked.len() > 20, "{}", to_event.blocked.len());
            assert_eq!(to_event.blocked.len() as u64 + to_event.more, 507);
        }
    }

    #[test]
    fn no_more_are_told_of_than_may_be() {
        let to_event = denials("3", &explained(600, ""));
        assert_eq!((to_event.blocked.len(), to_event.more), (500, 107));
    }
}
