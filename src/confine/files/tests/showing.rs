//! Changes as a person is shown them.

use super::super::protocol::{MAX_TEXT, Shown, View};
use super::*;

fn show(world: &Fixture, changes: &[Change]) -> Vec<Shown> {
    match world.request(FileOperation::Show(changes.to_vec())) {
        FileReply::Shown(shown) => shown,
        other => panic!("{other:?}"),
    }
}

fn view(world: &Fixture, change: Change) -> View {
    show(world, &[change]).remove(0).view
}

#[test]
fn an_edit_is_shown_as_the_lines_that_change_and_three_around_them() {
    let world = Fixture::new();
    let path = world.file("f", "1\n2\n3\n4\nold\n6\n7\n8\n9");
    let View::Diff(diff) = view(&world, edit(&path, &[("old", "new")])) else {
        panic!("no difference");
    };
    assert_eq!(diff, "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-old\n+new\n 6\n 7\n 8\n");
}

#[test]
fn what_is_shown_is_what_was_prepared() {
    let world = Fixture::new();
    let changes = [
        write(&world.file("a", "old\n"), "new\n"),
        delete(&world.file("b", "b"), Tree::Empty),
        rename(&world.file("c", "c"), &world.os("g")),
    ];
    let shown: Vec<Prepared> = show(&world, &changes).into_iter().map(|shown| shown.prepared).collect();
    let prepared: Vec<Prepared> = changes.iter().map(|change| world.prepare(change).unwrap()).collect();
    assert_eq!(shown, prepared);
}

#[test]
fn a_new_file_is_shown_whole() {
    let world = Fixture::new();
    assert_eq!(
        view(&world, write(&world.os("new"), "a\nb")),
        View::Content("a\nb".to_owned())
    );
}

#[test]
fn new_content_in_the_place_of_what_is_no_text_is_shown_whole() {
    let world = Fixture::new();
    let path = world.file("f", b"\0\x01");
    assert_eq!(view(&world, write(&path, "text\n")), View::Content("text\n".to_owned()));
}

#[test]
fn content_that_is_no_text_is_named() {
    let world = Fixture::new();
    let named = |content: &[u8]| match view(&world, write(&world.os("new"), content)) {
        View::Binary { what, size } => {
            assert_eq!(size, content.len() as u64);
            what
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(named(b"\x7fELF\x02\0"), "ELF program");
    assert_eq!(named(b"text\0"), "binary");
    assert_eq!(named(b"caf\xe9"), "text that is not UTF-8");
}

#[test]
fn a_removal_and_a_move_are_shown_by_their_names() {
    let world = Fixture::new();
    let path = world.file("a\nb", "x");
    assert_eq!(
        view(&world, delete(&path, Tree::Empty)),
        View::Names(vec![path.clone()])
    );
    let to = world.os("c");
    assert_eq!(view(&world, rename(&path, &to)), View::Names(vec![path, to]));
}

#[test]
fn much_text_is_cut_at_the_end_of_a_line_that_says_so() {
    let world = Fixture::new();
    let content = "0123456789\n".repeat(500_000);
    let View::Content(text) = view(&world, write(&world.os("new"), &content)) else {
        panic!("no content");
    };
    assert!(text.len() as u64 <= MAX_TEXT);
    let (shown, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(content.starts_with(&format!("{shown}\n")));
    let rest = content.len() - shown.len() - 1;
    assert_eq!(last, format!("({rest} more bytes are not shown)"));
}

#[test]
fn many_changes_that_are_long_fit_one_reply() {
    let world = Fixture::new();
    let changes: Vec<Change> = (0..7)
        .map(|number| write(&world.os(format!("f{number}")), "0123456789\n".repeat(200_000)))
        .collect();
    assert_eq!(show(&world, &changes).len(), 7);
}
