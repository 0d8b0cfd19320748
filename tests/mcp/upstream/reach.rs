//! What a server may touch.

use std::fs;
use std::net::TcpListener;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::agent::{Agent, Forgets, OPEN};
use crate::common::{
    Fixture, SECRET, as_root_and_as_user, eventually, in_namespaces, marker, wait_for_processes, wait_until_gone,
};

as_root_and_as_user! {
    it_touches_what_the_config_grants_and_nothing_else ["python3"];
    roots_that_ask_do_not_open_for_it_whatever_is_approved ["python3"];
    it_ends_with_stockade_and_with_all_that_it_started ["python3"];
    it_ends_when_stockade_is_killed ["python3"];
    what_it_plants_is_restored_when_it_ends ["python3"];
    a_rule_that_forbids_its_command_keeps_it_from_starting ["python3"];
    residuals_that_are_refused_keep_it_from_starting ["python3"];
}

in_namespaces! {
    it_touches_what_the_config_grants_and_nothing_else ["python3"];
    roots_that_ask_do_not_open_for_it_whatever_is_approved ["python3"];
    it_ends_with_stockade_and_with_all_that_it_started ["python3"];
    it_ends_when_stockade_is_killed ["python3"];
    what_it_plants_is_restored_when_it_ends ["python3"];
}

fn it_touches_what_the_config_grants_and_nothing_else(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    world.write("mine", "content of mine");
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    assert_eq!(agent.call("read", json!({"path": "mine"})).ok(), "content of mine");
    assert_eq!(
        agent.call("write", json!({"path": "new", "text": "by it"})).ok(),
        "written"
    );
    assert_eq!(fs::read_to_string(world.workspace().join("new")).unwrap(), "by it");
    let outside = world.outside();
    for path in [outside.join("secret"), world.home().join(".ssh/id_ed25519")] {
        // The twin: whoever runs this reads it.
        assert_eq!(fs::read_to_string(&path).unwrap(), SECRET);
        agent.call("read", json!({"path": path})).refused();
    }
    for path in [
        outside.join("new"),
        outside.join("secret"),
        "/var/tmp/stockade-upstream-escape".into(),
    ] {
        agent.call("write", json!({"path": path, "text": "x"})).refused();
        assert!(
            !path.exists() || fs::read_to_string(&path).unwrap() == SECRET,
            "{}",
            path.display()
        );
    }
    agent.call("list", json!({"path": outside})).refused();
    agent
        .call("connect", json!({"host": "127.0.0.1", "port": port}))
        .refused();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert_eq!(agent.end().0, 0);
    // Told that its input ended, it ended by itself. It has two seconds for that, which a busy machine may not give it.
    let ended = world.workspace().join("ended");
    eventually("an end in order", || {
        let in_order = fs::read_to_string(&ended).is_ok_and(|said| said == "in order");
        if !in_order {
            Agent::start(world, OPEN, &[], &[]).end();
        }
        in_order
    });
}

fn roots_that_ask_do_not_open_for_it_whatever_is_approved(world: &Fixture) {
    let _forgets = Forgets::after(world);
    for root in ["asks-read", "asks-write", "free"] {
        world.write(format!("../{root}/file"), root);
    }
    let config = "
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    work: {root: ./workspace, mode: ro}
    a: {root: ./asks-read, mode: rw, approval: {read: required, write: required}}
    b: {root: ./asks-write, mode: rw, approval: {write: required}}
    c: {root: ./free, mode: rw, write_approval: false}
approval: {mode: approve_all}
";
    let mut agent = Agent::start(world, config, &[], &[]);
    let file = |root: &str| world.base().join(root).join("file");
    agent.call("read", json!({"path": file("asks-read")})).refused();
    agent
        .call("write", json!({"path": file("asks-read"), "text": "x"}))
        .refused();
    assert_eq!(
        agent.call("read", json!({"path": file("asks-write")})).ok(),
        "asks-write"
    );
    agent
        .call("write", json!({"path": file("asks-write"), "text": "x"}))
        .refused();
    assert_eq!(agent.call("read", json!({"path": file("free")})).ok(), "free");
    assert_eq!(
        agent.call("write", json!({"path": file("free"), "text": "x"})).ok(),
        "written"
    );
    let (code, said) = agent.end();
    assert_eq!(code, 0);
    for root in ["a", "b"] {
        assert!(said.contains(&format!("the root `{root}` asks before it is")), "{said}");
    }
    assert!(!said.contains("the root `c`"), "{said}");
}

fn it_ends_with_stockade_and_with_all_that_it_started(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let marker = marker();
    // It does not end when its input does.
    let mut agent = Agent::start(world, OPEN, &[], &["stays"]);
    agent.call("linger", json!({"marker": marker})).ok();
    wait_for_processes(&marker, 1);
    assert_eq!(agent.end().0, 0);
    wait_until_gone(&marker);
    assert!(!world.workspace().join("ended").exists());
}

fn it_ends_when_stockade_is_killed(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let marker = marker();
    let mut agent = Agent::start(world, OPEN, &[], &["stays"]);
    agent.call("linger", json!({"marker": marker})).ok();
    wait_for_processes(&marker, 1);
    kill(Pid::from_raw(agent.pid()), Signal::SIGKILL).unwrap();
    wait_until_gone(&marker);
}

fn what_it_plants_is_restored_when_it_ends(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    agent.says("protected names are restored only when the server ends");
    agent.call("write", json!({"path": ".envrc", "text": "evil"})).ok();
    assert!(world.workspace().join(".envrc").exists(), "nothing was planted");
    agent.call("write", json!({"path": "harmless", "text": "good"})).ok();
    let (code, said) = agent.end();
    assert_eq!(code, 0);
    assert!(!world.workspace().join(".envrc").exists());
    assert!(world.workspace().join("harmless").exists());
    assert!(said.contains(".envrc is protected and was"), "{said}");
}

fn a_rule_that_forbids_its_command_keeps_it_from_starting(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let forbids = format!("{OPEN}\n").replace(
        "shell: {",
        "shell: {rules: [{pattern: /usr/bin/python3, allowed: false, reason: no snakes}], ",
    );
    let (code, said) = Agent::try_start(world, &forbids, &[], &[]).end();
    assert_eq!(code, 125, "{said}");
    assert!(said.contains("no snakes"), "{said}");
    // What the agent's shell may run by default is another question.
    let default = OPEN.replace("shell: {", "shell: {default: {allowed: false}, ");
    let mut agent = Agent::start(world, &default, &[], &[]);
    assert_eq!(agent.call("echo", json!({"text": "hi"})).ok(), "hi");
    assert_eq!(agent.end().0, 0);
}

fn residuals_that_are_refused_keep_it_from_starting(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let refuses = OPEN.replace("protect_fallback: undo", "residuals: refuse");
    let (code, said) = Agent::try_start(world, &refuses, &[], &[]).end();
    assert_eq!(code, 125, "{said}");
    assert!(!world.workspace().join("ended").exists());
}
