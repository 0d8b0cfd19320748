//! Rust source → tokens → the paths it names. Comments and literals say nothing about imports and are skipped.

/// One token that matters here; every other character is a [`Kind::Mark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Word(String),
    /// `::`
    Separator,
    Mark(char),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

impl Token {
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            Kind::Separator | Kind::Mark(_) => None,
        }
    }

    fn text(&self) -> String {
        match &self.kind {
            Kind::Word(word) => word.clone(),
            Kind::Separator => "::".to_owned(),
            Kind::Mark(mark) => mark.to_string(),
        }
    }

    pub(crate) fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// The tokens of `source`.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let end = match chars[at..] {
            ['/', '/', ..] => line_end(&chars, at),
            ['/', '*', ..] => block_comment_end(&chars, at),
            ['"', ..] => string_end(&chars, at),
            ['\'', ..] => quote_end(&chars, at),
            [':', ':', ..] => {
                found.push(Token {
                    line,
                    kind: Kind::Separator,
                });
                at + 2
            }
            [first, ..] if first == '_' || first.is_alphanumeric() => {
                let end = word_end(&chars, at);
                let word: String = chars[at..end].iter().collect();
                if let Some(end) = prefixed_literal_end(&chars, &word, end) {
                    end
                } else {
                    found.push(Token {
                        line,
                        kind: Kind::Word(word),
                    });
                    end
                }
            }
            [space, ..] if space.is_whitespace() => at + 1,
            [mark, ..] => {
                found.push(Token {
                    line,
                    kind: Kind::Mark(mark),
                });
                at + 1
            }
            [] => break,
        };
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    found
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|c| *c == '\n')
        .map_or(chars.len(), |length| at + length)
}

fn block_comment_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(chars.len())
}

/// The end of the literal whose opening quote, `"` or `'`, is at `at`.
fn string_end(chars: &[char], at: usize) -> usize {
    let quote = chars[at];
    let mut next = at + 1;
    while next < chars.len() && chars[next] != quote {
        next += if chars[next] == '\\' { 2 } else { 1 };
    }
    (next + 1).min(chars.len())
}

/// `'` opens a character, or it is the mark of a lifetime, which is then read as a word.
fn quote_end(chars: &[char], at: usize) -> usize {
    match chars[at + 1..] {
        ['\\', ..] | [_, '\'', ..] => string_end(chars, at),
        _ => at + 1,
    }
}

fn word_end(chars: &[char], at: usize) -> usize {
    let inside = |c: &char| *c == '_' || c.is_alphanumeric();
    chars[at..]
        .iter()
        .position(|c| !inside(c))
        .map_or(chars.len(), |length| at + length)
}

/// The end of the literal or raw word that a prefix (`r`, `b`, `c`, `br`, `cr`) directly before `at` makes.
fn prefixed_literal_end(chars: &[char], prefix: &str, at: usize) -> Option<usize> {
    if !["r", "b", "c", "br", "cr"].contains(&prefix) {
        return None;
    }
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    let open = at + hashes;
    match chars.get(open) {
        Some('"') if prefix.ends_with('r') => {
            let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body = &chars[open + 1..];
            let length = body
                .windows(close.len())
                .position(|part| part == close)
                .unwrap_or(body.len() - 1);
            Some((open + 1 + length + close.len()).min(chars.len()))
        }
        Some('"' | '\'') if hashes == 0 => Some(string_end(chars, open)),
        // `r#word`: the word that follows stands for itself.
        Some(_) if prefix == "r" && hashes == 1 => Some(open),
        _ => None,
    }
}

/// The tokens without the items that are compiled for tests alone.
pub(crate) fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut left = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    let mut seen: Vec<Token> = Vec::new();
    while let Some(token) = tokens.next() {
        seen.push(token);
        let attribute: String = seen.iter().rev().take(7).rev().map(Token::text).collect();
        if attribute != "#[cfg(test)]" {
            continue;
        }
        seen.truncate(seen.len() - 7);
        left.append(&mut seen);
        // To the end of the item: its `;`, or the brace that closes it.
        let mut depth = 0_usize;
        for token in tokens.by_ref() {
            match token.kind {
                Kind::Mark('{') => depth += 1,
                Kind::Mark('}') if depth == 1 => break,
                Kind::Mark('}') => depth -= 1,
                Kind::Mark(';') if depth == 0 => break,
                Kind::Mark(_) | Kind::Word(_) | Kind::Separator => {}
            }
        }
    }
    left.append(&mut seen);
    left
}

/// A path that the source names, with the module it stands in; groups and globs are spelled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// How many inline `mod name { … }` are open around it.
    pub(crate) depth: usize,
}

/// Every path of two or more segments in the code, `use` or not; `use a::{b, c::d}` gives `a::b` and `a::c::d`.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Named> {
    let mut found = Vec::new();
    let (mut braces, mut modules) = (0_usize, Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at..] {
            [
                Token {
                    kind: Kind::Word(ref word),
                    ..
                },
                Token {
                    kind: Kind::Word(_), ..
                },
                ref brace,
                ..,
            ] if word == "mod" && brace.is('{') => {
                braces += 1;
                modules.push(braces);
                at += 3;
            }
            [
                Token {
                    kind: Kind::Word(_), ..
                },
                Token {
                    kind: Kind::Separator, ..
                },
                ..,
            ] => {
                at = path(tokens, at, &[], modules.len(), &mut found);
            }
            [ref token, ..] => {
                if token.is('{') {
                    braces += 1;
                } else if token.is('}') {
                    if modules.last() == Some(&braces) {
                        modules.pop();
                    }
                    braces = braces.saturating_sub(1);
                }
                at += 1;
            }
            [] => break,
        }
    }
    found
}

/// Reads one path, or one branch of a group; returns where it ends.
fn path(tokens: &[Token], mut at: usize, before: &[String], depth: usize, found: &mut Vec<Named>) -> usize {
    let mut segments = before.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Word(word)) => segments.push(word.clone()),
            Some(Kind::Mark('*')) => segments.push("*".to_owned()),
            Some(Kind::Mark('{')) => return group(tokens, at + 1, &segments, depth, found),
            // Turbofish: what stands in it is read as paths of its own.
            Some(Kind::Mark(_) | Kind::Separator) | None => break,
        }
        at += 1;
        match tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Separator) => at += 1,
            _ => break,
        }
    }
    found.push(Named { line, segments, depth });
    at
}

/// Reads the branches of a group up to its closing brace.
fn group(tokens: &[Token], mut at: usize, before: &[String], depth: usize, found: &mut Vec<Named>) -> usize {
    while let Some(token) = tokens.get(at) {
        match &token.kind {
            Kind::Mark('}') => return at + 1,
            Kind::Word(word) if word == "as" => at += 2,
            Kind::Word(_) | Kind::Mark('*' | '{') => at = path(tokens, at, before, depth, found),
            Kind::Mark(_) | Kind::Separator => at += 1,
        }
    }
    at
}
