//! Commands that attempt things to have them granted.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::common::{Actor, Fixture, SECRET, as_root_and_as_user};
use crate::learn::lab::{accepted_nothing, learn, passes, proposals, read_only, shown, text};

as_root_and_as_user! {
    a_name_that_is_yaml_is_a_name [];
    a_name_that_is_no_text_is_not_proposed [];
    what_a_command_is_called_moves_no_cursor [];
    many_attempts_on_secrets_give_nothing ["python3"];
    a_hard_link_that_leads_out_is_not_the_project_alone [];
    what_became_a_link_between_rounds_is_not_granted ["python3"];
    a_protected_file_gets_no_root_of_its_own ["git"];
    a_project_that_is_a_home_has_no_low_risk [];
    a_round_runs_under_nothing_but_the_config [];
    a_directory_that_cannot_be_listed_may_hold_anything [];
    a_place_with_an_access_list_is_not_ones_own ["setfacl"];
    a_link_in_the_project_names_no_secret [];
    a_link_that_the_command_puts_where_the_config_names_a_root_is_told [];
    settings_of_a_user_are_no_project [];
    what_is_executed_is_not_made_writable_without_a_word [];
    what_is_said_to_accept_a_name_can_be_pasted ["bash"];
}

// Only root mounts something into a project.
crate::common::declare! { root_with_mounts Root Landlock;
    what_is_mounted_into_the_project_is_not_the_projects ["mount", "unshare"];
}

fn a_name_that_is_yaml_is_a_name(world: &Fixture) {
    for name in [
        "a: {root: /}",
        "x\", mode: rw, root: \"/",
        "b # c",
        "- d",
        "*e",
        "'",
        "\n    evil: {root: /}\n",
        "true",
    ] {
        let config = read_only(world);
        let folder = world.workspace().join(name);
        world.write(folder.join("x"), "x");
        let line = format!("cd -- '{}' && touch y", name.replace('\'', "'\\''"));
        let learned = learn(
            world,
            &config,
            &["--include", &format!("rw:{}", world.workspace().display())],
            &line,
        );
        assert_eq!(learned["passes"], true, "{learned:#}");
        // That folder, and no other.
        let run = |line: &str| {
            world
                .stockade(&["run", "--config", config.to_str().unwrap(), "-c", line])
                .output()
        };
        run(&line).exits(0);
        run("touch elsewhere").exits(1);
        run(&format!("cat {}/secret", world.outside().display())).exits(1);
        fs::remove_dir_all(folder).unwrap();
    }
}

fn a_name_that_is_no_text_is_not_proposed(world: &Fixture) {
    let config = read_only(world);
    let folder = world.workspace().join(OsStr::from_bytes(b"a\xff"));
    world.write(folder.join("x"), "x");
    let learned = learn(world, &config, &["--yes"], "cd a* && touch y");
    assert!(
        accepted_nothing(&learned) && proposals(&learned).is_empty(),
        "{learned:#}"
    );
    assert!(learned["standing"].to_string().contains("not UTF-8"), "{learned:#}");
}

fn what_a_command_is_called_moves_no_cursor(world: &Fixture) {
    let config = read_only(world);
    let folder = world.workspace().join("a\u{1b}[2J\u{202e}b");
    world.write(folder.join("x"), "x");
    for flags in [
        &[][..],
        &["--yes"],
        &["--include", &format!("rw:{}", world.workspace().display())],
    ] {
        let args = [
            &["learn", "--config", config.to_str().unwrap()],
            flags,
            &["-c", "cd a* && touch y 2> /dev/null"],
        ]
        .concat();
        let run = world.stockade(&args).output();
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(!said.contains('\u{1b}') && !said.contains('\u{202e}'), "{said:?}");
        assert!(said.contains("a\\u{1b}[2J\\u{202e}b"), "{said}");
    }
    assert!(!text(&config).contains('\u{1b}'));
    world
        .stockade(&["run", "--config", config.to_str().unwrap(), "-c", "cd a* && touch y"])
        .output()
        .exits(0);
}

fn many_attempts_on_secrets_give_nothing(world: &Fixture) {
    let config = read_only(world);
    let line = format!(
        "for f in {h}/.ssh/id_ed25519 {h}/.ssh {h} / /etc /etc/shadow /home /root /proc/1/environ /dev/mem /var/run /run; do cat $f; ls $f; \
         touch $f/x; done; touch {h}/.bashrc {h}/.profile; exit 1",
        h = world.home().display()
    );
    let before = text(&config);
    let learned = learn(world, &config, &["--yes"], &line);
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!(text(&config), before);
    assert!(!learned.to_string().contains(SECRET));
}

