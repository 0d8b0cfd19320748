use std::fs;
use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;

use super::super::Effect;
use super::{Scene, one};

#[test]
fn what_git_leaves_while_something_is_under_way_passes() {
    let scene = Scene::new();
    fs::remove_file(scene.at(".git/hooks/pre-push")).unwrap();
    scene.git(&["clone", "-q", ".", "other"]);
    let found = scene.report(|s| {
        let conflict = |directory: &str, work: &[&str]| {
            // Each of these stops.
            s.git_in(
                directory,
                &[
                    "-c",
                    "alias.tried=!f() { git \"$@\" || true; }; f",
                    "tried",
                    "-c",
                    "rerere.enabled=true",
                ]
                .iter()
                .chain(work)
                .copied()
                .collect::<Vec<_>>(),
            );
        };
        for (branch, text) in [("one", "1"), ("two", "2")] {
            s.git(&["checkout", "-q", "-b", branch, "main"]);
            s.write("file", text);
            s.git(&["commit", "-qam", branch]);
            s.write("file", format!("{text}{text}"));
            s.git(&["commit", "-qam", branch]);
        }
        s.git(&["format-patch", "-q", "-2", "one"]);
        for (directory, work) in [
            ("rebased", vec!["rebase", "-q", "one"]),
            ("applied", vec!["rebase", "-q", "--apply", "one"]),
            ("picked", vec!["cherry-pick", "one~", "one"]),
            ("merged", vec!["merge", "-q", "one"]),
            ("reverted", vec!["revert", "--no-edit", "two~", "two~2"]),
            ("mailed", vec!["am", "-q", "../0001-one.patch", "../0002-one.patch"]),
            ("found", vec!["bisect", "start", "HEAD", "HEAD~2"]),
        ] {
            s.git(&["worktree", "add", "-q", "--detach", directory, "two"]);
            conflict(directory, &work);
        }
        s.git(&["worktree", "lock", "merged"]);
        conflict(".", &["merge", "-q", "one"]);
        conflict(".", &["merge", "--abort"]);
        conflict(".", &["rebase", "-q", "one"]);
        s.git(&["branch", "mise.toml"]);
        s.git(&["notes", "add", "-m", "note"]);
        s.git(&["fsck", "--lost-found", "--no-progress"]);
        s.git(&["update-index", "--split-index"]);
        s.git(&["pack-refs", "--all"]);
        s.git(&["gc", "-q"]);
        s.git_in("other", &["fetch", "-q", "--depth=1", "origin"]);
        let source = crate::policy::path::display(s.at("other"));
        s.git_in("other", &["submodule", "--quiet", "add", &source, "sub"]);
        s.git_in("other", &["sparse-checkout", "set", "--no-cone", "file"]);
    });
    assert_eq!(found, []);
    for there in [
        ".git/rebase-merge/git-rebase-todo",
        ".git/worktrees/picked/CHERRY_PICK_HEAD",
        ".git/worktrees/picked/sequencer/todo",
        ".git/worktrees/mailed/rebase-apply/apply-opt",
        ".git/worktrees/found/BISECT_LOG",
        ".git/worktrees/merged/locked",
        "other/.git/modules/sub/HEAD",
    ] {
        assert!(scene.exists(there), "{there}");
    }
    scene.git(&["rebase", "--abort"]);
    scene.git(&["rev-parse", "-q", "--verify", "mise.toml"]);
}

#[test]
fn what_version_control_does_not_write_as_data_is_undone() {
    let texts = [
        (".git/evil", "x"),
        (".git/sl/config", "[hooks]\n"),
        (".git/remotes/origin", "URL: https://example.net/x\n"),
        (".git/branches/origin", "https://example.net/x\n"),
        (".git/rebase-merge/strategy", "../../evil\n"),
        (".git/sequencer/opts", "[options]\n\tstrategy = evil\n"),
        (".git/rebase-apply/apply-opt", " '--unsafe-paths'\n"),
        (".hg/hgrc", "[hooks]\n"),
        (".hg/hgrc-not-shared", "[hooks]\n"),
        (".hg/sharedpath", "../other/.hg"),
        (".sl/config", "[hooks]\n"),
        (".sl/sharedpath", "../other/.sl"),
        (".jj/repo/config.toml", "[aliases]\n"),
        (".jj/workspace-config.toml", "[aliases]\n"),
        (".jj/repo/store/git_target", "../../../../other/.git"),
    ];
    for (path, text) in texts {
        let scene = Scene::new();
        let found = scene.report(|s| {
            s.write(path, text);
            // Data beside it.
            s.write(".git/ORIG_HEAD", "0\n");
            for data in [
                ".hg/store/x",
                ".sl/dirstate",
                ".jj/working_copy/x",
                ".git/sequencer/todo",
            ] {
                s.write(data, "x");
            }
        });
        assert_eq!(found, one(path, Effect::Created), "{path}");
        assert!(!scene.exists(path), "{path}");
        assert!(
            scene.exists(".hg/store/x") && scene.exists(".git/sequencer/todo"),
            "{path}"
        );
    }
}

