//! What a line does, collected from all of its parts.

use super::word::Word;

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// Its name and arguments.
    pub(super) words: Vec<Word>,
    /// Files that it reads by redirection.
    pub(super) inputs: Vec<Word>,
    /// Files that it writes by redirection.
    pub(super) outputs: Vec<Word>,
    /// Whether it is a builtin that only controls the shell. It needs no rule.
    pub(super) is_control: bool,
}

impl SimpleCommand {
    /// A command of words without redirections.
    pub(super) fn of(words: Vec<Word>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }
}

/// What a line does.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    /// The simple commands, also those inside others.
    pub(super) commands: Vec<SimpleCommand>,
    /// The script files that it gives to a shell, with their arguments. A rule can forbid one like a command.
    pub(super) scripts: Vec<SimpleCommand>,
    /// The variables that it sets and that need a rule.
    pub(super) assignments: Vec<String>,
    /// Whether it has a loop or sets a variable that needs no rule.
    pub(super) has_control: bool,
    /// The values of variables and loops, and the here-documents.
    pub(super) values: Vec<Word>,
    /// The files that redirections of compound commands, or without a command, write.
    pub(super) outputs: Vec<Word>,
    /// The files that such redirections read.
    pub(super) inputs: Vec<Word>,
    /// Whether a command may change the directory, so that it is unknown where relative paths lead.
    pub(super) changes_directory: bool,
    /// The first reason why the line is not understood.
    pub(super) doubt: Option<String>,
}

impl Analysis {
    /// Notes a reason why the line is not understood. Only the first is kept.
    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert(why.into());
    }
}
