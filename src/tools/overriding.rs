//! What becomes of a tool's own assessment: an entry for the tool, then a hook, and words for what nothing speaks of.

use super::hook::Override;
use super::tool::{ApprovalContext, Assessment, OverrideByConfig, Question};
use super::tool_question;
use crate::approval::{AnswerOf, ApprovalRequest};
use crate::policy::{Demand, Origin, Requirement, ToolRule};

/// Where the entries of a guard are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loosening {
    /// In the config of a session.
    ByConfig,
    /// In the program.
    ByCode,
}

impl Loosening {
    /// Names what would allow it, in a question that names nothing.
    pub(super) fn explain(self, assessment: Assessment, context: &ApprovalContext) -> Assessment {
        let name = &context.tool_name;
        let explained = |mut request: Box<ApprovalRequest>| {
            if request.allowed_by.is_empty() && request.answer != AnswerOf::ApproverOnly {
                request.allowed_by = match self {
                    Self::ByConfig => format!("`tools: {{{name}: {{approval: none}}}}` in the config would allow it"),
                    Self::ByCode => format!("`.tool({name:?}, Demand::None)` on the builder would allow it"),
                };
            }
            if request.why.is_empty() {
                let place = match self {
                    Self::ByConfig => "nothing in the config says",
                    Self::ByCode => "the program does not say",
                };
                request.why = vec![format!("{place} that {name} may be called unasked")];
            }
            request
        };
        match assessment {
            Assessment::NeedsApproval(request) => Assessment::NeedsApproval(explained(request)),
            Assessment::NoOpinion(question) => {
                Assessment::NoOpinion(Some(explained(Box::new(question_or_default(question, context)))))
            }
            Assessment::Blocked(_) | Assessment::PreApproved(_) => assessment,
        }
    }
}

/// The question as the tool would put it; else about the arguments as they are.
pub(super) fn question_or_default(question: Question, context: &ApprovalContext) -> ApprovalRequest {
    if let Some(question) = question {
        return *question;
    }
    let description = format!("call {}", context.tool_name);
    tool_question::by_name(context, description, context.args.clone())
}

/// What a hook makes of an assessment. What is blocked stays so.
pub(super) fn apply_override(decision: Override, assessment: Assessment, context: &ApprovalContext) -> Assessment {
    match (assessment, decision) {
        (Assessment::Blocked(why), _) | (_, Override::Block(why)) => Assessment::Blocked(why),
        (assessment, Override::Keep) => assessment,
        (Assessment::NeedsApproval(request), Override::PreApprove) => Assessment::PreApproved(Some(request)),
        (Assessment::PreApproved(question) | Assessment::NoOpinion(question), Override::PreApprove) => {
            Assessment::PreApproved(question)
        }
        (Assessment::NeedsApproval(request), Override::Ask) => Assessment::NeedsApproval(request),
        (Assessment::PreApproved(question) | Assessment::NoOpinion(question), Override::Ask) => {
            let why = "the program that runs the agent asks for it, whatever the config says";
            Assessment::NeedsApproval(Box::new(ApprovalRequest {
                allowed_by: why.to_owned(),
                why: vec![why.to_owned()],
                ..question_or_default(question, context)
            }))
        }
    }
}

/// An assessment under the entry of `tools:`, if there is one.
pub(super) fn overridden(
    rule: Option<&ToolRule>,
    assessment: Assessment,
    override_by_config: OverrideByConfig,
    context: &ApprovalContext,
) -> Assessment {
    match (rule, override_by_config) {
        (None, _) => assessment,
        (Some(rule), OverrideByConfig::Possible) => apply_rule(rule, assessment, context),
        // The entry can only tighten.
        (Some(rule), OverrideByConfig::Never) => match (rule.approval, assessment) {
            (Demand::None | Demand::OncePerSession, assessment) => assessment,
            (Demand::Required, Assessment::NeedsApproval(request)) => {
                Assessment::NeedsApproval(Box::new(request.demanded(rule.approval)))
            }
            (Demand::Required | Demand::Deny, assessment) => apply_rule(rule, assessment, context),
        },
    }
}

/// What an entry of `tools:` makes of an assessment. It wins over the tool's own opinion; what is blocked stays so.
pub(super) fn apply_rule(rule: &ToolRule, assessment: Assessment, context: &ApprovalContext) -> Assessment {
    let question = match assessment {
        Assessment::Blocked(why) => return Assessment::Blocked(why),
        Assessment::NeedsApproval(request) => Some(request),
        Assessment::PreApproved(question) | Assessment::NoOpinion(question) => question,
    };
    let name = &context.tool_name;
    let (line, allowed_by) = match &rule.origin {
        // No file has it: it was written in the program.
        Origin::Flag(place) => (
            format!("`.tool({name:?}, …)` on {place}"),
            format!("`.tool({name:?}, Demand::None)` on {place} would allow it"),
        ),
        origin => {
            let line = format!("`tools: {{{name}: …}}` ({origin})");
            let allowed_by = format!("`approval: none` in {line} would allow it");
            (line, allowed_by)
        }
    };
    match rule.approval.requirement() {
        Requirement::PreApproved => Assessment::PreApproved(question),
        Requirement::Blocked => Assessment::Blocked(format!("{line} forbids it")),
        Requirement::NeedsApproval => {
            let mut request = question_or_default(question, context).demanded(rule.approval);
            // The config demands it, so `strict` denies it, whatever the tool would let pass.
            request.required = true;
            request.allowed_by = allowed_by;
            request.why = vec![format!("{line} asks for it")];
            Assessment::NeedsApproval(Box::new(request))
        }
    }
}
