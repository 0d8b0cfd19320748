//! What holds in the `namespaces` regime beyond what both regimes hold, as root and as an ordinary user.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::net::TcpListener;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use nix::sys::signal::Signal;

    use crate::common::{
        Fixture, Invocation, Run, SECRET, Snapshot, assert_nothing_left_behind, in_all_namespaces, marker,
        wait_for_processes, without,
    };
    use crate::own_mounts::{self, PROGRAM};

    in_all_namespaces! {
        a_file_outside_does_not_exist [];
        what_is_not_granted_is_read_only_or_absent [];
        a_file_denied_in_a_writable_root_is_out_of_reach [];
        a_folder_denied_in_a_writable_root_cannot_be_moved_away [];
        a_protected_name_cannot_be_changed_or_renamed ["git"];
        git_works_beside_its_protected_names ["git"];
        a_protected_name_that_is_new_is_removed_afterwards ["git"];
        protected_names_beyond_what_mounts_hold_are_put_back_and_the_regime_line_says_so [];
        only_the_processes_of_the_sandbox_are_shown ["python3"];
        what_proc_says_of_the_kernel_cannot_be_read [];
        nothing_in_proc_can_be_written [];
        programs_that_look_at_processes_work ["ps", "top", "free", "vmstat"];
        a_loopback_of_ones_own_works ["python3"];
        a_private_tmp_is_seen_by_nobody [];
        a_file_is_written_in_a_folder_that_is_only_executed [];
        names_of_any_bytes_are_granted_and_denied [];
        a_masked_file_that_the_host_replaces_ends_the_command [];
        a_masked_file_that_the_host_moves_away_ends_the_command [];
        a_folder_around_a_mask_that_the_host_moves_away_ends_the_command [];
        files_that_match_start_beside_a_repository ["git"];
        a_profile_without_a_system_still_starts [];
        nothing_is_left_on_the_host [];
        parent_and_keeper_hold_the_session_both [];
        namespaces_that_fail_run_nothing_and_leave_nothing ["cc", "git"];
        a_deny_that_landlock_refuses_says_why_it_was_not_namespaces ["cc", "git"];
    }

    /// Where the choice is left to Stockade.
    macro_rules! left_to_choose {
        ($($tests:tt)*) => {
            crate::common::declare! { root_left_to_choose Root Namespaces; $($tests)* }
            crate::common::declare! { user_left_to_choose User Namespaces; $($tests)* }
        };
    }

    left_to_choose! {
        auto_takes_namespaces_where_they_hold_the_config [];
        auto_takes_bwrap_where_stockade_cannot_mount ["cc", "bwrap"];
        auto_takes_landlock_where_there_would_be_too_many_mounts [];
        auto_takes_landlock_where_a_protected_file_has_a_second_name ["git"];
    }

    crate::common::declare! { root_among_others Root Namespaces;
        a_place_that_somebody_else_took_is_passed_by ["unshare", "mount"];
        a_full_disk_runs_nothing_and_leaves_nothing ["unshare", "mount"];
        auto_takes_landlock_where_proc_is_covered_though_namespaces_are_remembered ["unshare", "mount"];
        auto_takes_landlock_and_forgets_where_a_new_proc_is_refused_at_the_start ["unshare", "mount"];
        auto_stays_in_namespaces_in_a_mount_namespace_with_a_whole_proc ["unshare", "mount"];
    }

    crate::common::declare! { user_without_namespaces User Bwrap; a_bwrap_that_is_not_the_system_s_is_refused_with_the_reason ["unshare", "setpriv"]; }

    fn granted(world: &Fixture, flags: &[&str], line: &str) -> Invocation {
        let workspace = world.workspace();
        world
            .stockade(&["run", "--rw"])
            .args([workspace.as_os_str()])
            .args(flags)
            .args(["-c", line])
    }

    fn fails_with(run: &Run, why: &str) {
        let said = run.out() + &run.err();
        assert!(
            run.code() != 0 && run.code() != 125 && said.contains(why),
            "{}: {said}",
            run.code()
        );
    }

    fn a_file_outside_does_not_exist(world: &Fixture) {
        let outside = world.outside();
        world.write("mine", "content");
        assert_eq!(world.shell("cat mine").output().exits(0).out(), "content");
        let line = format!("cat {}/secret", outside.display());
        fails_with(&world.shell(&line).output(), "No such file or directory");
        fails_with(
            &world.shell(&format!("stat {}", outside.display())).output(),
            "No such file or directory",
        );
    }

    fn what_is_not_granted_is_read_only_or_absent(world: &Fixture) {
        for line in ["touch /usr/x", "chmod 700 /usr", "mkdir /new", "touch /etc/x"] {
            let run = world.shell(line).output();
            assert_ne!(run.code(), 0, "{line}");
            assert_ne!(run.code(), 125, "{line}: {}", run.err());
        }
        world.shell("touch x && mkdir new && chmod 700 new").output().exits(0);
    }

    fn a_file_denied_in_a_writable_root_is_out_of_reach(world: &Fixture) {
        world.write("d/secret", SECRET);
        let deny = ["--deny", "d/secret"];
        for line in [
            "cat d/secret",
            "echo x > d/secret",
            "rm -f d/secret",
            "mv d/secret d/other",
            "mv d other",
            "ln d/secret link",
        ] {
            let run = granted(world, &deny, line).output();
            assert!(
                run.code() != 0 && run.code() != 125,
                "{line}: {} {}",
                run.code(),
                run.err()
            );
            assert!(!run.out().contains(SECRET), "{line}");
        }
        assert_eq!(fs::read_to_string(world.workspace().join("d/secret")).unwrap(), SECRET);
        granted(world, &deny, "echo x > d/new && mv d/new d/newer && ls d")
            .output()
            .exits(0);
        assert!(world.workspace().join("d/newer").exists());
    }

    fn a_folder_denied_in_a_writable_root_cannot_be_moved_away(world: &Fixture) {
        world.write("a/b/keys/one", SECRET);
        let deny = ["--deny", "a/b/keys"];
        for line in ["ls a/b/keys", "cat a/b/keys/one", "mv a/b/keys k", "mv a/b b", "mv a c"] {
            let run = granted(world, &deny, line).output();
            assert!(
                run.code() != 0 && run.code() != 125,
                "{line}: {} {}",
                run.code(),
                run.err()
            );
            assert!(!run.out().contains(SECRET) && !run.out().contains("one"), "{line}");
        }
        granted(world, &deny, "touch a/b/beside a/beside").output().exits(0);
        // Where `mv` copies, it copies what it sees: folders that nobody may enter, an ordinary user's clean-up included.
        granted(world, &[], "chmod -R u+rwx .").output().exits(0);
    }

    fn repository(world: &Fixture) {
        world.bare("/usr/bin/git").args(["init", "-q", "."]).output().exits(0);
        world
            .bare("/usr/bin/git")
            .args(["config", "user.name", "T"])
            .output()
            .exits(0);
        world
            .bare("/usr/bin/git")
            .args(["config", "user.email", "t@example.org"])
            .output()
            .exits(0);
    }

    /// A command under a config that has all protected names that exist read-only.
    fn prevented(world: &Fixture, line: &str) -> Invocation {
        world.stockade(&["run", "--json", "--config", &world.preventing(), "-c", line])
    }

    fn a_protected_name_cannot_be_changed_or_renamed(world: &Fixture) {
        repository(world);
        let config = world.workspace().join(".git/config");
        let before = fs::read(&config).unwrap();
        for line in [
            "echo '[alias]' >> .git/config",
            "mv .git/config .git/c",
            "rm -f .git/config",
            "chmod 600 .git/config",
            "touch .git/hooks/pre-commit",
            "mv .git/hooks .git/h",
            "mv .git away",
        ] {
            let run = prevented(world, line).output();
            assert!(
                run.code() != 0 && run.code() != 125,
                "{line}: {} {}",
                run.code(),
                run.err()
            );
            // It was prevented, so there was nothing to put back.
            let outcome: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
            let restored = outcome["restored"].as_array();
            assert!(restored.is_none_or(Vec::is_empty), "{line}: {outcome:#}");
        }
        assert_eq!(fs::read(&config).unwrap(), before);
    }

    fn git_works_beside_its_protected_names(world: &Fixture) {
        repository(world);
        world.write("file", "1");
        let line = "git add file && git commit -qm one && git checkout -qb other && git log --oneline && git gc -q";
        let said = world.shell(line).output().exits(0).out();
        assert!(said.contains("one"), "{said}");
    }

    fn a_protected_name_that_is_new_is_removed_afterwards(world: &Fixture) {
        repository(world);
        let run = world
            .shell("echo '[alias] x = !id' > .git/config.worktree; echo done")
            .output();
        assert!(run.out().contains("done"), "{}", run.err());
        assert!(!world.workspace().join(".git/config.worktree").exists());
    }

    fn protected_names_beyond_what_mounts_hold_are_put_back_and_the_regime_line_says_so(world: &Fixture) {
        let count = 600;
        for i in 0..count {
            world.write(format!("d{i:03}/.envrc"), "mine");
        }
        let line = "for d in d*; do (echo x >$d/.envrc) 2>/dev/null && echo $d; done; true";
        let run = prevented(world, line).output().exits(0);
        let said = run.out();
        let outcome: serde_json::Value = serde_json::from_str(&said).unwrap();
        let changed = outcome["stdout"].as_str().unwrap().lines().count();
        assert_eq!(changed, count - 512, "mounts hold 512");
        let told = outcome["restored"].as_array().unwrap().len() as u64;
        assert_eq!(told + outcome["more_changed"].as_u64().unwrap(), changed as u64);
        assert!(
            outcome["regime"].as_str().unwrap().contains("after the first 512"),
            "{said}"
        );
        for i in 0..count {
            let file = world.workspace().join(format!("d{i:03}/.envrc"));
            assert_eq!(fs::read_to_string(&file).unwrap(), "mine", "{}", file.display());
        }
    }

    fn only_the_processes_of_the_sandbox_are_shown(world: &Fixture) {
        let code = "import os; print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()))";
        let said = world.run(&["/usr/bin/python3", "-c", code]).output().exits(0).out();
        let count = said.split(',').count();
        assert!((2..=6).contains(&count), "{said}");
    }

    fn what_proc_says_of_the_kernel_cannot_be_read(world: &Fixture) {
        // Some the kernel may not have, and most can be read by root alone.
        let files = "interrupts keys latency_stats sched_debug timer_list timer_stats kpagecount kpageflags kpagecgroup \
                     pagetypeinfo slabinfo vmallocinfo scsi/scsi tty/driver/serial";
        let line = format!("cd /proc; for f in {files}; do head -c1 $f >/dev/null 2>&1 && echo $f; done; true");
        let outside = world.bare("/bin/sh").args(["-c", &line]).output().exits(0).out();
        assert!(outside.contains("interrupts"), "{outside}");
        assert_eq!(world.shell(&line).output().exits(0).out(), "");
        let open = "cd /proc; head -c1 version meminfo stat self/stat self/status sys/kernel/osrelease >/dev/null";
        world.shell(open).output().exits(0);
    }

    fn nothing_in_proc_can_be_written(world: &Fixture) {
        let file = "sys/kernel/core_pattern sys/vm/drop_caches irq/default_smp_affinity sysrq-trigger self/comm";
        let line = format!("cd /proc; for f in {file}; do [ -e $f ] && (: >>$f) 2>/dev/null && echo $f; done; true");
        assert_eq!(world.shell(&line).output().exits(0).out(), "");
        let twin = "for f in x y; do [ -e $f ] || (: >>$f) 2>/dev/null && echo $f; done";
        assert_eq!(world.shell(twin).output().exits(0).out(), "x\ny\n");
    }

    fn programs_that_look_at_processes_work(world: &Fixture) {
        for (line, says) in [
            ("ps aux", "PID"),
            ("top -bn1", "load average"),
            ("free", "Mem:"),
            ("vmstat", "swpd"),
        ] {
            let said = world.shell(line).output().exits(0).out();
            assert!(said.contains(says), "{line}: {said}");
        }
    }

    fn a_loopback_of_ones_own_works(world: &Fixture) {
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        let code = format!(
            "import socket\ns = socket.create_server(('127.0.0.1', 0))\n\
             c = socket.create_connection(s.getsockname())\nc.sendall(b'hello')\nprint(s.accept()[0].recv(5))\n\
             u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             for place in [('127.0.0.1', {port}), ('192.0.2.1', 80)]:\n\
             \x20try:\n  socket.create_connection(place, 2)\n  print('reached')\n\
             \x20except OSError as e:\n  print(e.strerror)\n"
        );
        let said = world.run(&["/usr/bin/python3", "-c", &code]).output().exits(0).out();
        assert!(said.contains("hello") && !said.contains("reached"), "{said}");
        assert!(
            said.contains("Connection refused") && said.contains("unreachable"),
            "{said}"
        );
    }

    fn a_private_tmp_is_seen_by_nobody(world: &Fixture) {
        let name = marker();
        let said = world
            .shell(&format!("echo x > /tmp/{name} && cat /tmp/{name}"))
            .output()
            .exits(0)
            .out();
        assert_eq!(said, "x\n");
        assert!(!Path::new("/tmp").join(&name).exists());
        fs::write(Path::new("/tmp").join(&name), "host").unwrap();
        let run = world.shell(&format!("cat /tmp/{name}")).output();
        fs::remove_file(Path::new("/tmp").join(&name)).unwrap();
        fails_with(&run, "No such file or directory");
    }

    fn names_of_any_bytes_are_granted_and_denied(world: &Fixture) {
        for name in [
            &b"a b"[..],
            b"-rf",
            b"line\nbreak",
            b"\xff\xfe",
            b"quote'\"\\",
            b"--ro-bind",
        ] {
            let folder = Path::new(OsStr::from_bytes(name)).to_owned();
            world.write(folder.join("secret"), SECRET);
            world.write(folder.join("open"), "open");
            let root = world.workspace().join(&folder);
            let run = |file: &str| {
                let argv = [
                    OsStr::new("run"),
                    OsStr::new("--backend"),
                    OsStr::new("bwrap"),
                    OsStr::new("--rw"),
                ];
                world
                    .bare(world.binary())
                    .args(argv)
                    .args([root.as_os_str(), OsStr::new("--deny"), root.join("secret").as_os_str()])
                    .args(["--", "cat"])
                    .args([root.join(file).as_os_str()])
                    .cwd(&root)
                    .output()
            };
            assert_eq!(run("open").exits(0).out(), "open", "{name:?}");
            let denied = run("secret");
            assert!(
                denied.code() == 1 && !denied.out().contains(SECRET),
                "{name:?}: {}",
                denied.err()
            );
        }
    }

    fn a_masked_file_that_the_host_replaces_ends_the_command(world: &Fixture) {
        world.write("d/secret", SECRET);
        let marker = marker();
        let line = format!("echo evil > .envrc; sleep {marker}; cat d/secret");
        let running = granted(world, &["--deny", "d/secret"], &line).spawn();
        wait_for_processes(&marker, 1);
        // As an editor saves: a new file takes the place of the old one, and of the mount on it.
        world.write("d/new", SECRET);
        fs::rename(world.workspace().join("d/new"), world.workspace().join("d/secret")).unwrap();
        let run = running.wait().exits(125);
        assert!(
            run.err().contains("replaced on the host") && !run.out().contains(SECRET),
            "{}",
            run.err()
        );
        // What was put back is named for all that.
        assert!(
            run.err().contains(".envrc is protected and was created"),
            "{}",
            run.err()
        );
        assert!(!world.workspace().join(".envrc").exists());
    }

    /// The host renames this while a command runs under a deny of `d/secret`, and makes it anew.
    fn is_ended_by_a_rename_of(world: &Fixture, moved: &str) {
        world.write("d/secret", SECRET);
        let marker = marker();
        let line = format!("sleep {marker}; cat d/secret");
        let running = granted(world, &["--deny", "d/secret"], &line).spawn();
        wait_for_processes(&marker, 1);
        // No mount goes: it moves along with what it is on.
        fs::rename(world.workspace().join(moved), world.workspace().join("before")).unwrap();
        world.write("d/secret", SECRET);
        let run = running.wait().exits(125);
        assert!(
            run.err().contains("replaced on the host") && !run.out().contains(SECRET),
            "{}",
            run.err()
        );
    }

    fn a_masked_file_that_the_host_moves_away_ends_the_command(world: &Fixture) {
        is_ended_by_a_rename_of(world, "d/secret");
    }

    fn a_folder_around_a_mask_that_the_host_moves_away_ends_the_command(world: &Fixture) {
        is_ended_by_a_rename_of(world, "d");
    }

    fn files_that_match_start_beside_a_repository(world: &Fixture) {
        world.write("a.md", "content");
        world.bare("/usr/bin/git").args(["init", "-q", "."]).output().exits(0);
        let config = world.write(
            "../outside/suffixes.yaml",
            format!("extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, suffixes: [.md], approval: {{write: none}}}}\nshell:\n  default: {{allowed: true, approval: none}}\n", world.workspace().display()),
        );
        let file = world.workspace().join("a.md");
        let run = world
            .stockade(&["run", "--config"])
            .args([config.as_os_str()])
            .args(["--cwd", "/usr", "--", "cat"])
            .args([file.as_os_str()])
            .output();
        assert_eq!(run.exits(0).out(), "content");
    }

    fn a_profile_without_a_system_still_starts(world: &Fixture) {
        let config = world.write(
            "../outside/bare.yaml",
            format!("extends: []\nsandbox:\n  paths:\n    w: {{root: {}, mode: rw}}\n  protect: none\nshell:\n  default: {{allowed: true, approval: none}}\n", world.workspace().display()),
        );
        let run = world
            .stockade(&["run", "--config"])
            .args([config.as_os_str()])
            .args(["--", "/usr/bin/true"])
            .output();
        // The forker started and passed its self-test; there is nothing that it could execute.
        run.exits(127);
    }

    fn nothing_is_left_on_the_host(world: &Fixture) {
        world.write("kept", "x");
        world.write("d/secret", SECRET);
        let before = Snapshot::of(world);
        granted(
            world,
            &["--deny", "d/secret", "--deny", "d/absent-in-a-readable-place"],
            "true",
        )
        .output();
        granted(world, &["--deny", "d/secret"], "true").output().exits(0);
        let mut names: Vec<_> = fs::read_dir(world.workspace())
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["d", "kept"]);
        assert_eq!(fs::read_dir(world.workspace().join("d")).unwrap().count(), 1);
        assert_nothing_left_behind(&before, world);
    }

    fn parent_and_keeper_hold_the_session_both(world: &Fixture) {
        let marker = marker();
        let running = world.shell(&format!("echo \"$HOME\" > where; sleep {marker}")).spawn();
        wait_for_processes(&marker, 1);
        let home = fs::read_to_string(world.workspace().join("where")).unwrap();
        let lock = Path::new(home.trim()).parent().unwrap().join("lock");
        let inode = format!(":{} ", fs::metadata(lock).unwrap().ino());
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let held = locks
            .lines()
            .filter(|line| line.contains("FLOCK") && line.contains(&inode));
        assert_eq!(held.count(), 2, "{locks}");
        running.signal(Signal::SIGINT);
        running.wait();
    }

    fn namespaces_that_fail_run_nothing_and_leave_nothing(world: &Fixture) {
        repository(world);
        let config = fs::read(world.workspace().join(".git/config")).unwrap();
        let before = Snapshot::of(world);
        for (what, says) in [
            ("namespaces", "namespace"),
            ("mounts", "Permission denied"),
            ("room", "No space left on device"),
        ] {
            let backend = world.backend.name();
            let args = ["run", "--backend", backend, "-c", "echo ran; touch ran"];
            let run = without(world, what, &args).output().exits(125);
            assert_eq!(run.out(), "", "{what}");
            assert!(run.err().contains(says), "{what}: {}", run.err());
            let json = ["run", "--json", "--backend", backend, "-c", "touch ran"];
            let said = without(world, what, &json).output().exits(125).out();
            let outcome: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert!(outcome["reason"].as_str().unwrap().contains(says), "{said}");
            assert!(!world.workspace().join("ran").exists(), "{what}");
            assert_eq!(fs::read(world.workspace().join(".git/config")).unwrap(), config);
            assert_nothing_left_behind(&before, world);
        }
        // The twin: what is missing is what was taken away.
        world.shell("touch ran").output().exits(0);
        assert!(world.workspace().join("ran").exists());
    }

    fn a_file_is_written_in_a_folder_that_is_only_executed(world: &Fixture) {
        let (folder, file) = (world.base().join("only"), world.write("../only/file", "old\n"));
        let text = format!(
            "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    run: {{root: {}, mode: ro, execute: true}}
    file: {{root: {}, mode: rw, write_approval: false, execute: true}}
shell: {{default: {{allowed: true, approval: none}}}}
",
            folder.display(),
            file.display()
        );
        let config = world.write(world.base().join("file.yaml"), text);
        let run = |line: &str| {
            let args = [
                "run",
                "-q",
                "--config",
                config.to_str().unwrap(),
                "--cwd",
                folder.to_str().unwrap(),
            ];
            world.stockade(&args).args(["-c", line]).output()
        };
        run("echo new > file").exits(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
        for line in ["echo x > beside", "rm file", "mkdir file/below", "mv file moved"] {
            run(line).exits(1);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    fn a_deny_that_landlock_refuses_says_why_it_was_not_namespaces(world: &Fixture) {
        let config = "extends: [system]
sandbox: {protect: none, paths: {w: {root: ., mode: rw, write_approval: false, deny: [kept/secret]}}}
shell: {default: {allowed: true, approval: none}}
";
        let config = world.write(
            world.base().join("deny.yaml"),
            config.replace("root: .", &format!("root: {}", world.workspace().display())),
        );
        world.write("kept/secret", "x");
        let config = config.to_str().unwrap();
        let args = ["run", "--config", config, "-c", "touch ran"];
        let said = without(world, "namespaces", &args).output().exits(125).err();
        for part in [
            "Landlock cannot forbid part",
            "namespaces unavailable",
            "stockade doctor",
        ] {
            assert!(said.contains(part), "`{part}` is not in: {said}");
        }
        assert!(!world.workspace().join("ran").exists());
        // The twin: with namespaces it is held. Where Landlock was asked for, nobody speaks of them.
        world.stockade(&args).output().exits(0);
        let args = [&args[..1], &["--backend", "landlock"], &args[1..]].concat();
        let said = without(world, "namespaces", &args).output().exits(125).err();
        assert!(!said.contains("namespaces unavailable"), "{said}");
    }

    fn a_full_disk_runs_nothing_and_leaves_nothing(world: &Fixture) {
        let mut codes = Vec::new();
        for inodes in 1..=16 {
            // In a mount namespace of its own, with room for so many files.
            let mount = format!("mount -t tmpfs -o mode=1777,nr_inodes={inodes} none /var/tmp");
            let run = format!("{PROGRAM} run --backend namespaces -- echo ran");
            // The supervisor goes last.
            let left = until_left("");
            let run = own_mounts::among(world, &format!("{mount} && {{ {run}; code=$?; {left}; exit $code; }}"));
            let run = run.output();
            match run.code() {
                0 => assert_eq!(run.out(), "ran\n", "{inodes}"),
                125 => {
                    assert_eq!(run.out(), "", "{inodes}: nothing ran, and nothing is left");
                    assert!(run.err().contains("No space left on device"), "{inodes}: {}", run.err());
                }
                code => panic!("{inodes}: {code}: {}", run.err()),
            }
            codes.push(run.code());
        }
        // With too few it fails, with more it works, and it is one or the other.
        assert!(codes.first() == Some(&125) && codes.last() == Some(&0), "{codes:?}");
        assert!(codes.is_sorted_by(|few, more| few >= more), "{codes:?}");
    }

    /// A line of shell that waits until nothing but this is left in /var/tmp, for longer than a test does, and says what is.
    fn until_left(this: &str) -> String {
        format!("for i in $(seq 10000); do [ \"$(ls /var/tmp)\" = \"{this}\" ] && break; sleep 0.1; done; ls /var/tmp")
    }

    /// A run with the regime left to choose, after these commands in a mount namespace of its own, where what Stockade
    /// remembers is the world's.
    fn run_after(world: &Fixture, before: &str, args: &[&str]) -> Run {
        let line = format!("mount --bind \"$HOME\" ~root && {before} && exec {PROGRAM} run --json \"$@\"");
        own_mounts::among(world, &line).args(args).output()
    }

    /// The regime of a run that worked.
    fn regime_after(world: &Fixture, before: &str) -> String {
        let run = run_after(world, before, &["--", "true"]).exits(0);
        let outcome: serde_json::Value = serde_json::from_str(&run.out()).unwrap();
        outcome["regime"].as_str().unwrap().to_owned()
    }

    /// As containers and `ProtectKernelTunables=` have it.
    const COVERED: &str = "mount --bind -o ro /proc/sys /proc/sys";

    fn memory(world: &Fixture) -> std::path::PathBuf {
        world.home().join(".local/state/stockade/namespaces.json")
    }

    fn auto_takes_landlock_where_proc_is_covered_though_namespaces_are_remembered(world: &Fixture) {
        assert!(regime_after(world, "true").starts_with("namespaces ("));
        assert!(memory(world).exists());
        let regime = regime_after(world, COVERED);
        assert!(
            regime.starts_with("landlock (") && regime.contains("namespaces unavailable"),
            "{regime}"
        );
    }

    fn auto_takes_landlock_and_forgets_where_a_new_proc_is_refused_at_the_start(world: &Fixture) {
        assert!(regime_after(world, "true").starts_with("namespaces ("));
        // What is remembered is made to count there too, so that the start itself finds out.
        let table = format!("{COVERED}; cat /proc/self/mountinfo");
        let table = world.bare("/usr/bin/unshare").args(["-m", "sh", "-c", &table]).output();
        let table = table.exits(0).out();
        let mounts = table
            .lines()
            .map(|line| line.split(' ').skip(3).take(3).collect::<Vec<_>>());
        let of_proc: Vec<String> = mounts
            .filter(|fields| Path::new(fields[1]).starts_with("/proc"))
            .map(|fields| fields.join(" "))
            .collect();
        let mut remembered: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(memory(world)).unwrap()).unwrap();
        remembered["circumstances"]["proc"] = of_proc.into();
        fs::write(memory(world), remembered.to_string()).unwrap();
        let regime = regime_after(world, COVERED);
        assert!(
            regime.starts_with("landlock (") && regime.contains("a /proc at /proc"),
            "{regime}"
        );
        assert!(!memory(world).exists());
    }

    fn auto_stays_in_namespaces_in_a_mount_namespace_with_a_whole_proc(world: &Fixture) {
        for before in ["true", "mount -t tmpfs none /mnt"] {
            let regime = regime_after(world, before);
            assert!(regime.starts_with("namespaces ("), "{regime}");
        }
    }

    fn a_place_that_somebody_else_took_is_passed_by(world: &Fixture) {
        // In a mount namespace of its own, where no other test looks.
        let take =
            "mount -t tmpfs -o mode=1777 none /var/tmp && mkdir /var/tmp/stockade-0 && chown 12345 /var/tmp/stockade-0";
        let run = format!("{PROGRAM} run --backend namespaces -- sh -c 'touch $HOME/x $TMPDIR/x && echo ran'");
        let line = format!("{take} && {run} && {{ {}; }}", until_left("stockade-0"));
        let said = own_mounts::among(world, &line).output().exits(0).out();
        assert_eq!(
            said, "ran\nstockade-0\n",
            "it ran, and nothing is left but what was there"
        );
    }

    /// The regime of a command that reads `file`, where the choice is left to Stockade.
    fn regime(world: &Fixture, flags: &[&str], file: &str) -> String {
        let run = world.bare(world.binary()).args(["run", "--json"]).args(flags);
        let said = run
            .args(["--cwd", "/usr", "--", "cat"])
            .args([world.workspace().join(file)])
            .output();
        let outcome: serde_json::Value = serde_json::from_str(&said.exits(0).out()).unwrap();
        assert_eq!(outcome["stdout"], "content", "{outcome}");
        outcome["regime"].as_str().unwrap().to_owned()
    }

    fn auto_takes_namespaces_where_they_hold_the_config(world: &Fixture) {
        world.write("a.md", "content");
        for _ in 0..2 {
            let regime = regime(world, &["--rw", world.workspace().to_str().unwrap()], "a.md");
            assert!(regime.starts_with("namespaces (native"), "{regime}");
        }
    }

    fn auto_takes_bwrap_where_stockade_cannot_mount(world: &Fixture) {
        world.write("mine", "content");
        let secret = world.outside().join("secret");
        for _ in 0..2 {
            let line = format!("cat mine {}; touch ran", secret.display());
            let run = without(world, "new-mounts", &["run", "--json", "-c", &line]).output();
            let outcome: serde_json::Value = serde_json::from_str(&run.exits(0).out()).unwrap();
            assert!(
                outcome["regime"].as_str().unwrap().starts_with("namespaces (bwrap"),
                "{outcome}"
            );
            assert_eq!(outcome["stdout"], "content", "{outcome}");
        }
        fs::remove_file(world.workspace().join("ran")).unwrap();
        // Who asks for one of them gets that one.
        let named = |backend, machine| {
            let args = ["run", "--json", "--backend", backend, "-c", "true"];
            let run = match machine {
                None => world.bare(world.binary()).args(args).output(),
                Some(machine) => without(world, machine, &args).output(),
            };
            let outcome: serde_json::Value = serde_json::from_str(&run.exits(0).out()).unwrap();
            outcome["regime"]
                .as_str()
                .unwrap()
                .split(" + ")
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(named("namespaces", None), "namespaces (native");
        assert!(named("namespaces", Some("new-mounts")).starts_with("namespaces (bwrap "));
        assert!(named("bwrap", None).starts_with("namespaces (bwrap "));
    }

    fn auto_takes_landlock_where_there_would_be_too_many_mounts(world: &Fixture) {
        for number in 0..3_100 {
            world.write(format!("{number}.md"), "content");
        }
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, suffixes: [.md], approval: {{write: none}}}}\nshell:\n  default: {{allowed: true, approval: none}}\n",
            world.workspace().display()
        );
        let config = world.write("../outside/many.yaml", text);
        let config = config.to_str().unwrap();
        let regime = regime(world, &["--config", config], "7.md");
        let why = "; namespaces cannot hold this config: ";
        assert!(
            regime.starts_with("landlock (") && regime.contains(why) && regime.contains("arguments"),
            "{regime}"
        );
        // Whoever asks beforehand is told the same.
        let args = [
            "profile",
            "check",
            "--no-selftest",
            "--json",
            "--backend",
            "auto",
            config,
        ];
        let check = world.bare(world.binary()).args(args).output().exits(0);
        let check: serde_json::Value = serde_json::from_str(&check.out()).unwrap();
        let used: Vec<_> = check["backends"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["used"] == true)
            .collect();
        assert_eq!(
            (&check["ok"], used.len(), &used[0]["backend"]),
            (&true.into(), 1, &"landlock".into()),
            "{check:#}"
        );
        // Where namespaces are asked for nothing else is taken.
        world
            .stockade(&["run", "--config", config, "--cwd", "/usr", "--", "true"])
            .output()
            .exits(125);
    }

    fn auto_takes_landlock_where_a_protected_file_has_a_second_name(world: &Fixture) {
        world.write("a.md", "content");
        world.bare("/usr/bin/git").args(["init", "-q", "."]).output().exits(0);
        let config = world.workspace().join(".git/config");
        let workspace = world.workspace();
        let flags = ["--rw", workspace.to_str().unwrap()];
        assert!(regime(world, &flags, "a.md").starts_with("namespaces (native"));
        fs::hard_link(&config, world.outside().join("config")).unwrap();
        let regime = regime(world, &flags, "a.md");
        let why = "namespaces cannot hold this config: ";
        assert!(
            regime.starts_with("landlock (") && regime.contains(why) && regime.contains("more than one hard link"),
            "{regime}"
        );
        granted(world, &[], "true").output().exits(125);
        // How processes are counted goes with the regime that is taken in the end.
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, approval: {{write: none}}}}\nshell:\n  limits: {{processes: 64}}\n  default: {{allowed: true, approval: none}}\n",
            world.workspace().display()
        );
        let limited = world.write("../outside/limited.yaml", text);
        let regime = self::regime(world, &["--config", limited.to_str().unwrap()], "a.md");
        assert!(regime.starts_with("landlock (") && regime.contains(why), "{regime}");
    }

    fn a_bwrap_that_is_not_the_system_s_is_refused_with_the_reason(world: &Fixture) {
        let before = Snapshot::of(world);
        // In another user namespace the owner of bwrap is nobody that is known.
        let line = "exec setpriv --ambient-caps -all --inh-caps -all \"$0\" run --backend bwrap -- true";
        let run = world
            .bare("/usr/bin/unshare")
            .args(["-U", "--map-current-user", "--keep-caps", "sh", "-c", line])
            .args([world.binary().as_os_str()])
            .output()
            .exits(125);
        assert!(
            run.err().contains("`namespaces` regime, which was asked for") && run.err().contains("others than root"),
            "{}",
            run.err()
        );
        assert_nothing_left_behind(&before, world);
    }
}