fn a_hard_link_that_leads_out_is_not_the_project_alone(world: &Fixture) {
    let config = read_only(world);
    let outside = world.write(world.outside().join("shared"), "x");
    fs::hard_link(&outside, world.workspace().join("inside")).unwrap();
    for line in ["echo y >> inside", "touch new"] {
        let learned = learn(world, &config, &["--yes"], line);
        assert!(accepted_nothing(&learned), "{learned:#}");
        assert!(
            proposals(&learned).iter().all(|(_, risk, _)| risk == "high"),
            "{learned:#}"
        );
    }
    assert_eq!(text(outside), "x");
    fs::remove_file(world.workspace().join("inside")).unwrap();
    passes(world, &config, &["--yes"], "touch new");
}

fn what_became_a_link_between_rounds_is_not_granted(world: &Fixture) {
    // It writes where it may, and has a directory that it may soon have become a link to something else.
    world.write("open/x", "x");
    let config = crate::learn::lab::config(
        world,
        "    project: {root: ./workspace, mode: ro}\n    open: {root: ./workspace/open, mode: rw, write_approval: false}\n",
    );
    let line = format!(
        "mkdir -p open/d; echo x > open/d/f; chmod +x open/d/f; open/d/f; rm -rf open/d; ln -s {}/.ssh open/d; exit 1",
        world.home().display()
    );
    let learned = learn(
        world,
        &config,
        &["--yes", "--include", &format!("rwx:{}", world.workspace().display())],
        &line,
    );
    let home = shown(world.home());
    assert!(
        proposals(&learned).iter().all(|(path, ..)| !path.starts_with(&home)),
        "{learned:#}"
    );
    assert!(!text(&config).contains(".ssh"), "{}", text(&config));
}

fn a_project_that_is_a_home_has_no_low_risk(world: &Fixture) {
    // What is private there would be denied, and Landlock alone refuses a deny in a root.
    fs::remove_dir_all(world.home().join(".ssh")).unwrap();
    let config = crate::learn::lab::config(world, "    home: {root: ./home, mode: ro}\n");
    let args = [
        "learn",
        "--json",
        "--yes",
        "--config",
        config.to_str().unwrap(),
        "--cwd",
        "../home",
        "-c",
        "touch new",
    ];
    let run = world.stockade(&args).output();
    let learned: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!(
        proposals(&learned),
        [(shown(world.home()), "secret".to_owned(), "-".to_owned())]
    );
}

fn a_round_runs_under_nothing_but_the_config(world: &Fixture) {
    let config = read_only(world);
    let line = format!(
        "cat {}/secret; touch new && touch {}/made",
        world.outside().display(),
        world.outside().display()
    );
    let learned = learn(world, &config, &["--yes"], &line);
    assert!(!learned["rounds"].to_string().contains(SECRET), "{learned:#}");
    assert!(world.workspace().join("new").exists());
    assert!(!world.outside().join("made").exists());
}

fn a_protected_file_gets_no_root_of_its_own(world: &Fixture) {
    world.bare("git").args(["init", "-q"]).output().ok();
    world.bare("git").args(["init", "-q", "--bare", "bare"]).output().ok();
    for file in ["mise.toml", ".envrc", ".vscode/tasks.json", ".npmrc", "sub/.git"] {
        world.write(file, "as it was");
    }
    world.write(".git/hooks/pre-commit", "as it was");
    let config = crate::learn::lab::config(
        world,
        "    project: {root: ./workspace, mode: ro}\n    own: {root: ./agent.yaml}\n",
    );
    let closed = [
        "mise.toml",
        ".envrc",
        ".vscode/tasks.json",
        ".npmrc",
        "sub/.git",
        ".git/hooks/pre-commit",
        ".git/config",
        "bare/config",
        "../agent.yaml",
    ];
    let before: Vec<String> = closed.iter().map(|file| text(world.workspace().join(file))).collect();
    for (file, before) in closed.iter().zip(&before) {
        for line in [
            format!("echo evil >> {file}"),
            format!("echo evil >> {file}; touch {file}.x; rm -f {file}.x; echo evil >> {file}"),
        ] {
            learn(world, &config, &["--yes"], &line);
        }
        let run = world.stockade(&[
            "run",
            "--config",
            config.to_str().unwrap(),
            "-c",
            &format!("echo evil >> {file}"),
        ]);
        run.output();
        let after = text(world.workspace().join(file));
        // The config has what was accepted; nothing of it is the command's.
        if *file == "../agent.yaml" {
            assert!(!after.contains("evil"), "{after}");
        } else {
            assert_eq!(after, *before, "{file}");
        }
    }
    assert!(!text(&config).contains("agent.yaml, mode: rw"), "{}", text(&config));
    let learned = learn(world, &read_only(world), &[], "echo evil >> .vscode/tasks.json");
    assert!(
        learned["standing"].to_string().contains("it is protected"),
        "{learned:#}"
    );
}