#[test]
fn a_pipe_or_a_link_among_the_data_of_git_is_undone() {
    for path in [
        ".git/FETCH_HEAD",
        ".git/refs/heads/x",
        ".git/objects/aa",
        ".git/info/x",
        ".git/COMMIT_EDITMSG.lock",
        ".hg/store/x",
    ] {
        let scene = Scene::new();
        fs::create_dir_all(scene.at(".hg/store")).unwrap();
        let make_pipe = |s: &Scene| nix::unistd::mkfifo(&s.at(path), Mode::S_IRWXU).unwrap();
        assert_eq!(scene.report(make_pipe), one(path, Effect::Created), "{path}");
        assert!(!scene.exists(path), "{path}");
        assert_eq!(
            scene.report(|s| symlink("/nowhere", s.at(path)).unwrap()),
            one(path, Effect::Created),
            "{path}"
        );
        assert!(!scene.exists(path), "{path}");
        assert_eq!(scene.report(|s| s.write(path, "x")), [], "{path}");
    }
}

#[test]
fn a_link_that_mercurial_takes_for_a_lock_passes() {
    let scene = Scene::empty();
    scene.write(".hg/requires", "store\n");
    assert_eq!(scene.report(|s| symlink("host:1", s.at(".hg/wlock")).unwrap()), []);
}

#[test]
fn of_a_list_of_steps_only_what_runs_a_command_is_undone() {
    const TODO: &str = ".git/rebase-merge/git-rebase-todo";
    let scene = Scene::new();
    let found = scene.report(|s| s.write(TODO, "pick 1 a\nexec ./evil\npick 2 b\n"));
    assert_eq!(found, one(TODO, Effect::Created));
    assert_eq!(scene.read(TODO), "pick 1 a\npick 2 b\n");
    // What a person has ordered stays.
    scene.write(TODO, "pick 1 a\nexec make\npick 2 b\n");
    assert_eq!(scene.report(|s| s.write(TODO, "exec make\npick 2 b\n")), []);
    let found = scene.report(|s| s.write(TODO, "exec make\nx ./evil\npick 3 c\n"));
    assert_eq!(found, one(TODO, Effect::Changed));
    assert_eq!(scene.read(TODO), "exec make\npick 3 c\n");
    assert_eq!(
        scene.report(|s| fs::remove_dir_all(s.at(".git/rebase-merge")).unwrap()),
        []
    );
}

#[test]
fn a_config_of_a_work_tree_that_leads_a_remote_elsewhere_is_undone() {
    let scene = Scene::new();
    scene.git(&["remote", "add", "origin", "https://example.org/x.git"]);
    scene.git(&["config", "extensions.worktreeConfig", "true"]);
    let found = scene.report(|s| {
        s.git(&["config", "--worktree", "core.sparseCheckout", "false"]);
        s.git(&["config", "--worktree", "remote.origin.url", "https://example.net/x.git"]);
    });
    assert_eq!(found, one(".git/config.worktree", Effect::Created));
    let left = scene.read(".git/config.worktree");
    assert!(left.contains("sparseCheckout") && !left.contains("example"), "{left}");
}

