//! Copies: what they are before each command, and what becomes of what a command did to them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::{Covers, recover};
use super::*;

/// A guard, its copies, and where the copy of a protected path lies.
fn covered(scene: &Scene) -> (Guard, Covers) {
    let guard = scene.guard();
    let covers = Covers::create(guard.record(), guard.to_cover(512), &scene.store()).unwrap();
    (guard, covers)
}

fn copy(guard: &Guard, covers: &Covers, path: &str) -> PathBuf {
    let found = covers.pairs(guard.roots()).find(|(at, _)| at.ends_with(path));
    found.unwrap_or_else(|| panic!("no copy of {path}")).1
}

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";

fn scene() -> Scene {
    let scene = Scene::empty();
    scene.write("p/.git/HEAD", "ref: refs/heads/main\n");
    scene.write("p/.git/objects/x", "");
    scene.write("p/.git/refs/x", "");
    scene.write("p/.git/config", CONFIG);
    scene.write("p/.git/hooks/pre-commit.sample", "sample");
    scene.write("p/.envrc", "mine");
    scene.write("p/.vscode/settings.json", "{}");
    scene
}

#[test]
fn what_the_host_runs_at_once_has_a_copy_and_nothing_else_has() {
    let scene = scene();
    symlink("x", scene.root().join(".envrc")).unwrap();
    let (guard, covers) = covered(&scene);
    let mut all: Vec<PathBuf> = covers.pairs(guard.roots()).map(|(path, _)| path).collect();
    all.sort();
    let expected = ["p/.git/config", "p/.git/hooks"].map(|path| scene.root().join(path));
    assert_eq!(all, expected);
    assert_eq!(fs::read_to_string(copy(&guard, &covers, "config")).unwrap(), CONFIG);
    let sample = copy(&guard, &covers, "hooks").join("pre-commit.sample");
    assert_eq!(fs::read_to_string(sample).unwrap(), "sample");
}

#[test]
fn a_harmless_change_of_a_copy_is_done_to_the_hosts_file() {
    let scene = scene();
    let (guard, covers) = covered(&scene);
    let text = format!("{CONFIG}[color]\n\tui = auto\n");
    fs::write(copy(&guard, &covers, "config"), &text).unwrap();
    let after = guard.settle_with(Some(&covers));
    assert!(whole(after.settled).is_empty());
    assert_eq!(scene.read("p/.git/config"), text);
}

#[test]
fn of_a_copy_what_could_run_something_is_kept_and_named() {
    let scene = scene();
    scene.write("p/.git/hooks/post-merge", "mine");
    let (guard, covers) = covered(&scene);
    let text = format!("{CONFIG}\tfsmonitor = evil\n[color]\n\tui = auto\n");
    fs::write(copy(&guard, &covers, "config"), &text).unwrap();
    fs::write(copy(&guard, &covers, "hooks").join("pre-commit"), "evil").unwrap();
    // Nobody misses an example.
    for gone in ["post-merge", "pre-commit.sample"] {
        fs::remove_file(copy(&guard, &covers, "hooks").join(gone)).unwrap();
    }
    let found = whole(guard.settle_with(Some(&covers)).settled);
    let mut told: Vec<(&OsStr, Effect, bool)> = found
        .iter()
        .map(|one| (one.path.file_name().unwrap(), one.kind, one.quarantined.is_some()))
        .collect();
    told.sort_by_key(|(name, ..)| *name);
    let expected = [
        ("config", Effect::Changed, true),
        ("post-merge", Effect::Removed, false),
        ("pre-commit", Effect::Created, true),
    ];
    assert_eq!(told, expected.map(|(name, what, kept)| (OsStr::new(name), what, kept)));
    assert_eq!(scene.read("p/.git/config"), format!("{CONFIG}[color]\n\tui = auto\n"));
    assert_eq!(scene.read("p/.git/hooks/pre-commit.sample"), "sample");
    assert_eq!(scene.read("p/.git/hooks/post-merge"), "mine");
    assert!(!scene.root().join("p/.git/hooks/pre-commit").exists());
}

