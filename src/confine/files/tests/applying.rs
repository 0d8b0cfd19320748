//! Changes that are made, all or none.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::protocol::Special;
use super::*;

fn mode(path: &OsStr) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_new_file_has_its_content_and_the_usual_mode() {
    let world = Fixture::new();
    let path = world.os("new");
    world.change(write(&path, "hello\n")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello\n");
    let usual = world.file("usual", "");
    assert_eq!(mode(&path), mode(&usual));
}

#[test]
fn a_new_file_gets_the_directories_on_the_way() {
    let world = Fixture::new();
    let path = world.os("a/b/c/new");
    world.change(write(&path, "x")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"x");
}

#[test]
fn hostile_names_are_written_moved_and_deleted_as_they_are() {
    let world = Fixture::new();
    fs::create_dir(world.path("to")).unwrap();
    for name in hostile_names() {
        let (path, to) = (world.os(&name), world.path("to").join(&name).into_os_string());
        world.change(write(&path, "x")).unwrap();
        world.change(rename(&path, &to)).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"x", "{name:?}");
        world.change(delete(&to, Tree::Empty)).unwrap();
        assert!(!Path::new(&to).exists());
    }
    assert_eq!(world.snapshot().len(), 1);
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let world = Fixture::new();
    for kept in [0o600, 0o755, 0o444, 0o666, 0o604] {
        let path = world.file(format!("f{kept:o}"), "old");
        fs::set_permissions(&path, PermissionsExt::from_mode(kept)).unwrap();
        world.change(write(&path, "new")).unwrap();
        assert_eq!(
            (mode(&path), fs::read(&path).unwrap()),
            (kept, b"new".to_vec()),
            "{kept:o}"
        );
    }
}

#[test]
fn new_content_does_not_run_as_the_owner_of_the_old() {
    let world = Fixture::new();
    let path = world.file("f", "old");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o6755)).unwrap();
    world.change(write(&path, "new")).unwrap();
    assert_eq!(mode(&path), 0o755);
}

