//! Repositories around a root, and settings that lie outside of all roots, beside what has nothing to do with either.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;

use super::super::repository::Person;
use super::super::{Guard, ProtectError, What};
use super::{Scene, whole};

/// What a command changed below one of `roots`, as path below the scene's root and what happened.
fn report(scene: &Scene, roots: &[&str], person: &Person, command: impl FnOnce(&Scene)) -> Vec<(PathBuf, What)> {
    let guard = start(scene, roots, person).unwrap();
    command(scene);
    let found = whole(guard.settle()).into_iter();
    found
        .map(|v| (v.path.strip_prefix(scene.root()).unwrap().to_owned(), v.what))
        .collect()
}

fn start(scene: &Scene, roots: &[&str], person: &Person) -> Result<Guard, ProtectError> {
    let roots: Vec<PathBuf> = roots.iter().map(|root| scene.at(root)).collect();
    Guard::snapshot_knowing(&roots, &[], &scene.store(), person, None)
}

/// A person whose home is `home` in the scene, and whose settings are there alone.
fn person(scene: &Scene) -> Person {
    Person::of([scene.at("home").as_path()], |name| {
        (name == "GIT_CONFIG_SYSTEM").then(|| PathBuf::from("/dev/null"))
    })
}

fn created(paths: &[&str]) -> Vec<(PathBuf, What)> {
    paths.iter().map(|path| (PathBuf::from(path), What::Created)).collect()
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
