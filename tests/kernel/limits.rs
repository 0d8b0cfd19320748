//! The limits of a whole tree, and what a hostile command does about them.
//!
//! In namespaces the kernel counts the processes of an ordinary user's command, and one more cannot be started.
//! Elsewhere the tree is measured, and killed when it is seen over its limit.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value;

    use crate::common::{Actor, Backend, Fixture, Run, in_both_regimes, marker};

    in_both_regimes! {
        the_allowed_number_of_processes_can_be_started ["python3"];
        one_process_too_many_is_refused_or_ends_the_tree ["python3"];
        threads_count ["python3"];
        processes_that_leave_the_session_and_the_parent_count ["python3"];
        processes_that_have_ended_count_no_more ["python3"];
        the_limit_cannot_be_raised ["python3"];
        what_the_user_runs_elsewhere_does_not_count ["python3"];
        a_second_command_at_the_same_time_has_a_limit_of_its_own ["python3"];
        a_limit_of_one_is_the_command_itself [];
        who_may_leave_no_core_starts_where_none_goes_to_a_program [];
        memory_in_many_processes_ends_the_tree ["python3"];
        memory_that_is_shared_ends_the_tree ["python3"];
        memory_in_files_without_a_name_ends_the_tree_when_it_is_mapped ["python3"];
        one_process_gets_no_more_than_twice_the_limit ["python3"];
        memory_below_the_limit_is_left_alone ["python3"];
        the_private_tmp_is_no_way_around ["python3"];
        reports_say_which_limits_are_exact [];
    }

    /// Whether the kernel counts, which it does for an ordinary user in a user namespace.
    fn is_exact(world: &Fixture) -> bool {
        world.actor == Actor::User && world.backend.is_in_namespaces()
    }

    fn config(world: &Fixture, limits: &str) -> PathBuf {
        let text = format!("extends: [workspace-write]\nshell:\n  limits: {{{limits}}}\n");
        world.write(world.workspace().join("stockade-limits.yaml"), text)
    }

    /// Runs a program in Python under these limits.
    fn python(world: &Fixture, limits: &str, program: &str) -> Run {
        let config = config(world, limits);
        let program = world.write("program.py", program);
        world
            .stockade(&["run", "--config", config.to_str().unwrap(), "--", "/usr/bin/python3"])
            .args([program])
            .output()
    }

    /// Fails unless a tree that wanted too many processes could not have them, in the way of this world.
    #[track_caller]
    fn assert_held(world: &Fixture, run: &Run, exact: &str) {
        if is_exact(world) {
            assert_eq!(run.out().trim(), exact, "{}", run.err());
            assert_eq!(run.code(), 0, "{}", run.err());
        } else {
            assert_eq!(run.code(), 137, "{} {}", run.out(), run.err());
            assert!(run.err().contains("over the limit `processes`"), "{}", run.err());
        }
    }

    /// Starts children until one cannot be, and prints how many there are, itself counted. Where there are 60 of them it goes on
    /// with `at_last`.
    fn grow_and(child: &str, at_last: &str) -> String {
        format!(
            "import os, sys, threading, time\n\
             count = 1\n\
             try:\n\
             \x20   while count < 60:\n\
             {child}\n\
             \x20       count += 1\n\
             \x20   {at_last}\n\
             except (OSError, RuntimeError): pass\n\
             print(count)\n"
        )
    }

    /// Starts 60, and ends a while after.
    fn grow(child: &str) -> String {
        grow_and(child, "time.sleep(1.5)")
    }

    /// Starts 60, and waits to be killed.
    fn outgrow(child: &str) -> String {
        grow_and(child, "time.sleep(600)")
    }

    const FORK: &str = "        if os.fork() == 0: time.sleep(600)";

    fn the_allowed_number_of_processes_can_be_started(world: &Fixture) {
        let run = python(world, "processes: 60", &grow(FORK));
        assert_eq!((run.code(), run.out().trim()), (0, "60"), "{}", run.err());
    }

    fn one_process_too_many_is_refused_or_ends_the_tree(world: &Fixture) {
        for limit in [2, 20, 59] {
            let run = python(world, &format!("processes: {limit}"), &outgrow(FORK));
            assert_held(world, &run, &limit.to_string());
        }
    }

    fn threads_count(world: &Fixture) {
        let thread = "        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()";
        assert_held(world, &python(world, "processes: 20", &outgrow(thread)), "20");
    }

    fn processes_that_leave_the_session_and_the_parent_count(world: &Fixture) {
        // The one in between tells whether it could start another, and ends.
        let daemon = "        child = os.fork()\n\
            \x20       if child == 0:\n\
            \x20           os.setsid()\n\
            \x20           try:\n\
            \x20               if os.fork() == 0: time.sleep(600)\n\
            \x20           except OSError: os._exit(1)\n\
            \x20           os._exit(0)\n\
            \x20       if os.waitpid(child, 0)[1]: raise OSError";
        // The last in between takes the place of one that can stay.
        let run = python(world, "processes: 20", &outgrow(daemon));
        assert_held(world, &run, "19");
    }

    fn processes_that_have_ended_count_no_more(world: &Fixture) {
        let program = "import os\n\
            for round in range(200):\n\
            \x20   child = os.fork()\n\
            \x20   if child == 0: os._exit(0)\n\
            \x20   os.waitpid(child, 0)\n\
            print('done')\n";
        let run = python(world, "processes: 4", program);
        assert_eq!((run.code(), run.out().trim()), (0, "done"), "{}", run.err());
    }

    fn the_limit_cannot_be_raised(world: &Fixture) {
        let raise = "import resource\n\
            for most in (resource.RLIM_INFINITY, 10000):\n\
            \x20   try: resource.setrlimit(resource.RLIMIT_NPROC, (most, most))\n\
            \x20   except (ValueError, OSError): pass\n";
        let run = python(world, "processes: 20", &format!("{raise}{}", outgrow(FORK)));
        assert_held(world, &run, "20");
        // A user namespace of the command's own would count from nothing.
        let unshare = "import ctypes\n\
            libc = ctypes.CDLL(None)\n\
            assert libc.unshare(0x10000000) == -1\n";
        let run = python(world, "processes: 20", &format!("{unshare}{}", outgrow(FORK)));
        assert_held(world, &run, "20");
    }

    fn what_the_user_runs_elsewhere_does_not_count(world: &Fixture) {
        let marker = marker();
        let line = format!("for i in $(seq 40); do sleep {marker} & done; wait");
        let others = world.bare("/bin/sh").args(["-c", &line]).spawn();
        crate::common::wait_for_processes(&marker, 40);
        let run = python(world, "processes: 20", &grow(FORK).replace("count < 60", "count < 20"));
        assert_eq!((run.code(), run.out().trim()), (0, "20"), "{}", run.err());
        crate::common::kill_marked(&marker);
        others.wait();
    }

    fn a_second_command_at_the_same_time_has_a_limit_of_its_own(world: &Fixture) {
        let config = config(world, "processes: 20");
        let program = world.write("program.py", grow(FORK).replace("count < 60", "count < 20"));
        let start = || {
            let args = ["run", "--config", config.to_str().unwrap(), "--", "/usr/bin/python3"];
            world.stockade(&args).args([&program]).spawn()
        };
        let both = [start(), start()];
        for running in both {
            let run = running.wait();
            assert_eq!((run.code(), run.out().trim()), (0, "20"), "{}", run.err());
        }
    }

    fn who_may_leave_no_core_starts_where_none_goes_to_a_program(world: &Fixture) {
        let line = "ulimit -c 0 && exec \"$0\" run -- true";
        let run = world.bare("/bin/sh").args(["-c", line]).args([world.binary()]).output();
        let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
        if pattern.starts_with('|') && !nix::unistd::geteuid().is_root() {
            assert!(run.exits(125).err().contains("kernel.core_pattern"));
        } else {
            run.exits(0);
        }
    }

    fn a_limit_of_one_is_the_command_itself(world: &Fixture) {
        let config = config(world, "processes: 1");
        let args = ["run", "--config", config.to_str().unwrap(), "--", "/bin/echo", "alone"];
        assert_eq!(world.stockade(&args).output().exits(0).out(), "alone\n");
    }

    #[track_caller]
    fn assert_over_memory(run: &Run) {
        assert_eq!(run.code(), 137, "{} {}", run.out(), run.err());
        assert!(run.err().contains("over the limit `memory`"), "{}", run.err());
    }

    fn memory_in_many_processes_ends_the_tree(world: &Fixture) {
        let program = "import os, time\n\
            for child in range(6):\n\
            \x20   if os.fork() == 0:\n\
            \x20       os.setsid()\n\
            \x20       held = bytearray(os.urandom(1)) * (40 << 20)\n\
            \x20       time.sleep(600)\n\
            time.sleep(600)\n";
        assert_over_memory(&python(world, "memory: 128MiB", program));
    }

    fn memory_that_is_shared_ends_the_tree(world: &Fixture) {
        let program = "import mmap, time\n\
            held = mmap.mmap(-1, 256 << 20)\n\
            for page in range(0, 256 << 20, 4096): held[page] = 1\n\
            time.sleep(600)\n";
        assert_over_memory(&python(world, "memory: 128MiB", program));
    }

    fn memory_in_files_without_a_name_ends_the_tree_when_it_is_mapped(world: &Fixture) {
        let program = "import mmap, os, time\n\
            held = []\n\
            for file in range(4):\n\
            \x20   fd = os.memfd_create('x')\n\
            \x20   os.ftruncate(fd, 64 << 20)\n\
            \x20   held.append(mmap.mmap(fd, 64 << 20))\n\
            \x20   for page in range(0, 64 << 20, 4096): held[-1][page] = 1\n\
            time.sleep(600)\n";
        assert_over_memory(&python(world, "memory: 128MiB", program));
    }

    fn one_process_gets_no_more_than_twice_the_limit(world: &Fixture) {
        let program = "try:\n\
            \x20   held = bytearray(1 << 30); print('got it')\n\
            except MemoryError: print('refused')\n";
        let run = python(world, "memory: 128MiB", program);
        assert_eq!(run.out().trim(), "refused", "{}", run.err());
        let run = python(world, "memory: 4GiB", program);
        assert_eq!(run.out().trim(), "got it", "{}", run.err());
    }

    fn memory_below_the_limit_is_left_alone(world: &Fixture) {
        let program = "import time\n\
            held = bytearray(b'x') * (64 << 20)\n\
            time.sleep(1.5)\n\
            print('fine')\n";
        let run = python(world, "memory: 256MiB", program);
        assert_eq!((run.code(), run.out().trim()), (0, "fine"), "{}", run.err());
    }

    fn the_private_tmp_is_no_way_around(world: &Fixture) {
        // In namespaces /tmp is memory; elsewhere there is none to be written.
        let program = "try:\n\
            \x20   with open('/tmp/fill', 'wb') as file:\n\
            \x20       for part in range(256): file.write(b'x' * (1 << 20))\n\
            \x20   print('filled')\n\
            except OSError as error: print('refused')\n";
        let run = python(world, "memory: 128MiB", program);
        assert_eq!(run.out().trim(), "refused", "{}", run.err());
        if world.backend.is_in_namespaces() {
            let twin = program.replace("range(256)", "range(64)");
            assert_eq!(python(world, "memory: 128MiB", &twin).out().trim(), "filled");
        }
    }

    fn reports_say_which_limits_are_exact(world: &Fixture) {
        let config = config(world, "processes: 20, memory: 1GiB");
        let args = ["run", "--json", "--config", config.to_str().unwrap(), "--", "/bin/true"];
        let outcome: Value = serde_json::from_str(&world.stockade(&args).output().ok()).unwrap();
        let regime = outcome["regime"].as_str().unwrap();
        let sampled = if is_exact(world) {
            "sampled: memory"
        } else {
            "sampled: memory, processes"
        };
        assert!(regime.contains(sampled), "{regime}");
        let doctor: Value = serde_json::from_str(&world.stockade(&["doctor", "--json"]).output().ok()).unwrap();
        let name = match world.backend {
            Backend::Namespaces | Backend::Bwrap => "namespaces",
            Backend::Landlock => "landlock",
        };
        let rows = doctor["tree_limits"].as_array().unwrap();
        for limit in ["processes", "memory"] {
            let row = rows
                .iter()
                .find(|row| row["regime"] == name && row["limit"] == limit)
                .unwrap();
            let expected = if limit == "processes" && is_exact(world) {
                "exact"
            } else {
                "sampled"
            };
            assert_eq!(row["hold"], expected, "{row}");
            assert!(row["why"].as_str().is_some_and(|why| !why.is_empty()));
        }
        let text = world.stockade(&["doctor"]).output().ok();
        assert!(text.contains("limits.memory of the whole tree: sampled"), "{text}");
    }
}
