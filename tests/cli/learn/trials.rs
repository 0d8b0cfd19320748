//! Each change is held against the config with it, and what would hold that, before anybody is asked.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{Actor, Fixture, SECRET, in_both_regimes};
use crate::learn::lab::{accepted_nothing, learn, passes, proposals, shown, text};

in_both_regimes! {
    names_that_can_only_be_put_back_are_an_item_of_its_own [];
    what_somebody_wrote_about_protected_names_stays [];
    putting_back_is_not_written_where_nothing_needs_it [];
    a_deny_that_stands_beside_it_is_told_at_once [];
    what_can_be_given_beside_a_deny_is_given_at_once [];
    a_place_that_no_config_can_grant_is_told_to_be_none_in_a_line [];
    what_is_read_and_then_written_is_one_root [];
    two_programs_of_one_root_are_one_change_of_it [];
    writing_what_is_executed_already_takes_both_names [];
    who_does_not_want_names_put_back_is_not_asked_for_what_needs_it ["python3"];
}

const UNDO: &str = "protect_fallback:undo";

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

fn names_that_can_only_be_put_back_are_an_item_of_its_own(world: &Fixture) {
    let config = plain(world, "", "mode: ro");
    let before = text(&config);
    // It is more than `--yes` accepts: until a command has ended, the host may run what it wrote.
    let learned = learn(world, &config, &["--yes"], "touch new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!(text(&config), before);
    let [writing, undo] = [0, 1].map(|at| learned["proposals"][at].clone());
    assert_eq!(
        (&writing["risk"], &writing["needs"], &undo["risk"]),
        (&"low".into(), &"undo".into(), &"high".into()),
        "{learned:#}"
    );
    assert_eq!(
        undo["change"],
        json!({"kind": "protect_fallback", "protect_fallback": "undo"})
    );
    assert!(undo["reasons"].to_string().contains("the host may run"), "{undo:#}");
    let both = writing["accept_with"].as_str().unwrap();
    assert!(
        both.starts_with("--include rw:") && both.ends_with(&format!(" --include {UNDO}")),
        "{both}"
    );
    // Writing by its own name is not enough either, and with both the command starts again.
    let rw = format!("rw:{}", world.workspace().display());
    let learned = learn(world, &config, &["--include", &rw], "touch new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    passes(world, &config, &["--yes", "--include", UNDO], "touch new");
    let after = text(&config);
    assert!(
        after.contains("mode: rw") && after.contains("  protect_fallback: undo\n"),
        "{after}"
    );
}

fn what_somebody_wrote_about_protected_names_stays(world: &Fixture) {
    let config = plain(world, "  protect_fallback: refuse # mine\n", "mode: ro");
    let before = text(&config);
    let learned = learn(world, &config, &["--yes", "--include", UNDO], "touch new");
    assert!(proposals(&learned).is_empty(), "{learned:#}");
    assert!(
        standing(&learned)[0].1.contains("`protect_fallback: refuse` ("),
        "{learned:#}"
    );
    assert!(
        standing(&learned)[0].1.contains("agent.yaml:3) forbids it"),
        "{learned:#}"
    );
    assert_eq!(text(&config), before);
}

fn putting_back_is_not_written_where_nothing_needs_it(world: &Fixture) {
    let config = plain(world, "", "mode: ro");
    let before = text(&config);
    let learned = learn(world, &config, &["--include", UNDO], "touch new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!(text(&config), before);
}

fn who_does_not_want_names_put_back_is_not_asked_for_what_needs_it(world: &Fixture) {
    let config = plain(world, "", "mode: ro");
    let before = text(&config);
    let file = config.to_str().unwrap();
    let open = world.write(world.outside().join("open"), "x");
    let line = format!("touch new; cat {}", open.display());
    let steps = json!([
        ["expect", "the host may run"],
        ["expect", "approve? ["],
        ["send", "n\r\r"],
        ["expect", "approve? ["],
        ["send", "y\r"]
    ]);
    let (_, shown) = world.play(&steps, &["learn", "--config", file, "-c", &line]);
    let after = text(&config);
    assert!(
        after.contains("learned-open") && !after.contains("undo") && !after.contains("rw"),
        "{after}{shown}"
    );
    world.write(&config, before);
    // With a yes to that, what needs it is asked about.
    let steps = json!([
        ["expect", "the host may run"],
        ["expect", "approve? ["],
        ["send", "y\r"],
        ["expect", "writing inside the project"],
        ["expect", "approve? ["],
        ["send", "y\r"]
    ]);
    let (exit, shown) = world.play(&steps, &["learn", "--config", file, "-c", "touch new"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(text(&config).contains("protect_fallback: undo"), "{shown}");
}

const DECOMPOSE: &str = "  protect_fallback: undo\n  deny_fallback: decompose\n";

fn a_deny_that_stands_beside_it_is_told_at_once(world: &Fixture) {
    world.write("sub/x", "x");
    let config = plain(world, DECOMPOSE, "mode: ro, deny: [\"*.pem\"]");
    let before = text(&config);
    let learned = learn(world, &config, &["--yes"], "touch sub/new");
    assert!(proposals(&learned).is_empty(), "{learned:#}");
    assert_eq!(learned["rounds"].as_array().unwrap().len(), 1, "{learned:#}");
    let [(denied, why)] = standing(&learned).try_into().unwrap();
    assert!(denied.ends_with("sub/new"), "{learned:#}");
    assert!(why.contains("*.pem") && why.contains("agent.yaml:6"), "{learned:#}");
    assert_eq!(text(&config), before);
}

fn what_can_be_given_beside_a_deny_is_given_at_once(world: &Fixture) {
    world.write("sub/x", "x");
    let config = plain(world, DECOMPOSE, "mode: ro, deny: [\"*.pem\"]");
    // Nothing can be made there, and what is there can be written.
    let learned = passes(world, &config, &["--yes"], "touch new; echo y >> sub/x");
    assert_eq!(learned["rounds"].as_array().unwrap().len(), 2, "{learned:#}");
    assert_eq!(
        proposals(&learned),
        [(
            shown(world.workspace().join("sub/x")),
            "low".to_owned(),
            "yes".to_owned()
        )],
        "{learned:#}"
    );
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
