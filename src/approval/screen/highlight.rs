//! The content of a file → its parts by what they are in its language: comments, quoted text, keywords, constants.
//!
//! It runs over lines that are escaped already, and says only where parts begin and end: no character is another by it. A file comes from an
//! agent, so what is looked at is bounded: by size, by the length of a line, and by time. What lies beyond stays plain.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::line::{Part, Style};

/// The most bytes of a file that is looked at.
const MAX_BYTES: usize = 64 * 1024;
/// The most bytes of a line: its expressions backtrack.
const MAX_LINE: usize = 1000;
/// How long anybody waits for it. A build without optimization takes ten times as long for it.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 3000 } else { 200 });

/// The parts of each of these lines of the file at `path`, as far as they are known: there may be fewer.
pub(super) fn parts(path: &Path, lines: &[String]) -> Vec<Vec<Part>> {
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    let Some(syntax) = language(path, lines).filter(|_| bytes <= MAX_BYTES) else {
        return Vec::new();
    };
    let end = Instant::now() + PATIENCE;
    let (sender, receiver) = channel();
    let lines = lines.to_vec();
    let started = thread::Builder::new().spawn(move || parse(syntax, &lines, &sender));
    if started.is_err() {
        return Vec::new();
    }
    let next = || {
        receiver
            .recv_timeout(end.saturating_duration_since(Instant::now()))
            .ok()
    };
    std::iter::from_fn(next).collect()
}

fn languages() -> &'static SyntaxSet {
    static LANGUAGES: OnceLock<SyntaxSet> = OnceLock::new();
    LANGUAGES.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// The language of a file, by its name or its first line.
fn language(path: &Path, lines: &[String]) -> Option<&'static SyntaxReference> {
    let known = languages();
    let names = [path.file_name(), path.extension()].into_iter().flatten();
    let by_name = names
        .filter_map(|name| name.to_str())
        .find_map(|name| known.find_syntax_by_extension(name));
    let first = lines
        .first()
        .filter(|line| line.starts_with("#!") && line.len() <= MAX_LINE);
    by_name.or_else(|| known.find_syntax_by_first_line(first?))
}

/// Sends the parts of one line after the other, until nobody waits for more.
fn parse(syntax: &SyntaxReference, lines: &[String], parts: &Sender<Vec<Part>>) {
    let mut state = ParseState::new(syntax);
    let mut scopes = ScopeStack::new();
    for line in lines {
        if line.len() > MAX_LINE {
            return;
        }
        let Some(found) = line_parts(&mut state, &mut scopes, line) else {
            return;
        };
        if parts.send(found).is_err() {
            return;
        }
    }
}

fn line_parts(state: &mut ParseState, scopes: &mut ScopeStack, line: &str) -> Option<Vec<Part>> {
    let changes = state.parse_line(&format!("{line}\n"), languages()).ok()?;
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, change) in changes {
        let end = at.min(line.len());
        add(&mut parts, begin..end, style(scopes));
        begin = begin.max(end);
        scopes.apply(&change).ok()?;
    }
    add(&mut parts, begin..line.len(), style(scopes));
    Some(parts)
}

/// Adds a part, joined with one before it that is the same.
fn add(parts: &mut Vec<Part>, range: Range<usize>, style: Style) {
    if range.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some((last, of)) if *of == style && last.end == range.start => last.end = range.end,
        Some(_) | None => parts.push((range, style)),
    }
}

/// What the innermost scope that says something makes of a part.
fn style(scopes: &ScopeStack) -> Style {
    static KINDS: OnceLock<Vec<(Scope, Style)>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let kinds = [
            ("comment", Style::Comment),
            ("string", Style::Quoted),
            ("constant", Style::Constant),
            ("keyword.operator", Style::Plain),
            ("keyword", Style::Keyword),
            ("storage", Style::Keyword),
        ];
        let scope = |(name, style)| Some((Scope::new(name).ok()?, style));
        kinds.into_iter().filter_map(scope).collect()
    });
    let kind = |scope: &Scope| kinds.iter().find(|(kind, _)| kind.is_prefix_of(*scope));
    let innermost = scopes.as_slice().iter().rev().find_map(kind);
    innermost.map_or(Style::Plain, |(_, style)| *style)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(name: &str, text: &str) -> Vec<(String, Style)> {
        let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        let parts = parts(Path::new(name), &lines);
        let shown = lines.iter().zip(parts).flat_map(|(line, parts)| {
            let shown = parts.into_iter().map(|(range, style)| (line[range].to_owned(), style));
            shown.collect::<Vec<_>>()
        });
        shown.filter(|(_, style)| *style != Style::Plain).collect()
    }

    #[test]
    fn a_file_is_told_apart_by_its_language() {
        let is = |name, text, part: &str, style| {
            let found = found(name, text);
            assert!(found.contains(&(part.to_owned(), style)), "{name}: {part}: {found:?}");
        };
        let rust = "fn main() { // why\n    let x = \"text\"; 42 }\n";
        is("/w/a.rs", rust, "// why", Style::Comment);
        is("/w/a.rs", rust, "\"text\"", Style::Quoted);
        is("/w/a.rs", rust, "42", Style::Constant);
        is("/w/Makefile", "all: # why\n", "# why", Style::Comment);
        is("/w/run", "#!/bin/sh\necho 'text'\n", "'text'", Style::Quoted);
        is("/w/a.py", "def f(): return None\n", "return", Style::Keyword);
    }

    #[test]
    fn a_comment_of_several_lines_stays_one() {
        let found = found("a.c", "/* one\ntwo */ int x;\n");
        assert!(found.contains(&("two */".to_owned(), Style::Comment)), "{found:?}");
    }

    #[test]
    fn what_has_no_language_or_is_too_large_stays_plain() {
        assert_eq!(found("/w/notes", "fn main() {}\n"), []);
        let large = "let x = 1;\n".repeat(MAX_BYTES / 11 + 1);
        assert_eq!(found("a.rs", &large), []);
        let long = format!("let x = 1;\n\"{}\"\nlet y = 2;\n", "x".repeat(MAX_LINE));
        let found = found("a.rs", &long);
        assert!(
            !found.is_empty() && found.iter().all(|(part, _)| !part.contains(['y', '"'])),
            "{found:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn parts_follow_each_other_and_cover_the_line(
            name in prop::sample::select(&["a.rs", "a.py", "a.js", "a.sh", "a.md", "a.html", "a.yaml", "a.php", "a.rb", "a.c"][..]),
            lines in prop::collection::vec("(<<|EOF|/[*]|[*]/|\"|'|`|[$({<>})]|\\[|\\]|#|\\\\|[a-c0-2é日 ]|<[?]php|=begin){0,30}", 0..8),
        ) {
            for (line, parts) in lines.iter().zip(parts(Path::new(name), &lines)) {
                let shown: String = parts.into_iter().map(|(range, _)| &line[range]).collect();
                prop_assert_eq!(&shown, line);
            }
        }
    }
}
