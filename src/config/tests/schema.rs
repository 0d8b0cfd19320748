//! What programs read: the JSON Schema and findings as JSON.

use crate::config::schema;
use serde_json::Value;

/// The schema of a value, references followed.
fn at<'a>(whole: &'a Value, mut here: &'a Value, path: &[&str]) -> &'a Value {
    let follow = |mut value: &'a Value| {
        loop {
            let alternatives = value.get("anyOf").and_then(|any| any.as_array());
            let first = alternatives.and_then(|any| any.iter().find(|v| v.get("type") != Some(&Value::from("null"))));
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                value = whole.pointer(target.trim_start_matches('#')).unwrap();
            } else if let Some(first) = first {
                value = first;
            } else {
                return value;
            }
        }
    };
    for key in path {
        here = follow(here);
        here = match *key {
            "*" => here.get("additionalProperties").unwrap(),
            "[]" => here.get("items").unwrap(),
            name => here
                .get("properties")
                .unwrap()
                .get(name)
                .unwrap_or_else(|| panic!("{name} in {here}")),
        };
    }
    follow(here)
}

#[test]
fn the_schema_knows_every_key_and_refuses_others() {
    let whole = serde_json::to_value(schema()).unwrap();
    let object = |path: &[&str]| at(&whole, &whole, path).clone();
    for path in [
        &[][..],
        &["sandbox"],
        &["sandbox", "paths", "*"],
        &["shell"],
        &["shell", "rules", "[]"],
        &["tools", "*"],
        &["approval"],
        &["audit"],
    ] {
        assert_eq!(object(path)["additionalProperties"], Value::Bool(false), "{path:?}");
    }
    assert_eq!(
        object(&["sandbox", "paths", "*"])["required"],
        serde_json::json!(["root"])
    );
    for key in ["safe_commands", "dangerous_patterns", "safe_paths"] {
        assert_eq!(object(&["tools", "*", key, "[]"])["type"], "string", "{key}");
    }
    assert!(
        object(&["shell", "rules", "[]"])["properties"]
            .get("not_match")
            .is_some()
    );
    assert!(object(&["shell", "limits", "timeout"])["pattern"].is_string());
    assert!(
        object(&["sandbox", "paths", "*", "approval", "write"])["enum"]
            .as_array()
            .unwrap()
            .contains(&"required".into())
    );
}

#[test]
fn the_schema_describes_what_a_person_types() {
    let whole = serde_json::to_value(schema()).unwrap();
    let text = whole.to_string();
    assert!(!text.contains("Spanned") && !text.contains("At_"), "{text}");
    assert!(text.contains("absolute, `~/…`, or relative to this file"));
    let hosts = at(&whole, &whole["$defs"]["Network"]["anyOf"][1], &["allow", "[]"]);
    assert_eq!(hosts["type"], "string");
}

#[test]
fn a_finding_is_json_for_programs() {
    let world = super::Fixture::new();
    let Err(crate::config::ConfigError::Invalid(found)) = world.load("shell: {netwrk: false}\n") else {
        panic!("a slip is an error");
    };
    let json = serde_json::to_value(&found).unwrap();
    let place = serde_json::json!({
        "source": world.project().join("stockade.yaml").to_str().unwrap(), "line": 1, "column": 9, "length": 6, "label": "not a key here"
    });
    assert_eq!(json["severity"], "error");
    assert_eq!(json["place"], place);
    assert_eq!(json["hints"], serde_json::json!(["did you mean `network`?"]));
}
