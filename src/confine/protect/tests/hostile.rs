use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::time::ClockId;

use super::super::{Effect, Guard, ProtectError};
use super::{Scene, one};

#[test]
fn a_fifo_or_socket_under_a_protected_name_blocks_nothing() {
    let scene = Scene::empty();
    let found = scene.report(|s| {
        nix::unistd::mkfifo(&s.at(".envrc"), Mode::S_IRWXU).unwrap();
        let _listener = UnixListener::bind(s.at(".npmrc")).unwrap();
    });
    assert_eq!(found.len(), 2);
    assert!(!scene.exists(".envrc") && !scene.exists(".npmrc"));
}

#[test]
fn a_fifo_that_was_there_is_put_back() {
    let scene = Scene::empty();
    nix::unistd::mkfifo(&scene.at(".envrc"), Mode::S_IRWXU).unwrap();
    let found = scene.report(|s| {
        fs::remove_file(s.at(".envrc")).unwrap();
        s.write(".envrc", "evil");
    });
    assert_eq!(found, one(".envrc", Effect::Changed));
    assert!(!fs::metadata(scene.at(".envrc")).unwrap().is_file());
}

#[test]
fn names_of_any_bytes_lead_to_the_same_place() {
    for name in [b"new\nline".as_slice(), b"\xff\xfe", b"'\"$(x)", b" ", b"-rf"] {
        let scene = Scene::empty();
        let directory = scene.at(OsStr::from_bytes(name));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(".envrc"), "mine").unwrap();
        let found = scene.run(|_| {
            fs::write(directory.join(".envrc"), "evil").unwrap();
            fs::write(directory.join(".bashrc"), "evil").unwrap();
        });
        assert_eq!(found.len(), 2);
        assert_eq!(fs::read(directory.join(".envrc")).unwrap(), b"mine");
        assert!(!directory.join(".bashrc").exists());
    }
}

/// Makes that many directories in each other, and the last one's descriptor.
fn deepen(scene: &Scene, levels: usize) -> std::os::fd::OwnedFd {
    let mut at = openat(AT_FDCWD, &scene.root(), OFlag::O_RDONLY, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, "deep", Mode::S_IRWXU).unwrap();
        at = openat(&at, "deep", OFlag::O_RDONLY, Mode::empty()).unwrap();
    }
    at
}

/// The time of processors that this process has taken.
fn processor() -> Duration {
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().unwrap().into()
}

#[test]
fn a_hundred_levels_deep_is_looked_into() {
    let scene = Scene::empty();
    let mut at = None;
    let found = scene.run(|s| {
        let bottom = at.insert(deepen(s, 100));
        mkdirat(&*bottom, ".claude", Mode::S_IRWXU).unwrap();
    });
    assert_eq!(found.len(), 1);
    assert!(openat(at.unwrap(), ".claude", OFlag::O_RDONLY, Mode::empty()).is_err());
}

