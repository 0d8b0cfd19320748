//! What a server says, and what comes of it: an answer or an error, never a hang.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::agent::{Agent, Forgets, OPEN};
use crate::common::{Fixture, as_root_and_as_user, eventually};

as_root_and_as_user! {
    answers_that_are_none_are_errors ["python3"];
    a_call_that_is_not_answered_is_given_up_and_the_next_is_answered ["python3"];
    a_message_that_never_ends_ends_the_server ["python3"];
    a_server_that_ends_says_how_and_stays_ended ["python3"];
    a_server_that_closes_its_output_is_ended ["python3"];
    a_command_that_is_no_server_is_an_error ["python3"];
    what_it_asks_for_itself_reaches_nobody ["python3"];
    what_it_says_to_standard_error_is_shown_as_its_words ["python3"];
    odd_messages_of_every_kind_change_nothing ["python3"];
    a_server_that_reads_nothing_holds_nobody_up ["python3"];
    a_signal_ends_it_in_the_middle_of_a_call ["python3"];
    long_answers_are_cut ["python3"];
    pictures_are_passed_on ["python3"];
    a_server_that_starts_slowly_is_waited_for ["python3"];
    a_cancelled_call_is_cancelled_there ["python3"];
    steps_of_a_call_are_passed_on ["python3"];
    several_calls_are_under_way_at_once ["python3"];
}

/// [`OPEN`] with another timeout.
fn with_timeout(seconds: u32) -> String {
    OPEN.replace("timeout: 1h", &format!("timeout: {seconds}s"))
}

fn a_call_that_is_not_answered_is_given_up_and_the_next_is_answered(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, &with_timeout(1), &[], &[]);
    for tool in ["never", "wrong_id"] {
        agent.call(tool, json!({})).fails("did not answer within 1 s");
        // A busy machine may be late with this one too.
        eventually("an answer", || {
            let called = agent.call("echo", json!({"text": tool}));
            !called.failed && called.text == tool
        });
    }
    assert_eq!(agent.end().0, 0);
}

fn answers_that_are_none_are_errors(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let bad = [
        ("nonsense", "gave no answer that counts"),
        ("no_protocol", "is no message of the protocol"),
        ("list_for_call", "gave no answer that counts"),
        ("oversized", "longer than anything that is read"),
        ("values", "more values than anything that is read"),
        ("error", "the MCP server says: no \\u{1b}[2J such thing"),
    ];
    for (tool, why) in bad {
        agent.call(tool, json!({})).fails(why);
        // The next one is answered as if nothing had been.
        assert_eq!(agent.call("echo", json!({"text": tool})).ok(), tool);
    }
    assert_eq!(agent.call("garbage", json!({})).ok(), "after garbage");
    assert_eq!(agent.call("twice", json!({})).ok(), "first");
    assert_eq!(agent.call("flood", json!({})).ok(), "after the flood");
    agent.call("fail", json!({})).fails("it did not work");
    assert_eq!(agent.end().0, 0);
}

fn a_message_that_never_ends_ends_the_server(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    agent
        .call("endless", json!({}))
        .fails("longer than anything that is read");
    agent.says("the MCP server has ended");
    agent
        .call("echo", json!({"text": "x"}))
        .fails("it is not started again");
    assert_eq!(agent.end().0, 0);
}

fn a_server_that_ends_says_how_and_stays_ended(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let waiting = agent.request("tools/call", json!({"name": "wait", "arguments": {"seconds": 3600}}));
    agent
        .call("exit", json!({"code": 5}))
        .fails("the MCP server has ended (exit code 5)");
    let answer = agent.answer(waiting);
    assert!(answer.to_string().contains("has ended (exit code 5)"), "{answer}");
    agent
        .call("echo", json!({"text": "x"}))
        .fails("has ended (exit code 5); it is not started again");
    let (code, said) = agent.end();
    assert_eq!(code, 0);
    assert_eq!(said.matches("the MCP server has ended").count(), 1, "{said}");
}

