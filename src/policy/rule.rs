//! Shell rules, a convenience on top of the sandbox.

use super::decision::Demand;
use super::grant::Origin;
use super::network::OwnNetwork;

/// One entry of `shell.rules`, or the `shell.default`.
///
/// `pattern` is a sequence of words; a simple command matches when its first words are exactly these.
/// How a line is judged is documented in [`super::shell`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellRule {
    /// The words a simple command must begin with.
    pub pattern: Vec<String>,
    /// `false` blocks every line in which such a command stands.
    pub allowed: bool,
    /// What a matching command demands.
    pub approval: Demand,
    /// If present, the rule matches only when the command's path arguments lie in these roots, and
    /// writes of the command then reach those roots only.
    pub sandbox_paths: Option<Vec<String>>,
    /// If present, the IP reach of a matching command, in place of `shell.network`.
    pub network: Option<OwnNetwork>,
    /// What the prompt shows instead of the pattern.
    pub description: Option<String>,
    /// Why it is blocked, told to the agent.
    pub reason: Option<String>,
    /// Lines on which the rule must match; checked at load.
    pub matches: Vec<String>,
    /// Lines on which the rule must not match; checked at load.
    pub not_matches: Vec<String>,
    /// Where it was written.
    pub origin: Origin,
}

impl ShellRule {
    /// A rule with a demand for commands that begin with these words, and nothing else; [`Demand::Deny`] blocks them.
    pub fn plain(pattern: Vec<String>, demand: Demand, origin: Origin) -> Self {
        Self {
            pattern,
            allowed: demand != Demand::Deny,
            approval: demand,
            sandbox_paths: None,
            network: None,
            description: None,
            reason: None,
            matches: Vec::new(),
            not_matches: Vec::new(),
            origin,
        }
    }
}
