//! `stockade approvals`: answers the questions of sessions from another process.

use serde_json::{Value, json};

use super::approver;
use super::args::{ApprovalsAction, ApprovalsArgs};
use super::error::{CliError, print, print_notice};
use super::exit::Exit;
use super::policy;
use crate::approval::{
    ApprovalDecision, ApprovalsAddress, ApprovalsClient, ApprovalsEvent, ApprovalsReply, ApprovalsRequest,
    Approver as _, ClientError, Remember, RequestMessage, RequestSummary, SessionEvent, SessionRequests,
    TerminalApprover,
};
use crate::policy::path::escape;

/// The width of a question where the terminal has none.
const COLUMNS: u16 = 100;

pub(super) fn approvals(args: ApprovalsArgs) -> Result<Exit, CliError> {
    let places = policy::places(&policy::context(&[]))?;
    let sockets = approver::approvals_sockets(&args.socket, &places.state);
    let json = args.json;
    match args.action {
        None if json => list(&sockets, json),
        None => answer(sockets),
        Some(ApprovalsAction::List) => list(&sockets, json),
        Some(ApprovalsAction::Show { id }) => show(&sockets, &id, json),
        Some(ApprovalsAction::Approve {
            id,
            session,
            scope,
            note,
        }) => {
            let remember = match scope {
                // As `show` numbers them.
                Some(number) => number.checked_sub(2).map_or(Remember::Session, Remember::Scope),
                None if session => Remember::Session,
                None => Remember::None,
            };
            let request = ApprovalsRequest::Approve {
                id: id.clone(),
                remember,
                note,
            };
            settle(&sockets, request, "approved", &id, json)
        }
        Some(ApprovalsAction::Deny { id, note }) => {
            let request = ApprovalsRequest::Deny { id: id.clone(), note };
            settle(&sockets, request, "denied", &id, json)
        }
        Some(ApprovalsAction::Watch) => watch(sockets, json),
    }
}

/// Lists the open questions of all sessions. A session that does not answer is named, and makes the exit code a failure.
fn list(sockets: &ApprovalsAddress, json: bool) -> Result<Exit, CliError> {
    let sessions = sockets.list().map_err(client_error)?;
    let several = sessions.len() > 1;
    let mut all = Vec::new();
    let mut unanswered = Vec::new();
    for SessionRequests { process, requests, .. } in sessions {
        match requests {
            Ok(waiting) => all.extend(waiting.into_iter().map(|waiting| (process, waiting))),
            // The session ended meanwhile.
            Err(error) if several && error.is_gone() => {}
            Err(error) if several || matches!(error, ClientError::Unanswered(_)) => unanswered.push((process, error)),
            Err(error) => return Err(client_error(error)),
        }
    }
    all.sort_by(|(_, one), (_, other)| (other.open_for, &one.id).cmp(&(one.open_for, &other.id)));
    if json {
        let objects = all.iter().map(|(process, waiting)| {
            let mut object = serde_json::to_value(waiting).map_err(CliError::failed)?;
            if let Value::Object(members) = &mut object {
                members.insert("process".to_owned(), json!(process));
            }
            Ok(object)
        });
        let objects: Vec<Value> = objects.collect::<Result<_, CliError>>()?;
        let silent = unanswered
            .iter()
            .map(|(process, error)| json!({"process": process, "reason": error.to_string()}));
        let silent: Vec<Value> = silent.collect();
        print(&format!("{}\n", json!({"waiting": objects, "unanswered": silent})))?;
    } else if all.is_empty() && unanswered.is_empty() {
        print("nothing is asked\n")?;
    } else {
        let lines = all.iter().map(|(process, waiting)| match process {
            Some(process) if several => format!("{} [process {process}]\n", line(waiting).trim_end()),
            Some(_) | None => line(waiting),
        });
        print(&lines.collect::<String>())?;
    }
    for (process, error) in &unanswered {
        print_notice(format_args!("{error}{}", resume_hint(*process)));
    }
    Ok(if unanswered.is_empty() {
        Exit::Success
    } else {
        Exit::Failed
    })
}

