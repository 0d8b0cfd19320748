//! The judgement of a command line under the rules.

use std::borrow::Cow;

use crate::policy::{Demand, LinePattern, Network, Requirement};

/// The judgement of a command line: what it needs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it may run.
    pub requirement: Requirement,
    /// The strictest demand of its parts.
    pub demand: Demand,
    /// The parts of the line, in the order in which they were found.
    pub parts: Vec<Part>,
    /// The reason of the first rule that blocks it.
    pub reason: Option<String>,
    /// The only roots that its writes may reach; `None` if no rule narrows them.
    ///
    /// Where several rules narrow, these are the roots that all of them name; there may be none.
    pub narrow: Option<Vec<String>>,
    /// The network that the rules give it.
    pub network: RuleNetwork,
    /// The part that is not understood.
    pub not_understood: Option<String>,
    /// The dangerous pattern that matches it. The line needs approval, whatever its rules say.
    pub dangerous: Option<LinePattern>,
}

impl Judgement {
    /// The same judgement, which needs approval where one of the patterns matches one of the texts. `texts` are the ways in which the
    /// command can be written.
    #[must_use]
    pub fn asked_by(self, patterns: &[LinePattern], texts: &[Cow<'_, str>]) -> Self {
        let matches = |pattern: &&LinePattern| texts.iter().any(|text| pattern.expression.is_match(text));
        match patterns.iter().find(matches) {
            None => self,
            Some(pattern) => Self {
                requirement: self.requirement.max(Requirement::NeedsApproval),
                demand: self.demand.max(Demand::Required),
                dangerous: Some(pattern.clone()),
                ..self
            },
        }
    }
}

/// The network that rules give a line. A line runs in one sandbox, so it gets what all of its commands get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleNetwork {
    /// That of `shell.network`: no rule has a network of its own.
    Default,
    /// That which all rules with a network of their own give. Where a part of the line has no such rule, it is no more than
    /// `shell.network`.
    Own {
        /// The network that all of those rules give.
        network: Network,
        /// Whether every part of the line has such a rule.
        by_all: bool,
    },
}

impl RuleNetwork {
    /// The network that replaces `shell.network`; `None` where none does.
    pub fn override_of(&self, network: &Network) -> Option<Network> {
        match self {
            Self::Default => None,
            Self::Own { network, by_all: true } => Some(network.clone()),
            Self::Own {
                network: own,
                by_all: false,
            } => Some(own.and(network)),
        }
    }
}

/// A part of a line: a simple command, an assignment, or a write by redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its words without quotes. A word that is known only when it runs is as written.
    pub words: Vec<String>,
    /// The rule that decided.
    pub rule: RuleRef,
    /// The demand of that rule.
    pub demand: Demand,
    /// Whether it may run.
    pub requirement: Requirement,
}

/// The rule that decided about a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleRef {
    /// The rule with this index.
    Rule(usize),
    /// `shell.default`.
    Default,
}
