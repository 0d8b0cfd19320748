//! A judged command → the question a person is asked.

use std::os::unix::ffi::OsStrExt;

use super::call::{ShellCommand, words};
use super::files::Operand;
use super::permit::CommandRequest;
use super::profiles::Derived;
use super::programs::{Program, Programs};
use super::tool_question;
use crate::approval::{AnswerOf, ApprovalRequest, CommandView, Lazy, Presentation, Remember};
use crate::policy::path::{display, escape};
use crate::policy::shell::{Judgement, Part, RuleRef};
use crate::policy::{Network, Policy, Requirement, Right, Root};
use crate::profile::Profile;

pub(super) struct QuestionText<'a> {
    pub(super) tool_name: &'a str,
    pub(super) description: String,
    pub(super) allowed_by: String,
    pub(super) why: Vec<String>,
    pub(super) remember: Remember,
    /// Why no yes to it is remembered, if none is: it may name files that are not known before it runs.
    pub(super) unresolved: Option<String>,
}

/// What a question is about: a command that would run under `profile`.
pub(super) struct QuestionSubject<'a> {
    pub(super) policy: &'a Policy,
    pub(super) command: CommandRequest<'a>,
    pub(super) narrow: Option<&'a [String]>,
    pub(super) derived: &'a Derived,
    pub(super) operands: &'a [Operand],
    pub(super) programs: &'a [Program],
    pub(super) regime: String,
}

pub(super) fn request(text: QuestionText<'_>, subject: QuestionSubject<'_>) -> ApprovalRequest {
    let payload = payload(&text, &subject);
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
        command: words(command.command),
        directory: command.directory.as_path().to_owned(),
        programs: programs(false),
        writable_programs: programs(true),
        regime,
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
        required: true,
        answer,
        tool_name: text.tool_name.to_owned(),
        description: text.description,
        payload,
        presentation: Lazy::new(move || Ok(Presentation::Command(view.clone()))),
        group_id: None,
        remember: text.remember,
        allowed_by: text.allowed_by,
        why,
        caller: command.caller.map(str::to_owned),
        call: None,
    }
}

/// Whether anything of the root can be written: flags and ceilings may have taken it.
fn writes_in(profile: &Profile, root: &Root) -> bool {
    let mut writes = profile.grants.iter().filter(|grant| grant.rights.has(Right::Write));
    writes.any(|grant| grant.path.is_within(&root.path) || root.path.is_within(&grant.path))
}

/// What the strictest part's rule says of itself.
pub(super) fn description(policy: &Policy, judgement: &Judgement) -> String {
    let text = judgement
        .parts
        .iter()
        .filter(|part| part.requirement == Requirement::NeedsApproval)
        .find_map(|part| match part.rule {
            RuleRef::Rule(index) => policy.rules.get(index).and_then(|rule| rule.description.clone()),
            RuleRef::Default => None,
        });
    text.unwrap_or_else(|| match &judgement.not_understood {
        Some(what) => format!("run a command that the rules do not understand ({what})"),
        None => "run a command".to_owned(),
    })
}

/// What exactly would run: two calls have the same bytes only if they do the same under the same profile, held in the
/// same way, with the same files.
fn payload(text: &QuestionText<'_>, subject: &QuestionSubject<'_>) -> Vec<u8> {
    let command = subject.command;
    let mut fields: Vec<Vec<u8>> = vec![text.tool_name.as_bytes().to_vec()];
    match command.command {
        ShellCommand::Line(line) => fields.extend([b"line".to_vec(), line.as_bytes().to_vec()]),
        ShellCommand::Argv(argv) => {
            fields.push(b"argv".to_vec());
            fields.extend(argv.iter().map(|word| word.as_bytes().to_vec()));
        }
    }
    fields.push(command.directory.as_bytes().to_vec());
    for (name, value) in command.environment {
        fields.extend([name.as_bytes().to_vec(), value.as_bytes().to_vec()]);
    }
    fields.push(b"files".to_vec());
    fields.extend(subject.operands.iter().map(Operand::payload));
    // A yes that was given when it was all known does not hold once it is not.
    fields.push(text.unresolved.as_deref().unwrap_or_default().as_bytes().to_vec());
    fields.push(subject.derived.digest().to_vec());
    fields.push(subject.regime.as_bytes().to_vec());
    let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
    tool_question::payload(&fields)
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

/// The lines that say why approval is needed.
pub(super) fn why(policy: &Policy, judgement: &Judgement, planted: &WritablePrograms<'_>) -> Vec<String> {
    let subject = judgement
        .parts
        .iter()
        .filter(|part| part.requirement == Requirement::NeedsApproval);
    let mut why: Vec<String> = subject
        .map(|part| {
            let words = crate::policy::path::escape(part.words.join(" ").as_bytes());
            let (what, rule) = match part.rule {
                RuleRef::Rule(index) => ("the rule", policy.rules.get(index)),
                RuleRef::Default => ("no rule matches; `shell.default`", Some(&policy.default_rule)),
            };
            match rule {
                Some(rule) => match planted.of(part) {
                    Some((_, path)) => format!(
                        "`{words}`: its program is {path}, which this session may write; {what} at {} says `approval: {}` of a \
                         program outside",
                        rule.origin, rule.approval
                    ),
                    None => format!(
                        "`{words}`: {what} at {} says `approval: {}`",
                        rule.origin, rule.approval
                    ),
                },
                None => format!("`{words}`: {what}"),
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
