//! A change → steps → text.

use super::AmendError;
use super::change::{Change, NewRoot, Widened, Writing};
use super::content::{self, Step};
use super::flow::{self, Flow};
use super::tree::{Kind, Node};
use crate::policy::{AbsPath, Right};
use serde_json::Value;

/// The text with the change made.
pub(super) fn make(text: &str, dir: &AbsPath, change: &Change) -> Result<String, AmendError> {
    match change {
        Change::Root(root) => {
            let value = new_root(root, dir)?;
            take(
                text,
                &Step::Entry(keys(&["sandbox", "paths"]), root.name.clone(), value),
            )
        }
        Change::Widen(root) => widen(text, root),
        Change::List(path) => push(text, &["sandbox", "base", "list"], flow::path(path, &AbsPath::root())?),
        Change::Host(place) => host(text, Flow::Text(place.to_string())),
        Change::Sockets(sockets) => set(text, &["shell", "unix_sockets"], Flow::Text(sockets.to_string())),
        // Never in the place of another word about it, which is a person's.
        Change::Undo => take(
            text,
            &Step::Entry(keys(&["sandbox"]), "protect_fallback".to_owned(), Flow::Word("undo")),
        ),
    }
}

fn new_root(root: &NewRoot, dir: &AbsPath) -> Result<Flow, AmendError> {
    let mut entries = vec![("root".to_owned(), flow::path(&root.path, dir)?)];
    if root.rights.has(Right::Write) {
        entries.push(("mode".to_owned(), Flow::Word("rw")));
        match root.writing {
            Writing::Free => entries.push(("write_approval".to_owned(), Flow::Word("false"))),
            Writing::Asked => {}
        }
    }
    if root.rights.has(Right::Execute) {
        entries.push(("execute".to_owned(), Flow::Word("true")));
    }
    Ok(Flow::Map(entries))
}

fn widen(text: &str, root: &Widened) -> Result<String, AmendError> {
    let at = |key: &'static str| ["sandbox", "paths", &root.name, key].map(str::to_owned);
    let there = keys(&["sandbox", "paths", &root.name]);
    if content::of(text).is_none_or(|content| content::at(&content, &there).is_none()) {
        return Err(AmendError::Form {
            why: format!("it has no root `{}`", root.name),
            what: format!("sandbox:\n  paths:\n    {}:", root.name),
        });
    }
    let mut text = text.to_owned();
    if root.rights.has(Right::Write) {
        text = set(&text, &at("mode").each_ref().map(String::as_str), Flow::Word("rw"))?;
        let content = content::of(&text).unwrap_or(Value::Null);
        let says = [&["write_approval"][..], &["approval", "write"]].iter().any(|key| {
            let keys = keys(&["sandbox", "paths", &root.name]).into_iter().chain(keys(key));
            content::at(&content, &keys.collect::<Vec<_>>()).is_some()
        });
        match root.writing {
            Writing::Free if !says => {
                text = set(
                    &text,
                    &at("write_approval").each_ref().map(String::as_str),
                    Flow::Word("false"),
                )?;
            }
            Writing::Free | Writing::Asked => {}
        }
    }
    if root.rights.has(Right::Execute) {
        text = set(&text, &at("execute").each_ref().map(String::as_str), Flow::Word("true"))?;
    }
    Ok(text)
}

fn host(text: &str, entry: Flow) -> Result<String, AmendError> {
    let at = ["shell", "network"];
    match content::of(text)
        .as_ref()
        .and_then(|content| content::at(content, &keys(&at)))
    {
        Some(Value::Object(_)) => push(text, &["shell", "network", "allow"], entry),
        Some(_) | None => set(
            text,
            &at,
            Flow::Map(vec![("allow".to_owned(), Flow::List(vec![entry]))]),
        ),
    }
}

/// Puts a value where a scalar stands, or nothing.
fn set(text: &str, at: &[&str], value: Flow) -> Result<String, AmendError> {
    let all = keys(at);
    let there = content::of(text).is_some_and(|content| content::at(&content, &all).is_some());
    match (there, all.split_last()) {
        (false, Some((key, around))) => take(text, &Step::Entry(around.to_vec(), key.clone(), value)),
        (true, _) | (false, None) => take(text, &Step::Replace(all, value)),
    }
}

