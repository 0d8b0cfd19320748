//! What every tool is: something that can say what a call of it needs, and do it.

use std::collections::BTreeMap;
use std::pin::Pin;

use serde::Serialize;
use serde_json::Value;

use super::call::ToolError;
use super::output::Output;
use super::prepared::Prepared;
use crate::approval::ApprovalRequest;
use crate::policy::{Demand, DemandSource};

/// A boxed future, as the methods of a [`Tool`] return it.
///
/// `Box::pin(async move { … })` makes one; the example of [`Tool`] does.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool of an agent: it says what a call needs, and does it.
///
/// Implement it where a [`FunctionTool`](crate::FunctionTool) is not enough: where a call needs preparation, or a question of
/// its own. [`ToolSet::add`](crate::ToolSet::add) guards it. A tool that is used without a guard asks nobody: see
/// [`Session::bare_tools`](crate::Session::bare_tools).
///
/// ```
/// use serde_json::{Value, json};
/// use stockade::{
///     ApprovalContext, Assessed, Assessment, Boxed, Effect, Output, OutputEnd, OverrideByConfig, Prepared, Tool, ToolError,
/// };
///
/// /// Counts the characters of a text.
/// struct Count;
///
/// impl Tool for Count {
///     fn name(&self) -> &str {
///         "count"
///     }
///
///     fn description(&self) -> String {
///         "Counts the characters of a text.".to_owned()
///     }
///
///     fn input_schema(&self) -> Value {
///         json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
///     }
///
///     fn effect(&self) -> Effect {
///         Effect::Reads
///     }
///
///     fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
///         Box::pin(async move {
///             let Some(text) = context.args["text"].as_str() else {
///                 let (tool, why) = ("count".to_owned(), "`text` is missing".to_owned());
///                 return Err(ToolError::Arguments { tool, why });
///             };
///             Ok(Assessed {
///                 assessment: Assessment::PreApproved(None),
///                 prepared: Prepared::of(text.to_owned()),
///                 override_by_config: OverrideByConfig::Possible,
///             })
///         })
///     }
///
///     fn call<'a>(
///         &'a mut self,
///         context: &'a ApprovalContext,
///         prepared: Prepared,
///     ) -> Boxed<'a, Result<Output, ToolError>> {
///         Box::pin(async move {
///             let prepared = match prepared.is_nothing() {
///                 true => self.assess(context).await?.into_prepared()?,
///                 false => prepared,
///             };
///             let count = prepared.take::<String>().unwrap_or_default().chars().count();
///             Ok(Output::new(OutputEnd::Done, count.to_string(), json!({"count": count})))
///         })
///     }
/// }
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let call = ApprovalContext::new("count", json!({"text": "four"}));
/// let output = Count.call(&call, Prepared::nothing()).await?;
/// assert_eq!(output.text, "4");
/// # Ok::<(), ToolError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Tool: Send + Sync {
    /// The name, as agents call it and as `tools:` in the config has it.
    fn name(&self) -> &str;

    /// What the tool does, in words for the agent.
    fn description(&self) -> String;

    /// The JSON Schema of the arguments: an object.
    fn input_schema(&self) -> Value;

    /// The most that a call may do. The default is the worst. Clients of MCP are told it.
    fn effect(&self) -> Effect {
        Effect::Destroys(Reach::World)
    }

    /// The arguments as they are logged. Leave out secrets; the default logs all of them.
    fn recorded(&self, args: &Value) -> Value {
        args.clone()
    }

    /// The JSON Schema of [`Output::data`]; `None` where it has no fixed shape.
    fn output_schema(&self) -> Option<Value> {
        None
    }

    /// Says what a call needs before it may run. It must change nothing: nobody has approved anything yet.
    ///
    /// # Errors
    /// The arguments are wrong, or what the call needs cannot be found out.
    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>>;

    /// Does what was prepared by [`assess`](Self::assess). Where nothing was prepared, it does what the arguments say.
    ///
    /// # Errors
    /// It could not be done. [`ToolError::Changed`]: what was prepared is out of date; the guard assesses the call again.
    fn call<'a>(&'a mut self, context: &'a ApprovalContext, prepared: Prepared)
    -> Boxed<'a, Result<Output, ToolError>>;
}

/// The most that a call of a tool may do. Ordered, the least first.
///
/// [`Tool::effect`] returns it, and the example of [`Tool`] has one. [`ToolInfo`](crate::ToolInfo) tells it to agents. It decides
/// about no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call changes nothing.
    Reads,
    /// The call adds and takes nothing away. A second equal call changes nothing more.
    Adds,
    /// The call may overwrite or remove.
    Destroys(Reach),
}

/// The reach of a call that may overwrite or remove.
///
/// Part of [`Effect::Destroys`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The files that the config grants.
    Files,
    /// Everything that the machine reaches: hosts, services.
    World,
}

