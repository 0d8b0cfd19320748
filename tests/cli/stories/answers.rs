//! Stories 1–3, 5 and 14: what is asked waits, and each answer does what it says.

use serde_json::{Value, json};

use crate::common::{Fixture, as_root_and_as_user};
use crate::stories::agent::{BY_DEFAULT, CAREFUL, answers, calls, calls_for, config, one, runs, session, text_of};

as_root_and_as_user! {
    story_1_a_guarded_tool_pauses_until_somebody_answers ["tmux"];
    story_1_what_needs_no_yes_does_not_pause ["tmux"];
    story_2_a_yes_resumes_the_call_with_exactly_what_was_shown ["tmux"];
    story_3_a_no_with_a_reason_reaches_the_agent_and_the_session_goes_on ["tmux"];
    story_3_ctrl_c_at_a_question_is_a_no ["tmux"];
    story_5_a_yes_for_the_session_holds_for_the_same_call_and_no_other ["tmux"];
    story_5_a_yes_for_the_session_ends_when_a_file_that_the_command_names_changes ["tmux"];
    story_5_an_approval_that_is_revoked_is_asked_for_again ["tmux"];
    story_5_a_yes_for_a_place_covers_the_ninety_nine_files_after_the_first_and_nothing_else ["tmux"];
    story_5_a_yes_for_commands_that_begin_so_covers_them_and_no_others ["tmux"];
    story_5_a_yes_for_commands_that_begin_so_covers_none_that_another_line_asks_about ["tmux"];
    story_5_once_per_session_is_once_per_tool_and_path ["tmux"];
    story_14_calls_of_one_group_are_one_question_and_one_record_each ["tmux"];
    story_14_the_history_has_every_decision_and_whose_it_was ["tmux"];
}

fn note(text: &str) -> Value {
    json!({"path": "w:note.txt", "content": text})
}

fn story_1_a_guarded_tool_pauses_until_somebody_answers(world: &Fixture) {
    let terminal = one(world, &config(world, CAREFUL, ""), "write_file", &note("hello\n"));
    let question = terminal.question();
    assert!(question.contains("tool       write_file"), "{question}");
    assert_eq!(text_of(world, "note.txt"), None);
    // What is no answer is none, however often.
    terminal.types("x");
    terminal.see("Please press y, n, s or ?.");
    terminal.prompted(2);
    terminal.types("?");
    terminal.see("the question stands");
    terminal.prompted(3);
    assert_eq!(text_of(world, "note.txt"), None);
    terminal.types("y");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "note.txt").as_deref(), Some("hello\n"));
}

fn story_1_what_needs_no_yes_does_not_pause(world: &Fixture) {
    world.write("note.txt", "as it is\n");
    let terminal = one(
        world,
        &config(world, CAREFUL, ""),
        "read_file",
        &json!({"path": "w:note.txt"}),
    );
    let ended = terminal.end();
    assert!(ended.code == 0 && ended.shown.contains("as it is"), "{}", ended.shown);
    assert_eq!(terminal.questions(), 0);
}

