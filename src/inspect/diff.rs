//! Two profiles compared: what each permits that the other does not, with witnesses.

use std::collections::BTreeMap;

use serde::Serialize;

use super::document::Side;
use super::show::limits;
use crate::profile::order::Permission;
use crate::profile::{Excess, Profile, diff};

/// How two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// What approved commands get.
    pub approved: Difference,
    /// What commands get that nobody was asked about.
    pub unasked: Difference,
    /// What differs beside the profiles.
    pub settings: Vec<Setting>,
    /// Rules, in words, that only one side has.
    pub rules: Difference,
}

/// What only one side has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Difference {
    /// What the first has and the second does not.
    pub only_a: OneSide,
    /// What the second has and the first does not.
    pub only_b: OneSide,
}

/// What one side has and the other does not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OneSide {
    /// One witness for each operation and place, and one for each thing beyond files.
    pub witnesses: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What the first has.
    pub a: String,
    /// What the second has.
    pub b: String,
}

impl Comparison {
    /// Compares two sides; at most `most` file witnesses for each.
    pub fn of(a: &Side, b: &Side, most: usize) -> Self {
        let names: std::collections::BTreeSet<&String> = a.settings.keys().chain(b.settings.keys()).collect();
        let value = |side: &BTreeMap<String, String>, name| side.get(name).cloned().unwrap_or_default();
        let settings = names.into_iter().filter_map(|name| {
            let (a, b) = (value(&a.settings, name), value(&b.settings, name));
            (a != b).then(|| Setting {
                name: name.clone(),
                a,
                b,
            })
        });
        Self {
            approved: both(&a.approved, &b.approved, most),
            unasked: both(&a.unasked, &b.unasked, most),
            settings: settings.collect(),
            rules: rules(&a.rules, &b.rules),
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        [&self.approved, &self.unasked, &self.rules]
            .iter()
            .all(|both| both.is_empty())
            && self.settings.is_empty()
    }
}

impl Difference {
    /// Whether neither side has anything that the other has not.
    pub fn is_empty(&self) -> bool {
        self.only_a.witnesses.is_empty() && self.only_b.witnesses.is_empty()
    }
}

fn both(a: &Profile, b: &Profile, most: usize) -> Difference {
    let (only_a, only_b) = diff(a, b, most);
    Difference {
        only_a: only(&only_a, a, b),
        only_b: only(&only_b, b, a),
    }
}

fn only(excess: &Excess, wide: &Profile, tight: &Profile) -> OneSide {
    let (has, bounds) = (limits(&wide.limits), limits(&tight.limits));
    let none = || "no bound".to_owned();
    let describe = |permission: &Permission| match permission {
        Permission::Limit(name) => {
            let (has, bound) = (has.get(name).cloned(), bounds.get(name).cloned());
            format!(
                "limit {name}: {} instead of {}",
                has.unwrap_or_else(none),
                bound.unwrap_or_else(none)
            )
        }
        Permission::File { .. }
        | Permission::Network(_)
        | Permission::UnixSockets(_)
        | Permission::Variable(_)
        | Permission::Kernel(_) => permission.to_string(),
    };
    OneSide {
        witnesses: excess.witnesses.iter().map(describe).collect(),
        more: excess.more,
    }
}

/// The rules that only one side has. The first that matches decides, so the same rules in another order
/// are a difference too.
fn rules(a: &[String], b: &[String]) -> Difference {
    let missing_in = |from: &[String], in_: &[String]| OneSide {
        witnesses: from.iter().filter(|rule| !in_.contains(rule)).cloned().collect(),
        more: 0,
    };
    let both = Difference {
        only_a: missing_in(a, b),
        only_b: missing_in(b, a),
    };
    if both.is_empty() && a != b {
        let order = |rules: &[String]| OneSide {
            witnesses: vec![format!("the order: {}", rules.join("; "))],
            more: 0,
        };
        return Difference {
            only_a: order(a),
            only_b: order(b),
        };
    }
    both
}
