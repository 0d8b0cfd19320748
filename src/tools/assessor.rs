//! What a command needs before it may run, by rules and config.
//!
//! The assessor decides and does nothing else: it starts, asks and records nothing. What it must know of files is looked up between its
//! steps, by whoever asks it: [`seek`](Assessor::seek) says which programs, [`rule`](Assessor::rule) judges by what they are, and
//! [`assess`](Assessor::assess) makes the question.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt as _;

use super::allowing;
use super::call::{NAME, ShellCommand, words};
use super::command_payload::{QuestionSubject, QuestionText};
use super::command_question::{self, WritablePrograms};
use super::files::Operands;
use super::permit::{CommandRequest, Permit};
use super::profiles::Derived;
use super::programs::{Program, Programs, program_at, searches_in_reach};
use super::regime::RegimeLine;
use super::search::Search;
use super::session_policy::SessionPolicy;
use super::tool::{Assessment, OverrideByConfig};
use crate::config::CustomTool;
use crate::policy::shell::{
    Directory, Judgement, Names, Part, RuleNetwork, RuleRef, judge_argv_in, judge_in, names_of_argv, names_of_line,
};
use crate::policy::{AbsPath, Demand, Policy, Requirement, ShellRule};
use crate::profile::{ApprovedRoots, Call, InAdvance};

/// Assesses the commands of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Assessor<'a>(pub(super) &'a SessionPolicy);

/// What must be known of a command's programs before it is judged.
#[derive(Debug)]
pub(super) struct Sought {
    /// What it names, where somebody answers for it.
    pub(super) names: Names,
    /// Whether the files are looked for that its programs are.
    pub(super) looks_up_programs: bool,
    is_answered: bool,
}

/// A command as the rules judge it.
#[derive(Debug)]
pub(super) struct Ruled {
    judgement: Judgement,
    /// What its profile is derived for, where nobody is asked.
    pub(super) call: Call,
    search: Search,
    pub(super) next: Next,
}

/// What comes of a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It never runs.
    Blocked,
    /// It runs, and nobody can want to ask.
    Runs,
    /// A question is made.
    Question,
}

/// What a question is made of, beside the command.
#[derive(Debug)]
pub(super) struct Facts {
    /// The profile that it would run under after a yes.
    pub(super) derived: Derived,
    pub(super) regime: RegimeLine,
}

