use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::referenced::repository::Person;
use super::super::storage::journal::{self, Journal};
use super::super::tree::walk::MAX_IN_TEST;
use super::super::{Effect, Growth, Guard, Names, ProtectError, Violation, recover, waiting};
use super::{Scene, one, whole};

#[test]
fn a_journal_that_a_crash_left_is_restored_at_the_next_start() {
    let scene = Scene::new();
    drop(scene.guard());
    scene.write(".git/hooks/pre-push", "evil");
    scene.write("sub/.envrc", "evil");
    let found = recovered(&scene);
    assert_eq!(found.len(), 2);
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
    assert!(!scene.exists("sub/.envrc"));
    assert_eq!(recovered(&scene), []);
}

#[test]
fn what_one_command_leaves_is_not_what_another_finds() {
    let scene = Scene::new();
    let first = scene.guard();
    scene.write(".git/hooks/pre-push", "evil");
    scene.write("sub/.envrc", "evil");
    fs::rename(scene.at("sub"), scene.at("moved")).unwrap();
    fs::remove_file(scene.at(".git/config")).unwrap();
    // The second begins while the first has its way with the tree, and ends last.
    let second = scene.guard();
    assert!(!whole(first.settle()).is_empty());
    assert_eq!(whole(second.settle()), []);
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
    assert!(scene.exists(".git/config") && !scene.exists("sub/.envrc") && !scene.exists("moved/.envrc"));
    // It is the same when the second ends first: what is not of the tree goes with whoever ends.
    let first = scene.guard();
    scene.write("sub/.envrc", "evil");
    let second = scene.guard();
    assert_eq!(whole(second.settle()).len(), 1);
    assert!(!scene.exists("sub/.envrc"));
    assert_eq!(whole(first.settle()), []);
}

#[test]
fn the_journal_of_a_running_command_is_left_alone() {
    let scene = Scene::new();
    let guard = scene.guard();
    scene.write(".git/hooks/pre-push", "evil");
    assert_eq!(recovered(&scene), []);
    assert_eq!(scene.read(".git/hooks/pre-push"), "evil");
    let found = whole(guard.settle());
    assert_eq!((found.len(), found[0].kind), (1, Effect::Changed));
}

#[test]
fn a_root_that_is_gone_does_not_hinder_the_next_start() {
    let scene = Scene::new();
    drop(scene.guard());
    fs::remove_dir_all(scene.root()).unwrap();
    let recovered = recover(&scene.store());
    assert_eq!(recovered.violations, []);
    assert!(recovered.failures.iter().all(|left| !left.concerns(&[scene.store()])));
    // Nobody can tell that from one that was unmounted: it is kept, and told of.
    let told = waiting(&scene.store());
    assert_eq!((told.len(), &told[0].root), (1, &scene.root()));
    assert!(told[0].journal.exists());
}

#[test]
fn a_journal_waits_for_a_root_that_was_renamed_and_undoes_what_it_says_when_that_is_back() {
    let scene = Scene::empty();
    for root in ["one", "two"] {
        scene.write(format!("{root}/.envrc"), "mine");
    }
    let (one, two, moved) = (scene.at("one"), scene.at("two"), scene.at("moved"));
    drop(Guard::snapshot(&[one.clone(), two.clone()], &[], &scene.store()).unwrap());
    scene.write("one/.envrc", "evil");
    scene.write("two/.envrc", "evil");
    fs::rename(&one, &moved).unwrap();
    // Another directory in its place is none of it.
    fs::create_dir(&one).unwrap();
    let first = recover(&scene.store());
    assert_eq!(first.violations.len(), 1, "{first:?}");
    assert_eq!(
        (scene.read("two/.envrc"), scene.read("moved/.envrc")),
        ("mine".to_owned(), "evil".to_owned())
    );
    // What was undone is not undone again, and what is elsewhere starts nothing there.
    scene.write("two/.envrc", "mine again");
    let second = recover(&scene.store());
    assert_eq!(second.violations, []);
    let concerns = |root: &PathBuf| {
        second
            .failures
            .iter()
            .any(|left| left.concerns(std::slice::from_ref(root)))
    };
    assert!(concerns(&moved) && !concerns(&two) && !concerns(&one));
    let said = second.failures[0].explain(&scene.store().join("journal"));
    assert!(said.contains("one") && said.contains("Rename it back"), "{said}");
    assert_eq!(waiting(&scene.store()).len(), 1);
    drop(second);
    fs::remove_dir(&one).unwrap();
    fs::rename(&moved, &one).unwrap();
    let third = recover(&scene.store());
    assert_eq!((third.violations.len(), third.failures.len()), (1, 0), "{third:?}");
    assert_eq!(
        (scene.read("one/.envrc"), scene.read("two/.envrc")),
        ("mine".to_owned(), "mine again".to_owned())
    );
    assert_eq!(waiting(&scene.store()), []);
}

