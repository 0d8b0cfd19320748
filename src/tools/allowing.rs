//! What in the config would let a judged command through without a question.
//!
//! A hint that names a rule is tried first: the command is judged again as if the rule were written, and a rule that
//! does not let its part through is not named.

use crate::config::amend::quoted;
use crate::config::pattern_words;
use crate::policy::path::escape;
use crate::policy::shell::{Judgement, Part, RuleRef};
use crate::policy::{Demand, DemandSource, Origin, Requirement, Right, Root, ShellRule};

/// A line with more parts than so many rules would allow is told so, and not each of them.
const MOST_RULES: usize = 4;

const LONGEST_PATTERN: usize = 400;

/// The line of config that would let through what `rules` made of a command that may write in `roots`; `judge` judges the
/// same command by other rules.
pub(super) fn allow_hint(
    rules: &[ShellRule],
    roots: &[Root],
    judgement: &Judgement,
    judge: &dyn Fn(Vec<ShellRule>) -> Judgement,
) -> String {
    if let Some(pattern) = &judgement.dangerous {
        return format!(
            "no rule allows a line that the dangerous pattern `{}` ({}) matches: write it without that, or drop the pattern",
            escape(pattern.expression.as_str().as_bytes()),
            pattern.origin
        );
    }
    if let Some(what) = &judgement.not_understood {
        return format!(
            "no rule can allow what is not understood ({}): write it as plain commands that rules can name",
            escape(what.as_bytes())
        );
    }
    if judgement.requirement == Requirement::PreApproved {
        return String::new();
    }
    if judgement.parts.is_empty() {
        return "no rule speaks for a line that runs nothing; `shell.default` does".to_owned();
    }
    let mut hints: Vec<Hint> = Vec::new();
    let mut rules = rules.to_vec();
    let mut now = judgement.clone();
    for (index, part) in judgement.parts.iter().enumerate() {
        let open = now.parts.get(index).is_some_and(asks);
        // The rule for a write by redirection is that of the command before it.
        let written = judgement.parts.get(index + 1).and_then(target).is_some() && part.rule == RuleRef::Default;
        if !open || written {
            continue;
        }
        if let Some(hint) = shell_hint(part) {
            hints.push(hint);
            continue;
        }
        let mut named = hints.iter().filter(|hint| matches!(hint, Hint::Rule(_)));
        if named.nth(MOST_RULES - 1).is_some() {
            return "each command of it needs a rule with `approval: none` under shell.rules".to_owned();
        }
        let tried = candidate(&rules, part).and_then(|(hint, rules)| {
            let judged = judge(rules.clone());
            let lets = judged.parts.len() == judgement.parts.len() && !judged.parts.get(index).is_none_or(asks);
            lets.then_some((hint, rules, judged))
        });
        let Some((hint, changed, judged)) = tried else {
            let words = escape(part.words.join(" ").as_bytes());
            return format!(
                "no rule can allow `{words}` and nothing else: patterns hold plain words that are known before it runs"
            );
        };
        (rules, now) = (changed, judged);
        hints.push(Hint::Rule(hint));
    }
    hint_text(hints, roots)
}

