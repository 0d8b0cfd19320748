//! What is said where nobody looked, and who may have somebody look.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{Fixture, in_both_regimes};
use crate::explain::tried::blocked;

in_both_regimes! {
    a_failure_that_sounds_like_a_refusal_has_a_hint [];
    a_failure_to_find_what_is_hidden_has_a_hint [];
    a_tool_call_tells_what_was_denied [];
    without_a_word_of_it_nothing_is_explained [];
    a_socket_that_a_failed_command_lacked_is_told ["python3"];
    what_the_kernel_says_of_a_command_itself_is_told_where_it_cannot_be_read [];
    a_crash_and_a_missing_repository_have_a_hint [];
    a_program_in_a_directory_of_path_that_is_not_granted_has_a_hint [];
}

fn config(world: &Fixture, explain: &str) -> PathBuf {
    let text = format!(
        "extends: [workspace-write]\nsandbox:\n  os_sandbox_fallback: fail_fast\nshell:\n{explain}  default: {{allowed: true, approval: none}}\n"
    );
    world.write("agent.yaml", text)
}

fn outcome(world: &Fixture, config: &str, line: &str) -> Value {
    let run = world
        .stockade(&["run", "--config", config, "--json", "-c", line])
        .output();
    serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()))
}

fn a_failure_that_sounds_like_a_refusal_has_a_hint(world: &Fixture) {
    let config = config(world, "  explain: on_failure\n");
    let config = config.to_str().unwrap();
    let denied = "touch /usr/x || { echo 'touch: Permission denied' >&2; exit 1; }";
    let failed = outcome(world, config, denied);
    let hint = failed["hint"].as_str().unwrap();
    assert!(hint.contains("--explain") && hint.contains("explain: always"), "{hint}");
    for line in ["true", "exit 3", "echo 'Permission denied' >&2"] {
        let outcome = outcome(world, config, line);
        assert!(outcome.get("hint").is_none(), "{line}: {outcome:#}");
        assert!(outcome.get("explained").is_none(), "{line}: {outcome:#}");
    }
    // What is streamed is not known to sound like anything.
    let streamed = |line: &str| world.stockade(&["run", "--config", config, "-c", line]).output().err();
    assert!(streamed("exit 3").contains("--explain"));
    assert!(!streamed("true").contains("--explain"));
    // Who looked needs no hint.
    let looked = ["run", "--config", config, "--explain", "--json", "-c", denied];
    let looked: Value = serde_json::from_str(&world.stockade(&looked).output().out()).unwrap();
    assert!(
        looked.get("hint").is_none() && looked.get("explained").is_some(),
        "{looked:#}"
    );
}

fn a_failure_to_find_what_is_hidden_has_a_hint(world: &Fixture) {
    let config = config(world, "  explain: on_failure\n");
    let config = config.to_str().unwrap();
    let is_hinted = |line: &str| outcome(world, config, line).get("hint").is_some();
    // Elsewhere nothing is hidden, and what is missing is.
    let is_hidden = world.backend.is_in_namespaces();
    assert_eq!(is_hinted("cat /srv/nothing-of-the-kind"), is_hidden);
    assert!(is_hinted("cat /etc/shadow"));
    for line in [
        "cat missing",
        "cat ./missing/x",
        "cat /usr/missing",
        "cat /tmp/missing",
        "cat \"$HOME/missing\"",
    ] {
        assert!(!is_hinted(line), "{line}");
    }
    let run = ["run", "--config", config, "--json", "--", "/srv/nothing-of-the-kind"];
    let run: Value = serde_json::from_str(&world.stockade(&run).output().out()).unwrap();
    assert_eq!(run.get("hint").is_some(), is_hidden, "{run:#}");
}

