//! What was undone and is wanted all the same.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::{ApplyError, Diff, Offer};
use super::*;

impl Scene {
    /// What is on offer when `command` ran and was undone.
    fn offer(&self, command: impl FnOnce(&Self)) -> (Offer, Option<Diff>) {
        let guard = self.guard();
        command(self);
        let after = guard.settle_with(None);
        whole(after.settled);
        let mut offer = after.offer.unwrap();
        let diff = offer.describe();
        (offer, diff)
    }

    /// The offer, put back.
    #[track_caller]
    fn accept(&self, command: impl FnOnce(&Self)) -> Diff {
        let (offer, diff) = self.offer(command);
        let diff = diff.unwrap();
        accepted(offer, &diff);
        assert_eq!(self.leftovers(), Vec::<String>::new());
        diff
    }

    /// Names of Stockade's own in the root.
    fn leftovers(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let name = entry.file_name();
                if name.as_bytes().starts_with(b".stockade-") {
                    found.push(crate::policy::path::display(&name));
                }
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found
    }
}

/// A yes to all of it.
#[track_caller]
fn accepted(offer: Offer, diff: &Diff) {
    for (done, entry) in offer.apply(&diff.digest).into_iter().zip(&diff.entries) {
        assert!(done.is_ok(), "{entry:?}: {done:?}");
    }
}

/// A command, and what it makes.
type Keys = (&'static str, fn(&Scene));

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: PathBuf) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_hook_that_is_wanted_comes_back_with_its_content_and_mode_and_stays() {
    let scene = Scene::new();
    let offer = scene.accept(|scene| {
        scene.write(".git/hooks/pre-commit", "#!/bin/sh\necho checked\n");
        set_mode(scene.at(".git/hooks/pre-commit"), 0o755);
    });
    assert_eq!(offer.entries, [(scene.at(".git/hooks/pre-commit"), Effect::Created)]);
    assert!(offer.text.contains("+file, 23 bytes, mode 755\n"), "{}", offer.text);
    assert!(offer.text.contains("+echo checked\n"), "{}", offer.text);
    assert_eq!(scene.read(".git/hooks/pre-commit"), "#!/bin/sh\necho checked\n");
    assert_eq!(mode(scene.at(".git/hooks/pre-commit")), 0o755);
    // It is what the next command finds.
    assert_eq!(scene.report(|_| {}), []);
}

#[test]
fn a_change_that_is_wanted_replaces_what_was_restored() {
    let scene = Scene::new();
    let offer = scene.accept(|scene| scene.write(".git/hooks/pre-push", "#!/bin/sh\nexit 2\n"));
    assert!(offer.text.contains("-exit 1\n+exit 2\n"), "{}", offer.text);
    assert_eq!(scene.read(".git/hooks/pre-push"), "#!/bin/sh\nexit 2\n");
}

#[test]
fn a_mode_and_a_removal_that_are_wanted_come_back() {
    let scene = Scene::new();
    let offer = scene.accept(|scene| set_mode(scene.at(".git/hooks/pre-push"), 0o755));
    assert!(offer.text.contains("mode 755"), "{}", offer.text);
    assert_eq!(mode(scene.at(".git/hooks/pre-push")), 0o755);
    let offer = scene.accept(|scene| fs::remove_file(scene.at(".git/hooks/pre-push")).unwrap());
    assert_eq!(offer.entries, [(scene.at(".git/hooks/pre-push"), Effect::Removed)]);
    assert!(
        offer.text.contains("+nothing\n") && offer.text.contains("-exit 1\n"),
        "{}",
        offer.text
    );
    assert!(!scene.exists(".git/hooks/pre-push"));
}

#[test]
fn a_pipe_and_a_shut_folder_come_back_as_what_they_were() {
    let scene = Scene::empty();
    let offer = scene.accept(|scene| mkfifo(&scene.at(".envrc"), Mode::S_IRWXU).unwrap());
    assert!(
        offer.text.ends_with(": created @@\n+named pipe, mode 700\n"),
        "{}",
        offer.text
    );
    assert!(fs::symlink_metadata(scene.at(".envrc")).unwrap().file_type().is_fifo());
    scene.accept(|scene| {
        scene.write(".zed/tasks.json", "{}\n");
        set_mode(scene.at(".zed"), 0o555);
    });
    assert_eq!(mode(scene.at(".zed")), 0o555);
    assert_eq!(scene.read(".zed/tasks.json"), "{}\n");
    set_mode(scene.at(".zed"), 0o755);
}

#[test]
fn what_another_name_of_the_file_is_made_to_say_later_is_not_what_comes_back() {
    let scene = Scene::new();
    let (offer, diff) = scene.offer(|scene| {
        scene.write("innocent", "harmless\n");
        fs::hard_link(scene.at("innocent"), scene.at(".git/hooks/pre-commit")).unwrap();
    });
    // The thing in quarantine is the same file.
    fs::write(scene.at("innocent"), "evil\n").unwrap();
    accepted(offer, &diff.unwrap());
    assert_eq!(scene.read(".git/hooks/pre-commit"), "harmless\n");
    fs::write(scene.at("innocent"), "worse\n").unwrap();
    assert_eq!(scene.read(".git/hooks/pre-commit"), "harmless\n");
}

