//! Outside the plan nothing changes, however it is reached; the same calls inside succeed.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use stockade::backend::attributes::{AttributePlan, Denied, Writable};

use crate::broker::world::{Fixture, SYS_REMOVEXATTRAT, SYS_SETXATTRAT, Who, c, call};

const EPERM: i64 = -(libc::EPERM as i64);
const ENOSYS: i64 = -(libc::ENOSYS as i64);
const CWD: u64 = libc::AT_FDCWD as u64;
const EMPTY: u64 = libc::AT_EMPTY_PATH as u64;
const KEEP: u64 = u32::MAX as u64;
const TIMES: [i64; 4] = [1000, 1, 2000, 2];

fn p(text: &CStr) -> u64 {
    text.as_ptr() as u64
}

fn a<const N: usize>(args: [u64; N]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&args);
    all
}

pub(crate) fn chmod(path: impl Into<std::ffi::OsString>) -> i64 {
    call(libc::SYS_fchmodat, a([CWD, p(&c(path)), 0o600]))
}

fn open(path: &CStr, flags: i32) -> OwnedFd {
    let fd = call(
        libc::SYS_openat,
        a([CWD, p(path), (flags | libc::O_CLOEXEC).cast_unsigned().into()]),
    );
    // SAFETY: the call just returned it as a new descriptor.
    unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()) }
}

fn raw(fd: &OwnedFd) -> u64 {
    fd.as_raw_fd().cast_unsigned().into()
}

/// Every call there is, on `file` (open as `fd`, and below `dir`).
fn every_call(file: &CStr, fd: &OwnedFd, dir: &OwnedFd) -> Vec<(&'static str, i64)> {
    let (path, fd, dir, name) = (p(file), raw(fd), raw(dir), c"file");
    let (xattr, value, times) = (p(c"user.test"), c"v".as_ptr() as u64, TIMES.as_ptr() as u64);
    let block = [value, 1];
    let block = block.as_ptr() as u64;
    let mut done = vec![
        ("fchmod", call(libc::SYS_fchmod, a([fd, 0o600]))),
        ("fchmodat", call(libc::SYS_fchmodat, a([CWD, path, 0o600]))),
        ("fchmodat below", call(libc::SYS_fchmodat, a([dir, p(name), 0o600]))),
        ("fchmodat2", call(libc::SYS_fchmodat2, a([dir, p(name), 0o600, 0]))),
        (
            "fchmodat2 empty",
            call(libc::SYS_fchmodat2, a([fd, p(c""), 0o600, EMPTY])),
        ),
        ("fchown", call(libc::SYS_fchown, a([fd, KEEP, KEEP]))),
        ("fchownat", call(libc::SYS_fchownat, a([CWD, path, KEEP, KEEP, 0]))),
        (
            "fchownat empty",
            call(libc::SYS_fchownat, a([fd, p(c""), KEEP, KEEP, EMPTY])),
        ),
        ("utimensat", call(libc::SYS_utimensat, a([CWD, path, times, 0]))),
        ("utimensat now", call(libc::SYS_utimensat, a([CWD, path, 0, 0]))),
        (
            "utimensat below",
            call(libc::SYS_utimensat, a([dir, p(name), times, 0])),
        ),
        (
            "utimensat by descriptor",
            call(libc::SYS_utimensat, a([fd, 0, times, 0])),
        ),
        ("setxattr", call(libc::SYS_setxattr, a([path, xattr, value, 1, 0]))),
        ("removexattr", call(libc::SYS_removexattr, a([path, xattr]))),
        ("lsetxattr", call(libc::SYS_lsetxattr, a([path, xattr, value, 1, 0]))),
        ("lremovexattr", call(libc::SYS_lremovexattr, a([path, xattr]))),
        ("fsetxattr", call(libc::SYS_fsetxattr, a([fd, xattr, value, 1, 0]))),
        ("fremovexattr", call(libc::SYS_fremovexattr, a([fd, xattr]))),
        ("setxattrat", call(SYS_SETXATTRAT, [CWD, path, 0, xattr, block, 16])),
        ("removexattrat", call(SYS_REMOVEXATTRAT, a([CWD, path, 0, xattr]))),
        ("the descriptor's path", chmod(format!("/proc/self/fd/{fd}"))),
        (
            "below the descriptor's path",
            chmod(format!("/proc/self/fd/{dir}/file")),
        ),
        ("/dev/fd", chmod(format!("/dev/fd/{fd}"))),
    ];
    #[cfg(target_arch = "x86_64")]
    done.extend([
        ("chmod", call(libc::SYS_chmod, a([path, 0o600]))),
        ("chown", call(libc::SYS_chown, a([path, KEEP, KEEP]))),
        ("lchown", call(libc::SYS_lchown, a([path, KEEP, KEEP]))),
        ("utime", call(libc::SYS_utime, a([path, times]))),
        ("utimes", call(libc::SYS_utimes, a([path, times]))),
        ("futimesat", call(libc::SYS_futimesat, a([dir, p(name), times]))),
        ("futimesat by descriptor", call(libc::SYS_futimesat, a([fd, 0, times]))),
    ]);
    done
}

