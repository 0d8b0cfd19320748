//! Repositories around a root, and settings that lie outside of all roots, beside what has nothing to do with either.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;

use super::super::referenced::repository::Person;
use super::super::{Effect, Guard, Names, ProtectError};
use super::{Scene, whole};

/// What a command changed below one of `roots`, as path below the scene's root and what happened.
fn report(scene: &Scene, roots: &[&str], person: &Person, command: impl FnOnce(&Scene)) -> Vec<(PathBuf, Effect)> {
    let guard = start(scene, roots, person).unwrap();
    command(scene);
    let found = whole(guard.settle()).into_iter();
    found
        .map(|v| (v.path.strip_prefix(scene.root()).unwrap().to_owned(), v.kind))
        .collect()
}

fn start(scene: &Scene, roots: &[&str], person: &Person) -> Result<Guard, ProtectError> {
    let roots: Vec<PathBuf> = roots.iter().map(|root| scene.at(root)).collect();
    Guard::snapshot_with(&roots, &[], &Names::default(), &scene.store(), person, None)
}

/// A person whose home is `home` in the scene, and whose settings are there alone.
fn person(scene: &Scene) -> Person {
    Person::of([scene.at("home").as_path()], |name| {
        (name == "GIT_CONFIG_SYSTEM").then(|| PathBuf::from("/dev/null"))
    })
}

fn created(paths: &[&str]) -> Vec<(PathBuf, Effect)> {
    paths
        .iter()
        .map(|path| (PathBuf::from(path), Effect::Created))
        .collect()
}

fn none() -> Person {
    Person::default()
}

#[test]
fn a_root_in_a_git_directory_without_that_name_is_guarded_as_a_part_of_it() {
    let scene = Scene::empty();
    scene.git(&["init", "-q", "--bare", "repo.git"]);
    scene.git(&["init", "-q", "--separate-git-dir=apart", "work"]);
    for git in ["repo.git", "apart"] {
        let (hooks, modules, plain) = (format!("{git}/hooks"), format!("{git}/modules"), format!("{git}/plain"));
        for folder in [&modules, &plain] {
            fs::create_dir(scene.at(folder)).unwrap();
        }
        let found = report(&scene, &[&hooks, &modules, &plain], &none(), |s| {
            s.write(format!("{hooks}/post-checkout"), "evil");
            s.write(format!("{modules}/sub/config"), "[core]\n\tfsmonitor = evil\n");
            // What is not run or obeyed is written.
            s.write(format!("{modules}/sub/description"), "work");
            s.write(format!("{plain}/post-checkout"), "work");
        });
        assert_eq!(
            found,
            created(&[&format!("{hooks}/post-checkout"), &format!("{modules}/sub/config")])
        );
        assert!(scene.exists(format!("{plain}/post-checkout")) && scene.exists(format!("{modules}/sub/description")));
    }
}

#[test]
fn hooks_that_a_config_leads_to_are_guarded_where_names_are_not() {
    let scene = Scene::new();
    scene.write("node_modules/h/hooks/pre-commit", "mine");
    scene.git(&["config", "core.hooksPath", "node_modules/h/hooks"]);
    let found = scene.report(|s| {
        s.write("node_modules/h/hooks/pre-commit", "evil");
        s.write("node_modules/h/.envrc", "theirs");
    });
    assert_eq!(
        found,
        [(PathBuf::from("node_modules/h/hooks/pre-commit"), Effect::Changed)]
    );
    assert_eq!(scene.read("node_modules/h/hooks/pre-commit"), "mine");
}

#[test]
fn a_directory_called_hooks_in_anything_else_is_one_like_any_other() {
    let scene = Scene::empty();
    // Two of the three names by which git knows its directories.
    scene.write("lib/HEAD", "");
    scene.write("lib/refs", "");
    scene.write("lib/hooks/existing", "mine");
    let found = report(&scene, &["lib/hooks"], &none(), |s| {
        s.write("lib/hooks/post-checkout", "work");
    });
    assert_eq!(found, []);
    scene.write("lib/objects", "");
    let found = report(&scene, &["lib/hooks"], &none(), |s| {
        s.write("lib/hooks/pre-push", "evil");
    });
    assert_eq!(found, created(&["lib/hooks/pre-push"]));
}

