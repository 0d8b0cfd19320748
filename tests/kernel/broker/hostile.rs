//! Callers that make themselves hard to see, and names made to mislead.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use stockade::backend::seccomp::{Attempts, Attributes, Copies, IpSockets, Role, Settings, UnixDomain, lower};
use stockade::confine::layers::filter;

use crate::broker::denials::chmod;
use crate::broker::world::{Fixture, Who, c, call};
use crate::common::PATIENCE;

const EPERM: i64 = -(libc::EPERM as i64);

#[test]
fn names_of_any_bytes_work_inside_and_not_outside() {
    let names: [&[u8]; 7] = [
        b"new\nline",
        b"\xff\xfe",
        b"\"quotes\"'",
        b"x (deleted)",
        b"(unreachable)",
        b" ",
        b"\x1b[2J",
    ];
    for who in Who::all() {
        let world = Fixture::new(who);
        for place in ["in", "out"] {
            for name in names {
                std::fs::write(world.root.join(place).join(OsStr::from_bytes(name)), "").unwrap();
            }
        }
        world.give_away();
        world.brokered(&world.plan(), || {
            for name in names {
                let name = OsStr::from_bytes(name);
                assert_eq!(chmod(name), 0, "{name:?}");
                assert_eq!(std::fs::metadata(name).unwrap().mode() & 0o777, 0o600, "{name:?}");
                assert_eq!(chmod(world.root.join("out").join(name)), EPERM, "{name:?}");
            }
        });
        world.end();
    }
}

#[test]
fn a_name_that_looks_unlinked_does_not_borrow_a_permission() {
    let world = Fixture::new(Who::all()[0]);
    // Not the writable `in`, but a sibling that the kernel would show so once `in` were removed.
    std::fs::create_dir(world.root.join("in (deleted)")).unwrap();
    std::fs::write(world.root.join("in (deleted)/file"), "").unwrap();
    std::fs::write(world.root.join("in/denied (deleted)"), "").unwrap();
    world.give_away();
    world.brokered(&world.plan(), || {
        assert_eq!(chmod("../in (deleted)/file"), EPERM);
        assert_eq!(chmod("../in (deleted)"), EPERM);
        assert_eq!(chmod("denied (deleted)"), EPERM);
        assert_eq!(chmod("file"), 0);
    });
    world.end();
}

/// Runs `body` in a process of its own; its value is the exit status, 0 for success.
fn in_child(body: impl FnOnce() -> i64) -> i32 {
    // SAFETY: the child makes system calls and ends; it touches no lock of another thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let status = i32::try_from(-body()).unwrap_or(255);
            // SAFETY: ends the process without running anything else in it.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => match waitpid(child, None).unwrap() {
            WaitStatus::Exited(_, status) => status,
            other => panic!("{other:?}"),
        },
    }
}

#[test]
fn a_caller_that_hides_is_refused_and_does_not_hang() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let path = world.c("in/file");
        let dumpable = |value: u64| {
            assert_eq!(
                call(
                    libc::SYS_prctl,
                    [libc::PR_SET_DUMPABLE.cast_unsigned().into(), value, 0, 0, 0, 0]
                ),
                0
            );
            call(
                libc::SYS_fchmodat,
                [libc::AT_FDCWD as u64, path.as_ptr() as u64, 0o600, 0, 0, 0],
            )
        };
        let before = world.attributes();
        assert_eq!(
            world.brokered(&world.plan(), || in_child(|| dumpable(0))),
            libc::EPERM,
            "{who:?}"
        );
        assert_eq!(world.attributes(), before);
        assert_eq!(world.brokered(&world.plan(), || in_child(|| dumpable(1))), 0, "{who:?}");
        world.end();
    }
}

