//! Tools and results in the form of the protocol.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::tools::{Effect, NetworkUse, Output, OutputEnd, Reach, ToolError, ToolInfo};

/// A tool for a client.
pub(super) fn tool(info: ToolInfo) -> Tool {
    let mut tool = Tool::new(info.name, info.description, object(info.input_schema));
    tool.output_schema = info.output_schema.map(object);
    let claimed = info.claims.and_then(|claims| serde_json::from_value(claims).ok());
    tool.annotations = Some(claimed.unwrap_or_else(|| annotations(info.effect)));
    tool
}

/// The annotations of a tool.
fn annotations(effect: Effect) -> ToolAnnotations {
    let hints = |reads, destroys, again, world| {
        ToolAnnotations::new()
            .read_only(reads)
            .destructive(destroys)
            .idempotent(again)
            .open_world(world)
    };
    match effect {
        Effect::Reads => hints(true, false, true, false),
        Effect::Adds => hints(false, false, true, false),
        Effect::Destroys(Reach::Files) => hints(false, true, false, false),
        Effect::Destroys(Reach::World) => hints(false, true, false, true),
    }
}

/// A schema; anything but an object becomes one that allows every object.
fn object(schema: Value) -> Arc<JsonObject> {
    Arc::new(match schema {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::from_iter([("type".to_owned(), Value::from("object"))])
        }
    })
}

/// Shortens the regime line to the name of the regime, to save tokens.
fn shorten_regime(mut data: Value) -> Value {
    if let Some(Value::String(regime)) = data.get_mut("regime")
        && let Some(end) = regime.find(" (")
    {
        regime.truncate(end);
    }
    data
}

/// The result of a call. Failures and denials are results too, so that the model can act on them.
pub(super) fn result(done: Result<Output, ToolError>) -> CallToolResult {
    match done {
        Ok(output) => {
            let pictures = output.pictures.into_iter();
            let pictures = pictures.map(|picture| ContentBlock::image(picture.base64, picture.mime_type));
            let content = [ContentBlock::text(output.text)].into_iter().chain(pictures).collect();
            let mut result = match output.end {
                OutputEnd::Done => CallToolResult::success(content),
                OutputEnd::Failed => CallToolResult::error(content),
            };
            result.structured_content = match output.data {
                Value::Null => None,
                data => Some(shorten_regime(data)),
            };
            result
        }
        Err(error) => {
            let tried = error.network().into_iter().flat_map(NetworkUse::listed);
            let tried = tried.map(|line| format!("\n[network: {line}]"));
            let text: String = std::iter::once(error.to_string()).chain(tried).collect();
            CallToolResult::error(vec![ContentBlock::text(text)])
        }
    }
}