impl Assessor<'_> {
    /// What must be looked up of a command.
    pub(super) fn seek(self, wanted: CommandRequest<'_>) -> Sought {
        let policy = &self.0.policy;
        let judgement = judged(policy, wanted.command, (wanted.directory, wanted.start));
        let asks = judgement.requirement != Requirement::PreApproved || wanted.authority.may_ask(policy, NAME);
        // Also where an entry of `tools:` or a hook has a person asked, and no rule.
        let is_answered = asks
            || needs_answer(policy, &judgement)
            || answered_in_advance(policy, &judgement, &Programs::default()) != ApprovedRoots::None;
        // Where nothing of PATH is in the session's reach, names are looked up for a question alone.
        let is_looked_up = is_answered && (asks || searches_in_reach(self.0, wanted.environment));
        Sought {
            names: if is_answered {
                names(wanted.command)
            } else {
                Names::default()
            },
            looks_up_programs: is_looked_up && judgement.requirement != Requirement::Blocked,
            is_answered,
        }
    }

    /// Judges a command whose programs are these.
    pub(super) fn rule(self, wanted: CommandRequest<'_>, sought: &Sought, programs: &Programs) -> Ruled {
        let policy = &self.0.policy;
        // A rule with a bare name speaks for a program outside what the session may write.
        let rules = outside(policy, &policy.rules, programs);
        let judgement = judged_by(policy, &rules, wanted.command, (wanted.directory, wanted.start));
        let approved_roots = answered_in_advance(policy, &judgement, programs);
        let may_ask = wanted.authority.may_ask(policy, NAME);
        // The files that were found may show that the rule answers for none of them.
        let is_answered = sought.is_answered
            && (may_ask || approved_roots != ApprovedRoots::None || needs_answer(policy, &judgement));
        Ruled {
            call: Call {
                approved_roots,
                narrow: judgement.narrow.clone(),
                network: judgement.network.override_of(&policy.network),
            },
            search: if is_answered {
                Search::Outside {
                    named: programs.named.clone(),
                    passed_over: programs.passed_over.clone(),
                }
            } else {
                Search::Everywhere
            },
            next: match judgement.requirement {
                Requirement::Blocked => Next::Blocked,
                Requirement::NeedsApproval => Next::Question,
                Requirement::PreApproved if may_ask => Next::Question,
                // A question that is never asked is not made.
                Requirement::PreApproved => Next::Runs,
            },
            judgement,
        }
    }

    /// What a command needs that was judged so and names these files, and what it may do; `facts` where a question is made.
    pub(super) fn assess(
        self,
        wanted: CommandRequest<'_>,
        ruled: Ruled,
        (names, programs): (&Names, &Programs),
        operands: Operands,
        facts: Option<Facts>,
    ) -> (Assessment, Permit) {
        let policy = &self.0.policy;
        let Ruled {
            judgement,
            call,
            search,
            next: _,
        } = ruled;
        let permit = Permit {
            call,
            operands,
            search,
            override_by_config: match judgement.dangerous {
                Some(_) => OverrideByConfig::Never,
                None => OverrideByConfig::Possible,
            },
        };
        if judgement.requirement == Requirement::Blocked {
            let why = judgement.reason;
            let why = why.unwrap_or_else(|| "a rule of the config forbids it".to_owned());
            return (Assessment::Blocked(why), permit);
        }
        let Some(Facts { derived, regime }) = facts else {
            return (Assessment::PreApproved(None), permit);
        };
        // What changes the meaning of a name may change it for these.
        let shown: &[Program] = names.unresolved.as_ref().map_or(&programs.found, |_| &[]);
        let missing: &[String] = names.unresolved.as_ref().map_or(&programs.missing, |_| &[]);
        let planted = WritablePrograms(programs);
        let told = QuestionText {
            tool_name: NAME,
            description: command_question::description(wanted.command),
            notes: command_question::notes(policy, &judgement, missing),
            allowed_by: planted.allowed_by(&judgement).unwrap_or_else(|| {
                allowing::allow_hint(&policy.rules, &policy.roots, &judgement, &|rules| {
                    judged_by(
                        policy,
                        &outside(policy, &rules, programs),
                        wanted.command,
                        (wanted.directory, wanted.start),
                    )
                })
            }),
            why: command_question::why(policy, &judgement, &planted),
            demand: judgement.demand,
            unresolved: unresolved(names.why_not_remembered(), &permit.operands),
            asked_by: asked_by(policy, &judgement),
        };
        let request = Box::new(command_question::request(
            told,
            QuestionSubject {
                policy,
                command: wanted,
                narrow: judgement.narrow.as_deref(),
                derived: &derived,
                operands: permit.operands.found(),
                programs: shown,
                regime,
            },
        ));
        let assessment = match judgement.requirement {
            Requirement::PreApproved => Assessment::PreApproved(Some(request)),
            Requirement::NeedsApproval | Requirement::Blocked => Assessment::NeedsApproval(request),
        };
        (assessment, permit)
    }

    /// What a call of a custom tool needs, whose command is this and names these files.
    pub(super) fn assess_custom(
        self,
        tool: &CustomTool,
        wanted: CommandRequest<'_>,
        (narrow, unresolved_names): (Option<&[String]>, Option<String>),
        operands: &Operands,
        facts: Facts,
    ) -> Assessment {
        let line = format!("the tool `{}` ({}) {}", tool.name, tool.origin, tool.approval.phrase());
        let told = QuestionText {
            tool_name: &tool.name,
            description: format!(
                "{}: {}",
                tool.description,
                command_question::description(wanted.command)
            ),
            notes: Vec::new(),
            allowed_by: format!("{line}; `approval: none` there would allow it"),
            why: vec![line],
            demand: tool.approval,
            unresolved: unresolved(unresolved_names, operands),
            asked_by: None,
        };
        let request = Box::new(command_question::request(
            told,
            QuestionSubject {
                policy: &self.0.policy,
                command: wanted,
                narrow,
                derived: &facts.derived,
                operands: operands.found(),
                programs: &program_at(self.0, wanted.command),
                regime: facts.regime,
            },
        ));
        Assessment::demanded(tool.approval, request)
    }
}

/// What a command names.
pub(super) fn names(command: &ShellCommand) -> Names {
    match command {
        ShellCommand::Line(line) => match line.to_str() {
            Some(line) => names_of_line(line),
            None => names_of_argv(&[line]),
        },
        ShellCommand::Argv(argv) => names_of_argv(argv),
    }
}

/// Why a yes to a command with these files is not remembered, if it is not.
fn unresolved(unresolved: Option<String>, operands: &Operands) -> Option<String> {
    unresolved.or_else(|| operands.doubt().map(str::to_owned))
}

/// Whether a command that was judged so runs because somebody answered for it: a rule, or whoever is asked.
fn needs_answer(policy: &Policy, judgement: &Judgement) -> bool {
    let by_default = |part: &Part| match part.rule {
        RuleRef::Default => true,
        RuleRef::Rule(_) => part.demand == Demand::None && policy.default_rule.approval == Demand::None,
    };
    judgement.requirement != Requirement::PreApproved
        || judgement.network != RuleNetwork::Default
        || !policy.default_rule.allowed
        || !judgement.parts.iter().all(by_default)
}

