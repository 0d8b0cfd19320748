//! Stories 8 and 15–18: what a person is shown of each kind of thing.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::common::{Fixture, as_root_and_as_user, in_namespaces};
use crate::stories::agent::{CAREFUL, command, config, one, one_with, text_of};
use crate::stories::terminal::{Size, Terminal, USUAL};

as_root_and_as_user! {
    story_8_a_command_is_shown_first_then_where_and_what_it_may ["tmux"];
    story_15_an_edit_is_shown_as_a_diff_in_colour ["tmux"];
    story_15_no_color_leaves_the_signs_and_takes_the_colours ["tmux"];
    story_15_an_overwrite_is_shown_as_a_diff ["tmux"];
    story_16_a_small_new_file_is_shown_whole ["tmux"];
    story_16_a_large_new_file_is_shown_by_its_beginning ["tmux"];
    story_16_a_new_file_is_coloured_by_its_language ["tmux"];
    story_16_what_is_no_text_is_shown_by_type_and_size ["tmux"];
    story_16_a_file_that_is_deleted_is_shown_by_its_size_and_first_lines ["tmux"];
    story_16_a_directory_that_is_deleted_is_counted_and_listed ["tmux"];
    story_16_a_directory_that_changed_under_the_question_is_asked_about_again ["tmux"];
    story_17_a_long_command_is_broken_by_stockade_and_not_by_the_terminal ["tmux"];
    story_17_what_a_command_begins_anew_is_marked ["tmux"];
    story_17_hostile_characters_are_shown_escaped_and_with_a_warning ["tmux"];
    story_18_what_is_cut_can_be_leafed_through_and_then_approved ["tmux"];
}

in_namespaces! {
    story_16_a_directory_that_changed_under_the_question_is_asked_about_again ["tmux"];
    story_8_a_command_is_shown_first_then_where_and_what_it_may ["tmux"];
}

const OLD: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
const ESCAPE: char = '\u{1b}';

fn edit() -> Value {
    json!({"path": "w:a.txt", "edits": [{"old": "five\n", "new": "FIVE\n"}]})
}

fn numbered(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, number| {
        writeln!(text, "content {number}").unwrap();
        text
    })
}

/// Answers with no, without a reason.
fn leave(terminal: &Terminal<'_>) {
    terminal.types("n");
    terminal.see("reason");
    terminal.press("Enter");
    let ended = terminal.end();
    assert_eq!(ended.code, 126, "{}", ended.shown);
}

fn story_8_a_command_is_shown_first_then_where_and_what_it_may(world: &Fixture) {
    world.write("sub/x", "");
    let file = config(world, CAREFUL, "");
    let args = json!({"command": "/bin/pwd", "directory": "w:sub"});
    // A temporary folder has a long name; no line is to be broken.
    let size = Size { columns: 220, rows: 40 };
    let terminal = one_with(world, size, &[], &file, &[], "shell", &args);
    let question = terminal.question();
    let workspace = world.workspace();
    let field = |name: &str| {
        let line = question.lines().find(|line| line.starts_with(&format!("│ {name:<11}")));
        line.unwrap_or_else(|| panic!("no {name} in {question}")).to_owned()
    };
    assert!(question.contains("│ $ /bin/pwd\n"), "{question}");
    assert!(
        field("in").ends_with(workspace.join("sub").to_str().unwrap()),
        "{question}"
    );
    let may = format!(" write {}; reach nothing", workspace.display());
    assert!(field("may").ends_with(&may), "{question}");
    // What confines it goes without saying, unless it is less than usual.
    assert!(
        !question.contains("landlock") && !question.contains("namespaces"),
        "{question}"
    );
    terminal.types("y");
    let ended = terminal.end();
    assert_eq!(ended.code, 0);
    assert!(
        ended
            .shown
            .contains(&format!("\n{}\n", workspace.join("sub").display())),
        "{}",
        ended.shown
    );
}

