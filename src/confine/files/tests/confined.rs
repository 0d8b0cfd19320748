//! What the kernel refuses, whatever the modes of files say.

use std::os::unix::fs::MetadataExt;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError,
};

use super::super::protocol::{Case, End, Include, List, Search, Select};
use super::*;

const KNOWN: ABI = ABI::V3;

/// Confines the server, once there is what is granted, to these rights below these names.
fn confined(grants: impl Fn() -> Vec<(&'static str, BitFlags<AccessFs>)> + Send + 'static) -> Fixture {
    Fixture::confined(move |top| {
        while !top.join("ready").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let rules = grants().into_iter().map(|(name, access)| {
            let below = PathFd::new(top.join(name)).unwrap();
            Ok::<_, RulesetError>(PathBeneath::new(below, access))
        });
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(KNOWN))
            .unwrap()
            .create()
            .unwrap()
            .add_rules(rules)
            .unwrap()
            .restrict_self()
            .unwrap();
    })
}

/// A server that may write below `rw`, read below `ro`, and write but not read below `blind`.
fn world() -> Fixture {
    let world = confined(|| {
        vec![
            ("rw", AccessFs::from_all(KNOWN)),
            ("ro", AccessFs::from_read(KNOWN)),
            ("blind", AccessFs::from_write(KNOWN)),
        ]
    });
    for name in ["rw/f", "ro/f", "blind/f", "none/f"] {
        world.file(name, "old\n");
    }
    world
}

/// Lets the server begin.
fn begin(world: &Fixture) {
    world.file("ready", "");
}

#[test]
fn what_may_be_written_is_and_nothing_else() {
    let world = world();
    begin(&world);
    world.change(write(&world.os("rw/f"), "new")).unwrap();
    world.change(write(&world.os("rw/way/g"), "new")).unwrap();
    let before = world.snapshot();
    for directory in ["ro", "none"] {
        let inside = |name: &str| world.path(directory).join(name).into_os_string();
        for change in [
            write(&inside("f"), "new"),
            write(&inside("g"), "new"),
            write(&inside("way/g"), "new"),
            delete(&inside("f"), Tree::Empty),
            rename(&inside("f"), &inside("h")),
            Change::MakeDirectory { path: inside("d") },
        ] {
            assert_eq!(world.change(change.clone()), Err(Why::NotPermitted), "{change:?}");
        }
    }
    assert_eq!(world.snapshot(), before);
}

#[test]
fn what_may_be_written_alone_is_replaced_but_not_edited() {
    let world = world();
    begin(&world);
    let path = world.os("blind/f");
    assert_eq!(world.prepare(&edit(&path, &[("old", "new")])), Err(Why::NotPermitted));
    world.change(write(&path, "new")).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"new");
}

#[test]
fn when_the_third_of_three_is_refused_nothing_is_changed() {
    let world = world();
    begin(&world);
    let changes = [
        write(&world.os("rw/f"), "new"),
        write(&world.os("rw/way/g"), "new"),
        write(&world.os("ro/f"), "new"),
    ];
    let mut bounds: Vec<Bound> = changes.into_iter().map(|change| world.bound(change)).collect();
    let before = world.snapshot();
    assert_eq!(world.apply(bounds.clone()), Err(Why::NotPermitted));
    assert_eq!(world.snapshot(), before);
    bounds.pop();
    assert_eq!(world.apply(bounds), Ok(()));
}

#[test]
fn when_a_renaming_fails_at_last_those_before_it_are_taken_back() {
    let world = world();
    begin(&world);
    let outside = world.file("ro/g", "x");
    // Both are refused only when it comes to it: a move after the other renamings, a removal after the other removals.
    for last in [
        rename(&world.os("rw/f"), &world.os("ro/new")),
        delete(&outside, Tree::Empty),
    ] {
        let mut bounds = every_kind(&world, "rw");
        bounds.push(world.bound(last));
        let before = world.snapshot();
        let inode = fs::metadata(world.path("rw/replaced")).unwrap().ino();
        let why = world.apply(bounds);
        assert!(matches!(why, Err(Why::NotPermitted | Why::OtherFileSystem)), "{why:?}");
        assert_eq!(world.snapshot(), before);
        assert_eq!(fs::metadata(world.path("rw/replaced")).unwrap().ino(), inode);
    }
    assert_eq!(world.apply(every_kind(&world, "rw")), Ok(()));
}

