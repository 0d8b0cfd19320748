//! Builtins that only control the shell: they start no program and write no file, so they need no rule.
//!
//! Each name here is a builtin of bash and of a POSIX sh. It counts only where a shell runs it: `env cd` runs a program. A rule
//! can match one like any other command.

use super::analysis::Analysis;
use super::variable::{is_reviewed, may_be_reviewed};
use super::word::Word;

/// Whether a command of a shell line only controls the shell.
pub(super) fn is_control(words: &[Word]) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    match name.literal() {
        Some("cd" | "pwd" | "true" | "false" | ":" | "test" | "[" | "wait" | "set") => true,
        // Some shells evaluate their arguments as arithmetic.
        Some("exit" | "return" | "break" | "continue" | "shift") => match rest {
            [] => true,
            [count] => is_count(count),
            _ => false,
        },
        Some("export") => exports_reviewed(rest),
        Some(_) | None => false,
    }
}

/// Whether all arguments of `export` are reviewed variables.
pub(super) fn exports_reviewed(rest: &[Word]) -> bool {
    let reviewed = |word: &Word| {
        let Some(text) = word.literal() else { return false };
        match text.split_once('=') {
            Some((name, value)) => is_reviewed(name, &Word::Literal(value.to_owned())),
            // Its value was judged where it was set.
            None => may_be_reviewed(text),
        }
    };
    !rest.is_empty() && rest.iter().all(reviewed)
}

/// Whether the word is a number or `$?`.
fn is_count(word: &Word) -> bool {
    match word {
        Word::Literal(text) => !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit()),
        Word::Dynamic(raw) => matches!(raw.as_str(), "$?" | "\"$?\""),
    }
}

/// Handles `test` and `[`. bash evaluates an array subscript after `-v` and `-R`; other shells evaluate the operands of `-eq`. With up
/// to four arguments POSIX defines which one is the operator; with more, any word may be.
pub(super) fn test(name: &str, rest: &[Word], analysis: &mut Analysis) {
    let rest = match rest.split_last() {
        Some((last, rest)) if name == "[" && last.literal() == Some("]") => rest,
        _ => rest,
    };
    let evaluated = |word: &Word| {
        word.literal()
            .is_some_and(|text| text.starts_with("-v") || text == "-R")
    };
    let number = |word: &Word| {
        word.literal().is_some_and(|text| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let compares = |word: &Word| {
        let operators = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        word.literal().is_some_and(|text| operators.contains(&text))
    };
    let beside = rest.iter().enumerate().filter(|(_, word)| compares(word));
    let mut operands = beside.flat_map(|(at, _)| [at.checked_sub(1), Some(at + 1)]);
    let unsure = operands.any(|at| !at.and_then(|at| rest.get(at)).is_some_and(number));
    if unsure || rest.iter().any(evaluated) || !has_clear_operator(rest) {
        analysis.doubt(format!("{name} may evaluate its arguments"));
    }
}

/// Whether each word that is known only when it runs is one operand.
fn has_clear_operator(rest: &[Word]) -> bool {
    let unary = |word: &Word| matches!(word.literal(), Some(text) if text.len() == 2 && text.starts_with('-'));
    let binary = |word: &Word| matches!(word.literal(), Some("=" | "==" | "!=" | "-nt" | "-ot" | "-ef"));
    if rest.iter().all(|word| word.literal().is_some()) {
        return true;
    }
    if !rest.iter().all(is_one_word) {
        return false;
    }
    let negated = |rest: &[Word]| match rest {
        [_] => true,
        [operator, _] => unary(operator),
        [_, operator, _] => binary(operator),
        _ => false,
    };
    match rest {
        [not, rest @ ..] if not.literal() == Some("!") => negated(rest),
        _ => negated(rest),
    }
}

/// Whether the word stays one word, whatever its value: it is a literal, or is in one pair of double quotes.
fn is_one_word(word: &Word) -> bool {
    match word {
        Word::Literal(_) => true,
        Word::Dynamic(raw) => {
            let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
            inner.is_some_and(|inner| !inner.contains(['"', '@', '\\']))
        }
    }
}
