//! The protocol of the socket: one line of JSON from the client, one line back.
//!
//! A client that watches receives one line per event until it disconnects.

use serde::{Deserialize, Serialize};

use crate::approval::request_message::RequestMessage;
use crate::approval::scope::Remember;

/// The most bytes of a client's line.
pub(super) const MAX_LINE: usize = 16 * 1024;
/// The most characters of a description in a list.
const MAX_TITLE: usize = 500;

/// A client's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    /// The content of the token file.
    pub(super) token: String,
    /// What the client requests.
    pub(super) request: ApprovalsRequest,
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalsRequest {
    /// All open requests.
    List,
    /// All of one request.
    Show {
        /// Which.
        id: String,
    },
    /// Approval.
    Approve {
        /// Which.
        id: String,
        /// How long the approval holds.
        #[serde(default)]
        remember: Remember,
        /// A note for the agent.
        #[serde(default)]
        note: Option<String>,
    },
    /// Denial.
    Deny {
        /// Which.
        id: String,
        /// A note for the agent.
        #[serde(default)]
        note: Option<String>,
    },
    /// All events from now on.
    Watch,
}

/// The reply to a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalsReply {
    /// The open requests.
    Waiting(Vec<RequestSummary>),
    /// One request.
    Question(Box<RequestMessage>),
    /// The answer counts.
    Done,
    /// Nothing was done, for this reason.
    Refused(String),
}

/// An event for a client that watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalsEvent {
    /// A request was opened.
    Asked(RequestSummary),
    /// A request was closed.
    Settled {
        /// Which.
        id: String,
        /// `approved`, `denied`, `timed_out` or `withdrawn`.
        how: String,
    },
    /// The client was refused.
    Refused(String),
}

/// An open request, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSummary {
    /// Its ID, unique among all sessions.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it would do, in a line.
    pub description: String,
    /// Who asks, if it is not the agent itself.
    pub caller: Option<String>,
    /// SHA-256 of what exactly would run.
    pub fingerprint: String,
    /// For how many seconds it has been open.
    pub open_for: u64,
    /// After how many seconds it is denied.
    pub denied_in: Option<u64>,
}

/// The beginning of a text for a list.
pub(super) fn title(text: &str) -> String {
    match text.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// One line of JSON.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // Serializing these types cannot fail; the client would report an empty line as malformed.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
