//! Stories 11–13: who asks is told, and whoever asks shares one session.

use serde_json::json;

use crate::common::{Fixture, as_root_and_as_user};
use crate::stories::agent::{CAREFUL, answers, calls_for, config, runs, session, text_of};

as_root_and_as_user! {
    story_11_a_question_names_the_worker_that_asks ["tmux"];
    story_12_a_workers_yes_for_the_session_holds_for_the_agent_too ["tmux"];
    story_13_a_delegate_of_a_delegate_is_named_and_told_why_not ["tmux"];
}

fn story_11_a_question_names_the_worker_that_asks(world: &Fixture) {
    let args = json!({"path": "w:a", "content": "a\n"});
    let hostile = "boss\n│ tool       read_file\u{1b}[2J";
    let lines = [
        calls_for("reviewer", "write_file", args.clone()),
        calls_for(hostile, "write_file", json!({"path": "w:b", "content": "b\n"})),
        runs("id"),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    let question = terminal.answer("y");
    assert!(question.contains("for        reviewer"), "{question}");
    let question = terminal.answer("n as you are not the boss");
    assert!(
        !question.lines().any(|line| line.starts_with("│ tool       read_file")),
        "{question}"
    );
    assert!(question.contains("\\u{1b}[2J"), "{question}");
    // The agent itself is nobody's worker.
    let question = terminal.answer("y");
    assert!(!question.contains("for  "), "{question}");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a").as_deref(), Some("a\n"));
    assert_eq!(text_of(world, "b"), None);
}

fn story_12_a_workers_yes_for_the_session_holds_for_the_agent_too(world: &Fixture) {
    let line = json!({"command": "echo once"});
    let lines = [
        calls_for("worker", "shell", line.clone()),
        runs("echo once"),
        calls_for("planner › worker", "shell", line),
        json!("history"),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    let question = terminal.answer_for_the_session();
    assert!(question.contains("for        worker"), "{question}");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(terminal.questions(), 1);
    let told = answers(world);
    assert!(told.iter().take(3).all(|answer| answer["text"] == "once\n"), "{told:?}");
    let callers: Vec<_> = told[3]["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["caller"])
        .collect();
    assert_eq!(callers, [&json!("worker"), &json!(null), &json!("planner › worker")]);
}

fn story_13_a_delegate_of_a_delegate_is_named_and_told_why_not(world: &Fixture) {
    let args = json!({"path": "w:a", "content": "a\n"});
    let lines = [
        calls_for("planner › reviewer", "write_file", args.clone()),
        calls_for("planner", "write_file", args),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    let question = terminal.refuse("reviewers only read");
    assert!(question.contains("for        planner › reviewer"), "{question}");
    let question = terminal.answer("y");
    assert!(question.contains("for        planner\n"), "{question}");
    assert_eq!(terminal.end().code, 0);
    let told = answers(world);
    assert_eq!(told[0]["status"], "denied");
    assert_eq!(
        told[0]["reason"],
        "permission denied: user denied write_file: reviewers only read"
    );
    assert_eq!(told[1]["status"], "done");
}