/// The roots for which rules answer in advance, or the entry of the shell under `tools:`. `shell.default` names no command, so it
/// answers for none; nor does a rule answer for a program of its name that the session may write.
fn answered_in_advance(policy: &Policy, judgement: &Judgement, programs: &Programs) -> ApprovedRoots {
    let answer_of = |part: &Part| match part.rule {
        RuleRef::Default => None,
        RuleRef::Rule(index) => {
            let rule = policy.rules.get(index).filter(|rule| rule.approval == Demand::None)?;
            let answer = || InAdvance::by(rule.sandbox_paths.as_deref());
            (part.demand == Demand::None && !is_planted(rule, programs)).then(answer)
        }
    };
    let mut answers = judgement.parts.iter().map(answer_of);
    let first = answers.next().flatten();
    let by_rules = first.and_then(|first| answers.try_fold(first, |all, answer| Some(all.and(&answer?))));
    let by_entry = || {
        let entry = policy.tools.get(NAME).filter(|entry| entry.approval == Demand::None);
        entry.map(|_| InAdvance::by(None))
    };
    by_rules
        .or_else(by_entry)
        .map_or(ApprovedRoots::None, ApprovedRoots::InAdvance)
}

/// The one line that makes a command a question. A yes to a command that it asks about covers none that another line asks about, nor
/// one that a dangerous pattern matches.
fn asked_by(policy: &Policy, judgement: &Judgement) -> Option<String> {
    let ([part], None) = (judgement.parts.as_slice(), &judgement.dangerous) else {
        return None;
    };
    let rule = match part.rule {
        RuleRef::Default => &policy.default_rule,
        RuleRef::Rule(index) => policy.rules.get(index)?,
    };
    Some(format!("{} {}", rule.origin, rule.pattern.join(" ")))
}

/// Whether the bare name that a rule speaks of leads to a program in the session's reach.
fn is_planted(rule: &ShellRule, programs: &Programs) -> bool {
    let name = rule.pattern.first();
    name.is_some_and(|name| programs.planted(name).is_some())
}

/// The rules as they speak where these programs are what a command names: for the bare name of one in the session's reach, a rule
/// that asks nothing demands what the default does, asks if that allows nothing, and gives no network of its own.
fn outside(policy: &Policy, rules: &[ShellRule], programs: &Programs) -> Vec<ShellRule> {
    let default = &policy.default_rule;
    let without_rule = if default.allowed && default.approval == Demand::None {
        Demand::None
    } else {
        Demand::Required
    };
    let asked = |rule: &ShellRule| {
        let is_planted = is_planted(rule, programs);
        let mut rule = rule.clone();
        if is_planted {
            rule.approval = rule.approval.max(without_rule);
            rule.network = None;
        }
        rule
    };
    rules.iter().map(asked).collect()
}

/// The judgement of a command by the rules of a policy: where it starts, and where the session does.
pub(super) fn judged(policy: &Policy, command: &ShellCommand, place: (&AbsPath, &AbsPath)) -> Judgement {
    judged_by(policy, &policy.rules, command, place)
}

/// A command as text: a line as it is; of words each, all of them with blanks between, and quoted for a shell.
fn written(command: &ShellCommand) -> Vec<Cow<'_, str>> {
    match command {
        ShellCommand::Line(line) => vec![String::from_utf8_lossy(line.as_bytes())],
        ShellCommand::Argv(argv) => {
            let mut texts: Vec<Cow<'_, str>> = argv
                .iter()
                .map(|word| String::from_utf8_lossy(word.as_bytes()))
                .collect();
            texts.push(texts.join(" ").into());
            texts.push(String::from_utf8_lossy(&words(command)).into_owned().into());
            texts
        }
    }
}

/// The same, by these rules in place of its own.
fn judged_by(
    policy: &Policy,
    rules: &[ShellRule],
    command: &ShellCommand,
    (directory, start): (&AbsPath, &AbsPath),
) -> Judgement {
    let lies_in = |argument: &str, names: &[String]| {
        let Ok(path) = AbsPath::new(directory.as_path().join(argument)) else {
            return false;
        };
        policy.root_for(&path).is_some_and(|root| names.contains(&root.name))
    };
    let default = &policy.default_rule;
    // The same directory may be spelled otherwise.
    let is_start = directory == start || std::fs::canonicalize(start).is_ok_and(|start| start == directory.as_path());
    let from = if is_start { Directory::Start } else { Directory::Other };
    let judgement = match command {
        ShellCommand::Line(line) => match line.to_str() {
            Some(line) => judge_in(from, line, rules, default, &lies_in),
            // A line that is not text is judged by what is shown of it, which no rule can understand.
            None => judge_argv_in(from, &[line], rules, default, &lies_in),
        },
        ShellCommand::Argv(argv) => judge_argv_in(from, argv, rules, default, &lies_in),
    };
    judgement.asked_by(&policy.dangerous, &written(command))
}