#[test]
fn what_is_recovered_after_a_crash_knows_the_repository_around_the_root() {
    let scene = Scene::empty();
    scene.git(&["init", "-q", "--bare", "repo.git"]);
    drop(start(&scene, &["repo.git/hooks", "repo.git/info"], &none()).unwrap());
    scene.write("repo.git/hooks/post-update", "evil");
    scene.write("repo.git/info/post-update", "work");
    let recovered = super::super::recover(&scene.store());
    assert!(recovered.failures.is_empty(), "{:?}", recovered.failures);
    assert!(!scene.exists("repo.git/hooks/post-update"));
    assert!(scene.exists("repo.git/info/post-update"));
}

#[test]
fn the_config_of_a_repository_around_the_root_is_read_however_git_finds_it() {
    let scene = Scene::new();
    scene.git(&["branch", "other"]);
    scene.git(&["worktree", "add", "-q", "tree", "other"]);
    scene.git(&["init", "-q", "--separate-git-dir=apart", "work"]);
    scene.git(&["init", "-q", "--bare", "repo.git"]);
    for (place, repository) in [(".", "."), ("tree", "."), ("work", "work"), ("repo.git", "repo.git")] {
        let (tools, inc) = (format!("{place}/tools"), format!("{place}/tools/git.inc"));
        scene.git_in(repository, &["config", "core.hooksPath", "tools/hooks"]);
        scene.git_in(
            repository,
            &["config", "include.path", scene.at(&inc).to_str().unwrap()],
        );
        fs::create_dir_all(scene.at(&tools).join("hooks")).unwrap();
        let found = report(&scene, &[&tools], &none(), |s| {
            s.write(format!("{tools}/hooks/pre-commit"), "evil");
            s.write(&inc, "[core]\n\tfsmonitor = evil\n");
            s.write(format!("{tools}/pre-commit"), "work");
            s.write(format!("{tools}/other.inc"), "work");
        });
        assert_eq!(found.len(), 2, "{place}: {found:?}");
        assert!(
            !scene.exists(format!("{tools}/hooks/pre-commit")) && !scene.exists(&inc),
            "{place}"
        );
        assert!(scene.exists(format!("{tools}/pre-commit")) && scene.exists(format!("{tools}/other.inc")));
        scene.git_in(repository, &["config", "--unset", "core.hooksPath"]);
        scene.git_in(repository, &["config", "--unset", "include.path"]);
    }
}

#[test]
fn a_root_that_is_the_directory_of_hooks_or_lies_in_it_stays_as_it_is() {
    let scene = Scene::new();
    scene.write("tools/hooks/lib/helper", "mine");
    scene.write("tools/hooks2/existing", "mine");
    scene.git(&["config", "core.hooksPath", "tools/hooks"]);
    for root in ["tools/hooks", "tools/hooks/lib"] {
        let found = report(&scene, &[root, "tools/hooks2"], &none(), |s| {
            s.write(format!("{root}/new"), "evil");
        });
        assert_eq!(found, created(&[&format!("{root}/new")]));
        let found = report(&scene, &["tools/hooks2"], &none(), |s| {
            s.write("tools/hooks2/new", "work");
        });
        assert_eq!(found, []);
    }
    // The work tree itself as the directory of hooks: the rest of it is for work.
    scene.git(&["config", "core.hooksPath", "."]);
    scene.git(&["worktree", "add", "-q", "tree"]);
    let found = report(&scene, &["tree"], &none(), |s| {
        s.write("tree/pre-commit", "evil");
        s.write("tree/work", "work");
    });
    assert_eq!(found, created(&["tree/pre-commit"]));
}

