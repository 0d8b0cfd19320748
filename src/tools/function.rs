//! Tools that live in the program that embeds Stockade: a function with a name, and no command.
//!
//! They are not confined: the program's own code runs in the program. Stockade asks before it does.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use super::call::ToolError;
use super::output::{Output, OutputEnd};
use super::prepared::Prepared;
use super::tool::{ApprovalContext, Assessed, Assessment, Boxed, Tool};
use super::tool_question;

type Handler = dyn Fn(ApprovalContext) -> Boxed<'static, Result<Value, String>> + Send + Sync;
type Describe = dyn Fn(&Value) -> String + Send + Sync;
type Redact = dyn Fn(&Value) -> Value + Send + Sync;

/// What a function says of its own calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    RequiresApproval,
    PreApproved,
}

/// A function of the embedding program as a [`Tool`].
///
/// Use it for what an agent may do beside files and commands. The function is not confined: it runs in the program. The
/// session asks before it runs. Add it to [`Session::tools`](crate::Session::tools).
///
/// ```no_run
/// use serde_json::json;
/// use stockade::{FunctionTool, Session};
///
/// # async fn run(session: &Session) -> Result<(), stockade::ToolError> {
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
/// let notify = FunctionTool::new("notify", "Tell the team.", schema, |call| async move {
///     // Send call.args["text"].
///     Ok(json!("sent"))
/// });
/// let mut tools = session.tools();
/// tools.add(Box::new(notify.requires_approval()));
/// tools.call("notify", json!({"text": "the tests pass"})).await?;
/// # Ok(())
/// # }
/// ```
pub struct FunctionTool {
    name: String,
    description: String,
    schema: Value,
    handler: Arc<Handler>,
    marker: Marker,
    describe: Option<Box<Describe>>,
    payload: Option<Box<Redact>>,
}

impl FunctionTool {
    /// A tool that runs `handler` for each call. Each call is asked about, unless the config says otherwise.
    ///
    /// `name` is what the agent and the config call it, `description` is for the agent, and `schema` is the JSON Schema of the
    /// arguments: an object. The arguments are not checked against it. The value of `handler` becomes
    /// [`Output::data`](crate::Output::data), and its text, or its JSON where it is no string, [`Output::text`](crate::Output::text).
    /// An error of `handler` becomes [`ToolError::Function`].
    pub fn new<F, Fut>(name: &str, description: &str, schema: Value, handler: F) -> Self
    where
        F: Fn(ApprovalContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, String>> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
            handler: Arc::new(move |context| Box::pin(handler(context))),
            marker: Marker::None,
            describe: None,
            payload: None,
        }
    }

    /// The same tool, whose calls each need a yes.
    #[must_use]
    pub fn requires_approval(self) -> Self {
        Self {
            marker: Marker::RequiresApproval,
            ..self
        }
    }

    /// The same tool, whose calls need no yes.
    #[must_use]
    pub fn pre_approved(self) -> Self {
        Self {
            marker: Marker::PreApproved,
            ..self
        }
    }

    /// The same tool, whose questions are described by `describe`: the arguments to one line.
    #[must_use]
    pub fn described_by(self, describe: impl Fn(&Value) -> String + Send + Sync + 'static) -> Self {
        Self {
            describe: Some(Box::new(describe)),
            ..self
        }
    }

    /// The same tool, where `payload` says what of the arguments is shown, remembered and logged: use it to leave out secrets.
    ///
    /// A yes for the session covers every call with the same result, so it must keep whatever makes a difference.
    #[must_use]
    pub fn redacted_by(self, payload: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self {
            payload: Some(Box::new(payload)),
            ..self
        }
    }
}

impl Tool for FunctionTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn input_schema(&self) -> Value {
        self.schema.clone()
    }

    fn recorded(&self, args: &Value) -> Value {
        match &self.payload {
            Some(redact) => redact(args),
            None => args.clone(),
        }
    }

    fn assess<'a>(&'a mut self, context: &'a ApprovalContext) -> Boxed<'a, Result<Assessed, ToolError>> {
        Box::pin(async move {
            let description = match &self.describe {
                Some(describe) => describe(&context.args),
                None => format!("call {}", self.name),
            };
            let shown = self.recorded(&context.args);
            let question = Box::new(tool_question::by_name(context, description, shown));
            Ok(Assessed::from(match self.marker {
                Marker::PreApproved => Assessment::PreApproved(Some(question)),
                Marker::RequiresApproval => Assessment::NeedsApproval(question),
                Marker::None => Assessment::NoOpinion(Some(question)),
            }))
        })
    }

    fn call<'a>(
        &'a mut self,
        context: &'a ApprovalContext,
        _prepared: Prepared,
    ) -> Boxed<'a, Result<Output, ToolError>> {
        let handler = Arc::clone(&self.handler);
        Box::pin(async move {
            let value = handler(context.clone()).await.map_err(ToolError::Function)?;
            let text = match &value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Ok(Output::new(OutputEnd::Done, text, value))
        })
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool")
            .field("name", &self.name)
            .field("marker", &self.marker)
            .finish_non_exhaustive()
    }
}
