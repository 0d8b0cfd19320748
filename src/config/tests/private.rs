//! What a root around a home directory does not give: what is private there, and what is Stockade's own.

use std::os::unix::fs::symlink;

use super::Fixture;
use crate::config::{FlagPolicy, from_flags, preset};
use crate::policy::{AbsPath, Access, Network, Operation, Policy};

fn reads(policy: &Policy, path: &std::path::Path) -> bool {
    policy.access(Operation::Read, &AbsPath::new(path).unwrap()) != Access::Denied
}

fn write(world: &Fixture, path: &str) {
    let path = world.home().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "x").unwrap();
}

const HOME: &str = "sandbox: {paths: {home: {root: ~/, mode: ro}}}\n";

#[test]
fn what_is_private_in_a_home_is_denied_by_one_list_that_learn_has_too() {
    let world = Fixture::new();
    let names = [
        ".claude.json",
        ".config/glab-cli/config.yml",
        ".config/BraveSoftware/x",
        ".config/pypoetry/auth.toml",
        ".local/share/atuin/history.db",
        ".config/sops/age/keys.txt",
        ".cache/huggingface/token",
        ".ipython/profile_default/history.sqlite",
        ".bitcoin/wallet.dat",
    ];
    for name in names.iter().chain(&["notes", ".cargo/bin/cargo", ".claude/skills/a"]) {
        write(&world, name);
    }
    let policy = world.ok(HOME).policy;
    for name in names {
        assert!(!reads(&policy, &world.home().join(name)), "{name}");
    }
    for name in ["notes", ".cargo/bin/cargo", ".claude/skills/a"] {
        assert!(reads(&policy, &world.home().join(name)), "{name}");
    }
}

#[test]
fn where_links_in_a_private_directory_lead_is_denied_too() {
    let world = Fixture::new();
    for name in [".ssh/config", "dot/ssh/id_rsa", "dot/plain", "data/kube/config"] {
        write(&world, name);
    }
    symlink("../dot/ssh/id_rsa", world.home().join(".ssh/id_rsa")).unwrap();
    // Neither takes the home, or a root, away.
    symlink("..", world.home().join(".ssh/home")).unwrap();
    symlink(world.project(), world.home().join(".ssh/project")).unwrap();
    let data = world.project().join("data");
    std::fs::create_dir_all(data.join("kube")).unwrap();
    symlink(data.join("kube"), world.home().join(".kube")).unwrap();
    let config = format!(
        "sandbox: {{paths: {{home: {{root: ~/}}, p: {{root: .}}, d: {{root: {}}}}}}}\n",
        data.display()
    );
    let loaded = world.ok(&config);
    assert!(!reads(&loaded.policy, &world.home().join("dot/ssh/id_rsa")));
    assert!(!reads(&loaded.policy, &data.join("kube/config")));
    for plain in [
        world.home().join("dot/plain"),
        data.join("other"),
        world.project().join("x"),
    ] {
        assert!(reads(&loaded.policy, &plain), "{}", plain.display());
    }
    let message: String = loaded.warnings.iter().map(ToString::to_string).collect();
    assert!(
        message.contains(".ssh/id_rsa") && message.contains("`d` holds what is private"),
        "{message}"
    );
}

#[test]
fn the_homes_of_other_people_are_homes_too() {
    let world = Fixture::new();
    let homes = world.home().parent().unwrap().join("homes");
    for file in ["bob/.aws/credentials", "bob/notes", "daemon/.aws/credentials"] {
        std::fs::create_dir_all(homes.join(file).parent().unwrap()).unwrap();
        std::fs::write(homes.join(file), "x").unwrap();
    }
    std::fs::create_dir_all(world.context.passwd.parent().unwrap()).unwrap();
    let line = |name: &str, uid: u32| format!("{name}:x:{uid}:{uid}::{}:/bin/sh\n", homes.join(name).display());
    std::fs::write(&world.context.passwd, line("bob", 1001) + &line("daemon", 7)).unwrap();
    let policy = world
        .ok(&format!("sandbox: {{paths: {{h: {{root: {}}}}}}}\n", homes.display()))
        .policy;
    assert!(!reads(&policy, &homes.join("bob/.aws/credentials")));
    assert!(reads(&policy, &homes.join("bob/notes")));
    assert!(reads(&policy, &homes.join("daemon/.aws/credentials")));
}

