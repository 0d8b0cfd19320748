//! What a line was found to do, collected from wherever it stands.

use super::parse::{self, Parsed};
use super::word::Word;
use super::wrapper;

/// How deep substitutions and wrappers may nest.
const MAX_DEPTH: usize = 8;
/// How many simple commands one line may hold.
const MAX_COMMANDS: usize = 512;

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its name and arguments.
    pub(super) words: Vec<Word>,
    /// Files it reads by redirection.
    pub(super) inputs: Vec<Word>,
    /// Files it writes by redirection.
    pub(super) outputs: Vec<Word>,
    /// Whether it is a builtin of the shell that only steers it, for which no rule is needed.
    pub(super) steers: bool,
}

impl Simple {
    /// A command that is given nothing but words.
    pub(super) fn of(words: Vec<Word>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }
}

/// Everything a line was found to do.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Its simple commands, those inside others included.
    pub(super) commands: Vec<Simple>,
    /// Script files it gives to a shell, with their arguments: as the name of a command would, they
    /// name what a rule may forbid.
    pub(super) scripts: Vec<Simple>,
    /// Variables it sets that may be more than a text to what it runs.
    pub(super) assignments: Vec<String>,
    /// Whether it has a loop or sets a variable that needs no rule.
    pub(super) steered: bool,
    /// What they are set to, loops included, and what commands are given to read by `<<`.
    pub(super) values: Vec<Word>,
    /// Files written by redirections of compound commands or of no command.
    pub(super) outputs: Vec<Word>,
    /// Files read by such redirections.
    pub(super) inputs: Vec<Word>,
    /// Whether a command may have left the directory, so that relative paths are unknown.
    pub(super) moved: bool,
    /// Why it is not understood; the first reason is enough.
    pub(super) doubt: Option<String>,
}

impl Reading {
    /// What `line` does.
    pub(super) fn of_line(line: &str) -> Self {
        let mut reading = Self::default();
        reading.line(line, 0);
        reading
    }

    /// What a single command with these words does.
    pub(super) fn of_words(words: Vec<Word>) -> Self {
        let mut reading = Self::default();
        reading.command(Simple::of(words), 0);
        reading
    }

    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert(why.into());
    }

    pub(super) fn line(&mut self, line: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return self.doubt("commands are nested too deeply");
        }
        match parse::parse(line) {
            Ok(Parsed { program, doubt }) => {
                if let Some(why) = doubt {
                    self.doubt(why);
                }
                program.complete_commands.iter().for_each(|list| self.list(list, depth));
            }
            Err(why) => self.doubt(why),
        }
    }

    /// Takes one command, and what it starts in its turn.
    pub(super) fn command(&mut self, simple: Simple, depth: usize) {
        if depth > MAX_DEPTH || self.commands.len() >= MAX_COMMANDS {
            return self.doubt("the line holds too many commands");
        }
        let words = simple.words.clone();
        self.commands.push(simple);
        wrapper::open(&words, self, depth);
    }
}
