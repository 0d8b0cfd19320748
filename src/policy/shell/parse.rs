//! Command line → syntax tree. Bounds keep the parser from being slow, and from deep recursion.
//!
//! The parser recurses for each nesting level and tries alternatives for each parenthesis. So the nesting of its tokens is
//! checked before it runs.

use brush_parser::{ParserOptions, Token, TokenizerOptions, ast::Program};

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 16 * 1024;
/// The most substitutions and quotations in one line.
const MAX_OPENERS: usize = 128;
/// The most parentheses and `case` that are open at once. Each level doubles the parser's work.
const MAX_DOUBLING: usize = 6;
/// The most compound commands that are open at once. Each level takes a few kilobytes of stack.
const MAX_COMPOUND: usize = 24;
/// The most digits of a file descriptor before a redirection. A POSIX sh may read a longer number as a word.
const MAX_FD_DIGITS: usize = 1;

/// A syntax tree, and why some shell may parse the line differently.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) program: Program,
    pub(super) doubt: Option<&'static str>,
}

/// Parses `line`. An error is the reason why it is not understood.
pub(super) fn parse(line: &str) -> Result<Parsed, String> {
    check_text(line)?;
    let tokens = brush_parser::uncached_tokenize_str(
        line,
        &TokenizerOptions {
            enable_extended_globbing: false,
            posix_mode: false,
            sh_mode: false,
        },
    )
    .map_err(|_| "the line is not complete shell syntax".to_owned())?;
    check_tokens(&tokens)?;
    let options = ParserOptions {
        enable_extended_globbing: false,
        ..ParserOptions::default()
    };
    let program = brush_parser::parse_tokens(&tokens, &options);
    Ok(Parsed {
        program: program.map_err(|_| "the line is not valid shell syntax".to_owned())?,
        doubt: doubt_of(&tokens),
    })
}

/// Why some shell may read the line differently: it has `((`. bash reads up to the next `))`, also through comments and
/// here-documents.
fn doubt_of(tokens: &[Token]) -> Option<&'static str> {
    let opens = |token: &Token| matches!(token, Token::Operator(text, _) if text.starts_with('('));
    let touching = |pair: &[Token]| matches!(pair, [left, right] if opens(left) && opens(right) && touch(left, right));
    tokens
        .windows(2)
        .any(touching)
        .then_some("(( … )) is not understood by every shell")
}

/// Refuses text that tokenizers read differently, and text that makes this one recurse too deeply.
fn check_text(line: &str) -> Result<(), String> {
    if line.len() > MAX_LINE {
        return Err(format!("the line is longer than {MAX_LINE} bytes"));
    }
    if line
        .chars()
        .any(|c| (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii()))
    {
        return Err("the line has control characters or unusual blanks".to_owned());
    }
    let bytes = line.as_bytes();
    let openers = bytes
        .windows(2)
        .filter(|pair| matches!(pair, [b'$', b'(' | b'{' | b'['] | [b'<' | b'>', b'(']))
        .count();
    let backquotes = line.matches('`').count();
    if openers + backquotes > MAX_OPENERS {
        return Err(format!("the line has more than {MAX_OPENERS} substitutions"));
    }
    check_documents(line)?;
    // Every shell joins the words around a continued line, but not every parser does.
    let glued = bytes
        .windows(3)
        .any(|w| w[1] == b'\\' && w[2] == b'\n' && w[0] != b' ' && w[0] != b'\t');
    if glued || bytes.starts_with(b"\\\n") {
        return Err("a line is continued in the middle of a word".to_owned());
    }
    Ok(())
}

