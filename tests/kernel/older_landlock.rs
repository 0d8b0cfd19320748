//! The `namespaces` regime on kernels whose Landlock knows no scopes (ABI 3 to 5): a tracer makes the kernel name an older
//! version, and nothing of a later one is asked of it then.
//!
//! Signals inside the PID namespace are not held there, so a command can kill or stop who watches it. It gains nothing by that.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use std::time::Duration;

    use nix::sys::signal::Signal;

    use crate::common::{
        Fixture, Invocation, Snapshot, assert_no_process_left, assert_nothing_left_behind, in_namespaces, marker,
        wait_for_processes, wait_until_gone, without,
    };

    in_namespaces! {
        what_is_not_granted_is_out_of_reach ["cc"];
        abstract_sockets_of_the_host_are_out_of_reach ["cc", "python3"];
        daemons_are_dead_when_the_command_has_ended ["cc", "setsid"];
        a_swarm_of_daemons_dies ["cc", "python3"];
        the_tree_dies_with_a_killed_parent ["cc", "setsid"];
        a_command_that_kills_all_it_can_leaves_nothing_behind ["cc", "setsid", "git"];
        a_command_that_kills_who_watches_it_leaves_nothing_behind ["cc", "setsid"];
        a_command_that_stops_all_it_can_does_not_outlive_its_time ["cc"];
        a_command_that_stops_all_it_can_is_ended_when_it_is_over_a_limit ["cc", "python3"];
        a_command_that_stops_all_it_can_ends_when_it_is_told_to ["cc"];
    }

    const A_SECOND: Duration = Duration::from_secs(1);
    /// Each has something that the next has not.
    const VERSIONS: [&str; 3] = ["3", "4", "5"];

    fn on(world: &Fixture, version: &str, args: &[&str]) -> Invocation {
        let args = [&["run", "--backend", world.backend.name()], args].concat();
        without(world, version, &args)
    }

    fn daemons(marker: &str) -> String {
        format!("sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exit' &)")
    }

    fn what_is_not_granted_is_out_of_reach(world: &Fixture) {
        world.write("mine", "content");
        world.write("d/secret", "denied");
        let outside = world.outside().join("secret");
        for version in VERSIONS {
            let run = on(world, version, &["-c", "cat mine && echo x >made && rm made"]).output();
            assert_eq!(run.exits(0).out(), "content", "{version}");
            let deny = ["--rw", ".", "--deny", "d/secret"];
            for line in [
                format!("cat {}", outside.display()),
                "cat d/secret".to_owned(),
                ": >/etc/passwd".to_owned(),
                "kill -9 1; touch /usr/x".to_owned(),
            ] {
                on(world, version, &[&deny[..], &["-c", &line]].concat())
                    .output()
                    .assert_denied();
            }
        }
    }

    fn abstract_sockets_of_the_host_are_out_of_reach(world: &Fixture) {
        let name = format!("stockade-test-{}", marker());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let path = world.workspace().join("socket");
        let _reachable = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let connect = |to: &str| format!("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect({to})'");
        let (abstract_one, with_path) = (connect(&format!("\"\\0{name}\"")), connect("\"socket\""));
        let config = |network: &str, sockets: &str| {
            let text = format!(
                "extends: [workspace-write]\nshell: {{network: {network}, unix_sockets: {sockets}, default: {{allowed: true, approval: none}}}}\n"
            );
            let path = world.write(format!("{network}-{sockets}.yaml"), text);
            path.to_str().unwrap().to_owned()
        };
        let (open, apart, none) = (config("true", "all"), config("false", "all"), config("true", "none"));
        for version in VERSIONS {
            let run = on(world, version, &["--config", &open, "-c", &with_path]).output();
            assert_eq!(run.code(), 125, "{version}: {}", run.err());
            assert!(
                run.err().contains("abstract sockets of the host"),
                "{version}: {}",
                run.err()
            );
            // A network namespace of its own has no socket of that name.
            let run = on(world, version, &["--config", &apart, "-c", &abstract_one]).output();
            assert!(run.err().contains("ConnectionRefusedError"), "{version}: {}", run.err());
            on(world, version, &["--config", &none, "-c", &abstract_one])
                .output()
                .assert_denied();
            on(world, version, &["--config", &apart, "-c", &with_path])
                .output()
                .exits(0);
        }
        // A scope keeps them out, and lets sockets with a path through.
        let here = |line: &str| world.stockade(&["run", "--config", &open, "-c", line]).output();
        here(&with_path).exits(0);
        here(&abstract_one).assert_denied();
        assert_eq!(listener.accept().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn daemons_are_dead_when_the_command_has_ended(world: &Fixture) {
        for version in VERSIONS {
            let (marker, before) = (marker(), Snapshot::of(world));
            let line = format!("{}; sleep 0.5; echo ended", daemons(&marker));
            assert_eq!(on(world, version, &["-c", &line]).output().exits(0).out(), "ended\n");
            assert_no_process_left(&marker);
            assert_nothing_left_behind(&before, world);
        }
    }

    fn a_swarm_of_daemons_dies(world: &Fixture) {
        let marker = marker();
        // Every process makes another and ends: nobody who looks for them one by one finds the last.
        let code = "import os, time\nend = time.time() + 600\nos.setsid()\n\
                    while time.time() < end:\n    if os.fork():\n        os._exit(0)\n";
        let line = format!("for i in 1 2 3 4; do python3 -c '{code}' {marker} & done; sleep 1; echo ended");
        let run = on(world, "5", &["-c", &line]).output();
        assert!([0, 125].contains(&run.code()), "{}: {}", run.code(), run.err());
        assert_no_process_left(&marker);
    }

    fn the_tree_dies_with_a_killed_parent(world: &Fixture) {
        let (marker, before) = (marker(), Snapshot::of(world));
        let line = format!("{}; sleep {marker}", daemons(&marker));
        let running = on(world, "5", &["-c", &line]).spawn();
        wait_for_processes(&marker, 4);
        // The first child is Stockade; the tracer would take all with it.
        let stockade = crate::common::descendants(running.pid()).remove(0);
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(stockade), Signal::SIGKILL).unwrap();
        wait_until_gone(&marker);
        running.wait().exits(137);
        assert_nothing_left_behind(&before, world);
    }

    /// Runs what ends its own call, and looks at what is left of it.
    fn leaves_nothing(world: &Fixture, flags: &[&str], attack: &str) -> crate::common::Run {
        let (marker, before) = (marker(), Snapshot::of(world));
        let line = format!(
            "{}; echo evil >.envrc; sleep 0.3; {attack}; sleep {marker}",
            daemons(&marker)
        );
        let run = on(world, "5", &[flags, &["-c", &line]].concat()).output();
        assert_no_process_left(&marker);
        assert!(!world.workspace().join(".envrc").exists(), "{}", run.err());
        assert_nothing_left_behind(&before, world);
        run
    }

    fn a_command_that_kills_all_it_can_leaves_nothing_behind(world: &Fixture) {
        let run = leaves_nothing(world, &[], "kill -9 -1").exits(125);
        assert!(run.err().contains("killed"), "{}", run.err());
    }

    fn a_command_that_kills_who_watches_it_leaves_nothing_behind(world: &Fixture) {
        let run = leaves_nothing(world, &[], "kill -9 $PPID").exits(125);
        assert!(run.err().contains("killed"), "{}", run.err());
    }

    fn a_command_that_stops_all_it_can_does_not_outlive_its_time(world: &Fixture) {
        // On a busy machine its time may be over before it stops anybody.
        let mut runs = ["2s", "20s", "120s"]
            .iter()
            .map(|time| leaves_nothing(world, &["--timeout", time], "kill -STOP -1"));
        let run = runs.find(|run| run.code() != 124).expect("it stops all it can");
        let run = run.exits(125);
        assert!(run.err().contains("time was over"), "{}", run.err());
    }

    fn a_command_that_stops_all_it_can_is_ended_when_it_is_over_a_limit(world: &Fixture) {
        let config = world.write(
            "../outside/limits.yaml",
            format!(
                "extends: [system]\nsandbox:\n  protect: none\n  paths: {{w: {{root: {}, mode: rw, approval: {{write: \
                 none}}}}}}\nshell: {{limits: {{memory: 64MiB}}, default: {{allowed: true, approval: none}}}}\n",
                world.workspace().display()
            ),
        );
        let code = "import os, signal, time\nif os.fork() == 0:\n    x = b'x' * (100 << 20)\n    time.sleep(600)\n\
                    os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)";
        let (marker, before) = (marker(), Snapshot::of(world));
        let config = config.to_str().unwrap();
        let args = [
            "run",
            "--backend",
            world.backend.name(),
            "--config",
            config,
            "--",
            "python3",
            "-c",
            code,
            &marker,
        ];
        without(world, "5", &args).output().exits(125);
        assert_no_process_left(&marker);
        assert_nothing_left_behind(&before, world);
    }

    fn a_command_that_stops_all_it_can_ends_when_it_is_told_to(world: &Fixture) {
        let (marker, before) = (marker(), Snapshot::of(world));
        let line = format!("sleep {marker} & sleep 0.2; kill -STOP -1; sleep {marker}");
        let running = on(world, "5", &["-c", &line]).spawn();
        wait_for_processes(&marker, 2);
        std::thread::sleep(A_SECOND);
        let stockade = crate::common::descendants(running.pid()).remove(0);
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(stockade), Signal::SIGTERM).unwrap();
        running.wait().exits(125);
        assert_no_process_left(&marker);
        assert_nothing_left_behind(&before, world);
    }
}
