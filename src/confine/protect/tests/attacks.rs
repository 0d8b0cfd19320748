use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::super::naming::names::Names;
use super::super::naming::patterns::Patterns;
use super::super::roots::open_roots;
use super::super::settling::settle::settle;
use super::super::storage::journal;
use super::super::{Effect, Guard};
use super::{Opened, Scene, one, whole};

const EVIL: &str = "[core]\n\tfsmonitor = evil\n";

#[test]
fn a_created_hook_goes_to_quarantine_with_its_content() {
    let scene = Scene::new();
    let found = scene.run(|s| s.write(".git/hooks/pre-commit", "evil"));
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].path.clone(), found[0].kind),
        (scene.at(".git/hooks/pre-commit"), Effect::Created)
    );
    assert!(!scene.exists(".git/hooks/pre-commit"));
    let kept = found[0].quarantined.clone().unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "evil");
    assert!(kept.starts_with(scene.store()));
    let manifest = fs::read_to_string(kept.with_file_name("manifest.json")).unwrap();
    assert!(manifest.contains("hooks/pre-commit"));
}

#[test]
fn an_edited_hook_is_restored() {
    let scene = Scene::new();
    assert_eq!(
        scene.report(|s| s.write(".git/hooks/pre-push", "evil")),
        one(".git/hooks/pre-push", Effect::Changed)
    );
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
}

