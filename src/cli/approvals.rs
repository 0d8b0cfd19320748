//! `stockade approvals`: whoever answers the questions of sessions from outside.

use serde_json::{Value, json};

use super::approver;
use super::args::{ApprovalsAction, ApprovalsArgs};
use super::complain::{Complaint, print, say};
use super::exit::Exit;
use super::policy;
use crate::approval::{
    ApprovalDecision, ApprovalsClient, ApprovalsEvent, ApprovalsPlace, ApprovalsReply, ApprovalsRequest, Approver as _,
    Asked, ClientError, Happening, Listed, Remember, TerminalApprover, Waiting,
};
use crate::policy::path::escape;
use crate::tools::terminal_size;

/// How wide a question is shown where nobody tells the width.
const COLUMNS: u16 = 100;

/// Lists, shows, answers, or watches.
pub(super) fn approvals(args: ApprovalsArgs) -> Result<Exit, Complaint> {
    let places = policy::places(&policy::context(&[]))?;
    let place = approver::approvals_place(&args.socket, &places.state);
    let json = args.json;
    match args.action {
        None if json => list(&place, json),
        None => answer(place),
        Some(ApprovalsAction::List) => list(&place, json),
        Some(ApprovalsAction::Show { id }) => show(&place, &id, json),
        Some(ApprovalsAction::Approve { id, session, note }) => {
            let remember = if session { Remember::Session } else { Remember::None };
            let request = ApprovalsRequest::Approve {
                id: id.clone(),
                remember,
                note,
            };
            settle(&place, request, "approved", &id, json)
        }
        Some(ApprovalsAction::Deny { id, note }) => {
            let request = ApprovalsRequest::Deny { id: id.clone(), note };
            settle(&place, request, "denied", &id, json)
        }
        Some(ApprovalsAction::Watch) => watch(place, json),
    }
}

/// What all sessions ask that answer. One that does not is named, and the exit code says that the list is not whole.
fn list(place: &ApprovalsPlace, json: bool) -> Result<Exit, Complaint> {
    let sessions = place.list().map_err(complain)?;
    let several = sessions.len() > 1;
    let mut all = Vec::new();
    let mut unanswered = Vec::new();
    for Listed { process, asks, .. } in sessions {
        match asks {
            Ok(waiting) => all.extend(waiting.into_iter().map(|waiting| (process, waiting))),
            // It ended meanwhile.
            Err(error) if several && error.is_gone() => {}
            Err(error) if several || matches!(error, ClientError::Unanswered(_)) => unanswered.push((process, error)),
            Err(error) => return Err(complain(error)),
        }
    }
    all.sort_by(|(_, one), (_, other)| (other.open_for, &one.id).cmp(&(one.open_for, &other.id)));
    if json {
        let objects = all.iter().map(|(process, waiting)| {
            let mut object = serde_json::to_value(waiting).map_err(Complaint::failed)?;
            if let Value::Object(members) = &mut object {
                members.insert("process".to_owned(), json!(process));
            }
            Ok(object)
        });
        let objects: Vec<Value> = objects.collect::<Result<_, Complaint>>()?;
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
        say(&format!("stockade: {error}{}\n", go_on(*process)));
    }
    Ok(if unanswered.is_empty() {
        Exit::Success
    } else {
        Exit::Failed
    })
}

/// What to do about a session that does not answer, in the same line.
fn go_on(process: Option<i32>) -> String {
    process.map_or_else(String::new, |process| {
        format!("; `kill -CONT {process}` lets it go on, `kill -KILL {process}` ends it")
    })
}