fn a_directory_that_cannot_be_listed_may_hold_anything(world: &Fixture) {
    world.write("data/x", "x");
    world.write("data/vault/id_rsa", SECRET);
    let vault = world.workspace().join("data/vault");
    let mode = |mode| fs::set_permissions(&vault, fs::Permissions::from_mode(mode)).unwrap();
    // Root sees what is in it, and that nothing but writing is added.
    let seen = world.actor == Actor::Root;
    // Names in it that can be guessed, names in it without their modes, and nothing that its owner could not change.
    for closed in [0o311, 0o444, 0o000] {
        mode(closed);
        let config = read_only(world);
        let learned = learn(world, &config, &["--yes"], "cat data/vault/id_rsa; echo x > data/n");
        mode(0o755);
        assert_eq!(proposals(&learned).len(), 1, "{closed:o}: {learned:#}");
        assert_eq!(accepted_nothing(&learned), !seen, "{closed:o}: {learned:#}");
        let _ = fs::remove_file(world.workspace().join("data/n"));
    }
    let config = read_only(world);
    // One that can be, and holds nothing, is the project's.
    fs::remove_dir_all(&vault).unwrap();
    passes(world, &config, &["--yes"], "echo x > data/n");
}

fn a_link_in_the_project_names_no_secret(world: &Fixture) {
    let keys = world.write(world.home().join(".aws/token"), "mine");
    std::os::unix::fs::symlink(world.home().join(".aws"), world.workspace().join("cache")).unwrap();
    let config = read_only(world);
    for named in [
        "rw:./cache".to_owned(),
        format!("rw:{}/cache", world.workspace().display()),
    ] {
        let learned = learn(world, &config, &["--include", &named], "echo evil > cache/token");
        assert!(accepted_nothing(&learned), "{named}: {learned:#}");
    }
    assert_eq!(text(&keys), "mine");
    // Who names it has it.
    let named = format!("rw:{}", keys.display());
    let learned = learn(world, &config, &["--include", &named], "echo evil > cache/token");
    assert!(!accepted_nothing(&learned), "{learned:#}");
}

fn settings_of_a_user_are_no_project(world: &Fixture) {
    world.write(world.home().join(".config/autostart/x"), "");
    let config = crate::learn::lab::config(world, "    settings: {root: ./home/.config, mode: ro}\n");
    for (place, line) in [
        ("../home/.config", "touch autostart/new"),
        ("../home/.config/autostart", "touch new"),
    ] {
        let named = config.to_str().unwrap();
        let args = [
            "learn", "--json", "--yes", "--config", named, "--cwd", place, "-c", line,
        ];
        let run = world.stockade(&args).output();
        let learned: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
        assert!(
            accepted_nothing(&learned) && !proposals(&learned).is_empty(),
            "{learned:#}"
        );
    }
}

fn what_is_executed_is_not_made_writable_without_a_word(world: &Fixture) {
    world.write("bin/keep", "");
    let config = crate::learn::lab::config(
        world,
        "    project: {root: ./workspace, mode: ro}\n    bin: {root: ./workspace/bin, mode: ro, execute: true}\n",
    );
    let learned = learn(
        world,
        &config,
        &["--yes"],
        "cat /usr/bin/true > bin/x && chmod +x bin/x && bin/x",
    );
    assert!(accepted_nothing(&learned), "{learned:#}");
    let include = format!("rwx:{}/bin", world.workspace().display());
    passes(
        world,
        &config,
        &["--include", &include],
        "cat /usr/bin/true > bin/x && chmod +x bin/x && bin/x",
    );
}

fn a_place_with_an_access_list_is_not_ones_own(world: &Fixture) {
    world.write("data/x", "x");
    let data = world.workspace().join("data");
    // The twin, in the same place without one.
    let config = read_only(world);
    passes(world, &config, &["--yes"], "echo x > data/n");
    fs::remove_file(data.join("n")).unwrap();
    let set = ["-m", "u:65534:rwx", data.to_str().unwrap()];
    world.bare("setfacl").args(set).output().exits(0);
    let config = read_only(world);
    let learned = learn(world, &config, &["--yes"], "echo x > data/n");
    assert_eq!(proposals(&learned).len(), 1, "{learned:#}");
    assert!(accepted_nothing(&learned), "{learned:#}");
}

