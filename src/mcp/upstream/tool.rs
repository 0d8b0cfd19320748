//! A tool of a server, behind the guard of a session.

use std::fmt;
use std::sync::Arc;

use rmcp::model::{JsonObject, ProgressNotificationParam};
use serde_json::Value;

use super::client::{ToolCall, UpstreamError};
use super::pins::PinStatus;
use super::results;
use super::server::{Offer, Server};
use crate::approval::{ApprovalRequest, Lazy, Presentation, Remember};
use crate::policy::path::escape;
use crate::tools::{
    ApprovalContext, Assessed, Assessment, Boxed, Output, Prepared, Session, Tool, ToolError, tool_question,
};

/// Receives the progress of a call.
pub(super) type ProgressSink = Arc<dyn Fn(&ProgressNotificationParam) + Send + Sync>;

/// Makes a future that completes when the call is cancelled.
pub(super) type Cancelled = Arc<dyn Fn() -> Boxed<'static, ()> + Send + Sync>;

/// Runs one call behind the guard of this session.
pub(super) async fn call(
    server: &Arc<Server>,
    session: &Session,
    context: &ApprovalContext,
    cancelled: Cancelled,
    progress: ProgressSink,
) -> Result<Output, ToolError> {
    let Some(offer) = server.offer(&context.tool_name) else {
        return Err(ToolError::NoSuchTool(format!(
            "no tool `{}`; tools/list names those that are offered",
            escape(context.tool_name.as_bytes())
        )));
    };
    let changed = matches!(offer.pin, PinStatus::Changed(_));
    let tool = Box::new(UpstreamTool {
        server: Arc::clone(server),
        offer,
        cancelled,
        progress,
    });
    let mut guarded = if changed {
        session.guarded_anew(tool)
    } else {
        session.guarded(tool)
    };
    guarded.call(context, Prepared::nothing()).await
}

/// A tool of a server, as defined when the call began. For one call.
struct UpstreamTool {
    server: Arc<Server>,
    offer: Arc<Offer>,
    cancelled: Cancelled,
    progress: ProgressSink,
}

impl UpstreamTool {
    /// The approval request: server, tool, arguments, and the server's description.
    fn question(&self, context: &ApprovalContext) -> ApprovalRequest {
        let Offer { definition, pin } = &*self.offer;
        let (server, name) = (&*self.server.command, &definition.name);
        let mut description = vec![format!("call {name} of the MCP server `{server}`")];
        let mut fields = vec![
            ("server".to_owned(), server.to_owned()),
            ("tool".to_owned(), name.clone()),
        ];
        let mut request = tool_question::by_name(context, String::new(), context.args.clone());
        request.allowed_by = format!("{} in the config would allow it", self.server.rule_allowing(name));
        if let PinStatus::Changed(why) = pin {
            description.push(why.clone());
            fields.push(("warning".to_owned(), why.clone()));
            let forget = format!(
                "remove {} to take the definitions as they are now",
                self.server.pins_path()
            );
            request.allowed_by = format!("{forget}; {}", request.allowed_by);
            request.why = vec![format!("{why}, so what the config pre-approves does not hold for it")];
        }
        // The prefix keeps arguments from passing for fields of Stockade.
        let arguments = tool_question::fields(&context.args).into_iter();
        fields.extend(arguments.map(|(name, value)| (format!("args.{name}"), value)));
        fields.push(("the server says of it".to_owned(), definition.description.clone()));
        let arguments = context.args.to_string();
        let bound = super::pins::fingerprint(definition, pin);
        ApprovalRequest {
            description: description.join("; "),
            payload: tool_question::payload(&[
                b"mcp server",
                &self.server.identity,
                name.as_bytes(),
                &bound,
                arguments.as_bytes(),
            ]),
            presentation: Lazy::new(move || Ok(Presentation::Structured(fields.clone()))),
            remember: Remember::None,
            ..request
        }
    }

    async fn run(&self, arguments: JsonObject) -> Result<Output, UpstreamError> {
        let call = ToolCall {
            name: self.offer.definition.name.clone(),
            arguments,
            time: self.server.call_time,
        };
        let client = self.server.client()?;
        let result = client
            .call(call, (self.cancelled)(), |step| (self.progress)(step))
            .await?;
        Ok(results::output(result, self.server.call_output))
    }
}

impl Tool for UpstreamTool {
    fn name(&self) -> &str {
        &self.offer.definition.name
    }

    fn description(&self) -> String {
        self.offer.definition.description.clone()
    }

    fn input_schema(&self) -> Value {
        self.offer.definition.input_schema.clone()
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            object(context)?;
            let question = Box::new(self.question(context));
            Ok(Assessed::from(match self.offer.pin {
                PinStatus::Unchanged => Assessment::NoOpinion(Some(question)),
                PinStatus::Changed(_) => Assessment::NeedsApproval(question),
            }))
        })
    }

    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        _prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let arguments = object(context)?;
            // The approval and the rules were for the earlier definition.
            if self.server.offer(self.name()).as_deref() != Some(&*self.offer) {
                return Err(ToolError::Function(format!(
                    "the MCP server defines {} otherwise now; nothing was called, call again",
                    self.name()
                )));
            }
            let done = self.run(arguments).await;
            done.map_err(|error| ToolError::Function(error.to_string()))
        })
    }
}

/// The arguments as an object.
fn object(context: &ApprovalContext) -> Result<JsonObject, ToolError> {
    match &context.args {
        Value::Object(members) => Ok(members.clone()),
        Value::Null => Ok(JsonObject::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(ToolError::Arguments {
            tool: context.tool_name.clone(),
            why: "they must be an object".to_owned(),
        }),
    }
}

impl fmt::Debug for UpstreamTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamTool")
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}