#[test]
fn a_hook_made_executable_is_made_inert_again() {
    let scene = Scene::new();
    let mode = |bits| fs::set_permissions(scene.at(".git/hooks/pre-push"), fs::Permissions::from_mode(bits)).unwrap();
    mode(0o644);
    assert_eq!(
        scene.report(|_| mode(0o755)),
        one(".git/hooks/pre-push", Effect::Changed)
    );
    assert_eq!(
        fs::metadata(scene.at(".git/hooks/pre-push"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o644
    );
}

#[test]
fn deleted_hooks_come_back() {
    let scene = Scene::new();
    let found = scene.report(|s| fs::remove_dir_all(s.at(".git/hooks")).unwrap());
    assert_eq!(found, one(".git/hooks", Effect::Removed));
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
}

#[test]
fn a_config_that_runs_a_program_is_undone() {
    let scene = Scene::new();
    let before = scene.read(".git/config");
    assert_eq!(
        scene.report(|s| s.git(&["config", "core.fsmonitor", "evil"])),
        one(".git/config", Effect::Changed)
    );
    assert_eq!(scene.read(".git/config"), before);
}

#[test]
fn a_new_config_worktree_or_commondir_that_redirects_is_removed() {
    let scene = Scene::new();
    let found = scene.report(|s| {
        s.write(".git/config.worktree", EVIL);
        s.write(".git/commondir", "../evil\n");
    });
    assert_eq!(found.len(), 2);
    assert!(!scene.exists(".git/config.worktree") && !scene.exists(".git/commondir"));
}

#[test]
fn a_git_directory_replaced_by_a_symlink_comes_back_whole() {
    let scene = Scene::new();
    let found = scene.report(|s| {
        fs::rename(s.at(".git"), s.at("aside")).unwrap();
        s.write("evil/config", EVIL);
        symlink("evil", s.at(".git")).unwrap();
    });
    assert_eq!(found, one(".git", Effect::Removed));
    assert!(fs::symlink_metadata(scene.at(".git")).unwrap().is_dir());
    scene.git(&["log", "-1"]);
    assert!(!scene.exists("aside"));
}

#[test]
fn a_git_directory_replaced_by_a_file_comes_back() {
    let scene = Scene::new();
    let found = scene.report(|s| {
        fs::remove_dir_all(s.at(".git")).unwrap();
        s.write(".git", "gitdir: /elsewhere\n");
    });
    assert_eq!(found, one(".git", Effect::Changed));
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
}

#[test]
fn a_git_directory_moved_away_and_back_changed_is_restored() {
    let scene = Scene::new();
    let found = scene.report(|s| {
        fs::rename(s.at(".git"), s.at("x")).unwrap();
        s.write("x/hooks/post-commit", "evil");
        fs::rename(s.at("x"), s.at(".git")).unwrap();
    });
    assert_eq!(found, one(".git/hooks/post-commit", Effect::Created));
}

#[test]
fn a_git_directory_swapped_for_an_evil_one_is_swapped_back() {
    let scene = Scene::new();
    let found = scene.run(|s| {
        fs::rename(s.at(".git"), s.at("x")).unwrap();
        s.git(&["init", "-q"]);
        s.write(".git/config", EVIL);
    });
    assert!(
        found
            .iter()
            .any(|v| v.path == scene.at(".git") && v.quarantined.is_some()),
        "{found:?}"
    );
    scene.git(&["log", "-1"]);
    assert!(!scene.read(".git/config").contains("evil"));
}

#[test]
fn a_renamed_parent_is_renamed_back_and_what_took_its_place_kept() {
    let scene = Scene::empty();
    scene.write("a/b/.envrc", "mine");
    scene.write("a/b/work", "work");
    let found = scene.report(|s| {
        fs::rename(s.at("a"), s.at("z")).unwrap();
        s.write("a/b/.envrc", "evil");
        s.write("a/b/new", "new");
    });
    assert!(found.contains(&("a".into(), Effect::Removed)), "{found:?}");
    assert_eq!(scene.read("a/b/.envrc"), "mine");
    assert_eq!(scene.read("a/b/work"), "work");
    assert_eq!(scene.read("z/b/new"), "new");
    assert!(!scene.exists("z/b/.envrc"));
}

#[test]
fn parents_turned_inside_out_are_put_right() {
    let scene = Scene::empty();
    scene.write("a/b/.envrc", "mine");
    scene.run(|s| {
        fs::rename(s.at("a/b"), s.at("b")).unwrap();
        fs::rename(s.at("a"), s.at("b/b")).unwrap();
        fs::rename(s.at("b"), s.at("a")).unwrap();
    });
    assert_eq!(scene.read("a/b/.envrc"), "mine");
}

#[test]
fn a_bare_repository_planted_deep_loses_its_teeth() {
    let scene = Scene::empty();
    let found = scene.report(|s| {
        s.write("a/b/c/HEAD", "ref: refs/heads/main\n");
        s.write("a/b/c/config", EVIL);
        s.write("a/b/c/hooks/post-checkout", "evil");
        fs::create_dir(s.at("a/b/c/objects")).unwrap();
        fs::create_dir(s.at("a/b/c/refs")).unwrap();
    });
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(!scene.exists("a/b/c/config") && !scene.exists("a/b/c/hooks/post-checkout"));
}

#[test]
fn the_root_itself_made_a_bare_repository_loses_its_config() {
    let scene = Scene::empty();
    scene.run(|s| {
        s.write("HEAD", "ref: refs/heads/main\n");
        s.write("objects/x", "");
        s.write("refs/x", "");
        s.write("config", EVIL);
    });
    assert!(!scene.exists("config"));
}

#[test]
fn a_plain_file_called_config_stays_where_git_would_not_look() {
    let scene = Scene::empty();
    assert_eq!(scene.report(|s| s.write("a/config", EVIL)), []);
}

#[test]
fn a_name_created_below_a_directory_that_is_then_renamed_is_found() {
    let scene = Scene::empty();
    scene.write("a/b/work", "");
    let found = scene.report(|s| {
        s.write("a/b/.envrc", "evil");
        fs::rename(s.at("a"), s.at("z")).unwrap();
    });
    assert_eq!(found, one("z/b/.envrc", Effect::Created));
    assert!(scene.exists("z/b/work"));
}

#[test]
fn a_nested_submodule_config_and_a_planted_one_are_guarded() {
    let scene = Scene::new();
    scene.git(&["init", "-q", "--bare", ".git/modules/a/b"]);
    let found = scene.report(|s| {
        s.write(".git/modules/a/b/config", EVIL);
        s.write(".git/modules/new/config", EVIL);
    });
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(!scene.read(".git/modules/a/b/config").contains("evil"));
    assert!(!scene.exists(".git/modules/new/config"));
}

#[test]
fn a_worktrees_commondir_is_restored() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "tree"]);
    let found = scene.report(|s| s.write(".git/worktrees/tree/commondir", "/elsewhere\n"));
    assert_eq!(found, one(".git/worktrees/tree/commondir", Effect::Changed));
    scene.git_in("tree", &["status"]);
}

#[test]
fn a_git_file_may_not_lead_through_a_symlink_or_out() {
    for target in [
        "gitdir: /tmp\n",
        "gitdir: link/../.git\n",
        "gitdir: ../nowhere\n",
        "gitdir: ../.git",
    ] {
        let scene = Scene::new();
        let found = scene.report(|s| {
            symlink("/tmp", s.at("link")).unwrap();
            s.write("sub/.git", target);
        });
        assert_eq!(found, one("sub/.git", Effect::Created), "{target}");
    }
    let scene = Scene::new();
    assert_eq!(scene.report(|s| s.write("sub/.git", "gitdir: ../.git\n")), []);
}

#[test]
fn dot_git_counts_in_any_case() {
    let scene = Scene::empty();
    assert_eq!(
        scene.report(|s| s.write("sub/.GiT", "gitdir: x\n")),
        one("sub/.GiT", Effect::Created)
    );
}