#[test]
fn nothing_is_put_back_over_what_changed_meanwhile() {
    let plant = |scene: &Scene| scene.write(".git/hooks/pre-commit", "planted\n");
    let meanwhile: [fn(&Scene); 5] = [
        |scene| scene.write(".git/hooks/pre-commit", "the person's own\n"),
        |scene| fs::rename(scene.at(".git/hooks"), scene.at("hooks-elsewhere")).unwrap(),
        |scene| {
            fs::rename(scene.at(".git/hooks"), scene.at("hooks-elsewhere")).unwrap();
            std::os::unix::fs::symlink("../hooks-elsewhere", scene.at(".git/hooks")).unwrap();
        },
        |scene| {
            fs::rename(scene.root(), scene.folder.path().join("moved")).unwrap();
            fs::create_dir_all(scene.at(".git/hooks")).unwrap();
        },
        |scene| std::os::unix::fs::symlink("nowhere", scene.at(".git/hooks/pre-commit")).unwrap(),
    ];
    for (number, meddle) in meanwhile.into_iter().enumerate() {
        let scene = Scene::new();
        let (offer, diff) = scene.offer(plant);
        meddle(&scene);
        let put_back = offer.apply(&diff.unwrap().digest);
        assert!(matches!(put_back.as_slice(), [Err(_)]), "{number}: {put_back:?}");
        for planted in [
            scene.at(".git/hooks/pre-commit"),
            scene.at("hooks-elsewhere/pre-commit"),
            scene.folder.path().join("moved/.git/hooks/pre-commit"),
        ] {
            assert!(
                !fs::read_to_string(planted).is_ok_and(|text| text == "planted\n"),
                "{number}"
            );
        }
        assert_eq!(scene.leftovers(), Vec::<String>::new(), "{number}");
    }
    let scene = Scene::new();
    let (offer, diff) = scene.offer(|scene| {
        scene.write(".bashrc", "planted\n");
        scene.write(".git/hooks/pre-push", "planted\n");
    });
    scene.write(".git/hooks/pre-push", "the person's own\n");
    let put_back = offer.apply(&diff.unwrap().digest);
    assert!(
        matches!(put_back.as_slice(), [Ok(()), Err(ApplyError::ChangedSince)]),
        "{put_back:?}"
    );
    assert_eq!(scene.read(".git/hooks/pre-push"), "the person's own\n");
    assert_eq!(scene.read(".bashrc"), "planted\n");
}

#[test]
fn only_what_was_shown_is_put_back() {
    let scene = Scene::new();
    let plant = |text: &str| {
        let (offer, diff) = scene.offer(|scene| {
            scene.write(".git/hooks/pre-commit", text);
            scene.write(".bashrc", "line\n".repeat(100_000));
        });
        (offer, diff.unwrap())
    };
    let (_, other) = plant("one\n");
    let (offer, diff) = plant("two\n");
    assert_ne!(diff.digest, other.digest);
    let put_back = offer.apply(&other.digest);
    assert!(
        matches!(put_back.as_slice(), [Err(ApplyError::Unknown)]),
        "{put_back:?}"
    );
    assert!(!scene.exists(".git/hooks/pre-commit"));
    // The twin; what was too long to be shown stays away all the same.
    let (offer, diff) = plant("two\n");
    assert_eq!(diff.entries, [(scene.at(".git/hooks/pre-commit"), Effect::Created)]);
    accepted(offer, &diff);
    assert_eq!(scene.read(".git/hooks/pre-commit"), "two\n");
    assert!(!scene.exists(".bashrc"));
}

#[test]
fn of_a_new_git_directory_each_thing_is_shown_and_comes_back() {
    let scene = Scene::empty();
    let offer = scene.accept(|scene| {
        scene.git(&["init", "-q", "new"]);
        scene.write("new/.git/hooks/post-checkout", "#!/bin/sh\nevil\n");
        scene.git_in("new", &["config", "core.hooksPath", ".husky"]);
        scene.write("new/file", "text");
        scene.git_in("new", &["add", "."]);
        scene.git_in("new", &["commit", "-qm", "first"]);
    });
    let [config, hook] = ["new/.git/config", "new/.git/hooks/post-checkout"].map(|path| scene.at(path));
    assert_eq!(offer.entries, [(config, Effect::Changed), (hook, Effect::Created)]);
    let (config, hook) = offer.text.split_once("/post-checkout: created @@\n").unwrap();
    assert!(hook.contains("+evil\n"), "{hook}");
    // Against what is there now: one line.
    let added: Vec<&str> = config
        .lines()
        .skip(3)
        .filter(|line| line.starts_with(['+', '-']))
        .collect();
    assert_eq!(added, ["+\thooksPath = .husky"], "{config}");
    assert!(scene.read("new/.git/config").contains("hooksPath = .husky"));
    assert_eq!(scene.read("new/.git/hooks/post-checkout"), "#!/bin/sh\nevil\n");
    assert_eq!(scene.leftovers(), Vec::<String>::new());
    scene.git_in("new", &["fsck"]);
    assert_eq!(scene.report(|_| {}), []);
}

