//! `stockade call --stream`: many calls in one session, one JSON value per line each way.

use nix::sys::signal::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;

use super::error::{CliError, print};
use super::exit::Exit;
use super::output::object;
use crate::approval::DecidedBy;
use crate::policy::Channel;
use crate::tools::{ApprovalContext, Session};

/// The longest line that is read.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// One line of input.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// One call.
    Call(Call),
    /// Several calls, asked about as one.
    Together(Vec<Call>),
    /// What is approved for the session.
    Approvals,
    /// Takes one approval back.
    Revoke(u64),
    /// Takes all of them back.
    ForgetApprovals,
    /// Every decision so far.
    History,
}

/// One call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    args: Value,
    /// Who calls, if it is not the agent itself.
    #[serde(default)]
    caller: Option<String>,
}

impl Call {
    fn context(self, group: Option<&str>) -> ApprovalContext {
        let context = ApprovalContext {
            group_id: group.map(str::to_owned),
            ..ApprovalContext::new(self.tool, self.args)
        };
        match self.caller {
            Some(caller) => context.called_by(&caller),
            None => context,
        }
    }
}

/// Answers each line with a line, to the end of the input.
///
/// A signal stops the call under way; without one it ends the stream.
pub(super) async fn stream(session: &Session, mut signals: mpsc::Receiver<Signal>) -> Result<Exit, CliError> {
    let mut tools = session.tools();
    let mut input = BufReader::new(tokio::io::stdin());
    let mut groups = 0u64;
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut input).take(MAX_LINE);
        let read = tokio::select! {
            read = limited.read_until(b'\n', &mut line) => read,
            Some(signal) = signals.recv() => return Ok(Exit::Signaled(signal as i32)),
        };
        let count = read.map_err(|error| CliError::failed(format!("failed to read standard input: {error}")))?;
        if count == 0 {
            return Ok(Exit::Success);
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if line.last() != Some(&b'\n') && u64::try_from(count).is_ok_and(|count| count == MAX_LINE) {
            return Err(CliError::failed(format!("a line has more than {MAX_LINE} bytes")));
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(Line::Call(call)) => object(&tools.call_in(&call.context(None)).await).0,
            Ok(Line::Together(calls)) => {
                groups += 1;
                let group = format!("{groups}");
                let contexts: Vec<ApprovalContext> = calls.into_iter().map(|call| call.context(Some(&group))).collect();
                let done = tools.call_together(&contexts).await;
                done.iter().map(|one| object(one).0).collect()
            }
            Ok(Line::Approvals) => approvals(session),
            Ok(Line::Revoke(id)) => json!({"revoked": session.revoke(id).is_some()}),
            Ok(Line::ForgetApprovals) => {
                session.forget_approvals();
                json!({"approvals": []})
            }
            Ok(Line::History) => history(session),
            Err(error) => json!({"status": "failed", "reason": format!("the line is no request: {error}")}),
        };
        print(&format!("{answer}\n"))?;
        // Signals that arrived meanwhile were for the call.
        while signals.try_recv().is_ok() {}
    }
}

/// Who decided, as text.
fn by(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Mode(mode) => format!("mode {mode}"),
        DecidedBy::Memory => "an earlier yes for the session".to_owned(),
        DecidedBy::Approver => "approver".to_owned(),
        DecidedBy::Failure(why) => format!("nobody: {why}"),
        DecidedBy::Unrecorded(why) => format!("nobody: it could not be put on record: {why}"),
        DecidedBy::Pending => "nobody yet".to_owned(),
    }
}

fn approvals(session: &Session) -> Value {
    let approvals = session.approvals();
    let list: Vec<Value> = approvals
        .iter()
        .map(|approval| {
            json!({
                "id": approval.id,
                "tool": approval.tool_name,
                "description": approval.description,
                "fingerprint": approval.fingerprint.to_string(),
            })
        })
        .collect();
    json!({"approvals": list})
}

fn history(session: &Session) -> Value {
    let list: Vec<Value> = session
        .history()
        .iter()
        .map(|record| {
            json!({
                "tool": record.tool_name,
                "description": record.description,
                "caller": record.caller,
                "group": record.group_id,
                "approved": record.verdict.decision.approved,
                "note": record.verdict.decision.note,
                "by": by(&record.verdict.by),
                "channel": record.verdict.channel.map(Channel::name),
                "fingerprint": record.fingerprint.to_string(),
            })
        })
        .collect();
    json!({"history": list})
}
