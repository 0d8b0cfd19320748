//! What roots, denies, base paths and tools of a config that is right come to.

use super::{Fixture, root};
use crate::config::ArgKind;
use crate::policy::{AbsPath, Audit, AuditLog, Origin, Rights, Scope, Target};

#[test]
fn a_nested_root_and_a_deny_by_path_are_resolved() {
    let world = Fixture::new();
    world.mkdir("a/b");
    let loaded = world.ok("sandbox: {paths: {a: {root: a, mode: rw, deny: [secret/]}, b: {root: a/b}}}\n");
    let secret = crate::policy::AbsPath::new(world.project().join("a/secret")).unwrap();
    assert_eq!(root(&loaded, "a").denies[0].target, Target::Path(secret));
    assert_eq!(root(&loaded, "a").denies[0].rights, Rights::ALL);
    assert_eq!(loaded.policy.root_for(&root(&loaded, "b").path).unwrap().name, "b");
}

#[test]
fn an_absolute_deny_inside_its_root_is_the_same_as_a_relative_one() {
    let world = Fixture::new();
    let absolute = world.project().join("x").display().to_string();
    let a = world.ok(&format!(
        "sandbox: {{paths: {{a: {{root: ., deny: ['{absolute}']}}}}}}\n"
    ));
    let b = world.ok("sandbox: {paths: {a: {root: ., deny: [x/]}}}\n");
    assert_eq!(a.policy, b.policy);
}

#[test]
fn a_root_knows_its_inode_and_its_line() {
    use std::os::unix::fs::MetadataExt as _;
    let world = Fixture::new();
    let loaded = world.ok("sandbox:\n  paths:\n    a: {root: .}\n");
    let found = std::fs::metadata(world.project()).unwrap();
    assert_eq!(
        (
            loaded.policy.roots[0].identity.device,
            loaded.policy.roots[0].identity.inode
        ),
        (found.dev(), found.ino())
    );
    assert!(matches!(&loaded.policy.roots[0].origin, Origin::File { line: 3, .. }));
}

#[test]
fn a_file_can_be_a_root() {
    let world = Fixture::new();
    std::fs::write(world.project().join("f"), "").unwrap();
    assert_eq!(
        world.ok("sandbox: {paths: {f: {root: f}}}\n").policy.roots[0].scope,
        Scope::File
    );
}

#[test]
fn an_empty_suffix_list_matches_no_file() {
    let world = Fixture::new();
    let loaded = world.ok("sandbox: {paths: {a: {root: ., suffixes: []}}}\n");
    assert!(!root(&loaded, "a").suffixes.as_ref().unwrap().matches("a.md".as_ref()));
}

