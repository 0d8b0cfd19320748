//! What the programs do: one runs its command, and none of the others starts processes without end.

use std::path::Path;
use std::process::{Command, Output};

use super::programs;
use crate::libtest::Trial;

pub(crate) const TRIALS: [Trial; 4] = [
    ("embedding::a_program_that_calls_init_first_runs_its_command", |_| {
        careful();
    }),
    (
        "embedding::a_program_that_forgot_init_is_started_once_and_told_the_line",
        |_| forgetful(),
    ),
    (
        "embedding::a_program_that_calls_init_beside_a_thread_is_started_once_and_told_why",
        |_| late(),
    ),
    (
        "embedding::a_program_whose_child_does_not_reach_init_ends_with_an_error",
        |_| fickle(),
    ),
];

/// What comes of the program, and how often it was started without becoming a confined child.
#[expect(clippy::disallowed_methods, reason = "the program is this one under another name")]
fn started(name: &str) -> (Output, usize) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join(name);
    std::fs::hard_link(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new(&program).output().unwrap();
    (output, count(&program))
}

fn count(program: &Path) -> usize {
    std::fs::read(programs::notes(program)).unwrap().len()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn careful() {
    let (output, count) = started("careful");
    assert!(output.status.success(), "{output:?}");
    assert_eq!((text(&output).trim(), count), ("confined", 1));
}

fn forgetful() {
    let (output, count) = started("forgetful");
    assert!(!output.status.success(), "{output:?}");
    assert!(
        text(&output).contains("Make `stockade::init();` the first line of `main`"),
        "{output:?}"
    );
    assert_eq!(count, 1);
}

fn late() {
    let (output, count) = started("late");
    assert!(!output.status.success(), "{output:?}");
    assert!(text(&output).contains("2 threads"), "{output:?}");
    assert_eq!(count, 1);
}

fn fickle() {
    let (output, count) = started("fickle");
    assert!(!output.status.success(), "{output:?}");
    // The program itself, and each child that it tried to start; none of them starts another.
    assert!((2..=4).contains(&count), "{count}");
}
