//! The example: an agent loop in a program of its own, and how little of it is Stockade's.

use std::path::{Path, PathBuf};

use crate::common::{Fixture, as_root_and_as_user};
use crate::stories::terminal::{Size, Terminal};

as_root_and_as_user! {
    an_agent_loop_in_a_program_of_its_own_is_asked_about_refused_and_goes_on ["tmux"];
    story_13_delegates_of_a_program_are_named_share_one_memory_and_are_told_why_not ["tmux"];
}

const SOURCE: &str = include_str!("../../../examples/agent_loop.rs");
/// Where the agent begins that knows nothing of Stockade.
const BELOW: &str = "// The agent, and its world.";

/// An example, which cargo builds along with all tests.
fn built(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_stockade")).parent().unwrap();
    let example = folder.join("examples").join(name);
    assert!(example.exists(), "run `cargo build --examples` first");
    example
}

/// An example at a terminal, with a temporary folder of the fixture's.
fn played<'w>(world: &'w Fixture, name: &str) -> Terminal<'w> {
    let (example, temporary) = (world.reachable(&built(name)), world.outside());
    let environment = [("TMPDIR", temporary.to_str().unwrap())];
    // Temporary folders have long names.
    let size = Size { columns: 180, rows: 50 };
    Terminal::start(world, size, &environment, &[example.to_str().unwrap()])
}

/// Fails unless all of it was said, in this order.
#[track_caller]
fn assert_told(shown: &str, told: &[&str]) {
    let mut rest = shown;
    for said in told {
        let Some((_, behind)) = rest.split_once(said) else {
            panic!("no {said:?} in its place in\n{shown}");
        };
        rest = behind;
    }
}

fn an_agent_loop_in_a_program_of_its_own_is_asked_about_refused_and_goes_on(world: &Fixture) {
    let terminal = played(world, "agent_loop");
    let question = terminal.answer("y");
    assert!(
        question.contains("│ -echo 'Helo, world'\n│ +echo 'Hello, world'\n"),
        "{question}"
    );
    // The tests and the blocked `rm` come first: nobody is asked about either.
    let question = terminal.refuse("keep it for now");
    assert!(question.contains("delete_file"), "{question}");
    assert!(question.contains("with the one file in it"), "{question}");
    let question = terminal.answer("y");
    assert!(question.contains("move_file"), "{question}");
    let question = terminal.answer("y");
    assert!(
        question.contains("notify") && question.contains("(hidden)"),
        "{question}"
    );

    let ended = terminal.end();
    assert_eq!(ended.code, 0, "{}", ended.shown);
    assert_eq!(terminal.questions(), 4);
    let told = [
        "agent: read_file",
        "Helo",
        "agent: shell",
        "\n  passed\n",
        "blocked: ",
        "delete with delete_file",
        "permission denied: user denied delete_file: keep it for now",
        "told the team: ",
    ];
    assert_told(&ended.shown, &told);
    assert!(!ended.shown.contains("s3cret"), "{}", ended.shown);
}

fn story_13_delegates_of_a_program_are_named_share_one_memory_and_are_told_why_not(world: &Fixture) {
    let terminal = played(world, "delegates");
    let question = terminal.answer("s");
    assert!(question.contains("for        planner › reviewer"), "{question}");
    // A command that only the program asks about is shown as any other.
    assert!(question.contains("$ sh check.sh"), "{question}");
    assert!(question.contains("may        write "), "{question}");
    let question = terminal.refuse("reviewers only read");
    assert!(
        question.contains("write_file") && question.contains("planner › reviewer"),
        "{question}"
    );
    let ended = terminal.end();
    assert_eq!(ended.code, 0, "{}", ended.shown);
    assert_eq!(terminal.questions(), 2);
    let told = [
        "reviewer: looks fine",
        "planner: looks fine",
        "agent: looks fine",
        "reviewer: permission denied: user denied write_file: reviewers only read",
        "reviewer: blocked: a reviewer deletes nothing",
        "reviewer: echo looks fine",
        "planner › reviewer may shell: true",
        "planner may shell: true",
        "the agent may shell: true",
        "planner › reviewer may write_file: false",
    ];
    assert_told(&ended.shown, &told);
}

#[cfg(test)]
mod source {
    use super::{BELOW, SOURCE};

    #[test]
    fn the_example_needs_fewer_than_thirty_lines_for_stockade() {
        let (above, below) = SOURCE.split_once(BELOW).unwrap();
        for name in [
            "stockade::",
            "Session",
            "FunctionTool",
            "Approver",
            "confine::",
            "tools",
        ] {
            assert!(!below.contains(name), "{name} in {below}");
        }
        let (_, uses) = above.split_once("use stockade::").unwrap();
        let counts = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines: Vec<&str> = uses.lines().filter(counts).collect();
        assert!(lines.len() < 30, "{}: {lines:#?}", lines.len());
    }
}
