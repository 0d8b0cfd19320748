//! The strictest answer to all parts of a line.

use std::ffi::OsStr;

use super::analysis::{Analysis, SimpleCommand};
use super::judgement::{Judgement, Part, RuleNetwork, RuleRef};
use super::matching::{Directory, Match, Roots, demand, forbids, matches};
use super::word::Word;
use crate::policy::path::escape;
use crate::policy::{Demand, Network, Requirement, ShellRule};

/// Judges a shell line; `roots` says whether a path argument lies in the named roots.
///
/// Without rules, and with a default that asks nothing, the line is pre-approved and not parsed. Otherwise a line that is not
/// understood needs at least approval.
///
/// No pattern matches an assignment, or a write by redirection outside the `sandbox_paths` of the matching rule. The default
/// decides about these.
pub fn judge(
    line: &str,
    rules: &[ShellRule],
    default: &ShellRule,
    roots: &dyn Fn(&str, &[String]) -> bool,
) -> Judgement {
    judge_in(Directory::Start, line, rules, default, roots)
}

/// The same for a line that starts in `directory`. In another directory than that of the session, a pattern with a relative path
/// allows nothing, and forbids as before.
pub fn judge_in(
    directory: Directory,
    line: &str,
    rules: &[ShellRule],
    default: &ShellRule,
    roots: &dyn Fn(&str, &[String]) -> bool,
) -> Judgement {
    if asks_nothing(rules, default) {
        return unread();
    }
    decide((&Analysis::of_line(line), directory), rules, default, roots)
}

/// Judges a command given as words, without a shell.
///
/// A word that is not UTF-8 matches no pattern word and is in no root.
pub fn judge_argv<S: AsRef<OsStr>>(
    argv: &[S],
    rules: &[ShellRule],
    default: &ShellRule,
    roots: &dyn Fn(&str, &[String]) -> bool,
) -> Judgement {
    judge_argv_in(Directory::Start, argv, rules, default, roots)
}

/// The same for a command that starts in `directory`.
pub fn judge_argv_in<S: AsRef<OsStr>>(
    directory: Directory,
    argv: &[S],
    rules: &[ShellRule],
    default: &ShellRule,
    roots: &dyn Fn(&str, &[String]) -> bool,
) -> Judgement {
    if asks_nothing(rules, default) {
        return unread();
    }
    decide((&Analysis::of_argv(argv), directory), rules, default, roots)
}

/// Whether some simple command of the line matches the rule, as an example under `match` claims.
///
/// Roots are not checked: they need not exist for an example.
pub fn rule_matches(rule: &ShellRule, line: &str) -> bool {
    let analysis = Analysis::of_line(line);
    analysis
        .commands
        .iter()
        .any(|command| matches(rule, command, Directory::Start, &|_, _| true) == Match::Yes)
}

/// Whether the rule alone decides about the line, which an example under `not_match` must not do.
///
/// A rule that forbids decides as soon as one command may match. A rule that allows must match every command, and nothing
/// else may be in the line.
pub fn rule_covers(rule: &ShellRule, line: &str) -> bool {
    let analysis = Analysis::of_line(line);
    let directory = run_directory(&analysis, Directory::Start);
    let answer = |command: &SimpleCommand| matches(rule, command, directory, &|_, _| true);
    if forbids(rule) {
        return analysis
            .commands
            .iter()
            .chain(&analysis.scripts)
            .any(|command| answer(command) != Match::No);
    }
    let leftover = analysis.doubt.is_some() || !analysis.assignments.is_empty() || !analysis.outputs.is_empty();
    let covered = |command: &SimpleCommand| match answer(command) {
        Match::Yes => command.outputs.is_empty() || rule.sandbox_paths.is_some(),
        Match::Maybe => false,
        Match::No => command.is_control,
    };
    let speaks = analysis.commands.iter().any(|command| answer(command) == Match::Yes);
    !leftover && speaks && analysis.commands.iter().all(covered)
}

fn asks_nothing(rules: &[ShellRule], default: &ShellRule) -> bool {
    rules.is_empty() && demand(default) == Demand::None && default.sandbox_paths.is_none()
}

fn unread() -> Judgement {
    Judgement {
        requirement: Requirement::PreApproved,
        demand: Demand::None,
        parts: Vec::new(),
        reason: None,
        narrow: None,
        network: RuleNetwork::Default,
        not_understood: None,
        dangerous: None,
    }
}

/// The directory in which the commands of a line run. The line starts in `directory`.
const fn run_directory(analysis: &Analysis, directory: Directory) -> Directory {
    if analysis.changes_directory {
        Directory::Unknown
    } else {
        directory
    }
}