#[test]
fn a_copy_is_what_the_host_has_before_each_command_whatever_was_done_to_it() {
    let scene = scene();
    let (guard, covers) = covered(&scene);
    let (config, hooks) = (copy(&guard, &covers, "config"), copy(&guard, &covers, "hooks"));
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = [inode(&config), inode(&hooks)];
    fs::write(&config, "x".repeat(17 << 20)).unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o0)).unwrap();
    for number in 0..2_000 {
        fs::write(hooks.join(format!("hook-{number}\n")), "").unwrap();
    }
    fs::create_dir_all(hooks.join("a/b")).unwrap();
    symlink("/etc", hooks.join("a/link")).unwrap();
    nix::unistd::mkfifo(&hooks.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::set_permissions(hooks.join("a"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::set_permissions(&hooks, fs::Permissions::from_mode(0o0)).unwrap();
    let found = whole(guard.settle_with(Some(&covers)).settled);
    assert!(found.iter().any(|one| one.path.ends_with("hooks")), "{found:?}");
    assert!(found.iter().any(|one| one.path.ends_with("config")), "{found:?}");
    // Meanwhile its owner changed it.
    scene.write("p/.git/config", format!("{CONFIG}[core]\n\teditor = mine\n"));
    let guard = scene.guard();
    covers.lay(guard.record(), guard.roots()).unwrap();
    assert_eq!(fs::read_to_string(&config).unwrap(), scene.read("p/.git/config"));
    let names: Vec<_> = fs::read_dir(&hooks)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["pre-commit.sample"]);
    // Where it is mounted it is the same file.
    assert_eq!([inode(&config), inode(&hooks)], before);
    assert!(whole(guard.settle_with(Some(&covers)).settled).is_empty());
}

#[test]
fn what_its_owner_changed_meanwhile_stays_and_the_copy_is_kept() {
    let scene = scene();
    let (guard, covers) = covered(&scene);
    fs::write(
        copy(&guard, &covers, "config"),
        format!("{CONFIG}[color]\n\tui = auto\n"),
    )
    .unwrap();
    let theirs = format!("{CONFIG}[user]\n\tname = me\n");
    scene.write("p/.git/config", &theirs);
    let found = whole(guard.settle_with(Some(&covers)).settled);
    assert_eq!(scene.read("p/.git/config"), theirs);
    let kept = found[0].quarantined.as_ref().unwrap();
    assert!(fs::read_to_string(kept).unwrap().contains("ui = auto"));
}

#[test]
fn of_copies_that_nobody_holds_the_next_start_keeps_what_the_host_has_not() {
    let scene = scene();
    let (_guard, covers) = covered(&scene);
    let copies = scene.store().join("copies");
    let origin = |path: &str| [scene.at(path).as_os_str().as_bytes(), b"\0"].concat();
    let origins = [
        origin("p/.git/config"),
        origin("p/.git/hooks"),
        origin("gone"),
        b"relative\0".to_vec(),
    ]
    .concat();
    let abandoned = |name: &str, origins: &[u8], config: &str, hook: Option<&str>| {
        let folder = copies.join(name);
        fs::create_dir_all(folder.join("1")).unwrap();
        fs::write(folder.join("origins"), origins).unwrap();
        fs::write(folder.join("0"), config).unwrap();
        fs::write(folder.join("1/pre-commit.sample"), "sample").unwrap();
        if let Some(hook) = hook {
            fs::write(folder.join("1").join(hook), "evil").unwrap();
        }
        folder
    };
    // Nothing was done; a part of each was done; the list of origins is lost, or is no list of paths.
    let all = [
        abandoned("same", &origins, CONFIG, None),
        abandoned("hook", &origins, CONFIG, Some("pre\n-commit")),
        abandoned("config", &origins, "[x]\n", None),
        abandoned("lost", b"", CONFIG, None),
        abandoned("odd", b"relative\0\0", CONFIG, None),
    ];
    // What was settled has no list any more, and there is nothing to be said of it.
    let settled = abandoned("settled", &origins, "[x]\n", None);
    fs::remove_file(settled.join("origins")).unwrap();
    let found = recover(&scene.store());
    assert!(found.failures.is_empty(), "{found:?}");
    assert!(!settled.exists());
    let mut kept: Vec<PathBuf> = found.violations.iter().map(|one| one.path.clone()).collect();
    kept.sort();
    let mut expected = vec![scene.at("p/.git/config"), scene.at("p/.git/hooks")];
    expected.extend(["lost/0", "lost/1", "odd/0", "odd/1"].map(|path| copies.join(path)));
    expected.sort();
    assert_eq!(kept, expected);
    assert!(
        found
            .violations
            .iter()
            .all(|one| one.quarantined.as_ref().unwrap().exists())
    );
    assert!(all.iter().all(|folder| !folder.exists()));
    // What a session holds stays, and goes with it.
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 1);
    assert_eq!(recover(&scene.store()).violations, []);
    drop(covers);
    assert!(!copies.exists());
}

