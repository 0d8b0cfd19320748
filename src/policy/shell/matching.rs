//! One rule against one simple command.
//!
//! There are three answers, because a word may be known only when it runs. A rule that *may* match is as strict as one that
//! matches, and pre-approves nothing.

use super::analysis::SimpleCommand;
use super::programs::{is_interpreter, is_shell};
use super::word::Word;
use crate::policy::{Demand, ShellRule};

/// Whether a path argument lies in the named roots.
pub(super) type Roots<'a> = dyn Fn(&str, &[String]) -> bool + 'a;

/// Whether a rule matches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It depends on something that is known only when the command runs.
    Maybe,
    Yes,
}

/// What is known of the directory in which a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directory {
    /// The start directory of the session. Relative patterns are relative to it.
    Start,
    /// Another directory, which is known.
    Other,
    /// A directory that is known only when the command runs.
    Unknown,
}

/// Whether the rule forbids what it matches.
pub(super) fn forbids(rule: &ShellRule) -> bool {
    !rule.allowed || rule.approval == Demand::Deny
}

/// What the rule demands of what it matches.
pub(super) fn demand(rule: &ShellRule) -> Demand {
    if forbids(rule) { Demand::Deny } else { rule.approval }
}

/// The last component of a command's name.
pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether `rule` matches `command`, which runs in `directory`.
pub(super) fn matches(rule: &ShellRule, command: &SimpleCommand, directory: Directory, roots: &Roots<'_>) -> Match {
    let mut by_words = words_match(rule, &command.words);
    if by_words == Match::No {
        return Match::No;
    }
    // In another directory the same relative path names another file. A rule that forbids still matches.
    if directory != Directory::Start && !forbids(rule) && names_from_start(&rule.pattern) {
        by_words = by_words.min(Match::Maybe);
    }
    let by_paths = rule.sandbox_paths.as_ref().map_or(Match::Yes, |names| {
        paths_match(rule, command, directory, &|path| roots(path, names))
    });
    by_words.min(by_paths)
}

/// Whether a pattern names a file by a path relative to the start directory.
fn names_from_start(pattern: &[String]) -> bool {
    let Some((name, rest)) = pattern.split_first() else {
        return false;
    };
    // The script of `sh check.sh`. The module of `python -m pytest` is no file of that name.
    let is_read = is_shell(base_name(name)) || is_interpreter(base_name(name));
    let script = rest
        .iter()
        .position(|word| !word.starts_with('-'))
        .filter(|at| is_read && !rest[..*at].iter().any(|option| option == "-m"))
        .is_some_and(|at| !rest[at].starts_with('/'));
    let is_path = |word: &String| {
        let value = match (word.strip_prefix('-'), word.split_once('=')) {
            (Some(_), Some((_, value))) => value,
            (Some(letters), None) if word.contains('/') => letters.get(1..).unwrap_or_default(),
            (Some(_), None) => "",
            (None, _) => word,
        };
        !value.starts_with('/') && !value.contains("://") && value.contains(['/', '.'])
    };
    name.contains('/') && !name.starts_with('/') || script || rest.iter().any(is_path)
}

fn words_match(rule: &ShellRule, words: &[Word]) -> Match {
    if rule.pattern.is_empty() {
        return Match::No;
    }
    let mut answer = Match::Yes;
    for (index, wanted) in rule.pattern.iter().enumerate() {
        let equal = match words.get(index) {
            // A word that is known only when it runs may become several words, or none.
            Some(Word::Dynamic(_)) => return answer.min(Match::Maybe),
            Some(Word::Literal(word)) if index == 0 => names_match(rule, wanted, word),
            Some(Word::Literal(word)) if word == wanted => Match::Yes,
            Some(Word::Literal(_)) | None => Match::No,
        };
        answer = answer.min(equal);
        if answer == Match::No {
            // Options may precede the subcommand: `git -C x push` is a `git push`.
            let shifted = index > 0
                && equal == Match::No
                && words
                    .get(index)
                    .and_then(Word::literal)
                    .is_some_and(|word| word.starts_with('-'))
                && (demand(rule) != Demand::None || rule.network.is_some())
                && in_order(&rule.pattern[index..], &words[index..]);
            answer = if shifted { Match::Maybe } else { Match::No };
            break;
        }
    }
    answer
}

/// Whether `words` have, or may have, the wanted words in this order, with others between them.
fn in_order(wanted: &[String], words: &[Word]) -> bool {
    let mut wanted = wanted.iter();
    let mut next = wanted.next();
    for word in words {
        match (next, word) {
            (None, _) | (Some(_), Word::Dynamic(_)) => return true,
            (Some(text), Word::Literal(word)) if word == text => next = wanted.next(),
            (Some(_), Word::Literal(_)) => {}
        }
    }
    next.is_none()
}

/// Whether the name of a command matches that of a rule. A bare name in a rule that forbids matches every path to a program of
/// that name. In a rule that allows, such a path only may match, because anybody may have written `./git`.
fn names_match(rule: &ShellRule, wanted: &str, word: &str) -> Match {
    let alias = base_name(word) == wanted || !word.contains('/') && base_name(wanted) == word;
    // One program can have several paths: `/bin//rm`, and `/usr/bin/rm` where `/bin` is a link.
    let elsewhere = forbids(rule) && base_name(word) == base_name(wanted);
    if word == wanted || alias && forbids(rule) {
        Match::Yes
    } else if alias || elsewhere {
        Match::Maybe
    } else {
        Match::No
    }
}

/// Whether the path arguments are in the roots of the rule.
///
/// A rule that allows needs all of them there. A rule that forbids needs one, and also matches a command that names no path.
fn paths_match(rule: &ShellRule, command: &SimpleCommand, directory: Directory, lies: &dyn Fn(&str) -> bool) -> Match {
    let is_unknown = directory == Directory::Unknown;
    let paths = paths(rule, command);
    let mut answers = paths.iter().map(|path| match path {
        Word::Dynamic(_) => Match::Maybe,
        Word::Literal(path) if is_unknown && !path.starts_with('/') => Match::Maybe,
        // Links on the way decide where it leads.
        Word::Literal(path) if forbids(rule) && path.split('/').any(|part| part == "..") => Match::Maybe,
        Word::Literal(path) if lies(path) => Match::Yes,
        Word::Literal(_) => Match::No,
    });
    if forbids(rule) && !paths.is_empty() {
        answers.max().unwrap_or(Match::Yes)
    } else {
        answers.by_ref().min().unwrap_or(Match::Yes)
    }
}

/// Every word, or part of a word, that may be a path.
fn paths(rule: &ShellRule, command: &SimpleCommand) -> Vec<Word> {
    let mut paths: Vec<Word> = command.inputs.iter().chain(&command.outputs).cloned().collect();
    let mut options = true;
    for word in command.words.iter().skip(rule.pattern.len()) {
        let Some(text) = word.literal() else {
            paths.push(word.clone());
            continue;
        };
        if options && text == "--" {
            options = false;
            continue;
        }
        if let Some((_, value)) = text.split_once('=') {
            paths.push(Word::Literal(value.to_owned()));
        }
        if !(options && text.starts_with('-')) {
            paths.push(word.clone());
        } else if !text.starts_with("--") && text.contains('/') {
            // `-I/usr/include`, `-o../x`: the value is attached to a letter.
            paths.push(Word::Literal(text.chars().skip(2).collect()));
        }
    }
    paths
}
