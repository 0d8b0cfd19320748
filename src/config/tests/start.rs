//! `$CWD`: the directory Stockade was started in.

use std::path::{Path, PathBuf};

use super::Fixture;
use crate::config::trust::{load_discovered, record, review};
use crate::config::{Context, Loaded, examine, preset};
use crate::policy::{AbsPath, Access, Operation, Right};

const HERE: &str = "sandbox: {paths: {here: {root: $CWD, mode: rw}}}\n";

/// The context of a start in this directory.
fn started(world: &Fixture, directory: &Path) -> Context {
    Context {
        start: AbsPath::new(std::fs::canonicalize(directory).unwrap()).ok(),
        ..world.context.clone()
    }
}

/// A config in `~/.config/stockade`, where a person keeps their own.
fn own_config(world: &Fixture, text: &str) -> PathBuf {
    let directory = world.home().join(".config/stockade");
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("agent.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

/// A project beside others in the home.
fn project(world: &Fixture, name: &str) -> PathBuf {
    let directory = world.home().join("src").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn writes(loaded: &Loaded, path: &Path) -> bool {
    let path = AbsPath::new(path).unwrap();
    loaded.policy.access(Operation::Write, &path) != Access::Denied
}

fn refused(world: &Fixture, text: &str, directory: &Path) -> String {
    let config = own_config(world, text);
    let error = examine(&config, &started(world, directory)).unwrap_err();
    world.shown(&error.to_string())
}

#[test]
fn a_root_at_the_start_is_the_directory_of_each_start_and_not_that_of_the_config() {
    let world = Fixture::new();
    let config = own_config(&world, HERE);
    for name in ["one", "two"] {
        let directory = project(&world, name);
        let loaded = examine(&config, &started(&world, &directory)).unwrap();
        assert!(writes(&loaded, &directory.join("x")));
        assert!(!writes(&loaded, &config));
        assert!(!writes(&loaded, &project(&world, "other").join("x")));
    }
}

#[test]
fn a_dot_stays_the_directory_of_the_config() {
    let world = Fixture::new();
    std::fs::create_dir(world.project().join("other")).unwrap();
    let config = world.write("sandbox: {paths: {here: {root: ., mode: rw}}}\n");
    let loaded = examine(&config, &started(&world, &project(&world, "p"))).unwrap();
    assert_eq!(loaded.policy.roots[0].path.as_path(), world.project());
}

#[test]
fn both_spellings_and_what_lies_below_are_understood() {
    let world = Fixture::new();
    let directory = project(&world, "p");
    std::fs::create_dir_all(directory.join("a b/c")).unwrap();
    for (text, below) in [
        ("$CWD", ""),
        ("${CWD}", ""),
        ("$CWD/", ""),
        ("$CWD/.", ""),
        ("$CWD/a b", "a b"),
        ("${CWD}//a b/c/", "a b/c"),
        ("$CWD/a b/../a b", "a b"),
    ] {
        let config = own_config(
            &world,
            &format!("sandbox: {{paths: {{here: {{root: '{text}', mode: rw}}}}}}\n"),
        );
        let loaded = examine(&config, &started(&world, &directory)).unwrap();
        assert_eq!(loaded.policy.roots[0].path.as_path(), directory.join(below), "{text}");
    }
}

#[test]
fn no_variable_of_the_environment_says_where_the_start_was() {
    let mut world = Fixture::new();
    let directory = project(&world, "p");
    for name in ["CWD", "PWD"] {
        world.context.variables.insert(name.into(), world.home().into());
    }
    for text in [HERE, "extends: [workspace-write]\n"] {
        let loaded = examine(&own_config(&world, text), &started(&world, &directory)).unwrap();
        let roots: Vec<_> = loaded
            .policy
            .roots
            .iter()
            .filter(|root| root.rights.has(Right::Write))
            .collect();
        assert_eq!(roots.len(), 1);
        assert_eq!(roots[0].path.as_path(), directory);
    }
}

#[test]
fn other_variables_are_refused_and_a_near_miss_is_named() {
    let world = Fixture::new();
    let directory = project(&world, "p");
    let root = |text: &str| {
        refused(
            &world,
            &format!("sandbox: {{paths: {{x: {{root: '{text}'}}}}}}\n"),
            &directory,
        )
    };
    for text in ["$PWD", "$cwd/sub", "${PWD}"] {
        assert!(root(text).contains("did you mean `$CWD`"), "{}", root(text));
    }
    for text in ["$CWDX", "$CWD.", "${CWD", "${CWD}x", "$HOME/x", "$"] {
        let error = root(text);
        assert!(
            error.contains("variables are not expanded here") && error.contains("`$CWD/`"),
            "{error}"
        );
    }
}

#[test]
fn what_a_person_would_not_work_in_is_not_writable_through_it() {
    let world = Fixture::new();
    let parent = world.home().parent().unwrap().to_owned();
    std::fs::create_dir_all(world.home().join(".ssh/deep")).unwrap();
    let own = world.home().join(".config/stockade");
    std::fs::create_dir_all(&own).unwrap();
    let places = [
        world.home(),
        parent,
        "/".into(),
        world.home().join(".ssh/deep"),
        own,
        "/etc".into(),
    ];
    for place in places {
        for text in [
            HERE,
            "extends: [workspace-write]\n",
            "sandbox: {paths: {here: {root: '${CWD}/.', mode: rw}}}\n",
        ] {
            let error = refused(&world, text, &place);
            assert!(
                error.contains("cannot be the workspace") && error.contains("start in a project"),
                "{error}"
            );
        }
    }
    let error = refused(
        &world,
        "sandbox: {paths: {here: {root: $CWD/../.., mode: rw}}}\n",
        &project(&world, "p"),
    );
    assert!(error.contains("holds the home directory"), "{error}");
}

#[test]
fn what_is_only_read_may_be_a_home() {
    let world = Fixture::new();
    std::fs::create_dir(world.home().join(".ssh")).unwrap();
    let config = own_config(&world, "sandbox: {paths: {here: {root: $CWD}}}\n");
    let loaded = examine(&config, &started(&world, &world.home())).unwrap();
    let read = |below: &str| {
        let path = AbsPath::new(world.home().join(below)).unwrap();
        loaded.policy.access(Operation::Read, &path)
    };
    assert_eq!((read("notes"), read(".ssh/id")), (Access::Full, Access::Denied));
}

#[test]
fn a_link_of_the_project_is_not_followed() {
    let world = Fixture::new();
    let directory = project(&world, "p");
    std::fs::create_dir(directory.join("real")).unwrap();
    std::os::unix::fs::symlink(world.home().join("src"), directory.join("build")).unwrap();
    std::os::unix::fs::symlink("real", directory.join("near")).unwrap();
    for text in [
        "sandbox: {paths: {b: {root: $CWD/build, mode: rw}}}\n",
        "sandbox: {paths: {b: {root: $CWD/build/p}}}\n",
        "sandbox: {paths: {b: {root: $CWD/near}}}\n",
        "sandbox: {paths: {h: {root: $CWD, deny: [$CWD/near]}}}\n",
    ] {
        let error = refused(&world, text, &directory);
        assert!(error.contains("goes through the symlink"), "{error}");
    }
    let safe = "sandbox: {paths: {h: {root: $CWD, mode: rw}}}\ntools: {write_file: {safe_paths: [$CWD/near]}}\n";
    let error = refused(&world, safe, &directory);
    assert!(error.contains("cannot be a safe path"), "{error}");
}

#[test]
fn a_deny_and_a_safe_path_may_be_told_from_it() {
    let world = Fixture::new();
    let directory = project(&world, "p");
    let text = "sandbox: {paths: {h: {root: $CWD, mode: rw, deny: [$CWD/secret, '${CWD}/.env']}}}\ntools: {write_file: {safe_paths: [$CWD/cache/]}}\n";
    let loaded = examine(&own_config(&world, text), &started(&world, &directory)).unwrap();
    for denied in ["secret/key", ".env"] {
        let path = AbsPath::new(directory.join(denied)).unwrap();
        assert_eq!(loaded.policy.access(Operation::Read, &path), Access::Denied);
    }
    assert_eq!(
        loaded.policy.safe_paths["write_file"][0].path.as_path(),
        directory.join("cache")
    );
    // One that is no path but a name would deny nothing that is there.
    let all = refused(
        &world,
        "sandbox: {paths: {h: {root: $CWD, deny: [$CWD]}}}\n",
        &directory,
    );
    assert!(all.contains("a deny always wins"), "{all}");
    let outside = refused(
        &world,
        "sandbox: {paths: {h: {root: ~/, deny: [$CWD/../../../x/]}}}\n",
        &directory,
    );
    assert!(outside.contains("outside the root"), "{outside}");
}

#[test]
fn where_no_place_may_be_relative_it_cannot_stand_either() {
    let world = Fixture::new();
    let directory = project(&world, "p");
    for text in [
        "sandbox: {base: {read: [$CWD/x]}}\n",
        "sandbox: {os_profile: $CWD/ceiling.yaml}\n",
        "audit: {log: $CWD/log.jsonl}\n",
    ] {
        let error = refused(&world, text, &directory);
        assert!(error.contains("$CWD"), "{error}");
    }
}

#[test]
fn a_ceiling_has_no_start() {
    let world = Fixture::new();
    for (text, why) in [
        (HERE, "a ceiling is the same wherever Stockade is started"),
        (
            "sandbox: {paths: {h: {root: /srv, deny: [$CWD/x]}}}\n",
            "`$CWD` cannot stand here",
        ),
        ("extends: [workspace-write]\n", "a ceiling has no workspace"),
    ] {
        let ceiling = world.project().join("ceiling.yaml");
        std::fs::write(&ceiling, text).unwrap();
        let mut context = started(&world, &world.project());
        context.ceilings = vec![ceiling];
        let error = preset("workspace-write", &world.project(), &context)
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_start_that_cannot_be_told_is_an_error_and_no_root_is_left_out() {
    let world = Fixture::new();
    let nowhere = Context {
        start: None,
        ..world.context.clone()
    };
    for text in [HERE, "extends: [workspace-write]\n"] {
        let error = examine(&own_config(&world, text), &nowhere).unwrap_err().to_string();
        assert!(
            error.contains("the directory Stockade was started in cannot be told"),
            "{error}"
        );
    }
    examine(&own_config(&world, "extends: [system]\n"), &nowhere).unwrap();
}

#[test]
fn a_start_directory_named_by_the_file_system_alone_is_taken_as_it_is() {
    let world = Fixture::new();
    for name in ["new\nline", "quote\"'", "$HOME", "*", " ", "-rf"] {
        let directory = project(&world, name);
        let loaded = examine(&own_config(&world, HERE), &started(&world, &directory)).unwrap();
        assert_eq!(loaded.policy.roots[0].path.as_path(), directory);
    }
}

/// A found config is only ever used where it lies, so `$CWD` in it is its own directory. A person who trusts it from elsewhere
/// is shown, and records, that directory: what they reviewed is what it grants, and nothing that they stood in at the time.
#[test]
fn trust_given_from_another_directory_is_for_the_one_the_config_lies_in() {
    let world = Fixture::new();
    let path = world.write(HERE);
    let elsewhere = started(&world, &project(&world, "elsewhere"));
    let (reviewed, _) = review(&path, &elsewhere).unwrap();
    assert_eq!(reviewed.policy.roots[0].path.as_path(), world.project());
    assert_eq!(reviewed.at_start, [("here".to_owned(), "$CWD".to_owned())]);
    record(&reviewed, &elsewhere).unwrap();
    for context in [&elsewhere, &started(&world, &world.project())] {
        let loaded = load_discovered(&path, context).unwrap();
        assert_eq!(loaded.policy.roots[0].path.as_path(), world.project());
    }
}

/// The trusted text would grant whatever directory it is put in. So the directory is recorded like that of any other root, and a
/// copy of the config elsewhere, or another directory in the place of this one, is reviewed again.
#[test]
fn a_trusted_config_that_was_moved_is_reviewed_again() {
    let world = Fixture::new();
    let path = world.write(HERE);
    record(&review(&path, &world.context).unwrap().0, &world.context).unwrap();
    let other = project(&world, "other");
    std::fs::copy(&path, other.join("stockade.yaml")).unwrap();
    let error = load_discovered(&other.join("stockade.yaml"), &started(&world, &other)).unwrap_err();
    assert!(error.to_string().contains("is not trusted"), "{error}");
    let aside = world.home().join("aside");
    std::fs::rename(world.project(), &aside).unwrap();
    std::fs::create_dir(world.project()).unwrap();
    std::fs::copy(aside.join("stockade.yaml"), &path).unwrap();
    let error = load_discovered(&path, &started(&world, &world.project())).unwrap_err();
    assert!(error.to_string().contains("is another directory"), "{error}");
}
