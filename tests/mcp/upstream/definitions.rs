//! A definition that is not what it was when it was first seen.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::json;

use super::agent::{Agent, Forgets, OPEN, records};
use crate::common::{Fixture, as_root_and_as_user, eventually};

as_root_and_as_user! {
    a_change_voids_what_the_config_pre_approves ["python3"];
    a_change_between_two_runs_voids_it_too ["python3"];
    a_record_that_cannot_be_read_is_never_unchanged ["python3"];
}

/// `echo` and `fail` run unasked, the rest is asked about.
fn config() -> String {
    OPEN.replace("approval: {mode: approve_all}", "")
        + "custom_tools: {echo: {}, fail: {}, change: {}}\ntools: {echo: {approval: none}, fail: {approval: none}, change: {approval: none}}\n"
}

fn a_change_voids_what_the_config_pre_approves(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, &config(), &[], &[]);
    agent.call("echo", json!({"text": "a"})).ok();
    assert_eq!(agent.questions(), 0);
    agent.call("change", json!({})).ok();
    agent.says("the tool `echo`: its definition is not what it was when it was first seen");
    agent.call("echo", json!({"text": "a"})).fails("permission denied");
    assert_eq!(agent.questions(), 1);
    let question = agent.others.last().unwrap()["params"]["message"].to_string();
    assert!(question.contains("its definition is not what it was"), "{question}");
    // The others are what they were.
    agent.call("fail", json!({})).fails("it did not work");
    assert_eq!(agent.questions(), 1);
    agent.decides = Some("once");
    assert_eq!(agent.call("echo", json!({"text": "a"})).ok(), "a");
    // Changed back, it is what was pre-approved.
    agent.call("change", json!({"to": "says the same again"})).ok();
    eventually("it is called without a question", || {
        let before = agent.questions();
        // While its definition changes it is not called at all.
        let called = agent.call("echo", json!({"text": "a"}));
        !called.failed && agent.questions() == before
    });
    assert_eq!(agent.end().0, 0);
}

fn a_change_between_two_runs_voids_it_too(world: &Fixture) {
    let _forgets = Forgets::after(world);
    // The very same command; what it says depends on a file.
    let script = world.write("server.py", include_str!("server.py"));
    world.write(
        "start.sh",
        format!("exec /usr/bin/python3 {} $(cat flags)\n", script.display()),
    );
    let start = world.workspace().join("start.sh");
    let command = ["/bin/sh", start.to_str().unwrap()];
    let run = |flags: &str| {
        world.write("flags", flags);
        let mut agent = Agent::serving(world, &config(), &[], &command).greeted();
        let called = agent.call("echo", json!({"text": "a"}));
        let questions = agent.questions();
        assert_eq!(agent.end().0, 0);
        (called.failed, questions)
    };
    assert_eq!(run(""), (false, 0));
    assert_eq!(run(""), (false, 0));
    assert_eq!(run("other-definition"), (true, 1));
    // What was seen first stays what counts.
    assert_eq!(run("other-definition"), (true, 1));
    assert_eq!(run(""), (false, 0));
    let [record] = records(world.base(), world.actor.uid()).try_into().unwrap();
    let state = fs::metadata(&record).unwrap();
    assert_eq!((state.mode() & 0o7777, state.uid()), (0o600, world.actor.uid()));
    // Who takes it away takes the definitions as they are.
    fs::remove_file(record).unwrap();
    assert_eq!(run("other-definition"), (false, 0));
    assert_eq!(run(""), (true, 1));
}

fn a_record_that_cannot_be_read_is_never_unchanged(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let run = || {
        let mut agent = Agent::start(world, &config(), &[], &[]);
        let called = agent.call("echo", json!({"text": "a"}));
        let questions = agent.questions();
        let (code, said) = agent.end();
        assert_eq!(code, 0);
        (called.failed, questions, said)
    };
    assert!(!run().0);
    let [record] = records(world.base(), world.actor.uid()).try_into().unwrap();
    let good = fs::read_to_string(&record).unwrap();
    fs::write(&record, &good[..good.len() - 2]).unwrap();
    let (failed, questions, said) = run();
    assert_eq!((failed, questions), (true, 1), "{said}");
    assert!(said.contains("cannot be told"), "{said}");
    fs::write(&record, &good).unwrap();
    assert!(!run().0);
    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(run().0);
}
