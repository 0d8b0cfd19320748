//! What is recorded. Names with a dot are OpenTelemetry's, for calls of tools, MCP and processes; the others are Stockade's.

use serde::Serialize;
use serde_json::Value;

use super::bounded::Text;

mod command;

pub use command::{Attempt, Denial, Denials, End, Network, Start, Violation};

/// What every call of a tool is, in OpenTelemetry's words.
pub const EXECUTE_TOOL: &str = "execute_tool";

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session began.
    SessionStart(SessionStart),
    /// Commands are held by a profile: told once in a session for each.
    Profile(Profile),
    /// A tool was called.
    Call(Call),
    /// What a call needs before it may run.
    Assessment(Assessment),
    /// A question was answered.
    Decision(Decision),
    /// A command starts.
    Start(Start),
    /// A command has ended, and all that it started.
    End(End),
    /// A protected name was changed, and restored.
    Violation(Violation),
    /// What a command did with hosts.
    Network(Network),
    /// What was denied to a command, where somebody looked.
    Denials(Denials),
    /// What came of a call.
    Outcome(CallEnd),
    /// A session ended in order.
    SessionEnd(SessionEnd),
    /// A crash left something behind the last record, which was removed.
    Mended {
        /// How many bytes.
        bytes: u64,
        /// Their hash.
        sha256: String,
    },
}

/// A session began.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionStart {
    /// Stockade's version.
    #[serde(rename = "service.version")]
    pub version: String,
    /// The process.
    #[serde(rename = "process.pid")]
    pub pid: u32,
    /// The user.
    #[serde(rename = "process.real_user.id")]
    pub uid: u32,
    /// How questions are answered.
    pub mode: String,
    /// The config and every file it names.
    pub config: Vec<ConfigFile>,
    /// The ceilings that hold.
    pub ceilings: Vec<Text>,
    /// What holds commands, in one line.
    pub regime_line: Text,
}

/// A file that was read, and its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    /// Where.
    pub path: Text,
    /// The hash of its bytes.
    pub sha256: String,
}

/// A profile that holds commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Its name: a digest of all that it permits.
    pub profile: String,
    /// What holds it: `namespaces`, `landlock`, `none`.
    pub regime: String,
    /// How many clauses are held in which way.
    pub clauses: Clauses,
    /// The clauses that are not held exactly, the first of them.
    pub inexact: Vec<Text>,
    /// What it permits and forbids, clause by clause, the first of them.
    pub map: Vec<Clause>,
    /// Clauses that are left out.
    pub more: u64,
    /// What came of trying what is forbidden.
    pub self_test: SelfTest,
}

/// One clause of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Clause {
    /// In words.
    pub clause: Text,
    /// Where it is written.
    pub origin: Text,
    /// `enforced`, `stricter`, `undone` or `residual`.
    pub held: &'static str,
    /// What exactly, where it is not held exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
}

/// How many clauses are held in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Clauses {
    /// Exactly.
    pub enforced: u64,
    /// More is blocked.
    pub stricter: u64,
    /// Changes are undone afterwards.
    pub undone: u64,
    /// Left open.
    pub residual: u64,
}

/// What came of trying what is forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelfTest {
    /// It was refused, all of it.
    Passed,
    /// Nothing holds, so nothing was tried.
    NotConfined,
}

/// A tool was called.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// Always [`EXECUTE_TOOL`].
    #[serde(rename = "gen_ai.operation.name")]
    pub operation: &'static str,
    /// The tool.
    #[serde(rename = "gen_ai.tool.name")]
    pub tool: Text,
    /// The name of the call, in what is recorded of it.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// Its arguments, secrets left out by the tool's own rules.
    #[serde(rename = "gen_ai.tool.call.arguments")]
    pub arguments: Value,
    /// Who calls, if it is not the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Text>,
    /// The run of the agent, as the program names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Text>,
    /// The session of the agent, as the program names it.
    #[serde(rename = "gen_ai.conversation.id", skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Text>,
    /// The request of the protocol that it came with.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
}

/// The request of MCP that a call came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The method.
    #[serde(rename = "mcp.method.name")]
    pub method: &'static str,
    /// The client's session, where the transport has one.
    #[serde(rename = "mcp.session.id", skip_serializing_if = "Option::is_none")]
    pub session: Option<Text>,
    /// The name that the client gave the request.
    #[serde(rename = "jsonrpc.request.id")]
    pub id: Text,
}

/// What a call needs before it may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assessment {
    /// The call.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// `pre_approved`, `needs_approval` or `blocked`.
    pub needs: Needs,
    /// Which lines say so.
    pub why: Vec<Text>,
}

/// What a call needs before it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A yes.
    Approval,
    /// It never runs.
    Blocked,
}

/// A question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The call that it was asked for.
    #[serde(rename = "gen_ai.tool.call.id", skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool that asked.
    #[serde(rename = "gen_ai.tool.name")]
    pub tool: Text,
    /// `approved` or `denied`.
    pub decision: Answer,
    /// Whose answer it was: `mode`, `memory`, `approver`, `failure`.
    pub by: &'static str,
    /// How questions are answered in the session.
    pub mode: String,
    /// Where somebody was asked; for an earlier yes, where it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<&'static str>,
    /// How long the answer holds: `none`, `session` for the same call, `scope` for what `covers` says.
    pub remember: &'static str,
    /// What a yes for the session covers, where that is wider than the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covers: Option<Text>,
    /// What whoever answered wants the agent to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Text>,
    /// Why there was no answer.
    #[serde(rename = "error.message", skip_serializing_if = "Option::is_none")]
    pub failure: Option<Text>,
    /// What was asked.
    pub description: Text,
    /// Which lines made it a question.
    pub why: Vec<Text>,
    /// The hash of what exactly was asked about.
    pub fingerprint: String,
    /// The group it was asked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Text>,
    /// Who asked, if it was not the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Text>,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Approved,
    /// No.
    Denied,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallEnd {
    /// The call.
    #[serde(rename = "gen_ai.tool.call.id")]
    pub call: String,
    /// `done`, `failed` (it ran, and failed), `error` (it gave no outcome), `blocked`, `denied`, `pending` or `cancelled`.
    pub outcome: &'static str,
    /// What the agent was told, where there was no outcome.
    #[serde(rename = "error.message", skip_serializing_if = "Option::is_none")]
    pub error: Option<Text>,
    /// Seconds from the call on, approval counted.
    pub duration: f64,
    /// Bytes of text that the agent was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A session ended in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SessionEnd {
    /// How many tools were called.
    pub calls: u64,
}
