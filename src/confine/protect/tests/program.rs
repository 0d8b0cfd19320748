//! The program of a session in a writable root.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::entry::state::MAX_FILE;
use super::super::referenced::repository::Person;
use super::super::{Effect, Guard, Names, recover};
use super::{Scene, whole};

const PLACE: &str = "target/debug/stockade";

/// A program that is larger than any protected file may be.
fn scene() -> (Scene, Vec<u8>) {
    let scene = Scene::empty();
    let content = vec![7; usize::try_from(MAX_FILE).unwrap() + 1];
    scene.write(PLACE, &content);
    fs::set_permissions(scene.at(PLACE), fs::Permissions::from_mode(0o755)).unwrap();
    (scene, content)
}

fn guard(scene: &Scene) -> Guard {
    let (root, names, person) = ([scene.root()], Names::default(), Person::default());
    let program = scene.at(PLACE);
    let mut guard = Guard::prepare(&root, &[], &names, &scene.store(), &person, None, Some(&program)).unwrap();
    guard.claim().unwrap();
    guard
}

#[test]
fn a_changed_program_is_put_back_whatever_its_size_also_below_target() {
    let changes: [fn(&Scene); 5] = [
        |s| s.write(PLACE, "evil"),
        |s| fs::remove_file(s.at(PLACE)).unwrap(),
        |s| fs::remove_dir_all(s.at("target")).unwrap(),
        |s| fs::set_permissions(s.at(PLACE), fs::Permissions::from_mode(0o777)).unwrap(),
        |s| {
            fs::rename(s.at(PLACE), s.at("moved")).unwrap();
            symlink("/bin/sh", s.at(PLACE)).unwrap();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for crash in [false, true] {
            let (scene, content) = scene();
            let guard = guard(&scene);
            change(&scene);
            scene.write("target/debug/other", "built");
            let violations = if crash {
                drop(guard);
                recover(&scene.store()).violations
            } else {
                whole(guard.settle())
            };
            assert_eq!(violations.len(), 1, "{number}: {violations:?}");
            assert!(matches!(violations[0].kind, Effect::Changed | Effect::Removed));
            assert!(fs::read(scene.at(PLACE)).unwrap() == content, "{number}");
            let mode = fs::symlink_metadata(scene.at(PLACE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755);
            assert_eq!(scene.read("target/debug/other"), "built");
        }
    }
}

#[test]
fn a_program_that_only_got_another_link_stays() {
    let (scene, _) = scene();
    let guard = guard(&scene);
    fs::hard_link(scene.at(PLACE), scene.at("target/debug/linked")).unwrap();
    assert!(whole(guard.settle()).is_empty());
}

#[test]
fn a_program_that_cannot_be_copied_refuses_nothing() {
    let (scene, _) = scene();
    scene.write("ordinary", "text");
    fs::write(scene.store().join("programs"), "in the way").unwrap();
    let guard = guard(&scene);
    scene.write("ordinary", "more");
    assert!(whole(guard.settle()).is_empty());
}

#[test]
fn few_copies_are_kept() {
    let (scene, _) = scene();
    for _ in 0..6 {
        fs::remove_file(scene.at(PLACE)).unwrap();
        scene.write(PLACE, "another build");
        assert!(whole(guard(&scene).settle()).is_empty());
    }
    assert!(fs::read_dir(scene.store().join("programs")).unwrap().count() <= 3);
}
