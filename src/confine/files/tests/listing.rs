//! What lies below directories.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::time::ClockId;
use nix::unistd::{Uid, mkfifo, setfsuid};

use super::super::protocol::{Done, End, Entry, Include, Kind, List, MAX_PART, Select, Special};
use super::*;

fn all() -> Select {
    Select {
        glob: None,
        hidden: Include::No,
        ignored: Include::No,
    }
}

fn ask(world: &Fixture, depth: u32, select: Select, limit: u64) -> List {
    List {
        path: world.os(""),
        depth,
        select,
        limit,
    }
}

/// Milliseconds: longer than anything here takes.
const TIME: u64 = 3_600_000;

fn list_within(world: &Fixture, request: List, deadline_ms: u64) -> Result<(Vec<Entry>, Done), Why> {
    world.send(FileOperation::List(request), deadline_ms);
    let mut found = Vec::new();
    loop {
        match world.reply() {
            FileReply::Entries(part) => {
                assert!(!part.is_empty() && part.len() <= MAX_PART);
                found.extend(part);
            }
            FileReply::Done(done) => return Ok((found, done)),
            FileReply::Failed(failed) => return Err(failed.why),
            other => panic!("{other:?}"),
        }
    }
}

fn names(world: &Fixture, depth: u32, select: Select) -> Vec<String> {
    let mut request = ask(world, depth, select, 1000);
    request.path = world.path("").components().collect::<PathBuf>().into_os_string();
    let root = PathBuf::from(&request.path);
    let (found, done) = list_within(world, request, TIME).unwrap();
    assert_eq!((done.total, done.end), (found.len() as u64, End::Complete));
    let below = |entry: Entry| {
        Path::new(&entry.path)
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    found.into_iter().map(below).collect()
}

fn top(world: &Fixture) -> OsString {
    fs::canonicalize(world.path("")).unwrap().into_os_string()
}

#[test]
fn entries_come_in_the_order_of_their_names_each_directory_before_what_is_in_it() {
    let world = Fixture::new();
    for name in ["b/z", "b/a/x", "a", "c"] {
        world.file(name, "");
    }
    assert_eq!(names(&world, 9, all()), ["a", "b", "b/a", "b/a/x", "b/z", "c"]);
    assert_eq!(names(&world, 1, all()), ["a", "b", "c"]);
    assert_eq!(names(&world, 2, all()), ["a", "b", "b/a", "b/z", "c"]);
}

#[test]
fn entries_say_what_they_are_and_how_large() {
    let world = Fixture::new();
    world.file("d/f", "12345");
    mkfifo(&world.path("p"), Mode::S_IRWXU).unwrap();
    symlink("d", world.path("s")).unwrap();
    let mut asked = ask(&world, 9, all(), 100);
    asked.path = top(&world);
    let found = list_within(&world, asked, TIME).unwrap().0;
    let kinds: Vec<(Kind, u64)> = found.iter().map(|entry| (entry.kind, entry.size)).collect();
    // What a symlink leads to is not below the directory.
    let expected = [
        (Kind::Directory, 0),
        (Kind::File, 5),
        (Kind::Other, 0),
        (Kind::Symlink, 0),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn hostile_names_are_listed_as_they_are() {
    let world = Fixture::new();
    let mut expected: Vec<OsString> = hostile_names().iter().map(|name| world.file(name, "")).collect();
    expected.sort();
    let mut asked = ask(&world, 1, all(), 100);
    asked.path = top(&world);
    let found = list_within(&world, asked, TIME).unwrap().0;
    assert_eq!(found.into_iter().map(|entry| entry.path).collect::<Vec<_>>(), expected);
}

#[test]
fn hidden_names_count_where_they_are_asked_for() {
    let world = Fixture::new();
    world.file(".hidden/f", "");
    world.file("f", "");
    assert_eq!(names(&world, 9, all()), ["f"]);
    let hidden = Select {
        hidden: Include::Yes,
        ..all()
    };
    assert_eq!(names(&world, 9, hidden), [".hidden", ".hidden/f", "f"]);
}

#[test]
fn a_glob_is_held_against_the_name_or_with_a_slash_against_the_path() {
    let world = Fixture::new();
    for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.md"] {
        world.file(name, "");
    }
    let with = |glob: &str| Select {
        glob: Some(glob.to_owned()),
        ..all()
    };
    assert_eq!(names(&world, 9, with("*.rs")), ["a.rs", "src/b.rs", "src/deep/c.rs"]);
    assert_eq!(names(&world, 9, with("src/*.rs")), ["src/b.rs"]);
    assert_eq!(names(&world, 9, with("src/**/*.rs")), ["src/b.rs", "src/deep/c.rs"]);
    assert_eq!(names(&world, 9, with("/*.rs")), ["a.rs"]);
    assert_eq!(names(&world, 9, with("*.{md,txt}")), ["src/d.md"]);
}

#[test]
fn a_glob_that_cannot_be_read_is_malformed() {
    let world = Fixture::new();
    for glob in ["[", "{a", &"{a,".repeat(2000), &"a".repeat(10_000)] {
        let select = Select {
            glob: Some(glob.to_owned()),
            ..all()
        };
        let mut asked = ask(&world, 1, select, 1);
        asked.path = top(&world);
        assert!(matches!(list_within(&world, asked, TIME), Err(Why::Malformed(_))));
    }
}

#[test]
fn what_ignore_files_name_does_not_count_unless_it_is_asked_for() {
    let world = Fixture::new();
    for name in [
        "target/x",
        "a.log",
        "keep.log",
        "src/b.log",
        "src/gen/y",
        "excluded",
        "plain",
    ] {
        world.file(name, "");
    }
    world.file(".gitignore", "/target\n*.log\n!keep.log\n");
    world.file("src/.gitignore", "gen/\n!b.log\n");
    world.file(".ignore", "plain\n");
    world.file(".git/info/exclude", "excluded\n");
    assert_eq!(names(&world, 9, all()), ["keep.log", "src", "src/b.log"]);
    let ignored = Select {
        ignored: Include::Yes,
        ..all()
    };
    assert_eq!(
        names(&world, 1, ignored),
        ["a.log", "excluded", "keep.log", "plain", "src", "target"]
    );
}

#[test]
fn what_is_above_a_repository_says_nothing_about_it() {
    let world = Fixture::new();
    world.file(".gitignore", "*.log\n");
    world.file("inner/.git/HEAD", "");
    world.file("inner/a.log", "");
    world.file("outer/a.log", "");
    assert_eq!(names(&world, 9, all()), ["inner", "inner/a.log", "outer"]);
}

#[test]
fn an_ignore_file_that_is_a_pipe_or_leads_elsewhere_is_not_read() {
    let world = Fixture::new();
    mkfifo(&world.path(".gitignore"), Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", world.path(".ignore")).unwrap();
    world.file("f", "");
    assert_eq!(names(&world, 9, all()), ["f"]);
}

/// The time of processors that this process has taken.
fn processor() -> Duration {
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().unwrap().into()
}

#[test]
fn an_ignore_file_of_any_length_takes_little_time() {
    let world = Fixture::new();
    world.file("d/.gitignore", "**/*a*[b-y]?c*/*d\\*\n".repeat(1_000_000));
    world.file("d/e/.gitignore", format!("{}\n", "*a?".repeat(1_000_000)));
    let before = processor();
    assert_eq!(names(&world, 9, all()), ["d", "d/e"]);
    let took = processor().saturating_sub(before);
    assert!(took.as_secs() < 15, "{took:?}");
}

#[test]
fn a_symlink_in_a_circle_is_listed_once() {
    let world = Fixture::new();
    fs::create_dir(world.path("d")).unwrap();
    symlink("..", world.path("d/up")).unwrap();
    assert_eq!(names(&world, 99, all()), ["d", "d/up"]);
}

#[test]
fn a_directory_that_cannot_be_read_is_counted_and_the_rest_is_listed() {
    // Of this thread alone; without effect where the user is not root, whom modes hold anyway.
    let world = Fixture::confined(|_| {
        setfsuid(Uid::from_raw(65534));
    });
    for name in ["a", "d/f", "z"] {
        world.file(name, "");
    }
    fs::set_permissions(world.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(world.path("d"), PermissionsExt::from_mode(0o000)).unwrap();
    let mut asked = ask(&world, 9, all(), 100);
    asked.path = top(&world);
    let (found, done) = list_within(&world, asked, TIME).unwrap();
    assert_eq!((found.len(), done.unreadable, done.end), (3, 1, End::Complete));
    fs::set_permissions(world.path("d"), PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn a_listing_of_what_is_no_directory_fails() {
    let world = Fixture::new();
    let file = world.file("f", "");
    symlink("/", world.path("link")).unwrap();
    mkfifo(&world.path("pipe"), Mode::S_IRWXU).unwrap();
    let why = |path: OsString| {
        let asked = List {
            path,
            ..ask(&world, 1, all(), 1)
        };
        list_within(&world, asked, TIME).map(drop)
    };
    assert_eq!(why(file), Err(Why::NotDirectory));
    assert_eq!(why(world.os("missing")), Err(Why::Missing));
    assert_eq!(why(world.os("link")), Err(Why::Changed));
    assert_eq!(why(world.os("pipe")), Err(Why::Special(Special::Fifo)));
    assert_eq!(why(top(&world)), Ok(()));
}

#[test]
fn fifty_thousand_entries_are_counted_and_as_many_given_as_asked_for() {
    let world = Fixture::new();
    for number in 0..50_000 {
        fs::File::create(world.path("").join(format!("{number:05}"))).unwrap();
    }
    let mut asked = ask(&world, 1, all(), 1000);
    asked.path = top(&world);
    let (found, done) = list_within(&world, asked.clone(), TIME).unwrap();
    assert_eq!((found.len(), done.total, done.end), (1000, 50_000, End::Limit));
    assert_eq!(found.last().map(|entry| entry.path.clone()), Some(world.os("00999")));
    asked.limit = 100_000;
    let (found, done) = list_within(&world, asked.clone(), TIME).unwrap();
    assert_eq!((found.len(), done.end), (50_000, End::Complete));
    let (found, done) = list_within(&world, asked, 0).unwrap();
    assert_eq!((found.len(), done.end), (0, End::Time));
}
