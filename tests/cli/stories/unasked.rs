//! Stories 4, 6, 7, 9 and 10: what the config or the mode decides, nobody is asked about.

use serde_json::json;

use crate::common::{Fixture, as_root_and_as_user};
use crate::stories::agent::{
    BY_DEFAULT, CAREFUL, answers, calls, command, config, one, one_with, runs, session, text_of,
};
use crate::stories::terminal::USUAL;

as_root_and_as_user! {
    story_4_a_tool_that_the_config_approves_runs_unasked_and_its_neighbour_is_asked_about ["tmux"];
    story_6_approve_all_asks_nothing ["tmux"];
    story_6_the_config_may_set_the_mode ["tmux"];
    story_7_strict_mode_denies_and_says_what_would_allow_it ["tmux"];
    story_9_a_pattern_lets_a_command_run_unasked_and_no_longer_line ["tmux"];
    story_10_a_dangerous_command_is_blocked_wherever_it_hides ["tmux"];
}

const RULES: &str = "\
shell:
  rules:
    - {pattern: echo, approval: none}
    - {pattern: bash -c, approval: none}
    - {pattern: rm, allowed: false, reason: delete through delete_file}
";

fn story_4_a_tool_that_the_config_approves_runs_unasked_and_its_neighbour_is_asked_about(world: &Fixture) {
    let config = config(world, BY_DEFAULT, "tools: {write_file: {pre_approved: true}}\n");
    let lines = [
        calls("write_file", json!({"path": "w:a", "content": "a\n"})),
        calls("delete_file", json!({"path": "w:a"})),
    ];
    let terminal = session(world, &config, &[], &lines);
    let question = terminal.answer("n");
    terminal.see("reason");
    terminal.press("Enter");
    assert!(question.contains("delete_file"), "{question}");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(terminal.questions(), 1);
    assert_eq!(answers(world)[0]["status"], "done");
    assert_eq!(text_of(world, "a").as_deref(), Some("a\n"));
}

fn story_6_approve_all_asks_nothing(world: &Fixture) {
    let (file, args) = (config(world, CAREFUL, ""), json!({"path": "w:a", "content": "a\n"}));
    let flags = ["--mode", "approve_all"];
    let terminal = one_with(world, USUAL, &[], &file, &flags, "write_file", &args);
    let ended = terminal.end();
    assert_eq!(ended.code, 0, "{}", ended.shown);
    assert_eq!(terminal.questions(), 0);
    assert_eq!(text_of(world, "a").as_deref(), Some("a\n"));
}

fn story_6_the_config_may_set_the_mode(world: &Fixture) {
    let file = config(world, CAREFUL, "approval: {mode: approve_all}\n");
    let terminal = session(world, &file, &[], &[runs("echo made > made"), json!("history")]);
    let ended = terminal.end();
    assert_eq!(ended.code, 0, "{}", ended.shown);
    assert_eq!(terminal.questions(), 0);
    assert_eq!(text_of(world, "made").as_deref(), Some("made\n"));
    let told = answers(world);
    assert_eq!(told[1]["history"][0]["by"], "mode approve_all", "{told:?}");
}

fn story_7_strict_mode_denies_and_says_what_would_allow_it(world: &Fixture) {
    let args = json!({"path": "w:a", "content": "a\n"});
    let flags = ["--mode", "strict"];
    let file = config(world, CAREFUL, "");
    let terminal = one_with(world, USUAL, &[], &file, &flags, "write_file", &args);
    let ended = terminal.end();
    assert_eq!(ended.code, 126, "{}", ended.shown);
    let said = ended.shown.replace('\n', "");
    assert!(
        said.contains("permission denied: strict mode denied write_file"),
        "{said}"
    );
    // The line of the root, and the value that would do.
    assert!(said.contains("agent.yaml:5) needs a yes"), "{said}");
    assert!(
        said.contains("`approval: {write: none}` there would allow it"),
        "{said}"
    );
    assert_eq!(terminal.questions(), 0);
    assert_eq!(text_of(world, "a"), None);
    drop(terminal);

    let file = config(world, "approval: {write: none}", "");
    let terminal = one_with(world, USUAL, &[], &file, &flags, "write_file", &args);
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a").as_deref(), Some("a\n"));
}

fn story_9_a_pattern_lets_a_command_run_unasked_and_no_longer_line(world: &Fixture) {
    let file = config(world, CAREFUL, RULES);
    let terminal = session(world, &file, &[], &[runs("echo free"), runs("echo free; touch a")]);
    let question = terminal.refuse("touch nothing");
    assert!(question.contains("echo free; touch a"), "{question}");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(terminal.questions(), 1);
    let told = answers(world);
    assert_eq!(told[0]["text"], "free\n");
    assert_eq!(told[1]["status"], "denied");
    assert_eq!(text_of(world, "a"), None);
}

fn story_10_a_dangerous_command_is_blocked_wherever_it_hides(world: &Fixture) {
    world.write("a", "a\n");
    let file = config(world, "approval: {write: none}", RULES);
    let hidden = [
        "rm a",
        "echo a | xargs rm",
        "bash -c 'rm a'",
        "echo $(rm a)",
        "FORCE=1 rm -f a && echo done",
        "r''m a",
    ];
    let lines: Vec<_> = hidden
        .iter()
        .map(|line| runs(line))
        .chain([runs("echo alive")])
        .collect();
    let terminal = session(world, &file, &["--mode", "approve_all"], &lines);
    assert_eq!(terminal.end().code, 0);
    assert_eq!(terminal.questions(), 0);
    let told = answers(world);
    for (line, answer) in hidden.iter().zip(&told) {
        assert_eq!(answer["status"], "blocked", "{line}: {answer}");
        assert!(
            answer["reason"]
                .as_str()
                .unwrap()
                .contains("delete through delete_file"),
            "{answer}"
        );
    }
    assert_eq!(told[hidden.len()]["text"], "alive\n");
    assert_eq!(text_of(world, "a").as_deref(), Some("a\n"));
    drop(terminal);

    let terminal = command(world, &file, "rm a");
    let ended = terminal.end();
    assert_eq!(ended.code, 126, "{}", ended.shown);
    // The terminal breaks lines where they end.
    let shown = ended.shown.replace('\n', "");
    assert!(shown.contains("delete through delete_file"), "{shown}");
    drop(terminal);

    let terminal = one(world, &file, "delete_file", &json!({"path": "w:a"}));
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a"), None);
}
