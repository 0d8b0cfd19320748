//! Trust, and how a config file is opened.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::Fixture;
use crate::config::trust::{Store, TrustState, forget, is_trusted, load_discovered, record, review, state_dir};
use crate::config::{ConfigError, discover, examine, load};

const TEXT: &str = "sandbox: {paths: {a: {root: a}}}\n";

fn world() -> Fixture {
    let world = Fixture::new();
    world.mkdir("a");
    world.write(TEXT);
    world
}

fn trust(world: &Fixture, path: &std::path::Path) {
    record(&review(path, &world.context).unwrap().0, &world.context).unwrap();
}

#[test]
fn a_config_lying_there_is_refused_until_it_is_trusted() {
    let world = world();
    let path = discover(&world.project()).unwrap();
    let error = load_discovered(&path, &world.context).unwrap_err();
    assert!(matches!(error, ConfigError::Untrusted { .. }));
    assert!(error.to_string().contains("stockade trust"));
    trust(&world, &path);
    let loaded = load_discovered(&path, &world.context).unwrap();
    assert_eq!(loaded.policy.roots[0].name, "a");
    assert!(is_trusted(&loaded, &world.context).unwrap());
}

#[test]
fn a_config_that_was_named_needs_no_trust() {
    let world = world();
    let loaded = load(&world.project().join("stockade.yaml"), &world.context).unwrap();
    assert!(!is_trusted(&loaded, &world.context).unwrap());
}

#[test]
fn one_changed_byte_asks_again() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    std::fs::write(&path, format!("{TEXT}#")).unwrap();
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("has changed since it was trusted"), "{error}");
    std::fs::write(&path, TEXT).unwrap();
    assert!(load_discovered(&path, &world.context).is_ok());
}

#[test]
fn another_directory_under_the_same_name_asks_again() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    std::fs::rename(world.project().join("a"), world.project().join("old")).unwrap();
    world.mkdir("a");
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("is another directory"), "{error}");
}

#[test]
fn a_root_that_is_made_at_start_may_be_made_again() {
    let world = Fixture::new();
    let path = world.write("sandbox: {paths: {a: {root: a, create: true}}}\n");
    trust(&world, &path);
    for _ in 0..2 {
        assert_eq!(load_discovered(&path, &world.context).unwrap().made, ["a"]);
        assert!(load_discovered(&path, &world.context).is_ok());
        std::fs::remove_dir(world.project().join("a")).unwrap();
    }
}

#[test]
fn a_root_that_somebody_else_made_asks_again() {
    let world = Fixture::new();
    let path = world.write("sandbox: {paths: {a: {root: a, create: true}}}\n");
    trust(&world, &path);
    world.mkdir("a");
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("was yet to be made"), "{error}");
}

#[test]
fn looking_at_a_config_makes_nothing() {
    let world = Fixture::new();
    let path = world.write("sandbox: {paths: {a: {root: a, create: true}}}\n");
    trust(&world, &path);
    assert_eq!(examine(&path, &world.context).unwrap().missing[0].name, "a");
    assert!(!world.project().join("a").exists());
}

#[test]
fn another_base_path_under_the_same_name_asks_again() {
    let world = Fixture::new();
    let outside = world.home().join("tools \n'");
    std::fs::create_dir(&outside).unwrap();
    let path = world.write(format!(
        "extends: []\nsandbox: {{base: {{read: [\"{}\"]}}}}\n",
        outside.display().to_string().replace('\n', "\\n")
    ));
    trust(&world, &path);
    assert_eq!(load_discovered(&path, &world.context).unwrap().policy.base.len(), 1);
    std::fs::rename(&outside, world.home().join("old")).unwrap();
    assert!(load_discovered(&path, &world.context).unwrap().policy.base.is_empty());
    std::fs::create_dir(&outside).unwrap();
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("is not what it was"), "{error}");
    std::fs::remove_dir(&outside).unwrap();
    std::os::unix::fs::symlink("/etc", &outside).unwrap();
    let error = load_discovered(&path, &world.context).unwrap_err().to_string();
    assert!(error.contains("base path /etc is not what it was"), "{error}");
}

#[test]
fn a_base_path_through_a_link_beside_the_config_is_an_error() {
    let world = Fixture::new();
    world.mkdir("real");
    world.link("real", "door");
    let text = |name: &str| format!("sandbox: {{base: {{read: [{}/{name}]}}}}\n", world.project().display());
    let error = world.error(text("door"));
    assert!(error.contains("goes through the symlink"), "{error}");
    world.ok(&text("real"));
}

#[test]
fn nothing_is_made_for_a_config_that_is_not_trusted() {
    let world = Fixture::new();
    let path = world.write("sandbox: {paths: {a: {root: a, create: true}}}\n");
    assert!(load_discovered(&path, &world.context).is_err());
    assert!(!world.project().join("a").exists());
}

#[test]
fn a_copy_elsewhere_is_another_config() {
    let world = world();
    trust(&world, &world.project().join("stockade.yaml"));
    world.mkdir("b/a");
    let copy = world.project().join("b/stockade.yaml");
    std::fs::write(&copy, TEXT).unwrap();
    assert!(matches!(
        load_discovered(&copy, &world.context),
        Err(ConfigError::Untrusted { .. })
    ));
}

