//! What protected symlinks lead to.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::super::{Effect, Guard, ProtectError, recover};
use super::{Scene, one, whole};

/// A scene with a link to something.
fn linked(link: &str, target: &str) -> Scene {
    let scene = Scene::empty();
    let place = scene.at(link);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    symlink(target, place).unwrap();
    scene
}

#[test]
fn what_a_protected_link_leads_to_is_protected_like_the_name() {
    for (link, target, file) in [
        (".codex", "d", "d/config.toml"),
        (".bashrc", "shell/rc", "shell/rc"),
        (".mcp.json", "mcp", "mcp"),
        (".envrc", "env/rc", "env/rc"),
        (".vscode", "d", "d/tasks.json"),
        (".vscode/tasks.json", "../tasks", "tasks"),
        (".git/hooks", "../hk", "hk/pre-commit"),
        (".git/hooks/pre-commit", "../../scripts/check", "scripts/check"),
        (".git/config", "../gitconfig", "gitconfig"),
        (".husky", "hk", "hk/pre-commit"),
        (".claude/settings.json", "../agents/s.json", "agents/s.json"),
        (".claude", "./agents/", "agents/hooks/deep/x"),
        (".idea/workspace.xml", "../ws", "ws"),
        (".yarnrc.yml", "yarn", "yarn"),
        (".npmrc", "npm", "npm"),
        (".ssh", "keys", "keys/config"),
        ("sub/.envrc", "../rc", "rc"),
        ("x.code-workspace", "ws", "ws"),
        ("stockade.yaml", "conf", "conf"),
        // What lies below a directory of others' work is protected by its path.
        (".envrc", "target/rc", "target/rc"),
    ] {
        // Where it is there, and where the link leads to nothing yet.
        for there in [true, false] {
            let scene = linked(link, target);
            if there {
                scene.write(file, "mine");
            }
            scene.write("ordinary", "text");
            let what = if there { Effect::Changed } else { Effect::Created };
            let found = scene.run(|s| {
                s.write(file, "evil");
                s.write("ordinary", "other");
            });
            assert!(found.iter().any(|one| one.kind == what), "{link} {there}: {found:?}");
            assert_eq!(
                fs::read_to_string(scene.at(file)).ok().as_deref(),
                there.then_some("mine"),
                "{link}"
            );
            assert_eq!(scene.read("ordinary"), "other");
            assert!(fs::symlink_metadata(scene.at(link)).unwrap().is_symlink(), "{link}");
        }
    }
}

#[test]
fn every_link_on_the_way_is_put_back() {
    let scene = linked(".bashrc", "a");
    symlink("dir/b", scene.at("a")).unwrap();
    symlink("real", scene.at("dir")).unwrap();
    scene.write("real/b", "mine");
    let found = scene.report(|s| {
        fs::remove_file(s.at("a")).unwrap();
        s.write("a", "evil");
    });
    assert_eq!(found, one("a", Effect::Changed));
    let found = scene.report(|s| {
        fs::remove_file(s.at("dir")).unwrap();
        s.write("dir/b", "evil");
    });
    assert!(!found.is_empty());
    let found = scene.report(|s| fs::rename(s.at("real"), s.at("gone")).unwrap());
    assert!(!found.is_empty());
    let found = scene.report(|s| s.write("real/b", "evil"));
    assert_eq!(found, one("real/b", Effect::Changed));
    assert_eq!(fs::read_to_string(scene.at(".bashrc")).unwrap(), "mine");
}

#[test]
fn a_link_that_a_protected_link_leads_to_in_a_directory_is_followed_too() {
    let scene = linked(".claude", "agents");
    scene.write("hooks/run.sh", "mine");
    fs::create_dir(scene.at("agents")).unwrap();
    symlink("../hooks", scene.at("agents/hooks")).unwrap();
    let found = scene.report(|s| s.write("hooks/run.sh", "evil"));
    assert_eq!(found, one("hooks/run.sh", Effect::Changed));
}

#[test]
fn names_below_a_linked_directory_are_protected_and_nothing_else_there_is() {
    let scene = linked(".config", "conf");
    scene.write("conf/fish/config.fish", "mine");
    scene.write("conf/other/settings", "mine");
    let found = scene.report(|s| {
        s.write("conf/fish/config.fish", "evil");
        s.write("conf/other/settings", "new");
        s.write("conf/nvim/init.lua", "evil");
    });
    let mut found: Vec<PathBuf> = found.into_iter().map(|(path, _)| path).collect();
    found.sort();
    assert_eq!(found, ["conf/fish/config.fish", "conf/nvim"].map(PathBuf::from));
    assert_eq!(scene.read("conf/other/settings"), "new");
}