/// A new repository `sub` with a commit, as a command would make it.
fn commit(s: &Scene) {
    fs::create_dir_all(s.at("sub")).unwrap();
    s.git_in("sub", &["init", "-q"]);
    s.git_in("sub", &["config", "color.ui", "auto"]);
    s.write("sub/file", "text");
    s.git_in("sub", &["add", "."]);
    s.git_in("sub", &["commit", "-qm", "first"]);
}

#[test]
fn a_new_repository_loses_what_commands_it_and_nothing_else() {
    let scene = Scene::empty();
    let found = scene.run(|s| {
        commit(s);
        s.git_in("sub", &["config", "core.hooksPath", "evil"]);
        s.git_in("sub", &["config", "core.fsmonitor", "evil"]);
        s.write("sub/.git/hooks/pre-commit", "evil");
    });
    let paths: Vec<PathBuf> = found.iter().map(|one| one.path.clone()).collect();
    assert_eq!(
        paths,
        [scene.at("sub/.git/config"), scene.at("sub/.git/hooks/pre-commit")]
    );
    let named = &found[0].settings;
    assert_eq!(named.names, [b"core.hookspath".to_vec(), b"core.fsmonitor".to_vec()]);
    assert_eq!(named.more, 0);
    let kept = fs::read_to_string(found[0].quarantined.as_ref().unwrap()).unwrap();
    assert!(kept.contains("hooksPath = evil"), "{kept}");
    let manifest = found[0].quarantined.as_ref().unwrap().with_file_name("manifest.json");
    assert!(fs::read_to_string(manifest).unwrap().contains("sub/.git/config\""));
    let config = scene.read("sub/.git/config");
    assert!(config.contains("ui = auto") && !config.contains("evil"), "{config}");
    scene.git_in("sub", &["log", "-1"]);
    scene.git_in("sub", &["fsck", "--strict"]);
    assert_eq!(scene.report(|_| {}), []);
}

