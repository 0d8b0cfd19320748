//! A judged command → the question a person is asked.

use std::os::unix::ffi::OsStrExt;

use super::call::{ShellCall, ShellCommand, words};
use super::plan;
use super::shell::NAME;
use crate::approval::{AnswerOf, ApprovalRequest, CommandView, Lazy, Presentation, Remember};
use crate::policy::path::escape;
use crate::policy::shell::{Judgement, RuleRef};
use crate::policy::{Network, Policy, Requirement, Right, Root};
use crate::profile::Profile;

/// The question for a command that needs approval and would run under `profile`.
pub(crate) fn request(
    policy: &Policy,
    call: &ShellCall,
    judgement: &Judgement,
    profile: &Profile,
    regime: String,
    remember: Remember,
) -> ApprovalRequest {
    let payload = payload(call, profile, &regime);
    let view = CommandView {
        command: words(&call.command),
        directory: call.directory.clone(),
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
            .filter(|root| judgement.narrow.as_ref().is_none_or(|names| names.contains(&root.name)))
            .map(|root| root.path.as_path().to_owned())
            .collect(),
        may_reach: match profile.network {
            Network::Off => "nothing".to_owned(),
            Network::Full => "every host".to_owned(),
        },
    };
    ApprovalRequest {
        required: true,
        answer: AnswerOf::Anyone,
        tool_name: NAME.to_owned(),
        description: description(policy, judgement),
        payload,
        presentation: Lazy::new(move || Ok(Presentation::Command(view.clone()))),
        group_id: None,
        remember,
        allowed_by: allowed_by(policy, judgement),
        why: Vec::new(),
        caller: None,
    }
}

/// Whether anything of the root can be written: flags and ceilings may have taken it.
fn writes_in(profile: &Profile, root: &Root) -> bool {
    let mut writes = profile.grants.iter().filter(|grant| grant.rights.has(Right::Write));
    writes.any(|grant| grant.path.is_within(&root.path) || root.path.is_within(&grant.path))
}

/// What the strictest part's rule says of itself.
fn description(policy: &Policy, judgement: &Judgement) -> String {
    let told = judgement
        .parts
        .iter()
        .filter(|part| part.requirement == Requirement::NeedsApproval)
        .find_map(|part| match part.rule {
            RuleRef::Rule(index) => policy.rules.get(index).and_then(|rule| rule.description.clone()),
            RuleRef::Default => None,
        });
    told.unwrap_or_else(|| match &judgement.not_understood {
        Some(what) => format!("run a command that the rules do not understand ({what})"),
        None => "run a command".to_owned(),
    })
}

/// What exactly would run: two calls have the same bytes only if they do the same under the same profile, held in the
/// same way.
fn payload(call: &ShellCall, profile: &Profile, regime: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut field = |bytes: &[u8]| {
        payload.extend_from_slice(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        payload.extend_from_slice(bytes);
    };
    match &call.command {
        ShellCommand::Line(line) => {
            field(b"line");
            field(line.as_bytes());
        }
        ShellCommand::Argv(argv) => {
            field(b"argv");
            for word in argv {
                field(word.as_bytes());
            }
        }
    }
    field(call.directory.as_os_str().as_bytes());
    for (name, value) in &call.environment {
        field(name.as_bytes());
        field(value.as_bytes());
    }
    field(&plan::digest(profile));
    field(regime.as_bytes());
    payload
}

/// The line of config that would let it through without a question.
fn allowed_by(policy: &Policy, judgement: &Judgement) -> String {
    if let Some(rule) = policy.tools.get(NAME) {
        return format!(
            "`tools: {{{NAME}: {{approval: {}}}}}` at {} asks for it",
            rule.approval, rule.origin
        );
    }
    let Some(part) = judgement
        .parts
        .iter()
        .find(|part| part.requirement == Requirement::NeedsApproval)
    else {
        return "no rule can allow what is not understood; `--mode approve_all` would".to_owned();
    };
    match part.rule {
        RuleRef::Rule(index) => match policy.rules.get(index) {
            Some(rule) => format!("`approval: none` on the rule at {} would allow it", rule.origin),
            None => String::new(),
        },
        RuleRef::Default => missing_rule(&part.words),
    }
}

/// The rule that nobody has written yet. Patterns cover commands, not what the shell does around them.
fn missing_rule(words: &[String]) -> String {
    let shown = |text: &str| escape(text.as_bytes());
    match words {
        [sign, target] if sign == ">" => format!(
            "a rule for the command that writes {} by redirection, with `sandbox_paths` naming its root, would allow it",
            shown(target)
        ),
        [assignment] if assignment.contains('=') => format!(
            "no rule covers the assignment {}; `shell.env.set` in the config sets variables",
            shown(assignment)
        ),
        _ => {
            let words = words.iter().map(String::as_str).take(2).collect::<Vec<_>>().join(" ");
            let plain = words.chars().all(|c| c.is_ascii_alphanumeric() || " _-./".contains(c));
            let pattern = if plain && !words.starts_with('-') {
                words
            } else {
                format!("'{}'", shown(&words).replace('\'', "''"))
            };
            format!("a rule `{{pattern: {pattern}, approval: none}}` under shell.rules would allow it")
        }
    }
}
