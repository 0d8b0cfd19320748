//! Shell rules: what a command line demands, judged by what it says rather than by how it looks.
//!
//! A line is read as shell ([`parse`]), every simple command anywhere in it is found ([`walk`]), words are
//! unquoted and commands inside them found too ([`unquote`]), variables that shells act upon are told from
//! others ([`variable`]), commands that start other commands are opened ([`wrapper`]), what only steers the shell
//! is told from the rest ([`control`]), each command is held against the rules ([`matching`]), and the strictest answer wins
//! ([`judge()`]). A yes is bound to the files that a line names ([`names`]); hints use the arguments of programs ([`arguments`]).
//! Text that may hide a name is told from plain words ([`inline`], [`sed`]).
//!
//! What is not understood needs approval at least. Only what means the same to bash and to a POSIX
//! sh counts as understood. Rules are the user's convenience; the sandbox is the boundary.

mod analysis;
mod arguments;
mod control;
mod inline;
mod judge;
mod judgement;
mod matching;
mod names;
mod nested_shell;
mod other_code;
mod parse;
mod programs;
mod sed;
mod substitution;
mod unquote;
mod variable;
mod walk;
mod word;
mod wrapper;
mod wrapper_table;

#[cfg(test)]
mod control_tests;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod doubts;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod line_tests;

pub use arguments::{arguments_of_argv, arguments_of_line};
pub use judge::{judge, judge_argv, judge_argv_in, judge_in, rule_covers, rule_matches};
pub use judgement::{Judgement, Part, RuleNetwork, RuleRef};
pub use matching::Directory;
pub use names::{Names, names_of_argv, names_of_line};
pub use other_code::{runs_other_code, sole_command_of_argv, sole_command_of_line};
pub use programs::is_builtin;
