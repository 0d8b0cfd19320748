//! What is accepted, and what is not.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::common::{Fixture, SECRET, in_both_regimes};
use crate::learn::lab::{accepted_nothing, config, learn, passes, proposals, read_only, shown, text};

in_both_regimes! {
    without_a_word_nothing_is_accepted_and_it_is_said_how [];
    yes_gives_no_secret_and_its_own_name_does [];
    yes_gives_nothing_outside_of_the_project [];
    a_file_that_only_its_owner_reads_is_a_secret [];
    a_directory_around_a_secret_does_not_name_it [];
    a_directory_with_a_secret_in_it_is_one [];
    a_link_to_a_secret_is_what_it_leads_to [];
    a_deny_stays_and_is_named [];
    a_ceiling_stays_and_is_named [];
    a_root_that_is_asked_about_stays_asked_about [];
    a_flag_beside_the_config_stays [];
    what_is_read_stands_before_what_is_written [];
}

fn without_a_word_nothing_is_accepted_and_it_is_said_how(world: &Fixture) {
    let config = read_only(world);
    let before = text(&config);
    let learned = learn(world, &config, &[], "touch new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!(learned["exit"], 126);
    assert_eq!(text(&config), before);
    let told = world
        .stockade(&["learn", "--config", config.to_str().unwrap(), "-c", "touch new"])
        .output()
        .exits(126);
    let flag = format!("rw:{}", world.workspace().display());
    assert!(told.err().contains(&flag), "{}", told.err());
    assert_eq!(text(&config), before);
}

fn yes_gives_no_secret_and_its_own_name_does(world: &Fixture) {
    let config = read_only(world);
    let key = world.home().join(".ssh/id_ed25519");
    let line = format!("cat {}", key.display());
    let learned = learn(world, &config, &["--yes"], &line);
    assert_eq!(
        proposals(&learned),
        [(shown(&key), "secret".to_owned(), "-".to_owned())],
        "{learned:#}"
    );
    assert!(!learned.to_string().contains(SECRET));
    let include = format!("r:{}", key.display());
    let learned = passes(world, &config, &["--include", &include], &line);
    assert_eq!(
        proposals(&learned),
        [(shown(&key), "secret".to_owned(), "include".to_owned())]
    );
}

fn yes_gives_nothing_outside_of_the_project(world: &Fixture) {
    let config = read_only(world);
    let line = format!("echo x > {0}/made && cat {0}/made", world.outside().display());
    let learned = learn(world, &config, &["--yes"], &line);
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert!(!world.outside().join("made").exists());
    let cache = world.home().join(".cache");
    fs::create_dir(&cache).unwrap();
    if let Some(uid) = world.actor.switch_to() {
        std::os::unix::fs::chown(&cache, Some(uid), Some(uid)).unwrap();
    }
    let learned = learn(world, &config, &["--yes"], &format!("touch {}/x", cache.display()));
    assert_eq!(
        proposals(&learned),
        [(shown(&cache), "high".to_owned(), "-".to_owned())],
        "{learned:#}"
    );
}

fn a_file_that_only_its_owner_reads_is_a_secret(world: &Fixture) {
    let config = read_only(world);
    let file = world.write(world.outside().join("notes"), "x");
    let line = format!("cat {}", file.display());
    let risk = |world: &Fixture| proposals(&learn(world, &config, &["--yes"], &line))[0].1.clone();
    assert_eq!(risk(world), "high");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(risk(world), "secret");
}

fn a_directory_around_a_secret_does_not_name_it(world: &Fixture) {
    let config = read_only(world);
    let key = world.home().join(".ssh/id_ed25519");
    let open = world.write(world.home().join("open/notes"), "x");
    let include = format!("r:{}", world.home().display());
    let learned = learn(
        world,
        &config,
        &["--include", &include],
        &format!("cat {}", key.display()),
    );
    assert!(accepted_nothing(&learned), "{learned:#}");
    passes(
        world,
        &config,
        &["--include", &include],
        &format!("cat {}", open.display()),
    );
}

fn a_directory_with_a_secret_in_it_is_one(world: &Fixture) {
    let config = read_only(world);
    world.write(world.outside().join("data/server.pem"), SECRET);
    let line = format!("touch {}/data/made", world.outside().display());
    let learned = learn(world, &config, &["--yes"], &line);
    let data = shown(world.outside().join("data"));
    assert_eq!(
        proposals(&learned),
        [(data, "secret".to_owned(), "-".to_owned())],
        "{learned:#}"
    );
}

fn a_link_to_a_secret_is_what_it_leads_to(world: &Fixture) {
    let config = read_only(world);
    let key = world.home().join(".ssh/id_ed25519");
    symlink(&key, world.workspace().join("harmless.txt")).unwrap();
    let learned = learn(world, &config, &["--yes"], "cat harmless.txt");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert!(
        proposals(&learned)
            .iter()
            .all(|(path, risk, _)| *path == shown(&key) && risk == "secret")
    );
    // Whoever names the link need not know where it leads.
    let include = format!("r:{}", world.workspace().join("harmless.txt").display());
    let learned = learn(world, &config, &["--include", &include], "cat harmless.txt");
    assert!(accepted_nothing(&learned), "{learned:#}");
    let include = format!("r:{}", key.display());
    passes(world, &config, &["--include", &include], "cat harmless.txt");
}

fn a_deny_stays_and_is_named(world: &Fixture) {
    world.write("closed/x", "x");
    let config = config(
        world,
        "    project: {root: ./workspace, mode: rw, write_approval: false, deny: [closed/]}\n",
    );
    let config_text = text(&config);
    let flags = ["--yes", "--include", &format!("rwx:{}", world.workspace().display())];
    // Landlock alone cannot hold it, and refuses.
    let args = [
        &[
            "learn",
            "--json",
            "--deny-fallback",
            "decompose",
            "--config",
            config.to_str().unwrap(),
        ],
        &flags[..],
        &["-c", "cat closed/x"],
    ]
    .concat();
    let run = world.stockade(&args).output();
    let learned: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert!(learned["standing"].to_string().contains("agent.yaml:6"), "{learned:#}");
    assert_eq!(text(&config), config_text);
}

fn a_ceiling_stays_and_is_named(world: &Fixture) {
    let config = read_only(world);
    let ceiling = world.write(
        world.base().join("ceiling.yaml"),
        "extends: [system, git, rust, node, python]\nsandbox:\n  protect_fallback: undo\n  paths:\n    project: {root: ./workspace, mode: ro}\n",
    );
    let flags = ["--yes", "--ceiling", ceiling.to_str().unwrap()];
    let learned = learn(world, &config, &flags, "touch new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert!(
        learned["standing"]
            .to_string()
            .contains("ceiling.yaml does not give it"),
        "{learned:#}"
    );
    assert!(!world.workspace().join("new").exists());
}

fn a_root_that_is_asked_about_stays_asked_about(world: &Fixture) {
    let config = config(world, "    project: {root: ./workspace, mode: rw}\n");
    let learned = learn(world, &config, &["--yes"], "touch new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert!(learned["standing"].to_string().contains("approved"), "{learned:#}");
}

fn a_flag_beside_the_config_stays(world: &Fixture) {
    let config = config(
        world,
        "    project: {root: ./workspace, mode: rw, write_approval: false}\n",
    );
    world.write("sub/x", "x");
    let learned = learn(
        world,
        &config,
        &["--yes", "--ro", "sub", "--deny-fallback", "decompose"],
        "touch sub/new",
    );
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert!(!world.workspace().join("sub/new").exists());
}

fn what_is_read_stands_before_what_is_written(world: &Fixture) {
    let config = read_only(world);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| world.write(world.outside().join(name).join("x"), "x"));
    let line = format!(
        "echo x >> {}; cat {}; echo x >> {}; cat {}; exit 1",
        a.display(),
        b.display(),
        c.display(),
        d.display()
    );
    let learned = learn(world, &config, &[], &line);
    let high = proposals(&learned).into_iter().filter(|(_, risk, _)| risk == "high");
    // What is not there in namespaces is made, so that it is the directory.
    let names: Vec<_> = high.map(|(path, ..)| path.trim_end_matches("/x").to_owned()).collect();
    assert_eq!(
        names,
        ["b", "d", "a", "c"].map(|name| shown(world.outside().join(name))),
        "{learned:#}"
    );
}