#[test]
fn a_tree_of_which_a_part_may_not_be_removed_stays_whole() {
    // All of the tree may be written but one directory in it.
    let top = confined(|| {
        vec![
            ("", AccessFs::from_read(KNOWN) | AccessFs::RemoveDir | AccessFs::MakeDir),
            ("tree/a", AccessFs::from_all(KNOWN)),
            ("tree/z", AccessFs::from_all(KNOWN)),
        ]
    });
    for name in ["tree/a/f", "tree/m/f", "tree/z/f", "other/d/f"] {
        top.file(name, "x");
    }
    fs::remove_file(top.path("other/d/f")).unwrap();
    begin(&top);
    let before = top.snapshot();
    assert_eq!(
        top.change(delete(&top.os("tree"), Tree::Recursive)),
        Err(Why::NotPermitted)
    );
    assert_eq!(top.snapshot(), before);
    // Where nothing in it is refused it goes.
    top.change(delete(&top.os("other"), Tree::Recursive)).unwrap();
    assert!(!top.path("other").exists());
}

fn select() -> Select {
    Select {
        glob: None,
        hidden: Include::No,
        ignored: Include::No,
    }
}

#[test]
fn a_look_says_what_is_there_and_hashes_only_what_may_be_read() {
    let world = world();
    begin(&world);
    let digest = |name: &str| match world.look(world.path(name), Last::Target, Hash::Content).unwrap().state {
        State::File(file) => file.digest.is_some(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        [digest("ro/f"), digest("blind/f"), digest("none/f")],
        [true, false, false]
    );
}

/// A server that may look into `tree` and read what is below `tree/open`.
fn half_open() -> Fixture {
    let world = confined(|| {
        vec![
            ("", AccessFs::Execute.into()),
            ("tree/list", AccessFs::ReadDir.into()),
            ("tree/list/open", AccessFs::from_read(KNOWN)),
        ]
    });
    for name in ["tree/list/open/f", "tree/list/shut/f", "none/f"] {
        world.file(name, "needle\n");
    }
    begin(&world);
    world
}

#[test]
fn a_file_that_may_not_be_read_is_counted_in_a_search_and_at_its_start_an_error() {
    let world = half_open();
    let search = |path: OsString| {
        let request = Search {
            path,
            pattern: "needle".to_owned(),
            case: Case::Exact,
            select: select(),
            context: 0,
            limit: 10,
        };
        world.request(FileOperation::Search(request))
    };
    assert!(matches!(search(world.os("tree/list")), FileReply::Matches(found) if found.len() == 1));
    let FileReply::Done(done) = world.reply() else {
        panic!("no end")
    };
    assert_eq!(
        (done.total, done.files, done.unreadable, done.end),
        (1, 1, 1, End::Complete)
    );
    for shut in ["none", "none/f", "tree/list/shut/f"] {
        let reply = search(world.os(shut));
        assert!(
            matches!(&reply, FileReply::Failed(failed) if failed.why == Why::NotPermitted),
            "{reply:?}"
        );
    }
}

#[test]
fn a_directory_that_may_not_be_read_is_an_error_at_the_start_of_a_listing() {
    let world = half_open();
    let list = |path: OsString| {
        let request = List {
            path,
            depth: 9,
            select: select(),
            limit: 10,
        };
        world.request(FileOperation::List(request))
    };
    let shut = list(world.os("none"));
    assert!(
        matches!(&shut, FileReply::Failed(failed) if failed.why == Why::NotPermitted),
        "{shut:?}"
    );
    let open = list(world.os("tree/list"));
    assert!(
        matches!(&open, FileReply::Entries(found) if found.len() == 4),
        "{open:?}"
    );
    let FileReply::Done(done) = world.reply() else {
        panic!("no end")
    };
    assert_eq!((done.total, done.unreadable, done.end), (4, 0, End::Complete));
}
