//! What is said over the socket: one line of JSON from the client, one line back.
//!
//! A client that watches is sent one line for each thing that happens, until it leaves.

use serde::{Deserialize, Serialize};

use crate::approval::asked::Asked;
use crate::approval::request::Remember;

/// The most bytes of a client's line.
pub(super) const LONGEST_LINE: usize = 16 * 1024;
/// The most characters of a description in a list.
const LONGEST_TITLE: usize = 500;

/// A client's line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    /// What the token file says.
    pub(super) token: String,
    /// What the client wants.
    pub(super) request: ApprovalsRequest,
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalsRequest {
    /// What is asked.
    List,
    /// All of one question.
    Show {
        /// Which.
        id: String,
    },
    /// To say yes.
    Approve {
        /// To which question.
        id: String,
        /// How long the yes holds.
        #[serde(default)]
        remember: Remember,
        /// What the agent is told.
        #[serde(default)]
        note: Option<String>,
    },
    /// To say no.
    Deny {
        /// To which question.
        id: String,
        /// What the agent is told.
        #[serde(default)]
        note: Option<String>,
    },
    /// To be told of every question from now on.
    Watch,
}

/// What a client is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalsReply {
    /// What is asked.
    Waiting(Vec<Waiting>),
    /// One question.
    Question(Box<Asked>),
    /// The answer counts.
    Done,
    /// Nothing was done, for this reason.
    Refused(String),
}

/// What a client that watches is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalsEvent {
    /// Somebody is to answer this.
    Asked(Waiting),
    /// Nobody is to answer this any more.
    Settled {
        /// Which.
        id: String,
        /// `approved`, `denied`, `timed_out` or `withdrawn`.
        how: String,
    },
    /// The client is not listened to.
    Refused(String),
}

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// Its name; no other question of any session has it.
    pub id: String,
    /// The tool that wants to act.
    pub tool: String,
    /// What it wants, in a line.
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
    match text.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// One line of JSON.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // Fails for nothing that is sent here; an empty line is no answer, and the client says so.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
