//! A judged command → the question a person is asked.

use super::call::{ShellCommand, words};
use super::command_payload::{self, QuestionSubject, QuestionText};
use super::programs::Programs;
use crate::approval::{AnswerOf, ApprovalRequest, CommandView, Lazy, Presentation};
use crate::policy::path::{display, escape};
use crate::policy::shell::{Judgement, Part, RuleRef};
use crate::policy::{Network, Origin, Policy, Requirement, Right, Root, ShellRule};
use crate::profile::Profile;

pub(super) fn request(text: QuestionText<'_>, subject: QuestionSubject<'_>) -> ApprovalRequest {
    let words = command_payload::words(&text, &subject);
    let facts = command_payload::facts(&subject);
    let scopes = command_payload::scopes(&text, &subject);
    let payload = command_payload::whole(&words, &facts);
    let QuestionSubject {
        policy,
        command,
        narrow,
        derived,
        regime,
        programs,
        ..
    } = subject;
    let programs = |is_writable| {
        let these = programs
            .iter()
            .filter(move |program| program.is_writable == is_writable);
        these.map(|program| program.path.clone()).collect()
    };
    let profile = &*derived.profile;
    let view = CommandView {
        command: self::words(command.command),
        notes: text.notes,
        directory: command.directory.as_path().to_owned(),
        programs: programs(false),
        writable_programs: programs(true),
        weaker: regime.weaker(),
        regime: regime.to_string(),
        may_read: policy
            .roots
            .iter()
            .filter(|root| root.read_approval.requirement() == Requirement::NeedsApproval)
            .map(|root| root.path.as_path().to_owned())
            .collect(),
        may_write: policy
            .roots
            .iter()
            .filter(|root| root.rights.has(Right::Write) && writes_in(profile, root))
            .filter(|root| narrow.is_none_or(|names| names.contains(&root.name)))
            .map(|root| root.path.as_path().to_owned())
            .collect(),
        may_reach: match &profile.network {
            Network::Off => "nothing".to_owned(),
            Network::Hosts(list) => list.to_string(),
            Network::Full => "every host".to_owned(),
        },
    };
    let mut why = text.why;
    let answer = match &text.unresolved {
        None => AnswerOf::Anyone,
        Some(unresolved) => {
            why.push(format!("a yes is not remembered: {}", escape(unresolved.as_bytes())));
            AnswerOf::AnyoneOnce
        }
    };
    ApprovalRequest {
        answer,
        payload,
        scopes: scopes.offered,
        covered_by: scopes.hidden,
        subject: words,
        facts,
        presentation: Lazy::new(move || Ok(Presentation::Command(view.clone()))),
        allowed_by: text.allowed_by,
        why,
        caller: command.caller.map(str::to_owned),
        ..ApprovalRequest::new(text.tool_name, text.description)
    }
    .demanded(text.demand)
}

/// Whether anything of the root can be written: flags and ceilings may have taken it.
fn writes_in(profile: &Profile, root: &Root) -> bool {
    let mut writes = profile.grants.iter().filter(|grant| grant.rights.has(Right::Write));
    writes.any(|grant| grant.path.is_within(&root.path) || root.path.is_within(&grant.path))
}

/// The most characters of a command in a list, a log or an error.
const MAX_DESCRIPTION: usize = 200;

/// The command in its own words, behind a `$`.
pub(super) fn description(command: &ShellCommand) -> String {
    let line = escape(&words(command));
    match line.char_indices().nth(MAX_DESCRIPTION) {
        None => format!("$ {line}"),
        Some((end, _)) => format!("$ {}…", line.get(..end).unwrap_or_default()),
    }
}