/// Refuses here-documents that the tokenizer reads wrongly.
///
/// - It panics on some that are pending while a substitution is open.
/// - After `((` it may find none.
/// - For an empty mark at the end of the text it searches without end, so the mark must be plain.
fn check_documents(line: &str) -> Result<(), String> {
    const SUBSTITUTIONS: [&str; 6] = ["$(", "${", "$[", "<(", ">(", "=("];
    let opens = |text: &str| SUBSTITUTIONS.iter().any(|open| text.contains(open));
    let special = |c: char| matches!(c, '\'' | '"' | '\\' | '`' | '$');
    let mut seen = 0;
    while let Some(at) = line[seen..].find("<<").map(|at| seen + at) {
        let after = &line[at + 2..];
        // `<<<` is no here-document; but after a backslash the first `<` is text, and `<<` begins one.
        if after.starts_with('<') && !line[..at].ends_with('\\') {
            seen = at + 3;
            continue;
        }
        seen = at + 2;
        let rest = after.split('\n').next().unwrap_or_default();
        let mark = rest.strip_prefix('-').unwrap_or(rest).trim_start();
        let quoted = ['\'', '"']
            .iter()
            .find_map(|quote| mark.strip_prefix(*quote)?.split_once(*quote));
        let (plain, rest) = match quoted {
            Some((text, rest)) => (!text.trim().is_empty() && !text.contains(special), rest),
            None => (mark.starts_with(|c: char| c.is_alphanumeric() || c == '_'), mark),
        };
        if !plain {
            return Err("a here-document has no plain mark".to_owned());
        }
        // In an expanded here-document shells join continued lines, also with the line of the mark.
        if quoted.is_none() && line.contains("\\\n") {
            return Err("a here-document stands beside a continued line".to_owned());
        }
        if line[..at].contains("((") {
            return Err("a here-document follows two parentheses".to_owned());
        }
        if opens(&line[..at]) || opens(rest) || rest.contains(['\'', '"', '\\', '`']) {
            return Err("a here-document shares a line with a quotation or follows a substitution".to_owned());
        }
    }
    Ok(())
}

/// Refuses tokens that the parser reads differently than shells do, and deep nesting.
fn check_tokens(tokens: &[Token]) -> Result<(), String> {
    let mut nesting = Nesting::default();
    for (index, token) in tokens.iter().enumerate() {
        let (before, after) = (&tokens[..index], &tokens[index + 1..]);
        match token {
            Token::Operator(text, _) if text.starts_with("<<") && text != "<<<" => {
                check_document(after)?;
            }
            Token::Operator(text, _) => {
                let to_parenthesis = text.starts_with('(') && is_redirection(before.last());
                if to_parenthesis && before.last().is_some_and(|before| !touch(before, token)) {
                    return Err("a redirection to a parenthesis".to_owned());
                }
            }
            Token::Word(text, _) => check_word(text, token, before, after)?,
        }
        nesting.take(index, token, before)?;
    }
    Ok(())
}

fn check_word(text: &str, token: &Token, before: &[Token], after: &[Token]) -> Result<(), String> {
    let redirects = is_redirection(after.first());
    let touches_next = after.first().is_some_and(|next| touch(token, next));
    let number = redirects && touches_next && text.bytes().all(|b| b.is_ascii_digit());
    if number && (text.len() > MAX_FD_DIGITS || is_redirection(before.last())) {
        return Err("the number before a redirection is no file descriptor".to_owned());
    }
    if is_closer(text) && leaves_no_name(before) {
        return Err("a reserved word stands where shells take it for a command".to_owned());
    }
    let named = text.len() > 2 && text.starts_with('{') && text.ends_with('}');
    if redirects && named && touches_next {
        return Err("a name in braces before a redirection is set, or an argument".to_owned());
    }
    if has_deep_subscript(text) {
        return Err("an array subscript is evaluated".to_owned());
    }
    let array = matches!(after.first(), Some(Token::Operator(next, _)) if next.starts_with('('));
    if text.ends_with('=') && array && touches_next {
        check_array(after)?;
    }
    Ok(())
}

/// Refuses an array, from its parenthesis on, where bash could find another end of it.
fn check_array(elements: &[Token]) -> Result<(), String> {
    let mut open = 0_usize;
    for (index, token) in elements.iter().enumerate() {
        match token {
            Token::Word(text, _) if text.contains('[') => return Err("an array subscript is evaluated".to_owned()),
            Token::Operator(text, _) if text.starts_with('(') => open += text.len(),
            Token::Operator(text, _) if text == ")" => open = open.saturating_sub(1),
            Token::Word(..) | Token::Operator(..) => {}
        }
        if open == 0 {
            let next = elements.get(index + 1);
            let glued = next.is_some_and(|next| matches!(next, Token::Word(..)) && touch(token, next));
            return if glued {
                Err("a word goes on behind an array".to_owned())
            } else {
                Ok(())
            };
        }
    }
    Err("an array has no end".to_owned())
}

