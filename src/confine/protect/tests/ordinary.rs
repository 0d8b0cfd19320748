use std::fs;

use super::super::referenced::repository::Person;
use super::super::{Effect, Guard, Names};
use super::{Scene, one, whole};

#[test]
fn commits_branches_checkouts_and_gc_pass() {
    let scene = Scene::new();
    fs::remove_file(scene.at(".git/hooks/pre-push")).unwrap();
    let found = scene.report(|s| {
        s.write("other", "text");
        s.git(&["add", "."]);
        s.git(&["commit", "-qm", "second"]);
        s.git(&["checkout", "-qb", "topic/one"]);
        s.git(&["tag", "v1"]);
        s.git(&["stash", "list"]);
        s.git(&["gc", "-q"]);
        s.git(&["checkout", "-q", "main"]);
    });
    assert_eq!(found, []);
}

#[test]
fn init_clone_and_new_worktrees_pass() {
    let scene = Scene::new();
    let found = scene.report(|s| {
        s.git(&["init", "-q", "fresh"]);
        s.git(&["clone", "-q", ".", "copy"]);
        s.git(&["clone", "-q", "--bare", ".", "copy.git"]);
        s.git(&["worktree", "add", "-q", "tree"]);
    });
    assert_eq!(found, []);
    scene.git_in("copy", &["log", "-1"]);
    scene.git_in("tree", &["status"]);
}

#[test]
fn a_worktree_and_a_clone_may_be_removed_again() {
    let scene = Scene::new();
    scene.git(&["clone", "-q", ".", "copy"]);
    scene.git(&["worktree", "add", "-q", "tree"]);
    let found = scene.report(|s| {
        s.git(&["worktree", "remove", "tree"]);
        fs::remove_dir_all(s.at("copy")).unwrap();
    });
    assert_eq!(found, []);
    assert!(!scene.exists("copy") && !scene.exists("tree"));
}

#[test]
fn a_new_remote_and_a_user_name_pass_but_a_redirected_remote_does_not() {
    let scene = Scene::new();
    scene.git(&["remote", "add", "origin", "https://example.org/x.git"]);
    let found = scene.report(|s| {
        s.git(&["remote", "add", "fork", "https://example.org/y.git"]);
        s.git(&["config", "user.name", "A B"]);
    });
    assert_eq!(found, []);
    assert!(scene.read(".git/config").contains("fork"));
    let found = scene.report(|s| s.git(&["remote", "set-url", "origin", "https://example.net/x.git"]));
    assert_eq!(found, one(".git/config", Effect::Changed));
}

#[test]
fn what_git_does_to_a_config_every_day_passes() {
    let scene = Scene::new();
    scene.git(&["clone", "-q", "--bare", ".", "origin.git"]);
    scene.git(&["remote", "add", "origin", "./origin.git"]);
    let origin = crate::policy::path::display(scene.at("origin.git"));
    let each: [&[&[&str]]; 10] = [
        &[
            &["config", "color.ui", "auto"],
            &["config", "user.email", "a@example.org"],
        ],
        &[&["push", "-q", "-u", "--no-verify", "origin", "main"]],
        &[
            &["branch", "topic"],
            &["branch", "--set-upstream-to", "origin/main", "topic"],
            &["branch", "-m", "topic", "t/x"],
        ],
        &[&["remote", "set-branches", "origin", "main"]],
        &[&["remote", "rename", "origin", "up"]],
        &[&["config", "--unset", "color.ui"], &["branch", "-D", "t/x"]],
        &[&["worktree", "add", "-q", "tree", "-b", "wt"]],
        &[
            &["sparse-checkout", "set", "--no-cone", "/*"],
            &["sparse-checkout", "disable"],
        ],
        &[&["submodule", "--quiet", "add", &origin, "sub"]],
        &[&["remote", "remove", "up"]],
    ];
    for lines in each {
        let found = scene.report(|s| lines.iter().for_each(|line| s.git(line)));
        assert_eq!(found, [], "{lines:?}");
    }
}

