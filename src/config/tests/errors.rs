//! Each way a config can be wrong, as a person sees it.

use super::Fixture;
use crate::config::presets::Preset;
use insta::assert_snapshot;

#[test]
fn a_rule_whose_example_fails_is_an_error() {
    let world = Fixture::new();
    assert_snapshot!(world.error("shell:\n  rules:\n    - {pattern: git status, approval: none, match: [git stash]}\n"), @r#"
    error: the rule `git status` does not match its own example
     --> /dir/project/stockade.yaml:3:53
      |
    3 |     - {pattern: git status, approval: none, match: [git stash]}
      |                 ---------- the rule                 ^^^^^^^^^ in `match`, but no command of this line begins so
    "#);
    assert_snapshot!(world.error("shell:\n  rules:\n    - {pattern: git, approval: none, not_match: [git push]}\n"), @r#"
    error: the rule `git` matches its own counter-example
     --> /dir/project/stockade.yaml:3:50
      |
    3 |     - {pattern: git, approval: none, not_match: [git push]}
      |                 --- the rule                     ^^^^^^^^ in `not_match`, but the rule covers this whole line
    "#);
    assert_snapshot!(world.error("shell:\n  rules:\n    - pattern: rm\n      allowed: false\n      not_match: [ls; rm x]\n"), @r#"
    error: the rule `rm` matches its own counter-example
     --> /dir/project/stockade.yaml:5:19
      |
    3 |     - pattern: rm
      |                -- the rule
    4 |       allowed: false
    5 |       not_match: [ls; rm x]
      |                   ^^^^^^^^ in `not_match`, but the rule blocks this line
    "#);
    world.ok("shell:\n  rules:\n    - {pattern: git status, match: [\"git status -s\"], not_match: [\"git status; rm x\"]}\n");
}

#[test]
fn a_wrong_unit_is_named() {
    let world = Fixture::new();
    assert_snapshot!(world.error("shell: {limits: {memory: 2Gig}}\n"), @r#"
    error: `Gig` is not a unit here
     --> /dir/project/stockade.yaml:1:26
      |
    1 | shell: {limits: {memory: 2Gig}}
      |                          ^^^^ not understood
      |
      = help: write a whole number and B, KiB, MiB, GiB or TiB (or kB, MB, GB, TB), as in `2GiB`
    "#);
    assert_snapshot!(world.error("shell: {limits: {timeout: 120}}\n"), @r#"
    error: `120` has no unit
     --> /dir/project/stockade.yaml:1:27
      |
    1 | shell: {limits: {timeout: 120}}
      |                           ^^^ not understood
      |
      = help: write a whole number and ms, s, m or h, as in `120s`
    "#);
    assert_snapshot!(world.error("shell: {limits: {processes: -1}}\n"), @r#"
    error: expected a whole number
     --> /dir/project/stockade.yaml:1:29
      |
    1 | shell: {limits: {processes: -1}}
      |                             ^^ not one
    "#);
}

#[test]
fn an_unknown_preset_is_an_error() {
    assert_snapshot!(Fixture::new().error("extends: [workspace-wirte]\n"), @r#"
    error: unknown preset `workspace-wirte`
     --> /dir/project/stockade.yaml:1:11
      |
    1 | extends: [workspace-wirte]
      |           ^^^^^^^^^^^^^^^ no such preset
      |
      = help: did you mean `workspace-write`?
    "#);
}

#[test]
fn presets_that_extend_each_other_in_a_circle_are_an_error() {
    let mut world = Fixture::new();
    world.context.presets = |name| {
        let text = match name {
            "a" => "extends: [b]\n",
            "b" => "extends: [a]\n",
            _ => return None,
        };
        Some(Preset { text, parsed: None })
    };
    assert_snapshot!(world.error("extends: [a]\n"), @r#"
    error: presets extend each other in a circle: a → b → a
     --> preset b:1:11
      |
    1 | extends: [a]
      |           ^ closes the circle
    "#);
}

#[test]
fn what_a_later_version_holds_is_refused_with_its_line() {
    let world = Fixture::new();
    assert_snapshot!(world.error("sandbox:\n  backend: seatbelt\n"), @r#"
    error: the backend `seatbelt` is not supported by this version
     --> /dir/project/stockade.yaml:2:12
      |
    2 |   backend: seatbelt
      |            ^^^^^^^^ cannot confine
      |
      = help: write `backend: auto`, `backend: namespaces`, `backend: bwrap` or `backend: landlock`
    "#);
    world.ok("shell: {network: true}\nsandbox: {backend: landlock}\naudit: {}\n");
}

#[test]
fn an_unknown_tool_is_an_error() {
    assert_snapshot!(Fixture::new().error("tools: {delete_fil: {approval: deny}}\n"), @r#"
    error: unknown tool `delete_fil`
     --> /dir/project/stockade.yaml:1:9
      |
    1 | tools: {delete_fil: {approval: deny}}
      |         ^^^^^^^^^^ did you mean `delete_file`?
      |
      = help: a tool of your own program of that name is written `custom_tools: {delete_fil: {}}`
    "#);
}

#[test]
fn a_rule_pattern_is_words() {
    let world = Fixture::new();
    assert_snapshot!(world.error("shell:\n  rules:\n    - {pattern: \"git commit -m 'x'\"}\n"), @r#"
    error: `git commit -m 'x'` is not a rule pattern
     --> /dir/project/stockade.yaml:3:17
      |
    3 |     - {pattern: "git commit -m 'x'"}
      |                 ^^^^^^^^^^^^^^^^^^^ holds a quote
      |
      = help: a pattern is split at spaces, and a word cannot hold one: leave the quotes out
    "#);
    for wrong in ["rm *", "a; b", "echo $HOME", "  ", "a | b", "`x`"] {
        let error = world.error(format!("shell: {{rules: [{{pattern: '{wrong}'}}]}}\n"));
        assert!(error.contains("is not a rule pattern"), "{wrong}: {error}");
    }
}
