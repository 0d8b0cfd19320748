//! `stockade approvals`: whoever answers the questions of a session from outside.

use super::approver;
use super::args::{ApprovalsAction, ApprovalsArgs};
use super::complain::{Complaint, print, say};
use super::exit::Exit;
use super::policy;
use crate::approval::{
    ApprovalDecision, ApprovalsClient, ApprovalsEvent, ApprovalsReply, ApprovalsRequest, Approver as _, Asked,
    ClientError, Remember, TerminalApprover, Waiting,
};
use crate::policy::path::escape;
use crate::tools::terminal_size;

/// How wide a question is shown where nobody tells the width.
const COLUMNS: u16 = 100;

/// Lists, shows, answers, or watches.
pub(super) fn approvals(args: ApprovalsArgs) -> Result<Exit, Complaint> {
    let places = policy::places(&policy::context(&[]))?;
    let socket = approver::socket(&args.socket, &places.state);
    let client = ApprovalsClient::new(&socket);
    match args.action {
        None if args.json => list(&client, args.json),
        None => answer(&client),
        Some(ApprovalsAction::List) => list(&client, args.json),
        Some(ApprovalsAction::Show { id }) => show(&client, &id, args.json),
        Some(ApprovalsAction::Approve { id, session, note }) => {
            let remember = if session { Remember::Session } else { Remember::None };
            let request = ApprovalsRequest::Approve {
                id: id.clone(),
                remember,
                note,
            };
            settle(&client, request, "approved", &id, args.json)
        }
        Some(ApprovalsAction::Deny { id, note }) => {
            let request = ApprovalsRequest::Deny { id: id.clone(), note };
            settle(&client, request, "denied", &id, args.json)
        }
        Some(ApprovalsAction::Watch) => watch(&client, args.json),
    }
}

fn list(client: &ApprovalsClient, json: bool) -> Result<Exit, Complaint> {
    let ApprovalsReply::Waiting(waiting) = client.say(ApprovalsRequest::List).map_err(complain)? else {
        return Err(complain(ClientError::Unreadable));
    };
    if json {
        print(&format!("{}\n", serde_json::json!({"waiting": waiting})))?;
    } else {
        let lines: String = waiting.iter().map(line).collect();
        print(if waiting.is_empty() {
            "nothing is asked\n"
        } else {
            &lines
        })?;
    }
    Ok(Exit::Success)
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

fn show(client: &ApprovalsClient, id: &str, json: bool) -> Result<Exit, Complaint> {
    let asked = question(client, id).map_err(complain)?;
    if json {
        let object = serde_json::to_string(&asked).map_err(Complaint::failed)?;
        print(&format!("{object}\n"))?;
    } else {
        print(&asked.text(COLUMNS))?;
    }
    Ok(Exit::Success)
}

fn settle(
    client: &ApprovalsClient,
    request: ApprovalsRequest,
    how: &str,
    id: &str,
    json: bool,
) -> Result<Exit, Complaint> {
    match client.say(request).map_err(complain)? {
        ApprovalsReply::Done => {}
        ApprovalsReply::Waiting(_) | ApprovalsReply::Question(_) | ApprovalsReply::Refused(_) => {
            return Err(complain(ClientError::Unreadable));
        }
    }
    if json {
        print(&format!("{}\n", serde_json::json!({"id": id, "settled": how})))?;
    } else {
        print(&format!("{how} {}\n", escape(id.as_bytes())))?;
    }
    Ok(Exit::Success)
}

fn watch(client: &ApprovalsClient, json: bool) -> Result<Exit, Complaint> {
    for event in client.watch().map_err(complain)? {
        let event = event.map_err(complain)?;
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

/// Asks each question on this terminal until the session ends.
fn answer(client: &ApprovalsClient) -> Result<Exit, Complaint> {
    let mut terminal = TerminalApprover::new(terminal_size);
    for event in client.watch().map_err(complain)? {
        let id = match event.map_err(complain)? {
            ApprovalsEvent::Asked(waiting) => waiting.id,
            ApprovalsEvent::Settled { .. } => continue,
            ApprovalsEvent::Refused(why) => return Err(complain(ClientError::Refused(why))),
        };
        let asked = match question(client, &id) {
            Ok(asked) => asked,
            // Somebody else was faster.
            Err(ClientError::Refused(_)) => continue,
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

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
fn complain(error: ClientError) -> Complaint {
    let complaint = Complaint::failed(&error);
    match error {
        ClientError::NobodyListens { .. } => complaint
            .remedy("start a session with `stockade run --approvals-socket PATH|default …`, and name the same place"),
        ClientError::Token { .. }
        | ClientError::NotOurs
        | ClientError::Silent(_)
        | ClientError::Unreadable
        | ClientError::TooLong
        | ClientError::Refused(_) => complaint,
    }
}
