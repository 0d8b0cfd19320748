//! Shells that are given a line: what it runs is judged as well, or what it forbids at least.

use super::analysis::{Analysis, SimpleCommand};
use super::matching::base_name;
use super::word::Word;

/// `sh -c LINE`; a shell that reads its commands from a file is a program like any other.
pub(super) fn shell(rest: &[Word], analysis: &mut Analysis, depth: usize) {
    if let Err(doubt) = read_options(rest, analysis, depth) {
        analysis.doubt(doubt);
        line_of_another(rest, analysis, depth);
    }
}

/// The line after `-c` of a shell that is not read as such, or of a program that has one run it: what a rule forbids there stays
/// forbidden, and nothing else is made of it.
pub(super) fn line_of_another(rest: &[Word], analysis: &mut Analysis, depth: usize) {
    let mut words = rest.iter().filter_map(Word::literal);
    let mut follows = false;
    while let Some(text) = words.next() {
        let line = if let Some(long) = text.strip_prefix("--") {
            follows |= matches!(long, "command" | "commands" | "session-command");
            long.split_once('=').map_or("", |(_, line)| line)
        } else if let Some(letters) = text.strip_prefix('-') {
            let attached = letters.split_once('c').map(|(_, attached)| attached);
            follows |= attached.is_some() || letters.eq_ignore_ascii_case("command");
            if letters.ends_with('o') {
                words.next();
            }
            attached.unwrap_or_default()
        } else {
            // What comes after the line are its arguments.
            if std::mem::take(&mut follows) { text } else { "" }
        };
        if !line.is_empty() {
            let mut inner = Analysis::default();
            inner.line(line, depth + 1);
            analysis.changes_directory |= inner.changes_directory;
            analysis.scripts.extend(inner.commands.into_iter().chain(inner.scripts));
        }
    }
}

/// A shell whose options are known, and what it runs; else why it is not understood.
fn read_options(rest: &[Word], analysis: &mut Analysis, depth: usize) -> Result<(), &'static str> {
    let mut words = rest.iter();
    let mut line_follows = false;
    while let Some(word) = words.next() {
        let Some(text) = word.literal() else {
            return Err("what a shell runs is known only when it runs");
        };
        if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            match letters {
                "-norc" | "-noprofile" | "-posix" => {}
                // What is not a literal may be several words, and options among them; others change what is read, or from where.
                "o" if words.next().and_then(Word::literal).is_some_and(is_strictness) => {}
                _ if are_known(letters) => line_follows |= letters.contains('c'),
                _ if letters.strip_suffix('o').is_some_and(are_known)
                    && words.next().and_then(Word::literal).is_some_and(is_strictness) =>
                {
                    line_follows |= letters.contains('c');
                }
                _ => return Err("an option of a shell is not understood"),
            }
        } else if text.starts_with('+') || text == "-" {
            return Err("an option of a shell is not understood");
        } else if line_follows {
            analysis.line(text, depth + 1);
            return Ok(());
        } else if is_nameless(text) {
            return Err("what a shell runs is read from a descriptor");
        } else {
            let words = std::iter::once(word).chain(words).cloned().collect();
            analysis.scripts.push(SimpleCommand::of(words));
            return Ok(());
        }
    }
    Err("what a shell runs is read from its input")
}

/// Whether these letters are options of a shell that are understood.
fn are_known(letters: &str) -> bool {
    // A login shell reads files that other commands may have written.
    letters.bytes().all(|b| b"ceuxfnv".contains(&b))
}

/// Whether the option only makes a script stricter or more talkative.
pub(super) fn is_strictness(name: &str) -> bool {
    matches!(
        name,
        "errexit" | "nounset" | "pipefail" | "xtrace" | "verbose" | "noclobber"
    )
}

/// Whether the path names an open descriptor, a terminal or a process's own program, whatever that is.
pub(super) fn is_nameless(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let device = path.starts_with('/') && parts.clone().next() == Some("dev");
    // Where it is run may be /dev/fd by then, in a loop or by `find -execdir`.
    let numbered = base_name(path).bytes().all(|b| b.is_ascii_digit());
    device
        || numbered
        || parts.any(|part| {
            matches!(
                part,
                "proc" | "fd" | "exe" | "stdin" | "stdout" | "stderr" | "tty" | "pts"
            )
        })
}
