//! Submodules and further work trees, over several commands: what git does with their `.git` files passes, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;

use super::super::Effect;
use super::{Scene, one};

const SETTINGS: &str = ".vscode/settings.json";

/// A repository with tracked settings and a submodule `mod` that has some too; all of it is the host's.
fn scene() -> Scene {
    let scene = Scene::empty();
    scene.git(&["init", "-q", "-b", "main"]);
    scene.git(&["init", "-q", "-b", "main", "source"]);
    scene.write("source/.envrc", "export A=1\n");
    scene.git_in("source", &["add", "."]);
    scene.git_in("source", &["commit", "-qm", "first"]);
    // What a command clones has nothing protected in it.
    scene.git(&["init", "-q", "-b", "main", "plain"]);
    scene.write("plain/file", "text");
    scene.git_in("plain", &["add", "."]);
    scene.git_in("plain", &["commit", "-qm", "first"]);
    scene.write(".gitignore", "/source\n/plain\n/tree*\n/outer\n");
    scene.write(SETTINGS, "{}\n");
    let source = crate::policy::path::display(scene.at("source"));
    scene.git(&["submodule", "--quiet", "add", &source, "mod"]);
    scene.git(&["add", "."]);
    scene.git(&["commit", "-qm", "first"]);
    scene
}

#[test]
fn a_submodule_is_left_and_entered_again_by_one_command_after_another() {
    let scene = scene();
    let none = [];
    for lines in [
        &[&["submodule", "--quiet", "deinit", "-f", "mod"][..]][..],
        &[&["status"]],
        &[&["submodule", "--quiet", "update", "--init", "mod"]],
        &[&["mv", "mod", "moved"], &["commit", "-qm", "moved"]],
        &[&["submodule", "--quiet", "deinit", "--all", "-f"]],
        &[&["submodule", "--quiet", "update", "--init"]],
    ] {
        let found = scene.report(|s| lines.iter().for_each(|line| s.git(line)));
        assert_eq!(found, none, "{lines:?}");
        if lines[0] == ["status"] {
            assert!(scene.exists("mod") && !scene.exists("mod/.git"));
        }
    }
    assert!(scene.exists("moved/.git") && scene.exists("moved/.envrc"));
    scene.git_in("moved", &["status"]);
}

#[test]
fn a_submodule_is_added_by_one_command_and_committed_by_another() {
    let scene = scene();
    let source = crate::policy::path::display(scene.at("plain"));
    let add = ["submodule", "--quiet", "add", source.as_str(), "more"];
    assert_eq!(scene.report(|s| s.git(&add)), []);
    assert!(scene.read(".gitmodules").contains("more"));
    assert_eq!(scene.report(|s| s.git(&["commit", "-qm", "more"])), []);
    assert_eq!(scene.report(|s| s.git(&["rm", "-qf", "more", "mod"])), []);
    assert_eq!(scene.report(|s| fs::remove_file(s.at(".gitmodules")).unwrap()), []);
    assert_eq!(scene.report(|s| s.git(&["reset", "-q", "--hard"])), []);
}

#[test]
fn of_what_says_which_submodules_there_are_only_what_could_run_something_is_undone() {
    for line in [
        "update = !evil",
        "url = ext::sh -c evil",
        "url = -evil",
        "path = ../../elsewhere",
        "path = /etc",
        "fsmonitor = evil",
    ] {
        for before in [None, Some("# mine\n[submodule \"a\"]\n\tpath = a\n\turl = ../a\n")] {
            let scene = Scene::new();
            if let Some(text) = before {
                scene.write(".gitmodules", text);
            }
            let with = |line: &str| {
                let begins = before.unwrap_or_default();
                format!("{begins}[submodule \"b\"]\n\tbranch = main\n{line}[submodule \"c\"]\n\tshallow = true\n")
            };
            let found = scene.report(|s| s.write(".gitmodules", with(&format!("\t{line}\n"))));
            let what = if before.is_some() {
                Effect::Changed
            } else {
                Effect::Created
            };
            assert_eq!(found, one(".gitmodules", what), "{line}");
            let left = scene.read(".gitmodules");
            let name = line.split(' ').next().unwrap();
            let count = |text: &str| text.matches(name).count();
            assert_eq!(count(&left), count(&with("")), "{left}");
            assert!(
                left.contains("shallow = true") && left.contains("branch = main"),
                "{left}"
            );
        }
    }
    let scene = Scene::new();
    let found = scene.report(|s| s.write(".gitmodules", "[submodule \"../../x\"]\n\turl = ../a\n"));
    assert_eq!(found, one(".gitmodules", Effect::Created));
    let found = scene.report(|s| symlink("file", s.at(".gitmodules")).unwrap());
    assert_eq!(found, one(".gitmodules", Effect::Created));
    assert!(!scene.exists(".gitmodules"));
}

