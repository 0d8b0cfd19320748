//! A builder of a profile text: its rules and parameters.

use std::collections::HashMap;

use super::operation::Name;
use super::pattern::{Regex, ending};
use super::plan::{Parameter, SeatbeltPlan};
use super::syntax::{End, Expression, Filter, PathArgument, Rule, Script, Verdict};
use crate::policy::{AbsPath, SuffixSet};

/// The rules so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    rules: Vec<Rule>,
    parameters: Vec<Parameter>,
    named: HashMap<String, String>,
    numbers: [usize; 2],
}

impl Draft {
    pub(super) fn rule(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Adds a rule. It is merged into the last one where verdict and filters are the same.
    pub(super) fn add(&mut self, verdict: Verdict, operations: &[Name], filters: Vec<Filter>) {
        if filters.is_empty() {
            // A rule without a filter would match every object.
            return;
        }
        if let Some(last) = self.rules.last_mut()
            && last.verdict == verdict
            && last.filters == filters
        {
            last.operations.extend(operations);
        } else {
            self.rules.push(Rule {
                verdict,
                operations: operations.to_vec(),
                filters,
            });
        }
    }

    pub(super) fn literal(&mut self, path: &AbsPath) -> Option<Filter> {
        self.path_argument(path).map(Filter::Literal)
    }

    pub(super) fn subpath(&mut self, path: &AbsPath) -> Option<Filter> {
        self.path_argument(path).map(Filter::Subpath)
    }

    /// A filter for the expression; `None` where it is too long or not simple.
    pub(super) fn regex(&mut self, text: Option<String>) -> Option<Filter> {
        let regex = Regex::new(&text?)?;
        let parameter = self.parameter('R', 1, regex.text());
        Some(Filter::Regex(Expression { parameter, regex }))
    }

    /// A filter for files with one of the suffixes; `None` where there are no suffixes.
    pub(super) fn endings(&mut self, suffixes: &SuffixSet) -> Option<Filter> {
        let each: Option<Vec<Filter>> = suffixes.iter().map(|suffix| self.regex(Some(ending(suffix)))).collect();
        each.filter(|each| !each.is_empty()).map(Filter::Any)
    }

    fn path_argument(&mut self, path: &AbsPath) -> Option<PathArgument> {
        let parameter = self.parameter('P', 0, path.as_path().to_str()?);
        Some(PathArgument {
            parameter: Some(parameter),
            path: path.clone(),
        })
    }

    fn parameter(&mut self, letter: char, kind: usize, value: &str) -> String {
        if let Some(name) = self.named.get(value) {
            return name.clone();
        }
        let name = format!("{letter}{}", self.numbers[kind]);
        self.numbers[kind] += 1;
        self.named.insert(value.to_owned(), name.clone());
        self.parameters.push(Parameter {
            name: name.clone(),
            value: value.to_owned(),
        });
        name
    }

    pub(super) fn finish(self) -> SeatbeltPlan {
        SeatbeltPlan {
            text: Script { rules: self.rules }.to_string(),
            parameters: self.parameters,
        }
    }
}

/// The same filter over the paths of sockets.
pub(super) fn on_sockets(filter: Filter, end: End) -> Filter {
    let each = |parts: Vec<Filter>| parts.into_iter().map(|part| on_sockets(part, end)).collect();
    match filter {
        Filter::All(parts) => Filter::All(each(parts)),
        Filter::Any(parts) => Filter::Any(each(parts)),
        Filter::Not(part) => Filter::Not(Box::new(on_sockets(*part, end))),
        Filter::Literal(_) | Filter::Subpath(_) | Filter::Regex(_) => Filter::Unix(end, Some(Box::new(filter))),
        Filter::Directory
        | Filter::Target(_)
        | Filter::Label(_)
        | Filter::Internet(_)
        | Filter::Unix(..)
        | Filter::UnixFamily => filter,
    }
}
