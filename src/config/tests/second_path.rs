//! The same directory under a second path. Only root can make such a mount, so only root's run of
//! the tests says something here.

use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::Fixture;
use crate::config::{FlagPolicy, from_flags, preset};
use crate::policy::Network;

/// Runs `claim` where mounts are this thread's own.
fn in_mount_namespace(claim: impl FnOnce() + Send + 'static) {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let run = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        claim();
    });
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

fn bind(from: &Path, onto: &Path) {
    std::fs::create_dir_all(onto).unwrap();
    mount(Some(from), onto, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
}

#[test]
fn a_home_under_a_second_path_is_no_workspace() {
    in_mount_namespace(|| {
        let world = Fixture::new();
        let door = world.project().join("door \n'");
        let plain = world.project().join("plain");
        let inner = world.home().join("project");
        std::fs::create_dir(&inner).unwrap();
        bind(world.home().parent().unwrap(), &door);
        bind(&inner, &plain);
        for place in [&door, &door.join("home")] {
            let error = preset("workspace-write", place, &world.context)
                .unwrap_err()
                .to_string();
            assert!(error.contains("cannot be the workspace"), "{error}");
        }
        assert!(preset("workspace-write", &plain, &world.context).is_ok());
    });
}

#[test]
fn stockades_own_state_under_a_second_path_is_not_writable() {
    in_mount_namespace(|| {
        let world = Fixture::new();
        let state = world.home().join(".local/state/stockade");
        std::fs::create_dir_all(state.join("deeper")).unwrap();
        let door = world.project().join("door");
        for (held, root) in [
            (world.home().join(".local"), "door"),
            (state.clone(), "door"),
            (state, "door/deeper"),
        ] {
            bind(&held, &door);
            let config = format!("sandbox: {{paths: {{a: {{root: {root}, mode: rw}}}}}}\n");
            let error = world.error(&config);
            assert!(error.contains("stockade's own state"), "{error}");
            let flags = FlagPolicy {
                rw: vec![root.into()],
                ro: Vec::new(),
                deny: Vec::new(),
                net: Network::Off,
            };
            let error = from_flags(&flags, &world.project(), &world.context).unwrap_err();
            assert!(error.to_string().contains("stockade's own state"), "{error}");
            nix::mount::umount(&door).unwrap();
            std::fs::create_dir_all(world.project().join(root)).unwrap();
            world.ok(&config);
        }
    });
}

#[test]
fn the_kernels_switches_under_a_second_path_are_not_writable() {
    in_mount_namespace(|| {
        let world = Fixture::new();
        bind(Path::new("/proc/sys/kernel"), &world.project().join("door"));
        let error = world.error("sandbox: {paths: {a: {root: door, mode: rw}}}\n");
        assert!(error.contains("(proc)"), "{error}");
    });
}

#[test]
fn what_is_mounted_below_a_writable_root_counts_as_in_it() {
    in_mount_namespace(|| {
        let world = Fixture::new();
        let config = "sandbox: {paths: {a: {root: a, mode: rw}}}\n";
        let state = world.home().join(".local/state/stockade");
        std::fs::create_dir_all(&state).unwrap();
        let door = world.project().join("a/door \n'");
        for (held, word) in [(Path::new("/proc/sys/kernel"), "(proc)"), (&state, "own state")] {
            bind(held, &door);
            let error = world.error(config);
            assert!(error.contains(word), "{error}");
            let error = preset("workspace-write", &world.project(), &world.context).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
            nix::mount::umount(&door).unwrap();
            world.ok(config);
        }
        bind(&world.home(), &world.project().join("other"));
        world.ok(config);
    });
}
