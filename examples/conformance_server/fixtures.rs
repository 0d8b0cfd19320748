//! What each tool of the suite says.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ErrorData, InputRequiredResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::rounds;

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No sound at all.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The server of the suite.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixtures;

/// What JSON says, as rmcp has it.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = NAMES.iter().filter_map(|name| self.get_tool(name)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let name = NAMES.iter().find(|known| **known == name)?;
        typed(json!({"name": name, "description": "Answers the suite.", "inputSchema": schema(name)})).ok()
    }

    // rmcp answers these with empty lists; a server that has none of it does not know the method.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        if let Some(content) = content(&call.name) {
            return complete(json!({"content": content}));
        }
        match call.name.as_ref() {
            "test_error_handling" => complete(json!({
                "content": [text("This tool intentionally returns an error for testing")],
                "isError": true,
            })),
            "test_tool_with_progress" => {
                progress(&context).await;
                complete(json!({"content": [text("It went on to its end.")]}))
            }
            "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
                let asked = typed(json!({
                    "mode": "form",
                    "message": arguments["message"].as_str().unwrap_or("Please answer"),
                    "requestedSchema": form(&call.name),
                }))?;
                let answer = context.peer.create_elicitation(asked).await;
                let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                let said = json!({"action": answer.action, "content": answer.content});
                complete(json!({"content": [text(&format!("User response: {said}"))]}))
            }
            "test_missing_capability" => {
                let declared = context.meta.client_capabilities().unwrap_or_default();
                if declared.sampling.is_none() {
                    let required: ClientCapabilities = typed(json!({"sampling": {}}))?;
                    return Err(ErrorData::missing_required_client_capability(required));
                }
                complete(json!({"content": [text("The client can sample.")]}))
            }
            name => {
                let capabilities = serde_json::to_value(context.meta.client_capabilities()).unwrap_or_default();
                let brought = serde_json::to_value(call.input_responses).unwrap_or_default();
                let said = rounds::next(name, &brought, call.request_state.as_deref(), &capabilities)?;
                if said["resultType"] == "input_required" {
                    return Ok(typed::<InputRequiredResult>(said)?.into());
                }
                complete(said)
            }
        }
    }
}

fn complete(mut result: Value) -> Result<CallToolResponse, ErrorData> {
    result["resultType"] = json!("complete");
    Ok(typed::<CallToolResult>(result)?.into())
}

async fn progress(context: &RequestContext<RoleServer>) {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let told = ProgressNotificationParam::new(token, done).with_total(100.0);
            // Nobody may be listening any more.
            let _told = context.peer.notify_progress(told).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What the tools say that always say the same.
fn content(name: &str) -> Option<Value> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    Some(match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            resource(
                "test://mixed-content-resource",
                "application/json",
                "{\"test\":\"data\",\"value\":123}"
            ),
        ]),
        "test_custom_headers" | "json_schema_2020_12_tool" | "test_logging_tool" => {
            json!([text("As it should be.")])
        }
        _ => return None,
    })
}

const NAMES: &[&str] = &[
    "json_schema_2020_12_tool",
    "test_audio_content",
    "test_custom_headers",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_logging_tool",
    "test_missing_capability",
    "test_multiple_content_types",
    "test_simple_text",
    "test_streaming_elicitation",
    "test_tool_with_progress",
];

fn schema(name: &str) -> Value {
    match name {
        "test_elicitation" => {
            json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]})
        }
        "test_custom_headers" => json!({
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        }),
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        }),
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// What the client is asked to fill in.
fn form(name: &str) -> Value {
    let one_of = |words: [&str; 2]| json!(words.map(|word| json!({"const": word, "title": format!("The {word}")})));
    match name {
        "test_elicitation_sep1034_defaults" => json!({"type": "object", "required": [], "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        }}),
        "test_elicitation_sep1330_enums" => json!({"type": "object", "required": [], "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": one_of(["value1", "value2"])},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
            },
            "titledMulti": {"type": "array", "items": {"anyOf": one_of(["value1", "value2"])}},
        }}),
        _ => json!({"type": "object", "required": ["username", "email"], "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }}),
    }
}
