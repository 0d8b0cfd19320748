//! Tool definitions of a server, and their digests.

use rmcp::model::Tool;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::bounds::{MAX_DEFINITION, MAX_DESCRIPTION};
use super::client::excerpt;

use crate::policy::hex::hex;

/// The most characters of a name; many clients cannot call longer ones.
const MAX_NAME: usize = 64;

/// A tool of a server, as it describes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
    pub(super) output_schema: Option<Value>,
    /// The annotations: whether it only reads, whether it destroys.
    pub(super) claims: Option<Value>,
    pub(super) digest: Fingerprint,
}

/// A digest of a whole definition, as hexadecimal text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fingerprint(pub(super) String);

/// The definitions that can be offered, sorted by name, and why others cannot.
pub(super) fn select(tools: Vec<Tool>, reserved: &[String]) -> (Vec<Definition>, Vec<String>) {
    let mut definitions: Vec<Definition> = Vec::new();
    let mut left_out = Vec::new();
    for tool in tools {
        let name = excerpt(&tool.name);
        match Definition::of(tool) {
            Err(why) => left_out.push(format!("its tool `{name}` is left out: {why}")),
            Ok(definition) if definitions.iter().any(|other| other.name == definition.name) => {
                left_out.push(format!("its tool `{name}` is left out: it has another of that name"));
            }
            Ok(definition) if reserved.contains(&definition.name) => {
                left_out.push(format!(
                    "its tool `{name}` is left out: the config has a tool of that name"
                ));
            }
            Ok(definition) => definitions.push(definition),
        }
    }
    definitions.sort_by(|a, b| a.name.cmp(&b.name));
    (definitions, left_out)
}

impl Definition {
    fn of(tool: Tool) -> Result<Self, String> {
        if !is_name(&tool.name) {
            return Err(format!("a name has up to {MAX_NAME} letters, digits, `_`, `-` and `.`"));
        }
        let json = serde_json::to_value(&tool).map_err(|error| error.to_string())?;
        if json.to_string().len() > MAX_DEFINITION {
            return Err(format!("its definition is longer than {MAX_DEFINITION} bytes"));
        }
        let Tool {
            name,
            description,
            input_schema,
            output_schema,
            annotations,
            ..
        } = tool;
        Ok(Self {
            name: name.into_owned(),
            description: cut(description.unwrap_or_default().into_owned()),
            input_schema: Value::Object(as_object(Map::clone(&input_schema))),
            output_schema: output_schema.map(|schema| Value::Object(Map::clone(&schema))),
            claims: annotations.and_then(|claims| serde_json::to_value(claims).ok()),
            digest: Fingerprint::of(&json),
        })
    }
}

/// Adds the type `object` where the server leaves it out.
fn as_object(mut schema: Map<String, Value>) -> Map<String, Value> {
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_DESCRIPTION {
        text.truncate(text.floor_char_boundary(MAX_DESCRIPTION));
        text.push('…');
    }
    text
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(good)
}

impl Fingerprint {
    /// The digest of a value, independent of the order of members.
    pub(super) fn of(value: &Value) -> Self {
        let mut hasher = Sha256::new();
        hash(value, &mut hasher);
        Self(hex(&hasher.finalize()))
    }
}

/// Hashes each part with its kind and length, so that different values give different bytes.
fn hash(value: &Value, hasher: &mut Sha256) {
    let mut leaf = |kind: u8, text: &str| {
        hasher.update([kind]);
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    match value {
        Value::Null => leaf(b'n', ""),
        Value::Bool(yes) => leaf(b'b', if *yes { "true" } else { "false" }),
        Value::Number(number) => leaf(b'd', &number.to_string()),
        Value::String(text) => leaf(b's', text),
        Value::Array(items) => {
            leaf(b'a', &items.len().to_string());
            for item in items {
                hash(item, hasher);
            }
        }
        Value::Object(members) => {
            leaf(b'o', &members.len().to_string());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, member) in members {
                hasher.update((name.len() as u64).to_le_bytes());
                hasher.update(name.as_bytes());
                hash(member, hasher);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(definition: Value) -> Tool {
        serde_json::from_value(definition).unwrap()
    }

    fn names(tools: Vec<Value>) -> (Vec<String>, Vec<String>) {
        let (good, left_out) = select(tools.into_iter().map(tool).collect(), &["lint".to_owned()]);
        (good.into_iter().map(|one| one.name).collect(), left_out)
    }

    #[test]
    fn hostile_and_clashing_names_are_left_out_and_reported() {
        let schema = json!({"type": "object"});
        let named = |name: &str| json!({"name": name, "inputSchema": schema});
        let hostile = [
            "",
            "a b",
            "x\u{1b}[2J",
            "a/b",
            "\u{202e}daer",
            &"n".repeat(65),
            "read file",
            "ünïcode",
            "a\nb",
        ];
        let mut tools: Vec<Value> = hostile.iter().map(|name| named(name)).collect();
        tools.extend([
            named("z.ok-1_"),
            named(&"n".repeat(64)),
            named("a"),
            named("a"),
            named("lint"),
        ]);
        let (good, left_out) = names(tools);
        assert_eq!(good, ["a".to_owned(), "n".repeat(64), "z.ok-1_".to_owned()]);
        assert_eq!(left_out.len(), hostile.len() + 2);
        for line in left_out {
            assert!(!line.contains(['\u{1b}', '\u{202e}', '\n']), "{line:?}");
        }
    }

    #[test]
    fn the_digest_is_of_the_whole_definition_and_of_nothing_else() {
        let base = json!({"name": "t", "description": "d", "inputSchema": {"type": "object", "a": 1, "b": [1, 2]},
            "annotations": {"readOnlyHint": true}, "outputSchema": {"type": "object"}, "title": "T"});
        let digest = |value: &Value| Definition::of(tool(value.clone())).unwrap().digest;
        let reordered = json!({"title": "T", "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
            "inputSchema": {"b": [1, 2], "a": 1, "type": "object"}, "description": "d", "name": "t"});
        assert_eq!(digest(&base), digest(&reordered));
        let changes = [
            ("/description", json!("d ")),
            ("/inputSchema/a", json!("1")),
            ("/inputSchema/b", json!([2, 1])),
            ("/annotations/readOnlyHint", json!(false)),
            ("/outputSchema/type", json!("array")),
            ("/title", json!("t")),
        ];
        for (pointer, to) in changes {
            let mut other = base.clone();
            *other.pointer_mut(pointer).unwrap() = to;
            assert_ne!(digest(&base), digest(&other), "{pointer}");
        }
    }

    #[test]
    fn a_definition_without_end_is_left_out_and_a_long_description_is_cut() {
        let long = json!({"name": "t", "inputSchema": {"type": "object", "x": "x".repeat(MAX_DEFINITION)}});
        assert!(Definition::of(tool(long)).is_err());
        let wordy = json!({"name": "t", "inputSchema": {}, "description": "é".repeat(MAX_DESCRIPTION)});
        let wordy = Definition::of(tool(wordy)).unwrap();
        assert!(wordy.description.len() <= MAX_DESCRIPTION + 3 && wordy.description.ends_with('…'));
        assert_eq!(wordy.input_schema, json!({"type": "object"}));
    }
}