#[test]
fn whatever_a_new_config_is_the_repository_keeps_its_commits() {
    let evil = "\tfsmonitor = evil\n";
    let texts = [
        format!("{}[core]\n{evil}", "# long\n".repeat(20_000)),
        format!("\u{feff}[core]\n{evil}"),
        format!("[core]\r\n{evil}"),
        format!("[core]\n\tbare = false \\\n{evil}{evil}"),
        format!("[core]\n\tbare = false\n[CORE]\n{evil}"),
        "[core] fsmonitor = evil".to_owned(),
        "[core]\n\tbare = false\n\tfsmonitor".to_owned(),
        "[core \"x\"]\n\tbare = false\n[include]\n\tpath = ../evil\n".to_owned(),
        "[core]\n\tbare = \"\n\tfsmonitor = evil\n".to_owned(),
        format!("[core]; [user]\n{evil}"),
        format!("[core]\n\tbare = false\n# \\\n{evil}"),
        format!("[user]\n\tname = \"evil\n[core]\n{evil}"),
    ];
    for text in &texts {
        let scene = Scene::empty();
        let found = scene.report(|s| {
            commit(s);
            s.write("sub/.git/config", text);
        });
        assert_eq!(found, one("sub/.git/config", Effect::Created), "{text}");
        let left = fs::read_to_string(scene.at("sub/.git/config")).unwrap_or_default();
        assert!(
            !left.contains("fsmonitor") && !left.contains("include]\n\tpath"),
            "{text}: {left}"
        );
        scene.git_in("sub", &["log", "-1"]);
    }
    let kinds: [fn(&Path); 4] = [
        |config| symlink("HEAD", config).unwrap(),
        |config| nix::unistd::mkfifo(config, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        |config| {
            fs::create_dir(config).unwrap();
            fs::write(config.join("x"), "evil").unwrap();
        },
        |config| fs::hard_link(config.with_file_name("HEAD"), config).unwrap(),
    ];
    for make in kinds {
        for name in ["config", "config.worktree"] {
            let scene = Scene::empty();
            let git = Path::new("sub/.git").join(name);
            let found = scene.report(|s| {
                commit(s);
                let _gone = fs::remove_file(s.at(&git));
                make(&s.at(&git));
            });
            assert_eq!(found, one(git.to_str().unwrap(), Effect::Created));
            assert!(!scene.exists(&git));
            scene.git_in("sub", &["log", "-1"]);
        }
    }
}

#[test]
fn a_submodules_work_tree_is_its_own_or_none() {
    let config = |worktree: &str| format!("[core]\n\tbare = false\n\tworktree = {worktree}\n");
    for (worktree, link, stays) in [
        ("../../../sub", "gitdir: ../.git/modules/sub\n", true),
        ("../../../sub", "gitdir: ../.git\n", false),
        ("../../../sub/../other", "gitdir: ../.git/modules/sub\n", false),
        ("../../../link", "gitdir: ../.git/modules/sub\n", false),
        ("../../../../root/sub", "gitdir: ../.git/modules/sub\n", false),
        ("../../..", "gitdir: ../.git/modules/sub\n", false),
        ("/tmp", "gitdir: ../.git/modules/sub\n", false),
    ] {
        let scene = Scene::new();
        let found = scene.report(|s| {
            s.git(&["init", "-q", "--bare", ".git/modules/sub"]);
            s.write(".git/modules/sub/config", config(worktree));
            s.write("sub/.git", link);
            symlink("sub", s.at("link")).unwrap();
        });
        let expected = if stays {
            Vec::new()
        } else {
            one(".git/modules/sub/config", Effect::Created)
        };
        assert_eq!(found, expected, "{worktree} {link}");
        assert_eq!(scene.read(".git/modules/sub/config").contains("worktree"), stays);
    }
}

#[test]
fn of_a_changed_config_the_harmless_part_stays() {
    let scene = Scene::new();
    scene.write(
        ".git/config",
        format!("{}[alias]\n\tst = \"!mine\" ; mine\n", scene.read(".git/config")),
    );
    let before = scene.read(".git/config");
    let found = scene.run(|s| {
        s.git(&["config", "color.ui", "auto"]);
        s.git(&["remote", "add", "origin", "https://example.org/x.git"]);
        s.git(&["config", "alias.st", "!evil"]);
        s.git(&["config", "core.sshCommand", "evil"]);
        fs::set_permissions(s.at(".git/config"), fs::Permissions::from_mode(0o777)).unwrap();
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].settings.names,
        [b"alias.st".to_vec(), b"core.sshcommand".to_vec()]
    );
    let after = scene.read(".git/config");
    assert!(after.starts_with(&before), "{after}");
    assert!(
        after.contains("ui = auto") && after.contains("example.org") && !after.contains("evil"),
        "{after}"
    );
    assert_eq!(
        fs::metadata(scene.at(".git/config")).unwrap().permissions().mode() & 0o777,
        0o644
    );
    assert_eq!(scene.report(|_| {}), []);
    let found = scene.run(|s| s.git(&["remote", "set-url", "origin", "https://example.net/x.git"]));
    assert_eq!(found[0].settings.names, [b"remote.origin.url".to_vec()]);
    assert_eq!(scene.read(".git/config"), after);
}

#[test]
fn a_config_that_was_rewritten_is_never_missing_and_leaves_nothing_beside_it() {
    let scene = Scene::empty();
    scene.run(|s| {
        commit(s);
        s.git_in("sub", &["config", "core.editor", "evil"]);
        fs::set_permissions(s.at("sub/.git"), fs::Permissions::from_mode(0o500)).unwrap();
    });
    let names: Vec<_> = fs::read_dir(scene.at("sub/.git"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| !crate::policy::path::display(name).contains("stockade")),
        "{names:?}"
    );
    assert!(!scene.read("sub/.git/config").contains("evil"));
    fs::set_permissions(scene.at("sub/.git"), fs::Permissions::from_mode(0o755)).unwrap();
    // Where nothing can be kept, it is rewritten all the same.
    let guard = scene.guard();
    scene.write("new/.git/config", "[core]\n\tbare = false\n\teditor = evil\n");
    fs::remove_dir_all(scene.store().join("quarantine")).unwrap();
    fs::write(scene.store().join("quarantine"), "").unwrap();
    let found = whole(guard.settle());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(scene.read("new/.git/config"), "[core]\n\tbare = false\n");
}

#[test]
fn a_name_below_what_others_made_is_not_guarded_but_a_git_directory_is() {
    for place in ["node_modules", "vendor", ".venv", "target"] {
        let scene = Scene::empty();
        scene.write(format!("{place}/a/.husky/pre-commit"), "theirs");
        scene.git(&["init", "-q", &format!("{place}/known")]);
        scene.git(&["init", "-q", &format!("{place}/bare.git"), "--bare"]);
        let found = scene.run(|s| {
            fs::remove_dir_all(s.at(format!("{place}/a"))).unwrap();
            for name in [
                ".envrc",
                "b/.vscode/tasks.json",
                "x.code-workspace",
                "mise.toml",
                "@s/c/.husky/pre-push",
            ] {
                s.write(format!("{place}/{name}"), "theirs");
            }
            symlink("b", s.at(format!("{place}/.claude"))).unwrap();
            s.write(format!("{place}/known/.git/hooks/pre-commit"), "evil");
            s.write(format!("{place}/bare.git/hooks/pre-commit"), "evil");
            s.write(format!("{place}/new/.git/hooks/pre-commit"), "evil");
            s.write(format!("{place}/link/.git"), "gitdir: /elsewhere\n");
        });
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found
                .iter()
                .all(|one| one.path.ends_with("hooks/pre-commit") || one.path.ends_with("link/.git"))
        );
        assert!(!scene.exists(format!("{place}/a")) && scene.exists(format!("{place}/b/.vscode/tasks.json")));
        // One that is called a little differently, lies in something protected, or is the root.
        let found = scene.run(|s| {
            s.write(format!("{}/.envrc", place.to_uppercase()), "evil");
            s.write(format!("{place}s/.envrc"), "evil");
            s.write(format!(".claude/{place}/x"), "evil");
        });
        assert_eq!(found.len(), 3, "{found:?}");
        let guard = Guard::snapshot(&[scene.at(place)], &[], &scene.store()).unwrap();
        scene.write(format!("{place}/d/.envrc"), "evil");
        assert_eq!(whole(guard.settle()).len(), 1);
        // What is protected by its path.
        let mine = scene.at(format!("{place}/conf/mine.yaml"));
        scene.write(&mine, "mine");
        let guard = Guard::snapshot(&[scene.root()], std::slice::from_ref(&mine), &scene.store()).unwrap();
        scene.write(&mine, "evil");
        assert_eq!(whole(guard.settle()).len(), 1);
        assert_eq!(scene.read(&mine), "mine");
    }
}

