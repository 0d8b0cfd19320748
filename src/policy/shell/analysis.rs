//! What a line was found to do, collected from wherever it stands.

use super::word::Word;

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// Its name and arguments.
    pub(super) words: Vec<Word>,
    /// Files it reads by redirection.
    pub(super) inputs: Vec<Word>,
    /// Files it writes by redirection.
    pub(super) outputs: Vec<Word>,
    /// Whether it is a builtin of the shell that only steers it, for which no rule is needed.
    pub(super) is_control: bool,
}

impl SimpleCommand {
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
pub(super) struct Analysis {
    /// Its simple commands, those inside others included.
    pub(super) commands: Vec<SimpleCommand>,
    /// Script files it gives to a shell, with their arguments: as the name of a command would, they
    /// name what a rule may forbid.
    pub(super) scripts: Vec<SimpleCommand>,
    /// Variables it sets that may be more than a text to what it runs.
    pub(super) assignments: Vec<String>,
    /// Whether it has a loop or sets a variable that needs no rule.
    pub(super) has_control: bool,
    /// What they are set to, loops included, and what commands are given to read by `<<`.
    pub(super) values: Vec<Word>,
    /// Files written by redirections of compound commands or of no command.
    pub(super) outputs: Vec<Word>,
    /// Files read by such redirections.
    pub(super) inputs: Vec<Word>,
    /// Whether a command may have left the directory, so that relative paths are unknown.
    pub(super) changes_directory: bool,
    /// Why it is not understood; the first reason is enough.
    pub(super) doubt: Option<String>,
}

impl Analysis {
    /// Notes why it is not understood, unless a reason is known.
    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert(why.into());
    }
}