#[test]
fn what_takes_the_place_of_a_fifo_in_a_copy_is_kept() {
    let scene = scene();
    nix::unistd::mkfifo(&scene.at("p/.git/hooks/notify"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (guard, covers) = covered(&scene);
    covers.lay(guard.record(), guard.roots()).unwrap();
    fs::write(copy(&guard, &covers, "hooks").join("notify"), "thesis").unwrap();
    let found = whole(guard.settle_with(Some(&covers)).settled);
    let kept = found[0].quarantined.as_ref().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "thesis");
    // Without a change there is nothing to be said of it.
    let (guard, covers) = covered(&scene);
    covers.lay(guard.record(), guard.roots()).unwrap();
    assert!(whole(guard.settle_with(Some(&covers)).settled).is_empty());
}

/// `-` and `.` stand before `/`.
#[test]
fn of_names_that_begin_with_that_of_a_directory_only_what_lies_in_it_is_within_its_copy() {
    let scene = scene();
    for name in ["hooks-team", "hooks.local"] {
        scene.write(format!("p/.git/{name}/pre-commit"), "mine");
    }
    scene.write(
        "p/.git/config",
        format!("{CONFIG}\thooksPath = .git/hooks-team\n[include]\n\tpath = hooks.local/pre-commit\n"),
    );
    let (guard, covers) = covered(&scene);
    let mut all: Vec<PathBuf> = covers.pairs(guard.roots()).map(|(path, _)| path).collect();
    all.sort();
    assert!(all.contains(&scene.root().join("p/.git/hooks")) && all.contains(&scene.root().join("p/.git/hooks-team")));
    let nested = all
        .iter()
        .any(|path| all.iter().any(|above| path != above && path.starts_with(above)));
    assert!(!nested, "{all:?}");
}

#[test]
fn copies_with_something_that_could_not_be_kept_stay_whatever_happens_to_the_others() {
    let scene = scene();
    let (guard, covers) = covered(&scene);
    covers.lay(guard.record(), guard.roots()).unwrap();
    let copies = scene.store().join("copies");
    drop(covers.not_kept(&scene.at("p/.git/hooks"), nix::errno::Errno::ENOSPC));
    // Too long to be copied, so it is moved, and the copies are no longer those of the mounts.
    let config = copy(&guard, &covers, "config");
    fs::File::create(&config).unwrap().set_len((64 << 20) + 1).unwrap();
    let found = whole(guard.settle_with(Some(&covers)).settled);
    assert!(found.iter().any(|one| one.quarantined.is_some()), "{found:?}");
    drop(covers);
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 1);
    assert_eq!(recover(&scene.store()).failures.len(), 0);
    // The next start has room, and keeps what is left.
    assert!(!copies.exists());
}

#[test]
fn the_hosts_config_is_written_in_its_place_and_replaced_only_where_it_cannot_be() {
    let scene = scene();
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(scene.at("p/.git/config")).unwrap());
    let before = inode();
    let texts = [
        format!("{CONFIG}[color]\n\tui = auto\n[log]\n\tdate = iso\n"),
        format!("{CONFIG}[log]\n\tdate = iso\n"),
    ];
    for text in texts {
        let (guard, covers) = covered(&scene);
        fs::write(copy(&guard, &covers, "config"), &text).unwrap();
        assert!(whole(guard.settle_with(Some(&covers)).settled).is_empty());
        assert_eq!((scene.read("p/.git/config"), inode()), (text, before));
    }
}

#[test]
fn a_repository_that_a_command_made_has_no_copies_until_a_ref_of_it_is_the_hosts() {
    let scene = scene();
    let guard = scene.guard();
    scene.git(&["init", "-q", "-b", "main", "made"]);
    scene.git_in("made", &["commit", "-q", "--allow-empty", "-m", "one"]);
    whole(guard.settle());
    let all = |scene: &Scene| {
        let (guard, covers) = covered(scene);
        let all: Vec<PathBuf> = covers.pairs(guard.roots()).map(|(path, _)| path).collect();
        whole(guard.settle());
        all.iter().filter(|path| path.starts_with(scene.at("made"))).count()
    };
    assert_eq!(all(&scene), 0);
    scene.git_in("made", &["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(all(&scene), 2);
}

#[test]
fn a_config_that_was_emptied_leaves_what_git_knows_a_repository_by() {
    let scene = scene();
    let (guard, covers) = covered(&scene);
    fs::write(copy(&guard, &covers, "config"), "").unwrap();
    assert_eq!(whole(guard.settle_with(Some(&covers)).settled).len(), 1);
    assert!(scene.read("p/.git/config").contains("repositoryformatversion = 0"));
}

#[test]
fn what_is_left_out_of_a_change_is_told_even_where_it_has_no_name() {
    let scene = scene();
    let (guard, covers) = covered(&scene);
    let text = format!("{CONFIG}[color]\n\tui = auto\n[odd.header \"x\"] ; y\n");
    fs::write(copy(&guard, &covers, "config"), text).unwrap();
    assert_eq!(whole(guard.settle_with(Some(&covers)).settled).len(), 1);
    assert!(!scene.read("p/.git/config").contains("odd"));
}
