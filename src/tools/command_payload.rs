//! What exactly a question about a command is about, in bytes: the keys of session memory.

use std::os::unix::ffi::OsStrExt as _;

use super::call::ShellCommand;
use super::files::Operand;
use super::permit::CommandRequest;
use super::profiles::Derived;
use super::programs::Program;
use super::regime::RegimeLine;
use super::tool_question;
use crate::approval::{Fact, SessionScope};
use crate::policy::path::escape;
use crate::policy::shell::{sole_command_of_argv, sole_command_of_line};
use crate::policy::{Demand, Policy};

pub(super) struct QuestionText<'a> {
    pub(super) tool_name: &'a str,
    pub(super) description: String,
    /// What rules say of their own parts.
    pub(super) notes: Vec<(String, String)>,
    pub(super) allowed_by: String,
    pub(super) why: Vec<String>,
    /// What makes it a question.
    pub(super) demand: Demand,
    /// Why no yes to it is remembered, if none is: it may name files that are not known before it runs.
    pub(super) unresolved: Option<String>,
    /// The line that made it a question, where a yes may cover other commands that the same line asks about.
    pub(super) asked_by: Option<String>,
}

/// What a question is about: a command that would run under `profile`.
pub(super) struct QuestionSubject<'a> {
    pub(super) policy: &'a Policy,
    pub(super) command: CommandRequest<'a>,
    pub(super) narrow: Option<&'a [String]>,
    pub(super) derived: &'a Derived,
    pub(super) operands: &'a [Operand],
    pub(super) programs: &'a [Program],
    pub(super) regime: RegimeLine,
}

/// What a yes for the session can cover beyond the very command.
#[derive(Default)]
pub(super) struct Scopes {
    /// Those that are offered.
    pub(super) offered: Vec<SessionScope>,
    /// The keys of those that are offered for other commands alone, and cover this as well.
    pub(super) hidden: Vec<Vec<u8>>,
}

/// The command as it is written: the words, the directory, the environment. Two commands have the same bytes only if these are the same.
pub(super) fn words(text: &QuestionText<'_>, subject: &QuestionSubject<'_>) -> Vec<u8> {
    let command = subject.command;
    let mut fields: Vec<Vec<u8>> = vec![text.tool_name.as_bytes().to_vec()];
    match command.command {
        ShellCommand::Line(line) => fields.extend([b"line".to_vec(), line.as_bytes().to_vec()]),
        ShellCommand::Argv(argv) => {
            fields.push(b"argv".to_vec());
            fields.extend(argv.iter().map(|word| word.as_bytes().to_vec()));
        }
    }
    fields.extend(surroundings(subject));
    // A yes that was given when it was all known does not hold once it is not.
    fields.push(text.unresolved.as_deref().unwrap_or_default().as_bytes().to_vec());
    joined(&fields)
}

/// What else decides about what it does: the writable files that it names, what it may reach, and what confines it.
pub(super) fn facts(subject: &QuestionSubject<'_>) -> Vec<Fact> {
    let fact = |name: String, value| Fact { name, value };
    let mut facts: Vec<Fact> = subject
        .operands
        .iter()
        .map(|operand| fact(operand.path().to_string(), operand.payload()))
        .collect();
    facts.push(fact(
        "what it may read, write and reach".to_owned(),
        subject.derived.digest().to_vec(),
    ));
    facts.push(fact(
        "what confines it".to_owned(),
        subject.regime.to_string().into_bytes(),
    ));
    facts
}

/// All of it: two calls have the same bytes only if they do the same under the same profile, held in the same way, with the same files.
pub(super) fn whole(words: &[u8], facts: &[Fact]) -> Vec<u8> {
    let mut fields = vec![words];
    fields.extend(facts.iter().flat_map(|fact| [fact.name.as_bytes(), &fact.value]));
    tool_question::payload(&fields)
}

/// Commands that begin with the same words, where the line is one command whose program the session cannot write.
pub(super) fn scopes(text: &QuestionText<'_>, subject: &QuestionSubject<'_>) -> Scopes {
    let words = match subject.command.command {
        ShellCommand::Line(line) => line.to_str().and_then(sole_command_of_line),
        ShellCommand::Argv(argv) => sole_command_of_argv(argv),
    };
    let (Some(words), Some(line), None) = (words, &text.asked_by, &text.unresolved) else {
        return Scopes::default();
    };
    let program = words
        .first()
        .and_then(|name| subject.programs.iter().find(|program| program.name == *name));
    let Some(program) = program.filter(|program| !program.is_writable) else {
        return Scopes::default();
    };
    let offered = offered_length(&words);
    let mut scopes = Scopes::default();
    for length in 1..=words.len().min(MAX_WORDS) {
        let first = words.get(..length).unwrap_or_default();
        let key = prefix_key((text.tool_name, line), subject, program, first);
        if offered == Some(length) {
            let covers = format!(
                "commands that begin with `{}`, started in {}",
                escape(first.join(" ").as_bytes()),
                subject.command.directory
            );
            scopes.offered.push(SessionScope { covers, key });
        } else {
            scopes.hidden.push(key);
        }
    }
    scopes
}

/// The most words that commands are said to begin with: a program and what it is to do.
const MAX_WORDS: usize = 2;

/// How many words commands like this one begin with: the program, and its subcommand where it has one. None where an option comes
/// first: what follows is not told by the words before it.
fn offered_length(words: &[String]) -> Option<usize> {
    let is_subcommand = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
    };
    match words.get(1) {
        Some(word) if word.starts_with('-') => None,
        Some(word) if is_subcommand(word) => Some(2),
        None | Some(_) => Some(1),
    }
}

fn prefix_key(
    (tool_name, line): (&str, &str),
    subject: &QuestionSubject<'_>,
    program: &Program,
    first: &[String],
) -> Vec<u8> {
    let mut fields: Vec<Vec<u8>> = [tool_name, "begins with", line]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
    fields.push(first.len().to_le_bytes().to_vec());
    fields.extend(first.iter().map(|word| word.as_bytes().to_vec()));
    fields.push(program.path.as_os_str().as_bytes().to_vec());
    fields.extend(surroundings(subject));
    fields.push(subject.derived.digest().to_vec());
    fields.push(subject.regime.to_string().into_bytes());
    joined(&fields)
}

/// Where it starts, and with which variables.
fn surroundings(subject: &QuestionSubject<'_>) -> Vec<Vec<u8>> {
    let mut fields = vec![subject.command.directory.as_bytes().to_vec()];
    for (name, value) in subject.command.environment {
        fields.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
    }
    fields
}

fn joined(fields: &[Vec<u8>]) -> Vec<u8> {
    tool_question::payload(&fields.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_offered_by_program_and_subcommand_and_never_by_an_option() {
        for (line, length) in [
            ("git push origin main", Some(2)),
            ("git -c core.pager=x log", None),
            ("rm -rf build", None),
            ("ls", Some(1)),
            ("pytest tests/a.py", Some(1)),
            ("cargo test --all", Some(2)),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(offered_length(&words), length, "{line}");
        }
    }
}