#[test]
fn every_call_is_refused_outside_and_answered_inside() {
    for who in Who::all() {
        for (place, expected) in [("out", EPERM), ("in", 0)] {
            let world = Fixture::new(who);
            let before = world.attributes();
            let file = world.c(&format!("{place}/file"));
            let dir = world.c(place);
            let answers = world.brokered(&world.plan(), || {
                let (fd, dir) = (open(&file, libc::O_RDONLY), open(&dir, libc::O_PATH));
                every_call(&file, &fd, &dir)
            });
            for (name, answer) in answers {
                assert!(
                    answer == expected || answer == ENOSYS,
                    "{name} in {place} as {who:?}: {answer}"
                );
            }
            assert_eq!(world.attributes() == before, expected == EPERM, "{place} as {who:?}");
            world.end();
        }
    }
}

#[test]
fn nothing_is_permitted_by_an_empty_plan() {
    let world = Fixture::new(Who::all()[0]);
    let before = world.attributes();
    assert_eq!(world.brokered(&AttributePlan::default(), || chmod("file")), EPERM);
    assert_eq!(world.attributes(), before);
    world.end();
}

#[test]
fn no_detour_leads_outside() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let before = world.attributes();
        let out = world.root.join("out");
        world.brokered(&world.plan(), || {
            for path in [
                "escape",
                "./escape",
                "escapedir/file",
                "escapedir",
                "escapedir/",
                "escapedir/dirlink/file",
                "../out/file",
                "../in/../out/file",
                "up/out/file",
                "dir/../../out/link",
                "up",
                "..",
            ] {
                assert_eq!(chmod(path), EPERM, "{path} as {who:?}");
            }
            let not_kept = libc::AT_SYMLINK_NOFOLLOW as u64;
            let below = call(libc::SYS_fchownat, a([CWD, p(c"escapedir/link"), KEEP, KEEP, not_kept]));
            assert_eq!(below, EPERM);
            std::env::set_current_dir(&out).unwrap();
            assert_eq!(chmod("file"), EPERM);
            assert_eq!(call(libc::SYS_fchmodat2, a([CWD, p(c""), 0o600, EMPTY])), EPERM);
            assert_eq!(chmod("../out/dir/../file"), EPERM);
        });
        assert_eq!(world.attributes(), before);
        // The twins: the same kinds of detour, ending inside.
        world.brokered(&world.plan(), || {
            for path in [
                "link",
                "dirlink/file",
                "../in/file",
                "../out/../in/file",
                "up/in/file",
                "escapedir/../in/file",
            ] {
                assert_eq!(chmod(path), 0, "{path} as {who:?}");
            }
            let kept = libc::AT_SYMLINK_NOFOLLOW as u64;
            assert_eq!(call(libc::SYS_fchownat, a([CWD, p(c"escape"), KEEP, KEEP, kept])), 0);
            assert_eq!(
                call(libc::SYS_utimensat, a([CWD, p(c"escape"), TIMES.as_ptr() as u64, kept])),
                0
            );
            std::env::set_current_dir(&out).unwrap();
            assert_eq!(chmod("../in/file"), 0);
        });
        world.end();
    }
}