/// How to resume a session that does not answer.
fn resume_hint(process: Option<i32>) -> String {
    process.map_or_else(String::new, |process| {
        format!("; `kill -CONT {process}` lets it go on, `kill -KILL {process}` ends it")
    })
}

/// A question as one line, escaped.
fn line(waiting: &RequestSummary) -> String {
    let shown = |text: &str| escape(text.as_bytes());
    let caller = waiting
        .caller
        .as_deref()
        .map(|caller| format!(" for {}", shown(caller)));
    let left = waiting.denied_in.map(|left| format!(", denied in {left} s"));
    format!(
        "{} {}{}: {} (open for {} s{})\n",
        shown(&waiting.id),
        shown(&waiting.tool),
        caller.unwrap_or_default(),
        shown(&waiting.description),
        waiting.open_for,
        left.unwrap_or_default(),
    )
}

fn question(client: &ApprovalsClient, id: &str) -> Result<Box<RequestMessage>, ClientError> {
    match client.send(ApprovalsRequest::Show { id: id.to_owned() })? {
        ApprovalsReply::Question(question_asked) => Ok(question_asked),
        ApprovalsReply::Waiting(_) | ApprovalsReply::Done | ApprovalsReply::Refused(_) => Err(ClientError::Unreadable),
    }
}

fn show(sockets: &ApprovalsAddress, id: &str, json: bool) -> Result<Exit, CliError> {
    let client = sockets.client_for(id).map_err(client_error)?;
    let question_asked = question(&client, id).map_err(client_error)?;
    if json {
        let object = serde_json::to_string(&question_asked).map_err(CliError::failed)?;
        print(&format!("{object}\n"))?;
    } else {
        print(&question_asked.text(COLUMNS))?;
        if let Some(covers) = question_asked.covered_by_plain_yes() {
            print(&format!(
                "a plain yes holds until the session ends, as the config says, for {}\n",
                escape(covers.as_bytes())
            ))?;
        }
        let wider = question_asked.wider_answers();
        if !wider.is_empty() {
            print("yes, until the session ends (`stockade approvals approve ID --scope NUMBER`), for\n")?;
        }
        for wider in wider {
            print(&format!("  {}  {}\n", wider.number, escape(wider.covers.as_bytes())))?;
        }
    }
    Ok(Exit::Success)
}

fn settle(
    sockets: &ApprovalsAddress,
    request: ApprovalsRequest,
    how: &str,
    id: &str,
    json: bool,
) -> Result<Exit, CliError> {
    let client = sockets.client_for(id).map_err(client_error)?;
    let replied = client.send(request).map_err(|error| {
        let may_count_later = matches!(error, ClientError::Unanswered(_));
        let failure = client_error(error);
        if may_count_later {
            failure.remedy("the answer may count when the session goes on")
        } else {
            failure
        }
    });
    match replied? {
        ApprovalsReply::Done => {}
        ApprovalsReply::Waiting(_) | ApprovalsReply::Question(_) | ApprovalsReply::Refused(_) => {
            return Err(client_error(ClientError::Unreadable));
        }
    }
    if json {
        print(&format!("{}\n", json!({"id": id, "settled": how})))?;
    } else {
        print(&format!("{how} {}\n", escape(id.as_bytes())))?;
    }
    Ok(Exit::Success)
}

/// Prints the end of sessions to standard error; returns any other event.
fn session_event(
    event_or_end: Result<SessionEvent, ClientError>,
) -> Result<Option<(ApprovalsClient, ApprovalsEvent)>, CliError> {
    match event_or_end.map_err(client_error)? {
        SessionEvent::NoSession => print_notice("no session asks now; waiting for one (Ctrl-C to leave)"),
        SessionEvent::SessionEnded => print_notice("a session has ended"),
        SessionEvent::Event(_, ApprovalsEvent::Refused(why)) => return Err(client_error(ClientError::Refused(why))),
        SessionEvent::Event(client, event) => return Ok(Some((client, event))),
    }
    Ok(None)
}

