//! Command line → syntax tree → all simple commands in it.

use std::ffi::OsStr;

use brush_parser::ast;

use super::analysis::{Analysis, SimpleCommand};
use super::control::is_control;
use super::parse::{self, Parsed};
use super::unquote;
use super::variable::is_counter;
use super::word::Word;
use super::wrapper;
use crate::policy::path;

/// The deepest nesting of substitutions and wrappers.
const MAX_DEPTH: usize = 8;
/// The most simple commands in one line.
const MAX_COMMANDS: usize = 512;

impl Analysis {
    /// The analysis of a line.
    pub(super) fn of_line(line: &str) -> Self {
        let mut analysis = Self::default();
        analysis.line(line, 0);
        analysis
    }

    /// The analysis of one command of these words. A word that is not UTF-8 counts as known only when it runs.
    pub(super) fn of_argv<S: AsRef<OsStr>>(argv: &[S]) -> Self {
        let word = |word: &S| match word.as_ref().to_str() {
            Some(text) => Word::Literal(text.to_owned()),
            None => Word::Dynamic(path::display(word.as_ref())),
        };
        let mut analysis = Self::default();
        analysis.command(SimpleCommand::of(argv.iter().map(word).collect()), 0);
        analysis
    }

    /// Adds a shell line.
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

    /// Adds a command, and the commands that it runs.
    pub(super) fn command(&mut self, simple: SimpleCommand, depth: usize) {
        if depth > MAX_DEPTH || self.commands.len() >= MAX_COMMANDS {
            return self.doubt("the line holds too many commands");
        }
        let words = simple.words.clone();
        self.commands.push(simple);
        wrapper::open(&words, self, depth);
    }

