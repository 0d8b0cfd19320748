//! Text that YAML parses as something else unless it is quoted: `*.example.org` as an alias, `[::1]:443` as a list.

use super::source::Span;

/// A hint to quote the text at this span, if it is such a text.
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

/// The text that needs quotes.
fn text(line: &str, at: usize) -> Option<&str> {
    // The error is reported behind the list.
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

/// Whether it looks like an IPv6 address or network rather than a list of one entry.
fn is_address(text: &str) -> bool {
    let of_address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b'/');
    text.bytes().all(of_address) && text.bytes().filter(|byte| *byte == b':').count() > 1
}
