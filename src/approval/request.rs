//! Requests, presentations and decisions.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::json_bytes;
use crate::policy::Demand;

/// A question: may this tool do this?
#[derive(Debug)]
pub struct ApprovalRequest {
    /// Whether `strict` mode denies it; a request that is not required is approved there.
    pub required: bool,
    /// Whose yes counts.
    pub answer: AnswerOf,
    /// The tool.
    pub tool_name: String,
    /// What it would do, in a line. a rule's `description` if it has one.
    pub description: String,
    /// What exactly would run, in bytes that differ whenever it differs: the key of session memory.
    ///
    /// For a command: the words or the line, the directory, the profile digest, hashes of writable
    /// files that it names. Secrets are left out or hashed by the tool.
    pub payload: Vec<u8>,
    /// What a yes for the session can cover beyond this very call, narrowest first: each is offered.
    pub scopes: Vec<SessionScope>,
    /// What a yes is remembered for where the config says `once_per_session`: the same call, or the scope that names its path.
    pub once: Remember,
    /// Further keys under which an earlier yes covers it, such as that of all commands with its first word.
    pub covered_by: Vec<Vec<u8>>,
    /// The payload without its [`facts`](Self::facts): what is the same in the words of two calls. Empty where nothing is told apart.
    pub subject: Vec<u8>,
    /// What may have changed when the same is asked again.
    pub facts: Vec<Fact>,
    /// What has changed since the last yes to the same words. The controller sets it.
    pub changed: Vec<String>,
    /// What a person is shown; built only when somebody is asked.
    pub presentation: Lazy,
    /// Requests with the same group may be asked as one.
    pub group_id: Option<String>,
    /// How long a plain yes holds, and for what; more than [`Remember::None`] where the config says `once_per_session`.
    pub remember: Remember,
    /// What in the config would allow it; part of a denial.
    pub allowed_by: String,
    /// Which lines of the config make it a question, or why it is one without any.
    pub why: Vec<String>,
    /// Who asks, if it is not the agent itself: a nested worker or agent.
    pub caller: Option<String>,
    /// The call that it is asked for, as the audit log names it.
    pub call: Option<String>,
}

impl ApprovalRequest {
    /// A request of this tool to do what the description says, in a line.
    ///
    /// It is required, anyone may answer it, and it shows the description. The payload, the key of session memory, is the description
    /// as well: set [`payload`](Self::payload) where two calls with one description differ.
    ///
    /// ```
    /// use stockade::{ApprovalRequest, Lazy, Presentation};
    ///
    /// let request = ApprovalRequest {
    ///     payload: b"report 7".to_vec(),
    ///     presentation: Lazy::new(|| Ok(Presentation::Text("7 pages".to_owned()))),
    ///     ..ApprovalRequest::new("publish", "publish report 7")
    /// };
    /// assert!(request.required);
    /// ```
    pub fn new(tool_name: impl Into<String>, description: impl Into<String>) -> Self {
        let description = description.into();
        let shown = description.clone();
        Self {
            required: true,
            answer: AnswerOf::Anyone,
            tool_name: tool_name.into(),
            payload: description.as_bytes().to_vec(),
            description,
            scopes: Vec::new(),
            once: Remember::Session,
            covered_by: Vec::new(),
            subject: Vec::new(),
            facts: Vec::new(),
            changed: Vec::new(),
            presentation: Lazy::new(move || Ok(Presentation::Text(shown.clone()))),
            group_id: None,
            remember: Remember::None,
            allowed_by: String::new(),
            why: Vec::new(),
            caller: None,
            call: None,
        }
    }

    /// The same, where this demand makes it a question: a yes to `once_per_session` is remembered.
    #[must_use]
    pub(crate) fn demanded(self, demand: Demand) -> Self {
        let remember = match demand {
            Demand::OncePerSession => self.once,
            Demand::None | Demand::Required | Demand::Deny => Remember::None,
        };
        Self { remember, ..self }
    }

    /// The same question with what has changed, for the approver. Its presentation is built already.
    pub(super) fn with_changes(&self, changed: Vec<String>) -> Self {
        Self {
            required: self.required,
            answer: self.answer,
            tool_name: self.tool_name.clone(),
            description: self.description.clone(),
            payload: self.payload.clone(),
            scopes: self.scopes.clone(),
            once: self.once,
            covered_by: self.covered_by.clone(),
            subject: self.subject.clone(),
            facts: self.facts.clone(),
            changed,
            presentation: Lazy::new(|| Err("it is built already".to_owned())),
            group_id: self.group_id.clone(),
            remember: self.remember,
            allowed_by: self.allowed_by.clone(),
            why: self.why.clone(),
            caller: self.caller.clone(),
            call: self.call.clone(),
        }
    }
}

