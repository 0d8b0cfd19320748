//! Families of names, their spelling, and what files of tools name.

use std::fs;
use std::path::PathBuf;

use super::super::referenced::repository::Person;
use super::super::{Effect, Guard, Names, default_names, recover};
use super::{Scene, one, whole};

#[test]
fn every_name_of_the_list_is_taken_away_in_any_spelling() {
    for (pattern, _) in default_names() {
        let path = pattern.replace("/**", "/some/file").replace('*', "any");
        for path in [path.clone(), format!("sub/{}", path.to_ascii_uppercase())] {
            let scene = Scene::empty();
            let found = scene.run(|s| s.write(&path, "./evil"));
            assert!(!found.is_empty() && !scene.exists(&path), "{path}");
        }
    }
}

#[test]
fn a_name_that_is_there_in_another_spelling_is_put_back() {
    for path in [
        ".VSCODE/TASKS.JSON",
        "a/.BashRC",
        "X.Code-Workspace",
        "Stockade.YAML",
        ".Claude/Hooks/x",
    ] {
        let scene = Scene::empty();
        scene.write(path, "mine");
        let found = scene.report(|s| s.write(path, "evil"));
        assert_eq!(found, one(path, Effect::Changed));
        assert_eq!(scene.read(path), "mine");
    }
}

#[test]
fn ordinary_work_beside_the_names_stays() {
    let scene = Scene::empty();
    let names = [
        "Vendor/readme",
        "Target/x",
        "node_modules/a/.npmrc",
        "target/.cargo/config.toml",
        "package.json",
        "AGENTS.md",
        ".gitignore",
        ".editorconfig",
        ".nvmrc",
        ".github/workflows/ci.yml",
        "eslint.config.js",
        "miser.toml",
        ".config/settings",
        ".yarn/cache/x.zip",
        ".pnp.cjs",
        ".cargo/registry/x",
    ];
    let found = scene.run(|s| names.iter().for_each(|name| s.write(name, "work")));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn what_a_file_of_a_tool_names_is_protected() {
    for (file, text, named) in [
        (".yarnrc.yml", "yarnPath: tools/yarn.cjs\n", "tools/yarn.cjs"),
        (
            "rust-toolchain.toml",
            "[toolchain]\npath = \"tools/rust\"\n",
            "tools/rust/bin/cargo",
        ),
        ("sub/.npmrc", "script-shell=./sh\n", "sub/sh"),
        (
            "a/.cargo/config.toml",
            "[build]\nrustc-wrapper = \"tools/w\"\n",
            "a/tools/w",
        ),
        ("bunfig.toml", "preload = [\"./hook.ts\"]\n", "hook.ts"),
        (".envrc", "source_env env/more\n", "env/more"),
    ] {
        for there in [true, false] {
            let scene = Scene::empty();
            scene.write(file, text);
            if there {
                scene.write(named, "mine");
            }
            let found = scene.run(|s| s.write(named, "evil"));
            assert_eq!(found.len(), 1, "{file} {there}: {found:?}");
            assert_eq!(
                fs::read_to_string(scene.at(named)).ok().as_deref(),
                there.then_some("mine"),
                "{file}"
            );
        }
    }
}

#[test]
fn what_a_file_names_may_not_be_all_that_holds_it() {
    let scene = Scene::empty();
    scene.write("rust-toolchain.toml", "[toolchain]\npath = \".\"\n");
    scene.write("a/.npmrc", "script-shell=../\n");
    assert!(scene.run(|s| s.write("src/main.rs", "work")).is_empty());
}

fn guard(scene: &Scene, names: &Names) -> Guard {
    let root = [scene.root()];
    Guard::snapshot_with(&root, &[], names, &scene.store(), &Person::default(), None).unwrap()
}

#[test]
fn a_config_adds_names_and_takes_some_off_also_after_a_crash() {
    let names = Names {
        add: ["deploy.sh", "ops/**", "*.ps1"].map(str::to_owned).to_vec(),
        except: [".idea/**", ".envrc", "stockade.yaml"].map(str::to_owned).to_vec(),
    };
    for crash in [false, true] {
        let scene = Scene::empty();
        scene.write("deploy.sh", "mine");
        let guard = guard(&scene, &names);
        for path in ["Deploy.sh", "deploy.sh", "a/ops/x", "b.PS1", "stockade.yaml", ".vimrc"] {
            scene.write(path, "evil");
        }
        for path in [".idea/x", ".envrc", "other.sh"] {
            scene.write(path, "work");
        }
        let violations = if crash {
            drop(guard);
            recover(&scene.store()).violations
        } else {
            whole(guard.settle())
        };
        let mut found: Vec<PathBuf> = violations.into_iter().map(|one| one.path).collect();
        found.sort();
        let mut expected =
            ["Deploy.sh", "deploy.sh", "a/ops", "b.PS1", "stockade.yaml", ".vimrc"].map(|path| scene.at(path));
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(scene.read("deploy.sh"), "mine");
        assert_eq!(scene.read(".idea/x"), "work");
    }
}

#[test]
fn a_session_with_fewer_names_beside_it_takes_none_from_a_session() {
    let scene = Scene::empty();
    scene.write("deploy.sh", "mine");
    let names = Names {
        add: vec!["deploy.sh".to_owned()],
        except: Vec::new(),
    };
    let other = scene.guard();
    let guard = guard(&scene, &names);
    scene.write("deploy.sh", "evil");
    assert_eq!(whole(guard.settle()).len(), 1);
    assert_eq!(scene.read("deploy.sh"), "mine");
    assert!(whole(other.settle()).is_empty());
}