#[test]
fn a_git_file_in_a_root_leads_to_the_config_of_a_repository_outside() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "tree"]);
    scene.git(&["config", "core.hooksPath", "scripts"]);
    let found = report(&scene, &["tree"], &none(), |s| {
        s.write("tree/scripts/pre-commit", "evil");
        s.write("tree/other/pre-commit", "work");
    });
    assert_eq!(found, created(&["tree/scripts"]));
    assert!(scene.exists("tree/other/pre-commit"));
    // One that leads nowhere makes no repository, for git neither.
    scene.write("plain/.git", "gitdir: ../nowhere\n");
    scene.write("link/x", "");
    symlink("../nowhere", scene.at("link/.git")).unwrap();
    let found = report(&scene, &["plain", "link"], &none(), |s| {
        s.write("plain/scripts/pre-commit", "work");
    });
    assert_eq!(found, []);
}

#[test]
fn a_persons_own_settings_lead_git_into_a_root() {
    let scene = Scene::new();
    let person = person(&scene);
    scene.write("work/x", "");
    let try_all = || {
        let found = report(&scene, &["work"], &person, |s| {
            s.write("work/hooks/pre-commit", "evil");
            s.write("work/git.inc", "[core]\n\tfsmonitor = evil\n");
            s.write("work/other", "work");
        });
        assert!(scene.exists("work/other"));
        let _gone = fs::remove_dir_all(scene.at("work/hooks"));
        let _gone = fs::remove_file(scene.at("work/git.inc"));
        found
    };
    assert_eq!(try_all(), []);
    let root = scene.root();
    scene.write(
        "home/.gitconfig",
        format!("[core]\n\thooksPath = {}/work/hooks\n", root.display()),
    );
    assert_eq!(try_all(), created(&["work/hooks"]));
    // Relative to the work tree of whatever repository; and `~` is the home.
    scene.write("home/.gitconfig", "[include]\n\tpath = ~/more\n");
    scene.write(
        "home/more",
        "[core]\n\thooksPath = work/hooks\n[include]\n\tpath = ../work/git.inc\n",
    );
    assert_eq!(try_all(), created(&["work/git.inc", "work/hooks"]));
    fs::remove_file(scene.at("home/.gitconfig")).unwrap();
    scene.write("home/.config/git/config", "[core]\n\thooksPath = ~/../work/hooks\n");
    assert_eq!(try_all(), created(&["work/hooks"]));
}

#[test]
fn hooks_of_a_person_that_are_links_into_a_root_lead_to_scripts_that_stay() {
    let scene = Scene::empty();
    let person = person(&scene);
    scene.write("home/.gitconfig", "[core]\n\thooksPath = ~/.githooks\n");
    scene.write("home/.githooks/commit-msg", "mine");
    scene.write("dots/h/real/pre-commit", "mine");
    symlink("real", scene.at("dots/h/way")).unwrap();
    symlink("../../dots/h/way/pre-commit", scene.at("home/.githooks/pre-commit")).unwrap();
    symlink("../../dots/new", scene.at("home/.githooks/pre-push")).unwrap();
    symlink("../../dots/h/helper", scene.at("home/.githooks/helper")).unwrap();
    let found = report(&scene, &["dots"], &person, |s| {
        fs::remove_file(s.at("dots/h/way")).unwrap();
        s.write("dots/h/way/pre-commit", "evil");
        s.write("dots/h/real/pre-commit", "evil");
        s.write("dots/new", "evil");
        s.write("dots/h/helper", "work");
    });
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(scene.read("dots/h/way/pre-commit"), "mine");
    assert!(!scene.exists("dots/new") && scene.exists("dots/h/helper"));
}

#[test]
fn settings_behind_links_are_those_that_git_reads() {
    let scene = Scene::empty();
    let person = person(&scene);
    fs::create_dir(scene.at("home")).unwrap();
    scene.write("dots/gitconfig", "[core]\n\thooksPath = ~/hooks\n");
    scene.write("dots/tools/pre-commit", "mine");
    symlink("../dots/gitconfig", scene.at("home/.gitconfig")).unwrap();
    symlink("../dots/tools", scene.at("home/hooks")).unwrap();
    let found = report(&scene, &["dots"], &person, |s| {
        s.write("dots/gitconfig", "[core]\n\tfsmonitor = evil\n");
        s.write("dots/tools/pre-commit", "evil");
        s.write("dots/other", "work");
    });
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(scene.read("dots/tools/pre-commit"), "mine");
    assert!(scene.read("dots/gitconfig").contains("hooksPath") && scene.exists("dots/other"));
}