#[test]
fn each_kind_of_name_is_guarded_and_its_neighbour_is_not() {
    for (name, neighbour) in [
        (".bashrc", "bashrc"),
        (".vscode/tasks.json", ".vscode/notes.md"),
        (".idea/a/b.xml", "idea/a/b.xml"),
        (".claude/hooks/x.sh", "claude/x.sh"),
        (".config/fish/config.fish", ".config/other"),
        ("x.code-workspace", "x.code"),
        (".cargo/config.toml", ".cargo/other"),
        ("stockade.yaml", "stockade.txt"),
        ("mise.toml", "mise.txt"),
        (".hg/hgrc", ".hg/store/x"),
        (".jj/repo/config.toml", ".jj/repo/index/x"),
        (".kiro/hooks/x", "kiro/x"),
        (".opencode/x", ".opencodes"),
        (".Rprofile", ".rprofile.txt"),
        (".vscode/c_cpp_properties.json", ".vscode/x.txt"),
    ] {
        let scene = Scene::empty();
        assert_eq!(scene.report(|s| s.write(neighbour, "x")), [], "{neighbour}");
        assert_eq!(scene.report(|s| s.write(name, "x")).len(), 1, "{name}");
        assert!(!scene.exists(name), "{name}");
    }
}

#[test]
fn a_symlink_where_a_protected_name_needs_a_directory_is_removed() {
    let scene = Scene::empty();
    let found = scene.report(|s| {
        s.write("evil/tasks.json", "evil");
        symlink("evil", s.at(".vscode")).unwrap();
    });
    assert_eq!(found, one(".vscode", Effect::Created));
}

#[test]
fn a_file_protected_by_path_is_restored_and_its_directory_cannot_go() {
    let scene = Scene::empty();
    scene.write("conf/mine.yaml", "mine");
    for attack in [
        (|s: &Scene| s.write("conf/mine.yaml", "evil")) as fn(&Scene),
        |s| fs::remove_dir_all(s.at("conf")).unwrap(),
        |s| fs::rename(s.at("conf"), s.at("x")).unwrap(),
        |s| {
            fs::remove_dir_all(s.at("conf")).unwrap();
            symlink("/tmp", s.at("conf")).unwrap();
        },
    ] {
        let guard = Guard::snapshot(&[scene.root()], &[scene.at("conf/mine.yaml")], &scene.store()).unwrap();
        attack(&scene);
        let found = whole(guard.settle());
        assert!(!found.is_empty() && found.len() < 3, "{found:?}");
        assert_eq!(scene.read("conf/mine.yaml"), "mine");
        assert!(!scene.exists("x"));
    }
}

#[test]
fn a_change_through_another_hard_link_is_undone() {
    let scene = Scene::empty();
    scene.write(".envrc", "mine");
    fs::hard_link(scene.at(".envrc"), scene.at("other")).unwrap();
    assert_eq!(
        scene.report(|s| s.write("other", "evil")),
        one(".envrc", Effect::Changed)
    );
    assert_eq!(scene.read(".envrc"), "mine");
    assert_eq!(scene.read("other"), "evil");
}