#[test]
fn of_a_changed_config_only_what_was_undone_is_shown() {
    let scene = Scene::new();
    let offer = scene.accept(|scene| {
        scene.git(&["config", "color.ui", "auto"]);
        scene.git(&["config", "core.pager", "less -R"]);
    });
    assert!(
        offer.text.contains("+\tpager = less -R\n") && !offer.text.contains("+\tui"),
        "{}",
        offer.text
    );
    let config = scene.read(".git/config");
    assert!(
        config.contains("ui = auto") && config.contains("pager = less -R"),
        "{config}"
    );
    assert_eq!(scene.report(|_| {}), []);
}

#[test]
fn what_cannot_be_shown_or_kept_is_not_on_offer() {
    let commands: [Keys; 7] = [
        ("a very long text", |scene| {
            scene.write(".bashrc", "line\n".repeat(100_000));
        }),
        ("a huge file", |scene| {
            let file = fs::File::create(scene.at(".bashrc")).unwrap();
            file.set_len(1 << 40).unwrap();
        }),
        ("a socket", |scene| {
            drop(std::os::unix::net::UnixListener::bind(scene.at(".envrc")).unwrap());
        }),
        ("very many entries", |scene| {
            for number in 0..1_100 {
                scene.write(format!(".zed/{number}"), "");
            }
        }),
        ("a symlink", |scene| {
            scene.write("tool", "x");
            std::os::unix::fs::symlink("tool", scene.at(".bashrc")).unwrap();
        }),
        ("a directory with a symlink in it", |scene| {
            scene.write(".zed/a", "x");
            std::os::unix::fs::symlink("a", scene.at(".zed/tasks.json")).unwrap();
        }),
        ("a tree without end", |scene| {
            scene.write(format!(".zed/{}", "d/".repeat(1_100) + "x"), "");
        }),
    ];
    for (name, command) in commands {
        let scene = Scene::empty();
        let (_, diff) = scene.offer(command);
        assert_eq!(diff, None, "{name}");
    }
    // The twin: short and small, it is.
    let scene = Scene::empty();
    assert!(scene.offer(|scene| scene.write(".bashrc", "line\n")).1.is_some());
}

#[test]
fn a_binary_is_shown_as_its_size_and_hash_and_a_name_that_is_no_text_survives() {
    let scene = Scene::empty();
    let name = std::ffi::OsStr::from_bytes(b".zed/\xff\x1b[2J.json");
    let offer = scene.accept(|scene| {
        fs::create_dir(scene.at(".zed")).unwrap();
        fs::write(scene.at(name), b"\x7fELF\0\0").unwrap();
    });
    assert!(offer.text.contains("binary file, 6 bytes"), "{}", offer.text);
    assert!(!offer.text.contains(['\u{1b}', '\0']), "{}", offer.text);
    assert_eq!(fs::read(scene.at(name)).unwrap(), b"\x7fELF\0\0");
}

#[test]
fn the_text_of_all_changes_is_bounded_and_what_it_has_no_room_for_is_not_on_offer() {
    let scene = Scene::empty();
    let offer = scene.accept(|scene| {
        for folder in ["a", "b", "c"] {
            let lines = if folder == "c" { 1 } else { 15_000 };
            scene.write(format!("{folder}/.bashrc"), "line\n".repeat(lines));
        }
    });
    assert_eq!(
        offer.entries,
        ["a/.bashrc", "c/.bashrc"].map(|path| (scene.at(path), Effect::Created))
    );
    assert!(offer.text.len() <= 128 * 1024);
    assert_eq!(
        ["a", "b", "c"].map(|folder| scene.exists(format!("{folder}/.bashrc"))),
        [true, false, true]
    );
}

#[test]
fn of_very_many_changes_a_few_are_on_offer() {
    let scene = Scene::empty();
    let (_, diff) = scene.offer(|scene| {
        for number in 0..100 {
            scene.write(format!("{number}/.bashrc"), "evil\n");
        }
    });
    assert_eq!(diff.unwrap().entries.len(), 8);
}

#[test]
fn the_lines_of_a_text_keep_their_signs() {
    let scene = Scene::empty();
    scene.write(".bashrc", "a\nb\nc");
    let text = scene
        .accept(|scene| scene.write(".bashrc", "a\n@@ -1 +1 @@\n-b\nc"))
        .text;
    assert!(
        text.lines().all(|line| line.starts_with(['+', '-', '@', ' ', '\\'])),
        "{text}"
    );
    assert!(text.contains("\n+@@ -1 +1 @@\n+-b\n"), "{text}");
}
