//! Explains wrong parameters of a request with a known method.
//!
//! rmcp treats a request whose parameters it cannot parse like one with an unknown method. So they are checked here, by their kinds.

use std::borrow::Cow;
use std::fmt;

use rmcp::model::InitializeRequestParams;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The code of a request whose parameters are wrong.
pub(super) const INVALID_PARAMS: i32 = -32602;

/// A kind of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    List,
    Object,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "an array",
            Self::Object => "an object",
        }
    }
}

/// The kind of the parameters, and of their members.
#[derive(Debug)]
struct Params {
    kind: Kind,
    members: Vec<(String, Kind)>,
}

/// The most members whose kinds are kept.
const MAX_MEMBERS: usize = 64;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Initialize {
    #[serde(rename = "params")]
    _params: InitializeRequestParams,
}

/// Whether the server has a method of this name.
pub(super) fn is_served(method: &str) -> bool {
    ["initialize", "ping", "server/discover", "tools/call", "tools/list"].contains(&method)
}

/// Why the parameters of a request are wrong; `None` if they are right, or the request itself is invalid.
pub(super) fn wrong(text: &[u8]) -> Option<String> {
    let request: Request<'_> = serde_json::from_slice(text).ok()?;
    if request.jsonrpc != "2.0" {
        return None;
    }
    let params = request.params.filter(|params| params.kind != Kind::Null);
    if let Some(params) = &params
        && params.kind != Kind::Object
    {
        return Some(must_be("params", Kind::Object, params.kind));
    }
    let kind = |name: &str| {
        let members = params.iter().flat_map(|params| &params.members);
        let mut of_name = members.filter(|(member, kind)| member == name && *kind != Kind::Null);
        of_name.next().map(|(_, kind)| *kind)
    };
    let required = |name: &str, wanted| match kind(name) {
        Some(found) => (found != wanted).then(|| must_be(&format!("params.{name}"), wanted, found)),
        None => Some(format!("`params.{name}` is missing; it is {}", wanted.name())),
    };
    let optional = |name: &str, wanted| kind(name).and_then(|_| required(name, wanted));
    let meta = || optional("_meta", Kind::Object);
    match request.method.as_ref() {
        "tools/call" => required("name", Kind::Text)
            .or_else(|| optional("arguments", Kind::Object))
            .or_else(|| optional("requestState", Kind::Text))
            .or_else(|| optional("inputResponses", Kind::Object))
            .or_else(meta),
        "tools/list" => optional("cursor", Kind::Text).or_else(meta),
        "initialize" => required("protocolVersion", Kind::Text)
            .or_else(|| required("capabilities", Kind::Object))
            .or_else(|| required("clientInfo", Kind::Object))
            .or_else(meta)
            .or_else(|| {
                let read: Result<Initialize, _> = serde_json::from_slice(text);
                read.err().map(|error| format!("`params` cannot be read: {error}"))
            }),
        _ => meta(),
    }
    .map(|why| format!("Invalid params: {why}"))
}

fn must_be(what: &str, wanted: Kind, found: Kind) -> String {
    format!("`{what}` must be {}, and is {}", wanted.name(), found.name())
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(KindVisitor).map(|params| params.kind)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(KindVisitor)
    }
}

/// Reads the kind of a value, and of the members of an object.
struct KindVisitor;

const fn plain(kind: Kind) -> Params {
    Params {
        kind,
        members: Vec::new(),
    }
}

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Params, E> {
        Ok(plain(Kind::Null))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Params, E> {
        Ok(plain(Kind::Boolean))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Params, E> {
        Ok(plain(Kind::Number))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Params, E> {
        Ok(plain(Kind::Number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Params, E> {
        Ok(plain(Kind::Number))
    }

    fn visit_str<E>(self, _: &str) -> Result<Params, E> {
        Ok(plain(Kind::Text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Params, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(plain(Kind::List))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if members.len() < MAX_MEMBERS {
                members.push((name.into_owned(), map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let kind = Kind::Object;
        Ok(Params { kind, members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, params: &str) -> Option<String> {
        wrong(format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"{params}}}").as_bytes())
    }

    #[test]
    fn wrong_parameters_are_reported() {
        for (method, params, why) in [
            ("tools/call", "", "`params.name` is missing; it is a string"),
            ("tools/call", r#","params":null"#, "`params.name` is missing"),
            (
                "tools/call",
                r#","params":[]"#,
                "`params` must be an object, and is an array",
            ),
            (
                "tools/call",
                r#","params":{"name":5}"#,
                "`params.name` must be a string, and is a number",
            ),
            (
                "tools/call",
                r#","params":{"name":"a","arguments":[{"b":1}]}"#,
                "`params.arguments` must be an object, and is an array",
            ),
            (
                "tools/call",
                r#","params":{"name":"a","_meta":true}"#,
                "`params._meta` must be an object, and is a boolean",
            ),
            (
                "tools/list",
                r#","params":{"cursor":{}}"#,
                "`params.cursor` must be a string, and is an object",
            ),
            (
                "tools/list",
                r#","params":"x""#,
                "`params` must be an object, and is a string",
            ),
            ("ping", r#","params":5"#, "`params` must be an object, and is a number"),
            ("initialize", "", "`params.protocolVersion` is missing"),
            (
                "initialize",
                r#","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}"#,
                "`params` cannot be read: missing field `name`",
            ),
        ] {
            let found = of(method, params).unwrap_or_default();
            assert!(found.contains(why), "{method}{params}: {found}");
        }
    }

    #[test]
    fn parameters_that_are_right_are_passed() {
        for (method, params) in [
            ("tools/call", r#","params":{"name":"a"}"#),
            (
                "tools/call",
                r#","params":{"n\u0061me":"a","arguments":null,"_meta":{"progressToken":1}}"#,
            ),
            ("tools/list", ""),
            ("tools/list", r#","params":{"cursor":"x"}"#),
            ("ping", r#","params":{}"#),
            ("what/else", r#","params":{"cursor":5}"#),
            (
                "initialize",
                r#","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#,
            ),
        ] {
            assert_eq!(of(method, params), None, "{method}{params}");
        }
        assert_eq!(wrong(b"{"), None);
        assert_eq!(wrong(br#"{"jsonrpc":"1.0","id":1,"method":"ping","params":5}"#), None);
    }
}