/// Something that a yes for the session can cover, wider than the call that was asked about.
///
/// A yes never covers more than its words name: two calls have the same key only if the words are true of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionScope {
    /// What it covers, in words that follow "yes, and for": `commands that start with git push`.
    pub covers: String,
    /// The key of session memory.
    #[serde(skip)]
    pub key: Vec<u8>,
}

/// Part of what a call depends on, that may change while its words stay the same: a file that it names, what it may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is, for a person: a path, or a few words.
    pub name: String,
    /// Bytes that differ whenever it does.
    pub value: Vec<u8>,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Yes or no.
    pub approved: bool,
    /// What the person wants the agent to know.
    pub note: Option<String>,
    /// How long the answer holds.
    pub remember: Remember,
}

/// Who may approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOf {
    /// The mode, an earlier yes for the session, or the approver.
    Anyone,
    /// The mode, or the approver for each request. No yes is remembered: the call may do something else the next time.
    AnyoneOnce,
    /// The approver alone, each time: no mode approves it, and no yes is remembered.
    ApproverOnly,
}

/// How long a yes holds, and for what. As JSON: `"none"`, `"session"`, `{"scope": 0}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// For this call.
    #[default]
    None,
    /// For every call of the session with the same tool and payload.
    Session,
    /// For what the request's scope of this number covers, counted from 0.
    Scope(u8),
}

/// What a person is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Presentation {
    /// Lines of text.
    Text(String),
    /// A command and its reach.
    Command(CommandView),
    /// A change, line by line; only the beginning of a long one is shown at first.
    Diff(String),
    /// The content of a file that is not there yet.
    FileContent(FileView),
    /// Named values: the arguments of a tool that Stockade knows nothing of.
    Structured(Vec<(String, String)>),
    /// The parts of one question, each under its title; one answer holds for all.
    Several(Vec<(String, Presentation)>),
}

/// A file as it would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileView {
    /// Where.
    #[serde(with = "json_bytes::path")]
    pub path: PathBuf,
    /// Its content.
    pub content: Content,
    /// Bytes.
    pub size: u64,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Text.
    Text(String),
    /// No text: what it looks like.
    Binary(String),
}

/// A command as it would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandView {
    /// The line, or the words quoted for a shell.
    #[serde(with = "json_bytes::bytes")]
    pub command: Vec<u8>,
    /// Where it would run.
    #[serde(with = "json_bytes::path")]
    pub directory: PathBuf,
    /// The files that its programs are, as far as they are known and out of the session's reach.
    #[serde(with = "json_bytes::paths", default)]
    pub programs: Vec<PathBuf>,
    /// Those that the session may write.
    #[serde(with = "json_bytes::paths", default)]
    pub writable_programs: Vec<PathBuf>,
    /// What rules say of their own parts of it: the words of the part, and the rule's `description`.
    #[serde(default)]
    pub notes: Vec<(String, String)>,
    /// What would confine it.
    pub regime: String,
    /// Why that is less than usual, if it is.
    #[serde(default)]
    pub weaker: Option<String>,
    /// Where it may read because of this approval, and could not without.
    #[serde(with = "json_bytes::paths")]
    pub may_read: Vec<PathBuf>,
    /// Where it may write.
    #[serde(with = "json_bytes::paths")]
    pub may_write: Vec<PathBuf>,
    /// What it may reach on the network.
    pub may_reach: String,
}

type Build = dyn Fn() -> Result<Presentation, String> + Send + Sync;

/// A presentation that is built when it is needed; building it may fail, which denies the request.
pub struct Lazy(Box<Build>);

impl Lazy {
    /// Built by `build`.
    pub fn new(build: impl Fn() -> Result<Presentation, String> + Send + Sync + 'static) -> Self {
        Self(Box::new(build))
    }

    pub(super) fn build(&self) -> Result<Presentation, String> {
        (self.0)()
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lazy")
    }
}

/// SHA-256 of a payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(payload: &[u8]) -> Self {
        Self(Sha256::digest(payload).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