    fn list(&mut self, list: &ast::CompoundList, depth: usize) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            match separator {
                ast::SeparatorOperator::Async | ast::SeparatorOperator::Sequence => {}
            }
            self.pipeline(&and_or.first, depth);
            for next in &and_or.additional {
                match next {
                    ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) => self.pipeline(pipeline, depth),
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, depth: usize) {
        if pipeline.seq.is_empty() {
            self.doubt("a pipeline has no command");
        }
        // In a POSIX sh `time` is a command, and the words after it are its arguments.
        if pipeline.timed.is_some() && !matches!(pipeline.seq.first(), Some(ast::Command::Simple(_))) {
            self.doubt("time before a compound command is not understood by every shell");
        }
        for command in &pipeline.seq {
            match command {
                ast::Command::Simple(simple) => self.simple(simple, pipeline.timed.is_some(), depth),
                ast::Command::Compound(compound, redirects) => {
                    self.compound(compound, depth);
                    self.redirects(redirects.as_ref(), depth);
                }
                ast::Command::Function(function) => {
                    self.doubt("a function may take the name of a command");
                    let ast::FunctionBody(body, redirects) = &function.body;
                    self.compound(body, depth);
                    self.redirects(redirects.as_ref(), depth);
                }
                ast::Command::ExtendedTest(test, redirects) => {
                    self.doubt("[[ … ]] is not understood by every shell");
                    self.test(&test.expr, depth);
                    self.redirects(redirects.as_ref(), depth);
                }
            }
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, depth: usize) {
        match compound {
            ast::CompoundCommand::Arithmetic(command) => {
                self.doubt("(( … )) is not understood by every shell");
                // A POSIX sh reads two subshells; with a blank between the parentheses every shell does.
                self.line(&command.expr.value, depth + 1);
            }
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                self.doubt("for (( … )) is not understood by every shell");
                self.list(&clause.body.list, depth);
            }
            ast::CompoundCommand::BraceGroup(group) => self.list(&group.list, depth),
            ast::CompoundCommand::Subshell(subshell) => self.list(&subshell.list, depth),
            ast::CompoundCommand::ForClause(clause) => self.for_loop(clause, depth),
            ast::CompoundCommand::CaseClause(clause) => {
                let _value = unquote::read(&clause.value.value, self, depth);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        if pattern.value == "esac" {
                            self.doubt("esac as a pattern ends a case to shells");
                        }
                        let _pattern = unquote::read(&pattern.value, self, depth);
                    }
                    if let Some(body) = &case.cmd {
                        self.list(body, depth);
                    }
                }
            }
            ast::CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, depth);
                self.list(&clause.then, depth);
                for branch in clause.elses.iter().flatten() {
                    if let Some(condition) = &branch.condition {
                        self.list(condition, depth);
                    }
                    self.list(&branch.body, depth);
                }
            }
            ast::CompoundCommand::WhileClause(clause) | ast::CompoundCommand::UntilClause(clause) => {
                let ast::WhileOrUntilClauseCommand(condition, body, _) = clause;
                self.list(condition, depth);
                self.list(&body.list, depth);
            }
            ast::CompoundCommand::Coprocess(_) => self.doubt("coproc is not understood by every shell"),
        }
    }

    fn for_loop(&mut self, clause: &ast::ForClauseCommand, depth: usize) {
        let name = &clause.variable_name;
        let values = clause.values.as_ref().map(|values| {
            let mut read = |value: &ast::Word| unquote::read(&value.value, self, depth);
            values.iter().map(&mut read).collect::<Vec<Word>>()
        });
        // Without a list the loop runs over the arguments of the shell.
        let are_literals = values
            .as_ref()
            .is_some_and(|values| values.iter().all(|value| value.literal().is_some()));
        if are_literals && is_counter(name) {
            self.has_control = true;
        } else {
            self.assign(name.clone(), name, None);
        }
        self.values.extend(values.into_iter().flatten());
        self.list(&clause.body.list, depth);
    }

    fn test(&mut self, test: &ast::ExtendedTestExpr, depth: usize) {
        match test {
            ast::ExtendedTestExpr::And(left, right) | ast::ExtendedTestExpr::Or(left, right) => {
                self.test(left, depth);
                self.test(right, depth);
            }
            ast::ExtendedTestExpr::Not(inner) | ast::ExtendedTestExpr::Parenthesized(inner) => self.test(inner, depth),
            ast::ExtendedTestExpr::UnaryTest(_, word) => {
                let _word = unquote::read(&word.value, self, depth);
            }
            ast::ExtendedTestExpr::BinaryTest(_, left, right) => {
                let _left = unquote::read(&left.value, self, depth);
                let _right = unquote::read(&right.value, self, depth);
            }
        }
    }

    fn simple(&mut self, command: &ast::SimpleCommand, timed: bool, depth: usize) {
        let mut simple = SimpleCommand::default();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, ItemPosition::BeforeName, &mut simple, depth);
        }
        if let Some(name) = &command.word_or_name {
            let name = unquote::read(&name.value, self, depth);
            simple.words.push(name);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, ItemPosition::AfterName, &mut simple, depth);
        }
        self.both_outputs(command);
        match simple.words.first() {
            None => self.add_redirections(simple),
            Some(name) => {
                if timed && name.shown().starts_with('-') {
                    self.doubt("options of time differ from shell to shell");
                }
                // In a POSIX sh `time` is a program that runs others.
                let is_bare = !timed && simple.inputs.is_empty() && simple.outputs.is_empty();
                simple.is_control = is_bare && is_control(&simple.words);
                self.command(simple, depth);
            }
        }
    }

    /// Handles `a &>f b`. For bash it is one command, for a POSIX sh it is `a &` and then `>f b`.
    fn both_outputs(&mut self, command: &ast::SimpleCommand) {
        let both = |item: &ast::CommandPrefixOrSuffixItem| {
            matches!(
                item,
                ast::CommandPrefixOrSuffixItem::IoRedirect(ast::IoRedirect::OutputAndError(..))
            )
        };
        let before = command.prefix.iter().flat_map(|prefix| &prefix.0).any(both);
        let after = command
            .suffix
            .iter()
            .flat_map(|suffix| &suffix.0)
            .skip_while(|item| !both(item));
        if before || after.skip(1).any(|item| !both(item)) {
            self.doubt("what follows &>… is another command to a POSIX sh");
        }
    }

    fn item(
        &mut self,
        item: &ast::CommandPrefixOrSuffixItem,
        position: ItemPosition,
        simple: &mut SimpleCommand,
        depth: usize,
    ) {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, simple, depth),
            ast::CommandPrefixOrSuffixItem::Word(word) => simple.words.push(unquote::read(&word.value, self, depth)),
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, raw) => match position {
                ItemPosition::BeforeName => self.assignment(assignment, raw, depth),
                ItemPosition::AfterName => simple.words.push(unquote::read(&raw.value, self, depth)),
            },
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, depth);
                simple.words.push(Word::Dynamic("<(…)".to_owned()));
            }
        }
    }

    fn assignment(&mut self, assignment: &ast::Assignment, raw: &ast::Word, depth: usize) {
        let name = match &assignment.name {
            ast::AssignmentName::VariableName(name) => name,
            ast::AssignmentName::ArrayElementName(name, _) => {
                self.doubt("an array subscript is evaluated");
                name
            }
        };
        match &assignment.value {
            ast::AssignmentValue::Scalar(value) => {
                let value = unquote::read(&value.value, self, depth);
                self.assign(raw.value.clone(), name, Some(&value));
            }
            ast::AssignmentValue::Array(elements) => {
                self.assign(raw.value.clone(), name, None);
                for (key, value) in elements {
                    if key.is_some() {
                        self.doubt("an array subscript is evaluated");
                    }
                    let value = unquote::read(&value.value, self, depth);
                    self.values.push(value);
                }
            }
        }
    }

    fn redirects(&mut self, redirects: Option<&ast::RedirectList>, depth: usize) {
        let mut simple = SimpleCommand::default();
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect, &mut simple, depth);
        }
        self.add_redirections(simple);
    }

    /// Adds the redirections of a compound command, or of no command.
    fn add_redirections(&mut self, mut simple: SimpleCommand) {
        self.inputs.append(&mut simple.inputs);
        self.outputs.append(&mut simple.outputs);
    }

    fn redirect(&mut self, redirect: &ast::IoRedirect, simple: &mut SimpleCommand, depth: usize) {
        match redirect {
            ast::IoRedirect::File(_, kind, target) => self.file(kind, target, simple, depth),
            ast::IoRedirect::HereDocument(_, document) => {
                let end = &document.here_end.value;
                let bare = end.trim_matches(|c| c == '\'' || c == '"');
                if bare.is_empty() || !bare.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                    self.doubt("the end mark of a here-document is not a plain word");
                }
                let text = if document.requires_expansion {
                    unquote::read_document(&document.doc.value, self, depth)
                } else {
                    Word::Literal(document.doc.value.clone())
                };
                self.values.push(text);
            }
            ast::IoRedirect::HereString(_, text) => {
                let text = unquote::read(&text.value, self, depth);
                self.values.push(text);
            }
            ast::IoRedirect::OutputAndError(target, _append) => {
                let target = unquote::read(&target.value, self, depth);
                if target.literal() != Some("/dev/null") {
                    simple.outputs.push(target);
                }
            }
        }
    }

    fn file(
        &mut self,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
        simple: &mut SimpleCommand,
        depth: usize,
    ) {
        let target = match target {
            ast::IoFileRedirectTarget::Fd(_) => return,
            ast::IoFileRedirectTarget::ProcessSubstitution(_, subshell) => return self.list(&subshell.list, depth),
            ast::IoFileRedirectTarget::Filename(word) => unquote::read(&word.value, self, depth),
            ast::IoFileRedirectTarget::Duplicate(word) => {
                if word.value.starts_with('-') && word.value != "-" {
                    self.doubt("what follows >&- is a word of its own to some shells");
                }
                match unquote::read(&word.value, self, depth) {
                    Word::Literal(text) if is_descriptor(&text) => return,
                    other => other,
                }
            }
        };
        match kind {
            ast::IoFileRedirectKind::Read | ast::IoFileRedirectKind::DuplicateInput => simple.inputs.push(target),
            ast::IoFileRedirectKind::Write
            | ast::IoFileRedirectKind::Append
            | ast::IoFileRedirectKind::ReadAndWrite
            | ast::IoFileRedirectKind::Clobber
            | ast::IoFileRedirectKind::DuplicateOutput => {
                if target.literal() != Some("/dev/null") {
                    simple.outputs.push(target);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum ItemPosition {
    BeforeName,
    AfterName,
}

/// Whether the target of `>&` is a descriptor to copy (`1`), move (`1-`) or close (`-`).
fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    !text.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
