//! YAML values in flow style, on one line.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Map, Value};

use super::error::AmendError;
use crate::policy::AbsPath;
use crate::policy::path::is_escaped;

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flow {
    /// A keyword of the config, or a boolean.
    Keyword(&'static str),
    /// Text of any kind.
    Text(String),
    /// A list.
    List(Vec<Flow>),
    /// A mapping, in this order.
    Map(Vec<(String, Flow)>),
}

impl Flow {
    /// As YAML.
    pub(super) fn to_yaml(&self) -> String {
        match self {
            Self::Keyword(keyword) => (*keyword).to_owned(),
            Self::Text(text) => quoted(text),
            Self::List(list) => {
                let list: Vec<String> = list.iter().map(Self::to_yaml).collect();
                format!("[{}]", list.join(", "))
            }
            Self::Map(map) => {
                let map: Vec<String> = map
                    .iter()
                    .map(|(key, value)| format!("{}: {}", quoted(key), value.to_yaml()))
                    .collect();
                format!("{{{}}}", map.join(", "))
            }
        }
    }

    /// The value that a YAML parser must read from that.
    pub(super) fn content(&self) -> Value {
        match self {
            Self::Keyword("true") => Value::Bool(true),
            Self::Keyword("false") => Value::Bool(false),
            Self::Keyword(keyword) => Value::String((*keyword).to_owned()),
            Self::Text(text) => Value::String(text.clone()),
            Self::List(list) => list.iter().map(Self::content).collect(),
            Self::Map(map) => {
                let map = map.iter().map(|(key, value)| (key.clone(), value.content()));
                Value::Object(map.collect::<Map<_, _>>())
            }
        }
    }
}

/// The text as a YAML scalar: plain where that is safe, else in quotes, with invisible characters escaped.
pub fn quoted(text: &str) -> String {
    // Plain text starts with no digit, and is no boolean or null.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ' ');
    let is_path = text.starts_with('/') || text.starts_with("./") || text == ".";
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let keywords = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_keyword = keywords.iter().any(|keyword| keyword.eq_ignore_ascii_case(text));
    if (is_path || is_name) && !is_keyword && !text.ends_with(' ') && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        let mut bytes = [0; 4];
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            _ if is_escaped(c.encode_utf8(&mut bytes).as_bytes()) => {
                // Writing to a string cannot fail.
                let _infallible = write!(quoted, "\\U{:08x}", u32::from(c));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A path as a YAML scalar; `None` if it is not UTF-8.
pub fn quoted_path(path: &AbsPath) -> Option<String> {
    std::str::from_utf8(path.as_bytes()).ok().map(quoted)
}

/// A path as a config in `dir` names it: relative if it lies below that directory, else absolute.
pub(super) fn path(path: &AbsPath, dir: &AbsPath) -> Result<Flow, AmendError> {
    let absolute = path.as_path();
    let text = match absolute.strip_prefix(dir.as_path()) {
        // In `/` every path would be relative.
        Ok(below) if *dir != AbsPath::root() => {
            std::str::from_utf8(below.as_os_str().as_bytes()).map(|below| match below {
                "" => ".".to_owned(),
                below => format!("./{below}"),
            })
        }
        Ok(_) | Err(_) => std::str::from_utf8(path.as_bytes()).map(str::to_owned),
    };
    text.map(Flow::Text)
        .map_err(|_| AmendError::NotText(absolute.to_owned()))
}
