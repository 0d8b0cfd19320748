//! Protected files that are tracked: what git puts there may stay where a commit that the host knows has it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::{Effect, Guard, Violation, recover};
use super::{Scene, one, whole};

const TASKS: &str = ".vscode/tasks.json";
const SETTINGS: &str = ".vscode/settings.json";

/// A repository on `main` with settings and a branch `b` that has others, tasks and a hook of husky; all commits are the host's.
fn scene_with(arguments: &[&str]) -> Scene {
    let scene = Scene::empty();
    scene.git(&[&["init", "-q", "-b", "main"], arguments].concat());
    scene.write(SETTINGS, "{\"main\": 1}\n");
    scene.write(".npmrc", "save-exact=true\n");
    scene.write("f", "text\n");
    commit(&scene, "first");
    scene.git(&["checkout", "-qb", "b"]);
    scene.write(SETTINGS, "{\"b\": 1}\n");
    scene.write(TASKS, "{\"tasks\": []}\n");
    scene.write(".husky/pre-commit", "#!/bin/sh\n");
    scene.write("sub/.envrc", "export A=1\n");
    fs::set_permissions(scene.at(".husky/pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(scene.at(".npmrc")).unwrap();
    commit(&scene, "second");
    scene.git(&["checkout", "-q", "main"]);
    scene
}

fn scene() -> Scene {
    scene_with(&[])
}

fn commit(scene: &Scene, message: &str) {
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-qm", message]);
}

#[expect(clippy::disallowed_methods, reason = "looks at what git made")]
fn git_says(scene: &Scene, arguments: &[&str]) -> String {
    let said = Command::new("git")
        .args(arguments)
        .current_dir(scene.root())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap()
}

#[track_caller]
fn assert_clean(scene: &Scene) {
    assert_eq!(git_says(scene, &["status", "--porcelain"]), "");
}

/// An evil version of the tasks, committed on a branch of its own, and checked out.
fn commit_evil(scene: &Scene) {
    scene.git(&["checkout", "-qb", "evil"]);
    scene.write(TASKS, "evil");
    commit(scene, "evil");
}

#[test]
fn a_branch_that_the_host_knows_may_be_checked_out_and_left_again() {
    for prepare in [
        &[][..],
        &["gc", "-q"],
        &["gc", "-q", "--aggressive", "--prune=now"],
        &["pack-refs", "--all"],
    ] {
        let scene = scene();
        if !prepare.is_empty() {
            scene.git(prepare);
        }
        let found = scene.report(|s| {
            s.git(&["checkout", "-q", "b"]);
            s.write("f", "more\n");
            s.git(&["commit", "-qam", "more"]);
        });
        assert_eq!(found, [], "{prepare:?}");
        assert_clean(&scene);
        assert_eq!(scene.read(SETTINGS), "{\"b\": 1}\n");
        assert!(scene.exists(".husky/pre-commit") && scene.exists("sub/.envrc") && !scene.exists(".npmrc"));
        assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "main"])), []);
        assert_clean(&scene);
        assert!(!scene.exists(TASKS) && !scene.exists(".husky") && scene.exists(".npmrc"));
        // The branch has been moved by a command; what it goes back to is as good as before.
        assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "b"])), []);
        assert_clean(&scene);
    }
}

#[test]
fn a_repository_with_longer_names_is_the_same() {
    let scene = scene_with(&["--object-format=sha256"]);
    for prepare in [false, true] {
        if prepare {
            scene.git(&["gc", "-q", "--aggressive", "--prune=now"]);
        }
        assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "b"])), []);
        assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "main"])), []);
        assert_clean(&scene);
    }
}

#[test]
fn deep_chains_of_differences_are_followed() {
    let scene = scene();
    for number in 0..120 {
        for file in 0..30 {
            scene.write(
                format!("dir/file{file}"),
                format!("{file} {}", if file == number % 30 { number } else { 0 }),
            );
        }
        if number == 60 {
            scene.write(TASKS, "{\"then\": true}\n");
        }
        commit(&scene, "work");
    }
    let then = git_says(&scene, &["rev-parse", "HEAD~59"]);
    fs::remove_file(scene.at(TASKS)).unwrap();
    commit(&scene, "without");
    scene.git(&["gc", "-q", "--aggressive", "--prune=now"]);
    let found = scene.report(|s| s.git(&["checkout", "-q", then.trim(), "--", TASKS]));
    assert_eq!(found, []);
    assert_eq!(scene.read(TASKS), "{\"then\": true}\n");
}