/// Prints the events of all sessions, including those that start later.
fn watch(sockets: ApprovalsAddress, json: bool) -> Result<Exit, CliError> {
    for event_or_end in sockets.follow() {
        let Some((_, event)) = session_event(event_or_end)? else {
            continue;
        };
        if json {
            let object = serde_json::to_string(&event).map_err(CliError::failed)?;
            print(&format!("{object}\n"))?;
            continue;
        }
        print(&match event {
            ApprovalsEvent::Asked(waiting) => line(&waiting),
            ApprovalsEvent::Settled { id, how } => {
                format!("{} is settled: {}\n", escape(id.as_bytes()), escape(how.as_bytes()))
            }
            ApprovalsEvent::Refused(why) => return Err(client_error(ClientError::Refused(why))),
        })?;
    }
    Ok(Exit::Success)
}

/// Asks the questions of all sessions on this terminal, one at a time.
fn answer(sockets: ApprovalsAddress) -> Result<Exit, CliError> {
    let mut terminal = TerminalApprover::new();
    for event_or_end in sockets.follow() {
        let Some((client, ApprovalsEvent::Asked(RequestSummary { id, .. }))) = session_event(event_or_end)? else {
            continue;
        };
        let question_asked = match question(&client, &id) {
            Ok(question_asked) => question_asked,
            // Another client answered, or the session ended.
            Err(ClientError::Refused(_)) => continue,
            Err(error) if error.is_gone() => continue,
            // Other sessions still ask.
            Err(ClientError::Unanswered(processes)) => {
                let process = processes.first().copied().flatten();
                let error = ClientError::Unanswered(processes);
                print_notice(format_args!("{error}{}", resume_hint(process)));
                continue;
            }
            Err(error) => return Err(client_error(error)),
        };
        let decision = terminal
            .ask(&question_asked.request(), &question_asked.presentation)
            .map_err(|error| CliError::failed(error).remedy("`stockade approvals list` needs no terminal"))?;
        match client.send(answer_request(id, decision)) {
            Ok(_) => {}
            Err(ClientError::Refused(why)) => {
                print_notice(format_args!("the answer came too late: {}", escape(why.as_bytes())));
            }
            Err(error) if error.is_gone() => print_notice("the answer came too late: the session has ended"),
            Err(ClientError::Unanswered(processes)) => {
                let process = processes.first().copied().flatten();
                let error = ClientError::Unanswered(processes);
                print_notice(format_args!(
                    "{error}, and the answer may count when it goes on{}",
                    resume_hint(process)
                ));
            }
            Err(error) => return Err(client_error(error)),
        }
    }
    Ok(Exit::Success)
}

fn answer_request(id: String, decision: ApprovalDecision) -> ApprovalsRequest {
    let ApprovalDecision {
        approved,
        note,
        remember,
    } = decision;
    if approved {
        ApprovalsRequest::Approve { id, remember, note }
    } else {
        ApprovalsRequest::Deny { id, note }
    }
}

fn client_error(error: ClientError) -> CliError {
    let failure = CliError::failed(&error);
    match error {
        ClientError::NobodyListens { .. } | ClientError::NoSession => failure
            .remedy("start a session with `stockade run --approvals-socket PATH|default …`, and name the same place"),
        ClientError::Unanswered(processes) => {
            let named = processes
                .iter()
                .flatten()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ");
            failure.remedy(if named.is_empty() {
                "let the session go on (`kill -CONT PROCESS`), and ask again".to_owned()
            } else {
                format!("let it go on (`kill -CONT {named}`) or end it (`kill -KILL {named}`), and ask again")
            })
        }
        ClientError::Token { .. }
        | ClientError::NotOurs
        | ClientError::Ended
        | ClientError::Silent(_)
        | ClientError::Unreadable
        | ClientError::TooLong
        | ClientError::Refused(_) => failure,
    }
}