#[test]
fn a_work_tree_is_made_moved_and_removed_by_one_command_after_another() {
    for is_hosts in [false, true] {
        let scene = scene();
        let add = ["worktree", "add", "-q", "tree", "-b", "b"];
        if is_hosts {
            scene.git(&add);
        } else {
            assert_eq!(scene.report(|s| s.git(&add)), []);
        }
        assert_eq!(scene.read(format!("tree/{SETTINGS}")), "{}\n");
        for line in [
            &["worktree", "move", "tree", "tree2"][..],
            &["worktree", "lock", "tree2"],
            &["worktree", "unlock", "tree2"],
            &["worktree", "move", "tree2", "outer"],
            &["-C", "outer", "status"],
        ] {
            assert_eq!(scene.report(|s| s.git(line)), [], "{is_hosts} {line:?}");
        }
        assert!(!scene.exists("tree") && !scene.exists("tree2"));
        assert_eq!(scene.read(format!("outer/{SETTINGS}")), "{}\n");
        assert_eq!(scene.report(|s| s.git(&["worktree", "remove", "outer"])), []);
    }
}

#[test]
fn what_is_the_persons_in_a_work_tree_moves_along() {
    let scene = scene();
    scene.git(&["worktree", "add", "-q", "tree", "-b", "b"]);
    scene.write("tree/.envrc", "mine");
    assert_eq!(scene.report(|s| s.git(&["worktree", "move", "tree", "tree2"])), []);
    assert_eq!(scene.read("tree2/.envrc"), "mine");
    let found = scene.report(|s| {
        s.git(&["worktree", "move", "tree2", "tree3"]);
        s.write("tree3/.envrc", "evil");
    });
    assert!(found.iter().any(|(path, _)| path.ends_with(".envrc")), "{found:?}");
    let left = ["tree2/.envrc", "tree3/.envrc"].map(|path| scene.exists(path).then(|| scene.read(path)));
    assert!(!left.contains(&Some("evil".to_owned())), "{left:?}");
}

#[test]
fn a_git_file_does_not_go_where_another_git_would_then_be_obeyed() {
    let empty = |scene: &Scene, path: &str| {
        fs::remove_dir_all(scene.at(path)).unwrap();
        fs::create_dir(scene.at(path)).unwrap();
    };
    // Around it a repository of the command's, made by the same or by an earlier one.
    for is_earlier in [false, true] {
        let scene = scene();
        fs::create_dir(scene.at("outer")).unwrap();
        scene.git(&["worktree", "add", "-q", "outer/inner", "-b", "b"]);
        let init = |s: &Scene| s.git(&["init", "-q", "outer"]);
        if is_earlier {
            assert_eq!(scene.report(init), []);
        }
        let found = scene.report(|s| {
            if !is_earlier {
                init(s);
            }
            empty(s, "outer/inner");
        });
        assert!(
            found.contains(&("outer/inner/.git".into(), Effect::Removed)),
            "{found:?}"
        );
        assert!(scene.exists("outer/inner/.git"));
    }
    // In its place the command's own, or in the directory itself.
    let replacements: [fn(&Scene); 5] = [
        |s| {
            fs::remove_dir_all(s.at("mod")).unwrap();
            s.git(&["init", "-q", "mod"]);
        },
        |s| {
            fs::remove_dir_all(s.at("mod")).unwrap();
            s.git(&["init", "-q", "--bare", "mod"]);
        },
        |s| fs::remove_file(s.at("mod/.git")).unwrap(),
        |s| {
            s.git(&["init", "-q", "evil"]);
            s.write("mod/.git", "gitdir: ../evil/.git\n");
        },
        |s| {
            s.git(&["init", "-q", "evil"]);
            fs::remove_file(s.at("mod/.git")).unwrap();
            symlink("../evil/.git", s.at("mod/.git")).unwrap();
        },
    ];
    for (number, replace) in replacements.into_iter().enumerate() {
        let scene = scene();
        let before = scene.read("mod/.git");
        let found = scene.report(replace);
        assert!(
            found.iter().any(|(path, _)| path.ends_with("mod/.git")),
            "{number}: {found:?}"
        );
        assert_eq!(scene.read("mod/.git"), before, "{number}");
    }
}

