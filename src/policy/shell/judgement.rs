//! What a command line comes to under the rules.

use std::borrow::Cow;

use crate::policy::{Demand, LinePattern, Network, Requirement};

/// What a command line demands, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it may run.
    pub requirement: Requirement,
    /// The strictest demand of its parts.
    pub demand: Demand,
    /// What it does, part by part, in the order found.
    pub parts: Vec<Part>,
    /// Why it is blocked, as the first rule that blocks it tells.
    pub reason: Option<String>,
    /// The only roots that its writes may reach; `None` if no rule narrows them.
    ///
    /// Where several rules narrow, what all of them name; that may be nothing.
    pub narrow: Option<Vec<String>>,
    /// What the rules say of its network.
    pub network: RuleNetwork,
    /// What in it is not understood.
    pub not_understood: Option<String>,
    /// The pattern that has a person asked about it, whatever rule answers for it.
    pub dangerous: Option<LinePattern>,
}

impl Judgement {
    /// The same, where one of these patterns has a person asked about a command that can be written in these ways.
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

/// What rules say of the network of a line: it runs in one sandbox, so it gets what each command in it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleNetwork {
    /// No rule says anything: it has `shell.network`.
    Default,
    /// What all rules with a network of their own give, and no more than `shell.network` where something in the line
    /// has none.
    Own {
        /// What those rules give.
        network: Network,
        /// Whether every command has its own.
        by_all: bool,
    },
}

impl RuleNetwork {
    /// The network in place of this one, where it has one.
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

/// One thing a line does: a simple command, an assignment, a write by redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its words, quotes removed; as written where they are known only when it runs.
    pub words: Vec<String>,
    /// What decided.
    pub rule: RuleRef,
    /// What it demands.
    pub demand: Demand,
    /// Whether it may run.
    pub requirement: Requirement,
}

/// What decided about a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleRef {
    /// The rule at this place in the list.
    Rule(usize),
    /// `shell.default`.
    Default,
}