#[test]
fn another_name_that_a_command_gave_leads_to_another_file() {
    let scene = Scene::empty();
    scene.write(".git/hooks/pre-commit", "mine");
    scene.write(".git/config", "[core]\n\tbare = false\n");
    scene.write("w/x", "");
    let found = scene.report(|s| {
        fs::hard_link(s.at(".git/hooks/pre-commit"), s.at("w/hook")).unwrap();
        fs::hard_link(s.at(".git/config"), s.at("w/config")).unwrap();
        s.write(".git/config", "[core]\n\tbare = false\n[user]\n\tname = A\n");
    });
    let mut expected = one(".git/config", Effect::Linked);
    expected.extend(one(".git/hooks/pre-commit", Effect::Linked));
    assert_eq!(found, expected);
    // Another command, to which the protected names do not exist.
    scene.write("w/hook", "evil");
    scene.write("w/config", "evil");
    assert_eq!(scene.read(".git/hooks/pre-commit"), "mine");
    assert_eq!(
        scene.read(".git/config"),
        "[core]\n\tbare = false\n[user]\n\tname = A\n"
    );
}

#[test]
fn a_new_repositorys_config_that_has_another_name_does_not_stay() {
    let scene = Scene::empty();
    let found = scene.report(|s| {
        s.write("new/.git/HEAD", "ref: refs/heads/main\n");
        s.write("w/config", "[core]\n\tbare = false\n");
        fs::hard_link(s.at("w/config"), s.at("new/.git/config")).unwrap();
    });
    assert_eq!(found, one("new/.git/config", Effect::Created));
    assert!(!scene.exists("new/.git/config") && scene.exists("new/.git/HEAD"));
}

#[test]
fn other_names_that_a_person_gave_stay() {
    let scene = Scene::empty();
    scene.write(".envrc", "mine");
    fs::hard_link(scene.at(".envrc"), scene.at("backup")).unwrap();
    assert_eq!(scene.report(|s| s.write("x", "")), []);
    assert_eq!(inode(&scene.at(".envrc")), inode(&scene.at("backup")));
}

fn inode(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).unwrap().ino()
}

#[test]
fn a_directory_made_unreadable_hides_nothing() {
    let scene = Scene::empty();
    scene.write("a/work", "");
    let mode = |bits| fs::set_permissions(scene.at("a"), fs::Permissions::from_mode(bits)).unwrap();
    let found = scene.report(|s| {
        s.write("a/.envrc", "evil");
        mode(0);
    });
    assert_eq!(found, one("a/.envrc", Effect::Created));
    mode(0o755);
    assert!(!scene.exists("a/.envrc"));
}

#[test]
fn neither_an_unsearchable_directory_above_nor_an_unwritable_one_keeps_an_intruder() {
    let scene = Scene::empty();
    scene.write("a/b/c/d/work", "");
    let mode = |path: &str, bits| fs::set_permissions(scene.at(path), fs::Permissions::from_mode(bits)).unwrap();
    let found = scene.report(|s| {
        s.write("a/b/c/d/.envrc", "evil");
        s.write("a/b/c/.claude/settings.json", "evil");
        mode("a/b/c/d", 0o555);
        mode("a/b/c/.claude", 0o500);
        mode("a", 0);
    });
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(fs::metadata(scene.at("a")).unwrap().permissions().mode() & 0o777, 0);
    mode("a", 0o755);
    mode("a/b/c/d", 0o755);
    assert!(!scene.exists("a/b/c/d/.envrc") && !scene.exists("a/b/c/.claude"));
}

#[test]
fn a_name_below_the_objects_of_a_git_directory_is_found() {
    for git in [".git", "fake"] {
        let scene = Scene::empty();
        let base = |path: &str| format!("{git}/objects/{path}");
        scene.write(format!("{git}/HEAD"), "ref: refs/heads/main\n");
        scene.write(format!("{git}/refs/x"), "");
        scene.write(base("3d/0123"), "object");
        let found = scene.report(|s| {
            s.write(base("pack/app/.git/hooks/pre-commit"), "evil");
            s.write(base("3d/.envrc"), "evil");
            s.write(base("ab/deep/.vscode/tasks.json"), "evil");
            s.write(base("3d/4567"), "object");
        });
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(!scene.exists(base("pack/app/.git/hooks/pre-commit")));
        assert!(!scene.exists(base("3d/.envrc")) && !scene.exists(base("ab/deep/.vscode/tasks.json")));
        assert!(scene.exists(base("3d/4567")));
    }
}