#[test]
fn a_work_tree_that_moves_leads_where_it_led() {
    let scene = scene();
    scene.git(&["worktree", "add", "-q", "tree", "-b", "b"]);
    let before = scene.read("tree/.git");
    let back = scene.read(".git/worktrees/tree/gitdir");
    let found = scene.report(|s| {
        s.git(&["init", "-q", "evil"]);
        fs::rename(s.at("tree"), s.at("tree2")).unwrap();
        s.write("tree2/.git", "gitdir: ../evil/.git\n");
    });
    assert!(!found.is_empty());
    assert_eq!(scene.read("tree/.git"), before);
    // It leads back to where its work tree is, and nowhere else.
    let found = scene.report(|s| {
        s.write("tree3/.git", &before);
        s.write(".git/worktrees/tree/gitdir", back.replace("/tree/", "/tree3/"));
    });
    assert_eq!(found, one(".git/worktrees/tree/gitdir", Effect::Changed));
    assert_eq!(scene.read(".git/worktrees/tree/gitdir"), back);
    // A repository with its own settings is no such work tree.
    scene.git(&["clone", "-q", ".", "clone"]);
    let found = scene.report(|s| fs::rename(s.at("clone"), s.at("cloned")).unwrap());
    assert_eq!(found, one("clone", Effect::Removed));
}

#[test]
fn the_work_tree_of_a_submodule_is_set_by_git_alone() {
    let scene = scene();
    let config = ".git/modules/mod/config";
    let text = scene.read(config);
    fs::create_dir_all(scene.at("elsewhere")).unwrap();
    scene.write("linked/.git", "gitdir: ../.git\n");
    for place in ["../../../elsewhere", "/etc", "../../../linked", "../../.."] {
        let found = scene.report(|s| s.write(config, text.replace("../../../mod", place)));
        assert_eq!(found, one(config, Effect::Changed), "{place}");
        assert_eq!(scene.read(config), text);
    }
    let own = scene.read(".git/config");
    let found = scene.report(|s| s.write(".git/config", format!("{own}[core]\n\tworktree = ../linked\n")));
    assert_eq!(found, one(".git/config", Effect::Changed));
}

#[test]
fn a_repository_that_a_command_made_is_moved_by_another_and_a_persons_is_not() {
    let scene = scene();
    assert_eq!(scene.report(|s| s.git(&["clone", "-q", "plain", "tree"])), []);
    assert_eq!(scene.report(|s| fs::rename(s.at("tree"), s.at("lib")).unwrap()), []);
    assert!(scene.exists("lib/.git/config") && !scene.exists("tree"));
    let found = scene.report(|s| {
        s.git(&["submodule", "--quiet", "add", "./plain", "lib"]);
        s.git(&["submodule", "absorbgitdirs"]);
        s.git(&["commit", "-qm", "lib"]);
    });
    assert_eq!(found, []);
    assert!(scene.read("lib/.git").starts_with("gitdir: ") && scene.exists(".git/modules/lib/config"));
    scene.git_in("lib", &["status"]);
    // Moved with a hook it is as it was but for that.
    assert_eq!(scene.report(|s| s.git(&["init", "-q", "tree"])), []);
    let found = scene.report(|s| {
        fs::rename(s.at("tree"), s.at("tree2")).unwrap();
        s.write("tree2/.git/hooks/pre-commit", "evil");
    });
    assert_eq!(found, one("tree2/.git/hooks/pre-commit", Effect::Created));
    for (path, bare) in [("outer", &[][..]), ("outer.git", &["--bare"])] {
        scene.git(&[&["clone", "-q"], bare, &["plain", path]].concat());
        let found = scene.report(|s| fs::rename(s.at(path), s.at("elsewhere")).unwrap());
        assert_eq!(found, one(path, Effect::Removed));
    }
}
