//! What a config that is right comes to.

use std::time::Duration;

use super::{Fixture, root};
use crate::config::ArgKind;
use crate::policy::{
    BackendChoice, Demand, DenyFallback, EnvRule, HomeChoice, Mode, Network, OsSandbox, Pattern, Protect,
    ProtectFallback, Residuals, Right, Rights, Scope, Target, UnixSockets, VarName,
};

/// The example of the design, less what a later version holds.
const WHOLE: &str = r#"
extends: [workspace-write, git]
sandbox:
  require_os_sandbox: true
  os_sandbox_fallback: refuse_tools
  backend: auto
  paths:
    notes:  {root: ./notes, mode: rw, suffixes: [.md, .txt], max_file_bytes: 1MiB, approval: {write: required, read: none}}
    cache:  {root: ./cache, mode: rw, write_approval: false}
    src:    {root: ., mode: ro, deny: [.env, "*.pem"]}
  protect: default
  deny_fallback: decompose
  residuals: refuse
shell:
  network: false
  unix_sockets: none
  env: {pass: [LANG, TERM], set: {CI: "1"}}
  limits: {timeout: 120s, memory: 2GiB, processes: 256, output: 1MiB}
  default: {allowed: true, approval: required}
  rules:
    - {pattern: git status, approval: none, match: ["git status -s"], not_match: ["git status; rm x"]}
    - {pattern: pytest, approval: none, sandbox_paths: [cache]}
    - {pattern: rm, allowed: false, reason: "delete through delete_file"}
tools:
  delete_file: {approval: required}
custom_tools:
  lint: {description: Run the linter, command: [ruff, check, "{path}"], args: {path: {type: path, root: src}}, approval: none}
approval: {mode: strict}
"#;

#[test]
fn the_example_of_the_design_means_what_it_says() {
    let world = Fixture::new();
    world.mkdir("notes");
    world.mkdir("cache");
    let loaded = world.ok(WHOLE);
    let policy = &loaded.policy;
    let notes = root(&loaded, "notes");
    assert_eq!(notes.rights, Rights::READ | Rights::WRITE);
    assert_eq!(notes.max_file_bytes, Some(1 << 20));
    assert_eq!(notes.suffixes.as_ref().unwrap().to_string(), "[.md, .txt]");
    assert_eq!(
        (notes.read_approval, notes.write_approval),
        (Demand::None, Demand::Required)
    );
    assert_eq!(root(&loaded, "cache").write_approval, Demand::None);
    let src = root(&loaded, "src");
    assert_eq!((src.rights, src.scope), (Rights::READ, Scope::Tree));
    let patterns: Vec<_> = src.denies.iter().map(|deny| deny.target.clone()).collect();
    let pattern = |pattern| Target::Pattern {
        root: src.path.clone(),
        pattern,
    };
    assert_eq!(
        patterns,
        [
            pattern(Pattern::Name(".env".into())),
            pattern(Pattern::Suffix(".pem".into()))
        ]
    );
    assert_eq!(policy.os_sandbox, OsSandbox::RefuseTools);
    assert_eq!(
        (policy.deny_fallback, policy.residuals),
        (DenyFallback::Decompose, Residuals::Refuse)
    );
    assert_eq!(policy.limits.timeout, Some(Duration::from_mins(2)));
    assert_eq!(
        (policy.limits.memory, policy.limits.processes, policy.limits.output),
        (Some(2 << 30), Some(256), Some(1 << 20))
    );
    assert_eq!(
        policy.environment.get(&VarName::new("CI").unwrap()),
        Some(&EnvRule::Set("1".into()))
    );
    assert_eq!(
        policy.environment.get(&VarName::new("LANG").unwrap()),
        Some(&EnvRule::Pass)
    );
    let patterns: Vec<_> = policy.rules.iter().map(|rule| rule.pattern.join(" ")).collect();
    assert_eq!(patterns, ["git status", "pytest", "rm"]);
    assert_eq!(policy.rules[1].sandbox_paths, Some(vec!["cache".to_owned()]));
    assert_eq!(
        (policy.rules[2].allowed, policy.rules[2].approval),
        (false, Demand::Deny)
    );
    assert_eq!(policy.tools["delete_file"].approval, Demand::Required);
    assert_eq!(policy.mode, Mode::Strict);
    assert_eq!(
        loaded.custom_tools[0].args[0].kind,
        ArgKind::Path(Some("src".to_owned()))
    );
    assert_eq!(
        policy.protect,
        Protect::Default(vec![
            crate::policy::AbsPath::new(world.project().join("stockade.yaml")).unwrap()
        ])
    );
}