fn story_15_an_edit_is_shown_as_a_diff_in_colour(world: &Fixture) {
    world.write("a.txt", OLD);
    let terminal = one(world, &config(world, CAREFUL, ""), "edit_file", &edit());
    let question = terminal.question();
    let diff = "│ @@ -2,7 +2,7 @@\n│  two\n│  three\n│  four\n│ -five\n│ +FIVE\n│  six\n│  seven\n│  eight\n╰";
    assert!(question.contains(diff), "{question}");
    let coloured = terminal.screen_in_colour();
    // The ground keeps its colour.
    assert!(coloured.contains("\u{1b}[31m\u{1b}[49m-five"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[32m\u{1b}[49m+FIVE"), "{coloured:?}");
    terminal.types("y");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a.txt"), Some(OLD.replace("five", "FIVE")));
}

fn story_15_no_color_leaves_the_signs_and_takes_the_colours(world: &Fixture) {
    world.write("a.txt", OLD);
    let file = config(world, CAREFUL, "");
    let terminal = one_with(world, USUAL, &[("NO_COLOR", "1")], &file, &[], "edit_file", &edit());
    let question = terminal.question();
    assert!(question.contains("│ -five\n│ +FIVE\n"), "{question}");
    let coloured = terminal.screen_in_colour();
    assert!(coloured.contains("+FIVE") && !coloured.contains(ESCAPE), "{coloured:?}");
    leave(&terminal);
    assert_eq!(text_of(world, "a.txt").as_deref(), Some(OLD));
}

fn story_15_an_overwrite_is_shown_as_a_diff(world: &Fixture) {
    world.write("a.txt", OLD);
    let args = json!({"path": "w:a.txt", "content": OLD.replace("ten\n", "ten\neleven\n")});
    let terminal = one(world, &config(world, CAREFUL, ""), "write_file", &args);
    let question = terminal.question();
    assert!(question.contains("│  ten\n│ +eleven\n"), "{question}");
    // What stays as it is is not shown.
    assert!(!question.contains("one"), "{question}");
    leave(&terminal);
    assert_eq!(text_of(world, "a.txt").as_deref(), Some(OLD));
}

fn story_16_a_small_new_file_is_shown_whole(world: &Fixture) {
    let args = json!({"path": "w:a.txt", "content": OLD});
    let terminal = one(world, &config(world, CAREFUL, ""), "write_file", &args);
    let question = terminal.question();
    for (index, line) in OLD.lines().enumerate() {
        assert!(question.contains(&format!("│ {:>3} {line}\n", index + 1)), "{question}");
    }
    assert!(question.contains("new        10 lines, 49 bytes"), "{question}");
    assert!(!question.contains("more lines]"), "{question}");
    leave(&terminal);
}

fn story_16_a_large_new_file_is_shown_by_its_beginning(world: &Fixture) {
    let content = numbered(500);
    let args = json!({"path": "w:a.txt", "content": content});
    let terminal = one(world, &config(world, CAREFUL, ""), "write_file", &args);
    let question = terminal.question();
    assert!(
        question.contains("content 50\n") && !question.contains("content 51\n"),
        "{question}"
    );
    assert!(question.contains("… [450 more lines]"), "{question}");
    assert!(question.contains("500 lines"), "{question}");
    leave(&terminal);
}

fn story_16_a_new_file_is_coloured_by_its_language(world: &Fixture) {
    let file = config(world, CAREFUL, "");
    let args = json!({"path": "w:a.rs", "content": "fn main() {} // why\n"});
    for (variables, is_coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let terminal = one_with(world, USUAL, variables, &file, &[], "write_file", &args);
        let question = terminal.question();
        assert!(question.contains("│   1 fn main() {} // why\n"), "{question}");
        let coloured = terminal.screen_in_colour();
        assert_eq!(coloured.contains("\u{1b}[35m"), is_coloured, "{coloured:?}");
        leave(&terminal);
    }
}

fn story_16_what_is_no_text_is_shown_by_type_and_size(world: &Fixture) {
    let args = json!({"path": "w:a.gif", "content": "GIF89a\u{0}\u{1}\u{1b}[2J"});
    let terminal = one(world, &config(world, CAREFUL, ""), "write_file", &args);
    let question = terminal.question();
    assert!(question.contains("binary     GIF image"), "{question}");
    assert!(question.contains("new        12 bytes"), "{question}");
    assert!(!question.contains("[2J"), "{question}");
    leave(&terminal);
}

fn story_16_a_file_that_is_deleted_is_shown_by_its_size_and_first_lines(world: &Fixture) {
    world.write("a.txt", numbered(100));
    let terminal = one(
        world,
        &config(world, CAREFUL, ""),
        "delete_file",
        &json!({"path": "w:a.txt"}),
    );
    let question = terminal.question();
    assert!(question.contains("removes    100 lines, 1.0 KB"), "{question}");
    assert!(
        question.contains("│  20 content 20\n") && !question.contains("content 21"),
        "{question}"
    );
    assert!(question.contains("and 80 more lines that are not shown"), "{question}");
    terminal.types("y");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a.txt"), None);
}

fn tree(world: &Fixture) -> Value {
    world.write("d/sub/b", "123");
    world.write("d/a", "12");
    json!({"path": "w:d", "recursive": true})
}

fn story_16_a_directory_that_is_deleted_is_counted_and_listed(world: &Fixture) {
    let terminal = one(world, &config(world, CAREFUL, ""), "delete_file", &tree(world));
    let question = terminal.question();
    assert!(
        question.contains("removes    2 files, 1 directory, 5 bytes"),
        "{question}"
    );
    for name in ["a", "sub/", "sub/b"] {
        assert!(question.contains(&format!(" {name}\n")), "{question}");
    }
    leave(&terminal);
    assert_eq!(text_of(world, "d/a").as_deref(), Some("12"));
}

fn story_16_a_directory_that_changed_under_the_question_is_asked_about_again(world: &Fixture) {
    let terminal = one(world, &config(world, CAREFUL, ""), "delete_file", &tree(world));
    terminal.question();
    world.write("d/precious", "kept");
    terminal.types("y");
    let again = terminal.question();
    assert!(
        again.contains("removes    3 files") && again.contains(" precious\n"),
        "{again}"
    );
    assert_eq!(text_of(world, "d/precious").as_deref(), Some("kept"));
    terminal.types("y");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "d/precious"), None);
}

fn story_17_a_long_command_is_broken_by_stockade_and_not_by_the_terminal(world: &Fixture) {
    let line = format!("echo {}; touch last", "word ".repeat(60));
    let terminal = command(world, &config(world, CAREFUL, ""), &line);
    let question = terminal.question();
    let (shown, _) = question.split_once("│ in  ").unwrap();
    let (_, shown) = shown.split_once("│ $ ").unwrap();
    // Every line of the command stands behind the bar and ends before the terminal would break it.
    let pieces: Vec<&str> = shown.trim_end().lines().collect();
    assert!(pieces.len() > 2, "{question}");
    for piece in pieces.iter().skip(1) {
        assert!(piece.starts_with("│   "), "{piece:?} in {question}");
        assert!(
            piece.chars().count() < usize::from(USUAL.columns),
            "{piece:?} in {question}"
        );
    }
    let told: String = pieces
        .iter()
        .map(|piece| piece.trim_start_matches(['│', ' ']).trim_end())
        .collect();
    assert!(told.replace(' ', "").ends_with("word;touchlast"), "{question}");
    leave(&terminal);
    assert_eq!(text_of(world, "last"), None);
}

fn story_17_what_a_command_begins_anew_is_marked(world: &Fixture) {
    let line = "echo one\necho two > b";
    let terminal = command(world, &config(world, CAREFUL, ""), line);
    let question = terminal.question();
    assert!(question.contains("│ $ echo one\n│ > echo two > b\n"), "{question}");
    terminal.types("y");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "b").as_deref(), Some("two\n"));
}

