//! Command line → syntax tree, behind caps on everything that makes the parser slow or deep.
//!
//! The parser recurses per nesting level and tries alternatives per parenthesis, so depth is capped
//! on the very tokens that it will see, before it sees them.

use brush_parser::{ParserOptions, Token, TokenizerOptions, ast::Program};

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 16 * 1024;
/// How many substitutions and quotations may open in one line.
const MAX_OPENERS: usize = 128;
/// How many parentheses and `case` may be open at once; each level doubles the parser's work.
const MAX_DOUBLING: usize = 6;
/// How many compound commands may be open at once; each level is a few kilobytes of stack.
const MAX_COMPOUND: usize = 24;
/// The longest file descriptor number before a redirection: to a POSIX sh a longer one may be a word.
const MAX_FD_DIGITS: usize = 1;

/// A tree, and why it may not be what every shell reads.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) program: Program,
    pub(super) doubt: Option<&'static str>,
}

/// The tree of `line`, or why it is not understood.
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

/// Two parentheses that touch: bash reads up to two that close, through comments and here-documents.
fn doubt_of(tokens: &[Token]) -> Option<&'static str> {
    let opens = |token: &Token| matches!(token, Token::Operator(text, _) if text.starts_with('('));
    let touching = |pair: &[Token]| matches!(pair, [left, right] if opens(left) && opens(right) && touch(left, right));
    tokens
        .windows(2)
        .any(touching)
        .then_some("(( … )) is not understood by every shell")
}

/// Refuses text that tokenizers disagree about, and text that makes this one recurse too deep.
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
    // A continued line joins the words around the break in every shell, but not in every parser.
    let glued = bytes
        .windows(3)
        .any(|w| w[1] == b'\\' && w[2] == b'\n' && w[0] != b' ' && w[0] != b'\t');
    if glued || bytes.starts_with(b"\\\n") {
        return Err("a line is continued in the middle of a word".to_owned());
    }
    Ok(())
}

/// Refuses a here-document that may be pending while a substitution is open, since the tokenizer panics on
/// some of those, one behind two parentheses, after which it may take none for one, and one without a plain mark:
/// it looks without end for an empty one where the text ends.
fn check_documents(line: &str) -> Result<(), String> {
    const SUBSTITUTIONS: [&str; 6] = ["$(", "${", "$[", "<(", ">(", "=("];
    let opens = |text: &str| SUBSTITUTIONS.iter().any(|open| text.contains(open));
    let special = |c: char| matches!(c, '\'' | '"' | '\\' | '`' | '$');
    let mut seen = 0;
    while let Some(at) = line[seen..].find("<<").map(|at| seen + at) {
        let after = &line[at + 2..];
        // After a backslash, the first of three is text and the other two begin a document.
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
        // In a text that is expanded shells join lines, and a mark with the line before it.
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

/// Refuses what the parser reads in another way than shells do, and nesting that is too deep for it.
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

/// Refuses the elements of an array, from its parenthesis on, where bash finds another end of them.
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

/// What is open before a token.
#[derive(Debug, Default)]
struct Nesting {
    /// Parentheses and `case`.
    doubling: usize,
    /// A parenthesis may close a pattern of a `case`, so none closes what was opened before one.
    before_case: usize,
    compound: usize,
    /// The last word that closed a compound command.
    closed_at: Option<usize>,
}

impl Nesting {
    /// A reserved word that only is an argument is counted where it opens, and not where it closes: that errs towards
    /// asking.
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

    /// Whether a command could stand here.
    fn may_close(&self, index: usize, before: &[Token]) -> bool {
        match before.last() {
            Some(Token::Operator(..)) => !is_redirection(before.last()),
            Some(Token::Word(..)) => self.closed_at.is_some_and(|closed| closed + 1 == index),
            None => false,
        }
    }
}

/// Refuses what follows a here-document's operator and is not its mark, its text and its end: the parser takes
/// any three tokens for them.
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

/// Whether the word ends or divides a compound command.
fn is_closer(word: &str) -> bool {
    matches!(
        word,
        "then" | "do" | "done" | "fi" | "esac" | "elif" | "else" | "}" | "in"
    )
}

/// Whether the tokens end in an assignment or a redirection, after which the next word is a command
/// to shells, whatever it is called.
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

/// Whether the word is `name[…` with more inside than plain text: the parser takes it for an array
/// element and tries every reading of the subscript.
fn has_deep_subscript(word: &str) -> bool {
    let Some((name, subscript)) = word.split_once('[') else {
        return false;
    };
    !name.is_empty()
        && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
        && subscript.contains(['$', '`', '(', '['])
}
