//! `safe_commands`, `dangerous_patterns` and `safe_paths`: what they come to, and what they contradict.

use insta::assert_snapshot;

use super::{World, root};
use crate::policy::{Demand, ShellRule};

/// What a rule says, its line aside.
fn said(rule: &ShellRule) -> ShellRule {
    ShellRule {
        origin: crate::policy::Origin::Builtin("somewhere"),
        ..rule.clone()
    }
}

#[test]
fn commands_in_short_are_the_rules_that_they_stand_for() {
    let world = World::new();
    let short = "approval: {safe_commands: [git status, ls], dangerous_patterns: [sudo, 'rm -rf']}\n";
    let long = "shell: {rules: [{pattern: git status, approval: none}, {pattern: ls, approval: none}, \
                {pattern: sudo, allowed: false}, {pattern: rm -rf, allowed: false}]}\n";
    let (short, long) = (world.ok(short).policy.rules, world.ok(long).policy.rules);
    assert_eq!(short.len(), 4);
    assert_eq!(
        short.iter().map(said).collect::<Vec<_>>(),
        long.iter().map(said).collect::<Vec<_>>()
    );
}

#[test]
fn commands_in_short_stand_after_the_rules_of_their_file_and_know_their_line() {
    let world = World::new();
    let loaded = world.ok("approval:\n  safe_commands:\n    - git\nshell:\n  rules:\n    - {pattern: git push}\n");
    let patterns: Vec<String> = loaded.policy.rules.iter().map(|rule| rule.pattern.join(" ")).collect();
    assert_eq!(patterns, ["git push", "git"]);
    assert!(
        loaded.policy.rules[1].origin.to_string().ends_with(":3"),
        "{}",
        loaded.policy.rules[1].origin
    );
}

#[test]
fn a_pattern_in_short_is_understood_as_that_of_a_rule() {
    let world = World::new();
    assert_snapshot!(world.error("approval:\n  safe_commands: [ls, git *]\n"), @r#"
    error: `git *` is not a rule pattern
     --> /dir/project/stockade.yaml:2:23
      |
    2 |   safe_commands: [ls, git *]
      |                       ^^^^^ holds a wildcard
      |
      = help: a pattern matches every command that begins with its words: leave the wildcard out
    "#);
    for list in ["safe_commands", "dangerous_patterns"] {
        for wrong in ["''", "'rm; ls'", "'a \"b\"'", "'$x'", "'rm ?'"] {
            let error = world.error(format!("approval: {{{list}: [{wrong}]}}\n"));
            assert!(
                error.contains("is not a rule pattern") && error.contains("help: "),
                "{error}"
            );
        }
        let error = world.error(format!("approval: {{{list}: ls}}\n"));
        assert!(error.contains("stockade.yaml:1:"), "{error}");
    }
}

#[test]
fn a_command_cannot_be_safe_where_a_rule_says_otherwise() {
    let world = World::new();
    assert_snapshot!(
        world.error("approval:\n  safe_commands: [git push]\nshell:\n  rules:\n    - {pattern: git push, approval: required}\n"),
        @r#"
    error: `git push` cannot be safe: another line says otherwise
     --> /dir/project/stockade.yaml:2:19
      |
    2 |   safe_commands: [git push]
      |                   ^^^^^^^^ says that it is safe
    ...
    5 |     - {pattern: git push, approval: required}
      |                 -------- says otherwise of the same command
      |
      = help: keep one of them
    "#
    );
    assert_snapshot!(world.error("approval:\n  safe_commands: [rm]\n  dangerous_patterns: [rm]\n"), @r#"
    error: `rm` cannot be dangerous: another line says otherwise
     --> /dir/project/stockade.yaml:3:24
      |
    2 |   safe_commands: [rm]
      |                   -- says otherwise of the same command
    3 |   dangerous_patterns: [rm]
      |                        ^^ says that it is dangerous
      |
      = help: keep one of them
    "#);
    // The same said twice, and what a rule says of some roots only, is none.
    world.ok("approval: {safe_commands: [ls, ls]}\nshell: {rules: [{pattern: ls, approval: none}]}\n");
    world.ok(
        "approval: {safe_commands: [tee]}\nsandbox: {paths: {a: {root: .}}}\nshell: {rules: [{pattern: tee, sandbox_paths: [a]}]}\n",
    );
}

#[test]
fn a_safe_path_is_written_without_a_question_and_its_neighbour_is_not() {
    let world = World::new();
    world.mkdir("a");
    world.mkdir("b");
    let paths = "sandbox: {paths: {a: {root: a, mode: rw}, b: {root: b, mode: rw, approval: {read: required}}, c: {root: c, optional: true}}}\n";
    let loaded = world.ok(&format!("{paths}approval: {{safe_paths: [b, c]}}\n"));
    assert_eq!(root(&loaded, "a").write_approval, Demand::Required);
    assert_eq!(root(&loaded, "b").write_approval, Demand::None);
    assert_eq!(root(&loaded, "b").read_approval, Demand::Required);
    world.ok("sandbox: {paths: {a: {root: a, mode: rw, write_approval: false}}}\napproval: {safe_paths: [a]}\n");
}

#[test]
fn a_path_cannot_be_safe_where_its_root_says_otherwise() {
    let world = World::new();
    let safe = "approval:\n  safe_paths: [a]\n";
    for root in [
        "approval: {write: required}",
        "approval: {write: once_per_session}",
        "write_approval: true",
    ] {
        let error = world.error(format!(
            "{safe}sandbox:\n  paths:\n    a: {{root: ., mode: rw, {root}}}\n"
        ));
        assert!(
            error.contains("its root says otherwise") && error.contains("keep one of them"),
            "{error}"
        );
    }
    assert_snapshot!(
        world.error(format!("{safe}sandbox:\n  paths:\n    a: {{root: ., mode: rw, write_approval: true}}\n")),
        @r#"
    error: `a` cannot be safe to write: its root says otherwise
     --> /dir/project/stockade.yaml:2:16
      |
    2 |   safe_paths: [a]
      |                ^ says that writing it needs no yes
    ...
    5 |     a: {root: ., mode: rw, write_approval: true}
      |                                            ---- says that it needs one
      |
      = help: keep one of them
    "#
    );
    assert_snapshot!(world.error(format!("{safe}sandbox:\n  paths:\n    a: {{root: .}}\n")), @r#"
    error: `a` cannot be safe to write: it is read-only
     --> /dir/project/stockade.yaml:2:16
      |
    2 |   safe_paths: [a]
      |                ^ says that writing it needs no yes
    ...
    5 |     a: {root: .}
      |     - grants no writing
      |
      = help: drop it here, or give the root `mode: rw`
    "#);
    assert_snapshot!(world.error(format!("{safe}sandbox:\n  paths:\n    ab: {{root: .}}\n")), @r#"
    error: no root is called `a`
     --> /dir/project/stockade.yaml:2:16
      |
    2 |   safe_paths: [a]
      |                ^ not a root
      |
      = help: did you mean `ab`?
    "#);
}

#[test]
fn nobody_who_answers_is_named_by_a_config() {
    let world = World::new();
    for key in ["approver_program", "approvals_socket", "program", "socket"] {
        let error = world.error(format!("approval: {{{key}: /bin/true}}\n"));
        assert!(error.contains("unknown"), "{error}");
    }
}