fn a_tool_call_tells_what_was_denied(world: &Fixture) {
    let secret = world.outside().join("secret");
    let arguments = json!({"command": format!("cat {}", secret.display())}).to_string();
    let called = |config: &str, flags: &[&str]| {
        let words = [&["call", "--config", config, "--json"], flags, &["shell", &arguments]].concat();
        let run = world.stockade(&words).output();
        serde_json::from_str::<Value>(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()))
    };
    let plain = config(world, "");
    let plain = plain.to_str().unwrap().to_owned();
    let told = |called: &Value| {
        let all = blocked(&called["data"]);
        assert_eq!(all.len(), 1, "{called:#}");
        assert_eq!(all[0].what, secret.to_str().unwrap());
        assert!(
            called["text"].as_str().unwrap().contains("[denied: read "),
            "{called:#}"
        );
    };
    told(&called(&plain, &["--explain"]));
    assert!(called(&plain, &[])["data"].get("explained").is_none());
    let always = config(world, "  explain: always\n");
    told(&called(always.to_str().unwrap(), &[]));
}

fn without_a_word_of_it_nothing_is_explained(world: &Fixture) {
    let run = world.stockade(&["run", "--json", "-c", "cat /etc/shadow"]).output();
    let outcome: Value = serde_json::from_str(&run.out()).unwrap();
    assert!(
        outcome.get("explained").is_none() && outcome.get("hint").is_none(),
        "{outcome:#}"
    );
}

/// libuv and Go make their sockets as the C library does that looks for a cache of names.
fn a_socket_that_a_failed_command_lacked_is_told(world: &Fixture) {
    let code = "import socket, sys\ntry: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)\n\
                except OSError: sys.exit(int(sys.argv[1]))\n";
    let told = |words: &[&str]| {
        let run = [&["run", "--explain", "--json", "--"], words].concat();
        let run: Value = serde_json::from_str(&world.stockade(&run).output().out()).unwrap();
        blocked(&run)
    };
    let is_told = told(&["python3", "-c", code, "3"])
        .iter()
        .any(|one| one.wanted == "socket" && one.what == "Unix");
    assert!(is_told);
    // The C library looks for its cache of names, and nobody misses it.
    assert!(told(&["bash", "-c", "id -un; id -Gn; exit 3"]).is_empty());
}

fn what_the_kernel_says_of_a_command_itself_is_told_where_it_cannot_be_read(world: &Fixture) {
    for line in [
        "cat /proc/self/maps",
        "cat /proc/$$/status",
        "exec cat /proc/thread-self/smaps",
    ] {
        let run = world.stockade(&["run", "--explain", "--json", "-c", line]).output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        let told = blocked(&outcome);
        if world.backend.is_in_namespaces() {
            assert!(told.is_empty() && outcome["code"] == 0, "{outcome:#}");
            continue;
        }
        assert_eq!(told.len(), 1, "{outcome:#}");
        assert!(told[0].what.starts_with("/proc/self/"), "{outcome:#}");
        let change = outcome["explained"]["blocked"][0]["change"][0].as_str().unwrap();
        assert!(change.contains("--backend namespaces"), "{change}");
    }
}

fn a_crash_and_a_missing_repository_have_a_hint(world: &Fixture) {
    let config = config(world, "  explain: on_failure\n");
    let config = config.to_str().unwrap();
    for line in ["kill -ABRT $$", "echo 'fatal: not a git repository' >&2; exit 128"] {
        assert!(outcome(world, config, line).get("hint").is_some(), "{line}");
    }
    assert!(outcome(world, config, "kill -TERM $$").get("hint").is_none());
}

fn a_program_in_a_directory_of_path_that_is_not_granted_has_a_hint(world: &Fixture) {
    let tools = world.outside().join("tools");
    world.program(tools.join("frobnicate"), "#!/bin/sh\necho found\n");
    let run = |flags: &[&str]| {
        let words = [&["run"], flags, &["-c", "frobnicate"]].concat();
        let path = format!("{}:/usr/bin:/bin", tools.display());
        world.stockade(&words).env("PATH", path).output()
    };
    let missed = run(&["--json"]).exits(127);
    let outcome: Value = serde_json::from_str(&missed.out()).unwrap();
    let hint = outcome["hint"].as_str().unwrap();
    assert!(
        hint.contains(tools.to_str().unwrap()) && hint.contains("--ro"),
        "{hint}"
    );
    let granted = run(&["--rw", ".", "--ro", tools.to_str().unwrap()]).exits(0);
    assert_eq!(granted.out(), "found\n");
}
