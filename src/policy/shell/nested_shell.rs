//! Shells that are given a line. What the line runs is judged as well.

use super::analysis::{Analysis, SimpleCommand};
use super::matching::base_name;
use super::word::Word;

/// Handles `sh -c LINE`. A shell that reads its commands from a file is a program like any other.
pub(super) fn shell(rest: &[Word], analysis: &mut Analysis, depth: usize) {
    if let Err(doubt) = read_options(rest, analysis, depth) {
        analysis.doubt(doubt);
        line_of_another(rest, analysis, depth);
    }
}

/// Handles the line after `-c` of a shell that is not parsed, or of a program that passes it to a shell. What a rule forbids in that
/// line stays forbidden. The line allows nothing.
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
            // The words after the line are its arguments.
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

/// Parses the options of a shell and adds what it runs to `analysis`. An error is the reason why it is not understood.
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
                // Other options change what the shell reads.
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
    // `-l` is not among them: a login shell reads files that other commands may have written.
    letters.bytes().all(|b| b"ceuxfnv".contains(&b))
}

/// Whether the option only makes a script stricter, or prints more.
pub(super) fn is_strictness(name: &str) -> bool {
    matches!(
        name,
        "errexit" | "nounset" | "pipefail" | "xtrace" | "verbose" | "noclobber"
    )
}

/// Whether the path names an open descriptor, a terminal or a running program.
pub(super) fn is_nameless(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let device = path.starts_with('/') && parts.clone().next() == Some("dev");
    // A relative path counts as well: the directory may be /dev/fd, after `cd` or with `find -execdir`.
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
