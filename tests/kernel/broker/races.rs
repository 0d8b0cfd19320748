//! Trees that move and callers that die while the broker is at work.

use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use stockade::confine::broker::{Broker, Served};

use crate::broker::denials::chmod;
use crate::broker::world::{Fixture, Who, call, listen, unwatched};
use crate::common::{PATIENCE, eventually};

#[test]
fn a_link_swapped_in_during_the_walk_reaches_nothing_outside() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let before = std::fs::metadata(world.root.join("out/file")).unwrap();
        let stop = AtomicBool::new(false);
        let answers = world.brokered(&world.plan(), || {
            std::fs::create_dir("real").unwrap();
            std::fs::write("real/file", "").unwrap();
            symlink("../out", "false").unwrap();
            std::fs::rename("real", "swap").unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let exchange = nix::fcntl::RenameFlags::RENAME_EXCHANGE;
                        let here = nix::fcntl::AT_FDCWD;
                        nix::fcntl::renameat2(here, "swap", here, "false", exchange).unwrap();
                    }
                });
                let begun = Instant::now();
                let mut answers = std::collections::BTreeMap::new();
                // For a while, and until both were met.
                while begun.elapsed() < Duration::from_millis(300) || (answers.len() < 2 && begun.elapsed() < PATIENCE)
                {
                    *answers.entry(chmod("swap/file")).or_insert(0) += 1;
                }
                stop.store(true, Ordering::Relaxed);
                answers
            })
        });
        assert_eq!(
            answers.keys().copied().collect::<Vec<_>>(),
            [-i64::from(libc::EPERM), 0],
            "both were met: {answers:?}"
        );
        assert_eq!(
            std::fs::metadata(world.root.join("out/file")).unwrap().mode(),
            before.mode()
        );
        world.end();
    }
}

/// A process that calls chmod once and ends.
fn caller(path: &std::ffi::CStr) -> Pid {
    // SAFETY: the child makes system calls and ends; it touches no lock of another thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            call(
                libc::SYS_prctl,
                [libc::PR_SET_DUMPABLE.cast_unsigned().into(), 1, 0, 0, 0, 0],
            );
            let at = libc::AT_FDCWD as u64;
            let answer = call(libc::SYS_fchmodat, [at, path.as_ptr() as u64, 0o600, 0, 0, 0]);
            // SAFETY: ends the process without running anything else in it.
            unsafe { libc::_exit(i32::from(answer != 0)) }
        }
        ForkResult::Parent { child } => child,
    }
}

fn until_readable(broker: &Broker) {
    let mut fds = [PollFd::new(broker.as_fd(), PollFlags::POLLIN)];
    assert_eq!(poll(&mut fds, PollTimeout::try_from(PATIENCE).unwrap()), Ok(1));
}

#[test]
fn a_caller_killed_before_it_is_served_stops_nothing() {
    let world = Fixture::new(Who::all()[0]);
    let path = world.c("in/file");
    let (give, take) = std::sync::mpsc::channel();
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let path = &path;
        scope.spawn(move || {
            give.send(listen()).unwrap();
            while asked.recv().is_ok() {
                tell.send(caller(path)).unwrap();
            }
        });
        let mut broker = Broker::new(take.recv().unwrap(), world.plan()).unwrap();
        assert_eq!(unwatched(&mut broker), Served::Idle);

        ask.send(()).unwrap();
        let child = told.recv().unwrap();
        until_readable(&broker);
        kill(child, Signal::SIGKILL).unwrap();
        waitpid(child, None).unwrap();
        assert!(matches!(unwatched(&mut broker), Served::Idle | Served::CallerExited));

        ask.send(()).unwrap();
        let child = told.recv().unwrap();
        until_readable(&broker);
        assert_eq!(unwatched(&mut broker), Served::Answered);
        assert_eq!(waitpid(child, None), Ok(nix::sys::wait::WaitStatus::Exited(child, 0)));
        drop(ask);
        // The last thread with the filter ends, and there is nobody left to call.
        eventually("the broker sees that it is over", || {
            unwatched(&mut broker) == Served::NoCallers
        });
    });
    world.end();
}

#[test]
fn callers_killed_at_any_moment_stop_nothing() {
    for who in Who::all() {
        let world = Fixture::new(who);
        let path = world.c("in/file");
        let last = world.brokered(&world.plan(), || {
            for round in 0..150_u64 {
                let child = caller(&path);
                std::thread::sleep(Duration::from_micros(round * 3));
                kill(child, Signal::SIGKILL).unwrap();
                waitpid(child, None).unwrap();
            }
            chmod("file")
        });
        assert_eq!(last, 0, "{who:?}");
        world.end();
    }
}

#[test]
fn without_its_broker_a_call_fails() {
    let world = Fixture::new(Who::all()[0]);
    let before = world.attributes();
    let path = world.root.join("in/file");
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| {
            drop(listen());
            chmod(&path)
        });
        assert_eq!(answer.join().unwrap(), -i64::from(libc::ENOSYS));
    });
    assert_eq!(world.attributes(), before);
    world.end();
}