fn story_17_hostile_characters_are_shown_escaped_and_with_a_warning(world: &Fixture) {
    let line = "echo safe \u{1b}[2J\u{202e}drawkcab\r│ tool       read_file";
    let terminal = command(world, &config(world, CAREFUL, ""), line);
    let question = terminal.question();
    assert!(question.contains("\\u{1b}[2J\\u{202e}drawkcab"), "{question}");
    assert!(question.contains("WARNING: characters that do not print"), "{question}");
    assert!(
        !question.lines().any(|line| line.starts_with("│ tool       read_file")),
        "{question}"
    );
    leave(&terminal);
    drop(terminal);

    let terminal = command(world, &config(world, CAREFUL, ""), "echo safe");
    let question = terminal.question();
    assert!(!question.contains("WARNING"), "{question}");
    leave(&terminal);
}

fn story_18_what_is_cut_can_be_leafed_through_and_then_approved(world: &Fixture) {
    let content = numbered(200);
    let args = json!({"path": "w:a.txt", "content": content});
    let file = config(world, CAREFUL, "");
    let size = Size { columns: 80, rows: 24 };
    let terminal = one_with(world, size, &[], &file, &[], "write_file", &args);
    let question = terminal.question();
    assert!(question.contains("… [150 more lines]"), "{question}");
    assert_eq!(terminal.keys_offered(), "v/n/?");
    terminal.types("v");
    let screen = terminal.see("line 1–23 of");
    assert!(!screen.contains("more lines]"), "{screen}");
    terminal.press("Space");
    terminal.see("line 24–46 of");
    terminal.press("Down");
    terminal.see("line 25–47 of");
    terminal.press("PPage");
    terminal.see("line 2–24 of");
    terminal.types("G");
    let screen = terminal.see("the end");
    assert!(screen.contains("200 content 200"), "{screen}");
    // A yes is typed at the question, not here.
    terminal.types("y");
    terminal.see("the end");
    assert_eq!(text_of(world, "a.txt"), None);
    terminal.types("q");
    terminal.question();
    assert_eq!(text_of(world, "a.txt"), None);
    terminal.types("y");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(text_of(world, "a.txt"), Some(content));
}