fn a_server_that_closes_its_output_is_ended(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &["stays"]);
    agent.call("close", json!({})).fails("the MCP server");
    agent.says("the MCP server has ended");
    agent
        .call("echo", json!({"text": "x"}))
        .fails("it is not started again");
    assert_eq!(agent.end().0, 0);
}

fn a_command_that_is_no_server_is_an_error(world: &Fixture) {
    let _forgets = Forgets::after(world);
    for (command, why) in [
        (&["/usr/bin/true"][..], "the MCP server has ended (exit code 0)"),
        (&["/no/such/program"][..], "/no/such/program: not found"),
        (&["/usr/bin/yes"][..], "the MCP server"),
    ] {
        let (code, said) = Agent::serving(world, OPEN, &[], command).end();
        assert_eq!(code, 125, "{said}");
        assert!(said.contains(why), "{said}");
    }
    let (code, said) = Agent::try_start(world, OPEN, &[], &["dies"]).end();
    assert_eq!(code, 125, "{said}");
    assert!(said.contains("[server] no such database \\u{1b}[2J"), "{said}");
    assert!(said.contains("has ended (exit code 7)"), "{said}");
}

fn what_it_asks_for_itself_reaches_nobody(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    assert_eq!(agent.call("elicit", json!({})).ok(), r#"{"action": "decline"}"#);
    for tool in ["sample", "roots"] {
        assert!(agent.call(tool, json!({})).ok().contains("-32601"));
    }
    agent.call("wants_input", json!({})).fails("passed on to nobody");
    // The client would have answered.
    assert_eq!(agent.others, [] as [serde_json::Value; 0]);
    assert_eq!(agent.end().0, 0);
}

fn what_it_says_to_standard_error_is_shown_as_its_words(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let text = "a\u{1b}[2J\u{202e}b\nstockade: approved\n";
    agent.call("complain", json!({"text": text})).ok();
    agent.says("stockade: [server] a\\u{1b}[2J\\u{202e}b\n");
    agent.says("stockade: [server] stockade: approved\n");
    let flood = "flood\n".repeat(50_000);
    agent.call("complain", json!({"text": flood})).ok();
    let (_, said) = agent.end();
    assert!(
        said.matches("flood").count() <= 400,
        "{}",
        said.matches("flood").count()
    );
    assert!(said.contains("lines left out]"), "{said}");
    assert!(!said.contains(['\u{1b}', '\u{202e}']));
}

fn odd_messages_of_every_kind_change_nothing(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    for seed in 0..200 {
        let called = agent.call("fuzz", json!({"seed": seed}));
        assert_eq!(called.ok(), format!("after {seed}"));
    }
    assert_eq!(agent.others, [] as [serde_json::Value; 0]);
    let (code, said) = agent.end();
    assert_eq!(code, 0);
    assert!(!said.contains("panicked"), "{said}");
}

fn a_server_that_reads_nothing_holds_nobody_up(world: &Fixture) {
    let _forgets = Forgets::after(world);
    // On a busy machine the time may be over before the server has said that it turns deaf.
    let deaf = [4, 16, 64].into_iter().find_map(|seconds| {
        let mut agent = Agent::start(world, &with_timeout(seconds), &[], &["stays"]);
        let called = agent.call("deaf", json!({}));
        (!called.failed).then_some((agent, seconds))
    });
    let (mut agent, seconds) = deaf.expect("a server that turns deaf in time");
    let late = format!("did not answer within {seconds} s");
    // More than any pipe holds, and more calls than are under way at once.
    let calls: Vec<u64> = (0..24)
        .map(|_| {
            let arguments = json!({"text": "x".repeat(200_000)});
            agent.request("tools/call", json!({"name": "echo", "arguments": arguments}))
        })
        .collect();
    let silent = calls
        .iter()
        .map(|call| agent.answer(*call).to_string())
        .filter(|answer| answer.contains(&late));
    // It may have read one more when it turned deaf.
    assert!(silent.count() >= calls.len() - 2);
    assert_eq!(agent.end().0, 0);
}

fn a_signal_ends_it_in_the_middle_of_a_call(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &["stays"]);
    agent.call("write", json!({"path": ".envrc", "text": "evil"})).ok();
    let _call = agent.request("tools/call", json!({"name": "wait", "arguments": {"seconds": 3600}}));
    eventually("the call begins", || world.workspace().join("waiting").exists());
    kill(Pid::from_raw(agent.pid()), Signal::SIGTERM).unwrap();
    let (code, said) = agent.end();
    assert_eq!(code, 0, "{said}");
    assert!(!world.workspace().join(".envrc").exists());
}

