//! Where paths lead.

use std::fs::File;
use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::protocol::Special;
use super::*;

fn led(world: &Fixture, path: impl AsRef<OsStr>) -> Result<PathBuf, Why> {
    world
        .look(path, Last::Target, Hash::Skip)
        .map(|found| found.path.into())
}

#[test]
fn a_path_through_symlinks_leads_where_the_kernel_says() {
    let world = Fixture::new();
    world.file("real/deep/f", "x");
    symlink("real/deep", world.path("short")).unwrap();
    symlink("../short/./..//deep/f", world.path("real/back")).unwrap();
    symlink(world.path("real"), world.path("absolute")).unwrap();
    for way in [
        "real/deep/f",
        "short/f",
        "short/../back",
        "absolute/deep/../back",
        "./real//deep/./f",
    ] {
        let path = world.path(way);
        assert_eq!(led(&world, &path), Ok(fs::canonicalize(&path).unwrap()), "{way}");
    }
}

#[test]
fn the_root_directory_leads_to_itself() {
    let found = Fixture::new().look("/..", Last::Target, Hash::Skip).unwrap();
    assert_eq!((found.path, found.existing), ("/".into(), "/".into()));
    assert!(matches!(found.state, State::Directory { .. }));
}

#[test]
fn what_does_not_exist_yet_lies_below_what_exists_without_symlinks() {
    let world = Fixture::new();
    fs::create_dir(world.path("real")).unwrap();
    symlink("real", world.path("link")).unwrap();
    let found = world
        .look(world.path("link/new/deep/f"), Last::Target, Hash::Content)
        .unwrap();
    assert_eq!(found.path, world.os("real/new/deep/f"));
    assert_eq!(found.existing, world.os("real"));
    assert_eq!(found.state, State::Absent);
}

#[test]
fn a_symlink_to_nothing_leads_to_where_it_points() {
    let world = Fixture::new();
    symlink("nowhere/f", world.path("link")).unwrap();
    assert_eq!(led(&world, world.path("link")), Ok(world.path("nowhere/f")));
}

#[test]
fn going_up_from_what_is_missing_leads_nowhere() {
    let world = Fixture::new();
    world.file("f", "x");
    assert_eq!(led(&world, world.path("missing/../f")), Err(Why::Missing));
    fs::create_dir(world.path("missing")).unwrap();
    assert_eq!(led(&world, world.path("missing/../f")), Ok(world.path("f")));
}

#[test]
fn a_symlink_at_the_end_is_kept_where_it_is_meant_itself() {
    let world = Fixture::new();
    world.file("f", "x");
    symlink("f", world.path("link")).unwrap();
    let itself = world.look(world.path("link"), Last::Itself, Hash::Content).unwrap();
    assert_eq!(
        (itself.path, itself.state),
        (world.os("link"), State::Symlink("f".into()))
    );
    let target = world.look(world.path("link"), Last::Target, Hash::Content).unwrap();
    assert_eq!(target.path, world.os("f"));
    assert!(is_file(&target.state));
}

#[test]
fn a_circle_of_symlinks_is_a_loop_and_forty_links_are_none() {
    let world = Fixture::new();
    symlink("b", world.path("a")).unwrap();
    symlink("a", world.path("b")).unwrap();
    assert_eq!(led(&world, world.path("a")), Err(Why::Loop));
    world.file("l0", "x");
    for link in 1..=41 {
        symlink(format!("l{}", link - 1), world.path(format!("l{link}"))).unwrap();
    }
    assert_eq!(led(&world, world.path("l40")), Ok(world.path("l0")));
    assert_eq!(led(&world, world.path("l41")), Err(Why::Loop));
}

#[test]
fn a_file_on_the_way_is_no_directory() {
    let world = Fixture::new();
    world.file("f", "x");
    assert_eq!(led(&world, world.path("f/x")), Err(Why::NotDirectory));
    assert_eq!(led(&world, world.path("f/..")), Err(Why::NotDirectory));
    assert_eq!(led(&world, world.path("f").join("")), Err(Why::NotDirectory));
    assert_eq!(led(&world, world.path("f")), Ok(world.path("f")));
}

#[test]
fn a_path_that_is_not_absolute_or_has_a_nul_is_malformed() {
    let world = Fixture::new();
    for path in [&b"f"[..], b"", b"/f\0g"] {
        let why = led(&world, OsStr::from_bytes(path));
        assert!(matches!(why, Err(Why::Malformed(_))), "{path:?}: {why:?}");
    }
}

#[test]
fn hostile_names_are_found_as_they_are() {
    let world = Fixture::new();
    for name in hostile_names() {
        world.file(&name, "x");
        let found = world.look(world.path(&name), Last::Target, Hash::Skip).unwrap();
        assert!(is_file(&found.state), "{name:?}");
        assert_eq!(found.path, world.os(&name));
    }
}

#[test]
fn a_hash_is_of_the_content_and_only_where_it_is_asked_for() {
    let world = Fixture::new();
    let path = world.file("f", "content");
    let digest = |hash| match world.look(&path, Last::Target, hash).unwrap().state {
        State::File(file) => file.digest,
        other => panic!("{other:?}"),
    };
    assert_eq!(digest(Hash::Skip), None);
    assert_eq!(digest(Hash::Content), Some(super::super::state::digest(b"content")));
}

#[test]
fn a_file_too_large_to_load_has_no_hash() {
    let world = Fixture::new();
    let path = world.path("big");
    let file = File::create(&path).unwrap();
    file.set_len(super::super::protocol::MAX_LOADED + 1).unwrap();
    let State::File(state) = world.look(&path, Last::Target, Hash::Content).unwrap().state else {
        panic!("no file");
    };
    assert_eq!(
        (state.size, state.digest),
        (super::super::protocol::MAX_LOADED + 1, None)
    );
}

#[test]
fn a_pipe_and_a_device_are_named_and_not_opened() {
    let world = Fixture::new();
    mkfifo(&world.path("pipe"), Mode::S_IRWXU).unwrap();
    let pipe = world.look(world.path("pipe"), Last::Target, Hash::Content).unwrap();
    assert_eq!(pipe.state, State::Other(Special::Fifo));
    let zero = world.look("/dev/zero", Last::Target, Hash::Content).unwrap();
    assert_eq!(zero.state, State::Other(Special::Device));
}
