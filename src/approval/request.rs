//! Requests and decisions.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::presentation::{Lazy, Presentation};
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