#[test]
fn around_a_root_that_was_moved_nothing_starts() {
    let scene = Scene::empty();
    scene.write("outer/one/.envrc", "mine");
    fs::create_dir(scene.at("other")).unwrap();
    drop(Guard::snapshot(&[scene.at("outer/one")], &[], &scene.store()).unwrap());
    fs::rename(scene.at("outer"), scene.at("moved")).unwrap();
    let left = recover(&scene.store()).failures;
    let lies_in = |root: &str| {
        let guard = Guard::snapshot(&[scene.at(root)], &[], &scene.store()).unwrap();
        let found = left.iter().any(|left| left.lies_in(&guard));
        assert!(guard.settle().errors.is_empty());
        found
    };
    assert!(lies_in("moved") && lies_in("") && !lies_in("other"));
}

#[test]
fn what_a_command_shut_is_open_again_after_a_crash() {
    let scene = Scene::new();
    drop(scene.guard());
    fs::create_dir(scene.at("z")).unwrap();
    scene.git_in("z", &["init", "-q"]);
    fs::create_dir(scene.at("plain")).unwrap();
    for shut in ["z/.git", "z", "plain"] {
        fs::set_permissions(scene.at(shut), fs::Permissions::from_mode(0o0)).unwrap();
    }
    let found = recovered(&scene);
    let found: Vec<_> = found.iter().map(|one| (one.path.clone(), one.kind)).collect();
    assert_eq!(
        found,
        [(scene.at("z"), Effect::Closed), (scene.at("z/.git"), Effect::Closed)]
    );
    let mode = |path: &str| fs::metadata(scene.at(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("z"), mode("z/.git"), mode("plain")), (0o500, 0o500, 0));
}

#[test]
fn a_full_quarantine_starts_nothing_until_there_is_room() {
    let scene = Scene::empty();
    let batch = scene.store().join("quarantine/1");
    fs::create_dir_all(batch.join("0")).unwrap();
    fs::write(batch.join("held"), "1 1073741824\n").unwrap();
    let why = Guard::snapshot(&[scene.root()], &[], &scene.store())
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("is full") && why.contains("Nothing is ever dropped"),
        "{why}"
    );
    assert!(batch.join("0").exists());
    fs::remove_dir_all(&batch).unwrap();
    assert_eq!(whole(scene.guard().settle()), []);
}

