//! Who is asked about a call, and what they are told.

use serde_json::json;

use super::agent::{Agent, Forgets, OPEN};
use crate::common::{Fixture, as_root_and_as_user};

as_root_and_as_user! {
    the_config_says_what_runs_unasked_and_what_is_not_offered ["python3"];
    the_question_says_which_server_which_tool_and_what_it_is_given ["python3"];
    a_yes_for_the_session_holds_for_the_same_call_alone ["python3"];
    a_name_that_the_server_does_not_have_is_told ["python3"];
    hostile_names_are_left_out ["python3"];
    lists_without_end_are_cut ["python3"];
    both_eras_of_the_protocol_are_spoken ["python3"];
}

/// A config that asks.
fn asking() -> String {
    OPEN.replace("approval: {mode: approve_all}", "")
}

fn the_config_says_what_runs_unasked_and_what_is_not_offered(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let config = asking()
        + "custom_tools: {echo: {}, fail: {}, never: {}}\ntools: {echo: {approval: none}, never: {approval: deny}}\n";
    let mut agent = Agent::start(world, &config, &[], &[]);
    assert_eq!(agent.call("echo", json!({"text": "hi"})).ok(), "hi");
    assert_eq!(agent.questions(), 0);
    assert!(!agent.names().contains(&"never".to_owned()));
    agent.call("never", json!({})).fails("no tool `never`");
    agent
        .call("write", json!({"path": "x", "text": "y"}))
        .fails("permission denied");
    assert!(!world.workspace().join("x").exists());
    assert_eq!(agent.questions(), 1);
    agent.decides = Some("once");
    agent.call("write", json!({"path": "x", "text": "y"})).ok();
    assert!(world.workspace().join("x").exists());
    assert_eq!(agent.end().0, 0);
    // Nobody to ask, and nobody asked.
    let mut strict = Agent::start(world, &config, &["--mode", "strict"], &[]);
    assert_eq!(strict.call("echo", json!({"text": "hi"})).ok(), "hi");
    strict.call("fail", json!({})).fails("permission denied");
    assert_eq!((strict.questions(), strict.end().0), (0, 0));
}

fn the_question_says_which_server_which_tool_and_what_it_is_given(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, &asking(), &[], &[]);
    agent
        .call(
            "write",
            json!({"path": "x", "text": "\u{1b}[2J\u{202e}evil", "tool": "echo"}),
        )
        .fails("permission denied");
    let question = agent.others.last().unwrap()["params"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    for told in ["server.py", "write", "evil", "does \\u{1b}[2J write", "args.tool"] {
        assert!(question.contains(told), "{told}: {question}");
    }
    assert!(!question.contains(['\u{1b}', '\u{202e}']), "{question}");
    // A claim that it only reads is passed on, and changes nothing of that.
    let tools = agent.tools();
    let write = tools.iter().find(|tool| tool["name"] == "write").unwrap();
    assert_eq!(write["annotations"]["readOnlyHint"], json!(true));
    assert_eq!(agent.end().0, 0);
}

fn a_yes_for_the_session_holds_for_the_same_call_alone(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, &asking(), &[], &[]);
    agent.decides = Some("session");
    agent.call("echo", json!({"text": "a"})).ok();
    assert_eq!(agent.questions(), 1);
    agent.call("echo", json!({"text": "a"})).ok();
    assert_eq!(agent.questions(), 1);
    agent.call("echo", json!({"text": "b"})).ok();
    assert_eq!(agent.questions(), 2);
    // Another definition is another tool.
    agent.call("change", json!({})).ok();
    agent.says("the tool `echo`: its definition is not what it was");
    agent.call("echo", json!({"text": "a"})).ok();
    assert_eq!(agent.questions(), 4);
    assert_eq!(agent.end().0, 0);
}

fn a_name_that_the_server_does_not_have_is_told(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let config = asking()
        + "custom_tools: {echo: {}, ehco: {}, shell-like: {}}\ntools: {echo: {approval: none}, ehco: {approval: none}}\n";
    let agent = Agent::start(world, &config, &[], &[]);
    agent.says("`tools: ehco` at ");
    let (_, said) = agent.end();
    assert!(!said.contains("`tools: echo`"), "{said}");
}

fn hostile_names_are_left_out(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut agent = Agent::start(world, OPEN, &[], &["hostile-names"]);
    let names = agent.names();
    assert!(
        names
            .iter()
            .all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')),
        "{names:?}"
    );
    assert_eq!(names.iter().filter(|name| *name == "echo").count(), 1);
    let (_, said) = agent.end();
    assert_eq!(said.matches("is left out").count(), 6, "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

fn lists_without_end_are_cut(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut many = Agent::start(world, OPEN, &[], &["many"]);
    assert_eq!(many.names().len(), 256);
    many.says("it has more than 256 tools");
    assert_eq!(many.end().0, 0);
    let mut circle = Agent::start(world, OPEN, &[], &["circle"]);
    assert!(circle.names().contains(&"echo".to_owned()));
    circle.says("leads back to where it was");
    assert_eq!(circle.end().0, 0);
}

fn both_eras_of_the_protocol_are_spoken(world: &Fixture) {
    let _forgets = Forgets::after(world);
    let mut names = Vec::new();
    for flags in [&[][..], &["modern"], &["paged"], &["modern", "paged"]] {
        let mut agent = Agent::start(world, OPEN, &[], flags);
        assert_eq!(agent.call("echo", json!({"text": "hi"})).ok(), "hi", "{flags:?}");
        names.push(agent.names());
        // The change is heard of in each.
        agent.call("change", json!({"to": "another \u{1b} word"})).ok();
        agent.says("the tool `echo`: its definition is not what it was");
        let tools = agent.tools();
        let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap();
        assert_eq!(echo["description"], "another \u{1b} word", "{flags:?}");
        assert_eq!(agent.end().0, 0);
    }
    assert!(names.windows(2).all(|two| two[0] == two[1]), "{names:?}");
}
