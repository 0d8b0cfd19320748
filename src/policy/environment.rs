//! The environment of a command: only named variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// The name of an environment variable: not empty, no `=`, no NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarName(String);

/// Why a text is not a [`VarName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be the name of an environment variable")]
pub struct VarNameError(pub String);

impl VarName {
    /// The name, if it can be one.
    pub fn new(text: &str) -> Result<Self, VarNameError> {
        if text.is_empty() || text.contains(['=', '\0']) {
            Err(VarNameError(text.to_owned()))
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a variable for a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EnvRule {
    /// The value in Stockade's own environment.
    Pass,
    /// Exactly this value.
    Set(OsString),
}

/// The variables a command may see; every other name is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Environment(BTreeMap<VarName, EnvRule>);

impl Environment {
    /// Adds a rule; a later `Set` replaces an earlier rule, a `Pass` never replaces a `Set`.
    pub fn insert(&mut self, name: VarName, rule: EnvRule) {
        match rule {
            EnvRule::Set(_) => {
                self.0.insert(name, rule);
            }
            EnvRule::Pass => {
                self.0.entry(name).or_insert(rule);
            }
        }
    }

    /// The rules, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&VarName, &EnvRule)> {
        self.0.iter()
    }

    /// The rule for a name.
    pub fn get(&self, name: &VarName) -> Option<&EnvRule> {
        self.0.get(name)
    }

    /// What both permit: a passed and a set variable give the set value; two unequal values give nothing.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let meet = |a: &EnvRule, b: &EnvRule| match (a, b) {
            (EnvRule::Pass, rule) | (rule, EnvRule::Pass) => Some(rule.clone()),
            (EnvRule::Set(x), EnvRule::Set(y)) => (x == y).then(|| a.clone()),
        };
        Self(
            self.0
                .iter()
                .filter_map(|(name, a)| {
                    other
                        .0
                        .get(name)
                        .and_then(|b| meet(a, b))
                        .map(|rule| (name.clone(), rule))
                })
                .collect(),
        )
    }

    /// Every variable that `self` permits and `other` does not, sorted.
    pub fn all_wider_than(&self, other: &Self) -> impl Iterator<Item = &VarName> {
        self.0.iter().filter_map(|(name, rule)| {
            let within = match (rule, other.0.get(name)) {
                (_, Some(EnvRule::Pass)) => true,
                (EnvRule::Set(a), Some(EnvRule::Set(b))) => a == b,
                (EnvRule::Pass, Some(EnvRule::Set(_))) | (_, None) => false,
            };
            (!within).then_some(name)
        })
    }
}
