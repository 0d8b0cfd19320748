//! What every tool is: something that can say what a call of it needs, and do it.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use serde::Serialize;
use serde_json::Value;

use super::call::ToolError;
use crate::approval::ApprovalRequest;
use crate::policy::{Demand, DemandSource};

/// A future of a tool.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool of an agent.
///
/// A tool may be used bare: `call` asks nobody. What guards it is [`Guarded`](super::Guarded).
pub trait Tool: Send + Sync {
    /// The name that `tools:` in the config speaks of.
    fn name(&self) -> &str;

    /// What it does, told to the agent.
    fn description(&self) -> String;

    /// JSON Schema of its arguments: an object.
    fn input_schema(&self) -> Value;

    /// What a call of it may do to the world. The worst, where nothing better is known.
    fn effect(&self) -> Effect {
        Effect::Destroys(Reach::World)
    }

    /// What of the arguments of a call is put on record: secrets left out.
    fn recorded(&self, args: &Value) -> Value {
        args.clone()
    }

    /// JSON Schema of what a call gives as data, where it always has the same shape.
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// Says what this call needs. Changes nothing.
    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>>;

    /// Does it: what was assessed, or, where nothing was, what the arguments say.
    fn call<'a>(&'a mut self, context: &'a ApprovalContext, prepared: Prepared)
    -> Boxed<'a, Result<Output, ToolError>>;
}

/// What a call of a tool may do to the world, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: it looks.
    Reads,
    /// It adds, and takes nothing away; twice is the same as once.
    Adds,
    /// It may overwrite or remove.
    Destroys(Reach),
}

/// How far a call reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The files that the config grants.
    Files,
    /// Whatever is reachable: hosts, services.
    World,
}

/// One call, and who makes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ApprovalContext {
    /// The tool that is called.
    pub tool_name: String,
    /// Its arguments: an object.
    pub args: Value,
    /// The run of the agent, as the program names it.
    pub run_id: Option<String>,
    /// The session of the agent, as the program names it.
    pub session_id: Option<String>,
    /// Who calls, if it is not the agent itself: `reviewer`, or `planner › reviewer` where that one was called too.
    pub caller: Option<String>,
    /// Calls of one group are asked about as one; see [`ToolSet::call_together`](super::ToolSet::call_together).
    pub group_id: Option<String>,
    /// Whatever else an override hook wants to know.
    pub tags: BTreeMap<String, String>,
    /// The request of the protocol that it came with, for the audit log.
    pub request: Option<CallRequest>,
    /// The call, as the audit log names it; whoever guards it sets this.
    pub call: Option<String>,
}

/// The request of a protocol that a call came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    /// The method.
    pub method: &'static str,
    /// The client's session, where the transport has one.
    pub session: Option<String>,
    /// The name that the client gave the request.
    pub id: String,
}

impl ApprovalContext {
    /// A call by the agent itself.
    pub fn new(tool_name: impl Into<String>, args: Value) -> Self {
        Self {
            tool_name: tool_name.into(),
            args,
            ..Self::default()
        }
    }

    /// The same call, passed on by somebody of this name, who stands before whoever is named already.
    #[must_use]
    pub fn called_by(mut self, name: &str) -> Self {
        self.caller = Some(match self.caller {
            Some(caller) => format!("{name} › {caller}"),
            None => name.to_owned(),
        });
        self
    }
}

/// What a call needs before it may run.
#[derive(Debug)]
pub enum Assessment {
    /// It never runs, for this reason; no answer and no override changes that.
    Blocked(String),
    /// It runs unasked.
    PreApproved(Question),
    /// It runs after a yes to this.
    NeedsApproval(Box<ApprovalRequest>),
    /// The tool has no opinion. Unless the config has one, somebody is asked.
    NoOpinion(Question),
}

impl Assessment {
    /// What a demand of the config amounts to for a call that would be asked about like this.
    pub(super) fn demanded(demand: Demand, question: Box<ApprovalRequest>) -> Self {
        match demand {
            Demand::None => Self::PreApproved(Some(question)),
            Demand::OncePerSession | Demand::Required => Self::NeedsApproval(question),
            Demand::Deny => Self::Blocked(format!("{}: it is never done", question.why.join("; "))),
        }
    }
}

