//! Text that YAML takes for something else unless it is quoted: `*.example.org` for a reference, `[::1]:443` for a list.

use super::source::Span;

/// How to write what stands at this place, where it is such a text.
pub(crate) fn hint(span: &Span) -> Option<String> {
    let shown = span.source.shown();
    let start = span.range().start;
    let line_start = shown.get(..start)?.rfind('\n').map_or(0, |end| end + 1);
    let line = shown.get(line_start..)?.lines().next()?;
    let text = text(line, start - line_start)?;
    let what = if text.starts_with('*') {
        "`*` begins a reference"
    } else {
        "`[` begins a list"
    };
    let quote = match (text.contains(['"', '\\']), text.contains('\'')) {
        (false, _) => '"',
        (true, false) => '\'',
        (true, true) => return None,
    };
    Some(format!("to YAML, {what}; a text is quoted: `{quote}{text}{quote}`"))
}

/// The text that was meant.
fn text(line: &str, at: usize) -> Option<&str> {
    // What stands behind a list is met when the list has been read.
    let at = match line.get(..at)? {
        before if before.ends_with(']') => before.rfind('[')?,
        _ => at,
    };
    let (before, rest) = line.split_at_checked(at)?;
    let own = match rest.bytes().next()? {
        b'*' => 1,
        b'[' => {
            let (inside, _) = rest.get(1..)?.split_once(']')?;
            is_address(inside).then_some(inside.len() + 2)?
        }
        _ => return None,
    };
    let alone = before.trim_end().ends_with(['-', ':']) && !before.contains(['[', '{']);
    let tail = rest.get(own..)?;
    let length = if alone {
        tail.find(" #").unwrap_or(tail.len())
    } else {
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}');
        tail.find(ends).unwrap_or(tail.len())
    };
    rest.get(..own + length).map(str::trim_end)
}

/// Whether it has the characters of an IPv6 address or network: a list of one word seldom does.
fn is_address(text: &str) -> bool {
    let of_address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b'/');
    text.bytes().all(of_address) && text.bytes().filter(|byte| *byte == b':').count() > 1
}
