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
const MAX_DOUBLING: usize = 8;
/// How many compound commands may be open at once; each level is a few kilobytes of stack.
const MAX_COMPOUND: usize = 24;
/// The longest file descriptor number before a redirection; the parser panics on those beyond i32.
const MAX_FD_DIGITS: usize = 4;

/// The tree of `line`, or why it is not understood.
pub(super) fn parse(line: &str) -> Result<Program, String> {
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
    brush_parser::parse_tokens(&tokens, &options).map_err(|_| "the line is not valid shell syntax".to_owned())
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
    const SUBSTITUTIONS: [&str; 3] = ["$(", "${", "$["];
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
        if line[..at].contains("((") {
            return Err("a here-document follows two parentheses".to_owned());
        }
        if opens(&line[..at]) || opens(rest) || rest.contains(['\'', '"', '\\', '`']) {
            return Err("a here-document shares a line with a quotation or follows a substitution".to_owned());
        }
    }
    Ok(())
}

/// Refuses nesting that is too deep for the parser.
fn check_tokens(tokens: &[Token]) -> Result<(), String> {
    let (mut doubling, mut compound) = (0_usize, 0_usize);
    // A parenthesis may close a pattern of a `case`, so none closes what was opened before one.
    let mut before_case = 0;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Operator(text, _) if text.starts_with("<<") && text != "<<<" => {
                check_document(&tokens[index + 1..])?;
            }
            Token::Operator(text, _) => match text.as_str() {
                "(" | "((" => {
                    let before = index.checked_sub(1).and_then(|before| tokens.get(before));
                    if is_redirection(before) && before.is_some_and(|before| !touch(before, token)) {
                        return Err("a redirection to a parenthesis".to_owned());
                    }
                    doubling += text.len();
                }
                ")" if doubling > before_case => doubling -= 1,
                _ => {}
            },
            Token::Word(text, _) => {
                let redirects = is_redirection(tokens.get(index + 1));
                let number = redirects && text.bytes().all(|b| b.is_ascii_digit());
                let target = index > 0 && is_redirection(tokens.get(index - 1));
                if number && (text.len() > MAX_FD_DIGITS || target) {
                    return Err("the number before a redirection is no file descriptor".to_owned());
                }
                if index > 0 && is_closer(text) && leaves_no_name(&tokens[..index]) {
                    return Err("a reserved word stands where shells take it for a command".to_owned());
                }
                let named = text.len() > 2 && text.starts_with('{') && text.ends_with('}');
                if redirects && named && tokens.get(index + 1).is_some_and(|next| touch(token, next)) {
                    return Err("a name in braces before a redirection is set, or an argument".to_owned());
                }
                if has_deep_subscript(text) {
                    return Err("an array subscript is evaluated".to_owned());
                }
                // A reserved word that is only an argument is counted too, and never closed: that
                // errs towards asking. What closes a `case` may be an argument as well.
                if text == "case" {
                    doubling += 1;
                    before_case = doubling;
                }
                match text.as_str() {
                    "{" | "if" | "while" | "until" | "for" | "case" | "select" | "function" | "coproc" | "[[" | "!" => {
                        compound += 1;
                    }
                    "}" | "fi" | "done" | "esac" | "]]" => compound = compound.saturating_sub(1),
                    _ => {}
                }
            }
        }
        if doubling > MAX_DOUBLING || compound > MAX_COMPOUND {
            return Err("the line is nested too deeply".to_owned());
        }
    }
    Ok(())
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
        [.., before, Token::Word(last, _)] => last.contains('=') || is_redirection(Some(before)),
        [Token::Word(last, _)] => last.contains('='),
        _ => false,
    }
}

fn is_redirection(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Operator(text, _)) if text.starts_with(['<', '>']))
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