#[test]
fn a_denied_place_inside_stays_as_it_is() {
    for who in Who::all() {
        let world = Fixture::new(who);
        std::fs::create_dir(world.root.join("in/denied")).unwrap();
        for name in ["in/denied/file", "in/key.pem", "in/dir/key.pem", "in/key.pem.txt"] {
            std::fs::write(world.root.join(name), "").unwrap();
        }
        world.give_away();
        let before = world.attributes();
        let mut plan = world.plan();
        plan.denied.push(Denied::Suffix {
            root: world.root.join("in").into(),
            end: ".pem".into(),
        });
        world.brokered(&plan, || {
            for path in [
                "denied",
                "denied/file",
                "dir/../denied/file",
                "key.pem",
                "dirlink/key.pem",
            ] {
                assert_eq!(chmod(path), EPERM, "{path}");
            }
            let gone = open(c"dir/key.pem", libc::O_RDONLY);
            std::fs::rename("dir/key.pem", "dir/kept").unwrap();
            std::fs::rename("dir/kept", "dir/key.pem").unwrap();
            assert_eq!(call(libc::SYS_fchmod, a([raw(&gone), 0o600])), EPERM);
            assert_eq!(before, world.attributes());
            // Unlinked, it is still what it was.
            std::fs::remove_file("dir/key.pem").unwrap();
            assert_eq!(call(libc::SYS_fchmod, a([raw(&gone), 0o600])), EPERM);
            assert_eq!(chmod("key.pem.txt"), 0);
        });
        world.end();
    }
}

#[test]
fn a_file_grant_reaches_that_file_alone() {
    let world = Fixture::new(Who::all()[0]);
    let plan = AttributePlan {
        writable: vec![Writable::File(world.root.join("in/file").into())],
        denied: vec![],
    };
    world.brokered(&plan, || {
        assert_eq!(chmod("link"), 0);
        assert_eq!(chmod("other"), EPERM);
        assert_eq!(chmod("."), EPERM);
    });
    world.end();
}

#[test]
fn no_program_becomes_setuid_or_setgid() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let mode = |path: &CStr, mode| call(libc::SYS_fchmodat, a([CWD, p(path), mode]));
        let before = world.attributes();
        world.brokered(&world.plan(), || {
            for bits in [0o4755, 0o6755, 0o2755, 0o2644, 0o7777] {
                assert_eq!(mode(c"file", bits), EPERM, "{bits:o}");
                let file = open(c"file", libc::O_RDONLY);
                assert_eq!(call(libc::SYS_fchmod, a([raw(&file), bits])), EPERM, "{bits:o}");
            }
            assert_eq!(mode(c"dir", 0o4755), EPERM);
        });
        assert_eq!(world.attributes(), before);
        world.brokered(&world.plan(), || {
            assert_eq!(mode(c"file", 0o1755), 0);
            assert_eq!(mode(c"dir", 0o2755), 0);
        });
        world.end();
    }
}