#[test]
fn what_may_lead_git_into_a_root_and_cannot_be_read_refuses_the_start() {
    let scene = Scene::new();
    scene.write("work/x", "");
    let refuses = |person: &Person| start(&scene, &["work"], person).is_err();
    assert!(!refuses(&none()));
    let config = scene.read(".git/config");
    let replaced = |make: &dyn Fn(&Path)| {
        let path = scene.at(".git/config");
        fs::remove_file(&path).unwrap();
        make(&path);
        let answer = refuses(&none());
        fs::remove_file(&path).unwrap();
        fs::write(&path, &config).unwrap();
        answer
    };
    // Nothing is waited for, and nothing read without end.
    assert!(replaced(&|path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap()));
    assert!(replaced(&|path| symlink("/dev/zero", path).unwrap()));
    assert!(replaced(&|path| fs::File::create(path)
        .unwrap()
        .set_len(1 << 30)
        .unwrap()));
    assert!(!replaced(&|path| symlink("/dev/null", path).unwrap()));
    assert!(!refuses(&none()));
    // Somebody's settings, likewise.
    let person = person(&scene);
    fs::create_dir(scene.at("home")).unwrap();
    assert!(!refuses(&person));
    nix::unistd::mkfifo(&scene.at("home/.gitconfig"), Mode::S_IRWXU).unwrap();
    assert!(refuses(&person));
    fs::remove_file(scene.at("home/.gitconfig")).unwrap();
    fs::create_dir(scene.at("home/.gitconfig")).unwrap();
    assert!(!refuses(&person));
}

#[test]
fn a_path_of_any_bytes_in_a_config_leads_to_the_same_place() {
    let scene = Scene::new();
    let name = std::ffi::OsStr::from_bytes(b"t\xff ls");
    fs::create_dir(scene.at(name)).unwrap();
    let config = [
        scene.read(".git/config").as_bytes(),
        b"[core]\n\thooksPath = \"t\xff ls/hooks\"\n",
    ]
    .concat();
    fs::write(scene.at(".git/config"), config).unwrap();
    let guard = Guard::snapshot(&[scene.at(name)], &[], &scene.store()).unwrap();
    scene.write(Path::new(name).join("hooks/pre-push"), "evil");
    scene.write(Path::new(name).join("other"), "work");
    assert_eq!(whole(guard.settle()).len(), 1);
    assert!(scene.exists(Path::new(name).join("other")) && !scene.exists(Path::new(name).join("hooks/pre-push")));
}

/// A scene with a repository whose config is this, and a root `tools` in it.
fn configured(text: &str) -> Scene {
    let scene = Scene::new();
    fs::create_dir_all(scene.at("tools/sub")).unwrap();
    let config = fs::read_to_string(scene.at(".git/config")).unwrap();
    scene.write(".git/config", format!("{config}\n{text}\n"));
    scene
}

#[test]
fn a_directory_of_hooks_that_is_not_there_yet_is_found_through_links() {
    for (value, links) in [
        ("lnk/h", &[("lnk", "tools")][..]),
        ("lnk", &[("lnk", "tools/h")]),
        ("one/h", &[("one", "two"), ("two", "tools")]),
    ] {
        for root in [".", "tools"] {
            let scene = configured(&format!("[core]\n\thooksPath = {value}"));
            for (link, target) in links {
                symlink(target, scene.at(link)).unwrap();
            }
            let found = report(&scene, &[root], &none(), |s| {
                s.write("tools/h/pre-commit", "evil");
                s.write("tools/other", "work");
            });
            assert!(!scene.exists("tools/h/pre-commit"), "{value} below {root}: {found:?}");
            assert!(scene.exists("tools/other"), "{value} below {root}");
        }
    }
}