/// How it would be asked, should the config or a hook want to; without one, with the arguments as they are.
pub type Question = Option<Box<ApprovalRequest>>;

/// An assessment, and what was prepared for it.
#[derive(Debug)]
pub struct Assessed {
    /// What it needs.
    pub assessment: Assessment,
    /// What would be done; handed back to [`Tool::call`].
    pub prepared: Prepared,
    /// Whether an entry of `tools:` may loosen what the call needs.
    pub override_by_config: OverrideByConfig,
}

/// Whether an entry of `tools:` in the config may loosen what a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverrideByConfig {
    /// It may.
    #[default]
    Possible,
    /// The config itself says of this very call that somebody is asked: a dangerous pattern, or what a root demands.
    Never,
}

impl OverrideByConfig {
    /// Where a root demands this: an entry of `tools:` names no root, so it answers for the default alone.
    pub(super) const fn of_root(demand: Demand, source: DemandSource) -> Self {
        match (demand, source) {
            (Demand::None, _) | (_, DemandSource::Default) => Self::Possible,
            (Demand::OncePerSession | Demand::Required | Demand::Deny, DemandSource::Config) => Self::Never,
        }
    }
}

impl From<Assessment> for Assessed {
    fn from(assessment: Assessment) -> Self {
        Self {
            assessment,
            prepared: Prepared::nothing(),
            override_by_config: OverrideByConfig::Possible,
        }
    }
}

impl Assessed {
    /// What was prepared, for whoever asks nobody; what is blocked is an error all the same.
    pub fn into_prepared(self) -> Result<Prepared, ToolError> {
        match self.assessment {
            Assessment::Blocked(why) => Err(ToolError::Blocked(why)),
            Assessment::PreApproved(_) | Assessment::NeedsApproval(_) | Assessment::NoOpinion(_) => Ok(self.prepared),
        }
    }
}

/// What was prepared for a call; assessed now, where nothing was.
pub(super) async fn ready(
    tool: &mut impl Tool,
    context: &ApprovalContext,
    prepared: Prepared,
) -> Result<Prepared, ToolError> {
    if prepared.is_nothing() {
        tool.assess(context).await?.into_prepared()
    } else {
        Ok(prepared)
    }
}

/// What a tool prepared when it was assessed, so that exactly that is done.
pub struct Prepared {
    work: Option<Box<dyn Any + Send>>,
    answer: Answered,
}

/// Whether somebody was asked and said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// Nobody was asked.
    NotAsked,
    /// A person, session memory or `approve_all` said yes.
    Yes,
}

impl Prepared {
    /// Nothing: the arguments say it all.
    pub const fn nothing() -> Self {
        Self {
            work: None,
            answer: Answered::NotAsked,
        }
    }

    /// This.
    pub fn of<T: Send + 'static>(work: T) -> Self {
        Self {
            work: Some(Box::new(work)),
            answer: Answered::NotAsked,
        }
    }

    #[must_use]
    pub(super) fn approved(self) -> Self {
        Self {
            answer: Answered::Yes,
            ..self
        }
    }

    /// Whether somebody said yes to it.
    pub const fn answer(&self) -> Answered {
        self.answer
    }

    /// Whether there is nothing.
    pub const fn is_nothing(&self) -> bool {
        self.work.is_none()
    }

    /// What was prepared, if it is one of these.
    pub fn take<T: 'static>(self) -> Option<T> {
        self.work?.downcast().ok().map(|work| *work)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Output {
    /// Whether it did what it was told.
    pub end: OutputEnd,
    /// For the agent, and for people.
    pub text: String,
    /// The same for a program.
    pub data: Value,
    /// Pictures that belong to the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl Output {
    /// Text and data without pictures.
    pub const fn new(end: OutputEnd, text: String, data: Value) -> Self {
        Self {
            end,
            text,
            data,
            pictures: Vec::new(),
        }
    }
}

/// A picture that a call gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// Its type, as in `image/png`.
    pub mime_type: String,
    /// Its bytes in base64.
    pub base64: String,
}

/// Whether a call did what it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputEnd {
    /// It did.
    Done,
    /// It ran, and failed: a command with another exit code than 0.
    Failed,
}
