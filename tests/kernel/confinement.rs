//! What a command in the default preset cannot do, as root and as an ordinary user, each beside what it can.
//!
//! Everything outside the workspace belongs to the actor, so that nothing but the confinement is in the way: the
//! twin of a denial is the same act inside the workspace, or the same act without Stockade.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::net::TcpListener;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use crate::common::{Fixture, Run, Running, SECRET, in_both_regimes, marker, wait_for_processes};

    in_both_regimes! {
        a_file_outside_is_not_read [];
        the_private_key_in_home_is_not_read [];
        home_inside_is_private_and_empty [];
        a_folder_outside_is_not_listed [];
        a_file_outside_is_not_written [];
        a_file_outside_is_not_linked_into_the_workspace [];
        a_symlink_in_the_workspace_leads_nowhere_outside [];
        the_password_hashes_are_not_read [];
        another_process_s_environment_and_command_line_are_not_read ["python3"];
        another_process_is_not_signalled ["python3"];
        a_command_gets_processors_as_it_would_outside ["chrt"];
        of_many_that_start_at_once_each_may_use_all_processors ["nproc"];
        another_process_is_not_traced ["python3"];
        another_process_s_limits_and_priority_are_not_changed ["python3"];
        a_unix_socket_is_not_reached_wherever_it_lies ["python3"];
        an_inherited_descriptor_is_closed [];
        attributes_outside_are_not_changed ["python3"];
        a_thread_names_itself_where_it_changes_how_it_runs ["python3"];
        no_namespace_keyring_or_ring_is_made ["python3"];
        a_variable_without_a_value_is_passed_from_the_caller [];
        authorities_that_the_caller_names_are_passed_and_said_where_they_cannot_be_read [];
        shells_keep_their_here_documents_in_the_private_directory [];
        the_caller_s_environment_is_not_passed [];
        hostile_names_work_in_the_workspace_and_are_denied_outside [];
        the_terminal_of_the_caller_is_not_reached ["python3"];
        a_read_only_root_is_read_and_not_written [];
        a_denied_path_is_denied_inside_a_root [];
    }

    // Of these tests/kernel/namespaces.rs speaks: other errors, or a world of one's own, stand for them there.
    mod without_namespaces {
        use super::{
            a_file_outside_is_not_created_removed_or_renamed, a_listening_port_on_loopback_is_not_reached,
            no_internet_socket_is_made, no_privilege_is_gained, shared_memory_and_tmp_are_not_shared,
        };

        crate::common::as_root_and_as_user! {
            no_internet_socket_is_made ["python3"];
            a_listening_port_on_loopback_is_not_reached ["python3"];
            a_file_outside_is_not_created_removed_or_renamed [];
            shared_memory_and_tmp_are_not_shared ["python3"];
            no_privilege_is_gained ["python3"];
        }
    }

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    /// A Python program in confinement that prints `done`, or the name of the errno it met.
    fn probe(world: &Fixture, code: &str) -> String {
        probed(world.run(&["/usr/bin/python3", "-c", &framed(code)]).output())
    }

    /// The same, unconfined.
    fn bare_probe(world: &Fixture, code: &str) -> String {
        probed(world.bare("/usr/bin/python3").args(["-c", &framed(code)]).output())
    }

    fn framed(code: &str) -> String {
        let body = format!(" {}\n", code.replace('\n', "\n "));
        format!(
            "import os, errno, socket, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
             def call(*a):\n r = libc.syscall(*a)\n if r == -1: raise OSError(ctypes.get_errno(), '')\n return r\n\
             try:\n{body} print('done')\nexcept OSError as e: print(errno.errorcode[e.errno])\n"
        )
    }

    fn probed(run: Run) -> String {
        run.ok().trim().to_owned()
    }

    #[track_caller]
    fn assert_refused(answer: &str) {
        let refusals = [
            "EACCES",
            "EPERM",
            "ENOENT",
            "ENOSYS",
            "EAFNOSUPPORT",
            "EPROTONOSUPPORT",
            "ESRCH",
            "EROFS",
        ];
        assert!(refusals.contains(&answer), "{answer}");
    }

    /// An unconfined process of the actor's, with a secret in its environment.
    struct Bystander(Running);

    impl Bystander {
        fn new(world: &Fixture) -> Self {
            let marker = marker();
            let running = world.bare("/bin/sleep").args([&marker]).env("TOKEN", SECRET).spawn();
            wait_for_processes(&marker, 1);
            Self(running)
        }

        fn pid(&self) -> i32 {
            self.0.pid()
        }

        /// Ends the bystander; fails if somebody else did.
        fn still_there(mut self) {
            assert!(self.0.is_alive(), "the bystander was killed");
            self.0.signal(nix::sys::signal::Signal::SIGKILL);
            self.0.wait();
        }
    }

    fn a_file_outside_is_not_read(world: &Fixture) {
        let secret = world.outside().join("secret");
        world.write("plain", "content");
        world.run(&["cat", text(&secret)]).output().assert_denied();
        world.run(&["cat", "../outside/secret"]).output().assert_denied();
        assert_eq!(world.run(&["cat", "plain"]).output().ok(), "content");
        assert_eq!(world.bare("/bin/cat").args([&secret]).output().ok(), SECRET);
    }

    fn the_private_key_in_home_is_not_read(world: &Fixture) {
        let key = world.home().join(".ssh/id_ed25519");
        world.run(&["cat", text(&key)]).output().assert_denied();
        assert_eq!(world.bare("/bin/cat").args([&key]).output().ok(), SECRET);
    }

    fn home_inside_is_private_and_empty(world: &Fixture) {
        // The user's git name and e-mail are carried over; nothing else is there.
        let line =
            "test \"$HOME\" != \"$1\" && ls -A \"$HOME\" | grep -vx .gitconfig; touch \"$HOME/x\" && ls \"$HOME\"";
        let real = world.home();
        let run = world.run(&["sh", "-c", line, "sh", text(&real)]).output();
        assert_eq!(run.ok(), "x\n");
        assert!(!real.join("x").exists());
    }

    fn a_folder_outside_is_not_listed(world: &Fixture) {
        world.run(&["ls", text(&world.outside())]).output().assert_denied();
        world.run(&["ls", text(&world.home())]).output().assert_denied();
        world.run(&["ls", "."]).output().ok();
    }

    fn a_file_outside_is_not_written(world: &Fixture) {
        let target = world.write(world.outside().join("target"), "before");
        for line in [
            "echo evil > \"$1\"",
            "echo evil >> \"$1\"",
            "cp /dev/null \"$1\"",
            "truncate -s 0 \"$1\"",
        ] {
            world
                .run(&["sh", "-c", line, "sh", text(&target)])
                .output()
                .assert_denied();
            assert_eq!(fs::read(&target).unwrap(), b"before", "{line}");
            let inside = world.write("target", "before");
            world.run(&["sh", "-c", line, "sh", "target"]).output().ok();
            assert_ne!(fs::read(&inside).unwrap(), b"before", "{line}");
        }
    }

    fn a_file_outside_is_not_created_removed_or_renamed(world: &Fixture) {
        world.write(world.outside().join("target"), "");
        let lines = [
            "touch \"$1/new\"",
            "mkdir \"$1/new\"",
            "ln -s x \"$1/new\"",
            "mkfifo \"$1/new\"",
            "mv \"$1/target\" \"$1/new\"",
            "mv \"$1/target\" .",
            "touch y && mv y \"$1/new\"",
            "rm -f \"$1/target\"",
        ];
        for line in lines {
            world
                .run(&["sh", "-c", line, "sh", text(&world.outside())])
                .output()
                .assert_denied();
            assert!(world.outside().join("target").exists(), "{line}");
            assert!(fs::symlink_metadata(world.outside().join("new")).is_err(), "{line}");
            let inside = world.workspace().join("twin");
            world.write("twin/target", "");
            world.run(&["sh", "-c", line, "sh", text(&inside)]).output().ok();
            fs::remove_dir_all(inside).unwrap();
        }
    }

    fn a_file_outside_is_not_linked_into_the_workspace(world: &Fixture) {
        world
            .run(&["ln", text(&world.outside().join("secret")), "link"])
            .output()
            .assert_denied();
        assert!(!world.workspace().join("link").exists());
        world.write("plain", "");
        world.run(&["ln", "plain", "link"]).output().ok();
        assert_eq!(fs::metadata(world.workspace().join("link")).unwrap().nlink(), 2);
    }

    fn a_symlink_in_the_workspace_leads_nowhere_outside(world: &Fixture) {
        symlink(world.outside().join("secret"), world.workspace().join("out")).unwrap();
        symlink("plain", world.workspace().join("in")).unwrap();
        world.write("plain", "content");
        world.run(&["cat", "out"]).output().assert_denied();
        world.shell("echo evil > out").output().assert_denied();
        assert_eq!(world.run(&["cat", "in"]).output().ok(), "content");
        assert_eq!(fs::read_to_string(world.outside().join("secret")).unwrap(), SECRET);
    }

    fn the_password_hashes_are_not_read(world: &Fixture) {
        world.run(&["cat", "/etc/shadow"]).output().assert_denied();
        if world.actor.uid() == 0 {
            world.bare("/bin/cat").args(["/etc/shadow"]).output().ok();
        }
    }

    fn another_process_s_environment_and_command_line_are_not_read(world: &Fixture) {
        let bystander = Bystander::new(world);
        for file in ["environ", "cmdline", "maps", "cwd/plain", "root/etc/passwd", "mem"] {
            world.write("plain", "");
            let code = format!("open('/proc/{}/{file}', 'rb').read(0)", bystander.pid());
            assert_refused(&probe(world, &code));
            if file != "mem" {
                assert_eq!(bare_probe(world, &code), "done", "{file}");
            }
        }
        bystander.still_there();
    }

    fn another_process_is_not_signalled(world: &Fixture) {
        let bystander = Bystander::new(world);
        for signal in [0, 9] {
            assert_refused(&probe(world, &format!("os.kill({}, {signal})", bystander.pid())));
        }
        assert_refused(&probe(
            world,
            &format!("call(424, call(434, {}, 0), 9, 0, 0)", bystander.pid()),
        ));
        let own = "p = os.fork()\nif p == 0: __import__('signal').pause()\nos.kill(p, 9)\nos.waitpid(p, 0)";
        assert_eq!(probe(world, own), "done");
        bystander.still_there();
    }

    fn a_command_gets_processors_as_it_would_outside(world: &Fixture) {
        let policy = |told: String| {
            told.lines()
                .find_map(|line| line.split_once("policy: ").map(|(_, policy)| policy.to_owned()))
        };
        let outside = policy(world.bare("/usr/bin/chrt").args(["-p", "0"]).output().ok());
        assert!(outside.is_some());
        assert_eq!(policy(world.run(&["chrt", "-p", "0"]).output().ok()), outside);
    }

    /// Who starts something sends it to another processor, and what that starts must not be kept there.
    fn of_many_that_start_at_once_each_may_use_all_processors(world: &Fixture) {
        let outside = world.bare("/usr/bin/nproc").output().ok();
        for _ in 0..3 {
            let all: Vec<Running> = (0..20).map(|_| world.run(&["nproc"]).spawn()).collect();
            for one in all {
                assert_eq!(one.wait().ok(), outside);
            }
        }
    }

    fn another_process_is_not_traced(world: &Fixture) {
        let bystander = Bystander::new(world);
        let pid = bystander.pid();
        // PTRACE_ATTACH, PTRACE_SEIZE, process_vm_readv.
        assert_refused(&probe(world, &format!("call(101, 16, {pid}, 0, 0)")));
        assert_refused(&probe(world, &format!("call(101, 0x4206, {pid}, 0, 0)")));
        let vm = format!("b = ctypes.create_string_buffer(16)\ncall(310, {pid}, b, 0, b, 0, 0)");
        assert_refused(&probe(world, &vm));
        bystander.still_there();
    }

    fn another_process_s_limits_and_priority_are_not_changed(world: &Fixture) {
        let bystander = Bystander::new(world);
        let pid = bystander.pid();
        for (other, own) in [
            (
                format!("os.setpriority(os.PRIO_PROCESS, {pid}, 5)"),
                "os.setpriority(os.PRIO_PROCESS, 0, 5)",
            ),
            (
                format!("os.sched_setaffinity({pid}, {{0}})"),
                "os.sched_setaffinity(0, {0})",
            ),
            (
                format!("import resource; resource.prlimit({pid}, resource.RLIMIT_CORE, (0, 0))"),
                "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
            ),
        ] {
            assert_refused(&probe(world, &other));
            assert_eq!(probe(world, own), "done", "{own}");
            assert_eq!(bare_probe(world, &other), "done", "{other}");
        }
        bystander.still_there();
    }

    /// As thread pools and schedulers do.
    fn a_thread_names_itself_where_it_changes_how_it_runs(world: &Fixture) {
        let ways = [
            "os.sched_setscheduler({}, os.SCHED_OTHER, os.sched_param(0))",
            "os.sched_setparam({}, os.sched_param(0))",
            "os.sched_setaffinity({}, os.sched_getaffinity(0))",
            "os.setpriority(os.PRIO_PROCESS, {}, 5)",
            "resource.prlimit({}, resource.RLIMIT_CORE, (0, 0))",
            "call(ioprio_set, 1, {}, 3 << 13)",
        ];
        for way in ways {
            let of = |who: &str, thread: &str| {
                let code = format!(
                    "import platform, resource, threading\nioprio_set = 251 if platform.machine() == 'x86_64' else 30\n\
                     lock = threading.Lock(); lock.acquire()\nother = threading.Thread(target=lock.acquire)\nother.start()\n\
                     failed = []\ndef act():\n try: {}\n except OSError as e: failed.append(e)\n{thread}\n\
                     lock.release(); other.join()\nif failed: raise failed[0]",
                    way.replace("{}", who)
                );
                probe(world, &code)
            };
            let (main, second) = ("act()", "t = threading.Thread(target=act); t.start(); t.join()");
            assert_eq!(of("threading.get_native_id()", main), "done", "{way}");
            assert_eq!(of("os.getpid()", main), "done", "{way}");
            assert_eq!(of("threading.get_native_id()", second), "done", "{way}");
            assert_eq!(of("os.getpid()", second), "done", "{way}");
            // It may end, and its number be another's, before the kernel looks.
            assert_eq!(of("other.native_id", main), "EPERM", "{way}");
            assert_eq!(of("os.getppid()", main), "EPERM", "{way}");
        }
    }

    fn no_internet_socket_is_made(world: &Fixture) {
        for (family, kind) in [
            ("INET", "STREAM"),
            ("INET", "DGRAM"),
            ("INET6", "STREAM"),
            ("INET6", "DGRAM"),
        ] {
            let code = format!("socket.socket(socket.AF_{family}, socket.SOCK_{kind})");
            assert_refused(&probe(world, &code));
        }
        for code in [
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "socket.socket(40, socket.SOCK_STREAM)",
        ] {
            assert_refused(&probe(world, code));
        }
        assert_eq!(
            bare_probe(world, "socket.socket(socket.AF_INET, socket.SOCK_STREAM)"),
            "done"
        );
        assert_eq!(
            probe(world, "a, b = socket.socketpair()\na.send(b'x')\nb.recv(1)"),
            "done"
        );
    }

    fn a_listening_port_on_loopback_is_not_reached(world: &Fixture) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let code = format!("socket.create_connection(('127.0.0.1', {port}), 5)");
        assert_refused(&probe(world, &code));
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(bare_probe(world, &code), "done");
        listener.accept().unwrap();
    }

    fn a_unix_socket_is_not_reached_wherever_it_lies(world: &Fixture) {
        for folder in [world.outside(), world.workspace()] {
            let path = folder.join("docker.sock");
            let listener = UnixListener::bind(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
            listener.set_nonblocking(true).unwrap();
            let code = format!("socket.socket(socket.AF_UNIX).connect('{}')", path.display());
            assert_refused(&probe(world, &code));
            assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(bare_probe(world, &code), "done");
            listener.accept().unwrap();
        }
        assert_refused(&probe(world, "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"));
    }

    fn shared_memory_and_tmp_are_not_shared(world: &Fixture) {
        for folder in ["/dev/shm", "/tmp", "/var/tmp"] {
            let name = format!("{folder}/stockade-test-probe-{}", marker());
            assert_refused(&probe(world, &format!("open('{name}', 'x')")));
            assert!(!Path::new(&name).exists());
            assert_refused(&probe(world, &format!("os.listdir('{folder}')")));
        }
        let own = "import tempfile\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x'); assert not f.name.startswith('/tmp/tmp')";
        assert_eq!(probe(world, own), "done");
    }

    fn an_inherited_descriptor_is_closed(world: &Fixture) {
        let line = "exec 7<\"$1\" 8>>\"$1\"; shift; exec \"$@\"";
        let secret = world.outside().join("secret");
        let bare = world
            .bare("/bin/sh")
            .args(["-c", line, "sh", text(&secret), "cat", "/proc/self/fd/7"]);
        assert_eq!(bare.output().ok(), SECRET);
        for inside in ["cat <&7", "echo evil >&8"] {
            let confined = world
                .bare("/bin/bash")
                .args(["-c", line, "bash", text(&secret), text(world.binary())]);
            let run = confined.args(["run", "--", "/bin/bash", "-c", inside]).output();
            assert!(!run.status.success() && !run.out().contains(SECRET), "{inside}");
            assert!(run.err().contains("Bad file descriptor"), "{}", run.err());
        }
        assert_eq!(fs::read_to_string(secret).unwrap(), SECRET);
    }

    fn attributes_outside_are_not_changed(world: &Fixture) {
        let target = world.outside().join("secret");
        let before = fs::metadata(&target).unwrap();
        let inside = world.write("mine", "");
        for act in [
            "os.chmod(P, 0o777)",
            "os.utime(P, (1, 1))",
            "os.chown(P, -1, os.getgid())",
            "os.setxattr(P, 'user.evil', b'x')",
            "os.chmod(os.path.relpath(P), 0o755)",
        ] {
            assert_refused(&probe(world, &format!("P = '{}'\n{act}", text(&target))));
            assert_eq!(
                probe(world, &format!("P = '{}'\n{act}", text(&inside))),
                "done",
                "{act}"
            );
        }
        symlink(&target, world.workspace().join("out")).unwrap();
        assert_refused(&probe(world, "os.chmod('out', 0o777)"));
        let after = fs::metadata(&target).unwrap();
        assert_eq!(
            (before.mode(), before.mtime(), before.ctime_nsec()),
            (after.mode(), after.mtime(), after.ctime_nsec())
        );
    }

    fn no_privilege_is_gained(world: &Fixture) {
        assert_eq!(
            probe(world, "assert call(157, 39, 0, 0, 0, 0) == 1"),
            "done",
            "no_new_privs is set"
        );
        if world.actor.uid() == 0 {
            // A user has no capability to give up, nor the right to.
            let bounding = "for c in range(38): assert call(157, 23, c, 0, 0, 0) == 0, c";
            assert_eq!(probe(world, bounding), "done");
            assert_eq!(bare_probe(world, "assert call(157, 23, 0, 0, 0, 0) == 1"), "done");
        }
        assert_refused(&probe(world, "os.setuid(4242)"));
        assert_refused(&probe(world, "os.setgroups([0])"));
        assert_refused(&probe(world, "os.mknod('device', 0o20666, os.makedev(1, 1))"));
        assert_refused(&probe(world, "os.chroot('.')"));
        assert_refused(&probe(world, "call(165, b'x', b'.', b'tmpfs', 0, 0)"));
        assert_eq!(probe(world, "os.setuid(os.getuid())"), "done");
    }

    fn no_namespace_keyring_or_ring_is_made(world: &Fixture) {
        for (what, code) in [
            ("user namespace", "call(272, 0x10000000)"),
            ("io_uring", "b = ctypes.create_string_buffer(256)\ncall(425, 1, b)"),
            ("keyring", "call(250, 0, -3, 1)"),
            ("bpf", "call(321, 0, 0, 0)"),
            ("shared memory", "call(29, 0, 4096, 0o1600)"),
            ("message queue", "call(68, 0, 0o1600)"),
            ("handle", "call(304, -100, 0, 0)"),
        ] {
            let answer = probe(world, code);
            assert!(
                ["EPERM", "ENOSYS", "EACCES"].contains(&answer.as_str()),
                "{what}: {answer}"
            );
        }
    }

    fn the_caller_s_environment_is_not_passed(world: &Fixture) {
        let seen = world
            .run(&["env"])
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("LD_PRELOAD", "/nonexistent.so")
            .output()
            .ok();
        assert!(!seen.contains(SECRET) && !seen.contains("LD_PRELOAD"), "{seen}");
        for name in ["PATH=", "HOME=", "TMPDIR=", "LANG="] {
            assert!(seen.lines().any(|line| line.starts_with(name)), "no {name} in {seen}");
        }
        let given = world
            .stockade(&["run", "--env", "GIVEN=yes", "--", "env"])
            .output()
            .ok();
        assert!(given.contains("GIVEN=yes\n"));
    }

    fn a_variable_without_a_value_is_passed_from_the_caller(world: &Fixture) {
        let run = world.stockade(&["run", "--env", "TOKEN", "--", "printenv", "TOKEN"]);
        let run = run.env("TOKEN", "given to the caller").output().ok();
        assert_eq!(run, "given to the caller\n");
        // An empty value is one.
        let empty = world.stockade(&["run", "--env", "TOKEN", "--", "env"]);
        assert!(empty.env("TOKEN", "").output().ok().contains("\nTOKEN=\n"));
        for name in ["TOKEN", "=x", ""] {
            let refused = world.stockade(&["run", "--env", name, "--", "touch", "ran"]).output();
            let said = refused.exits(125).err();
            assert!(said.contains("NAME=VALUE"), "{name}: {said}");
        }
        assert!(!world.workspace().join("ran").exists());
    }

    fn authorities_that_the_caller_names_are_passed_and_said_where_they_cannot_be_read(world: &Fixture) {
        let inside = world.write("ca.pem", "authorities");
        let outside = world.write(world.outside().join("ca.pem"), SECRET);
        let names = [
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "PIP_CERT",
            "GIT_SSL_CAINFO",
            "CARGO_HTTP_CAINFO",
        ];
        for name in names {
            let line = format!("cat \"${name}\"");
            let read = world.run(&["sh", "-c", &line]).env(name, &inside).output();
            assert!(!read.err().contains(name), "{}", read.err());
            assert_eq!(read.ok(), "authorities");
            let denied = world.run(&["sh", "-c", &line]).env(name, &outside).output();
            let said = format!("commands cannot read {}, which {name} names", outside.display());
            assert!(denied.err().contains(&said), "{name}: {}", denied.err());
            assert!(denied.code() != 0 && !denied.out().contains(SECRET), "{name}");
        }
        // A list of directories, and a variable of this command alone.
        let list = format!("/etc/ssl/certs:{}", world.outside().display());
        let told = world.run(&["true"]).env("SSL_CERT_DIR", &list).output();
        assert!(told.err().contains("which SSL_CERT_DIR names"), "{}", told.err());
        let given = format!("PIP_CERT={}", outside.display());
        let told = world
            .stockade(&["run", "--env", &given, "--", "true"])
            .output()
            .exits(0);
        assert!(told.err().contains("which PIP_CERT names"), "{}", told.err());
        // What is in place of it may be read, and what is nowhere is no matter of the sandbox.
        let system = world
            .run(&["true"])
            .env("SSL_CERT_DIR", "/etc/ssl/certs")
            .env("PIP_CERT", "/nonexistent/ca")
            .output();
        assert!(!system.err().contains("names:"), "{}", system.err());
    }

    fn shells_keep_their_here_documents_in_the_private_directory(world: &Fixture) {
        // What zsh does with the text of a here-document.
        let line =
            "f=$TMPPREFIX.here; echo text > \"$f\" && cat \"$f\" && case $f in \"$TMPDIR\"/*) echo private;; esac";
        assert_eq!(world.run(&["sh", "-c", line]).output().ok(), "text\nprivate\n");
        let own = ["run", "--env", "TMPPREFIX=/own", "--", "printenv", "TMPPREFIX"];
        assert_eq!(world.stockade(&own).output().ok(), "/own\n");
    }

    fn hostile_names_work_in_the_workspace_and_are_denied_outside(world: &Fixture) {
        for name in [
            &b"it's \"quoted\""[..],
            b"new\nline",
            b"not\xffutf8",
            b"-rf",
            b"$(touch evil)",
            b"\x1b[2J",
        ] {
            let name = std::ffi::OsStr::from_bytes(name);
            world.write(Path::new(name), "inside");
            let outside = world.write(world.outside().join(name), SECRET);
            let line = "cat -- \"$1\"";
            let confined = |file: &Path| world.run(&["sh", "-c", line, "sh"]).args([file]).output();
            assert_eq!(confined(Path::new(name)).ok(), "inside");
            confined(&outside).assert_denied();
        }
        assert!(!world.workspace().join("evil").exists());
    }

    fn the_terminal_of_the_caller_is_not_reached(world: &Fixture) {
        assert_ne!(probe(world, "os.close(os.open('/dev/tty', os.O_RDWR))"), "done");
        // TIOCSTI on whatever descriptor it holds.
        for fd in 0..3 {
            assert_ne!(
                probe(world, &format!("import fcntl\nfcntl.ioctl({fd}, 0x5412, b'x')")),
                "done"
            );
        }
    }

    fn a_read_only_root_is_read_and_not_written(world: &Fixture) {
        world.write("data", "content");
        let data = world.workspace();
        let at = |flag: &str, line: &str| {
            world
                .stockade(&["run", flag, text(&data), "--cwd", text(&data), "-c", line])
                .output()
        };
        assert_eq!(at("--ro", "cat data").ok(), "content");
        at("--ro", "echo evil > data").assert_denied();
        assert_eq!(fs::read(data.join("data")).unwrap(), b"content");
        at("--rw", "echo fine > data").ok();
        assert_eq!(fs::read(data.join("data")).unwrap(), b"fine\n");
    }

    /// Without namespaces a read-deny inside a root is refused unless the config asks for its decomposition.
    fn a_denied_path_is_denied_inside_a_root(world: &Fixture) {
        let env = world.write(".env", SECRET);
        world.write("src/main", "content");
        let run = world
            .stockade(&["run", "--rw", ".", "--deny", text(&env), "--", "cat", ".env"])
            .output();
        assert!(!run.status.success() && !run.out().contains(SECRET));
        let config = "extends: [system]\nsandbox:\n  deny_fallback: decompose\n  paths:\n    all: {root: ../workspace, mode: ro, deny: [.env]}\nshell:\n  default: {allowed: true, approval: none}\n";
        let config = world.write(world.outside().join("deny.yaml"), config);
        let with = |argv: &[&str]| {
            world
                .stockade(&["run", "--config", text(&config), "--"])
                .args(argv)
                .output()
        };
        with(&["cat", ".env"]).assert_denied();
        assert_eq!(with(&["cat", "src/main"]).ok(), "content");
    }
}