fn long_answers_are_cut(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let text = agent.call("big", json!({"bytes": 1_000_000})).ok();
    assert!(
        text.len() < 110 * 1024 && text.contains("bytes omitted"),
        "{}",
        text.len()
    );
    assert_eq!(agent.call("big", json!({"bytes": 1_000})).ok(), "x".repeat(1_000));
    let structured = agent.call("structured", json!({}));
    assert_eq!(structured.whole["result"]["structuredContent"], json!({"n": 1}));
    assert_eq!(agent.end().0, 0);
}

fn pictures_are_passed_on(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let called = agent.call("picture", json!({}));
    let blocks = &called.whole["result"]["content"];
    assert_eq!(blocks[0]["text"], "[image/png: below]", "{blocks}");
    assert_eq!(
        blocks[1],
        json!({"type": "image", "mimeType": "image/png", "data": "QUJD"})
    );
    assert_eq!(agent.end().0, 0);
}

fn a_server_that_starts_slowly_is_waited_for(world: &Fixture) {
    let _forgets = Forgets::after(world);
    // Longer than a server is waited for that might not know the newer way to begin; its answer to that comes late.
    let mut agent = Agent::start(world, OPEN, &[], &["slow"]);
    assert_eq!(agent.call("echo", json!({"text": "hi"})).ok(), "hi");
    assert_eq!(agent.end().0, 0);
}

fn a_cancelled_call_is_cancelled_there(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let call = agent.request("tools/call", json!({"name": "wait", "arguments": {"seconds": 3600}}));
    eventually("the call begins", || world.workspace().join("waiting").exists());
    agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}}));
    let cancelled = world.workspace().join("cancelled");
    eventually("the server is told", || {
        fs::read(&cancelled).is_ok_and(|said| said == b"yes")
    });
    assert_eq!(agent.call("echo", json!({"text": "on"})).ok(), "on");
    assert_eq!(agent.end().0, 0);
}

fn steps_of_a_call_are_passed_on(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    let answer = agent.ask(
        "tools/call",
        json!({"name": "wait", "arguments": {"seconds": 2}, "_meta": {"progressToken": "p"}}),
    );
    assert_eq!(answer["result"]["content"][0]["text"], "waited", "{answer}");
    let steps: Vec<&str> = agent
        .others
        .iter()
        .filter_map(|other| other["params"]["message"].as_str())
        .collect();
    assert!(
        steps.iter().any(|step| step.contains("still \\u{1b}[2J here")),
        "{steps:?}"
    );
    assert_eq!(agent.end().0, 0);
}

fn several_calls_are_under_way_at_once(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &[]);
    // None is answered before all have come.
    let calls: Vec<u64> = (0..8)
        .map(|_| agent.request("tools/call", json!({"name": "wait", "arguments": {"together": true}})))
        .collect();
    for call in calls {
        let answer = agent.answer(call);
        assert_eq!(answer["result"]["content"][0]["text"], "waited", "{answer}");
    }
    assert_eq!(agent.end().0, 0);
}