#[test]
fn of_a_tree_that_became_too_large_what_was_seen_is_undone() {
    let scene = Scene::empty();
    let guard = scene.guard();
    scene.write(".envrc", "evil");
    for number in 0..40 {
        fs::create_dir(scene.at(format!("d{number}"))).unwrap();
    }
    MAX_IN_TEST.store(10, std::sync::atomic::Ordering::Relaxed);
    let settled = guard.settle();
    assert!(
        matches!(settled.errors.as_slice(), [ProtectError::TooMany]),
        "{settled:?}"
    );
    assert_eq!(settled.violations.len(), 1);
    assert!(!scene.exists(".envrc"));
    // The journal stays: when the rest is gone it is settled.
    assert!(Guard::snapshot(&[scene.root()], &[], &scene.store()).is_err());
    MAX_IN_TEST.store(4_000_000, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(recovered(&scene), []);
}

#[test]
fn a_journal_of_rubbish_is_an_error_that_names_it() {
    let scene = Scene::empty();
    fs::create_dir(scene.store().join("journal")).unwrap();
    fs::write(scene.store().join("journal/1"), "rubbish").unwrap();
    let failures = recover(&scene.store()).failures;
    // Nobody knows what it is about.
    assert!(failures[0].concerns(&[scene.root()]));
    let said = failures[0].explain(&scene.store().join("journal"));
    for part in [
        "journal/1",
        "cannot be read",
        "then remove it",
        "nothing starts as long as",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Done as it says.
    fs::remove_file(scene.store().join("journal/1")).unwrap();
    assert!(recover(&scene.store()).failures.is_empty());
}

#[test]
fn a_journal_that_cannot_be_seen_to_does_not_keep_the_others_from_it() {
    let scene = Scene::empty();
    scene.write("third/.envrc", "mine");
    drop(Guard::snapshot(&[scene.at("third")], &[], &scene.store()).unwrap());
    scene.write("third/.envrc", "evil");
    fs::write(scene.store().join("journal/0"), "rubbish").unwrap();
    let recovered = recover(&scene.store());
    assert_eq!(
        (recovered.violations.len(), recovered.failures.len()),
        (1, 1),
        "{recovered:?}"
    );
    assert_eq!(scene.read("third/.envrc"), "mine");
}

#[test]
fn a_socket_that_is_gone_is_told_once_and_locks_nobody_out() {
    let scene = Scene::empty();
    let listen = |scene: &Scene| UnixListener::bind(scene.at(".envrc")).unwrap();
    let _listener = listen(&scene);
    let found = scene.report(|scene| fs::remove_file(scene.at(".envrc")).unwrap());
    assert_eq!(found, one(".envrc", Effect::Lost));
    // The same after a crash, and where something else has taken its place.
    let _listener = listen(&scene);
    drop(scene.guard());
    fs::remove_file(scene.at(".envrc")).unwrap();
    scene.write(".envrc", "evil");
    let found: Vec<Effect> = recovered(&scene).into_iter().map(|found| found.kind).collect();
    assert_eq!(found, [Effect::Lost]);
    assert!(!scene.exists(".envrc"));
    assert_eq!(recovered(&scene), []);
}

/// A file system may give the number of a directory that went to the next one: here the journal says so.
#[test]
fn another_directory_in_the_place_of_a_root_is_not_made_what_that_was() {
    for (created, restored) in [(None, true), (Some((1, 1)), false)] {
        let scene = Scene::new();
        let guard = scene.guard();
        let mut record = journal::all(&scene.store()).unwrap().pop().unwrap();
        guard.release().unwrap();
        record.created = vec![created];
        let mut journal = Journal::prepare(&scene.store(), &record).unwrap();
        journal.activate().unwrap();
        drop(journal);
        scene.write(".git/hooks/pre-push", "mine");
        // One that waits for its root is told of.
        let recovered = recover(&scene.store());
        assert_eq!(
            (recovered.violations.is_empty(), recovered.failures.is_empty()),
            (!restored, restored)
        );
        assert_eq!(scene.read(".git/hooks/pre-push") == "mine", !restored);
        assert_eq!(
            fs::read_dir(scene.store().join("journal")).unwrap().count(),
            usize::from(!restored)
        );
    }
}

#[test]
fn what_another_session_knows_goes_with_the_directory_that_was_moved() {
    let scene = Scene::empty();
    scene.write("sub/.envrc", "old");
    let whole_of = |guard: Guard| whole(guard.settle());
    let inner = Guard::snapshot(&[scene.at("sub")], &[], &scene.store()).unwrap();
    fs::rename(scene.at("sub"), scene.at("moved")).unwrap();
    scene.write("sub/.envrc", "new");
    // A person's new directory is left alone.
    assert_eq!(whole_of(scene.guard()), []);
    assert_eq!(scene.read("sub/.envrc"), "new");
    // What its command makes of the one that was moved is not what others keep.
    scene.write("moved/.envrc", "evil");
    let outer = scene.guard();
    assert_eq!(whole_of(inner).len(), 1);
    assert_eq!(whole_of(outer), []);
    assert_eq!(scene.read("moved/.envrc"), "old");
}

/// A repository, and a work tree of it beside it: what a session in either holds as roots.
fn work_tree(scene: &Scene) -> ([PathBuf; 1], [PathBuf; 2]) {
    scene.write("r/file", "text");
    scene.git_in("r", &["init", "-q", "-b", "main"]);
    scene.git_in("r", &["add", "."]);
    scene.git_in("r", &["commit", "-qm", "first"]);
    scene.git_in("r", &["worktree", "add", "-q", "../tree"]);
    ([scene.at("r")], [scene.at("tree"), scene.at("r/.git")])
}

#[test]
fn sessions_in_a_repository_and_in_a_work_tree_of_it_end_in_any_order() {
    for is_inner_first in [true, false] {
        for is_first_over_first in [true, false] {
            let scene = Scene::empty();
            let (outside, inside) = work_tree(&scene);
            let (one, two) = if is_inner_first {
                (&inside[..], &outside[..])
            } else {
                (&outside[..], &inside[..])
            };
            let first = Guard::snapshot(one, &[], &scene.store()).unwrap();
            scene.write("r/.git/hooks/post-commit", "evil");
            let second = Guard::snapshot(two, &[], &scene.store()).unwrap();
            let order = if is_first_over_first {
                [first, second]
            } else {
                [second, first]
            };
            let told = order.map(|guard| whole(guard.settle()).len());
            assert_eq!(told, [1, 0], "{is_inner_first} {is_first_over_first}");
            assert!(!scene.exists("r/.git/hooks/post-commit"));
            assert_eq!(recovered(&scene), []);
        }
    }
}

#[test]
fn a_git_directory_that_is_a_root_of_another_session_is_put_back_where_it_is_none() {
    let scene = Scene::empty();
    let (outside, inside) = work_tree(&scene);
    let other = Guard::snapshot(&inside, &[], &scene.store()).unwrap();
    let guard = Guard::snapshot(&outside, &[], &scene.store()).unwrap();
    fs::rename(scene.at("r/.git"), scene.at("r/moved")).unwrap();
    scene.git_in("r", &["init", "-q"]);
    assert!(!whole(guard.settle()).is_empty());
    assert!(scene.exists("r/.git/worktrees/tree/gitdir") && !scene.exists("r/moved"));
    assert_eq!(whole(other.settle()), []);
}

#[test]
fn what_another_session_knows_of_a_directory_that_was_moved_away_says_nothing_of_the_one_there_now() {
    let scene = Scene::new();
    let first = scene.guard();
    fs::rename(scene.root(), scene.folder.path().join("old")).unwrap();
    fs::create_dir(scene.root()).unwrap();
    scene.git(&["init", "-q"]);
    scene.write(".git/hooks/pre-commit", "mine");
    scene.git(&["config", "alias.mine", "!true"]);
    assert_eq!(whole(scene.guard().settle()), []);
    assert_eq!(scene.read(".git/hooks/pre-commit"), "mine");
    assert!(scene.read(".git/config").contains("mine"));
    assert_eq!(whole(first.settle()), []);
}

#[test]
fn a_root_that_was_shut_is_restored_after_a_crash_and_open_again() {
    let scene = Scene::empty();
    drop(scene.guard());
    scene.write(".envrc", "evil");
    let mode = || fs::metadata(scene.root()).unwrap().permissions().mode() & 0o777;
    let before = mode();
    fs::set_permissions(scene.root(), fs::Permissions::from_mode(0o0)).unwrap();
    assert_eq!(recovered(&scene).len(), 1);
    assert_eq!(mode(), before);
    assert!(!scene.exists(".envrc"));
}

#[track_caller]
fn recovered(scene: &Scene) -> Vec<Violation> {
    let recovered = recover(&scene.store());
    assert!(recovered.failures.is_empty(), "{recovered:?}");
    recovered.violations
}

#[test]
fn a_store_that_cannot_be_written_is_said_to_be_that() {
    let scene = Scene::empty();
    fs::write(scene.store().join("journal"), "").unwrap();
    let recovered = recover(&scene.store());
    assert!(recovered.failures[0].concerns(&[scene.root()]));
    let said = recovered.failures[0].explain(&scene.store());
    assert!(said.contains("cannot be used") && said.contains("journal"), "{said}");
}

fn ahead(scene: &Scene) -> Guard {
    Guard::prepare(
        &[scene.root()],
        &[],
        &Names::default(),
        &scene.store(),
        &Person::default(),
        None,
        None,
    )
    .unwrap()
}

#[test]
fn what_was_written_down_ahead_counts_for_nobody_before_it_is_claimed() {
    let scene = Scene::empty();
    scene.write(".envrc", "mine");
    // Dropped as by a crash: no command ran.
    drop(ahead(&scene));
    scene.write(".envrc", "a person's");
    assert_eq!(recovered(&scene), []);
    assert_eq!(scene.read(".envrc"), "a person's");
    let waiting = ahead(&scene);
    scene.write(".envrc", "a person's again");
    // Another session takes what is there for the state to keep.
    assert_eq!(whole(scene.guard().settle()), []);
    assert_eq!(scene.read(".envrc"), "a person's again");
    waiting.release().unwrap();
    assert_eq!(scene.read(".envrc"), "a person's again");
}

#[test]
fn what_was_claimed_is_the_state_that_others_keep_and_that_a_crash_leaves() {
    let scene = Scene::empty();
    scene.write(".envrc", "mine");
    let mut first = ahead(&scene);
    first.claim().unwrap();
    scene.write(".envrc", "evil");
    let mut second = ahead(&scene);
    second.claim().unwrap();
    assert_eq!(whole(first.settle()).len(), 1);
    assert_eq!(scene.read(".envrc"), "mine");
    assert_eq!(whole(second.settle()), []);
    let mut third = ahead(&scene);
    third.claim().unwrap();
    scene.write(".envrc", "evil");
    drop(third);
    assert_eq!(recovered(&scene).len(), 1);
    assert_eq!(scene.read(".envrc"), "mine");
}

#[test]
fn a_tree_that_becomes_too_large_is_noticed_while_it_grows_and_many_files_are_not_taken_for_that() {
    let scene = Scene::empty();
    MAX_IN_TEST.store(50, std::sync::atomic::Ordering::Relaxed);
    let guard = scene.guard();
    let mut growth = Growth::of(&guard);
    assert!(!growth.exceeds_limit(&guard));
    let patience = Instant::now() + Duration::from_mins(2);
    let wait = || {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(1));
    };
    // Others free inodes of the same file system meanwhile.
    let mut files = 0..50_000;
    while !growth.is_walking() {
        fs::write(scene.at(format!("f{}", files.next().unwrap())), "").unwrap();
        assert!(!growth.exceeds_limit(&guard));
        wait();
    }
    while growth.is_walking() {
        assert!(!growth.exceeds_limit(&guard));
        wait();
    }
    let mut made = 0..50_000;
    while !growth.exceeds_limit(&guard) {
        fs::create_dir(scene.at(format!("d{}", made.next().unwrap()))).unwrap();
        wait();
    }
    assert!(made.start > 40);
    MAX_IN_TEST.store(4_000_000, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(guard.settle().violations, []);
}