/// Where a command does not write that a rule without `sandbox_paths` lets through.
fn unanswered_roots(roots: &[Root]) -> String {
    let asks = |root: &&Root| {
        let demands = root.read_approval.max(root.write_approval) != Demand::None;
        let is_written = root.write_demand_source == DemandSource::Config || root.read_approval != Demand::None;
        root.rights.has(Right::Write) && demands && is_written
    };
    let names: Vec<&str> = roots.iter().filter(asks).map(|root| root.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    let names = names.join(", ");
    format!("; to write in {names} it needs `sandbox_paths: [{names}]`, too")
}

/// The hint for one part of the line.
enum Hint {
    /// A change to one rule, which is enough for the part.
    Rule(String),
    /// What the shell does, for which no rule speaks alone: a whole sentence.
    Beside(String),
}

fn hint_text(hints: Vec<Hint>, roots: &[Root]) -> String {
    let (mut rules, mut sentences) = (Vec::new(), Vec::new());
    for hint in hints {
        let (list, text) = match hint {
            Hint::Rule(text) => (&mut rules, text),
            Hint::Beside(text) => (&mut sentences, text),
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
    // Where something else asks as well, they do not allow the whole of it.
    let what = if sentences.is_empty() { "it" } else { "its part" };
    let rules =
        (!rules.is_empty()).then(|| format!("{} would allow {what}{}", rules.join(" and "), unanswered_roots(roots)));
    let all: Vec<String> = rules.into_iter().chain(sentences).collect();
    all.join("; ")
}

fn asks(part: &Part) -> bool {
    part.requirement == Requirement::NeedsApproval
}

fn target(part: &Part) -> Option<&str> {
    match part.words.as_slice() {
        [sign, target] if sign == ">" => Some(target),
        _ => None,
    }
}

/// Patterns cover commands, not what the shell does around them.
fn shell_hint(part: &Part) -> Option<Hint> {
    if part.rule != RuleRef::Default {
        return None;
    }
    let shown = |text: &str| escape(text.as_bytes());
    if let Some(target) = target(part) {
        return Some(Hint::Beside(format!(
            "a rule for the command that writes {} by redirection, with `sandbox_paths` naming its root, would allow it",
            shown(target)
        )));
    }
    match part.words.as_slice() {
        [assignment] if assignment.contains('=') => Some(Hint::Beside(format!(
            "no rule covers the assignment {}; `shell.env.set` in the config sets variables",
            shown(assignment)
        ))),
        _ => None,
    }
}

/// The change to the rules that may let a part through, with its words.
fn candidate(rules: &[ShellRule], part: &Part) -> Option<(String, Vec<ShellRule>)> {
    match part.rule {
        RuleRef::Rule(at) => {
            let mut changed = rules.to_vec();
            let rule = changed.get_mut(at)?;
            rule.approval = Demand::None;
            Some((format!("`approval: none` on the rule at {}", rule.origin), changed))
        }
        RuleRef::Default => missing_rule(rules, &part.words),
    }
}

/// The rule that nobody has written yet, for all words of a command: fewer would allow more than was asked for, as `git -c` allows
/// every program that git can be told to run.
fn missing_rule(rules: &[ShellRule], words: &[String]) -> Option<(String, Vec<ShellRule>)> {
    let text = words.join(" ");
    // Of what could not be printed as it is, another pattern would come; and what is very long nobody writes.
    if escape(text.as_bytes()) != text || text.len() > LONGEST_PATTERN {
        return None;
    }
    // A word may hold a blank, or be none.
    let pattern = pattern_words(&text).ok().filter(|pattern| pattern == words)?;
    let origin = Origin::Builtin("a rule that is not written");
    let mut all = rules.to_vec();
    all.push(ShellRule::plain(pattern, Demand::None, origin));
    let pattern = quoted(&text);
    Some((
        format!("a rule `{{pattern: {pattern}, approval: none}}` under shell.rules"),
        all,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::shell::judge;
    use crate::policy::{AbsPath, Identity, Rights, Scope};

    fn rule(pattern: &str, approval: Demand) -> ShellRule {
        let words = pattern.split_whitespace().map(str::to_owned).collect();
        ShellRule::plain(words, approval, Origin::Builtin("test"))
    }

    /// What is told of a line where `echo` is free, `git push` is asked about, `rm` is forbidden, and the rest is asked about.
    fn hint(line: &str) -> String {
        hint_in(line, &[])
    }

    /// The same for a command that may write in these roots.
    fn hint_in(line: &str, roots: &[Root]) -> String {
        let rules = vec![
            rule("echo", Demand::None),
            rule("git push", Demand::Required),
            ShellRule {
                allowed: false,
                ..rule("rm", Demand::Required)
            },
        ];
        let default = rule("", Demand::Required);
        let judge = |rules: Vec<ShellRule>| judge(line, &rules, &default, &|_, _| true);
        allow_hint(&rules, roots, &judge(rules.clone()), &judge)
    }

    #[test]
    fn of_what_is_not_understood_no_rule_is_named() {
        for line in [
            "strace ls",
            "eval ls",
            ". ./x",
            "env -S \"ls x\"",
            "alias ls=cat",
            "$CMD",
            "make; eval ls",
        ] {
            let said = hint(line);
            assert!(
                said.starts_with("no rule can allow what is not understood (") && !said.contains("pattern:"),
                "{line}: {said}"
            );
            assert!(said.contains("plain commands"), "{line}: {said}");
        }
    }

    #[test]
    fn every_part_that_asks_has_its_rule_named() {
        assert_eq!(
            hint("make all && echo a; cargo build -v; git push; make all x"),
            "a rule `{pattern: make all, approval: none}` under shell.rules and a rule `{pattern: cargo build -v, approval: none}` \
             under shell.rules and `approval: none` on the rule at built in: test would allow it"
        );
    }

    #[test]
    fn a_rule_that_is_named_holds_every_word_of_the_command() {
        for (line, pattern) in [
            ("touch a", "touch a"),
            ("git -c core.pager=./x log", "\"git -c core.pager=./x log\""),
            ("python3 -c import", "python3 -c import"),
            ("yes", "\"yes\""),
            ("jobs x", "jobs x"),
            ("7z x", "\"7z x\""),
        ] {
            let expected = format!("a rule `{{pattern: {pattern}, approval: none}}` under shell.rules would allow it");
            assert_eq!(hint(line), expected, "{line}");
        }
    }

    #[test]
    fn where_no_pattern_can_hold_a_word_none_is_named_that_leaves_it_out() {
        let long = format!("touch {}", "x".repeat(500));
        for line in [
            "touch 'a b'",
            "touch \"$X\"",
            "find '*.c'",
            "python3 -c 'import os'",
            "touch ''",
            "touch a ''",
            &long,
        ] {
            let said = hint(line);
            assert!(
                said.starts_with("no rule can allow `") && !said.contains("pattern:"),
                "{line}: {said}"
            );
        }
    }

    #[test]
    fn where_a_line_of_the_config_has_writing_asked_about_a_rule_must_name_the_root() {
        let root = |write_approval, write_demand_source| Root {
            name: "project".to_owned(),
            path: AbsPath::root(),
            identity: Identity { device: 1, inode: 1 },
            scope: Scope::Tree,
            rights: Rights::ALL,
            suffixes: None,
            max_file_bytes: None,
            read_approval: Demand::None,
            write_approval,
            write_demand_source,
            denies: Vec::new(),
            origin: Origin::Builtin("test"),
        };
        let by_line = root(Demand::Required, DemandSource::Config);
        let asked = hint_in("touch x", std::slice::from_ref(&by_line));
        assert!(
            asked.ends_with("would allow it; to write in project it needs `sandbox_paths: [project]`, too"),
            "{asked}"
        );
        for open in [
            root(Demand::None, DemandSource::Config),
            root(Demand::Required, DemandSource::Default),
        ] {
            assert!(hint_in("touch x", &[open]).ends_with("would allow it"));
        }
        // Where no rule is named there is none to say that of.
        assert!(!hint_in("A=1", &[by_line]).contains("sandbox_paths"));
    }

    #[test]
    fn a_rule_that_would_not_allow_it_is_not_named() {
        for line in ["git \"$X\"", "'a b' c", "'it*' c"] {
            let said = hint(line);
            assert!(said.starts_with("no rule can allow `"), "{line}: {said}");
        }
    }

    #[test]
    fn a_line_with_very_many_parts_is_told_so_and_no_list() {
        let said = hint("a; b; c; d; e; f");
        assert_eq!(
            said,
            "each command of it needs a rule with `approval: none` under shell.rules"
        );
    }
}
