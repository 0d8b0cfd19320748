//! Laws that hold for every line.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use proptest::prelude::*;

use super::differential::soup;
use super::line_tests::{ask, roots, rule, rules};
use super::*;
use crate::policy::{Demand, Requirement};

fn requirement(line: &str) -> Requirement {
    judge(line, &rules(), &ask(), &roots).requirement
}

/// Well-formed lines.
fn sentence() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "git status",
        "rm x",
        "echo 'a b'",
        "make -j2",
        "cat < in",
        "echo a > out",
        "x=1 cat",
        "eval y",
        "cat <<< z",
        "env git status",
        "sh -c 'echo a'",
        "$x",
        "echo \"${x:-y}\"",
        "true",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 16, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (
                pair.clone(),
                prop::sample::select(vec!["; ", " && ", " || ", " | ", " & ", "\n"])
            )
                .prop_map(|((a, b), operator)| format!("{a}{operator}{b}")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            inner.clone().prop_map(|a| format!("echo $({a})")),
            pair.clone().prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
            pair.prop_map(|(a, b)| format!("while {a}; do {b}; done")),
        ]
    })
}

/// Spellings of the word `rm`.
fn spelled_rm() -> impl Strategy<Value = String> {
    let quoted = |c: char| {
        prop::sample::select(vec![
            format!("{c}"),
            format!("'{c}'"),
            format!("\"{c}\""),
            format!("\\{c}"),
            format!("''{c}"),
            format!("{c}\"\""),
        ])
    };
    let prefix = prop::sample::select(vec!["", "/bin/", "./", "/usr/../bin/"]);
    (prefix, quoted('r'), quoted('m')).prop_map(|(prefix, r, m)| format!("{prefix}{r}{m}"))
}

/// The processor time of this thread (`clock_gettime(2)`). Other threads do not change it.
pub(super) fn spent() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// The number of lines that each law is tried on. `STOCKADE_LAW_CASES` sets another.
fn cases() -> u32 {
    std::env::var("STOCKADE_LAW_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics_or_takes_long(line in prop_oneof![9 => soup(), 1 => any::<String>()]) {
        let before = spent();
        let _requirement = requirement(&line);
        prop_assert!(spent().saturating_sub(before) < Duration::from_secs(4), "{line:?}");
    }

    #[test]
    fn adding_a_command_never_lowers_what_a_line_needs(a in sentence(), b in sentence()) {
        let most = requirement(&a).max(requirement(&b));
        for both in [format!("{a}; {b}"), format!("{a} | {b}"), format!("{a}\n{b}"), format!("{a} && ( {b} )")] {
            prop_assert!(requirement(&both) >= most, "{both:?}");
        }
        let inside = format!("echo $({a})");
        prop_assert!(requirement(&inside) >= requirement(&a), "{inside:?}");
    }

    #[test]
    fn a_forbidden_word_stays_forbidden_however_it_is_spelled_and_wrapped(
        rm in spelled_rm(),
        wraps in prop::collection::vec(
            prop::sample::select(vec!["env A=b", "nice -n 3", "nohup", "timeout 5", "command", "exec", "sudo -u x", "xargs -0", "busybox", "> out", "x=1"]),
            0..4,
        ),
    ) {
        // Redirections and assignments are shell, not arguments: they stand before the first wrapper.
        let (shell, wrappers): (Vec<&str>, Vec<&str>) = wraps.iter().partition(|wrap| wrap.starts_with(['>', 'x']) && !wrap.starts_with("xargs"));
        let line = [shell, wrappers, vec![rm.as_str(), "-rf y"]].concat().join(" ");
        prop_assert_eq!(requirement(&line), Requirement::Blocked, "{:?}", line);
    }

    #[test]
    fn a_forbidding_rule_never_loosens(line in prop_oneof![soup(), sentence()]) {
        let without = judge(&line, &rules(), &ask(), &roots).requirement;
        let mut more = rules();
        more.push(rule("echo", Demand::Deny));
        prop_assert!(judge(&line, &more, &ask(), &roots).requirement >= without);
    }
}

#[test]
fn deep_nesting_is_answered_quickly_and_not_understood() {
    let before = spent();
    for (open, close) in [
        ("{ ", " }"),
        ("(", ")"),
        ("$(", ")"),
        ("`", "`"),
        ("${a:-", "}"),
        ("$((", "))"),
        ("$((", ""),
        ("((", "))"),
        ("if ", "; fi"),
        ("\"$(", ")\""),
        ("${a[", "]}"),
        ("a[", "]"),
        ("a[$((", "))]"),
        ("a[`", "`]"),
        ("a[b[", "]]"),
        ("<(", ")"),
        ("! ", ""),
        ("case x in a) ", ";; esac"),
        ("case x in a) ", "; esac"),
        ("case x in a) ", ""),
        ("case x in a) ((((((((", ""),
        ("( case x in a) ;; b) ;; c) ", ""),
        ("{ a } ;", ""),
        ("if a fi;", ""),
        ("{ a; } };", ""),
        ("case x in a) echo esac; ;; b) (", ""),
        ("f() ", ""),
        ("x=(", ")"),
        ("cat <<E\n$(", ")\nE\n"),
        ("while ", ""),
        ("{", "}"),
        ("[[ ( ", " ) ]]"),
        ("a=$(", ")"),
        ("sh -c '", "'"),
        ("env ", ""),
        ("time ", ""),
        ("$", ""),
        ("\\", ""),
        ("\"", ""),
        ("coproc ", ""),
        ("function f ", ""),
        ("!", ""),
        ("a;", ""),
        ("a|", ""),
        ("a&&", ""),
        ("(a);", ""),
    ] {
        for count in [3, 6, 9, 12, 24, 100, 1_300, 3_000] {
            let line = format!("{}x{}", open.repeat(count), close.repeat(count));
            let requirement = requirement(&line);
            assert!(requirement != Requirement::PreApproved, "{open:?} × {count}");
        }
    }
    let took = spent().saturating_sub(before);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_document_that_ends_at_an_empty_line_is_answered_and_not_understood() {
    for line in [
        "cat <<''",
        "cat << \"\"",
        "cat <<-''",
        "cat <<''\na\n\n",
        "echo <<A <<''",
        "cat <<'' | cat <<''",
        "echo \\<<<''",
        "echo \\\\<<<\"\"",
        "cat <<$''",
        "cat <<' '",
    ] {
        assert_eq!(requirement(line), Requirement::NeedsApproval, "{line:?}");
    }
}

#[test]
fn many_nested_siblings_before_a_mistake_are_answered_quickly() {
    for sibling in [
        "( ( ( ( ( ( ( ( a ) ) ) ) ) ) ) );",
        "((((((((a))))))));",
        "((((((((a;",
        "{ { { { a; }; }; }; };",
        "if a; then if a; then if a; then a; fi; fi; fi;",
        "case x in a) case x in a) case x in a) a;; esac;; esac;; esac;",
        "[[ ( ( ( a ) ) ) ]];",
        "a $(a $(a $(a)));",
        "a ${a:-${a:-${a}}};",
        "a | a && a || ! a &",
        "a <<E\n$(a)\nE\n",
        "x=(a b c) ",
        "for i in a b; do (((a))); done;",
    ] {
        for end in ["", ")", "}", "fi", "'", "$(", "((", "&& ||"] {
            let line = format!("{}{end}", sibling.repeat(16_000 / sibling.len()));
            let before = spent();
            let _requirement = requirement(&line);
            let took = spent().saturating_sub(before);
            assert!(took < Duration::from_secs(8), "{sibling:?} … {end:?}: {took:?}");
        }
    }
}
