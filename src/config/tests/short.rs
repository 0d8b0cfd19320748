//! What a config says in few words: short forms, functions of a program, old spellings, and what holds where nothing is said.

use insta::assert_snapshot;

use super::{Fixture, root};
use crate::policy::{Demand, ProtectFallback};

#[test]
fn safe_commands_are_rules_after_those_of_their_file_and_know_their_line() {
    let world = Fixture::new();
    let loaded = world.ok(
        "tools:\n  shell:\n    safe_commands:\n      - git\n      - ls\nshell:\n  rules:\n    - {pattern: git push}\n",
    );
    let rules = &loaded.policy.rules;
    let patterns: Vec<String> = rules.iter().map(|rule| rule.pattern.join(" ")).collect();
    assert_eq!(patterns, ["git push", "git", "ls"]);
    assert!(
        rules[1..]
            .iter()
            .all(|rule| rule.approval == Demand::None && rule.allowed)
    );
    assert!(rules[1].origin.to_string().ends_with(":4"), "{}", rules[1].origin);
}

#[test]
fn a_safe_command_is_understood_as_the_pattern_of_a_rule() {
    let world = Fixture::new();
    assert_snapshot!(world.error("tools:\n  shell: {safe_commands: [ls, git *]}\n"), @r"
    error: `git *` is not a rule pattern
     --> /dir/project/stockade.yaml:2:31
      |
    2 |   shell: {safe_commands: [ls, git *]}
      |                               ^^^^^ holds a wildcard
      |
      = help: a pattern matches every command that begins with its words: leave the wildcard out
    ");
    for wrong in ["''", "'rm; ls'", "'a \"b\"'", "'$x'", "'rm ?'"] {
        let error = world.error(format!("tools: {{shell: {{safe_commands: [{wrong}]}}}}\n"));
        assert!(
            error.contains("is not a rule pattern") && error.contains("help: "),
            "{error}"
        );
    }
}

#[test]
fn a_command_cannot_be_safe_where_a_rule_says_otherwise() {
    let world = Fixture::new();
    for rule in ["approval: required", "approval: once_per_session", "allowed: false"] {
        let rules = format!("shell:\n  rules:\n    - {{pattern: git push, {rule}}}\n");
        let error = world.error(format!("tools:\n  shell: {{safe_commands: [git push]}}\n{rules}"));
        assert!(error.contains("another line says otherwise"), "{error}");
    }
    world.ok("tools: {shell: {safe_commands: [ls, ls]}}\nshell: {rules: [{pattern: ls, approval: none}]}\n");
    world.ok(
        "tools: {shell: {safe_commands: [tee]}}\nsandbox: {paths: {a: {root: .}}}\nshell: {rules: [{pattern: tee, sandbox_paths: [a]}]}\n",
    );
}

#[test]
fn dangerous_patterns_are_expressions_that_know_their_line() {
    let world = Fixture::new();
    let loaded = world.ok("tools:\n  shell:\n    dangerous_patterns:\n      - '\\brm\\b'\n      - '>'\n");
    let patterns = &loaded.policy.dangerous;
    assert_eq!(patterns.len(), 2);
    assert!(patterns[0].expression.is_match("ls && rm x") && !patterns[0].expression.is_match("farm"));
    assert!(patterns[1].origin.to_string().ends_with(":5"), "{}", patterns[1].origin);
    assert!(
        !loaded.policy.tools.contains_key("shell"),
        "nothing is said of approval"
    );
    assert_snapshot!(world.error("tools:\n  shell:\n    dangerous_patterns: ['(rm']\n"), @r"
    error: `(rm` is no regular expression
     --> /dir/project/stockade.yaml:3:26
      |
    3 |     dangerous_patterns: ['(rm']
      |                          ^^^^^ unclosed group
      |
      = help: a command of that name is `'\brm\b'`; a sign with a meaning of its own has a backslash before it: `'\|'`
    ");
    let large = world.error("tools: {shell: {dangerous_patterns: ['(a{1000}){1000}']}}\n");
    assert!(large.contains("too large"), "{large}");
}

#[test]
fn a_safe_path_is_meant_from_the_config_and_one_that_is_nowhere_writable_is_warned_about() {
    let world = Fixture::new();
    world.mkdir("cache");
    let paths = "sandbox: {paths: {cache: {root: ./cache, mode: rw}, notes: {root: ., mode: ro}}}\n";
    let loaded = world.ok(&format!(
        "{paths}tools: {{write_file: {{safe_paths: [./cache/, ./cache/x, ~/y]}}}}\n"
    ));
    let safe: Vec<String> = loaded.policy.safe_paths["write_file"]
        .iter()
        .map(|safe| safe.path.to_string())
        .collect();
    let (project, home) = (world.project(), world.home());
    let expected = [project.join("cache"), project.join("cache/x"), home.join("y")];
    assert_eq!(safe, expected.map(|path| path.display().to_string()));
    assert_eq!(root(&loaded, "cache").write_approval, Demand::Required);
    let up = world.ok(&format!(
        "{paths}tools: {{write_file: {{safe_paths: [cache/../cache, ../project/cache]}}}}\n"
    ));
    assert!(
        up.policy.safe_paths["write_file"]
            .iter()
            .all(|safe| safe.path.as_path() == project.join("cache"))
    );
    assert!(up.warnings.is_empty(), "{:?}", up.warnings);
    world.link("cache", "link");
    let error = world.error(format!("{paths}tools: {{write_file: {{safe_paths: [link/x]}}}}\n"));
    assert!(
        error.contains("/dir/project/link is a link; write /dir/project/cache/x"),
        "{error}"
    );
    let warnings: Vec<String> = loaded
        .warnings
        .iter()
        .map(|warning| world.shown(&warning.to_string()))
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("`~/y` is in no writable root") && warnings[0].contains("root: ~/y, mode: rw"),
        "{}",
        warnings[0]
    );
}

#[test]
fn a_key_of_one_tool_says_nothing_for_another() {
    let world = Fixture::new();
    for (tool, entry) in [
        ("write_file", "safe_commands: [ls]"),
        ("read_file", "dangerous_patterns: [rm]"),
        ("shell", "safe_paths: [a]"),
        ("read_file", "safe_paths: [a]"),
    ] {
        let error = world.error(format!("tools: {{{tool}: {{{entry}}}}}\n"));
        assert!(
            error.contains("says nothing for") && error.contains("it is a key of"),
            "{error}"
        );
    }
}

#[test]
fn an_old_spelling_is_answered_with_the_line_to_write() {
    let world = Fixture::new();
    for (old, new) in [
        (
            "tool_rules: {write_file: required}",
            "tools: {write_file: {approval: required}}",
        ),
        ("pre_approved: [read_file]", "tools: {read_file: {pre_approved: true}}"),
        ("tools: {shell: {action: approve}}", "approval: none"),
        ("shell: {rules: [{pattern: ls, action: approve}]}", "approval: none"),
        ("host_tools: [notify]", "custom_tools: {NAME: {}}"),
        (
            "approval: {safe_commands: [ls]}",
            "tools: {shell: {safe_commands: [git status, ls]}}",
        ),
        (
            "approval: {dangerous_patterns: [rm]}",
            "tools: {shell: {dangerous_patterns:",
        ),
        (
            "approval: {safe_paths: [cache]}",
            "tools: {write_file: {safe_paths: [./cache/]}}",
        ),
    ] {
        let error = world.error(format!("{old}\n"));
        assert!(error.contains("unknown key") && error.contains(new), "{old}: {error}");
    }
}

#[test]
fn a_custom_tool_without_a_command_is_a_function_of_the_program() {
    let world = Fixture::new();
    let loaded =
        world.ok("custom_tools:\n  stats: {approval: required}\n  notify: {approval: none}\n  files.read: {}\n");
    assert!(
        loaded.custom_tools.is_empty() && loaded.warnings.is_empty(),
        "{:?}",
        loaded.warnings
    );
    let tools = &loaded.policy.tools;
    assert_eq!(
        (tools["stats"].approval, tools["notify"].approval),
        (Demand::Required, Demand::None)
    );
    assert!(!tools.contains_key("files.read"), "its own opinion counts");
    // An entry of `tools:` says more.
    let both = world.ok("custom_tools: {notify: {approval: none}}\ntools: {notify: {approval: deny}}\n");
    assert_eq!(both.policy.tools["notify"].approval, Demand::Deny);
    for (wrong, why) in [
        ("notify: {args: {a: {type: string}}}", "has `args` and no `command`"),
        ("notify: {network: true}", "has `network` and no `command`"),
        ("write_file: {}", "cannot name a function"),
        ("lint: {command: [ruff]}", "has no `description`"),
    ] {
        let error = world.error(format!("custom_tools: {{{wrong}}}\n"));
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_tool_that_only_the_program_knows_is_noted_and_a_misspelled_one_is_an_error() {
    let world = Fixture::new();
    let loaded = world.ok("tools: {get_time: {pre_approved: true}, delete_file: {}}\n");
    assert_eq!(loaded.policy.tools["get_time"].approval, Demand::None);
    assert!(!loaded.policy.tools.contains_key("delete_file"));
    let [warning] = &loaded.warnings[..] else {
        panic!("{:?}", loaded.warnings)
    };
    assert!(
        warning
            .to_string()
            .contains("`custom_tools: {get_time: {}}` says that it is one"),
        "{warning}"
    );
    assert_snapshot!(world.error("tools: {wirte_file: {approval: deny}}\n"), @r"
    error: unknown tool `wirte_file`
     --> /dir/project/stockade.yaml:1:9
      |
    1 | tools: {wirte_file: {approval: deny}}
      |         ^^^^^^^^^^ did you mean `write_file`?
      |
      = help: a tool of your own program of that name is written `custom_tools: {wirte_file: {}}`
    ");
}

#[test]
fn a_config_that_says_nothing_extends_the_system_and_the_toolchains_and_undoes() {
    let world = Fixture::new();
    world.mkdir("a");
    let text = "sandbox: {paths: {a: {root: a, mode: rw}}}\n";
    let (silent, written) = (
        world.ok(text),
        world.ok(&format!("extends: [system, toolchains]\n{text}")),
    );
    assert_eq!(silent.policy.base, written.policy.base);
    assert_eq!(silent.policy.environment, written.policy.environment);
    assert_eq!(silent.policy.protect_fallback, ProtectFallback::Undo);
    let none = world.ok(&format!("extends: []\n{text}"));
    assert!(!silent.policy.base.is_empty() && none.policy.base.is_empty());
}

#[test]
fn nobody_who_answers_is_named_by_a_config() {
    let world = Fixture::new();
    for key in ["approver_program", "approvals_socket", "program", "socket"] {
        let error = world.error(format!("approval: {{{key}: /bin/true}}\n"));
        assert!(error.contains("unknown"), "{error}");
    }
}