fn story_2_a_yes_resumes_the_call_with_exactly_what_was_shown(world: &Fixture) {
    let lines = [
        runs("printf 'from the command\\n' > made.txt; cat made.txt"),
        calls("read_file", json!({"path": "w:made.txt"})),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    let question = terminal.answer("y");
    assert!(question.contains("printf 'from the command\\n'"), "{question}");
    assert_eq!(terminal.end().code, 0);
    let answers = answers(world);
    assert_eq!(answers[0]["status"], "done", "{answers:?}");
    assert_eq!(answers[0]["text"], "from the command\n");
    assert_eq!(text_of(world, "made.txt").as_deref(), Some("from the command\n"));
    assert_eq!(terminal.questions(), 1);
}

fn story_3_a_no_with_a_reason_reaches_the_agent_and_the_session_goes_on(world: &Fixture) {
    let lines = [
        calls("write_file", note("first\n")),
        calls("write_file", note("second\n")),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    terminal.refuse("write less, später");
    let question = terminal.answer("y");
    assert!(question.contains("second"), "{question}");
    assert_eq!(terminal.end().code, 0);
    let answers = answers(world);
    assert_eq!(answers[0]["status"], "denied");
    assert_eq!(
        answers[0]["reason"],
        "permission denied: user denied write_file: write less, später"
    );
    assert_eq!(answers[1]["status"], "done");
    assert_eq!(text_of(world, "note.txt").as_deref(), Some("second\n"));
}

fn story_3_ctrl_c_at_a_question_is_a_no(world: &Fixture) {
    let terminal = one(world, &config(world, CAREFUL, ""), "write_file", &note("hello\n"));
    terminal.question();
    terminal.press("C-c");
    let ended = terminal.end();
    assert_eq!(ended.code, 126, "{}", ended.shown);
    assert!(
        ended.shown.contains("nobody could approve write_file"),
        "{}",
        ended.shown
    );
    assert_eq!(text_of(world, "note.txt"), None);
}

fn story_5_a_yes_for_the_session_holds_for_the_same_call_and_no_other(world: &Fixture) {
    let lines = [runs("echo one"), runs("echo one"), runs("echo  one"), runs("echo two")];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    terminal.answer_for_the_session();
    let question = terminal.refuse("one blank will do");
    assert!(question.contains("echo  one"), "{question}");
    let question = terminal.answer("y");
    assert!(question.contains("echo two"), "{question}");
    assert_eq!(terminal.end().code, 0);
    let told = answers(world);
    let status: Vec<&Value> = told.iter().map(|answer| &answer["status"]).collect();
    assert_eq!(status, ["done", "done", "denied", "done"]);
    assert_eq!(told[1]["text"], "one\n");
}

fn story_5_a_yes_for_the_session_ends_when_a_file_that_the_command_names_changes(world: &Fixture) {
    world.write("script", "echo first\n");
    let lines = [
        runs("sh script"),
        runs("sh script"),
        calls("write_file", json!({"path": "w:script", "content": "echo second\n"})),
        runs("sh script"),
    ];
    let file = config(world, BY_DEFAULT, "tools: {write_file: {approval: none}}\n");
    let terminal = session(world, &file, &[], &lines);
    terminal.answer("s");
    let question = terminal.refuse("what does it do now?");
    assert!(
        question.contains("changed    ") && question.contains("/script changed since you said yes at"),
        "{question}"
    );
    assert_eq!(terminal.end().code, 0);
    let told = answers(world);
    assert_eq!(told[1]["text"], "first\n");
    assert_eq!(told[3]["status"], "denied");
}

fn story_5_a_yes_for_a_place_covers_the_ninety_nine_files_after_the_first_and_nothing_else(world: &Fixture) {
    let write = |number: usize| {
        calls(
            "write_file",
            json!({"path": format!("w:part-{number}"), "content": "x\n"}),
        )
    };
    let mut lines: Vec<Value> = (1..=100).map(write).collect();
    lines.push(json!("approvals"));
    lines.push(calls("delete_file", json!({"path": "w:part-1"})));
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    terminal.answer("s");
    terminal.see("write_file anywhere in w");
    terminal.see("which? [1/2/3]");
    terminal.types("3");
    let question = terminal.refuse("keep it");
    assert!(question.contains("delete_file"), "{question}");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(terminal.questions(), 2);
    let told = answers(world);
    assert!(
        told.iter().take(100).all(|answer| answer["status"] == "done"),
        "{told:?}"
    );
    assert_eq!(told[100]["approvals"][0]["description"], "write_file anywhere in w");
    assert_eq!(told[101]["status"], "denied");
}

fn story_5_a_yes_for_commands_that_begin_so_covers_them_and_no_others(world: &Fixture) {
    let lines = [
        runs("echo one"),
        runs("echo one two"),
        runs("echo three"),
        runs("echo one; echo one"),
        runs("echo one > made"),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    terminal.answer("s");
    terminal.see("commands that begin with `echo one`, started in");
    terminal.see("which? [1/2]");
    terminal.types("2");
    for other in ["$ echo three", "$ echo one; echo one", "$ echo one > made"] {
        let question = terminal.refuse("");
        assert!(question.contains(other), "{other}: {question}");
    }
    assert_eq!(terminal.end().code, 0);
    let status: Vec<Value> = answers(world).iter().map(|answer| answer["status"].clone()).collect();
    assert_eq!(status, ["done", "done", "denied", "denied", "denied"]);
}

fn story_5_a_yes_for_commands_that_begin_so_covers_none_that_another_line_asks_about(world: &Fixture) {
    let rules = "shell:\n  rules: [{pattern: echo one two, approval: required}]\ntools: {shell: {dangerous_patterns: [danger]}}\n";
    let lines = [
        runs("echo one"),
        runs("echo one more"),
        runs("echo one two"),
        runs("echo one danger"),
    ];
    let terminal = session(world, &config(world, CAREFUL, rules), &[], &lines);
    terminal.answer("s");
    terminal.see("which? [1/2]");
    terminal.types("2");
    for other in ["$ echo one two", "$ echo one danger"] {
        let question = terminal.refuse("");
        assert!(question.contains(other), "{other}: {question}");
    }
    assert_eq!(terminal.end().code, 0);
    let status: Vec<Value> = answers(world).iter().map(|answer| answer["status"].clone()).collect();
    assert_eq!(status, ["done", "done", "denied", "denied"]);
}

fn story_5_once_per_session_is_once_per_tool_and_path(world: &Fixture) {
    let file = config(world, BY_DEFAULT, "tools: {write_file: {approval: once_per_session}}\n");
    let write =
        |name: &str, content: &str| calls("write_file", json!({"path": format!("w:{name}"), "content": content}));
    let lines = [write("a", "1\n"), write("a", "2\n"), write("b", "1\n")];
    let terminal = session(world, &file, &[], &lines);
    let question = terminal.answer("y");
    assert!(question.contains("again for the same path"), "{question}");
    let question = terminal.refuse("");
    assert!(
        question.contains("write the new file") && question.contains("/b\n"),
        "{question}"
    );
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a").as_deref(), Some("2\n"));
}

fn story_5_an_approval_that_is_revoked_is_asked_for_again(world: &Fixture) {
    let lines = [
        runs("echo one"),
        json!("approvals"),
        json!("forget_approvals"),
        runs("echo one"),
        json!("approvals"),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    terminal.answer_for_the_session();
    terminal.answer("y");
    assert_eq!(terminal.end().code, 0);
    let answers = answers(world);
    assert_eq!(answers[1]["approvals"][0]["tool"], "shell", "{answers:?}");
    assert_eq!(answers[4]["approvals"], json!([]), "{answers:?}");
}

fn story_14_calls_of_one_group_are_one_question_and_one_record_each(world: &Fixture) {
    let write = |name: &str| json!({"tool": "write_file", "args": {"path": format!("w:{name}"), "content": "x\n"}});
    let lines = [
        json!({"together": [write("a"), write("b"), {"tool": "read_file", "args": {"path": "w:c"}}]}),
        json!("history"),
    ];
    world.write("c", "read\n");
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    let question = terminal.answer("y");
    for part in ["part 1", "part 2", "One answer holds for all 2 parts."] {
        assert!(question.contains(part), "{question}");
    }
    assert_eq!(terminal.end().code, 0);
    assert_eq!(terminal.questions(), 1);
    assert_eq!(
        (text_of(world, "a"), text_of(world, "b")),
        (Some("x\n".into()), Some("x\n".into()))
    );
    let told = answers(world);
    assert_eq!(told[0].as_array().unwrap().len(), 3, "{told:?}");
    let history = told[1]["history"].as_array().unwrap();
    assert_eq!(history.len(), 2, "{told:?}");
    assert!(
        history
            .iter()
            .all(|one| one["approved"] == true && one["group"] == history[0]["group"]),
        "{told:?}"
    );
}

fn story_14_the_history_has_every_decision_and_whose_it_was(world: &Fixture) {
    let lines = [
        runs("echo one"),
        runs("echo one"),
        calls("write_file", note("a\n")),
        calls_for("reviewer", "write_file", note("b\n")),
        json!("history"),
    ];
    let terminal = session(world, &config(world, CAREFUL, ""), &[], &lines);
    terminal.answer_for_the_session();
    terminal.refuse("not this file");
    terminal.answer("y");
    assert_eq!(terminal.end().code, 0);
    let told = answers(world);
    let history = told[4]["history"].as_array().unwrap();
    let seen: Vec<Value> = history
        .iter()
        .map(|one| json!([one["tool"], one["approved"], one["by"], one["note"], one["caller"]]))
        .collect();
    assert_eq!(
        seen,
        [
            json!(["shell", true, "approver", null, null]),
            json!(["shell", true, "an earlier yes for the session", null, null]),
            json!(["write_file", false, "approver", "not this file", null]),
            json!(["write_file", true, "approver", null, "reviewer"]),
        ]
    );
}
