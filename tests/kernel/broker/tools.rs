//! Programs people use, working inside and stopped outside.

use std::os::unix::fs::MetadataExt;
use std::process::Output;

use crate::broker::world::{Fixture, Who};

#[expect(clippy::disallowed_methods, reason = "the command under test")]
fn run(world: &Fixture, program: &str, args: &[&str]) -> std::io::Result<Output> {
    std::process::Command::new(program)
        .args(args)
        .current_dir(world.root.join("in"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.root.join("in"))
        .env("LC_ALL", "C")
        .output()
}

fn shown(output: &Output) -> String {
    format!(
        "{} {}{}",
        output.status,
        output.stdout.escape_ascii(),
        output.stderr.escape_ascii()
    )
}

/// Each line works inside.
fn works(lines: &[(&str, &[&str])], check: impl Fn(&Fixture)) {
    for who in Who::all() {
        let world = Fixture::new(who);
        let plan = world.plan();
        let ran = world.brokered(&plan, || {
            for (program, args) in lines {
                match run(&world, program, args) {
                    Ok(output) => assert!(
                        output.status.success(),
                        "{program} {args:?} as {who:?}: {}",
                        shown(&output)
                    ),
                    // A program that this machine does not have shows nothing.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
                    Err(error) => panic!("{program}: {error}"),
                }
            }
            true
        });
        if ran {
            check(&world);
        }
        world.end();
    }
}

fn modified(world: &Fixture, name: &str) -> i64 {
    std::fs::symlink_metadata(world.root.join("in").join(name))
        .unwrap()
        .mtime()
}

fn mode(world: &Fixture, name: &str) -> u32 {
    std::fs::symlink_metadata(world.root.join("in").join(name))
        .unwrap()
        .mode()
        & 0o7777
}

#[test]
fn touch_sets_times() {
    works(
        &[
            ("touch", &["-d", "@1000", "file", "new"]),
            ("touch", &["-h", "-d", "@2000", "link"]),
        ],
        |world| {
            assert_eq!(
                (modified(world, "file"), modified(world, "new"), modified(world, "link")),
                (1000, 1000, 2000)
            );
        },
    );
}

#[test]
fn chmod_changes_a_tree() {
    works(&[("chmod", &["-R", "u=rwX,go=", "dir"])], |world| {
        assert_eq!((mode(world, "dir"), mode(world, "dir/file")), (0o700, 0o600));
    });
}

#[test]
fn cp_keeps_attributes() {
    works(
        &[
            ("touch", &["-d", "@1000", "dir/file"]),
            ("chmod", &["640", "dir/file"]),
            ("cp", &["-a", "dir", "copy"]),
        ],
        |world| {
            assert_eq!((modified(world, "copy/file"), mode(world, "copy/file")), (1000, 0o640));
        },
    );
}

#[test]
fn tar_unpacks_what_it_packed() {
    works(
        &[
            ("touch", &["-d", "@1000", "dir/file"]),
            ("touch", &["-h", "-d", "@1000", "link"]),
            ("chmod", &["640", "dir/file"]),
            ("tar", &["-cf", "all.tar", "dir", "link", "fifo"]),
            ("mkdir", &["unpacked"]),
            ("tar", &["-xpf", "all.tar", "-C", "unpacked"]),
        ],
        |world| {
            assert_eq!(
                (modified(world, "unpacked/dir/file"), mode(world, "unpacked/dir/file")),
                (1000, 0o640)
            );
            assert_eq!(modified(world, "unpacked/link"), 1000);
        },
    );
}

#[test]
fn install_sets_a_mode() {
    works(
        &[("install", &["-D", "-p", "-m", "750", "file", "bin/program"])],
        |world| {
            assert_eq!(mode(world, "bin/program"), 0o750);
        },
    );
}

#[test]
fn rsync_keeps_attributes() {
    works(
        &[
            ("touch", &["-d", "@1000", "dir/file"]),
            ("rsync", &["-a", "dir/", "copy/"]),
        ],
        |world| {
            assert_eq!(modified(world, "copy/file"), 1000);
        },
    );
}

#[test]
fn git_keeps_a_repository() {
    works(
        &[
            ("git", &["init", "-q", "repo"]),
            ("cp", &["file", "repo/file"]),
            ("git", &["-C", "repo", "add", "file"]),
            (
                "git",
                &[
                    "-C",
                    "repo",
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@b",
                    "commit",
                    "-q",
                    "-m",
                    "first",
                ],
            ),
            ("git", &["-C", "repo", "gc", "-q"]),
        ],
        |world| assert!(world.root.join("in/repo/.git/HEAD").exists()),
    );
}

#[test]
fn python_copies_and_unpacks() {
    let script = "import shutil, os, tempfile; shutil.copytree('dir', 'copy', symlinks=True); \
                  os.utime('copy/file', ns=(5, 7)); os.chmod('copy/file', 0o640); \
                  os.setxattr('copy/file', 'user.test', b'v'); shutil.copy2('copy/file', 'again'); \
                  assert os.getxattr('again', 'user.test') == b'v'; tempfile.mkdtemp(dir='.')";
    works(&[("/usr/bin/python3", &["-I", "-c", script])], |world| {
        assert_eq!((modified(world, "again"), mode(world, "again")), (0, 0o640));
    });
}

#[test]
fn the_same_programs_change_nothing_outside() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let before = world.attributes();
        world.brokered(&world.plan(), || {
            for (program, args) in [
                ("touch", ["-d@1000", "../out/file"]),
                ("touch", ["-h", "../out/link"]),
                ("chmod", ["600", "../out/file"]),
                ("chmod", ["600", "escape"]),
                ("chmod", ["-R", "../out"]),
                ("chown", ["-h", "../out/link"]),
            ] {
                let id = world.who.uid().to_string();
                let args = match (program, args) {
                    ("chown", [flag, path]) => vec![flag, id.as_str(), path],
                    ("chmod", ["-R", path]) => vec!["-R", "go=", path],
                    (_, args) => args.to_vec(),
                };
                let output = run(&world, program, &args).unwrap();
                assert!(!output.status.success(), "{program} {args:?}: {}", shown(&output));
            }
        });
        assert_eq!(world.attributes(), before, "{who:?}");
        world.end();
    }
}
