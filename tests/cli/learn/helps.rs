//! Changes that would not help: they are not accepted, or it is told.

use serde_json::Value;

use crate::common::{Fixture, SECRET, in_both_regimes};
use crate::learn::lab::{accepted_nothing, config, learn, proposals, read_only, text};

in_both_regimes! {
    a_failure_is_a_denial_where_something_stays_denied_and_else_the_commands_own [];
    what_could_not_be_held_stays_denied [];
    what_was_accepted_and_did_not_help_is_told ["python3"];
}

fn a_failure_is_a_denial_where_something_stays_denied_and_else_the_commands_own(world: &Fixture) {
    let config = read_only(world);
    let flags = ["learn", "--yes", "--config", config.to_str().unwrap(), "-c"];
    let ends = |line: &str, code: i32| {
        let learned = learn(world, &config, &["--yes"], line);
        assert_eq!(learned["exit"], code, "{line}: {learned:#}");
        world.stockade(&[&flags[..], &[line]].concat()).output().exits(code);
        learned
    };
    // No change permits it, so none is proposed.
    let learned = ends("ls /; exit 7", 126);
    assert!(proposals(&learned).is_empty(), "{learned:#}");
    ends("ls /; true", 0);
    ends("cat project-file; exit 7", 7);
}

fn what_could_not_be_held_stays_denied(world: &Fixture) {
    // There a deny of what may be read needs `decompose` from the start.
    if !world.backend.is_in_namespaces() {
        return;
    }
    world.write("secret.txt", SECRET);
    world.write("sub/x", "x");
    // It could be made anew in a directory that is written: no mount covers what is not there.
    let config = config(
        world,
        "    project: {root: ./workspace, mode: ro, deny: [secret.txt]}\n  deny_fallback: refuse\n",
    );
    let before = text(&config);
    let learned = learn(world, &config, &["--yes"], "touch sub/new");
    assert!(accepted_nothing(&learned), "{learned:#}");
    assert_eq!((&learned["exit"], &learned["rounds"][1]), (&126.into(), &Value::Null));
    let standing = learned["standing"].to_string();
    assert!(
        standing.contains("sub/new") && standing.contains("deny_fallback: decompose"),
        "{learned:#}"
    );
    assert_eq!(text(&config), before);
}

fn what_was_accepted_and_did_not_help_is_told(world: &Fixture) {
    world.write("sub/n", "x");
    world.write("src/x", "x");
    let config = read_only(world);
    let line = "python3 -c \"import os; os.link('sub/n', 'src/h')\"";
    let args = ["learn", "--yes", "--config", config.to_str().unwrap(), "-c", line];
    let run = world.stockade(&args).output();
    if world.backend.is_in_namespaces() {
        let said = run.exits(1).err();
        assert!(said.contains("did not make it pass"), "{said}");
    } else {
        let said = run.exits(0).err();
        assert!(!said.contains("did not make it pass"), "{said}");
    }
}