#[test]
fn trust_can_be_withdrawn() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    let listed = |world: &Fixture| -> Vec<(PathBuf, TrustState)> {
        let store = Store::open(&world.context).unwrap();
        store.configs().map(|of| (of.path, of.state)).collect()
    };
    assert_eq!(listed(&world), [(path.clone(), TrustState::Same)]);
    std::fs::write(&path, "sandbox: {}\n").unwrap();
    assert_eq!(listed(&world), [(path.clone(), TrustState::Changed)]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(listed(&world), [(path.clone(), TrustState::Missing)]);
    world.write(TEXT);
    assert!(load_discovered(&path, &world.context).is_ok());
    assert!(forget(&path, &world.context).unwrap());
    assert!(!forget(&path, &world.context).unwrap());
    assert_eq!(listed(&world), []);
    assert!(load_discovered(&path, &world.context).is_err());
}

#[test]
fn the_store_is_private_and_a_loose_one_says_nothing() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    let store = state_dir(&world.context).unwrap().as_path().join("trust.json");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store), mode(store.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o660)).unwrap();
    assert!(matches!(
        load_discovered(&path, &world.context),
        Err(ConfigError::TrustStore { .. })
    ));
}

#[test]
fn a_store_that_is_a_symlink_is_not_followed() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    let store = state_dir(&world.context).unwrap().as_path().join("trust.json");
    let moved = world.home().join("moved.json");
    std::fs::rename(&store, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &store).unwrap();
    assert!(matches!(
        load_discovered(&path, &world.context),
        Err(ConfigError::TrustStore { .. })
    ));
}

#[test]
fn a_path_that_is_not_text_can_be_trusted() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = Fixture::new();
    let dir = world.project().join(std::ffi::OsStr::from_bytes(b"x\xff\n'\""));
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("stockade.yaml");
    std::fs::write(&path, "sandbox: {paths: {here: {root: .}}}\n").unwrap();
    trust(&world, &path);
    assert!(load_discovered(&path, &world.context).is_ok());
}

#[test]
fn a_found_config_that_is_a_symlink_is_refused_and_a_named_one_is_followed() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    let real = world.project().join("real.yaml");
    std::fs::rename(&path, &real).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    assert!(matches!(review(&path, &world.context), Err(ConfigError::Link(_))));
    let loaded = load(&path, &world.context).unwrap();
    let crate::policy::Protect::Default(protected) = loaded.policy.protect else {
        panic!("protected by default")
    };
    assert_eq!(protected.len(), 2);
}

#[test]
fn a_fifo_or_directory_is_no_config() {
    let world = Fixture::new();
    let path = world.project().join("stockade.yaml");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(load(&path, &world.context), Err(ConfigError::NotAFile(_))));
    assert!(matches!(
        load(&world.project(), &world.context),
        Err(ConfigError::NotAFile(_))
    ));
}

#[test]
fn only_the_working_directory_itself_is_looked_in() {
    let world = world();
    world.mkdir("a/b");
    assert!(discover(&world.project()).is_some());
    assert!(discover(&world.project().join("a/b")).is_none());
}

#[test]
fn what_a_person_read_is_trusted_and_not_what_was_swapped_in() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    let (read, text) = review(&path, &world.context).unwrap();
    assert_eq!(text, TEXT.as_bytes());
    std::fs::write(&path, "sandbox: {paths: {a: {root: a, mode: rw}}}\n").unwrap();
    record(&read, &world.context).unwrap();
    assert!(matches!(
        load_discovered(&path, &world.context),
        Err(ConfigError::Untrusted { .. })
    ));
}

#[test]
fn a_record_without_base_paths_trusts_none() {
    let world = Fixture::new();
    let path = world.write("extends: []\nsandbox: {base: {read: [/usr/share]}}\n");
    trust(&world, &path);
    assert!(load_discovered(&path, &world.context).is_ok());
    let store = state_dir(&world.context).unwrap().as_path().join("trust.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&store).unwrap()).unwrap();
    assert!(
        json["configs"][0]
            .as_object_mut()
            .and_then(|entry| entry.remove("base"))
            .is_some()
    );
    std::fs::write(&store, json.to_string()).unwrap();
    assert!(matches!(
        load_discovered(&path, &world.context),
        Err(ConfigError::Untrusted { .. })
    ));
}

#[test]
fn two_who_trust_at_once_lose_nothing() {
    let world = Fixture::new();
    let paths: Vec<PathBuf> = (0..8)
        .map(|i| {
            world.mkdir(&format!("p{i}"));
            let path = world.project().join(format!("p{i}/stockade.yaml"));
            std::fs::write(&path, "sandbox: {paths: {here: {root: .}}}\n").unwrap();
            path
        })
        .collect();
    std::thread::scope(|scope| {
        for path in &paths {
            scope.spawn(|| trust(&world, path));
        }
    });
    let store = Store::open(&world.context).unwrap();
    assert_eq!(store.configs().count(), paths.len());
}

#[test]
fn a_lock_that_is_a_symlink_is_not_followed() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    let lock = state_dir(&world.context).unwrap().as_path().join("trust.lock");
    std::fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(world.home().join("made"), &lock).unwrap();
    assert!(matches!(
        forget(&path, &world.context),
        Err(ConfigError::TrustStore { .. })
    ));
    assert!(!world.home().join("made").exists());
}

#[test]
fn a_path_that_the_store_spells_as_bytes_is_the_same_path() {
    let world = world();
    let path = world.project().join("stockade.yaml");
    trust(&world, &path);
    let store = state_dir(&world.context).unwrap().as_path().join("trust.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&store).unwrap()).unwrap();
    json["configs"][0]["files"][0]["path"] = path.as_os_str().as_bytes().into();
    std::fs::write(&store, json.to_string()).unwrap();
    assert!(load_discovered(&path, &world.context).is_ok());
    let withdrawn = forget(&path, &world.context).unwrap();
    assert!(withdrawn, "trust that is listed can be withdrawn");
}
