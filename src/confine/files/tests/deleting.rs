//! A directory is removed as it was shown, or not at all.

use std::os::unix::fs::PermissionsExt;

use super::super::protocol::MAX_CONTENTS;
use super::*;

#[test]
fn a_directory_in_which_something_changed_is_not_deleted_and_stays_where_it_is() {
    type Change<'a> = (&'a str, &'a dyn Fn(&Fixture));
    let changes: [Change<'_>; 6] = [
        ("new name", &|world| drop(world.file("d/e/new", ""))),
        ("content of the same size", &|world| {
            fs::write(world.path("d/e/f"), "y").unwrap();
        }),
        ("another file", &|world| {
            world.file("other", "x");
            fs::rename(world.path("other"), world.path("d/e/f")).unwrap();
        }),
        ("mode", &|world| {
            fs::set_permissions(world.path("d/e/f"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("gone", &|world| fs::remove_file(world.path("d/e/f")).unwrap()),
        ("empty directory", &|world| fs::create_dir(world.path("d/e/g")).unwrap()),
    ];
    for (what, change) in changes {
        let world = Fixture::new();
        world.file("d/e/f", "x");
        let bound = world.bound(delete(&world.os("d"), Tree::Recursive));
        change(&world);
        let before = world.snapshot();
        assert_eq!(world.apply(vec![bound]), Err(Why::Changed), "{what}");
        assert_eq!(world.snapshot(), before, "{what}");
    }
    // The twin: it was only read.
    let world = Fixture::new();
    world.file("d/e/f", "x");
    let bound = world.bound(delete(&world.os("d"), Tree::Recursive));
    fs::read(world.path("d/e/f")).unwrap();
    world.apply(vec![bound]).unwrap();
    assert!(!world.path("d").exists());
}

#[test]
fn a_directory_with_more_in_it_than_is_looked_through_is_not_compared() {
    let world = Fixture::new();
    fs::create_dir(world.path("d")).unwrap();
    for number in 0..=MAX_CONTENTS {
        fs::File::create(world.path(format!("d/{number}"))).unwrap();
    }
    let bound = world.bound(delete(&world.os("d"), Tree::Recursive));
    assert_eq!(bound.contents, None);
    world.apply(vec![bound]).unwrap();
    assert!(!world.path("d").exists());
}