#[test]
fn a_link_on_the_way_of_another_protects_no_more_than_that() {
    let scene = linked(".config", "one");
    symlink("conf", scene.at("one")).unwrap();
    scene.write("conf/other", "mine");
    assert!(scene.run(|s| s.write("conf/other", "work")).is_empty());
    assert_eq!(
        scene.report(|s| s.write("conf/nvim/init.lua", "evil")),
        one("conf/nvim", Effect::Created)
    );
    let found = scene.report(|s| {
        fs::remove_file(s.at("one")).unwrap();
        s.write("one/nvim/init.lua", "evil");
    });
    assert_eq!(found, one("one", Effect::Changed));
}

#[test]
fn a_link_that_goes_round_stays_as_it_was() {
    let scene = linked(".envrc", "round");
    symlink(".envrc", scene.at("round")).unwrap();
    let found = scene.report(|s| {
        fs::remove_file(s.at("round")).unwrap();
        s.write("round", "evil");
    });
    assert_eq!(found, one("round", Effect::Changed));
    assert!(fs::symlink_metadata(scene.at("round")).unwrap().is_symlink());
}

#[test]
fn a_link_to_what_holds_it_starts_nothing_but_for_hooks() {
    for target in [".", "..", "/"] {
        let scene = linked(".codex", target);
        let refused = Guard::snapshot(&[scene.root()], &[], &scene.store());
        let is_ours = matches!(&refused, Err(ProtectError::Unclear(path, _)) if path.ends_with(".codex"));
        // What leads out of all roots, and holds none, leads to nothing that a command may write.
        assert!(is_ours, "{target}: {refused:?}");
    }
    let scene = linked("w/.git/hooks", "..");
    let found = scene.report(|s| {
        s.write("w/pre-commit", "evil");
        s.write("w/src/main.rs", "ordinary");
    });
    assert_eq!(found, one("w/pre-commit", Effect::Created));
}

#[test]
fn what_a_link_out_of_all_roots_leads_to_is_no_concern() {
    let scene = linked(".claude", "../elsewhere");
    fs::create_dir(scene.folder.path().join("elsewhere")).unwrap();
    assert!(scene.run(|s| s.write("elsewhere", "ordinary")).is_empty());
}

#[test]
fn a_link_to_a_text_is_like_any_other() {
    let scene = linked("CLAUDE.md", "AGENTS.md");
    scene.write("AGENTS.md", "be kind");
    assert!(scene.run(|s| s.write("AGENTS.md", "be quick")).is_empty());
}

#[test]
fn a_link_into_another_root_protects_what_is_there() {
    let scene = Scene::empty();
    for root in ["one", "two"] {
        fs::create_dir(scene.at(root)).unwrap();
    }
    scene.write("two/agents/settings.json", "mine");
    symlink(scene.at("two/agents"), scene.at("one/.claude")).unwrap();
    let roots = [scene.at("one"), scene.at("two")];
    let guard = Guard::snapshot(&roots, &[], &scene.store()).unwrap();
    scene.write("two/agents/settings.json", "evil");
    assert_eq!(whole(guard.settle()).len(), 1);
    assert_eq!(scene.read("two/agents/settings.json"), "mine");
}

#[test]
fn what_a_link_leads_to_is_put_back_after_a_crash() {
    let scene = linked(".codex", "d");
    scene.write("d/config.toml", "mine");
    drop(scene.guard());
    scene.write("d/config.toml", "evil");
    scene.write("d/more.toml", "evil");
    let recovered = recover(&scene.store());
    assert!(
        recovered.failures.is_empty() && recovered.violations.len() == 2,
        "{recovered:?}"
    );
    assert_eq!(scene.read("d/config.toml"), "mine");
    assert!(!scene.exists("d/more.toml"));
}

#[test]
fn a_repository_whose_hooks_are_a_link_into_the_work_tree_commits() {
    let scene = Scene::new();
    fs::remove_dir_all(scene.at(".git/hooks")).unwrap();
    scene.write("hooks/post-commit", "#!/bin/sh\n");
    symlink("../hooks", scene.at(".git/hooks")).unwrap();
    scene.git(&["add", "."]);
    scene.git(&["commit", "-qm", "hooks"]);
    let found = scene.run(|s| {
        s.write("file", "more");
        s.git(&["commit", "-qam", "more"]);
        s.git(&["checkout", "-qb", "other"]);
    });
    assert!(found.is_empty(), "{found:?}");
}
