//! Changes as a person is shown them.

use std::os::unix::fs::symlink;

use super::super::protocol::{MAX_LOADED, MAX_NAMED, MAX_TEXT, Removed, Shown, View};
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
fn a_move_is_shown_by_its_names() {
    let world = Fixture::new();
    let path = world.file("a\nb", "x");
    let to = world.os("c");
    assert_eq!(view(&world, rename(&path, &to)), View::Names(vec![path, to]));
}

fn removed(world: &Fixture, name: &str) -> Removed {
    match view(world, delete(&world.os(name), Tree::Recursive)) {
        View::Removed(removed) => removed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_that_is_removed_is_shown_by_its_first_lines_and_size() {
    let world = Fixture::new();
    let content: String = (1..=100).map(|number: u32| number.to_string() + "\n").collect();
    world.file("long", &content);
    world.file("short", "a\nb");
    let begins: String = (1..=20).map(|number: u32| number.to_string() + "\n").collect();
    let text = |begins: &str, lines, size| Removed::Text {
        begins: begins.to_owned(),
        lines,
        size,
    };
    assert_eq!(removed(&world, "long"), text(&begins, 100, 292));
    assert_eq!(removed(&world, "short"), text("a\nb", 2, 3));
    world.file("wide", "é".repeat(10_000));
    let Removed::Text {
        begins,
        lines: 1,
        size: 20_000,
    } = removed(&world, "wide")
    else {
        panic!("{:?}", removed(&world, "wide"));
    };
    assert_eq!(begins, "é".repeat(2048));
}

#[test]
fn what_is_removed_and_no_text_is_shown_by_type_and_size() {
    let world = Fixture::new();
    fs::write(world.path("a.png"), b"\x89PNG\r\n\x1a\n\0").unwrap();
    let what = "PNG image".to_owned();
    assert_eq!(removed(&world, "a.png"), Removed::Binary { what, size: 9 });
    let large = fs::File::create(world.path("large")).unwrap();
    large.set_len(MAX_LOADED + 1).unwrap();
    assert_eq!(removed(&world, "large"), Removed::Unread { size: MAX_LOADED + 1 });
    symlink("a.png", world.path("link")).unwrap();
    assert_eq!(removed(&world, "link"), Removed::Symlink("a.png".into()));
}

#[test]
fn a_directory_that_is_removed_is_shown_by_what_is_in_it() {
    let world = Fixture::new();
    world.file("d/b/deep", "123");
    world.file("d/a", "12");
    symlink("a", world.path("d/c")).unwrap();
    let change = delete(&world.os("d"), Tree::Recursive);
    let shown = show(&world, std::slice::from_ref(&change)).remove(0);
    let names = ["a", "b/", "c", "b/deep"].map(OsString::from).to_vec();
    assert_eq!(shown.view, View::Removed(Removed::Tree(names)));
    let contents = shown.prepared.contents.unwrap();
    assert_eq!((contents.directories, contents.files, contents.bytes), (1, 3, 5));
    assert!(contents.digest.is_some());
    for number in 0..MAX_NAMED {
        world.file(format!("d/more-{number}"), "");
    }
    let Removed::Tree(names) = removed(&world, "d") else {
        panic!("no tree");
    };
    assert_eq!(names.len(), MAX_NAMED);
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