#[test]
fn a_root_made_unwritable_keeps_no_intruder() {
    for bits in [0o500, 0] {
        let scene = Scene::empty();
        scene.write(".npmrc", "mine");
        let mode = || fs::metadata(scene.root()).unwrap().permissions().mode() & 0o777;
        let before = mode();
        let found = scene.report(|s| {
            s.write(".envrc", "evil");
            s.write(".npmrc", "evil");
            s.write("sub/.envrc", "evil");
            fs::set_permissions(s.root(), fs::Permissions::from_mode(bits)).unwrap();
        });
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(mode(), before);
        assert!(!scene.exists(".envrc") && !scene.exists("sub/.envrc"));
        assert_eq!(scene.read(".npmrc"), "mine");
    }
}

#[test]
fn where_the_store_holds_nothing_more_an_intruder_is_set_aside_and_all_is_restored() {
    let scene = Scene::new();
    let guard = scene.guard();
    scene.write(".git/hooks/pre-push", "evil");
    scene.write(".envrc", "evil");
    scene.write("sub/.claude/settings.json", "evil");
    // As good as a full disk: nothing can be made there.
    fs::write(scene.store().join("quarantine"), "").unwrap();
    let found = whole(guard.settle());
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(!scene.exists(".envrc") && !scene.exists("sub/.claude/settings.json"));
    for violation in &found {
        let kept = violation.quarantined.as_ref().unwrap();
        assert_eq!(kept.parent(), Some(scene.root().as_path()));
        let file = if kept.is_dir() {
            kept.join("settings.json")
        } else {
            kept.clone()
        };
        assert_eq!(fs::read_to_string(file).unwrap(), "evil");
    }
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n");
}

#[test]
fn one_entry_that_cannot_be_restored_keeps_no_other_from_it() {
    let scene = Scene::empty();
    scene.write(".envrc", "mine");
    scene.write("z/.envrc", "mine");
    let guard = scene.guard();
    let mut record = journal::all(&scene.store()).unwrap().pop().unwrap();
    // No file can have such a name.
    assert_eq!(record.entries[0].path, b".envrc");
    record.entries[0].path = vec![b'n'; 300];
    fs::remove_file(scene.at(".envrc")).unwrap();
    scene.write("z/.envrc", "evil");
    scene.write("z/.npmrc", "evil");
    let mut patterns = Patterns::new(&Names::default());
    let roots = open_roots(&[scene.root()], &[], &mut patterns).unwrap();
    let (settled, _) = settle(&roots, &patterns, &record, None, None, &scene.store(), None);
    assert_eq!(settled.errors.len(), 1, "{settled:?}");
    assert_eq!(settled.violations.len(), 2, "{settled:?}");
    assert_eq!(scene.read("z/.envrc"), "mine");
    assert!(!scene.exists("z/.npmrc"));
    drop(guard);
}

#[test]
fn a_chain_of_git_directories_within_each_other_is_undone_to_its_end() {
    let scene = Scene::new();
    let mut path = ".git".to_owned();
    scene.run(|s| {
        for _ in 0..30 {
            path.push_str("/worktrees/a");
            s.write(format!("{path}/commondir"), "../..\n");
            s.write(format!("{path}/gitdir"), "/x/.git\n");
            s.write(format!("{path}/HEAD"), "ref: refs/heads/main\n");
            s.write(format!("{path}/config.worktree"), EVIL);
        }
    });
    let mut path = ".git".to_owned();
    for _ in 0..30 {
        path.push_str("/worktrees/a");
        assert!(!scene.exists(format!("{path}/config.worktree")), "{path}");
    }
}

/// Else the prompt of a person who looks at it would have git obey what lies in it.
#[test]
fn a_directory_that_is_copied_to_another_file_system_is_shut_there() {
    let scene = Scene::empty();
    let shared = Opened(tempfile::tempdir_in("/dev/shm").unwrap());
    let store = shared.path().join("store");
    fs::create_dir(&store).unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(
        device(&store),
        device(&scene.root()),
        "two file systems, or else nothing is copied"
    );
    let guard = Guard::snapshot(&[scene.root()], &[], &store).unwrap();
    scene.write(".claude/.git/config", "[core]\n\tfsmonitor = evil\n");
    let kept = whole(guard.settle())[0].quarantined.clone().unwrap();
    assert!(kept.starts_with(&store), "{kept:?}");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0);
}