#[test]
fn a_way_that_leaves_a_directory_in_a_root_again_is_refused() {
    for (value, root, is_refused) in [
        ("lnk/../h", ".", true),
        ("lnk/../h", "tools", true),
        ("lnk/../h", "other", false),
        ("tools/../h", ".", true),
        ("tools/../h", "tools", false),
        ("../h", ".", false),
    ] {
        let scene = configured(&format!("[core]\n\thooksPath = {value}"));
        symlink("tools/sub", scene.at("lnk")).unwrap();
        fs::create_dir_all(scene.at("other")).unwrap();
        let started = Guard::snapshot(&[scene.at(root)], &[], &scene.store());
        match started {
            Ok(guard) => {
                assert!(!is_refused, "{value} below {root}");
                assert!(guard.settle().errors.is_empty());
            }
            Err(error) => assert!(
                is_refused && error.to_string().contains("write the path without"),
                "{error}"
            ),
        }
    }
}

#[test]
fn so_is_one_that_a_persons_settings_or_a_hook_around_the_root_takes() {
    let is_refused = |scene: &Scene, person: &Person| match start(scene, &["tools"], person) {
        Ok(guard) => {
            assert!(guard.settle().errors.is_empty());
            false
        }
        Err(error) => error.to_string().contains("write the path without"),
    };
    let detour = "tools/sub/../h";
    let scene = configured("");
    assert!(!is_refused(&scene, &person(&scene)));
    scene.write(
        "home/.gitconfig",
        format!("[core]\n\thooksPath = {}\n", scene.at(detour).display()),
    );
    assert!(is_refused(&scene, &person(&scene)));
    let scene = configured("");
    fs::create_dir_all(scene.at("home")).unwrap();
    symlink(scene.at(detour), scene.at("home/.gitconfig")).unwrap();
    assert!(is_refused(&scene, &person(&scene)));
    let scene = configured("");
    symlink(scene.at(detour), scene.at(".git/hooks/pre-commit")).unwrap();
    assert!(is_refused(&scene, &none()));
    let scene = configured("");
    fs::rename(scene.at(".git/config"), scene.at("tools/h")).unwrap();
    symlink(scene.at(detour), scene.at(".git/config")).unwrap();
    assert!(is_refused(&scene, &none()));
}

#[test]
fn an_included_file_that_is_not_there_yet_is_found_through_links() {
    let scene = configured("[include]\n\tpath = ../cfg/team.gitconfig");
    symlink("tools", scene.at("cfg")).unwrap();
    report(&scene, &["."], &none(), |s| {
        s.write("tools/team.gitconfig", "[core]\n\tfsmonitor = evil\n");
        s.write("tools/other", "work");
    });
    assert!(!scene.exists("tools/team.gitconfig") && scene.exists("tools/other"));
}

#[test]
fn settings_that_only_git_s_own_reading_finds_are_found() {
    let me = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
    for text in [
        "[core] hooksPath = tools/h # see [1]",
        "[core]\nhooksPath = tools\\\n/h",
        "[core]\n editor = x \\\n[a]\n hooksPath = tools/h",
    ] {
        let scene = configured(text);
        report(&scene, &["tools"], &none(), |s| s.write("tools/h/pre-commit", "evil"));
        assert!(!scene.exists("tools/h/pre-commit"), "{text}");
    }
    let scene = configured("");
    let climb = "../".repeat(me.dir.components().count());
    let below = scene.at("tools/h");
    let hooks = format!(
        "~{}/{climb}{}",
        me.name,
        below.to_str().unwrap().trim_start_matches('/')
    );
    scene.git(&["config", "core.hooksPath", &hooks]);
    report(&scene, &["tools"], &none(), |s| s.write("tools/h/pre-commit", "evil"));
    assert!(!scene.exists("tools/h/pre-commit"), "{hooks}");
}

#[test]
fn an_include_that_was_met_deep_in_a_chain_is_followed_when_it_is_met_again() {
    let scene = configured("[includeIf \"gitdir:/nowhere/\"]\n\tpath = ../c1\n[include]\n\tpath = ../c10");
    for n in 1..=10 {
        scene.write(format!("c{n}"), format!("[include]\n\tpath = c{}\n", n + 1));
    }
    scene.write("c11", "[core]\n\thooksPath = tools/h\n");
    report(&scene, &["tools"], &none(), |s| s.write("tools/h/pre-commit", "evil"));
    assert!(!scene.exists("tools/h/pre-commit"));
}