#[test]
fn what_has_no_place_or_is_a_device_is_left_alone() {
    let everything = AttributePlan {
        writable: vec![Writable::Tree("/".into())],
        denied: vec![],
    };
    for who in Who::all() {
        let world = Fixture::new(who);
        world.brokered(&everything, || {
            for path in [
                "/dev/null",
                "/dev/tty",
                "/proc/self/comm",
                "/proc/self",
                "/proc/sys/kernel/hostname",
            ] {
                assert_eq!(chmod(path), EPERM, "{path}");
            }
            let (read, _write) = nix::unistd::pipe().unwrap();
            assert_eq!(call(libc::SYS_fchmod, a([raw(&read), 0o600])), EPERM);
            let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
            assert_eq!(call(libc::SYS_fchmod, a([raw(&socket.into()), 0o600])), EPERM);
            assert_eq!(chmod("file"), 0);
        });
        let memory = world.brokered(&everything, || {
            let fd = call(libc::SYS_memfd_create, a([p(c"in/file"), 1]));
            // SAFETY: the call just returned it as a new descriptor.
            let fd = unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()) };
            call(libc::SYS_fchmod, a([raw(&fd), 0o600]))
        });
        assert_eq!(memory, EPERM);
        world.end();
    }
}

#[test]
fn only_user_attributes_may_be_set() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let set = |name: &CStr| call(libc::SYS_setxattr, a([p(c"file"), p(name), p(c"v"), 1, 0]));
        let remove = |name: &CStr| call(libc::SYS_removexattr, a([p(c"file"), p(name)]));
        world.brokered(&world.plan(), || {
            for name in [
                c"security.test",
                c"security.capability",
                c"trusted.test",
                c"system.test",
            ] {
                assert_eq!((set(name), remove(name)), (EPERM, EPERM), "{name:?}");
            }
            assert_eq!((set(c"user.test"), remove(c"user.test")), (0, 0));
        });
        world.end();
    }
}

#[test]
fn a_path_on_a_detached_mount_is_not_one_of_ours() {
    let world = Fixture::new(Who::all()[0]);
    let clone = u64::from(libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC);
    let tree = call(libc::SYS_open_tree, a([CWD, p(&world.c("")), clone]));
    if tree == EPERM {
        // Only who may mount can make one.
        return;
    }
    // SAFETY: the call just returned it as a new descriptor.
    let tree = unsafe { OwnedFd::from_raw_fd(i32::try_from(tree).unwrap()) };
    let before = world.attributes();
    let plan = AttributePlan {
        // What the kernel shows for the file on the detached mount, and what it is called here.
        writable: vec![
            Writable::Tree("/in".into()),
            Writable::File(world.root.join("in/other").into()),
        ],
        denied: vec![],
    };
    let below = |path: &CStr| call(libc::SYS_fchmodat, a([raw(&tree), p(path), 0o600]));
    world.brokered(&plan, || {
        assert_eq!(below(c"in/file"), EPERM);
        assert_eq!(below(c"in/other"), EPERM);
        assert_eq!(world.attributes(), before);
        assert_eq!(chmod("other"), 0);
    });
    world.end();
}

#[test]
fn the_brokers_own_process_is_not_taken_for_the_callers() {
    let everything = AttributePlan {
        writable: vec![Writable::Tree("/".into())],
        denied: vec![],
    };
    for who in Who::all() {
        let world = Fixture::new(who);
        std::os::unix::fs::symlink("/proc/self/cwd", world.root.join("in/here")).unwrap();
        world.give_away();
        // In the broker these lead to places of its own.
        let detours = [
            "/proc/self/cwd",
            "/proc/self/exe",
            "/proc/thread-self/cwd",
            "here",
            "/proc/1/cwd",
        ];
        let kept = libc::AT_SYMLINK_NOFOLLOW as u64;
        world.brokered(&everything, || {
            for path in detours {
                assert!(chmod(path) < 0, "{path}");
                assert!(chmod(format!("{path}/.")) < 0, "{path}");
            }
            let file = open(c"file", libc::O_RDONLY);
            let link = c(format!("/proc/self/fd/{}", raw(&file)));
            assert_eq!(call(libc::SYS_fchownat, a([CWD, p(&link), KEEP, KEEP, kept])), EPERM);
            assert_eq!(chmod(format!("/proc/self/fd/{}", raw(&file))), 0);
        });
        world.end();
    }
}