#[test]
fn what_a_tool_of_the_host_has_put_there_is_kept_where_it_is_small_and_never_taken_away() {
    let scene = Scene::new();
    let long = "x".repeat(100 * 1024);
    scene.write(".git/tool", "small");
    scene.write(".git/long", &long);
    scene.write(".git/tools/x", "inside");
    let change = |s: &Scene| {
        for path in [".git/tool", ".git/long", ".git/tools/x"] {
            s.write(path, "changed");
        }
    };
    assert_eq!(scene.report(change), one(".git/tool", Effect::Changed));
    assert_eq!(scene.read(".git/tool"), "small");
    assert_eq!(scene.read(".git/long"), "changed");
    assert_eq!(scene.read(".git/tools/x"), "changed");
    scene.write(".git/long", &long);
    assert_eq!(scene.report(|s| fs::remove_file(s.at(".git/long")).unwrap()), []);
}

#[test]
fn what_lay_in_a_directory_that_becomes_a_git_directory_stays() {
    let scene = Scene::empty();
    scene.write("store/notes.txt", "important");
    scene.write("store/sub/y", "y");
    assert_eq!(scene.report(|s| s.git_in("store", &["init", "-q", "--bare", "."])), []);
    assert_eq!(scene.read("store/notes.txt"), "important");
    assert!(scene.exists("store/sub/y") && scene.exists("store/HEAD"));
    assert_eq!(
        scene.report(|s| s.write("store/new", "x")),
        one("store/new", Effect::Created)
    );
}

#[test]
fn the_work_tree_of_a_merge_of_notes_stays() {
    let scene = Scene::new();
    let path = ".git/NOTES_MERGE_WORKTREE/0123";
    assert_eq!(scene.report(|s| s.write(path, "conflict")), []);
    assert!(scene.exists(path));
}

#[test]
fn the_settings_of_sapling_in_a_git_directory_stay_as_they_were() {
    let scene = Scene::new();
    scene.write(".git/sl/config", "[ui]\n");
    scene.write(".git/sl/dirstate", "1");
    let found = scene.report(|s| {
        s.write(".git/sl/config", "[hooks]\nupdate = evil\n");
        s.write(".git/sl/dirstate", "2");
        s.write(".git/sl/store/x", "x");
    });
    assert_eq!(found, one(".git/sl/config", Effect::Changed));
    assert_eq!(scene.read(".git/sl/config"), "[ui]\n");
    assert_eq!(scene.read(".git/sl/dirstate"), "2");
    assert!(scene.exists(".git/sl/store/x"));
}

#[test]
fn a_copied_git_directory_brings_no_settings_of_its_work_tree() {
    const EVIL: &str = "[core]\n\tfsmonitor = evil\n\tsparseCheckout = true\n";
    let scene = Scene::new();
    fs::remove_file(scene.at(".git/hooks/pre-push")).unwrap();
    scene.git(&["config", "extensions.worktreeConfig", "true"]);
    scene.git(&["worktree", "add", "-q", "tree"]);
    let copy = |s: &Scene, from: &str, to: &str, names: &[&str]| {
        for name in names {
            s.write(format!("{to}/{name}"), fs::read(s.at(from).join(name)).unwrap());
        }
        s.write(format!("{to}/config.worktree"), EVIL);
    };
    // The one that holds everything.
    let found = scene.report(|s| {
        copy(s, ".git", "x/.git", &["HEAD", "config"]);
        for name in ["objects", "refs"] {
            fs::create_dir(s.at("x/.git").join(name)).unwrap();
        }
    });
    assert_eq!(found, one("x/.git/config.worktree", Effect::Created));
    let left = scene.read("x/.git/config.worktree");
    assert!(left.contains("sparseCheckout") && !left.contains("evil"), "{left}");
    // That of a further work tree, elsewhere and beside the others.
    let names = ["HEAD", "gitdir", "commondir"];
    let found = scene.report(|s| {
        copy(s, ".git/worktrees/tree", "copy", &names[..2]);
        s.write("copy/commondir", "../.git\n");
        s.write("y/.git", "gitdir: ../copy\n");
        copy(s, ".git/worktrees/tree", ".git/worktrees/z", &names);
        s.write("z/.git", "gitdir: ../.git/worktrees/z\n");
    });
    assert!(found.contains(&("copy/commondir".into(), Effect::Created)), "{found:?}");
    assert!(
        found.contains(&(".git/worktrees/z/config.worktree".into(), Effect::Created)),
        "{found:?}"
    );
    assert!(!scene.exists("copy/commondir"));
    for path in ["copy/config.worktree", ".git/worktrees/z/config.worktree"] {
        assert!(!scene.exists(path) || !scene.read(path).contains("evil"), "{path}");
    }
}
