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
