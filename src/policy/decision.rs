//! Decisions: ordered, combined by `max`.

use std::fmt;

/// What a call needs before it may run. Ordered; parts of one call combine by `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requirement {
    /// May run without a question.
    PreApproved,
    /// Runs after a person, session memory or `approve_all` said yes.
    NeedsApproval,
    /// Never runs; no answer changes that.
    Blocked,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PreApproved => "pre-approved",
            Self::NeedsApproval => "needs approval",
            Self::Blocked => "blocked",
        })
    }
}

/// The value of an `approval:` key, of a root, a rule or a tool in a config.
///
/// It is ordered: where several lines speak of a call, the greatest wins. It prints as the config writes it. The example of
/// [`ToolRule`](crate::ToolRule) reads one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Demand {
    /// `none`: no question.
    None,
    /// `once_per_session`: a question, whose yes covers later calls with the same payload.
    OncePerSession,
    /// `required`: a question for each call.
    Required,
    /// `deny`: the call never runs.
    Deny,
}

impl Demand {
    /// What it says of a call, after the name of what is called.
    pub(crate) const fn phrase(self) -> &'static str {
        match self {
            Self::None => "needs no yes",
            Self::OncePerSession => "needs a yes once per session",
            Self::Required => "needs a yes",
            Self::Deny => "is forbidden",
        }
    }

    /// What a call needs under this demand.
    pub const fn requirement(self) -> Requirement {
        match self {
            Self::None => Requirement::PreApproved,
            Self::OncePerSession | Self::Required => Requirement::NeedsApproval,
            Self::Deny => Requirement::Blocked,
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::OncePerSession => "once_per_session",
            Self::Required => "required",
            Self::Deny => "deny",
        })
    }
}

/// Who decided what a root demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DemandSource {
    /// The config says nothing of it: a rule that asks nobody answers for it.
    Default,
    /// A line of the config: only a rule that names the root answers for it.
    Config,
}

/// The way in which a session answers questions.
///
/// The config sets it (`approval.mode`), or [`SessionBuilder::mode`](crate::SessionBuilder::mode), whose example does. What is
/// blocked stays blocked in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Nobody is asked; what needs approval is denied.
    Strict,
    /// The approver is asked.
    Interactive,
    /// Nobody is asked; what needs approval is approved.
    ApproveAll,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Interactive => "interactive",
            Self::ApproveAll => "approve_all",
        })
    }
}
