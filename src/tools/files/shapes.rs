//! The shapes of what file tools give as data, as JSON Schema.

use serde_json::{Value, json};

use super::FileKind;

pub(super) fn of(kind: FileKind) -> Value {
    let path = || json!({"type": "string", "description": "Absolute"});
    match kind {
        FileKind::Read => object(
            &json!({
                "path": path(),
                "content": {"type": "string", "description": "The lines; bytes that are not UTF-8 are replaced"},
                "first_line": count(),
                "lines": count(),
                "total_lines": {"type": ["integer", "null"], "description": "null where the file is too large to count"},
                "total_bytes": count(),
                "cut_at": {"type": ["integer", "null"], "description": "Where the first line is cut, if it alone is too long: the next `skip_bytes`"},
                "complete": {"type": "boolean", "description": "Whether the file ends here"},
            }),
            &[
                "path",
                "content",
                "first_line",
                "lines",
                "total_lines",
                "total_bytes",
                "cut_at",
                "complete",
            ],
        ),
        FileKind::List => found(
            "entries",
            &object(
                &json!({
                    "path": path(),
                    "kind": {"type": "string", "enum": ["file", "directory", "symlink", "other"]},
                    "size": count(),
                }),
                &["path", "kind", "size"],
            ),
        ),
        FileKind::Search => found(
            "matches",
            &object(
                &json!({
                    "path": path(),
                    "line": count(),
                    "first_line": count(),
                    "lines": {"type": "array", "items": {"type": "string"}},
                }),
                &["path", "line", "first_line", "lines"],
            ),
        ),
        FileKind::Write => changed(&json!({"path": path(), "bytes": count()}), &["path", "bytes"]),
        FileKind::Edit => changed(
            &json!({"path": path(), "replacements": count()}),
            &["path", "replacements"],
        ),
        FileKind::Patch => changed(
            &json!({
                "path": path(),
                "files": {"type": "array", "description": "Where the patch changes several"},
            }),
            &[],
        ),
        FileKind::Delete | FileKind::MakeDirectory => changed(&json!({"path": path()}), &["path"]),
        FileKind::Move => changed(&json!({"from": path(), "to": path()}), &["from", "to"]),
    }
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn found(what: &str, item: &Value) -> Value {
    object(
        &json!({
            "path": {"type": "string"},
            what: {"type": "array", "items": item},
            "total": count(),
            "complete": {"type": "boolean"},
            "unreadable": count(),
            "regime": {"type": "string"},
        }),
        &["path", what, "total", "complete", "unreadable", "regime"],
    )
}

/// What every change tells beside its own.
fn changed(own: &Value, required: &[&str]) -> Value {
    let mut properties = json!({
        "regime": {"type": "string"},
        "duration": {"type": "number", "description": "Seconds"},
        "restored": {"type": "array", "description": "Protected names that were put back; of very many the first"},
        "not_restored": {"type": "array", "description": "Protected names that could not be put back; of very many the first"},
        "more_changed": {"type": "integer", "description": "How many more protected names were changed than are listed"},
    });
    if let (Value::Object(all), Value::Object(own)) = (&mut properties, own) {
        all.extend(own.clone());
    }
    let required: Vec<&str> = required
        .iter()
        .copied()
        .chain(["regime", "duration", "restored"])
        .collect();
    object(&properties, &required)
}
