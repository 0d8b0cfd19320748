//! `extends` with files.

use std::path::{Path, PathBuf};

use super::Fixture;
use crate::config::trust::{Store, TrustState, load_discovered, record, review};
use crate::config::{ConfigError, examine};
use crate::policy::{AbsPath, Access, Demand, Operation, Origin, Protect};

/// Writes a file of the project.
fn file(world: &Fixture, below: &str, text: &str) -> PathBuf {
    let path = world.project().join(below);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn abs(path: impl AsRef<Path>) -> AbsPath {
    AbsPath::new(path.as_ref()).unwrap()
}

const BASE: &str = "sandbox: {paths: {data: {root: ./data, mode: rw, write_approval: false}}}\nshell: {default: {approval: none}, limits: {timeout: 5s}}\n";

#[test]
fn a_file_adds_what_it_grants_and_the_config_wins() {
    let world = Fixture::new();
    world.mkdir("shared/data");
    world.mkdir("own");
    file(&world, "shared/base.yaml", BASE);
    let loaded = world
        .ok("extends: [shared/base.yaml]\nsandbox: {paths: {own: {root: ./own}}}\nshell: {limits: {timeout: 9s}}\n");
    let access = |operation, path: &str| loaded.policy.access(operation, &abs(world.project().join(path)));
    // Its paths are relative to it, those of the config to the config.
    assert_eq!(access(Operation::Write, "shared/data/x"), Access::Full);
    assert_eq!(access(Operation::Read, "own/x"), Access::Full);
    assert_eq!(access(Operation::Read, "data/x"), Access::Denied);
    assert_eq!(loaded.policy.default_rule.approval, Demand::None);
    assert_eq!(loaded.policy.limits.timeout, Some(std::time::Duration::from_secs(9)));
    let root = loaded.policy.roots.iter().find(|root| root.name == "data").unwrap();
    let Origin::File { file, line } = &root.origin else {
        panic!("{:?}", root.origin);
    };
    assert_eq!(
        (file.as_path(), *line),
        (world.project().join("shared/base.yaml").as_path(), 1)
    );
}

#[test]
fn a_file_means_what_it_means_on_its_own() {
    let world = Fixture::new();
    world.mkdir("data");
    let base = file(&world, "base.yaml", BASE);
    let alone = examine(&base, &world.context).unwrap().policy;
    let extended = world.ok("extends: [base.yaml]\n").policy;
    let paths = |policy: &crate::policy::Policy| -> Vec<AbsPath> {
        policy.base.iter().map(|base| base.grant.path.clone()).collect()
    };
    assert_eq!(paths(&alone), paths(&extended));
    assert_eq!(alone.roots[0].path, extended.roots[0].path);
    file(&world, "base.yaml", &format!("extends: []\n{BASE}"));
    assert!(world.ok("extends: [base.yaml]\n").policy.base.is_empty());
}

#[test]
fn a_slash_or_the_ending_makes_a_file_of_a_name() {
    let world = Fixture::new();
    world.mkdir("data");
    for name in [
        "base.yaml",
        "base.yml",
        "d/base",
        "system",
        "new\nline.yaml",
        "quote\"'.yml",
    ] {
        file(&world, name, &format!("extends: []\n{BASE}"));
    }
    world.mkdir("d/data");
    let full = world.project().join("base.yaml");
    std::fs::write(
        world.home().join("base.yaml"),
        "extends: []\nshell: {default: {approval: none}}\n",
    )
    .unwrap();
    for name in [
        "base.yaml",
        "./base.yml",
        "d/base",
        "./system",
        "~/base.yaml",
        full.to_str().unwrap(),
    ] {
        let loaded = world.ok(&format!("extends: ['{name}', system]\n"));
        assert_eq!(loaded.files.len(), 2, "{name}");
        assert_eq!(loaded.policy.default_rule.approval, Demand::None, "{name}");
        assert!(!loaded.policy.base.is_empty(), "{name}");
    }
    for name in [r#""new\nline.yaml""#, r#""quote\"'.yml""#] {
        assert_eq!(world.ok(&format!("extends: [{name}]\n")).files.len(), 2, "{name}");
    }
    assert_eq!(world.ok("extends: [system]\n").files.len(), 1);
    for name in ["base", ".yaml", ".yml", ""] {
        assert!(
            world.error(format!("extends: ['{name}']\n")).contains("unknown preset"),
            "{name}"
        );
    }
}

#[test]
fn one_file_counts_once_however_often_it_is_named() {
    let world = Fixture::new();
    world.mkdir("data");
    file(&world, "base.yaml", BASE);
    file(&world, "a.yaml", "extends: [./base.yaml]\n");
    file(&world, "b.yaml", "extends: [./base.yaml, system]\n");
    let loaded = world.ok("extends: [a.yaml, b.yaml, ./base.yaml, ./base.yaml, system]\n");
    assert_eq!(loaded.files.len(), 4);
    assert_eq!(loaded.policy.roots.len(), 1);
}

#[test]
fn a_circle_is_an_error_with_its_chain() {
    let world = Fixture::new();
    file(&world, "a.yaml", "extends: [b.yaml]\n");
    file(
        &world,
        "b.yaml",
        "shell: {network: false}\nextends: [system, ./a.yaml]\n",
    );
    let error = world.error("extends: [a.yaml]\n");
    let chain = "files extend each other in a circle: /dir/project/a.yaml → /dir/project/b.yaml → /dir/project/a.yaml";
    assert!(
        error.contains(chain) && error.contains("/dir/project/b.yaml:2:19"),
        "{error}"
    );
    for itself in ["stockade.yaml", "./stockade.yaml"] {
        let error = world.error(format!("extends: [{itself}]\n"));
        let chain = "circle: /dir/project/stockade.yaml → /dir/project/stockade.yaml";
        assert!(error.contains(chain), "{error}");
    }
    file(&world, "back.yaml", "extends: [stockade.yaml]\n");
    assert!(world.error("extends: [back.yaml]\n").contains("in a circle"));
}

#[test]
fn more_than_eight_deep_is_an_error_with_its_chain() {
    let world = Fixture::new();
    file(&world, "8.yaml", "extends: []\n");
    for depth in 1..8 {
        file(
            &world,
            &format!("{depth}.yaml"),
            &format!("extends: [{}.yaml]\n", depth + 1),
        );
    }
    assert_eq!(world.ok("extends: [1.yaml]\n").files.len(), 9);
    file(&world, "8.yaml", "extends: [9.yaml]\n");
    file(&world, "9.yaml", "extends: []\n");
    let error = world.error("extends: [1.yaml]\n");
    for part in [
        "more than 8 deep",
        "/dir/project/1.yaml → ",
        "/dir/project/8.yaml → /dir/project/9.yaml",
        "8.yaml:1:11",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn an_error_in_a_file_names_it_with_line_and_column() {
    let world = Fixture::new();
    for (text, place) in [
        ("shell:\n  netwrk: true\n", "base.yaml:2:3"),
        ("shell: {network: yes}\n", "base.yaml:1:18"),
        ("\nshell: [\n", "base.yaml:"),
        ("sandbox: {paths: {gone: {root: ./gone}}}\n", "base.yaml:1:32"),
        ("", "base.yaml:1:1"),
    ] {
        file(&world, "base.yaml", text);
        let error = world.error("extends: [./base.yaml]\n");
        assert!(error.contains(&format!("/dir/project/{place}")), "{error}");
    }
    std::fs::write(world.project().join("base.yaml"), b"a: \xff\n").unwrap();
    assert!(
        world
            .error("extends: [./base.yaml]\n")
            .contains("/dir/project/base.yaml")
    );
}

#[test]
fn what_is_no_file_is_an_error_at_the_entry() {
    let world = Fixture::new();
    world.mkdir("d.yaml");
    nix::unistd::mkfifo(&world.project().join("pipe.yaml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    file(&world, "big.yaml", &"# x\n".repeat(300_000));
    for (name, why) in [
        ("./gone.yaml", "/dir/project/gone.yaml does not exist"),
        ("./system.yaml", "the shipped preset is written `system`"),
        ("d.yaml", "is not a regular file"),
        ("./", "is not a regular file"),
        ("pipe.yaml", "is not a regular file"),
        ("big.yaml", "larger than 1 MiB"),
        ("https://example.org/base.yaml", "not fetched from an address"),
        ("http://example.org/base", "not fetched from an address"),
        ("file:///etc/base.yaml", "not fetched from an address"),
        ("$CWD/base.yaml", "a file of the project would then speak for you"),
        ("$HOME/base.yaml", "variables are not expanded here"),
        ("~other/base.yaml", "another user's home"),
    ] {
        let error = world.error(format!("shell: {{network: false}}\nextends: [system, '{name}']\n"));
        assert!(
            error.contains(why) && error.contains("stockade.yaml:2:19"),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_link_that_could_be_re_pointed_is_not_followed() {
    let world = Fixture::new();
    world.mkdir("work");
    std::fs::create_dir(world.home().join("conf")).unwrap();
    let target = world.home().join("conf/base.yaml");
    std::fs::write(&target, "extends: []\n").unwrap();
    world.link(&target, "door.yaml");
    let error = world.error("extends: [door.yaml]\n");
    assert!(
        error.contains("goes through the symlink") && error.contains("beside this config"),
        "{error}"
    );
    // From elsewhere: a link in a writable root.
    let elsewhere = world.home().join("conf/agent.yaml");
    world.link(&target, "work/door.yaml");
    let project = world.project();
    let text = format!(
        "extends: ['{0}/work/door.yaml']\nsandbox: {{paths: {{w: {{root: '{0}/work', mode: rw}}}}}}\n",
        project.display()
    );
    std::fs::write(&elsewhere, text).unwrap();
    let error = examine(&elsewhere, &world.context).unwrap_err().to_string();
    assert!(error.contains("inside the writable root `w`"), "{error}");
    // And what a file names goes through none that lies beside that file.
    std::fs::create_dir(world.home().join("conf/real")).unwrap();
    std::os::unix::fs::symlink("real", world.home().join("conf/near")).unwrap();
    std::fs::write(&target, "extends: []\nsandbox: {paths: {n: {root: ./near}}}\n").unwrap();
    let error = world.error(format!("extends: ['{}']\n", target.display()));
    assert!(
        error.contains("goes through the symlink") && error.contains("base.yaml:2"),
        "{error}"
    );
}

#[test]
fn a_file_in_a_root_is_protected_as_the_config_is() {
    let world = Fixture::new();
    file(&world, "shared/base.yaml", "extends: []\n");
    let loaded = world.ok("extends: [shared/base.yaml]\nsandbox: {paths: {w: {root: ., mode: rw}}}\n");
    let Protect::Default(files) = &loaded.policy.protect else {
        panic!("{:?}", loaded.policy.protect);
    };
    for name in ["stockade.yaml", "shared/base.yaml"] {
        assert!(
            files.contains(&abs(world.project().join(name))),
            "{name} is not in {files:?}"
        );
    }
}

#[test]
fn trust_covers_the_file_and_ends_with_a_change_of_it() {
    let world = Fixture::new();
    let base = file(&world, "shared/base.yaml", "extends: []\n");
    let path = world.write("extends: [shared/base.yaml]\n");
    record(&review(&path, &world.context).unwrap().0, &world.context).unwrap();
    load_discovered(&path, &world.context).unwrap();
    let state = || Store::open(&world.context).unwrap().configs().next().unwrap().state;
    assert_eq!(state(), TrustState::Same);
    std::fs::write(&base, "extends: [system]\n").unwrap();
    let error = load_discovered(&path, &world.context).unwrap_err();
    assert!(matches!(error, ConfigError::Untrusted { .. }), "{error}");
    assert!(error.to_string().contains("a file it names has changed"), "{error}");
    assert_eq!(state(), TrustState::Changed);
    std::fs::write(&base, "extends: []\n").unwrap();
    load_discovered(&path, &world.context).unwrap();
}

#[test]
fn trust_covers_the_roots_and_base_paths_of_the_file() {
    let world = Fixture::new();
    world.mkdir("shared/data");
    file(
        &world,
        "shared/base.yaml",
        "extends: []\nsandbox: {paths: {d: {root: ./data, mode: rw}}}\n",
    );
    let path = world.write("extends: [shared/base.yaml]\n");
    record(&review(&path, &world.context).unwrap().0, &world.context).unwrap();
    std::fs::rename(world.project().join("shared/data"), world.project().join("old")).unwrap();
    world.mkdir("shared/data");
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("is another directory"), "{error}");
}

#[test]
fn a_ceiling_of_the_file_is_relative_to_it() {
    let world = Fixture::new();
    world.mkdir("shared");
    file(
        &world,
        "shared/top.yaml",
        "sandbox: {paths: {p: {root: '..', mode: ro}}}\n",
    );
    file(
        &world,
        "shared/base.yaml",
        "extends: []\nsandbox: {os_profile: ./top.yaml}\n",
    );
    let loaded = world.ok("extends: [shared/base.yaml]\nsandbox: {paths: {w: {root: ., mode: rw}}}\n");
    assert_eq!(loaded.policy.ceilings.all.len(), 1);
    assert_eq!(loaded.files.len(), 3);
}

#[test]
fn a_ceiling_extends_no_file() {
    let mut world = Fixture::new();
    file(&world, "base.yaml", "extends: []\n");
    world.context.ceilings = vec![file(&world, "ceiling.yaml", "extends: [./base.yaml]\n")];
    let error = world.error("extends: []\n");
    assert!(
        error.contains("a ceiling is one file") && error.contains("ceiling.yaml:1:11"),
        "{error}"
    );
}
