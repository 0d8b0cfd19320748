//! Each change is held against the config with it, and what would hold that, before anybody is asked.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{Actor, Fixture, SECRET, in_both_regimes};
use crate::learn::lab::{accepted_nothing, learn, passes, proposals, shown, text};

in_both_regimes! {
    that_protected_names_are_only_put_back_is_for_a_person_to_write [];
    a_deny_that_stands_beside_it_is_told [];
    what_can_be_given_beside_a_deny_is_given [];
    a_place_that_no_config_can_grant_is_told_to_be_none_in_a_line [];
    what_is_read_and_then_written_is_one_root [];
    two_programs_of_one_root_are_one_change_of_it [];
    writing_what_is_executed_already_takes_both_names [];
}

/// A config beside the workspace that says this of the sandbox and of the project, and nothing else.
fn plain(world: &Fixture, sandbox: &str, project: &str) -> PathBuf {
    let text = format!(
        "extends: [system]\nsandbox:\n{sandbox}  paths:\n    project: {{root: ./workspace, {project}}}\nshell:\n  default: {{allowed: true, approval: none}}\n"
    );
    world.write(world.base().join("agent.yaml"), text)
}

/// Why nothing is proposed for what stays denied.
fn standing(learned: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let all = learned["standing"].as_array().unwrap_or_else(|| panic!("{learned:#}"));
    all.iter()
        .map(|one| (text(&one["denied"]), text(&one["why"])))
        .collect()
}

fn that_protected_names_are_only_put_back_is_for_a_person_to_write(world: &Fixture) {
    let config = plain(world, "  protect_fallback: refuse # mine\n", "mode: ro");
    let before = text(&config);
    let include = format!("rw:{}", world.workspace().display());
    let learned = learn(world, &config, &["--yes", "--include", &include], "touch new");
    assert!(proposals(&learned).is_empty(), "{learned:#}");
    assert!(
        standing(&learned)[0].1.contains("set `sandbox.protect_fallback: undo`"),
        "{learned:#}"
    );
    assert_eq!(text(&config), before);
    let config = plain(world, "  protect_fallback: undo\n", "mode: ro");
    passes(world, &config, &["--yes"], "touch new");
}

const DECOMPOSE: &str = "  protect_fallback: undo\n  deny_fallback: decompose\n";

fn a_deny_that_stands_beside_it_is_told(world: &Fixture) {
    world.write("sub/x", "x");
    let config = plain(world, DECOMPOSE, "mode: ro, deny: [\"*.pem\"]");
    let learned = learn(world, &config, &["--yes"], "touch sub/new");
    assert_eq!(learned["exit"], 126, "{learned:#}");
    let [(denied, why)] = standing(&learned).try_into().unwrap();
    assert!(denied.ends_with("sub/new"), "{learned:#}");
    assert!(why.contains("*.pem"), "{learned:#}");
    assert!(text(&config).contains("mode: ro, deny: [\"*.pem\"]"));
    assert!(!world.workspace().join("sub/new").exists());
}

fn what_can_be_given_beside_a_deny_is_given(world: &Fixture) {
    world.write("sub/x", "x");
    let config = plain(world, DECOMPOSE, "mode: ro, deny: [\"*.pem\"]");
    passes(world, &config, &["--yes"], "echo y >> sub/x");
    let after = text(&config);
    assert!(after.contains("mode: ro, deny: [\"*.pem\"]"), "{after}");
}

fn a_place_that_no_config_can_grant_is_told_to_be_none_in_a_line(world: &Fixture) {
    let config = plain(world, "  protect_fallback: undo\n", "mode: ro");
    let before = text(&config);
    let broad = [("ls /", "no place for private directories")];
    // By their modes the rest is root's alone.
    let roots = [
        ("echo x > /proc/sys/kernel/hostname", "a file system of the kernel's"),
        ("touch /new", "stockade's own state"),
    ];
    let all = match world.actor {
        Actor::Root => [&broad[..], &roots].concat(),
        Actor::User => broad.to_vec(),
    };
    for (line, why) in all {
        let learned = learn(
            world,
            &config,
            &["--yes", "--include", "r:/", "--include", "rw:/"],
            line,
        );
        assert!(proposals(&learned).is_empty(), "{line}: {learned:#}");
        let all = standing(&learned);
        let told = all.iter().find(|(_, told)| told.contains(why));
        let (_, told) = told.unwrap_or_else(|| panic!("{line}: {learned:#}"));
        assert!(
            told.starts_with("the config cannot grant it: ") && !told.contains('\n'),
            "{told}"
        );
        assert_eq!(text(&config), before);
    }
}

fn what_is_read_and_then_written_is_one_root(world: &Fixture) {
    let config = plain(world, "  protect_fallback: undo\n", "mode: ro");
    let file = world.write(world.outside().join("data/notes"), SECRET);
    let line = format!(
        "cat {0}; ls {1}; echo x >> {0}; touch {1}/new; exit 1",
        file.display(),
        file.parent().unwrap().display()
    );
    let learned = learn(world, &config, &["--yes"], &line);
    let data = shown(world.outside().join("data"));
    assert_eq!(
        proposals(&learned),
        [(data, "high".to_owned(), "-".to_owned())],
        "{learned:#}"
    );
    assert_eq!(
        learned["proposals"][0]["change"]["rights"],
        json!(["read", "write"]),
        "{learned:#}"
    );
}

fn two_programs_of_one_root_are_one_change_of_it(world: &Fixture) {
    let config = plain(world, "  protect_fallback: undo\n", "mode: rw, write_approval: false");
    let include = format!("rwx:{}", world.workspace().display());
    let line = "cp /bin/true a; cp /bin/true b; ./a && ./b; ./b";
    let learned = passes(world, &config, &["--include", &include], line);
    assert_eq!(
        proposals(&learned),
        [(shown(world.workspace()), "high".to_owned(), "include".to_owned())],
        "{learned:#}"
    );
}

fn writing_what_is_executed_already_takes_both_names(world: &Fixture) {
    let config = plain(world, "  protect_fallback: undo\n", "mode: ro, execute: true");
    let bin = world.workspace().join("bin");
    world.write("bin/there", "");
    let line = "cp /bin/true bin/t && bin/t";
    let include = |mode: &str| format!("{mode}:{}", bin.display());
    let learned = learn(world, &config, &["--yes", "--include", &include("rw")], line);
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!(
        learned["proposals"][0]["accept_with"],
        format!("--include {}", include("rwx")),
        "{learned:#}"
    );
    passes(world, &config, &["--include", &include("rwx")], line);
}