#[test]
fn the_other_name_of_a_file_keeps_the_old_content() {
    let world = Fixture::new();
    let path = world.file("f", "old");
    fs::hard_link(&path, world.path("other")).unwrap();
    let prepared = world.prepare(&write(&path, "new")).unwrap();
    assert!(matches!(&prepared.before[..], [State::File(file)] if file.links == 2));
    world.change(write(&path, "new")).unwrap();
    assert_eq!(fs::read(world.path("other")).unwrap(), b"old");
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn preparing_changes_nothing() {
    let world = Fixture::new();
    let path = world.file("d/f", "old");
    let before = world.snapshot();
    for change in [
        write(&path, "new"),
        write(&world.os("x/y"), "new"),
        edit(&path, &[("old", "new")]),
        patch(&path, "@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n"),
        delete(&path, Tree::Empty),
        delete(&world.os("d"), Tree::Recursive),
        rename(&path, &world.os("x/y")),
        Change::MakeDirectory { path: world.os("x/y") },
    ] {
        world.prepare(&change).unwrap();
        assert_eq!(world.snapshot(), before, "{change:?}");
    }
}

#[test]
fn a_change_is_refused_when_the_file_is_no_longer_what_was_prepared() {
    let world = Fixture::new();
    let path = world.file("f", "old");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let touch = |time| {
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    touch(long_ago);
    let tampers: [(&str, &dyn Fn()); 5] = [
        ("content of the same length at the same time", &|| {
            fs::write(&path, "odd").unwrap();
            touch(long_ago);
        }),
        ("time", &|| touch(long_ago + Duration::from_nanos(1))),
        ("mode", &|| {
            fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        }),
        ("identity", &|| {
            fs::copy(&path, world.path("g")).unwrap();
            fs::rename(world.path("g"), &path).unwrap();
            touch(long_ago);
        }),
        ("absence", &|| fs::remove_file(&path).unwrap()),
    ];
    for (what, tamper) in tampers {
        let bound = world.bound(write(&path, "new"));
        tamper();
        let before = world.snapshot();
        assert_eq!(world.apply(vec![bound]), Err(Why::Changed), "{what}");
        assert_eq!(world.snapshot(), before, "{what}");
    }
}

#[test]
fn a_change_to_other_content_than_was_prepared_is_refused() {
    let world = Fixture::new();
    let path = world.file("f", "old");
    let mut bound = world.bound(write(&path, "new"));
    bound.change = write(&path, "odd");
    assert_eq!(world.apply(vec![bound]), Err(Why::Changed));
    let mut bound = world.bound(write(&path, "new"));
    bound.after = None;
    assert_eq!(world.apply(vec![bound]), Err(Why::Changed));
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn a_name_is_made_only_where_nothing_was() {
    let world = Fixture::new();
    let path = world.os("f");
    let bound = world.bound(write(&path, "new"));
    fs::write(&path, "theirs").unwrap();
    assert_eq!(world.apply(vec![bound]), Err(Why::Changed));
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    let from = world.file("from", "x");
    assert_eq!(world.prepare(&rename(&from, &path)), Err(Why::Exists));
}

#[test]
fn a_symlink_put_in_the_way_after_the_look_is_not_followed() {
    let world = Fixture::new();
    let path = world.file("d/f", "old");
    world.file("secret/f", "secret");
    let changes = [
        write(&path, "new"),
        delete(&path, Tree::Empty),
        rename(&path, &world.os("g")),
    ];
    let bounds: Vec<Bound> = changes.into_iter().map(|change| world.bound(change)).collect();
    fs::rename(world.path("d"), world.path("e")).unwrap();
    symlink("secret", world.path("d")).unwrap();
    for bound in bounds {
        assert_eq!(world.apply(vec![bound]), Err(Why::Changed));
    }
    fs::remove_file(world.path("d")).unwrap();
    fs::create_dir(world.path("d")).unwrap();
    symlink("../secret/f", &path).unwrap();
    assert_eq!(world.prepare(&write(&path, "new")), Err(Why::Changed));
    assert_eq!(fs::read(world.path("secret/f")).unwrap(), b"secret");
}

#[test]
fn a_symlink_that_points_elsewhere_by_now_is_not_deleted() {
    let world = Fixture::new();
    symlink("a", world.path("link")).unwrap();
    let bound = world.bound(delete(&world.os("link"), Tree::Empty));
    fs::remove_file(world.path("link")).unwrap();
    symlink("b", world.path("link")).unwrap();
    assert_eq!(world.apply(vec![bound]), Err(Why::Changed));
    assert_eq!(fs::read_link(world.path("link")).unwrap(), Path::new("b"));
}

#[test]
fn what_is_no_file_is_not_written() {
    let world = Fixture::new();
    fs::create_dir(world.path("d")).unwrap();
    mkfifo(&world.path("pipe"), Mode::S_IRWXU).unwrap();
    assert_eq!(world.prepare(&write(&world.os("d"), "x")), Err(Why::IsDirectory));
    assert_eq!(
        world.prepare(&write(&world.os("pipe"), "x")),
        Err(Why::Special(Special::Fifo))
    );
    assert_eq!(
        world.prepare(&write(OsStr::new("/dev/zero"), "x")),
        Err(Why::Special(Special::Device))
    );
    assert_eq!(
        world.prepare(&edit(&world.os("pipe"), &[("a", "b")])),
        Err(Why::Special(Special::Fifo))
    );
    assert_eq!(
        world.prepare(&delete(&world.os("pipe"), Tree::Empty)),
        Err(Why::Special(Special::Fifo))
    );
    assert_eq!(world.prepare(&write(OsStr::new("/"), "x")), Err(Why::IsDirectory));
}

#[test]
fn more_bytes_than_permitted_are_too_many() {
    let world = Fixture::new();
    let path = world.file("f", "aa");
    let change = |most| Change::Edit {
        path: path.clone(),
        edits: vec![Edit {
            old: "a".to_owned(),
            new: "bbb".to_owned(),
            occurrences: Occurrences::Every,
        }],
        max_bytes: Some(most),
    };
    assert_eq!(world.prepare(&change(5)), Err(Why::TooLarge { size: 6, limit: 5 }));
    assert_eq!(world.prepare(&change(6)).unwrap().size, 6);
}

#[test]
fn an_empty_directory_is_deleted_and_a_full_one_only_with_all_in_it() {
    let world = Fixture::new();
    fs::create_dir(world.path("empty")).unwrap();
    world.change(delete(&world.os("empty"), Tree::Empty)).unwrap();
    world.file("full/deep/f", "x");
    world.file("full/g", "x");
    world.file("outside", "x");
    symlink(world.path("outside"), world.path("full/link")).unwrap();
    assert_eq!(
        world.prepare(&delete(&world.os("full"), Tree::Empty)),
        Err(Why::NotEmpty)
    );
    assert_eq!(
        world
            .prepare(&delete(&world.os("full"), Tree::Recursive))
            .unwrap()
            .contents
            .map(|contents| (contents.directories, contents.files, contents.bytes)),
        Some((1, 3, 2))
    );
    world.change(delete(&world.os("full"), Tree::Recursive)).unwrap();
    assert_eq!(world.snapshot(), [(world.os("outside"), Some(b"x".to_vec()))]);
}

#[test]
fn a_symlink_is_deleted_and_moved_itself() {
    let world = Fixture::new();
    world.file("f", "x");
    symlink("f", world.path("a")).unwrap();
    world.change(rename(&world.os("a"), &world.os("b"))).unwrap();
    assert_eq!(fs::read_link(world.path("b")).unwrap(), Path::new("f"));
    world.change(delete(&world.os("b"), Tree::Empty)).unwrap();
    assert_eq!(world.snapshot(), [(world.os("f"), Some(b"x".to_vec()))]);
}

#[test]
fn a_directory_is_moved_with_everything_in_it_but_not_into_itself() {
    let world = Fixture::new();
    world.file("d/e/f", "x");
    let into = rename(&world.os("d"), &world.os("d/e/d"));
    let why = world.prepare(&into);
    assert!(matches!(why, Err(Why::Malformed(_))), "{why:?}");
    let away = rename(&world.os("d"), &world.os("new/way/d"));
    assert_eq!(world.prepare(&away).unwrap().files, 1);
    world.change(away).unwrap();
    assert_eq!(fs::read(world.path("new/way/d/e/f")).unwrap(), b"x");
    assert!(!world.path("d").exists());
}

#[test]
fn a_directory_is_made_with_those_on_the_way_and_one_that_is_there_will_do() {
    let world = Fixture::new();
    let change = Change::MakeDirectory {
        path: world.os("a/b/c"),
    };
    world.change(change.clone()).unwrap();
    assert!(world.path("a/b/c").is_dir());
    world.change(change).unwrap();
    world.file("f", "x");
    let on_file = Change::MakeDirectory { path: world.os("f") };
    assert_eq!(world.prepare(&on_file), Err(Why::Exists));
}

#[test]
fn when_one_change_does_not_fit_any_more_none_is_made() {
    let world = Fixture::new();
    let mut bounds = every_kind(&world, "");
    let last = world.file("last", "l");
    bounds.push(world.bound(edit(&last, &[("l", "m")])));
    fs::write(&last, "k").unwrap();
    let before = world.snapshot();
    assert_eq!(world.apply(bounds), Err(Why::Changed));
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_change_in_what_another_moves_or_removes_is_refused() {
    let world = Fixture::new();
    let inside = world.file("d/f", "x");
    let other = world.file("g", "x");
    let before = world.snapshot();
    for taken in [
        delete(&world.os("d"), Tree::Recursive),
        rename(&world.os("d"), &world.os("e")),
    ] {
        for change in [
            write(&inside, "y"),
            delete(&inside, Tree::Empty),
            rename(&other, &world.os("d/g")),
        ] {
            let (first, second) = (world.bound(taken.clone()), world.bound(change.clone()));
            for changes in [[first.clone(), second.clone()], [second, first]] {
                let why = world.apply(changes.to_vec());
                assert!(matches!(why, Err(Why::Malformed(_))), "{why:?}");
                let asked = changes.map(|bound| bound.change).to_vec();
                assert!(matches!(
                    world.request(FileOperation::Prepare(asked)),
                    FileReply::Failed(_)
                ));
            }
        }
    }
    assert_eq!(world.snapshot(), before);
}

#[test]
fn two_changes_of_one_path_are_refused() {
    let world = Fixture::new();
    let path = world.file("f", "x");
    let change = |content| world.bound(write(&path, content));
    let why = world.apply(vec![change("y"), change("z")]);
    assert!(matches!(why, Err(Why::Malformed(_))), "{why:?}");
    assert_eq!(fs::read(&path).unwrap(), b"x");
    assert_eq!(world.apply(vec![change("y")]), Ok(()));
}

#[test]
fn the_same_changes_without_the_one_that_fails_are_all_made() {
    let world = Fixture::new();
    let mut bounds = every_kind(&world, "");
    bounds.push(world.bound(write(&world.os("last"), "l")));
    bounds.push(world.bound(Change::MakeDirectory { path: world.os("way") }));
    assert_eq!(world.apply(bounds), Ok(()));
    let files: Vec<OsString> = world.snapshot().into_iter().map(|(path, _)| path).collect();
    let expected = [
        "last",
        "other",
        "other/way",
        "other/way/moved",
        "replaced",
        "way",
        "way/new",
    ];
    assert_eq!(files, expected.map(|name| world.os(name)));
    assert_eq!(fs::read(world.path("replaced")).unwrap(), b"new");
}