fn decide(
    (analysis, directory): (&Analysis, Directory),
    rules: &[ShellRule],
    default: &ShellRule,
    roots: &Roots<'_>,
) -> Judgement {
    let mut verdict = Judgement {
        not_understood: analysis.doubt.clone(),
        ..unread()
    };
    let mut networks = NetworkRules::default();
    let directory = run_directory(analysis, directory);
    for command in &analysis.commands {
        verdict.command(command, directory, rules, default, roots, &mut networks);
    }
    for script in &analysis.scripts {
        verdict.script(script, directory, rules, roots);
    }
    for assignment in &analysis.assignments {
        verdict.by_default(vec![assignment.clone()], default);
    }
    for output in &analysis.outputs {
        verdict.by_default(vec![">".to_owned(), output.shown().to_owned()], default);
    }
    let has_control = analysis.has_control || analysis.commands.iter().any(|command| command.is_control);
    if verdict.parts.is_empty() && !(has_control && analysis.inputs.is_empty()) {
        // No command was found, so the default decides.
        verdict.stricter(demand(default), default);
    }
    if verdict.not_understood.is_some() {
        verdict.stricter(demand(default).max(Demand::Required), default);
    }
    // bash opens a connection for these names.
    let connects = |file: &Word| {
        file.literal()
            .is_none_or(|path| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"))
    };
    // No rule matches an assignment, an input of a compound command, or a part that is not understood, so these get the
    // network of the default.
    let is_beside = !analysis.assignments.is_empty() || analysis.inputs.iter().any(connects);
    if verdict.not_understood.is_some() || is_beside {
        networks.has_default = true;
    }
    verdict.network = networks.into();
    verdict
}

/// The networks of the commands of a line so far.
#[derive(Default)]
struct NetworkRules {
    own: Option<Network>,
    has_default: bool,
}

impl NetworkRules {
    /// Adds the rule that decides about one command.
    fn add(&mut self, rule: &ShellRule) {
        match &rule.network {
            Some(new) => {
                let all = self
                    .own
                    .as_ref()
                    .map_or_else(|| new.network.clone(), |own| own.and(&new.network));
                self.own = Some(all);
            }
            None => self.has_default = true,
        }
    }
}

impl From<NetworkRules> for RuleNetwork {
    fn from(NetworkRules { own, has_default }: NetworkRules) -> Self {
        own.map_or(Self::Default, |network| Self::Own {
            network,
            by_all: !has_default,
        })
    }
}

impl Judgement {
    fn command(
        &mut self,
        command: &SimpleCommand,
        directory: Directory,
        rules: &[ShellRule],
        default: &ShellRule,
        roots: &Roots<'_>,
        networks: &mut NetworkRules,
    ) {
        let answers: Vec<Match> = rules
            .iter()
            .map(|rule| matches(rule, command, directory, roots))
            .collect();
        let mut decided = None;
        let mut strictest = Demand::None;
        for (index, (rule, answer)) in rules.iter().zip(&answers).enumerate() {
            match answer {
                Match::Yes if forbids(rule) => {
                    decided = Some((index, rule));
                    strictest = Demand::Deny;
                    break;
                }
                Match::Maybe if forbids(rule) => {
                    self.not_understood
                        .get_or_insert_with(|| format!("it may be `{}`", rule.pattern.join(" ")));
                }
                Match::Maybe if decided.is_none() => {
                    strictest = strictest.max(rule.approval);
                    networks.add(rule);
                }
                Match::Yes if decided.is_none() => {
                    decided = Some((index, rule));
                    strictest = strictest.max(rule.approval);
                }
                Match::No | Match::Maybe | Match::Yes => {}
            }
        }
        // It starts no program and writes no file.
        if command.is_control && decided.is_none() && strictest == Demand::None {
            return;
        }
        let (rule_ref, rule) = decided.map_or((RuleRef::Default, default), |(index, rule)| {
            (RuleRef::Rule(index), rule)
        });
        networks.add(rule);
        self.part(
            command.words.iter().map(|word| word.shown().to_owned()).collect(),
            rule_ref,
            rule,
            strictest,
        );
        if matches!(rule_ref, RuleRef::Default) || rule.sandbox_paths.is_none() {
            for output in &command.outputs {
                self.by_default(vec![">".to_owned(), output.shown().to_owned()], default);
            }
        }
    }

    /// Judges a script. The shell that reads it was judged before, so only rules that forbid it count.
    fn script(&mut self, script: &SimpleCommand, directory: Directory, rules: &[ShellRule], roots: &Roots<'_>) {
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| forbids(rule)) {
            match matches(rule, script, directory, roots) {
                Match::No => {}
                Match::Maybe => {
                    self.not_understood
                        .get_or_insert_with(|| format!("it may be `{}`", rule.pattern.join(" ")));
                }
                Match::Yes => {
                    let words = script.words.iter().map(|word| word.shown().to_owned()).collect();
                    self.part(words, RuleRef::Rule(index), rule, Demand::Deny);
                }
            }
        }
    }

    fn by_default(&mut self, words: Vec<String>, default: &ShellRule) {
        self.part(words, RuleRef::Default, default, Demand::None);
    }

    fn part(&mut self, words: Vec<String>, rule_ref: RuleRef, rule: &ShellRule, at_least: Demand) {
        let demand = demand(rule).max(at_least);
        self.parts.push(Part {
            words,
            rule: rule_ref,
            demand,
            requirement: demand.requirement(),
        });
        self.stricter(demand, rule);
        if let Some(names) = &rule.sandbox_paths {
            let kept = match self.narrow.take() {
                None => names.clone(),
                Some(before) => before.into_iter().filter(|name| names.contains(name)).collect(),
            };
            self.narrow = Some(kept);
        }
    }

    fn stricter(&mut self, demand: Demand, rule: &ShellRule) {
        if demand == Demand::Deny && self.reason.is_none() {
            self.reason = Some(forbidden_by(rule));
        }
        self.demand = self.demand.max(demand);
        self.requirement = self.demand.requirement();
    }
}

/// The line that forbids a command, and the reason that it gives.
fn forbidden_by(rule: &ShellRule) -> String {
    let line = if rule.pattern.is_empty() {
        format!(
            "no rule matches it, and `shell.default` ({}) forbids the rest",
            rule.origin
        )
    } else {
        let pattern = escape(rule.pattern.join(" ").as_bytes());
        format!("the rule `{pattern}` ({}) forbids it", rule.origin)
    };
    match &rule.reason {
        Some(reason) => format!("{line}: {}", escape(reason.as_bytes())),
        None => line,
    }
}