/// The constructs that are open before a token.
#[derive(Debug, Default)]
struct Nesting {
    /// Open parentheses and `case`.
    doubling: usize,
    /// The value of `doubling` at the last `case`. A `)` may end a pattern of it, so none closes a parenthesis before it.
    before_case: usize,
    compound: usize,
    /// The index of the last word that closed a compound command.
    closed_at: Option<usize>,
}

impl Nesting {
    /// Counts a token. A reserved word that is only an argument counts as an opening word, but not as a closing one: so the depth
    /// is never too small.
    fn take(&mut self, index: usize, token: &Token, before: &[Token]) -> Result<(), String> {
        match token {
            Token::Operator(text, _) => match text.as_str() {
                "(" | "((" => self.doubling += text.len(),
                ")" if self.doubling > self.before_case => self.doubling -= 1,
                _ => {}
            },
            Token::Word(text, _) => match text.as_str() {
                "case" => {
                    self.doubling += 1;
                    self.before_case = self.doubling;
                    self.compound += 1;
                }
                "{" | "if" | "while" | "until" | "for" | "select" | "function" | "coproc" | "[[" | "!" => {
                    self.compound += 1;
                }
                "}" | "fi" | "done" | "esac" if self.may_close(index, before) => {
                    self.compound = self.compound.saturating_sub(1);
                    self.closed_at = Some(index);
                }
                _ => {}
            },
        }
        if self.doubling > MAX_DOUBLING || self.compound > MAX_COMPOUND {
            return Err("the line is nested too deeply".to_owned());
        }
        Ok(())
    }

    /// Whether a closing word at this index can close a compound command.
    fn may_close(&self, index: usize, before: &[Token]) -> bool {
        match before.last() {
            Some(Token::Operator(..)) => !is_redirection(before.last()),
            Some(Token::Word(..)) => self.closed_at.is_some_and(|closed| closed + 1 == index),
            None => false,
        }
    }
}

/// Checks that mark, text and end follow the operator of a here-document. The parser would accept any three tokens.
fn check_document(after: &[Token]) -> Result<(), String> {
    match after {
        [Token::Word(mark, _), Token::Word(..), Token::Word(end, _), ..] if mark.replace(['\'', '"'], "") == *end => {
            Ok(())
        }
        _ => Err("a here-document does not stand where it is read".to_owned()),
    }
}

/// Whether nothing stands between two tokens.
fn touch(left: &Token, right: &Token) -> bool {
    left.location().end.index == right.location().start.index
}

/// Whether the word is a reserved word that ends or divides a compound command.
fn is_closer(word: &str) -> bool {
    matches!(
        word,
        "then" | "do" | "done" | "fi" | "esac" | "elif" | "else" | "}" | "in"
    )
}

/// Whether the tokens end in an assignment or a redirection. Shells read the next word as a command, also a reserved word.
fn leaves_no_name(tokens: &[Token]) -> bool {
    match tokens {
        // A here-document, an array or a process substitution.
        [
            ..,
            Token::Operator(operator, _),
            Token::Word(..),
            Token::Word(..),
            Token::Word(..),
        ] if operator.starts_with("<<") && operator != "<<<" => true,
        [.., Token::Operator(last, _)] => last == ")",
        [.., before, Token::Word(last, _)] => last.contains('=') || is_redirection(Some(before)),
        [Token::Word(last, _)] => last.contains('='),
        [] => false,
    }
}

fn is_redirection(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Operator(text, _)) if text.trim_start_matches('&').starts_with(['<', '>']))
}

/// Whether the word is `name[…` with more than plain text inside. The parser would read an array element, and try every way to
/// read the subscript.
fn has_deep_subscript(word: &str) -> bool {
    let Some((name, subscript)) = word.split_once('[') else {
        return false;
    };
    !name.is_empty()
        && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        && subscript.contains(['$', '`', '(', '['])
}
