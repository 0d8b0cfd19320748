use std::fs;

use super::super::{What, recover};
use super::Scene;

#[test]
fn a_journal_that_a_crash_left_is_restored_at_the_next_start() {
    let scene = Scene::new();
    drop(scene.guard());
    scene.write(".git/hooks/pre-push", "evil");
    scene.write("sub/.envrc", "evil");
    let found = recover(&scene.store()).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
    assert!(!scene.exists("sub/.envrc"));
    assert_eq!(recover(&scene.store()).unwrap(), []);
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
    assert!(!first.settle().unwrap().is_empty());
    assert_eq!(second.settle().unwrap(), []);
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
    assert!(scene.exists(".git/config") && !scene.exists("sub/.envrc") && !scene.exists("moved/.envrc"));
    // It is the same when the second ends first: what is not of the tree goes with whoever ends.
    let first = scene.guard();
    scene.write("sub/.envrc", "evil");
    let second = scene.guard();
    assert_eq!(second.settle().unwrap().len(), 1);
    assert!(!scene.exists("sub/.envrc"));
    assert_eq!(first.settle().unwrap(), []);
}

#[test]
fn the_journal_of_a_running_command_is_left_alone() {
    let scene = Scene::new();
    let guard = scene.guard();
    scene.write(".git/hooks/pre-push", "evil");
    assert_eq!(recover(&scene.store()).unwrap(), []);
    assert_eq!(scene.read(".git/hooks/pre-push"), "evil");
    let found = guard.settle().unwrap();
    assert_eq!((found.len(), found[0].what), (1, What::Changed));
}

#[test]
fn a_root_that_is_gone_does_not_hinder_the_next_start() {
    let scene = Scene::new();
    drop(scene.guard());
    fs::remove_dir_all(scene.root()).unwrap();
    assert_eq!(recover(&scene.store()).unwrap(), []);
    assert_eq!(fs::read_dir(scene.store().join("journal")).unwrap().count(), 0);
}

#[test]
fn a_journal_of_rubbish_is_an_error_that_names_it() {
    let scene = Scene::empty();
    fs::create_dir(scene.store().join("journal")).unwrap();
    fs::write(scene.store().join("journal/1"), "rubbish").unwrap();
    assert!(recover(&scene.store()).unwrap_err().to_string().contains("journal/1"));
}
