//! What is no request, and what no file system should do.

use std::io::Write;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::super::journal::{link_to_free, replace_by_link};
use super::super::location::Location;
use super::super::temporary::Temporary;
use super::*;

/// Gives bytes to a server of their own; how it ended.
fn serve_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(move || super::super::serve(&theirs.into()));
    let mut ours = ours;
    // The server may have ended before all is written.
    let _written = ours.write_all(bytes);
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    server.join().unwrap()
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat()
}

#[test]
fn the_end_of_the_other_side_ends_the_server() {
    serve_bytes(b"").unwrap();
}

#[test]
fn what_is_no_request_is_answered_and_ends_it() {
    let world = Fixture::new();
    let mut socket = UnixStream::from(world.socket.as_ref().unwrap().try_clone().unwrap());
    socket.write_all(&framed(b"\xff\xff\xff")).unwrap();
    assert!(matches!(world.reply(), FileReply::Failed(failed) if matches!(failed.why, Why::Malformed(_))));
}

#[test]
fn paths_that_no_look_gave_are_refused() {
    let world = Fixture::new();
    world.file("d/f", "x");
    for bad in ["relative", "", "/a/../b", "/a/./b", "//a", "/a/", "/a\0b"] {
        let bad = OsStr::new(bad);
        let to = rename(&world.os("d/f"), bad);
        for change in [
            write(bad, "x"),
            delete(bad, Tree::Recursive),
            to,
            Change::MakeDirectory { path: bad.to_owned() },
        ] {
            let bound = Bound {
                before: world
                    .prepare(&change)
                    .map(|prepared| prepared.before)
                    .unwrap_or_default(),
                after: Some(super::super::state::digest(b"x")),
                contents: None,
                change,
            };
            assert!(world.apply(vec![bound.clone()]).is_err(), "{bound:?}");
        }
    }
    assert_eq!(world.snapshot().len(), 2);
}

#[test]
fn a_file_system_that_cannot_exchange_names_gets_the_same_done() {
    let world = Fixture::new();
    let path = world.file("f", "old");
    let State::File(_) = world.look(&path, Last::Target, Hash::Skip).unwrap().state else {
        panic!("no file");
    };
    let expected = world.look(&path, Last::Target, Hash::Skip).unwrap().state;
    let location = Location::of(&path).unwrap();
    let there = std::os::fd::AsFd::as_fd(&location.directory);
    let mut temporary = Temporary::write(there, b"new", None).unwrap();
    temporary.give_name().unwrap();
    replace_by_link(there, &location.name, &mut temporary, &expected).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read(world.path(&temporary.name)).unwrap(), b"old");
    let mut second = Temporary::write(there, b"newer", None).unwrap();
    second.give_name().unwrap();
    let why = replace_by_link(there, &location.name, &mut second, &expected);
    assert_eq!(why, Err(Why::Changed));
    drop((temporary, second));
    assert_eq!(world.snapshot(), [(path, Some(b"new".to_vec()))]);
}

#[test]
fn new_content_has_no_name_until_it_takes_its_place_so_that_a_kill_leaves_nothing() {
    let world = Fixture::new();
    let path = world.file("f", "old");
    let location = Location::of(&path).unwrap();
    let there = std::os::fd::AsFd::as_fd(&location.directory);
    let mut temporary = Temporary::write(there, b"new", Some(0o640)).unwrap();
    let alone = [(path, Some(b"old".to_vec()))];
    assert_eq!(world.snapshot(), alone);
    temporary.give_name().unwrap();
    assert_eq!(fs::read(world.path(&temporary.name)).unwrap(), b"new");
    temporary.discard();
    assert_eq!(world.snapshot(), alone);
}

#[test]
fn a_file_system_that_cannot_rename_carefully_still_replaces_nothing() {
    let world = Fixture::new();
    world.file("a", "a");
    world.file("b", "b");
    let location = Location::of(&world.os("a")).unwrap();
    let there = std::os::fd::AsFd::as_fd(&location.directory);
    let link = |to: &str| link_to_free(there, OsStr::new("a"), there, OsStr::new(to));
    assert_eq!(link("b"), Err(nix::errno::Errno::EEXIST));
    assert_eq!(link("c"), Ok(()));
    let expected = [
        (world.os("b"), Some(b"b".to_vec())),
        (world.os("c"), Some(b"a".to_vec())),
    ];
    assert_eq!(world.snapshot(), expected);
}

#[test]
fn a_deep_tree_is_counted_and_removed() {
    let world = Fixture::new();
    let deep = "d/".repeat(900);
    fs::create_dir_all(world.path(&deep)).unwrap();
    fs::write(world.path(&deep).join("f"), "x").unwrap();
    let change = delete(&world.os("d"), Tree::Recursive);
    assert_eq!(world.prepare(&change).unwrap().contents.unwrap().files, 1);
    world.change(change).unwrap();
    assert_eq!(world.snapshot(), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_never_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ended = serve_bytes(&bytes);
        let _ended = serve_bytes(&framed(&bytes));
    }

    #[test]
    fn whatever_a_patch_says_it_never_makes_it_panic(
        content in "[ab\r\n]{0,12}",
        hunks in "(@@ -[0-9]{1,20}(,[0-9]{1,20})? [+][0-9]{1,2}(,[0-9])? @@\n([ +-][ab]?\r?\n|\\\\ No newline at end of file\n){0,4}){0,3}",
    ) {
        let _applied = super::super::patch::apply(content.as_bytes(), &hunks, 1000);
    }

    #[test]
    fn a_request_with_bytes_changed_never_makes_it_panic(at in 0usize..200, to in any::<u8>()) {
        // Below a directory that does not exist, so that nothing is changed wherever the request leads.
        let path = OsString::from("/nonexistent-directory/f");
        let operation = FileOperation::Prepare(vec![write(&path, "x"), edit(&path, &[("a", "b")]), patch(&path, "@@ -1 +1 @@\n-a\n+b\n")]);
        let mut frame = wire::encode(&FileRequest { deadline_ms: 1, operation }).unwrap();
        let length = frame.len();
        frame[4 + at % (length - 4)] = to;
        let _ended = serve_bytes(&frame);
    }
}