#[test]
fn what_a_copy_would_cost_too_much_for_is_set_aside_whole() {
    let scene = Scene::empty();
    // Two file systems, or else nothing is copied.
    let Ok(shared) = tempfile::tempdir_in("/dev/shm").map(Opened) else {
        return;
    };
    let store = shared.path().join("store");
    fs::create_dir(&store).unwrap();
    if fs::metadata(&store).unwrap().dev() == fs::metadata(scene.root()).unwrap().dev() {
        return;
    }
    let guard = Guard::snapshot(&[scene.root()], &[], &store).unwrap();
    scene.write(".envrc", "small");
    fs::create_dir(scene.at("big")).unwrap();
    fs::File::create(scene.at("big/.envrc"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let secret = fs::Permissions::from_mode(0o200);
    fs::set_permissions(scene.at("big/.envrc"), secret.clone()).unwrap();
    let mut deep = scene.at("wide/.claude");
    for number in 0..40 {
        deep = deep.join(format!("d{number}"));
        fs::create_dir_all(deep.join("beside/below")).unwrap();
        fs::write(deep.join("beside/below/file"), "x").unwrap();
    }
    for number in 0..11_000 {
        fs::write(scene.at("wide/.claude").join(number.to_string()), "").unwrap();
    }
    let found = whole(guard.settle());
    assert_eq!(found.len(), 3, "{found:?}");
    for violation in &found {
        let kept = violation.quarantined.as_ref().unwrap();
        assert!(violation.path.symlink_metadata().is_err());
        assert_eq!(
            kept.starts_with(scene.root()),
            violation.path != scene.at(".envrc"),
            "{kept:?}"
        );
    }
    let large = fs::metadata(scene.at("stockade-quarantine-0-.envrc.kept")).unwrap();
    assert_eq!((large.len(), large.permissions().mode() & 0o777), (1 << 40, 0o200));
    assert_eq!(
        fs::read_dir(scene.at("stockade-quarantine-0-.claude.kept"))
            .unwrap()
            .count(),
        11_001
    );
    // Of what can be kept in part nothing is copied: the small file is beside the large one.
    let guard = Guard::snapshot(&[scene.root()], &[], &store).unwrap();
    scene.write(".idea/first", "precious");
    fs::File::create(scene.at(".idea/second"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let kept = whole(guard.settle())[0].quarantined.clone().unwrap();
    assert_eq!(kept, scene.at("stockade-quarantine-0-.idea.kept"));
    assert_eq!(fs::read_to_string(kept.join("first")).unwrap(), "precious");
    // And no command is kept from starting by it, nor is it taken again.
    let guard = Guard::snapshot(&[scene.root()], &[], &store).unwrap();
    assert_eq!(whole(guard.settle()), []);
}

#[test]
fn what_cannot_even_be_renamed_stays_and_is_an_error() {
    let scene = Scene::empty();
    let guard = scene.guard();
    scene.write("sub/.envrc", "evil");
    // Nobody but root can make a file immutable; a mount point cannot be renamed either.
    let immutable = |set: &str| {
        #[expect(clippy::disallowed_methods, reason = "plays what no command can do")]
        let done = std::process::Command::new("chattr")
            .arg(set)
            .arg(scene.at("sub/.envrc"))
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    if !immutable("+i") {
        return;
    }
    let settled = guard.settle();
    assert!(immutable("-i"));
    assert_eq!(scene.read("sub/.envrc"), "evil");
    let told = settled.errors.iter().map(ToString::to_string).collect::<String>();
    assert!(
        told.contains("sub/.envrc could not be moved away") && told.contains("still there"),
        "{told}"
    );
}

#[test]
fn files_that_a_repositorys_config_leads_git_to_are_guarded() {
    let scene = Scene::new();
    scene.write("tools/hooks/pre-commit", "mine");
    scene.write(
        "shared.inc",
        "[user]\n\tname = A\n[include]\n\tpath = more/deeper.inc\n",
    );
    scene.git(&["config", "core.hooksPath", "tools/hooks"]);
    scene.git(&["config", "include.path", "../shared.inc"]);
    scene.git(&["config", "includeIf.onbranch:x.path", "../missing.inc"]);
    for _ in 0..2 {
        let found = scene.report(|s| {
            s.write("tools/hooks/pre-commit", "evil");
            s.write("tools/hooks/post-commit", "evil");
            s.write("shared.inc", EVIL);
            s.write("missing.inc", EVIL);
            s.write("more/deeper.inc", EVIL);
            s.write("tools/other", "work");
            s.write("other.inc", EVIL);
        });
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(scene.read("tools/hooks/pre-commit"), "mine");
        assert!(!scene.exists("tools/hooks/post-commit") && !scene.exists("missing.inc"));
        assert!(!scene.exists("more/deeper.inc") && scene.read("shared.inc").contains("name = A"));
        assert!(scene.exists("tools/other") && scene.exists("other.inc"));
    }
    // The whole work tree is no directory of hooks that could be kept as it is.
    scene.git(&["config", "core.hooksPath", "."]);
    let found = scene.report(|s| {
        s.write("pre-commit", "evil");
        s.write("work", "work");
    });
    assert_eq!(found, one("pre-commit", Effect::Created));
}
