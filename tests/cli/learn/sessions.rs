//! Real tools, from a config that lets nothing be written.

use crate::common::{Actor, Backend, Fixture, in_both_regimes, world_with};
use crate::learn::lab::{passes, proposals, read_only, shown, text};

in_both_regimes! {
    git_reaches_a_config_with_which_it_commits ["git"];
    python_reaches_a_config_with_which_its_tests_pass ["python3"];
    pytest_reaches_a_config_with_which_its_tests_pass ["pytest"];
    npm_reaches_a_config_with_which_a_script_runs ["npm", "node"];
    a_command_that_passes_at_once_changes_nothing [];
}

#[test]
fn cargo_reaches_a_config_with_which_it_builds_and_tests() {
    for backend in [Backend::Landlock, Backend::Bwrap] {
        let Some(world) = world_with(Actor::invoker(), backend, &["cargo"]) else {
            return;
        };
        world.write(
            "Cargo.toml",
            "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        );
        world.write("src/lib.rs", "#[test]\nfn one() { assert_eq!(1, 1); }\n");
        let config = read_only(&world);
        passes(&world, &config, &["--yes"], "cargo check -q --offline");
        // What was built is executed: that commands can write it and run it is for somebody to say.
        let include = format!("rwx:{}", world.workspace().display());
        let learned = passes(
            &world,
            &config,
            &["--yes", "--include", &include],
            "cargo test -q --offline",
        );
        let by: Vec<_> = proposals(&learned)
            .into_iter()
            .filter(|(.., by)| by == "include")
            .collect();
        assert_eq!(
            by,
            [(shown(world.workspace()), "high".to_owned(), "include".to_owned())]
        );
    }
}

fn git_reaches_a_config_with_which_it_commits(world: &Fixture) {
    world.bare("git").args(["init", "-q"]).output().ok();
    world.write("file", "x\n");
    let config = read_only(world);
    let line =
        "git add . && git -c user.name=A -c user.email=a@example.org commit --allow-empty -qm One && git log --oneline";
    let learned = passes(world, &config, &["--yes"], line);
    let git = shown(world.workspace().join(".git"));
    assert_eq!(proposals(&learned), [(git, "low".to_owned(), "yes".to_owned())]);
    // The files of the project are as closed as they were, and what git would run there is too.
    let run = |line: &str| {
        world
            .stockade(&["run", "--config", config.to_str().unwrap(), "-c", line])
            .output()
    };
    run("echo y > file").exits(1);
    run("echo evil > .git/hooks/pre-commit; git config core.pager evil; true").exits(0);
    assert!(!world.workspace().join(".git/hooks/pre-commit").exists());
    assert!(!text(world.workspace().join(".git/config")).contains("evil"));
}

fn python_reaches_a_config_with_which_its_tests_pass(world: &Fixture) {
    world.write(
        "test_it.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        open('out/result.txt', 'w').write('x')\n",
    );
    world.write("out/.keep", "");
    let config = read_only(world);
    let learned = passes(
        world,
        &config,
        &["--yes"],
        "PYTHONDONTWRITEBYTECODE=1 python3 -m unittest -q test_it",
    );
    // No more than the directory that it wrote to.
    let out = shown(world.workspace().join("out"));
    assert_eq!(
        proposals(&learned),
        [(out, "low".to_owned(), "yes".to_owned())],
        "{learned:#}"
    );
}

fn pytest_reaches_a_config_with_which_its_tests_pass(world: &Fixture) {
    world.write(
        "test_it.py",
        "def test_it():\n    with open('out/result.txt', 'w') as result:\n        result.write('x')\n",
    );
    world.write("out/.keep", "");
    let config = read_only(world);
    let learned = passes(world, &config, &["--yes"], "pytest -q");
    // Besides the test's own file, the cache that pytest keeps beside its tests: all of it in the project.
    let proposed = proposals(&learned);
    assert!(!proposed.is_empty());
    for (path, risk, by) in proposed {
        assert!(path.starts_with(&shown(world.workspace())), "{learned:#}");
        assert_eq!((risk.as_str(), by.as_str()), ("low", "yes"), "{learned:#}");
    }
}

fn npm_reaches_a_config_with_which_a_script_runs(world: &Fixture) {
    world.write(
        "package.json",
        "{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"build\": \"node build.js\"}}",
    );
    world.write("build.js", "require('fs').writeFileSync('out.js', 'built')");
    let config = read_only(world);
    passes(world, &config, &["--yes"], "npm run build && cat out.js");
    let after = text(&config);
    assert!(
        after.contains("project: {root: ./workspace, mode: rw, write_approval: false} # the project"),
        "{after}"
    );
}

fn a_command_that_passes_at_once_changes_nothing(world: &Fixture) {
    let config = read_only(world);
    let before = text(&config);
    let learned = passes(world, &config, &["--yes"], "cat /etc/passwd > /dev/null; ls");
    assert_eq!(learned["rounds"].as_array().unwrap().len(), 1);
    assert_eq!(learned["written"], serde_json::Value::Null);
    assert_eq!(text(&config), before);
}