#[test]
fn a_repository_that_was_cloned_and_whose_hooks_were_set_keeps_its_commits() {
    let scene = Scene::new();
    let found = scene.report(|s| {
        s.git(&["clone", "-q", ".", "copy"]);
        s.git_in("copy", &["config", "core.hooksPath", ".husky/_"]);
        s.write("copy/node_modules/husky/.husky/pre-commit", "theirs");
    });
    assert_eq!(found, one("copy/.git/config", Effect::Created));
    scene.git_in("copy", &["log", "-1"]);
    scene.git_in("copy", &["remote", "get-url", "origin"]);
    assert!(!scene.read("copy/.git/config").contains("hooksPath"));
    assert!(scene.exists("copy/node_modules/husky/.husky/pre-commit"));
}

#[test]
fn a_directory_renamed_without_anything_protected_in_it_stays_renamed() {
    let scene = Scene::new();
    scene.write("a/b/c", "");
    assert_eq!(scene.report(|s| fs::rename(s.at("a"), s.at("z")).unwrap()), []);
    assert!(scene.exists("z/b/c"));
}

#[test]
fn a_new_directory_with_a_deleted_ones_number_is_not_taken_for_it() {
    let scene = Scene::empty();
    scene.write("a/.envrc", "mine");
    let found = scene.report(|s| {
        fs::remove_dir_all(s.at("a")).unwrap();
        for n in 0..20 {
            s.write(format!("d{n}/work"), "");
        }
    });
    assert_eq!(found, []);
    assert!((0..20).all(|n| scene.exists(format!("d{n}/work"))));
}

#[test]
fn nothing_is_left_in_the_tree_and_no_quarantine_made_when_nothing_happened() {
    let scene = Scene::new();
    assert_eq!(scene.report(|_| {}), []);
    assert!(!scene.store().join("quarantine").exists());
}

#[test]
fn a_guard_that_knows_an_earlier_walk_sees_what_changed_since() {
    let scene = Scene::new();
    std::thread::sleep(std::time::Duration::from_millis(60));
    let known = scene.guard().settle_with(None).known;
    scene.write("sub/.envrc", "mine");
    let guard = Guard::snapshot_with(
        &[scene.root()],
        &[],
        &Names::default(),
        &scene.store(),
        &Person::default(),
        known.as_ref(),
    )
    .unwrap();
    scene.write("sub/.envrc", "evil");
    scene.write("sub/.bashrc", "evil");
    assert_eq!(whole(guard.settle()).len(), 2);
    assert_eq!(scene.read("sub/.envrc"), "mine");
}

#[test]
fn in_a_tree_that_several_threads_look_at_no_directory_is_left_out() {
    const WIDE: usize = 1100;
    let scene = Scene::empty();
    for number in 0..WIDE {
        std::fs::create_dir(scene.at(format!("d{number}"))).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(60));
    // Once without, once with what the store knows of it.
    for _ in 0..2 {
        assert_eq!(scene.report(|_| {}), []);
    }
    let evil: Vec<usize> = (0..WIDE).step_by(91).chain([549, 550, WIDE - 1]).collect();
    let found = scene.report(|s| {
        for number in &evil {
            s.write(format!("d{number}/.envrc"), "evil");
        }
    });
    assert_eq!(found.len(), evil.len());
    assert!(!(0..WIDE).any(|number| scene.exists(format!("d{number}/.envrc"))));
}

#[test]
fn what_the_store_knows_is_used_only_while_it_is_whole() {
    let scene = Scene::new();
    std::thread::sleep(std::time::Duration::from_millis(60));
    for damage in [
        |_: &mut Vec<u8>| {},
        |b: &mut Vec<u8>| b.truncate(100),
        |b: &mut Vec<u8>| b[40] ^= 1,
        Vec::clear,
    ] {
        assert_eq!(scene.report(|_| {}), []);
        for entry in std::fs::read_dir(scene.store().join("known")).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            damage(&mut bytes);
            std::fs::write(&path, bytes).unwrap();
        }
        assert_eq!(
            scene.report(|s| s.write(".git/hooks/pre-push", "evil")),
            one(".git/hooks/pre-push", Effect::Changed)
        );
    }
}

#[test]
fn a_file_that_was_named_is_covered_before_names_of_the_table() {
    let scene = Scene::empty();
    for name in ["a/.envrc", "b/.envrc", "z.yaml"] {
        scene.write(name, "x");
    }
    let guard = Guard::snapshot(&[scene.root()], &[scene.at("z.yaml")], &scene.store()).unwrap();
    assert_eq!(guard.present(2), [scene.at("z.yaml"), scene.at("a/.envrc")]);
    assert_eq!(guard.present(9).len(), 3);
    assert!(guard.settle().errors.is_empty());
}
