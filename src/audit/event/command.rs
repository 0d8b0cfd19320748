//! What is recorded of a command: its start, its end, and what it met on the way.

use serde::Serialize;

use crate::audit::Text;

/// A command starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Start {
    /// The call that it is started for.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// Its words, as a person would type them.
    #[serde(rename = "process.command_line")]
    pub command: Text,
    /// The hash of its words, each with its length before it.
    pub command_sha256: String,
    /// Where it starts.
    #[serde(rename = "process.working_directory")]
    pub directory: Text,
    /// The profile that holds it.
    pub profile: String,
    /// What holds that: `namespaces`, `landlock`, `none`.
    pub regime: String,
}

/// A command has ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    /// The call that it was started for.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// How: `exited`, `signaled`, `timed_out`, `cancelled`, `over_limit`, `not_found`, `not_executable`, `failed`.
    pub status: &'static str,
    /// Its exit code.
    #[serde(rename = "process.exit.code", skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What else is to be said of it.
    #[serde(rename = "error.message", skip_serializing_if = "Option::is_none")]
    pub why: Option<Text>,
    /// Seconds, approval not counted; absent where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    /// Bytes that it wrote to standard output and error; absent where they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Why protected names could not be restored, if they could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<Text>,
}

/// A protected name was changed, and restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The call.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// The protected path.
    #[serde(rename = "file.path")]
    pub path: Text,
    /// What was done to it.
    pub what: Text,
    /// Where what was there instead is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<Text>,
    /// The settings of a git config that were undone; what else it sets stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Text>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_settings: Option<u64>,
    /// Whether HEAD had another version than what was put back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_other_in_head: bool,
    /// What became of it: `stayed_undone`, `put_back`, `not_put_back`.
    pub then: &'static str,
}

/// What a command did with hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    /// The call.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// What was tried; like attempts are one entry.
    pub attempts: Vec<Attempt>,
    /// Attempts that are in no entry.
    pub more: u64,
    /// Bytes that were sent.
    pub up: u64,
    /// Bytes that were received.
    pub down: u64,
}

/// Attempts with the same end to reach the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// `HOST:PORT`.
    pub place: Text,
    /// `passed`, `failed`, `refused` or `abandoned`.
    pub result: &'static str,
    /// The same in words.
    pub why: Text,
    /// How often.
    pub times: u64,
    /// Bytes that were sent.
    pub up: u64,
    /// Bytes that were received.
    pub down: u64,
}

/// What was denied to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denials {
    /// The call.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// What was denied, the first of it.
    pub blocked: Vec<Denial>,
    /// Denials that are in no entry.
    pub more: u64,
    /// Attempts that nobody looked at.
    pub unseen: u64,
}

/// One thing that was denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// What was wanted: `read`, `make`, `connect` …
    pub wanted: &'static str,
    /// Of what.
    pub what: Text,
    /// How often.
    pub times: u64,
    /// What stood in the way: `landlock`, `mounts` …
    pub by: &'static str,
    /// The clause that decides, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clause: Option<Text>,
    /// Where that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Text>,
    /// What would permit it.
    pub change: Vec<Text>,
    /// What else holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
}