#[test]
fn the_files_own_root_replaces_a_presets_at_the_same_place_and_a_note_says_so() {
    let world = Fixture::new();
    let loaded = world.ok("extends: [workspace-write]\nsandbox: {paths: {src: {root: ., mode: ro}}}\n");
    assert_eq!(loaded.policy.roots.len(), 1);
    assert_eq!(loaded.policy.roots[0].name, "src");
    assert!(!loaded.policy.roots[0].rights.has(Right::Write));
    assert!(
        loaded.notes[0].to_string().contains("replaces the root `workspace`"),
        "{}",
        loaded.notes[0]
    );
    assert_eq!(loaded.warnings, []);
}

#[test]
fn scalars_of_the_file_win_over_a_presets() {
    let world = Fixture::new();
    let own = world
        .ok("extends: [workspace-write]\nsandbox: {protect_fallback: refuse}\nshell: {default: {approval: required}}\n")
        .policy;
    assert_eq!(
        (own.protect_fallback, own.default_rule.approval),
        (ProtectFallback::Refuse, Demand::Required)
    );
    let preset = world.ok("extends: [workspace-write]\n").policy;
    assert_eq!(
        (preset.protect_fallback, preset.default_rule.approval),
        (ProtectFallback::Undo, Demand::None)
    );
}

#[test]
fn without_a_preset_nothing_is_granted_and_everything_is_asked() {
    let policy = Fixture::new().ok("extends: []\nshell: {network: false}\n").policy;
    assert!(policy.roots.is_empty() && policy.base.is_empty() && policy.rules.is_empty());
    assert_eq!(policy.environment.iter().count(), 0);
    assert_eq!(
        (policy.network, policy.unix_sockets, policy.home),
        (Network::Off, UnixSockets::None, HomeChoice::Private)
    );
    assert_eq!(
        (policy.default_rule.allowed, policy.default_rule.approval),
        (true, Demand::Required)
    );
    assert_eq!(
        (policy.os_sandbox, policy.backend, policy.mode),
        (OsSandbox::FailFast, BackendChoice::Auto, Mode::Interactive)
    );
    assert_eq!(
        (policy.protect_fallback, policy.deny_fallback),
        (ProtectFallback::Undo, DenyFallback::CoverExisting)
    );
}

#[test]
fn a_root_that_says_nothing_else_is_read_only_and_asks_before_writes() {
    let world = Fixture::new();
    let loaded = world.ok("sandbox: {paths: {a: {root: .}}}\n");
    let a = root(&loaded, "a");
    assert_eq!(
        (a.rights, a.read_approval, a.write_approval),
        (Rights::READ, Demand::None, Demand::Required)
    );
}

#[test]
fn both_spellings_of_approval_mean_the_same() {
    let world = Fixture::new();
    for (long, short) in [
        ("{write: required}", "true"),
        ("{write: none}", "false"),
        ("{write: true}", "true"),
    ] {
        let a = world.ok(&format!(
            "sandbox: {{paths: {{a: {{root: ., mode: rw, approval: {long}}}}}}}\n"
        ));
        let b = world.ok(&format!(
            "sandbox: {{paths: {{a: {{root: ., mode: rw, write_approval: {short}}}}}}}\n"
        ));
        assert_eq!(a.policy, b.policy);
    }
}

#[test]
fn pre_approved_is_a_synonym_of_none() {
    let world = Fixture::new();
    let text = |entry: &str| format!("tools: {{read_file: {{{entry}}}}}\n");
    assert_eq!(
        world.ok(&text("pre_approved: true")).policy,
        world.ok(&text("approval: none")).policy
    );
    assert!(
        world
            .error(text("pre_approved: true, approval: none"))
            .contains("given twice")
    );
    assert!(world.ok(&text("")).policy.tools.is_empty());
}

#[test]
fn variables_that_stockade_sets_and_patterns_are_refused() {
    let world = Fixture::new();
    assert!(
        world
            .error("shell: {env: {pass: [HOME]}}\n")
            .contains("set by stockade itself")
    );
    assert!(
        world
            .error("shell: {env: {set: {TMPDIR: /tmp}}}\n")
            .contains("set by stockade itself")
    );
    assert!(world.error("shell: {env: {pass: ['LC_*']}}\n").contains("is a pattern"));
    assert!(
        world
            .error("shell: {env: {pass: ['A=B']}}\n")
            .contains("cannot be the name")
    );
    let loaded = world.ok("shell: {env: {set: {A: $HOME}}}\n");
    assert!(loaded.warnings[0].message.contains("values are not expanded"));
}
