//! Requests, presentations and decisions.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::json_bytes;
use super::scope::{Remember, SessionScope, WiderAnswer, wider_answers};
use crate::policy::Demand;

/// A question about one call: may this tool do this?
///
/// A tool makes one when it assesses a call, and returns it in an [`Assessment`](crate::Assessment). The session answers it
/// by its mode, by an earlier yes, or by its [`Approver`](crate::Approver).
///
/// ```
/// use stockade::{ApprovalRequest, Lazy, Presentation};
///
/// fn deployment(host: &str) -> ApprovalRequest {
///     let shown = format!("deploy to {host}");
///     ApprovalRequest {
///         payload: host.as_bytes().to_vec(),
///         presentation: Lazy::new(move || Ok(Presentation::Text(shown.clone()))),
///         allowed_by: "`custom_tools: {deploy: {approval: none}}` allows it".to_owned(),
///         why: vec!["every deployment is asked about".to_owned()],
///         ..ApprovalRequest::new("deploy", format!("deploy to {host}"))
///     }
/// }
///
/// assert_eq!(deployment("db1").payload, b"db1");
/// ```
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// Whether [`Mode::Strict`](crate::Mode::Strict) denies it. A request that is not required is approved in that mode.
    pub required: bool,
    /// Whose yes counts.
    pub answer: AnswerOf,
    /// The name of the tool that asks.
    pub tool_name: String,
    /// What the call would do, in one line: the `description` of the rule that matched, if it has one.
    pub description: String,
    /// The key of session memory: bytes that are equal only where the same thing would be done.
    ///
    /// For a command they hold the words or the line, the directory, the digest of the profile, and hashes of writable files
    /// that it names. The tool leaves secrets out, or hashes them.
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
    /// What a person is shown. It is built only when somebody is asked.
    pub presentation: Lazy,
    /// The group of the request. Requests of one group may be asked as one question.
    pub group_id: Option<String>,
    /// How long a plain yes holds, and for what; more than [`Remember::None`] where the config says `once_per_session`.
    pub remember: Remember,
    /// The config line that would allow it, in words. A denial ends with it. May be empty.
    pub allowed_by: String,
    /// The config lines that make it a question, or the reason where there is no such line.
    pub why: Vec<String>,
    /// The nested worker or agent that asks; `None` for the agent itself.
    pub caller: Option<String>,
    /// The name of the call in the audit log. The session sets it.
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

    /// What a person can choose beyond a plain yes, narrowest first; empty where no yes is remembered.
    pub(crate) fn wider_answers(&self) -> Vec<WiderAnswer<'_>> {
        match self.answer {
            AnswerOf::Anyone => wider_answers(self.remember, &self.scopes),
            AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly => Vec::new(),
        }
    }

    /// The same question with what has changed, for the approver.
    pub(super) fn with_changes(&self, changed: Vec<String>) -> Self {
        Self {
            changed,
            ..self.clone()
        }
    }
}

/// Part of what a call depends on, that may change while its words stay the same: a file that it names, what it may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is, for a person: a path, or a few words.
    pub name: String,
    /// Bytes that differ whenever it does.
    pub value: Vec<u8>,
}

/// The answer to an [`ApprovalRequest`].
///
/// An [`Approver`](crate::Approver) returns it.
///
/// ```
/// use stockade::{ApprovalDecision, Remember};
///
/// assert!(ApprovalDecision::approve().approved);
/// assert_eq!(ApprovalDecision::approve().for_session().remember, Remember::Session);
/// assert_eq!(ApprovalDecision::deny("use make").note.as_deref(), Some("use make"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Whether the call may run.
    pub approved: bool,
    /// A message for the agent. A denial quotes it.
    pub note: Option<String>,
    /// How long a yes holds. A no is never remembered.
    pub remember: Remember,
}

impl ApprovalDecision {
    /// A yes to this call.
    pub const fn approve() -> Self {
        Self {
            approved: true,
            note: None,
            remember: Remember::None,
        }
    }

    /// A no, with a reason for the agent.
    pub fn deny(note: impl Into<String>) -> Self {
        Self {
            approved: false,
            note: Some(note.into()),
            remember: Remember::None,
        }
    }

    /// The same answer; a yes holds for the rest of the session.
    #[must_use]
    pub fn for_session(self) -> Self {
        Self {
            remember: Remember::Session,
            ..self
        }
    }
}

/// The set of those whose yes counts for a request.
///
/// A tool sets it in an [`ApprovalRequest`]; the example there has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOf {
    /// The mode, an earlier yes of the session, or the approver.
    Anyone,
    /// The mode, or the approver for each request. No yes is remembered: the call may do something else the next time.
    AnyoneOnce,
    /// The approver alone, each time: no mode approves it, and no yes is remembered.
    ApproverOnly,
}