#[test]
fn rebase_merge_cherry_pick_and_stash_leave_what_git_put_there() {
    let scene = scene();
    // What is removed on the way is another matter.
    scene.git(&["checkout", "-q", "b"]);
    scene.write(".npmrc", "save-exact=true\n");
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-q", "--amend", "-m", "second"]);
    scene.git(&["checkout", "-q", "main"]);
    scene.write("g", "other\n");
    commit(&scene, "third");
    let found = scene.report(|s| {
        s.git(&["checkout", "-q", "b"]);
        s.git(&["rebase", "-q", "main"]);
    });
    assert_eq!(found, []);
    assert_clean(&scene);
    assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "main"])), []);
    assert_eq!(
        scene.report(|s| s.git(&["merge", "-q", "--no-ff", "-m", "merge", "b"])),
        []
    );
    assert_clean(&scene);
    assert_eq!(scene.report(|s| s.git(&["reset", "-q", "--hard", "HEAD^"])), []);
    assert_eq!(scene.report(|s| s.git(&["cherry-pick", "b"])), []);
    assert_clean(&scene);
    scene.write("f", "not committed\n");
    let found = scene.report(|s| {
        s.git(&["stash"]);
        s.git(&["checkout", "-q", "main~1"]);
        s.git(&["stash", "pop"]);
    });
    assert_eq!(found, []);
}

#[test]
fn a_further_work_tree_and_a_submodule_are_work_trees_as_well() {
    let scene = scene();
    scene.git(&["worktree", "add", "-q", "--detach", "tree", "main"]);
    assert_eq!(
        scene.report(|s| s.git_in("tree", &["checkout", "-q", "--detach", "b"])),
        []
    );
    assert_eq!(scene.read(format!("tree/{SETTINGS}")), "{\"b\": 1}\n");
    let outer = Scene::empty();
    outer.git(&["init", "-q"]);
    outer.git(&["submodule", "add", "-q", scene.root().to_str().unwrap(), "sub"]);
    outer.git_in("sub", &["checkout", "-q", "main"]);
    commit(&outer, "with a submodule");
    assert_eq!(outer.report(|s| s.git_in("sub", &["checkout", "-q", "origin/b"])), []);
    assert_eq!(outer.read(format!("sub/{SETTINGS}")), "{\"b\": 1}\n");
}

#[test]
fn what_a_command_committed_never_stays_not_later_and_not_in_another_session() {
    let scene = scene();
    assert_eq!(scene.report(commit_evil), one(TASKS, Effect::Created));
    for _ in 0..2 {
        let found = scene.report(|s| {
            s.git(&["checkout", "-qf", "main"]);
            s.git(&["checkout", "-qf", "evil"]);
        });
        assert_eq!(found, one(TASKS, Effect::Created));
    }
    // Under other names, and on top of what is trusted.
    for names in [
        &["branch", "-f", "main", "evil"][..],
        &["tag", "v1", "evil"],
        &["update-ref", "refs/stash", "evil"],
    ] {
        let found = scene.report(|s| {
            s.git(names);
            s.git(&["checkout", "-qf", "evil"]);
            s.git(&["pack-refs", "--all"]);
        });
        assert_eq!(found, one(TASKS, Effect::Created));
        let found = scene.report(|s| s.git(&["checkout", "-qf", "evil"]));
        assert_eq!(found, one(TASKS, Effect::Created));
    }
}

#[test]
fn what_the_host_commits_or_merges_between_commands_is_trusted() {
    let scene = scene();
    assert_eq!(scene.report(|_| {}), []);
    scene.git(&["checkout", "-qb", "mine"]);
    scene.write(TASKS, "mine");
    commit(&scene, "mine");
    scene.git(&["checkout", "-q", "main"]);
    assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "mine"])), []);
    assert_eq!(scene.read(TASKS), "mine");
    scene.git(&["checkout", "-q", "main"]);
    assert_eq!(scene.report(commit_evil), one(TASKS, Effect::Created));
    scene.git(&["checkout", "-qf", "main"]);
    assert_eq!(
        scene.report(|s| s.git(&["checkout", "-q", "evil"])),
        one(TASKS, Effect::Created)
    );
    // A person looks at it and takes it.
    scene.git(&["checkout", "-qf", "main"]);
    scene.git(&["merge", "-q", "evil"]);
    scene.git(&["checkout", "-q", "HEAD^"]);
    assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "main"])), []);
    assert_eq!(scene.read(TASKS), "evil");
}