fn what_is_said_to_accept_a_name_can_be_pasted(world: &Fixture) {
    for name in ["a\u{1b}[2J\u{202e}7b", "it's", "c\\d e", "\u{7}7'\\"] {
        let config = read_only(world);
        let folder = world.workspace().join(name);
        world.write(folder.join("x"), "x");
        let line = format!("cd -- '{}' && touch y", name.replace('\'', "'\\''"));
        let learned = learn(world, &config, &[], &line);
        let flag = learned["proposals"][0]["accept_with"].as_str().unwrap().to_owned();
        assert!(!flag.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{flag:?}");
        let pasted = format!("\"$0\" learn --backend landlock --json --config \"$1\" {flag} -c \"$2\"");
        let run = world
            .bare("bash")
            .args(["-c", &pasted])
            .args([world.binary()])
            .args([config.to_str().unwrap(), &line])
            .output();
        let learned: serde_json::Value =
            serde_json::from_str(&run.out()).unwrap_or_else(|error| panic!("{error}: {}", run.err()));
        assert_eq!(learned["passes"], true, "{flag}: {learned:#}");
        assert_eq!(proposals(&learned)[0].2, "include", "{learned:#}");
        fs::remove_dir_all(folder).unwrap();
    }
}

fn what_is_mounted_into_the_project_is_not_the_projects(world: &Fixture) {
    world.write(world.outside().join("shared/x"), "x");
    world.write("inside/x", "x");
    world.write("file", "x");
    let learned = |mount: &str, line: &str| {
        let config = read_only(world);
        let learning =
            format!("{mount} && exec \"$0\" learn --backend landlock --json --yes --config \"$1\" -c \"$2\"");
        let run = world
            .bare("unshare")
            .args(["-m", "sh", "-c", &learning])
            .args([world.binary()])
            .args([config.to_str().unwrap(), line])
            .output();
        serde_json::from_str::<serde_json::Value>(&run.out()).unwrap_or_else(|error| panic!("{error}: {}", run.err()))
    };
    let shared = world.outside().join("shared");
    let directory = format!("mount --bind '{}' inside", shared.display());
    let file = format!("mount --bind '{}/x' file", shared.display());
    // What is mounted, what is in it, and what it is mounted in.
    for (mount, line) in [
        (&directory, "touch inside/new"),
        (&directory, "echo y >> inside/x"),
        (&directory, "touch new"),
        (&file, "echo y >> file"),
        (&file, "touch new"),
    ] {
        let learned = learned(mount, line);
        assert!(accepted_nothing(&learned), "{mount}; {line}: {learned:#}");
        let all = proposals(&learned);
        assert!(
            !all.is_empty() && all.iter().all(|(_, risk, _)| risk == "high"),
            "{mount}; {line}: {learned:#}"
        );
    }
    for line in ["touch inside/new", "echo y >> inside/x", "echo y >> file", "touch new"] {
        let learned = learned("true", line);
        assert_eq!(learned["passes"], true, "{line}: {learned:#}");
    }
    assert_eq!(text(shared.join("x")), "x");
}

fn a_link_that_the_command_puts_where_the_config_names_a_root_is_told(world: &Fixture) {
    world.write("sub/x", "x");
    world.write("plain/x", "x");
    let text = |path: PathBuf| path.display().to_string();
    let config = format!(
        "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    p: {{root: {}, mode: ro}}\n    s: {{root: {}, mode: ro}}\nshell:\n  default: {{allowed: true, approval: none}}\n",
        text(world.workspace()),
        text(world.workspace().join("sub"))
    );
    let config = world.write("../outside/agent.yaml", config);
    let new = world.outside().join("new.yaml");
    let learn = |line: String| {
        let args = [
            "learn",
            "--yes",
            "--config",
            config.to_str().unwrap(),
            "--out",
            new.to_str().unwrap(),
            "-c",
            &line,
        ];
        world.stockade(&args).output()
    };
    let line = |swap: &str| format!("touch sub/y && touch y && {swap}");
    // The twin: a directory that no config names.
    learn(line("mv plain plain2 && ln -s /etc plain")).exits(0);
    for made in [
        new.clone(),
        world.workspace().join("y"),
        world.workspace().join("sub/y"),
    ] {
        fs::remove_file(made).unwrap();
    }
    let run = learn(line(&format!("mv sub sub2 && ln -s '{}' sub", text(world.outside())))).exits(125);
    assert!(
        run.err().contains("leads to") && run.err().contains("remove it"),
        "{}",
        run.err()
    );
    assert!(!new.exists());
}