#[test]
fn what_is_made_too_deep_to_be_looked_into_is_removed_at_once_and_what_was_there_refuses_the_start() {
    let scene = Scene::empty();
    let before = processor();
    let found = scene.run(|s| {
        let bottom = deepen(s, 1000);
        for number in 0..1000 {
            mkdirat(&bottom, number.to_string().as_str(), Mode::S_IRWXU).unwrap();
        }
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, scene.at(["deep"; 129].join("/")));
    assert!(!scene.exists(["deep"; 129].join("/")) && scene.exists(["deep"; 128].join("/")));
    assert!(processor().saturating_sub(before) < Duration::from_secs(30));
    fs::create_dir(scene.at(["deep"; 129].join("/"))).unwrap();
    let refused = Guard::snapshot(&[scene.root()], &[], &scene.store());
    assert!(matches!(refused, Err(ProtectError::TooDeep(_))));
}

#[test]
fn a_thousand_intruders_cost_no_more_than_their_number() {
    let scene = Scene::empty();
    let before = processor();
    let found = scene.run(|s| {
        for number in 0..1000 {
            s.write(format!("{number}/.envrc"), "evil");
        }
    });
    assert_eq!(found.len(), 1000);
    assert!(processor().saturating_sub(before) < Duration::from_secs(30));
    let kept = found[999].quarantined.clone().unwrap();
    let manifest = fs::read_to_string(kept.with_file_name("manifest.json")).unwrap();
    assert_eq!(manifest.matches("\"complete\": true").count(), 1000);
}

#[test]
fn a_manifest_is_no_larger_however_many_long_names_there_are() {
    let scene = Scene::empty();
    let deep = vec!["x".repeat(250); 15].join("/");
    let found = scene.run(|s| {
        for number in 0..2500 {
            s.write(format!("{deep}/{number}/.envrc"), "evil");
        }
    });
    assert_eq!(found.len(), 2500);
    let kept = found[2499].quarantined.clone().unwrap();
    assert_eq!(fs::read(&kept).unwrap(), b"evil");
    let manifest = fs::read(kept.with_file_name("manifest.json")).unwrap();
    assert!(manifest.len() < 25 << 20, "{}", manifest.len());
    let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).unwrap();
    let (last, listed) = manifest.split_last().unwrap();
    assert_eq!(last["unlisted"], 2500 - listed.len());
    assert!(listed.len() > 2000 && listed[0]["name"] == "0", "{}", listed.len());
}

#[test]
fn a_symlink_is_never_followed_out_of_the_root() {
    let scene = Scene::empty();
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(".envrc"), "outside").unwrap();
    scene.write("a/.envrc", "mine");
    let found = scene.report(|s| {
        fs::remove_dir_all(s.at("a")).unwrap();
        symlink(&outside, s.at("a")).unwrap();
        symlink("/", s.at("everything")).unwrap();
    });
    assert_eq!(found, one("a/.envrc", Effect::Removed));
    assert_eq!(fs::read_to_string(outside.join(".envrc")).unwrap(), "outside");
    assert_eq!(scene.read("a/.envrc"), "mine");
    assert!(!fs::symlink_metadata(scene.at("a")).unwrap().is_symlink());
}

#[test]
fn a_huge_intruder_is_moved_and_a_huge_protected_file_refuses_the_start() {
    let scene = Scene::empty();
    let huge = || fs::File::create(scene.at(".envrc")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(scene.report(|_| huge()), one(".envrc", Effect::Created));
    huge();
    let refused = Guard::snapshot(&[scene.root()], &[], &scene.store());
    assert!(matches!(refused, Err(ProtectError::TooLarge { path, .. }) if path == scene.at(".envrc")));
}

#[test]
fn a_root_that_is_a_symlink_or_missing_refuses_the_start() {
    let scene = Scene::empty();
    symlink(scene.root(), scene.folder.path().join("link")).unwrap();
    for name in ["link", "missing"] {
        assert!(
            Guard::snapshot(&[scene.folder.path().join(name)], &[], &scene.store()).is_err(),
            "{name}"
        );
    }
}

#[test]
fn harmless_files_do_not_add_up_to_more_than_a_snapshot_holds() {
    let scene = Scene::empty();
    let plain = "[core]\n\tbare = false\n";
    let long = format!("{plain}{}", "# a comment that says nothing\n".repeat(3000));
    assert_eq!(
        scene.report(|s| s.write("a/.git/config", &long)),
        one("a/.git/config", Effect::Created)
    );
    assert_eq!(scene.report(|s| s.write("a/.git/config", plain)), []);
    assert_eq!(
        scene.report(|s| s.write("a/.git/config", &long)),
        one("a/.git/config", Effect::Changed)
    );
    let long = &long[..60_000];
    let found = scene.run(|s| (0..600).for_each(|number| s.write(format!("b/{number}/.git/config"), long)));
    assert!(!found.is_empty() && found.len() < 100, "{}", found.len());
    assert_eq!(scene.run(|s| s.write("c/.git/config", long)).len(), 1);
}
