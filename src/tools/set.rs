//! A set of guarded tools, called by name.

use serde::Serialize;
use serde_json::Value;

use super::call::ToolError;
use super::guarded::{Guard, Guarded};
use super::tool::{ApprovalContext, Output, Prepared, Tool};
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
            })
            .collect()
    }

    /// Calls a tool for the agent itself.
    pub async fn call(&mut self, name: &str, args: Value) -> Result<Output, ToolError> {
        self.call_in(&ApprovalContext::new(name, args)).await
    }

    /// Calls the tool that the context names.
    pub async fn call_in(&mut self, context: &ApprovalContext) -> Result<Output, ToolError> {
        let name = &context.tool_name;
        let known: Vec<String> = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
        match self.tools.iter_mut().find(|tool| tool.name() == name) {
            Some(tool) => tool.call(context, Prepared::nothing()).await,
            None => Err(ToolError::NoSuchTool(format!(
                "no tool `{}`; there are {}",
                escape(name.as_bytes()),
                known.join(", ")
            ))),
        }
    }
}