#[test]
fn threads_of_one_command_are_all_served() {
    for who in Who::all() {
        let world = Fixture::new(who);
        world.brokered(&world.plan(), || {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || {
                        let name = format!("thread-{thread}");
                        std::fs::write(&name, "").unwrap();
                        for round in 0..100 {
                            let mode = 0o400 + round % 0o100;
                            let path = c(&name);
                            let at = libc::AT_FDCWD as u64;
                            assert_eq!(call(libc::SYS_fchmodat, [at, path.as_ptr() as u64, mode, 0, 0, 0]), 0);
                            assert_eq!(u64::from(std::fs::metadata(&name).unwrap().mode() & 0o7777), mode);
                        }
                    });
                }
            });
        });
        world.end();
    }
}

#[test]
fn a_path_that_changes_under_the_call_reaches_nothing_outside() {
    for who in Who::all() {
        let world = Fixture::new(who);
        // `in` and `xn` differ in one byte, which another thread flips all the time.
        std::fs::rename(world.root.join("out"), world.root.join("xn")).unwrap();
        let before = std::fs::metadata(world.root.join("xn/file")).unwrap().mode();
        let path: Vec<AtomicU8> = world
            .c("in/file")
            .as_bytes_with_nul()
            .iter()
            .map(|b| AtomicU8::new(*b))
            .collect();
        let flipped = world.root.as_os_str().len() + 1;
        let stop = AtomicBool::new(false);
        let answers = world.brokered(&world.plan(), || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        path[flipped].store(b'x', Ordering::Relaxed);
                        path[flipped].store(b'i', Ordering::Relaxed);
                    }
                });
                let begun = Instant::now();
                let mut answers = std::collections::BTreeSet::new();
                // For a while, and until both were met.
                while begun.elapsed() < Duration::from_millis(200) || (answers.len() < 2 && begun.elapsed() < PATIENCE)
                {
                    let at = libc::AT_FDCWD as u64;
                    answers.insert(call(libc::SYS_fchmodat, [at, path.as_ptr() as u64, 0o600, 0, 0, 0]));
                }
                stop.store(true, Ordering::Relaxed);
                answers
            })
        });
        assert_eq!(answers.into_iter().collect::<Vec<_>>(), [EPERM, 0], "{who:?}");
        assert_eq!(std::fs::metadata(world.root.join("xn/file")).unwrap().mode(), before);
        world.end();
    }
}

#[test]
fn what_is_refused_fails_where_nobody_hears_of_it() {
    let settings = Settings {
        ip: IpSockets::Refused,
        unix: UnixDomain::Refused,
        role: Role::Command,
        attempts: Attempts::WatchedWithLooks,
        copies: Copies::None,
        attributes: Attributes::Brokered,
    };
    // As a command is born in the forker's.
    let forker = Settings {
        role: Role::Forker,
        ..settings
    };
    let plans = [forker, settings].map(|settings| lower(settings).unwrap());
    let results = std::thread::spawn(move || {
        for plan in plans {
            drop(filter::install(&plan).unwrap());
        }
        let refused = [
            (libc::SYS_ptrace, [0; 6]),
            (libc::SYS_mount, [0; 6]),
            (libc::SYS_unshare, [0x1000_0000, 0, 0, 0, 0, 0]),
            (libc::SYS_socket, [2, 1, 0, 0, 0, 0]),
            (libc::SYS_socket, [1, 1, 0, 0, 0, 0]),
            (libc::SYS_keyctl, [0; 6]),
            (libc::SYS_bpf, [0; 6]),
            (libc::SYS_setns, [0; 6]),
            (libc::SYS_process_vm_readv, [0; 6]),
            // Attempts and attribute calls have nobody to let them on either.
            (libc::SYS_openat, [0; 6]),
            (libc::SYS_execve, [0; 6]),
            (libc::SYS_fchmod, [0; 6]),
        ];
        let refused = refused.map(|(number, args)| call(number, args));
        (refused, call(libc::SYS_getpid, [0; 6]))
    });
    let (refused, pid) = results.join().unwrap();
    assert_eq!(refused, [-i64::from(libc::ENOSYS); 12]);
    assert_eq!(pid, i64::from(std::process::id()));
}
