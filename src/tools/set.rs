//! A set of guarded tools, called by name.

use serde::Serialize;
use serde_json::Value;

use super::call::ToolError;
use super::deciding::lost;
use super::guarded::{Guard, Guarded, ask, record_outcome};
use super::output::Output;
use super::prepared::Prepared;
use super::tool::{ApprovalContext, Effect, Tool};
use crate::approval::{Approval, Record};
use crate::policy::path::escape;

/// A set of guarded tools, called by name.
///
/// [`Session::tools`](crate::Session::tools) makes one with the tools that the config can allow. [`ToolSet::builder`] makes one
/// without a sandbox, around functions of the program alone. The calls of one set run one after the other.
///
/// ```no_run
/// use serde_json::json;
/// use stockade::{ApprovalContext, Session};
///
/// # async fn run(session: &Session) -> Result<(), stockade::ToolError> {
/// let mut tools = session.tools();
/// for tool in tools.list() {
///     println!("{}: {}", tool.name, tool.description);
/// }
/// let output = tools.call("read_file", json!({"path": "README.md"})).await?;
/// println!("{}", output.text);
///
/// // One question about two changes.
/// let write = |path: &str| ApprovalContext {
///     group_id: Some("notes".to_owned()),
///     ..ApprovalContext::new("write_file", json!({"path": path, "content": "fine\n"}))
/// };
/// let results = tools.call_together(&[write("a"), write("b")]).await;
/// assert_eq!(results.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToolSet {
    guard: Guard,
    tools: Vec<Guarded>,
}

/// The description of a tool for an agent.
///
/// [`ToolSet::list`] returns them; the example of [`ToolSet`] prints them. Its members serialize under the names of these
/// fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolInfo {
    /// The name.
    pub name: String,
    /// What the tool does, in words for the agent.
    pub description: String,
    /// The JSON Schema of the arguments: an object.
    pub input_schema: Value,
    /// The JSON Schema of [`Output::data`]; `None` where it has no fixed shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What a call may do to the world.
    pub effect: Effect,
    /// What a third party's server claims of the tool, in the words of its protocol. Stockade passes it on and never relies
    /// on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Value>,
}

impl ToolSet {
    /// An empty set behind this guard.
    pub(super) const fn new(guard: Guard) -> Self {
        Self {
            guard,
            tools: Vec::new(),
        }
    }

    /// Adds a tool behind the guard of the set. It replaces a tool of the same name.
    pub fn add(&mut self, tool: Box<dyn Tool>) -> &mut Self {
        self.tools.retain(|other| other.name() != tool.name());
        self.tools.push(Guarded::new(tool, self.guard.clone()));
        self
    }

    /// An empty set for a worker or agent that the agent delegates to: add what it may call. Questions name it as the caller.
    ///
    /// Mode, memory and history are those of this set.
    #[must_use]
    pub fn delegate(&self, name: &str) -> Self {
        Self::new(self.guard.delegate(name))
    }

    /// The approvals that hold, oldest first. At most 10,000 are kept.
    pub fn approvals(&self) -> Vec<Approval> {
        self.guard.deciding.controller.approvals()
    }

    /// Takes back the approval with this [`id`](Approval::id), and returns it. The same call is asked about again.
    pub fn revoke(&self, id: u64) -> Option<Approval> {
        self.guard.deciding.controller.revoke(id)
    }

    /// Takes back every approval.
    pub fn forget_approvals(&self) {
        self.guard.deciding.controller.forget_approvals();
    }

    /// The latest decisions, oldest first. At most 10,000 are kept.
    pub fn history(&self) -> Vec<Record> {
        self.guard.deciding.controller.history()
    }

    /// The tools, in the order in which they were added.
    pub fn list(&self) -> Vec<ToolInfo> {
        self.tools
            .iter()
            .map(|tool| ToolInfo {
                name: tool.name().to_owned(),
                description: tool.description(),
                input_schema: tool.input_schema(),
                output_schema: tool.output_schema(),
                effect: tool.effect(),
                claims: None,
            })
            .collect()
    }

    /// Calls a tool for the agent itself. `args` are its arguments: an object.
    ///
    /// # Errors
    /// No tool has the name; the call is blocked or denied; it could not be done.
    pub async fn call(&mut self, name: &str, args: Value) -> Result<Output, ToolError> {
        self.call_in(&ApprovalContext::new(name, args)).await
    }

    /// Calls the tool that the context names.
    ///
    /// # Errors
    /// The same as those of [`call`](Self::call).
    pub async fn call_in(&mut self, context: &ApprovalContext) -> Result<Output, ToolError> {
        match self.tools.iter_mut().find(|tool| tool.name() == context.tool_name) {
            Some(tool) => tool.call(context, Prepared::nothing()).await,
            None => Err(self.unknown(&context.tool_name)),
        }
    }

    /// Calls several tools, one after the other. The questions of one group are asked as one, before the first call runs.
    ///
    /// It returns one result for each context, in their order. A call is asked about again where an earlier one changed what
    /// it was approved for.
    pub async fn call_together(&mut self, contexts: &[ApprovalContext]) -> Vec<Result<Output, ToolError>> {
        let mut pending = Vec::new();
        let mut questions = Vec::new();
        for context in contexts {
            let one = match self.tools.iter_mut().find(|tool| tool.name() == context.tool_name) {
                Some(tool) => tool.begin(context).await,
                None => Err(self.unknown(&context.tool_name)),
            };
            pending.push(one.map(|mut one| {
                let question = one.question.take();
                let asks = question.is_some();
                questions.extend(question);
                (one, asks)
            }));
        }
        // Where nothing is asked, nobody is waited for.
        let answers = if questions.is_empty() {
            Ok(Vec::new())
        } else {
            ask(&self.guard, questions).await
        };
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(error) => {
                let mut outcomes = Vec::new();
                for one in pending {
                    outcomes.push(match one {
                        Ok((one, _)) => record_outcome(&self.guard, one.open, Err(same(&error))).await,
                        Err(own) => Err(own),
                    });
                }
                return outcomes;
            }
        };
        let mut outcomes = Vec::new();
        for (context, one) in contexts.iter().zip(pending) {
            outcomes.push(match one {
                Err(error) => Err(error),
                Ok((mut one, asks)) => {
                    let answered = if asks {
                        answers.next().unwrap_or_else(|| Err(lost()))
                    } else {
                        Ok(())
                    };
                    let tool = self.tools.iter_mut().find(|tool| tool.name() == context.tool_name);
                    match (answered, tool) {
                        (Err(denied), _) => record_outcome(&self.guard, one.open, Err(denied)).await,
                        (Ok(()), Some(tool)) => {
                            if asks {
                                one.prepared = one.prepared.approved();
                            }
                            tool.end(one).await
                        }
                        (Ok(()), None) => Err(self.unknown(&context.tool_name)),
                    }
                }
            });
        }
        outcomes
    }

    fn unknown(&self, name: &str) -> ToolError {
        let known: Vec<&str> = self.tools.iter().map(Guarded::name).collect();
        ToolError::NoSuchTool(format!(
            "no tool `{}`; there are {}",
            escape(name.as_bytes()),
            known.join(", ")
        ))
    }
}

/// A copy of the error for each call of the group.
fn same(error: &ToolError) -> ToolError {
    match error {
        ToolError::Stopped(signal) => ToolError::Stopped(*signal),
        other => ToolError::Denied(other.to_string()),
    }
}
