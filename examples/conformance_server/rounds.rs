//! Tools that ask before they are done: what they say next, from what was brought along.

use rmcp::model::ErrorData;
use serde_json::{Value, json};

use super::fixtures::text;

/// Asks for one word.
fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {field: {"type": kind}}, "required": [field]},
    }})
}

fn sampling(question: &str) -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": text(question)}],
        "maxTokens": 100,
    }})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn ask(requests: &Value, state: Option<&str>) -> Value {
    let mut asked = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        asked["requestState"] = json!(state);
    }
    asked
}

fn done(said: &str) -> Value {
    json!({"content": [text(said)]})
}

/// Refuses a state that is none of those which were given out.
fn known<'a>(state: Option<&'a str>, given: &[&str]) -> Result<Option<&'a str>, ErrorData> {
    match state {
        Some(state) if !given.contains(&state) => Err(ErrorData::invalid_params("the state is none of ours", None)),
        state => Ok(state),
    }
}

/// What the tool says to a call with these answers and this state.
pub(crate) fn next(name: &str, brought: &Value, state: Option<&str>, capabilities: &Value) -> Result<Value, ErrorData> {
    let answer = |key: &str| brought.get(key).filter(|answer| answer.is_object());
    let field = |key: &str, field: &str| answer(key).and_then(|answer| answer["content"][field].as_str());
    let confirm = json!({"confirm": form("Please confirm", "ok", "boolean")});
    let user_name = form("What is your name?", "name", "string");
    Ok(match name {
        "test_input_required_result_elicitation" => match field("user_name", "name") {
            Some(name) => done(&format!("Hello, {name}!")),
            None => ask(&json!({"user_name": user_name}), None),
        },
        "test_streaming_elicitation" => match answer("user_name") {
            Some(_) => done("Thank you."),
            None => ask(&json!({"user_name": user_name}), None),
        },
        "test_input_required_result_sampling" => match answer("capital_question") {
            Some(answer) => done(&answer.to_string()),
            None => ask(
                &json!({"capital_question": sampling("What is the capital of France?")}),
                None,
            ),
        },
        "test_input_required_result_list_roots" => match answer("client_roots") {
            Some(answer) => done(&answer.to_string()),
            None => ask(&json!({"client_roots": roots()}), None),
        },
        "test_input_required_result_request_state" => match (answer("confirm"), known(state, &["state-of-one"])?) {
            (Some(_), Some(_)) => done("state-ok"),
            _ => ask(&confirm, Some("state-of-one")),
        },
        "test_input_required_result_tampered_state" => match (answer("confirm"), known(state, &["state-of-it"])?) {
            (Some(_), Some(_)) => done("It is as it was."),
            _ => ask(&confirm, Some("state-of-it")),
        },
        "test_input_required_result_multiple_inputs" => {
            let all = ["user_name", "greeting", "client_roots"]
                .iter()
                .all(|key| answer(key).is_some());
            match (all, known(state, &["state-of-three"])?) {
                (true, Some(_)) => done("All three came."),
                _ => ask(
                    &json!({
                        "user_name": user_name,
                        "greeting": sampling("Generate a greeting"),
                        "client_roots": roots(),
                    }),
                    Some("state-of-three"),
                ),
            }
        }
        "test_input_required_result_multi_round" => match known(state, &["round-1", "round-2"])? {
            Some("round-1") if answer("step1").is_some() => {
                let color = form("Step 2: What is your favorite color?", "color", "string");
                ask(&json!({"step2": color}), Some("round-2"))
            }
            Some("round-2") if answer("step2").is_some() => done("Both steps are done."),
            _ => {
                let name = form("Step 1: What is your name?", "name", "string");
                ask(&json!({"step1": name}), Some("round-1"))
            }
        },
        "test_input_required_result_capabilities" => {
            let mut requests = json!({});
            for (capability, key, request) in [
                ("elicitation", "user_name", user_name),
                (
                    "sampling",
                    "capital_question",
                    sampling("What is the capital of France?"),
                ),
                ("roots", "client_roots", roots()),
            ] {
                if capabilities[capability].is_object() {
                    requests[key] = request;
                }
            }
            ask(&requests, None)
        }
        _ => return Err(ErrorData::invalid_params(format!("no tool `{name}`"), None)),
    })
}
