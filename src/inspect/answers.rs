//! What the config answers in advance: which commands run without a question, and where they write.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::CustomTool;
use crate::policy::path::escape;
use crate::policy::shell::runs_other_code;
use crate::policy::{AbsPath, Demand, Origin, Policy, Right};
use crate::profile::{ApprovedRoots, Call, InAdvance, derive};
use crate::tools::narrowing::Narrowing;
use crate::tools::written_roots;

/// What one line of the config answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdvanceAnswer {
    /// Which commands: words in quotes, a tool, or all of the shell.
    pub what: String,
    /// The roots in which they may write, by name.
    pub writes: Vec<String>,
    /// Whether the program runs what its files or arguments say: an interpreter, a shell, a build tool.
    pub runs_other_code: bool,
    /// The line.
    pub origin: String,
}

impl AdvanceAnswer {
    /// Where its commands write, and whether they run other code, in a few words.
    pub fn effect(&self) -> String {
        let writes = if self.writes.is_empty() {
            "writes nowhere".to_owned()
        } else {
            format!("writes in {}", self.writes.join(", "))
        };
        let note = if self.runs_other_code {
            "; runs whatever its files or arguments say"
        } else {
            ""
        };
        format!("{writes}{note}")
    }
}

/// The lines of a config that answer in advance: rules, the entry of the shell, custom tools.
pub fn answers(policy: &Policy, custom_tools: &[CustomTool], narrowing: &Narrowing) -> Vec<AdvanceAnswer> {
    let mut known = BTreeMap::new();
    let mut answer =
        |what: String, command: &[String], named: Option<&[String]>, narrow: Option<&[String]>, origin: &Origin| {
            let key = (named.map(<[String]>::to_vec), narrow.map(<[String]>::to_vec));
            let writes: &Vec<String> = known
                .entry(key)
                .or_insert_with(|| written(policy, named, narrow, narrowing));
            AdvanceAnswer {
                what,
                writes: writes.clone(),
                runs_other_code: runs_other_code(command),
                origin: origin.to_string(),
            }
        };
    let mut all = Vec::new();
    let asks_nobody =
        |name: &str, own: Demand| policy.tools.get(name).map_or(own, |entry| entry.approval) == Demand::None;
    for rule in policy
        .rules
        .iter()
        .filter(|rule| rule.allowed && rule.approval == Demand::None)
    {
        let names = rule.sandbox_paths.as_deref();
        let pattern = escape(rule.pattern.join(" ").as_bytes());
        let what = match names {
            None => format!("`{pattern}`"),
            Some(names) => format!("`{pattern}` in {}", names.join(", ")),
        };
        all.push(answer(what, &rule.pattern, names, names, &rule.origin));
    }
    if let Some(entry) = policy.tools.get("shell").filter(|entry| entry.approval == Demand::None) {
        all.push(answer("all commands".to_owned(), &[], None, None, &entry.origin));
    }
    for tool in custom_tools
        .iter()
        .filter(|tool| asks_nobody(&tool.name, tool.approval))
    {
        let what = format!("tool {}", tool.name);
        let narrow = written_roots(tool);
        all.push(answer(
            what,
            &tool.command,
            tool.sandbox_paths.as_deref(),
            Some(&narrow),
            &tool.origin,
        ));
    }
    all
}

/// The roots in which a command writes that was answered for so.
fn written(policy: &Policy, named: Option<&[String]>, narrow: Option<&[String]>, narrowing: &Narrowing) -> Vec<String> {
    let call = Call {
        narrow: narrow.map(<[String]>::to_vec),
        ..Call::of(ApprovedRoots::InAdvance(InAdvance::by(named)))
    };
    let profile = narrowing.narrow(derive(policy, &call));
    let writes = |path: &AbsPath| {
        let mut writing = profile.grants.iter().filter(|grant| grant.rights.has(Right::Write));
        writing.any(|grant| grant.path == *path)
    };
    let roots = policy
        .roots
        .iter()
        .filter(|root| root.rights.has(Right::Write) && writes(&root.path));
    roots.map(|root| root.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Context};

    /// The answers of a config in a directory with `out` and `src`.
    fn answered(rest: &str) -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        for name in ["out", "src", "src/in"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let file = dir.path().join("stockade.yaml");
        let roots = "extends: []\nsandbox: {paths: {out: {root: ./out, mode: rw}, src: {root: ./src, mode: rw, write_approval: true}, in: {root: ./src/in, mode: rw, write_approval: true}}}\n";
        std::fs::write(&file, format!("{roots}{rest}")).unwrap();
        let context = Context::host();
        let loaded = config::examine(&file, &context).unwrap();
        let answers = answers(&loaded.policy, &loaded.custom_tools, &Narrowing::default());
        answers
            .into_iter()
            .map(|answer| (answer.what.clone(), answer.effect()))
            .collect()
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter()
            .map(|(what, effect)| ((*what).to_owned(), (*effect).to_owned()))
            .collect()
    }

    #[test]
    fn each_rule_that_asks_nobody_has_the_roots_in_which_it_writes() {
        let found = answered(
            "shell:\n  rules:\n    - {pattern: git status, approval: none}\n    - {pattern: cp, approval: none, sandbox_paths: [src]}\n    - {pattern: ls, approval: required}\n    - {pattern: rm, allowed: false}\n",
        );
        assert_eq!(
            found,
            pairs(&[("`git status`", "writes in out"), ("`cp` in src", "writes in src")])
        );
    }

    #[test]
    fn a_root_around_one_that_is_named_is_not_among_those_that_are_written() {
        let found = answered("shell: {rules: [{pattern: cp, approval: none, sandbox_paths: [in]}]}\n");
        assert_eq!(found, pairs(&[("`cp` in in", "writes in in")]));
    }

    #[test]
    fn interpreters_shells_and_build_tools_are_pointed_out() {
        let found =
            answered("shell: {rules: [{pattern: python3.11 -m pytest, approval: none, sandbox_paths: [out]}]}\n");
        let effect = "writes in out; runs whatever its files or arguments say";
        assert_eq!(found, pairs(&[("`python3.11 -m pytest` in out", effect)]));
    }

    #[test]
    fn the_entry_of_the_shell_and_custom_tools_answer_too() {
        let found = answered(
            "tools: {shell: {approval: none}}\ncustom_tools:\n  mark: {description: Marks, command: [touch, x], approval: none}\n  copy: {description: Copies, command: [cp, a, b], approval: none, sandbox_paths: [src]}\n  asks: {description: Asks, command: [cp, a, b]}\n",
        );
        assert_eq!(
            found,
            pairs(&[
                ("all commands", "writes in out"),
                ("tool mark", "writes nowhere"),
                ("tool copy", "writes in src"),
            ])
        );
    }
}