/// What rules say of their own parts, what is not understood, and which of these programs are missing.
pub(super) fn notes(policy: &Policy, judgement: &Judgement, missing: &[String]) -> Vec<(String, String)> {
    let of_rules = judgement.parts.iter().filter_map(|part| match part.rule {
        RuleRef::Rule(index) => {
            let said = policy.rules.get(index)?.description.clone()?;
            Some((part.words.join(" "), said))
        }
        RuleRef::Default => None,
    });
    let unclear = judgement.not_understood.as_ref();
    let unclear = unclear.map(|what| (String::new(), format!("the rules do not understand all of it: {what}")));
    let missing = missing
        .iter()
        .map(|name| (name.clone(), "there is no such program in this sandbox".to_owned()));
    let mut notes: Vec<(String, String)> = of_rules.chain(unclear).chain(missing).collect();
    notes.dedup();
    notes
}

/// The programs of a command that lie in the session's reach under a bare name.
pub(super) struct WritablePrograms<'a>(pub(super) &'a Programs);

impl WritablePrograms<'_> {
    /// The writable program that a part starts, with its path.
    fn of(&self, part: &Part) -> Option<(&str, String)> {
        let name = part.words.first()?;
        let found = self.0.found.iter().find(|program| program.name == *name)?;
        self.0.planted(name).map(|path| (found.name.as_str(), display(path)))
    }

    /// What would allow it, where the bare name of one stands in the way.
    pub(super) fn allowed_by(&self, judgement: &Judgement) -> Option<String> {
        // For what is not understood no rule speaks, whatever its programs are.
        if judgement.not_understood.is_some() {
            return None;
        }
        let (name, path) = judgement
            .parts
            .iter()
            .filter(|part| part.requirement == Requirement::NeedsApproval)
            .find_map(|part| self.of(part))?;
        Some(format!(
            "`{}` is {path}, which this session may write, and a rule for the bare name does not speak for it; a root for its \
             directory with `mode: ro` and `execute: true`, or a rule `{{pattern: {path}, approval: none}}` and the command \
             written with that path, would allow it",
            escape(name.as_bytes()),
        ))
    }
}

fn rule_of<'p>(policy: &'p Policy, part: &Part) -> Option<&'p ShellRule> {
    match part.rule {
        RuleRef::Rule(index) => policy.rules.get(index),
        RuleRef::Default => Some(&policy.default_rule),
    }
}

/// The lines that say why approval is needed.
pub(super) fn why(policy: &Policy, judgement: &Judgement, planted: &WritablePrograms<'_>) -> Vec<String> {
    let subject = judgement
        .parts
        .iter()
        .filter(|part| part.requirement == Requirement::NeedsApproval);
    let mut why: Vec<String> = subject
        .map(|part| {
            let words = crate::policy::path::escape(part.words.join(" ").as_bytes());
            let planted = planted.of(part).map(|(_, path)| path);
            match (part.rule, rule_of(policy, part), planted) {
                (RuleRef::Rule(_), Some(rule), Some(path)) => format!(
                    "`{words}` needs a yes: its program is {path}, which this session may write; the rule at {} is for a program \
                     outside",
                    rule.origin
                ),
                (RuleRef::Default, _, Some(path)) => {
                    format!("`{words}` needs a yes: its program is {path}, which this session may write")
                }
                (RuleRef::Rule(_), Some(rule), None) => {
                    format!("`{words}` {} by the rule at {}", rule.approval.phrase(), rule.origin)
                }
                (RuleRef::Default, Some(rule), None) => match &rule.origin {
                    Origin::Builtin(_) => format!("`{words}` {} by default: no rule matches", rule.approval.phrase()),
                    line => format!(
                        "`{words}` {}: no rule matches, and `shell.default` ({line}) asks",
                        rule.approval.phrase()
                    ),
                },
                (RuleRef::Rule(_) | RuleRef::Default, None, _) => format!("`{words}` needs a yes"),
            }
        })
        .collect();
    if let Some(pattern) = &judgement.dangerous {
        why.push(format!(
            "`tools: {{shell: {{dangerous_patterns: …}}}}` at {} has a person asked about each line that `{}` matches",
            pattern.origin,
            escape(pattern.expression.as_str().as_bytes())
        ));
    }
    if let Some(what) = &judgement.not_understood {
        why.push(format!(
            "the rules do not understand all of it: {}",
            escape(what.as_bytes())
        ));
    }
    why.dedup();
    why
}