/// Adds to a list, which is made where it is missing.
fn push(text: &str, at: &[&str], value: Flow) -> Result<String, AmendError> {
    let all = keys(at);
    let there = content::of(text).is_some_and(|content| content::at(&content, &all).is_some());
    match (there, all.split_last()) {
        (false, Some((key, around))) => take(
            text,
            &Step::Entry(around.to_vec(), key.clone(), Flow::List(vec![value])),
        ),
        (true, _) | (false, None) => take(text, &Step::Push(all, value)),
    }
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Takes a step, and holds the text against what the step comes to.
fn take(text: &str, step: &Step) -> Result<String, AmendError> {
    let refused = |why: &str| AmendError::Form {
        why: why.to_owned(),
        what: shown(step),
    };
    let wanted = content::of(text).and_then(|content| content::after(content, step));
    let wanted = wanted.ok_or_else(|| refused("something else stands where it belongs"))?;
    let edited = written(text, step).ok_or_else(|| refused("where it belongs cannot be told"))?;
    if content::of(&edited) == Some(wanted) {
        Ok(edited)
    } else {
        Err(refused("the edit would mean something else as well"))
    }
}

/// The step as a person would write it.
fn shown(step: &Step) -> String {
    let (keys, last) = match step {
        Step::Entry(keys, key, value) => (
            keys,
            format!("{}: {}", Flow::Text(key.clone()).written(), value.written()),
        ),
        Step::Replace(keys, value) => (keys, value.written()),
        Step::Push(keys, value) => (keys, format!("- {}", value.written())),
    };
    let mut text = String::new();
    for (depth, key) in keys.iter().enumerate() {
        text.extend([&" ".repeat(2 * depth), key.as_str(), ":\n"]);
    }
    text.extend([&" ".repeat(2 * keys.len()), last.as_str()]);
    text
}

fn written(text: &str, step: &Step) -> Option<String> {
    // To YAML a carriage return alone ends a line, and to this it does not.
    if text.replace("\r\n", "").contains('\r') {
        return None;
    }
    let tree = Node::of(text)?;
    match step {
        Step::Replace(keys, value) => replace(text, tree.at(keys)?, value),
        Step::Push(keys, value) => append(text, tree.at(keys)?, &value.written()),
        Step::Entry(keys, key, value) => {
            // The innermost mapping that is there; what is missing of the way goes into it.
            let there = (0..=keys.len())
                .rev()
                .find(|length| tree.at(&keys[..*length]).is_some())?;
            let missing = [&keys[there..], std::slice::from_ref(key)].concat();
            entry(text, tree.at(&keys[..there])?, &missing, value)
        }
    }
}

fn replace(text: &str, node: &Node, value: &Flow) -> Option<String> {
    let old = text.get(node.span.clone())?.trim_end();
    // A comment or a line that the parser counts in is nothing that may go.
    let whole = matches!(node.kind, Kind::Scalar) && !old.is_empty() && !old.contains(['\n', '#']);
    let (before, after) = (text.get(..node.span.start)?, text.get(node.span.start + old.len()..)?);
    whole.then(|| [before, &value.written(), after].concat())
}

fn entry(text: &str, map: &Node, missing: &[String], value: &Flow) -> Option<String> {
    let Kind::Map(entries) = &map.kind else {
        return None;
    };
    if text.get(map.span.start..)?.starts_with('{') {
        let nested = missing.iter().rev().fold(value.written(), |inner, key| {
            let key = Flow::Text(key.clone()).written();
            if inner == value.written() {
                format!("{key}: {inner}")
            } else {
                format!("{key}: {{{inner}}}")
            }
        });
        return into_flow(text, map.span.start, &nested);
    }
    let (_, first, _) = entries.first()?;
    let (_, last, of_last) = entries.last()?;
    let column = column(text, *first)?;
    let mut lines = String::new();
    for (depth, key) in missing.iter().enumerate() {
        let indent = " ".repeat(column + 2 * depth);
        let key = Flow::Text(key.clone()).written();
        let is_last = depth + 1 == missing.len();
        let value = if is_last {
            format!(" {}", value.written())
        } else {
            String::new()
        };
        lines.extend([indent.as_str(), &key, ":", &value, "\n"]);
    }
    let is_list = matches!(of_last.kind, Kind::List(_)) && !text.get(of_last.span.start..)?.starts_with('[');
    into_block(text, end_of_block(text, *last, column, is_list)?, &lines)
}

fn append(text: &str, list: &Node, value: &str) -> Option<String> {
    let Kind::List(entries) = &list.kind else {
        return None;
    };
    if text.get(list.span.start..)?.starts_with('[') {
        return into_flow(text, list.span.start, value);
    }
    // The dash of the last entry, before whatever it begins with.
    let latest = entries.last()?;
    let dash = text.get(..latest.span.start)?.rfind('-')?;
    let column = column(text, dash)?;
    let line = format!("{}- {value}\n", " ".repeat(column));
    into_block(text, end_of_block(text, dash, column, false)?, &line)
}

/// How many characters stand before it on its line.
fn column(text: &str, at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    Some(before.get(line..)?.chars().count())
}

/// Behind the last line of the entry that begins at `from`: what follows is indented less, is a comment or blank. A list may be
/// indented as its key is.
fn end_of_block(text: &str, from: usize, column: usize, list: bool) -> Option<usize> {
    let first = from + text.get(from..)?.find('\n').map_or(text.len() - from, |end| end + 1);
    let (mut at, mut end) = (first, first);
    for line in text.get(first..)?.split_inclusive('\n') {
        at += line.len();
        let content = line.trim();
        let indent = line.chars().take_while(|c| *c == ' ').count();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let of_list = list && indent == column && (content == "-" || content.starts_with("- "));
        if indent <= column && !of_list {
            break;
        }
        end = at;
    }
    Some(end)
}

fn into_block(text: &str, at: usize, lines: &str) -> Option<String> {
    let (before, after) = (text.get(..at)?, text.get(at..)?);
    let ends = before.is_empty() || before.ends_with('\n');
    let lines = if text.contains("\r\n") {
        lines.replace('\n', "\r\n")
    } else {
        lines.to_owned()
    };
    Some([before, if ends { "" } else { "\n" }, &lines, after].concat())
}

/// Before the bracket that closes what is opened at `open`.
fn into_flow(text: &str, open: usize, inner: &str) -> Option<String> {
    let Closing { at: close, last } = closing(text, open)?;
    let (before, after) = (text.get(..close)?, text.get(close..)?);
    let content = before.trim_end();
    let (empty, comma) = (last == open, text.get(last..)?.starts_with(','));
    let separator = match (empty, comma) {
        (true, _) => "",
        (false, true) => " ",
        (false, false) => ", ",
    };
    let blank = before.get(content.len()..)?;
    // Whatever ends in a line of its own may end in a comment.
    Some(if blank.contains('\n') {
        [before, separator, inner, after].concat()
    } else {
        [content, separator, inner, blank, after].concat()
    })
}

/// Where something ends that is in brackets.
struct Closing {
    /// The bracket that closes it.
    at: usize,
    /// The last character before that which is neither blank nor in a comment.
    last: usize,
}

/// The bracket that closes the one at `open`; brackets in quotes and comments are none.
fn closing(text: &str, open: usize) -> Option<Closing> {
    let mut last = open;
    let (mut depth, mut quote, mut escaped, mut before) = (0_usize, None, false, ' ');
    for (at, c) in text.get(open..)?.char_indices() {
        match (quote, c) {
            (Some('#'), '\n') => quote = None,
            (Some('"'), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == c && open != '#' => quote = None,
            (None, '"' | '\'') if matches!(before, '{' | '[' | ',' | ':' | ' ' | '\n') => quote = Some(c),
            (None, '#') if matches!(before, ' ' | '\n') => quote = Some('#'),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(Closing { at: open + at, last });
                }
            }
            (Some(_) | None, _) => {}
        }
        if quote != Some('#') && !c.is_whitespace() {
            last = open + at;
        }
        before = c;
    }
    None
}