#[test]
fn what_the_host_fetches_is_trusted() {
    let (theirs, scene) = (scene(), scene());
    scene.git(&["remote", "add", "origin", theirs.root().to_str().unwrap()]);
    assert_eq!(scene.report(|_| {}), []);
    theirs.git(&["checkout", "-q", "b"]);
    theirs.write(TASKS, "new");
    commit(&theirs, "new");
    scene.git(&["fetch", "-q", "origin"]);
    assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "--detach", "origin/b"])), []);
    assert_eq!(scene.read(TASKS), "new");
    // What a command fetches is what it likes.
    theirs.write(TASKS, "newer");
    commit(&theirs, "newer");
    let found = scene.report(|s| {
        s.git(&["fetch", "-q", "origin"]);
        s.git(&["checkout", "-q", "--detach", "origin/b"]);
    });
    assert_eq!(found, one(TASKS, Effect::Changed));
}

#[test]
fn refs_that_are_written_by_hand_are_not_trusted() {
    let evil = |scene: &Scene| {
        assert_eq!(scene.report(commit_evil), one(TASKS, Effect::Created));
        scene.git(&["checkout", "-qf", "main"]);
        assert_eq!(scene.report(|_| {}), []);
        git_says(scene, &["rev-parse", "evil"])
    };
    let by_hand: [fn(&Scene, &str); 6] = [
        |s, id| s.write(".git/refs/heads/main", id),
        |s, id| s.write(".git/packed-refs", format!("{} refs/heads/packed\n", id.trim())),
        |s, id| s.write(".git/HEAD", id),
        |s, id| {
            s.write(".git/refs/heads/odd", format!("{} and more", id.trim()));
        },
        |s, id| {
            s.write("elsewhere", id);
            symlink("../../../elsewhere", s.at(".git/refs/heads/link")).unwrap();
        },
        |s, _| nix::unistd::mkfifo(&s.at(".git/refs/heads/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap(),
    ];
    for write in by_hand {
        let scene = scene();
        let id = evil(&scene);
        let checkout = |s: &Scene| {
            s.write(TASKS, "evil");
        };
        let found = scene.report(|s| {
            write(s, &id);
            checkout(s);
        });
        // A link or a pipe is undone as well.
        assert!(found.contains(&one(TASKS, Effect::Created)[0]), "{found:?}");
        assert_eq!(scene.report(checkout), one(TASKS, Effect::Created));
    }
}

#[test]
fn a_link_that_the_host_makes_a_ref_of_is_not_trusted_for_that() {
    let scene = scene();
    assert_eq!(scene.report(commit_evil), one(TASKS, Effect::Created));
    let id = git_says(&scene, &["rev-parse", "evil"]);
    let found = scene.report(|s| {
        s.write(".git/elsewhere", &id);
        symlink("../../elsewhere", s.at(".git/refs/heads/link")).unwrap();
    });
    let links = [".git/elsewhere", ".git/refs/heads/link"];
    assert_eq!(found, links.map(|path| (path.into(), Effect::Created)));
    // Made again by the host, where the command has left it nothing.
    scene.write("elsewhere", &id);
    symlink("../../../elsewhere", scene.at(".git/refs/heads/link")).unwrap();
    let _found = scene.report(|_| {});
    fs::remove_file(scene.at(".git/refs/heads/link")).unwrap();
    scene.write(".git/refs/heads/link", &id);
    assert_eq!(scene.report(|s| s.write(TASKS, "evil")), one(TASKS, Effect::Created));
}

#[test]
fn a_repository_that_a_command_made_is_not_trusted_on_sight() {
    let scene = Scene::empty();
    let found = scene.report(|s| {
        s.git(&["init", "-q", "-b", "main", "new"]);
        s.write(format!("new/{TASKS}"), "evil");
        s.git_in("new", &["add", "-A"]);
        s.git_in("new", &["commit", "-qm", "evil"]);
    });
    assert_eq!(found, one("new/.vscode/tasks.json", Effect::Created));
    for _ in 0..2 {
        let found = scene.report(|s| s.git_in("new", &["checkout", "-qf", "main"]));
        assert_eq!(found, one("new/.vscode/tasks.json", Effect::Created));
    }
    // Another in the place of one that is trusted.
    let scene = self::scene();
    let found = scene.report(|s| {
        s.git(&["clone", "-q", "--no-hardlinks", ".", "copy"]);
        s.git_in("copy", &["checkout", "-qb", "evil"]);
        s.write(format!("copy/{TASKS}"), "evil");
        s.git_in("copy", &["add", "-A"]);
        s.git_in("copy", &["commit", "-qm", "evil"]);
        fs::rename(s.at(".git"), s.at("aside")).unwrap();
        fs::rename(s.at("copy/.git"), s.at(".git")).unwrap();
        s.write(TASKS, "evil");
    });
    assert!(found.contains(&(PathBuf::from(TASKS), Effect::Created)), "{found:?}");
    assert!(!scene.exists(TASKS));
}

/// The loose file of an object.
fn wildcards(id: &str) -> PathBuf {
    Path::new(".git/objects").join(&id[..2]).join(id[2..].trim())
}

#[test]
fn an_object_that_is_not_what_it_is_called_proves_nothing() {
    let scene = scene();
    // The trees of `b`, replaced by those of a commit with other tasks.
    let found = scene.report(|s| {
        s.git(&["checkout", "-q", "b"]);
        s.write(TASKS, "evil");
        commit(s, "evil");
        for name in ["^{tree}", ":.vscode"] {
            let [good, evil] =
                ["HEAD^", "HEAD"].map(|commit| wildcards(&git_says(s, &["rev-parse", &format!("{commit}{name}")])));
            fs::set_permissions(s.at(&good), fs::Permissions::from_mode(0o644)).unwrap();
            fs::copy(s.at(&evil), s.at(&good)).unwrap();
        }
        s.git(&["update-ref", "refs/heads/b", "HEAD^"]);
    });
    assert!(found.contains(&(PathBuf::from(TASKS), Effect::Created)), "{found:?}");
    assert!(found.contains(&(PathBuf::from(SETTINGS), Effect::Changed)), "{found:?}");
}

#[test]
fn objects_elsewhere_prove_nothing_and_hold_nobody_up() {
    let plant: [fn(&Scene); 5] = [
        // All of them elsewhere, where git finds them.
        |s| {
            fs::rename(s.at(".git/objects"), s.at("away")).unwrap();
            s.write(".git/objects/info/alternates", "../../away\n");
        },
        |s| {
            fs::rename(s.at(".git/objects"), s.at("away")).unwrap();
            symlink("../away", s.at(".git/objects")).unwrap();
        },
        // Nobody writes to the other end.
        |s| {
            let path = s.at(wildcards(&git_says(s, &["rev-parse", "b"])));
            fs::remove_file(&path).unwrap();
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        },
        |s| {
            let path = s.at(wildcards(&git_says(s, &["rev-parse", "b^{tree}"])));
            fs::remove_file(&path).unwrap();
            symlink("/dev/zero", &path).unwrap();
        },
        // A gigabyte of nothing in a megabyte.
        |s| {
            use std::io::Write as _;
            let path = s.at(wildcards(&git_says(s, &["rev-parse", "b"])));
            fs::remove_file(&path).unwrap();
            let mut bomb =
                flate2::write::ZlibEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::best());
            bomb.write_all(b"commit 1073741824\0").unwrap();
            for _ in 0..64 {
                bomb.write_all(&vec![0; 1 << 20]).unwrap();
            }
            bomb.finish().unwrap();
        },
    ];
    for plant in plant {
        let scene = scene();
        let guard = scene.guard();
        scene.git(&["checkout", "-q", "b"]);
        plant(&scene);
        let found = whole(guard.settle());
        assert!(found.iter().any(|one| one.path.ends_with(TASKS)), "{found:?}");
        assert_eq!(scene.read(SETTINGS), "{\"main\": 1}\n");
    }
}

#[test]
fn other_content_mode_kind_or_place_than_the_commit_has_is_put_back() {
    type Change = (&'static str, fn(&Scene));
    let scene = scene();
    let change: [Change; 5] = [
        (TASKS, |s| s.write(TASKS, "{\"tasks\": [1]}\n")),
        (TASKS, |s| {
            fs::set_permissions(s.at(TASKS), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        (TASKS, |s| {
            fs::rename(s.at(TASKS), s.at("tasks")).unwrap();
            symlink("../tasks", s.at(TASKS)).unwrap();
        }),
        (TASKS, |s| fs::hard_link(s.at(TASKS), s.at("another")).unwrap()),
        ("sub/.vscode/tasks.json", |s| {
            s.write("sub/.vscode/tasks.json", "{\"tasks\": []}\n");
        }),
    ];
    for (path, change) in change {
        let found = scene.report(|s| {
            s.git(&["checkout", "-qf", "b"]);
            change(s);
        });
        assert_eq!(found, one(path, Effect::Created));
        scene.git(&["reset", "-q", "--hard"]);
        scene.git(&["clean", "-qfdx"]);
        scene.git(&["checkout", "-q", "main"]);
    }
}

#[test]
fn a_tracked_file_may_be_gone_only_where_head_is_without_it() {
    let scene = scene();
    let found = scene.report(|s| fs::remove_file(s.at(".npmrc")).unwrap());
    assert_eq!(found, one(".npmrc", Effect::Removed));
    // A commit of the command's own says nothing.
    let found = scene.report(|s| {
        s.git(&["rm", "-q", ".npmrc"]);
        s.git(&["commit", "-qm", "gone"]);
    });
    assert_eq!(found, one(".npmrc", Effect::Removed));
    assert!(scene.exists(".npmrc"));
    // Nor does one that comes from where the file is still there.
    scene.git(&["reset", "-q", "--hard", "HEAD^"]);
    assert_eq!(
        scene.report(|s| s.git(&["merge", "-q", "--no-ff", "-m", "merge", "b"])),
        one(".npmrc", Effect::Removed)
    );
}

#[test]
fn a_file_that_no_commit_has_is_not_gone_because_head_is_without_it() {
    let scene = scene();
    scene.write(".envrc", "export KEY=1\n");
    let found = scene.report(|s| fs::remove_file(s.at(".envrc")).unwrap());
    assert_eq!(found, one(".envrc", Effect::Removed));
    // Ignored, in a directory that is protected itself, and with a name that a branch has with another content.
    scene.write(".gitignore", ".claude\n");
    commit(&scene, "ignored");
    scene.git(&["checkout", "-q", "b"]);
    for (path, content) in [(".claude/settings.local.json", "{}"), (".npmrc", "mine")] {
        scene.write(path, content);
        scene.report(|s| {
            fs::remove_file(s.at(path)).unwrap();
            let _kept = fs::remove_dir(s.at(".claude"));
        });
        assert_eq!(fs::read_to_string(scene.at(path)).unwrap(), content);
    }
    // The twin: a commit has it so.
    scene.write(".npmrc", "save-exact=true\n");
    assert!(scene.report(|s| fs::remove_file(s.at(".npmrc")).unwrap()).is_empty());
    assert!(!scene.exists(".npmrc"));
}

#[test]
fn files_protected_by_their_path_and_our_own_never_stay() {
    let scene = scene();
    scene.git(&["checkout", "-q", "b"]);
    scene.write("stockade.yaml", "a: 1\n");
    commit(&scene, "with a config");
    scene.git(&["checkout", "-q", "main"]);
    assert_eq!(
        scene.report(|s| s.git(&["checkout", "-q", "b"])),
        one("stockade.yaml", Effect::Created)
    );
    scene.git(&["checkout", "-qf", "main"]);
    let guard = Guard::snapshot(&[scene.root()], &[scene.at(SETTINGS)], &scene.store()).unwrap();
    scene.git(&["checkout", "-q", "b"]);
    let found: Vec<PathBuf> = whole(guard.settle()).into_iter().map(|one| one.path).collect();
    assert_eq!(found, [scene.at(SETTINGS), scene.at("stockade.yaml")]);
}

#[test]
fn where_head_has_another_version_than_what_is_there_that_is_told() {
    let scene = scene();
    let told = |found: Vec<Violation>| {
        found
            .into_iter()
            .map(|one| (one.kind, one.is_other_in_head))
            .collect::<Vec<_>>()
    };
    let found = scene.run(|s| {
        s.write(SETTINGS, "changed");
        s.git(&["commit", "-qam", "changed"]);
    });
    assert_eq!(told(found), [(Effect::Changed, true)]);
    let found = scene.run(|s| s.write(SETTINGS, "changed without a commit"));
    assert_eq!(told(found), [(Effect::Changed, true)], "HEAD is as it was");
    scene.git(&["reset", "-q", "--hard", "HEAD^"]);
    let found = scene.run(|s| s.write(SETTINGS, "changed without a commit"));
    assert_eq!(told(found), [(Effect::Changed, false)]);
    let found = scene.run(|s| s.write(TASKS, "new"));
    assert_eq!(told(found), [(Effect::Created, false)]);
    assert_eq!(told(scene.run(commit_evil)), [(Effect::Created, true)]);
}

#[test]
fn nothing_new_is_trusted_of_what_a_crash_left() {
    let scene = scene();
    assert_eq!(scene.report(|_| {}), []);
    let guard = scene.guard();
    commit_evil(&scene);
    // The journal is unlocked with its owner.
    drop(guard);
    assert_eq!(recover(&scene.store()).violations.len(), 1);
    scene.git(&["checkout", "-qf", "main"]);
    for _ in 0..2 {
        assert_eq!(scene.report(|s| s.write(TASKS, "evil")), one(TASKS, Effect::Created));
    }
    // Of what was trusted before, all still is.
    assert_eq!(scene.report(|s| s.git(&["checkout", "-q", "b"])), []);
    // A journal that somebody removed is no better.
    let guard = scene.guard();
    scene.git(&["checkout", "-qb", "more"]);
    scene.write(TASKS, "more");
    commit(&scene, "more");
    drop(guard);
    for journal in fs::read_dir(scene.store().join("journal")).unwrap() {
        fs::remove_file(journal.unwrap().path()).unwrap();
    }
    scene.git(&["checkout", "-qf", "main"]);
    assert_eq!(scene.report(|s| s.write(TASKS, "more")), one(TASKS, Effect::Created));
}

#[test]
fn what_another_session_moves_meanwhile_is_not_trusted() {
    let scene = scene();
    assert_eq!(scene.report(|_| {}), []);
    let other = scene.guard();
    commit_evil(&scene);
    let guard = scene.guard();
    scene.git(&["checkout", "-qf", "main"]);
    scene.git(&["checkout", "-qf", "evil"]);
    assert_eq!(whole(guard.settle()).len(), 1);
    assert_eq!(whole(other.settle()), []);
    assert_eq!(scene.report(|s| s.write(TASKS, "evil")), one(TASKS, Effect::Created));
    // A session that has only a part of the git directory moves refs as well.
    let guard = Guard::snapshot(&[scene.at(".git/refs")], &[], &scene.store()).unwrap();
    let id = git_says(&scene, &["rev-parse", "evil"]);
    scene.write(".git/refs/heads/main", id);
    assert_eq!(whole(guard.settle()), []);
    assert_eq!(scene.report(|s| s.write(TASKS, "evil")), one(TASKS, Effect::Created));
}

#[test]
fn what_cannot_be_written_down_is_not_trusted() {
    let scene = scene();
    // A file where the folder of records should be.
    fs::write(scene.store().join("tips"), "").unwrap();
    let found = scene.report(|s| s.git(&["checkout", "-q", "b"]));
    assert!(found.contains(&(PathBuf::from(SETTINGS), Effect::Changed)), "{found:?}");
}

#[test]
fn refs_that_are_kept_otherwise_are_not_trusted() {
    let scene = scene();
    fs::create_dir(scene.at(".git/reftable")).unwrap();
    let found = scene.report(|s| s.git(&["checkout", "-q", "b"]));
    assert!(found.contains(&(PathBuf::from(SETTINGS), Effect::Changed)), "{found:?}");
}

#[test]
fn a_directory_that_is_made_again_has_the_mode_it_had() {
    let scene = scene();
    scene.write(".aws/credentials", "mine");
    scene.write("deep/.aws/config", "mine");
    scene.write("deep/file", "");
    commit(&scene, "more");
    let folders = [".aws", ".vscode", "deep/.aws"];
    let modes = [0o700, 0o750, 0o500];
    for (folder, mode) in folders.into_iter().zip(modes) {
        fs::set_permissions(scene.at(folder), fs::Permissions::from_mode(mode)).unwrap();
    }
    let now = || folders.map(|folder| fs::metadata(scene.at(folder)).unwrap().permissions().mode() & 0o7777);
    let remove = || {
        fs::set_permissions(scene.at("deep/.aws"), fs::Permissions::from_mode(0o700)).unwrap();
        for folder in folders {
            fs::remove_dir_all(scene.at(folder)).unwrap();
        }
    };
    assert!(!scene.report(|_| remove()).is_empty());
    assert_eq!((now(), scene.exists("deep/.aws/config")), (modes, true));
    // After a crash, too.
    drop(scene.guard());
    remove();
    assert!(recover(&scene.store()).failures.is_empty());
    assert_eq!(now(), modes);
}