#[test]
fn an_override_that_a_root_does_not_obey_is_warned_about_with_both_lines() {
    let world = Fixture::new();
    let text = "sandbox:\n  paths:\n    a: {root: ., mode: rw, write_approval: true}\ntools:\n  write_file: {approval: none}\n";
    let warning = world.shown(&world.ok(text).warnings[0].to_string());
    insta::assert_snapshot!(warning, @r#"
    warning: `tools: write_file` (/dir/project/stockade.yaml:5) does not answer what root `a` (/dir/project/stockade.yaml:3) demands: it names no root
     --> /dir/project/stockade.yaml:5:3
      |
    3 |     a: {root: ., mode: rw, write_approval: true}
      |     -------------------------------------------- demands approval, and is asked about
    4 | tools:
    5 |   write_file: {approval: none}
      |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ asks nobody
    "#);
    let quiet = text.replace("approval: none", "approval: required");
    assert!(world.ok(&quiet).warnings.is_empty());
    // What the root demands by default, the entry answers.
    let answered = text.replace(", write_approval: true", "");
    assert!(world.ok(&answered).warnings.is_empty());
}

#[test]
fn an_override_that_switches_off_what_a_rule_demands_is_warned_about() {
    let world = Fixture::new();
    let text = "tools: {shell: {approval: none}}\nshell: {rules: [{pattern: git push, approval: required}]}\n";
    let warning = world.ok(text).warnings[0].to_string();
    assert!(warning.contains("switches off what rule `git push`"), "{warning}");
}

#[test]
fn a_base_path_in_a_config_is_granted_as_it_says() {
    let world = Fixture::new();
    world.mkdir("x");
    let x = world.project().join("x").display().to_string();
    let policy = world
        .ok(&format!(
            "sandbox: {{base: {{read: ['{x}', /gone], list: [/proc]}}}}\nextends: []\n"
        ))
        .policy;
    let found: Vec<_> = policy
        .base
        .iter()
        .map(|b| (b.grant.path.to_string(), b.grant.rights, b.grant.scope))
        .collect();
    assert!(found.contains(&(x, Rights::READ, Scope::Tree)));
    assert!(found.contains(&("/proc".to_owned(), Rights::READ, Scope::Names)));
    assert_eq!(found.len(), 2);
    assert!(
        world
            .error("sandbox: {base: {read: [x]}}\n")
            .contains("not an absolute path")
    );
}

#[test]
fn a_base_path_through_a_link_in_a_writable_root_is_left_out_with_a_warning() {
    let world = Fixture::new();
    std::fs::create_dir_all(world.home().join("rw/real")).unwrap();
    std::os::unix::fs::symlink("real", world.home().join("rw/door")).unwrap();
    let loaded = world.ok("sandbox: {paths: {rw: {root: ~/rw, mode: rw}}, base: {read: [~/rw/door]}}\nextends: []\n");
    assert!(loaded.policy.base.is_empty());
    assert!(loaded.warnings[0].message.contains("is left out"));
}

#[test]
fn custom_tools_are_checked() {
    let world = Fixture::new();
    let tool = |body: &str| {
        world.error(format!(
            "sandbox: {{paths: {{src: {{root: .}}}}}}\ncustom_tools: {{lint: {{description: d, {body}}}}}\n"
        ))
    };
    assert!(tool("command: [ruff, '{path}']").contains("`{path}` names no argument"));
    assert!(tool("command: ['{p}'], args: {p: {type: string}}").contains("program of a custom tool is fixed"));
    assert!(tool("command: [ruff], args: {p: {type: string}}").contains("argument `p` is not used"));
    assert!(tool("command: []").contains("has no command"));
    assert!(tool("command: [a, '{p}'], args: {p: {type: path, root: scr}}").contains("did you mean `src`?"));
    assert!(
        tool("command: [a, '{p}'], args: {p: {type: string, root: src}}")
            .contains("`root` is for arguments of type path")
    );
    assert!(tool("command: [a, '{p}'], args: {p: {type: choice}}").contains("a choice needs `choices`"));
    assert!(tool("command: [a, '{p}'], args: {p: {type: nope}}").contains("unknown value `nope`"));
    let fine =
        "custom_tools: {lint: {description: d, command: [a, '--x={p}'], args: {p: {type: choice, choices: [a, b]}}}}\n";
    let loaded = world.ok(fine);
    assert_eq!(
        loaded.custom_tools[0].args[0].kind,
        ArgKind::Choice(vec!["a".into(), "b".into()])
    );
    assert!(loaded.warnings.is_empty());
    assert_eq!(loaded.custom_tools[0].sandbox_paths, None);
    let bound = fine.replace("command", "sandbox_paths: [], command");
    assert_eq!(world.ok(&bound).custom_tools[0].sandbox_paths, Some(Vec::new()));
    assert!(tool("command: [a], sandbox_paths: [scr]").contains("did you mean `src`?"));
}

#[test]
fn a_config_left_to_the_agent_is_warned_about() {
    let world = Fixture::new();
    let text = "sandbox: {protect: none, paths: {a: {root: ., mode: rw}}}\n";
    assert!(world.ok(text).warnings[0].message.contains("to the agent"));
    assert!(world.ok(&text.replace("protect: none, ", "")).warnings.is_empty());
    assert!(world.ok(&text.replace("rw", "ro")).warnings.is_empty());
}

#[test]
fn a_writable_base_path_is_a_device_and_nothing_else() {
    let world = Fixture::new();
    world.mkdir("d");
    std::fs::write(world.home().join(".bashrc"), "").unwrap();
    let project = world.project().join("d").display().to_string();
    for kept in [project.as_str(), "~/.bashrc"] {
        let error = world.error(format!("sandbox: {{base: {{read_write: ['{kept}']}}}}\n"));
        assert!(error.contains("only a device"), "{error}");
    }
    assert_eq!(
        world
            .ok("sandbox: {base: {read_write: [/dev/null]}}\nextends: []\n")
            .policy
            .base
            .len(),
        1
    );
}

#[test]
fn a_shell_override_that_switches_off_the_default_is_warned_about() {
    let world = Fixture::new();
    let message = |text: &str| {
        world
            .ok(text)
            .warnings
            .iter()
            .map(|w| w.message.clone())
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(message("tools: {shell: {approval: none}}\n").contains("switches off what `shell.default`"));
    assert_eq!(
        message("tools: {shell: {approval: none}}\nshell: {default: {approval: none}}\n"),
        ""
    );
}

#[test]
fn the_test_command_can_be_a_pattern() {
    let world = Fixture::new();
    let rule =
        |pattern: &str| format!("shell: {{rules: [{{pattern: '{pattern}', approval: none, match: ['[ -f x ]']}}]}}\n");
    assert_eq!(world.ok(&rule("[ -f")).policy.rules[0].pattern, ["[", "-f"]);
    assert!(world.error(rule("[a-z] -f")).contains("holds a wildcard"));
}

#[test]
fn a_log_is_kept_where_the_config_says_and_nowhere_without_a_word() {
    let world = Fixture::new();
    let audit = |text: &str| world.ok(text).policy.audit;
    assert_eq!(audit("audit: {}\n"), Audit::default());
    assert_eq!(audit("shell: {}\n").log, AuditLog::Off);
    assert_eq!(audit("audit: {log: off}\n").log, AuditLog::Off);
    let kept = audit("audit: {log: default, max_bytes: 1MiB, keep: 0}\n");
    assert_eq!(
        (kept.log, kept.max_bytes, kept.keep),
        (AuditLog::Default, 1 << 20, Some(0))
    );
    let home = world.home().join("logs/a.jsonl");
    assert_eq!(
        audit("audit: {log: ~/logs/a.jsonl}\n").log,
        AuditLog::At(AbsPath::new(home).unwrap())
    );
}

#[test]
fn a_log_beside_the_config_or_of_no_size_is_refused() {
    let world = Fixture::new();
    for (text, message) in [
        ("audit: {log: ./audit.jsonl}", "no absolute path"),
        ("audit: {log: audit.jsonl}", "no absolute path"),
        ("audit: {log: $HOME/a}", "no absolute path"),
        ("audit: {log: ''}", "no absolute path"),
        ("audit: {log: /a/../../b}", "audit.log"),
        ("audit: {log: required}", "belongs in a ceiling"),
        ("audit: {log: default, max_bytes: 1KiB}", "too small"),
        ("audit: {log: default, max_bytes: much}", "much"),
    ] {
        let error = world.error(text);
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn a_root_inside_another_is_executed_as_that_is_unless_it_says_otherwise() {
    let world = Fixture::new();
    world.mkdir("b/c");
    let executes = |b: &str| {
        let text = format!(
            "sandbox:\n  paths:\n    a: {{root: ., mode: ro, execute: true}}\n    b: {{root: b{b}}}\n    c: {{root: b/c}}\n"
        );
        let roots = world.ok(&text).policy.roots;
        let of = |name: &str| roots.iter().find(|root| root.name == name).unwrap().rights;
        ["a", "b", "c"].map(|name| of(name).contains(Rights::EXECUTE))
    };
    assert_eq!(executes(""), [true, true, true]);
    assert_eq!(executes(", execute: false"), [true, false, false]);
    let base = format!(
        "sandbox: {{base: {{read_execute: [{}]}}, paths: {{b: {{root: b}}, c: {{root: b/c, execute: false}}}}}}\n",
        world.project().display()
    );
    let roots = world.ok(&base).policy.roots;
    let rights: Vec<_> = roots.iter().map(|root| root.rights.contains(Rights::EXECUTE)).collect();
    assert_eq!(rights, [true, false]);
}