/// The content of a question, as a person is shown it.
///
/// A tool builds one in the [`Lazy`] of its request. An [`Approver`](crate::Approver) receives it. Its text may hold any
/// character: whoever prints it must escape control and bidi characters. [`TerminalApprover`](crate::TerminalApprover) does.
///
/// ```
/// use stockade::{Content, FileView, Presentation};
///
/// let content = Content::Text("fine\n".to_owned());
/// let file = Presentation::FileContent(FileView { path: "/srv/note".into(), content, size: 5 });
/// let arguments = Presentation::Structured(vec![("host".to_owned(), "db1".to_owned())]);
/// let both = Presentation::Several(vec![("the file".to_owned(), file), ("the call".to_owned(), arguments)]);
/// # assert!(matches!(both, Presentation::Several(parts) if parts.len() == 2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Presentation {
    /// Plain text.
    Text(String),
    /// A command, and what it may reach.
    Command(CommandView),
    /// A change as a unified diff. Of a long one only the beginning is shown at first.
    Diff(String),
    /// The content of a file that is not there yet.
    FileContent(FileView),
    /// Pairs of name and value: the arguments of a tool that Stockade knows nothing of.
    Structured(Vec<(String, String)>),
    /// The parts of one question as pairs of title and part. One answer holds for all of them.
    Several(Vec<(String, Presentation)>),
}

/// A file as a call would create it.
///
/// Part of a [`Presentation`]; the example there makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileView {
    /// The absolute path.
    #[serde(with = "json_bytes::path")]
    pub path: PathBuf,
    /// The content.
    pub content: Content,
    /// The size in bytes.
    pub size: u64,
}

/// The content of a file, as text or as a description.
///
/// Part of a [`FileView`]; the example of [`Presentation`] makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// The text itself.
    Text(String),
    /// The description of content that is not text: its type, for example.
    Binary(String),
}

/// A command as it would run, and what it may reach.
///
/// Part of a [`Presentation`]. Stockade makes it for commands; an [`Approver`](crate::Approver) reads it.
///
/// ```
/// use stockade::{CommandView, Presentation};
///
/// /// Whether a command may write nowhere, whoever asks.
/// fn only_looks(shown: &Presentation) -> bool {
///     matches!(shown, Presentation::Command(CommandView { may_write, .. }) if may_write.is_empty())
/// }
/// # assert!(!only_looks(&Presentation::Text(String::new())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandView {
    /// The shell line, or the words quoted for a shell. Not necessarily UTF-8.
    #[serde(with = "json_bytes::bytes")]
    pub command: Vec<u8>,
    /// The working directory.
    #[serde(with = "json_bytes::path")]
    pub directory: PathBuf,
    /// The files of its programs, as far as they are known and no command of the session can write them.
    #[serde(with = "json_bytes::paths", default)]
    pub programs: Vec<PathBuf>,
    /// The files of its programs that commands of the session can write.
    #[serde(with = "json_bytes::paths", default)]
    pub writable_programs: Vec<PathBuf>,
    /// What rules say of their own parts of it: the words of the part, and the rule's `description`. No words: of all of it.
    #[serde(default)]
    pub notes: Vec<(String, String)>,
    /// The regime that would confine it, in a line: `namespaces`, `landlock` or `none`, and how.
    pub regime: String,
    /// Why that is less than usual; `None` if it is not.
    #[serde(default)]
    pub weaker: Option<String>,
    /// The directories that it may read because of this approval, and could not read without it.
    #[serde(with = "json_bytes::paths")]
    pub may_read: Vec<PathBuf>,
    /// The directories that it may write.
    #[serde(with = "json_bytes::paths")]
    pub may_write: Vec<PathBuf>,
    /// The reach on the network, in words.
    pub may_reach: String,
}

type Build = dyn Fn() -> Result<Presentation, String> + Send + Sync;

/// A [`Presentation`] that is built when somebody is asked.
///
/// Use it for what is costly to build: a diff, the content of a file. The example of [`ApprovalRequest`] makes one.
#[derive(Clone)]
pub struct Lazy(Arc<Build>);

impl Lazy {
    /// A presentation that `build` makes. An error of `build` denies the request; the agent is told the text.
    pub fn new(build: impl Fn() -> Result<Presentation, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(build))
    }

    /// Builds it.
    ///
    /// # Errors
    /// It cannot be shown, for this reason.
    pub fn build(&self) -> Result<Presentation, String> {
        (self.0)()
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lazy")
    }
}

/// The SHA-256 hash of a payload, by which decisions are kept and logged.
///
/// Use it to find a request of your own in [`Session::history`](crate::Session::history) or
/// [`Session::approvals`](crate::Session::approvals).
///
/// ```
/// let empty = stockade::Fingerprint::of(b"");
/// assert!(empty.to_string().starts_with("e3b0c442"));
/// ```
///
/// It prints as 64 hexadecimal digits. The hash is that of FIPS 180-4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a payload.
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
