//! The example: an agent loop in a program of its own, and how little of it is Stockade's.

use std::path::{Path, PathBuf};

use crate::common::{Fixture, as_root_and_as_user};
use crate::terminal::{Size, Terminal};

as_root_and_as_user! {
    an_agent_loop_in_a_program_of_its_own_is_asked_about_refused_and_goes_on ["tmux"];
}

const SOURCE: &str = include_str!("../../examples/agent_loop.rs");
/// Where the agent begins that knows nothing of Stockade.
const BELOW: &str = "// The agent, and its world.";

/// The example, which cargo builds along with all tests.
fn built() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_stockade")).parent().unwrap();
    let example = folder.join("examples/agent_loop");
    assert!(example.exists(), "run `cargo build --example agent_loop` first");
    example
}

fn an_agent_loop_in_a_program_of_its_own_is_asked_about_refused_and_goes_on(world: &Fixture) {
    let example = world.reachable(&built());
    let temporary = world.outside();
    let environment = [("TMPDIR", temporary.to_str().unwrap())];
    // Temporary folders have long names.
    let size = Size { columns: 180, rows: 50 };
    let terminal = Terminal::start(world, size, &environment, &[example.to_str().unwrap()]);

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
    let mut rest = ended.shown.as_str();
    for said in [
        "agent: read_file",
        "Helo",
        "agent: shell",
        "\n  passed\n",
        "blocked: ",
        "delete with delete_file",
        "permission denied: user denied delete_file: keep it for now",
        "told the team: ",
    ] {
        let Some((_, behind)) = rest.split_once(said) else {
            panic!("no {said:?} in its place in\n{}", ended.shown);
        };
        rest = behind;
    }
    assert!(!ended.shown.contains("s3cret"), "{}", ended.shown);
}

#[cfg(test)]
mod source {
    use super::{BELOW, SOURCE};

    #[test]
    fn the_example_needs_fewer_than_thirty_lines_for_stockade() {
        let (above, below) = SOURCE.split_once(BELOW).unwrap();
        for name in ["stockade::", "Session", "FunctionTool", "Approver", "stage::", "tools"] {
            assert!(!below.contains(name), "{name} in {below}");
        }
        let (_, uses) = above.split_once("use stockade::").unwrap();
        let counts = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines: Vec<&str> = uses.lines().filter(counts).collect();
        assert!(lines.len() < 30, "{}: {lines:#?}", lines.len());
    }
}
