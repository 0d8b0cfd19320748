//! A shell line under rules. What is not understood is never pre-approved, nothing that is added loosens, and a rule
//! that covers a line decides about it alone.
//!
//! The first byte picks the default and the rules; the rest is the line.

use std::sync::LazyLock;
use std::time::Duration;

use crate::bounds::{Bounds, bounded};
use stockade::policy::shell::{Judgement, judge, judge_argv, rule_covers, rule_matches};
use stockade::policy::{Demand, Origin, Requirement, ShellRule};

const BOUNDS: Bounds = Bounds {
    bytes: 64 << 20,
    per_byte: 16 << 10,
    time: Duration::from_secs(4),
};

fn rule(pattern: &str, demand: Demand, roots: Option<&str>) -> ShellRule {
    ShellRule {
        pattern: pattern.split_whitespace().map(str::to_owned).collect(),
        allowed: demand != Demand::Deny,
        approval: demand,
        sandbox_paths: roots.map(|root| vec![root.to_owned()]),
        network: None,
        description: None,
        reason: None,
        matches: Vec::new(),
        not_matches: Vec::new(),
        origin: Origin::Builtin("fuzz"),
    }
}

static RULES: LazyLock<Vec<ShellRule>> = LazyLock::new(|| {
    let free =
        "echo cat env nice xargs find timeout command exec sh bash sudo git time nohup cd printf test [ true tee set";
    let mut rules: Vec<ShellRule> = free.split(' ').map(|word| rule(word, Demand::None, None)).collect();
    rules.insert(0, rule("git push", Demand::Required, None));
    rules.insert(0, rule("make", Demand::None, Some("cache")));
    rules.insert(0, rule("npm test", Demand::OncePerSession, Some("src")));
    rules.push(rule("rm", Demand::Deny, None));
    rules.push(rule("git reset --hard", Demand::Deny, None));
    rules
});

fn roots(path: &str, names: &[String]) -> bool {
    names.iter().any(|name| path.starts_with(name.as_str()))
}

pub(crate) fn run(input: &[u8]) {
    let Some((pick, line)) = input.split_first() else {
        return;
    };
    let Ok(line) = std::str::from_utf8(line) else { return };
    bounded(input, BOUNDS, || holds(*pick, line));
}

fn holds(pick: u8, line: &str) {
    let demands = [Demand::None, Demand::OncePerSession, Demand::Required, Demand::Deny];
    let default = rule("", demands[usize::from(pick % 4)], None);
    let count = [0, 3, RULES.len(), RULES.len()][usize::from(pick / 4 % 4)];
    let rules = &RULES[..count];
    let judged = judge(line, rules, &default, &roots);
    is_sound(line, &judged);

    // A rule that forbids, and a stricter default, never loosen.
    let mut more = rules.to_vec();
    more.push(rule("echo", Demand::Deny, None));
    assert!(judge(line, &more, &default, &roots).demand >= judged.demand, "{line:?}");
    let stricter = judge(line, rules, &rule("", Demand::Deny, None), &roots);
    assert!(stricter.demand >= judged.demand, "{line:?}");

    // Where nothing runs the default speaks; it does not where something does.
    if count == RULES.len() && judged.not_understood.is_none() && !judged.parts.is_empty() {
        // One command more, on a line of its own, takes nothing away; a forbidden one blocks.
        let before = judge(&format!("true\n{line}"), rules, &default, &roots);
        assert!(before.requirement >= judged.requirement, "true before {line:?}");
        let blocked = judge(&format!("rm x\n{line}"), rules, &default, &roots).requirement;
        assert_eq!(blocked, Requirement::Blocked, "rm before {line:?}");
    }

    for alone in rules {
        let (matches, covers) = (rule_matches(alone, line), rule_covers(alone, line));
        if covers && alone.allowed && alone.sandbox_paths.is_none() {
            assert!(matches, "{:?} covers {line:?} and matches nothing in it", alone.pattern);
            let denied = rule("", Demand::Deny, None);
            let by_it = judge(line, std::slice::from_ref(alone), &denied, &roots);
            assert_eq!(by_it.demand, alone.approval, "{:?} covers {line:?}", alone.pattern);
        }
    }

    let words: Vec<&str> = line.split(' ').collect();
    is_sound(line, &judge_argv(&words, rules, &default, &roots));
}

fn is_sound(line: &str, judged: &Judgement) {
    assert_eq!(judged.requirement, judged.demand.requirement(), "{line:?}");
    let strictest = judged.parts.iter().map(|part| part.demand).max();
    assert!(strictest.is_none_or(|part| judged.demand >= part), "{line:?}");
    let unclear = judged.not_understood.is_some();
    assert!(!unclear || judged.requirement != Requirement::PreApproved, "{line:?}");
    assert_eq!(
        judged.reason.is_some(),
        judged.requirement == Requirement::Blocked,
        "{line:?}"
    );
}