/// A question in a line, safe to print.
fn line(waiting: &Waiting) -> String {
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

fn question(client: &ApprovalsClient, id: &str) -> Result<Box<Asked>, ClientError> {
    match client.say(ApprovalsRequest::Show { id: id.to_owned() })? {
        ApprovalsReply::Question(asked) => Ok(asked),
        ApprovalsReply::Waiting(_) | ApprovalsReply::Done | ApprovalsReply::Refused(_) => Err(ClientError::Unreadable),
    }
}

fn show(place: &ApprovalsPlace, id: &str, json: bool) -> Result<Exit, Complaint> {
    let client = place.asking(id).map_err(complain)?;
    let asked = question(&client, id).map_err(complain)?;
    if json {
        let object = serde_json::to_string(&asked).map_err(Complaint::failed)?;
        print(&format!("{object}\n"))?;
    } else {
        print(&asked.text(COLUMNS))?;
    }
    Ok(Exit::Success)
}

fn settle(
    place: &ApprovalsPlace,
    request: ApprovalsRequest,
    how: &str,
    id: &str,
    json: bool,
) -> Result<Exit, Complaint> {
    let client = place.asking(id).map_err(complain)?;
    let replied = client.say(request).map_err(|error| {
        let is_late = matches!(error, ClientError::Unanswered(_));
        let complaint = complain(error);
        if is_late {
            complaint.remedy("the answer may count when the session goes on")
        } else {
            complaint
        }
    });
    match replied? {
        ApprovalsReply::Done => {}
        ApprovalsReply::Waiting(_) | ApprovalsReply::Question(_) | ApprovalsReply::Refused(_) => {
            return Err(complain(ClientError::Unreadable));
        }
    }
    if json {
        print(&format!("{}\n", json!({"id": id, "settled": how})))?;
    } else {
        print(&format!("{how} {}\n", escape(id.as_bytes())))?;
    }
    Ok(Exit::Success)
}

/// Says on standard error what becomes of sessions; gives the rest on.
fn heard(happening: Result<Happening, ClientError>) -> Result<Option<(ApprovalsClient, ApprovalsEvent)>, Complaint> {
    match happening.map_err(complain)? {
        Happening::Nobody => say("stockade: no session asks now; waiting for one (Ctrl-C to leave)\n"),
        Happening::Ended => say("stockade: a session has ended\n"),
        Happening::Event(_, ApprovalsEvent::Refused(why)) => return Err(complain(ClientError::Refused(why))),
        Happening::Event(client, event) => return Ok(Some((client, event))),
    }
    Ok(None)
}

/// Prints what happens in all sessions, those that are still to come as well.
fn watch(place: ApprovalsPlace, json: bool) -> Result<Exit, Complaint> {
    for happening in place.follow() {
        let Some((_, event)) = heard(happening)? else { continue };
        if json {
            let object = serde_json::to_string(&event).map_err(Complaint::failed)?;
            print(&format!("{object}\n"))?;
            continue;
        }
        print(&match event {
            ApprovalsEvent::Asked(waiting) => line(&waiting),
            ApprovalsEvent::Settled { id, how } => {
                format!("{} is settled: {}\n", escape(id.as_bytes()), escape(how.as_bytes()))
            }
            ApprovalsEvent::Refused(why) => return Err(complain(ClientError::Refused(why))),
        })?;
    }
    Ok(Exit::Success)
}

/// Asks each question on this terminal, one after the other, whichever session asks it.
fn answer(place: ApprovalsPlace) -> Result<Exit, Complaint> {
    let mut terminal = TerminalApprover::new(terminal_size);
    for happening in place.follow() {
        let Some((client, ApprovalsEvent::Asked(Waiting { id, .. }))) = heard(happening)? else {
            continue;
        };
        let asked = match question(&client, &id) {
            Ok(asked) => asked,
            // Somebody else was faster, or the session is over.
            Err(ClientError::Refused(_)) => continue,
            Err(error) if error.is_gone() => continue,
            // The others go on asking.
            Err(ClientError::Unanswered(processes)) => {
                let process = processes.first().copied().flatten();
                let error = ClientError::Unanswered(processes);
                say(&format!("stockade: {error}{}\n", go_on(process)));
                continue;
            }
            Err(error) => return Err(complain(error)),
        };
        let decision = terminal
            .ask(&asked.request(), &asked.presentation)
            .map_err(|error| Complaint::failed(error).remedy("`stockade approvals list` needs no terminal"))?;
        match client.say(said(id, decision)) {
            Ok(_) => {}
            Err(ClientError::Refused(why)) => {
                say(&format!(
                    "stockade: the answer came too late: {}\n",
                    escape(why.as_bytes())
                ));
            }
            Err(error) if error.is_gone() => say("stockade: the answer came too late: the session has ended\n"),
            Err(ClientError::Unanswered(processes)) => {
                let process = processes.first().copied().flatten();
                let error = ClientError::Unanswered(processes);
                say(&format!(
                    "stockade: {error}, and the answer may count when it goes on{}\n",
                    go_on(process)
                ));
            }
            Err(error) => return Err(complain(error)),
        }
    }
    Ok(Exit::Success)
}

fn said(id: String, decision: ApprovalDecision) -> ApprovalsRequest {
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

fn complain(error: ClientError) -> Complaint {
    let complaint = Complaint::failed(&error);
    match error {
        ClientError::NobodyListens { .. } | ClientError::NoSession => complaint
            .remedy("start a session with `stockade run --approvals-socket PATH|default …`, and name the same place"),
        ClientError::Unanswered(processes) => {
            let named = processes
                .iter()
                .flatten()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ");
            complaint.remedy(if named.is_empty() {
                "let the session go on (`kill -CONT PROCESS`), and ask again".to_owned()
            } else {
                format!("let it go on (`kill -CONT {named}`) or end it (`kill -KILL {named}`), and ask again")
            })
        }
        ClientError::Token { .. }
        | ClientError::NotOurs
        | ClientError::Silent(_)
        | ClientError::Unreadable
        | ClientError::TooLong
        | ClientError::Refused(_) => complaint,
    }
}
