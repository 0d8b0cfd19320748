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

/// What a config line demands: the `approval:` of a root, a rule or a tool. Ordered; the strictest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Demand {
    /// No question.
    None,
    /// One yes per session covers later calls with the same payload.
    OncePerSession,
    /// A yes each time.
    Required,
    /// Always no.
    Deny,
}

impl Demand {
    /// The requirement the demand amounts to.
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

/// How questions are answered in this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Nobody is asked: what needs approval is denied.
    Strict,
    /// A person is asked.
    Interactive,
    /// Everything that is not blocked is approved.
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