#[test]
fn stockades_own_is_denied_in_every_root_around_it_whether_or_not_it_is_there() {
    let world = Fixture::new();
    let token = world.home().join(".local/state/stockade/approvals/a.token");
    for root in ["~/", "~/.local", "~/.local/state"] {
        std::fs::create_dir_all(world.home().join(".local/state")).unwrap();
        let policy = world
            .ok(&format!("sandbox: {{paths: {{a: {{root: {root}}}}}}}\n"))
            .policy;
        assert!(!reads(&policy, &token), "{root}");
        assert!(reads(&policy, &world.home().join(".local/state/other")), "{root}");
    }
    let policy = world.ok(HOME).policy;
    assert!(!reads(&policy, &world.home().join(".config/stockade/token")));
    // Made, so that a mount hides it from the start.
    assert!(world.home().join(".config/stockade").is_dir());
    let flags = FlagPolicy {
        rw: Vec::new(),
        ro: vec![world.home()],
        deny: Vec::new(),
        net: Network::Off,
    };
    let policy = from_flags(&flags, &world.project(), &world.context).unwrap().policy;
    assert!(!reads(&policy, &token));
}

#[test]
fn sockets_of_other_sessions_are_denied_where_the_runtime_directory_is_given() {
    let mut world = Fixture::new();
    let run = world.project().join("run");
    std::fs::create_dir(&run).unwrap();
    world
        .context
        .variables
        .insert("XDG_RUNTIME_DIR".into(), run.clone().into());
    let policy = world.ok("sandbox: {paths: {run: {root: ./run}}}\n").policy;
    let token = run.join("stockade-approvals/0123.token");
    assert!(!reads(&policy, &token));
    assert!(reads(&policy, &run.join("bus")));
    // Made, so that a mount hides it from the start.
    assert!(run.join("stockade-approvals").is_dir());
    let error = world.error("sandbox: {paths: {run: {root: ./run/stockade-approvals}}}\n");
    assert!(error.contains("belongs to Stockade"), "{error}");
}

#[test]
fn a_root_in_stockades_own_and_a_base_path_around_it_are_errors() {
    let world = Fixture::new();
    write(&world, ".local/state/stockade/audit/log");
    write(&world, ".config/stockade/token");
    for entry in [
        "paths: {a: {root: ~/.local/state/stockade}}",
        "paths: {a: {root: ~/.local/state/stockade/audit}}",
        "paths: {a: {root: ~/.config/stockade/token}}",
        "base: {read: [~/.local/state/stockade/audit/log]}",
        "base: {read: [~/]}",
        "base: {read_execute: [~/.local]}",
    ] {
        let error = world.error(format!("sandbox: {{{entry}}}\n"));
        assert!(error.contains("belongs to Stockade"), "{entry}: {error}");
    }
    // A deny of a root holds for base paths as well.
    let policy = world
        .ok("sandbox: {base: {read: [~/.local]}, paths: {h: {root: ~/}}}\n")
        .policy;
    assert!(!reads(&policy, &world.home().join(".local/state/stockade/audit/log")));
}

#[test]
fn where_your_programs_and_settings_lie_is_no_workspace() {
    let mut world = Fixture::new();
    let [bin, project] = [".local/bin", "project"].map(|name| world.home().join(name));
    for name in [
        ".local/bin/deeper/x",
        ".ssh/config",
        ".config/nvim/init.lua",
        "dot/kube/config",
        "project/.venv/bin/python",
    ] {
        write(&world, name);
    }
    symlink("dot/kube", world.home().join(".kube")).unwrap();
    // That a directory on PATH holds a home, or is none, says nothing.
    let path = [
        bin.clone(),
        project.join(".venv/bin"),
        ".".into(),
        "/nowhere".into(),
        "/".into(),
        world.home().parent().unwrap().to_owned(),
    ];
    let path = std::env::join_paths(path).unwrap();
    world.context.variables.insert("PATH".into(), path);
    for place in [
        bin.clone(),
        bin.join("deeper"),
        world.home().join(".ssh"),
        world.home().join(".config"),
        world.home().join(".config/nvim"),
        world.home().join("dot/kube"),
        project.join(".venv/bin"),
    ] {
        let error = preset("workspace-write", &place, &world.context).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("cannot be the workspace"),
            "{}: {message}",
            place.display()
        );
        assert!(message.contains("start in a project directory"), "{message}");
    }
    for place in [project, world.home().join("dot"), world.project()] {
        assert!(
            preset("workspace-write", &place, &world.context).is_ok(),
            "{}",
            place.display()
        );
    }
}
