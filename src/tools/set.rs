//! A set of guarded tools, called by name.

use serde::Serialize;
use serde_json::Value;

use super::call::ToolError;
use super::deciding::lost;
use super::guarded::{Guard, Guarded, ask, record_outcome};
use super::tool::{ApprovalContext, Effect, Output, Prepared, Tool};
use crate::policy::path::escape;

/// Tools behind one guard.
#[derive(Debug)]
pub struct ToolSet {
    guard: Guard,
    tools: Vec<Guarded>,
}

/// What an agent is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of what it gives as data, where that always has the same shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What a call may do to the world.
    pub effect: Effect,
    /// What a third party claims of it, in the words of the protocol: passed on as that, and never believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Value>,
}

impl ToolSet {
    /// An empty set behind this guard.
    pub const fn new(guard: Guard) -> Self {
        Self {
            guard,
            tools: Vec::new(),
        }
    }

    /// Adds a tool, guarded. One of the same name takes the place of an earlier one.
    pub fn add(&mut self, tool: Box<dyn Tool>) -> &mut Self {
        self.tools.retain(|other| other.name() != tool.name());
        self.tools.push(Guarded::new(tool, self.guard.clone()));
        self
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

    /// Calls a tool for the agent itself.
    pub async fn call(&mut self, name: &str, args: Value) -> Result<Output, ToolError> {
        self.call_in(&ApprovalContext::new(name, args)).await
    }

    /// Calls the tool that the context names.
    pub async fn call_in(&mut self, context: &ApprovalContext) -> Result<Output, ToolError> {
        match self.tools.iter_mut().find(|tool| tool.name() == context.tool_name) {
            Some(tool) => tool.call(context, Prepared::nothing()).await,
            None => Err(self.unknown(&context.tool_name)),
        }
    }

    /// Calls several tools, one after the other, and asks what those of one group ask as one question beforehand.
    ///
    /// Each has an outcome of its own. What an earlier one changes of what a later one was asked about is asked anew.
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
