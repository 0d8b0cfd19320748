//! The hook by which the embedding program overrides assessments.

use std::sync::Arc;

use super::tool::{ApprovalContext, Assessment};

/// A function of the embedding program that may override an assessment.
///
/// Give it to [`Session::overridden_by`](crate::Session::overridden_by). It is called after the config was applied, for each call
/// and again where a call is assessed again. It may tighten or loosen. What is blocked stays blocked. It must not block the
/// thread: it runs on the runtime.
///
/// ```
/// use std::sync::Arc;
///
/// use stockade::{ApprovalContext, Assessment, Hook, Override};
///
/// let hook: Hook = Arc::new(|call: &ApprovalContext, assessment: &Assessment| match assessment {
///     _ if call.tool_name == "delete_file" => Override::Block("this agent deletes nothing".to_owned()),
///     Assessment::PreApproved(_) if call.caller.is_some() => Override::Ask,
///     _ => Override::Keep,
/// });
/// let call = ApprovalContext::new("delete_file", serde_json::json!({"path": "notes.md"}));
/// assert!(matches!(hook(&call, &Assessment::NoOpinion(None)), Override::Block(_)));
/// ```
pub type Hook = Arc<dyn Fn(&ApprovalContext, &Assessment) -> Override + Send + Sync>;

/// The answer of a [`Hook`]: what becomes of an assessment.
///
/// The example of [`Hook`] returns several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Override {
    /// The assessment stands.
    Keep,
    /// The call runs without a question.
    PreApprove,
    /// The call is asked about, even where the config pre-approves it.
    Ask,
    /// The call never runs; the agent is told this reason.
    Block(String),
}
