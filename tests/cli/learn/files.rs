//! The config that is changed, or made.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::json;

use crate::common::{Fixture, as_root_and_as_user, eventually};
use crate::learn::lab::{config, learn, passes, proposals, read_only, shown, text};

as_root_and_as_user! {
    comments_and_everything_else_stay_as_they_were_written [];
    the_file_keeps_its_owner_and_mode [];
    a_config_that_changed_meanwhile_is_left_alone [];
    a_link_to_a_config_stays_a_link [];
    a_config_with_another_name_is_left_alone [];
    what_was_learned_is_told_where_it_cannot_be_written [];
    a_config_that_would_mean_other_places_is_not_begun [];
    a_config_that_was_found_is_used_again_only_when_it_was_read [];
    who_answers_at_a_terminal_has_it_written_and_reads_it ["python3"];
    a_new_config_without_a_file_is_printed [];
    flags_become_a_config_that_says_the_same [];
    a_preset_becomes_a_config_that_passes_elsewhere [];
    what_is_there_already_is_not_written_over [];
    a_command_that_is_stopped_changes_nothing [];
    an_alias_is_not_edited_and_it_is_said_what_to_write [];
    a_root_of_a_file_that_is_extended_is_replaced_in_the_config_itself [];
}

fn comments_and_everything_else_stay_as_they_were_written(world: &Fixture) {
    let config = read_only(world);
    let before = text(&config);
    passes(world, &config, &["--yes"], "touch new");
    let after = text(&config);
    let changed = before.replace("mode: ro}", "mode: rw, write_approval: false}");
    assert_eq!(after, changed);
}

fn a_root_of_a_file_that_is_extended_is_replaced_in_the_config_itself(world: &Fixture) {
    let base = "sandbox: {paths: {project: {root: ../workspace, mode: ro}}}\n";
    let extended = world.write(world.base().join("shared/base.yaml"), base);
    let own = "extends: [./shared/base.yaml]\nshell:\n  default: {allowed: true, approval: none}\n";
    let config = world.write(world.base().join("agent.yaml"), own);
    passes(world, &config, &["--yes"], "touch new");
    assert_eq!(text(&extended), base);
    let after = text(&config);
    assert!(
        after.starts_with(own.trim_end()) && after.contains("root: ./workspace, mode: rw"),
        "{after}"
    );
    // The twin: the same root in the config itself is widened where it stands.
    let own = "sandbox: {paths: {project: {root: ./workspace, mode: ro}}}\nshell:\n  default: {allowed: true, approval: none}\n";
    let config = world.write(world.base().join("agent.yaml"), own);
    fs::remove_file(world.workspace().join("new")).unwrap();
    passes(world, &config, &["--yes"], "touch new");
    assert_eq!(
        text(&config),
        own.replace("mode: ro}", "mode: rw, write_approval: false}")
    );
}

fn the_file_keeps_its_owner_and_mode(world: &Fixture) {
    let config = read_only(world);
    fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&config).unwrap();
    passes(world, &config, &["--yes"], "touch new");
    let after = fs::metadata(&config).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    let left: Vec<_> = fs::read_dir(world.base())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !left.iter().any(|name| name.to_str().unwrap().starts_with(".agent")),
        "{left:?}"
    );
}

fn a_config_that_changed_meanwhile_is_left_alone(world: &Fixture) {
    let config = read_only(world);
    let args = [
        "learn",
        "--yes",
        "--config",
        config.to_str().unwrap(),
        "-c",
        "touch new && until [ -e go ]; do sleep 0.05; done",
    ];
    let running = world.stockade(&args).spawn();
    // Its second round has begun when the file is there.
    eventually("its second round", || world.workspace().join("new").exists());
    let other = format!("{}# somebody else\n", text(&config));
    fs::write(&config, &other).unwrap();
    world.write("go", "");
    let run = running.wait().exits(125);
    assert!(run.err().contains("has changed since it was read"), "{}", run.err());
    assert_eq!(text(&config), other);
}