#[test]
fn more_includes_than_are_read_are_refused() {
    let many = |count: usize| {
        let scene = configured("[include]\n\tpath = ../all");
        let lines = (0..count).map(|n| format!("[include] path = i{n}\n"));
        scene.write("all", lines.collect::<String>());
        start(&scene, &["tools"], &none()).map(drop)
    };
    assert!(many(500).is_ok());
    assert!(matches!(many(3_000), Err(ProtectError::Unclear(..))));
}

#[test]
fn what_is_around_a_root_and_no_repository_changes_nothing() {
    let scene = Scene::empty();
    fs::create_dir_all(scene.at("a/p")).unwrap();
    // A config alone, links that go round, and a file that leads nowhere.
    scene.write("a/.git/config", "[core]\n\thooksPath = p\n");
    let writes = |scene: &Scene| {
        let found = report(scene, &["a/p"], &none(), |s| s.write("a/p/pre-commit", "work"));
        assert_eq!(found, []);
        fs::remove_file(scene.at("a/p/pre-commit")).unwrap();
    };
    writes(&scene);
    fs::remove_dir_all(scene.at("a/.git")).unwrap();
    symlink(".git", scene.at("a/.git")).unwrap();
    writes(&scene);
    fs::remove_file(scene.at("a/.git")).unwrap();
    scene.write("a/.git", format!("gitdir: /{}", "long".repeat(100)));
    writes(&scene);
    // The twin: a repository with that setting.
    fs::remove_file(scene.at("a/.git")).unwrap();
    scene.git_in("a", &["init", "-q"]);
    scene.git_in("a", &["config", "core.hooksPath", "p"]);
    let found = report(&scene, &["a/p"], &none(), |s| s.write("a/p/pre-commit", "evil"));
    assert_eq!(found, created(&["a/p/pre-commit"]));
}

#[test]
fn hooks_of_all_repositories_above_a_root_leave_it_alone() {
    let scene = Scene::empty();
    fs::create_dir_all(scene.at("work/p")).unwrap();
    scene.write(
        "home/.gitconfig",
        format!("[core]\n\thooksPath = {}\n", scene.at("work").display()),
    );
    let person = person(&scene);
    let found = report(&scene, &["work/p"], &person, |s| s.write("work/p/pre-commit", "work"));
    assert_eq!(found, []);
    let found = report(&scene, &["work"], &person, |s| s.write("work/pre-commit", "evil"));
    assert_eq!(found, created(&["work/pre-commit"]));
}

#[test]
fn a_stranger_s_repository_around_a_root_is_obeyed_where_a_setting_says_so() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let scene = Scene::empty();
    fs::create_dir_all(scene.at("a/p")).unwrap();
    scene.git_in("a", &["init", "-q"]);
    scene.git_in("a", &["config", "core.hooksPath", "p"]);
    std::os::unix::fs::chown(scene.at("a/.git"), Some(4_321), Some(4_321)).unwrap();
    scene.write("home/.gitconfig", "");
    let found = report(&scene, &["a/p"], &person(&scene), |s| s.write("a/p/pre-commit", "work"));
    assert_eq!(found, []);
    fs::remove_file(scene.at("a/p/pre-commit")).unwrap();
    scene.write("home/.gitconfig", "[safe]\n\tdirectory = *\n");
    let found = report(&scene, &["a/p"], &person(&scene), |s| s.write("a/p/pre-commit", "evil"));
    assert_eq!(found, created(&["a/p/pre-commit"]));
    // Whose the root is may be whose the repository is.
    scene.write("home/.gitconfig", "");
    std::os::unix::fs::chown(scene.at("a/p"), Some(4_321), Some(4_321)).unwrap();
    let found = report(&scene, &["a/p"], &person(&scene), |s| s.write("a/p/pre-commit", "evil"));
    assert_eq!(found, created(&["a/p/pre-commit"]));
}