/// One call of a tool, and who makes it.
///
/// Make one to call a tool for somebody else than the agent itself, or in a group: [`ToolSet::call_in`](crate::ToolSet::call_in).
/// A [`Hook`](crate::Hook) and every [`Tool`] receive it.
///
/// ```
/// use serde_json::json;
/// use stockade::ApprovalContext;
///
/// let call = ApprovalContext {
///     run_id: Some("nightly-17".to_owned()),
///     ..ApprovalContext::new("read_file", json!({"path": "README.md"}))
/// };
/// let call = call.called_by("reviewer").called_by("planner");
/// assert_eq!(call.caller.as_deref(), Some("planner › reviewer"));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ApprovalContext {
    /// The name of the tool.
    pub tool_name: String,
    /// The arguments: an object.
    pub args: Value,
    /// The agent's run, as the embedding program names it. The audit log has it.
    pub run_id: Option<String>,
    /// The agent's session, as the embedding program names it. The audit log has it.
    pub session_id: Option<String>,
    /// The caller, where it is not the agent itself: `reviewer`, or `planner › reviewer` where `planner` called `reviewer`.
    pub caller: Option<String>,
    /// The group of the call. The calls of one group are asked about as one question; see
    /// [`ToolSet::call_together`](super::ToolSet::call_together).
    pub group_id: Option<String>,
    /// Further values for a [`Hook`](crate::Hook). Stockade does not read them.
    pub tags: BTreeMap<String, String>,
    /// The protocol request that the call came with, for the audit log.
    pub request: Option<CallRequest>,
    /// The name of the call in the audit log. The guard sets it.
    pub call: Option<String>,
}

/// The protocol request that a call came with, for the audit log.
///
/// Set it in an [`ApprovalContext`] where the program itself serves agents over a protocol.
///
/// ```
/// use serde_json::json;
/// use stockade::{ApprovalContext, CallRequest};
///
/// let request = CallRequest { method: "tools/call", session: None, id: "7".to_owned() };
/// let call = ApprovalContext { request: Some(request), ..ApprovalContext::new("list_files", json!({})) };
/// # assert_eq!(call.request.unwrap().id, "7");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    /// The method of the protocol: `tools/call`.
    pub method: &'static str,
    /// The client's session; `None` where the transport has none.
    pub session: Option<String>,
    /// The client's id of the request.
    pub id: String,
}

impl ApprovalContext {
    /// A call by the agent itself. `args` are the arguments: an object.
    pub fn new(tool_name: impl Into<String>, args: Value) -> Self {
        Self {
            tool_name: tool_name.into(),
            args,
            ..Self::default()
        }
    }

    /// The same call, passed on by `name`. That name is put before the caller that is there already.
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
///
/// [`Tool::assess`] returns it within an [`Assessed`]; the example of [`Tool`] does. A [`Hook`](crate::Hook) reads it.
#[derive(Debug)]
pub enum Assessment {
    /// The call never runs, for this reason. No answer and no override changes that.
    Blocked(String),
    /// The call runs without a question.
    PreApproved(Question),
    /// The call runs after a yes to this request.
    NeedsApproval(Box<ApprovalRequest>),
    /// The tool has no opinion. The call is asked about, unless the config says otherwise.
    NoOpinion(Question),
}

impl Assessment {
    /// The assessment that a demand of the config leads to. `question` is the question about the call.
    pub(super) fn demanded(demand: Demand, question: Box<ApprovalRequest>) -> Self {
        match demand {
            Demand::None => Self::PreApproved(Some(question)),
            Demand::OncePerSession | Demand::Required => Self::NeedsApproval(question),
            Demand::Deny => Self::Blocked(format!("{}: it is never done", question.why.join("; "))),
        }
    }
}

/// The request that is used where the config or a hook wants a question that the tool itself does not need.
///
/// `None` asks with the name of the tool and its arguments. Part of an [`Assessment`]; the example of [`Tool`] has `None`.
pub type Question = Option<Box<ApprovalRequest>>;

/// An assessment of a call, with the work that was prepared for it.
///
/// [`Tool::assess`] returns it; the example of [`Tool`] makes one. `Assessed::from(assessment)` prepares nothing.
#[derive(Debug)]
pub struct Assessed {
    /// What the call needs.
    pub assessment: Assessment,
    /// The prepared work. The guard hands it to [`Tool::call`].
    pub prepared: Prepared,
    /// Whether an entry of `tools:` may loosen what the call needs.
    pub override_by_config: OverrideByConfig,
}

/// Whether an entry of `tools:` in the config may loosen what a call needs.
///
/// Part of [`Assessed`]; the example of [`Tool`] sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverrideByConfig {
    /// The entry decides.
    #[default]
    Possible,
    /// The entry can only forbid: another line of the config, a dangerous pattern or the demand of a root, asks about this very
    /// call.
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
    /// The prepared work without any question.
    ///
    /// # Errors
    /// [`ToolError::Blocked`]: the call is blocked.
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