fn a_link_to_a_config_stays_a_link(world: &Fixture) {
    let config = read_only(world);
    let link = world.base().join("link.yaml");
    symlink("agent.yaml", &link).unwrap();
    passes(world, &link, &["--yes"], "touch new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(text(&config).contains("mode: rw"));
}

fn a_config_with_another_name_is_left_alone(world: &Fixture) {
    let config = read_only(world);
    let before = text(&config);
    fs::hard_link(&config, world.base().join("other.yaml")).unwrap();
    let args = [
        "learn",
        "--yes",
        "--config",
        config.to_str().unwrap(),
        "-c",
        "touch new",
    ];
    let run = world.stockade(&args).output().exits(125);
    assert!(
        run.err().contains("another name") && run.err().contains("`--out FILE`"),
        "{}",
        run.err()
    );
    assert_eq!(text(&config), before);
}

fn what_was_learned_is_told_where_it_cannot_be_written(world: &Fixture) {
    let config = read_only(world);
    let before = text(&config);
    let other = world.base().join("other.yaml");
    fs::hard_link(&config, &other).unwrap();
    let named = config.to_str().unwrap();
    let wanted = before.replace("mode: ro}", "mode: rw, write_approval: false}");
    let run = world
        .stockade(&["learn", "--yes", "--config", named, "-c", "touch new"])
        .output()
        .exits(125);
    assert_eq!(run.out(), wanted, "{}", run.err());
    assert!(run.err().contains("was not written"), "{}", run.err());
    let learned = learn(world, &config, &["--yes"], "touch newer");
    assert_eq!(
        (&learned["exit"], &learned["written"], &learned["config"]),
        (&json!(125), &json!(null), &json!(wanted)),
        "{learned:#}"
    );
    assert!(learned["reason"].to_string().contains("another name"), "{learned:#}");
    assert_eq!(text(&config), before);
    // Where it can be, it is not printed.
    fs::remove_file(&other).unwrap();
    let run = world
        .stockade(&["learn", "--yes", "--config", named, "-c", "touch newest"])
        .output()
        .exits(0);
    assert_eq!((run.out().as_str(), text(&config)), ("", wanted));
}

fn a_config_that_would_mean_other_places_is_not_begun(world: &Fixture) {
    let config = read_only(world);
    let learning = |out: &str| {
        let named = config.to_str().unwrap();
        world.stockade(&["learn", "--yes", "--config", named, "--out", out, "-c", "touch new"])
    };
    world.write(world.outside().join("workspace/x"), "x");
    let said = learning("../outside/out.yaml").output().exits(125).err();
    assert!(said.contains("a config that lies elsewhere means"), "{said}");
    assert!(!world.outside().join("out.yaml").exists());
    learning("../out.yaml").output().exits(0);
}

fn a_config_that_was_found_is_used_again_only_when_it_was_read(world: &Fixture) {
    let before = "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    project: {root: ., mode: ro}\nshell:\n  default: {allowed: true, approval: none}\n";
    world.write("stockade.yaml", before);
    world
        .stockade(&["learn", "--yes", "-c", "touch new"])
        .output()
        .exits(125);
    world.stockade(&["trust"]).output().exits(0);
    let run = world.stockade(&["learn", "--yes", "-c", "touch new"]).output().exits(0);
    assert!(run.err().contains("stockade trust"), "{}", run.err());
    world.stockade(&["run", "-c", "touch new"]).output().exits(125);
    world.stockade(&["trust"]).output().exits(0);
    world.stockade(&["run", "-c", "touch new"]).output().exits(0);
    world.stockade(&["trust", "--forget"]).output().exits(0);
}

fn flags_become_a_config_that_says_the_same(world: &Fixture) {
    world.write("src/secret/x", "x");
    world.write("out/x", "x");
    let args = [
        "learn",
        "--ro",
        ".",
        "--rw",
        "out",
        // What `--ro` gives is executed as well, so that it is written is for somebody to say.
        "--include",
        "rwx:.",
        "--out",
        "new.yaml",
        "-c",
        "touch out/y && touch y",
    ];
    world.stockade(&args).output().exits(0);
    let run = |line: &str| world.stockade(&["run", "--config", "new.yaml", "-c", line]).output();
    run("touch out/y && touch y").exits(0);
    run(&format!("cat {}/secret", world.outside().display())).exits(1);
    let text = text(world.workspace().join("new.yaml"));
    assert!(
        text.contains("extends: [toolchains]") && text.contains("rw1: {root: ./out, mode: rw, execute: true"),
        "{text}"
    );
}

fn a_preset_becomes_a_config_that_passes_elsewhere(world: &Fixture) {
    let file = world.write(world.outside().join("open"), "x");
    let include = format!("r:{}", file.display());
    let out = shown(world.base().join("out.yaml"));
    let line = format!("cat {} > copy", file.display());
    world
        .stockade(&["learn", "--include", &include, "--out", &out, "-c", &line])
        .output()
        .exits(0);
    world
        .stockade(&["run", "--config", &out, "-c", &line])
        .output()
        .exits(0);
    world
        .stockade(&["run", "--config", &out, "-c", "cat ~/.ssh/id_ed25519"])
        .output()
        .exits(1);
}

fn what_is_there_already_is_not_written_over(world: &Fixture) {
    let there = world.write("there.yaml", "x");
    world
        .stockade(&["learn", "--out", "there.yaml", "-c", "true"])
        .output()
        .exits(125);
    assert_eq!(text(there), "x");
}

fn a_command_that_is_stopped_changes_nothing(world: &Fixture) {
    let config = read_only(world);
    let before = text(&config);
    let args = [
        "learn",
        "--yes",
        "--config",
        config.to_str().unwrap(),
        "-c",
        "touch new && sleep infinity",
    ];
    let running = world.stockade(&args).spawn();
    eventually("its second round", || world.workspace().join("new").exists());
    running.signal(nix::sys::signal::Signal::SIGTERM);
    let run = running.wait().exits(143);
    assert!(run.err().contains("nothing was written"), "{}", run.err());
    assert_eq!(text(&config), before);
}

fn an_alias_is_not_edited_and_it_is_said_what_to_write(world: &Fixture) {
    let config = config(
        world,
        "    project: {root: ./workspace, mode: &m ro}\n    outside: {root: ./outside, mode: *m}\n",
    );
    let before = text(&config);
    let learned = learn(world, &config, &["--yes"], "touch new");
    assert!(proposals(&learned).is_empty(), "{learned:#}");
    assert!(
        learned["standing"].to_string().contains("Write this into it yourself"),
        "{learned:#}"
    );
    assert_eq!(text(&config), before);
}

fn who_answers_at_a_terminal_has_it_written_and_reads_it(world: &Fixture) {
    let before = "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    project: {root: ., mode: ro}\nshell:\n  default: {allowed: true, approval: none}\n";
    let config = world.write("stockade.yaml", before);
    world.stockade(&["trust"]).output().exits(0);
    for (keys, code) in [("n\r\r", 126), ("\u{4}", 126), ("y\r", 0)] {
        assert_eq!(text(&config), before);
        let steps = json!([["expect", "approve? ["], ["send", keys]]);
        let (exit, shown) = world.play(&steps, &["learn", "-c", "touch new"]);
        assert_eq!(exit, code, "{shown}");
        assert!(
            shown.contains("+    project: {root: ., mode: rw, write_approval: false}"),
            "{shown}"
        );
    }
    world.stockade(&["run", "-c", "touch new"]).output().exits(125);
    world.stockade(&["trust"]).output().exits(0);
    world.stockade(&["run", "-c", "touch new"]).output().exits(0);
    // A secret is asked about alone, and what is of low risk is not accepted with it.
    let key = world.home().join(".ssh/id_ed25519");
    let steps = json!([
        ["expect", "secret or broad"],
        ["expect", "approve? ["],
        ["send", "n\r\r"]
    ]);
    let (exit, shown) = world.play(&steps, &["learn", "-c", &format!("cat {}", key.display())]);
    assert_eq!(exit, 126, "{shown}");
    world.stockade(&["trust", "--forget"]).output().exits(0);
}

fn a_new_config_without_a_file_is_printed(world: &Fixture) {
    let file = world.write(world.outside().join("open"), "x");
    let include = format!("r:{}", file.display());
    let line = format!("cat {} > copy", file.display());
    let run = world
        .stockade(&["learn", "--include", &include, "-c", &line])
        .output()
        .exits(0);
    assert!(!world.workspace().join("stockade.yaml").exists());
    let config = world.write("new.yaml", run.out());
    let config = config.to_str().unwrap();
    world
        .stockade(&["run", "--config", config, "-c", &line])
        .output()
        .exits(0);
}
