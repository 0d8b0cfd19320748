//! Nothing of a command's tree outlives it: whoever dies first, and however.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::ErrorKind;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::{Pid, geteuid};

    use crate::common::{
        Fixture, Running, Snapshot, assert_no_process_left, assert_nothing_left_behind, descendants, eventually,
        in_both_regimes, kill_marked, marker, wait_for_processes, wait_until_gone,
    };

    in_both_regimes! {
        daemons_are_dead_when_the_command_has_ended ["setsid"];
        a_child_that_holds_the_output_open_does_not_hold_up_the_end [];
        a_timeout_kills_daemons_too ["setsid"];
        ctrl_c_ends_the_tree_and_then_stockade ["setsid"];
        sigterm_ends_the_tree_and_then_stockade ["setsid"];
        the_tree_dies_with_a_killed_parent ["setsid"];
        the_tree_dies_with_any_killed_helper ["setsid"];
        no_helper_knows_what_its_parent_was_started_with ["setsid"];
        a_supervisor_has_no_library_that_somebody_led_the_loader_to [];
        a_tree_that_ignores_signals_dies_all_the_same ["setsid"];
        a_swarm_of_daemons_dies ["python3"];
        attribute_calls_are_judged_until_the_last_daemon_is_dead ["python3"];
        a_closed_output_ends_the_tree ["bash"];
        a_command_that_ends_leaves_nothing_on_the_host [];
    }

    /// A line that leaves three kinds of daemon behind, each `sleep MARKER`.
    fn daemons(marker: &str) -> String {
        format!("sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exit' &)")
    }

    /// Starts daemons and a foreground that waits for ever.
    fn busy(world: &Fixture, marker: &str) -> Running {
        let running = world.shell(&format!("{}; sleep {marker}", daemons(marker))).spawn();
        wait_for_processes(marker, 4);
        running
    }

    fn daemons_are_dead_when_the_command_has_ended(world: &Fixture) {
        let (marker, before) = (marker(), Snapshot::of(world));
        world
            .shell(&format!("{}; sleep 0.5; echo ended", daemons(&marker)))
            .output()
            .exits(0);
        assert_no_process_left(&marker);
        assert_nothing_left_behind(&before, world);
        // The twin: without Stockade they live on.
        let bare = world
            .bare("/bin/sh")
            .args(["-c", &format!("setsid sleep {marker} >/dev/null 2>&1 & sleep 0.3")]);
        bare.output().exits(0);
        wait_for_processes(&marker, 1);
        kill_marked(&marker);
        wait_until_gone(&marker);
    }

    fn a_child_that_holds_the_output_open_does_not_hold_up_the_end(world: &Fixture) {
        let marker = marker();
        let run = world.shell(&format!("sleep {marker} & echo done")).output().exits(0);
        assert_eq!(run.out(), "done\n");
        assert_no_process_left(&marker);
    }

    fn a_timeout_kills_daemons_too(world: &Fixture) {
        let there = world.workspace().join("there");
        let got_there = TIMES.into_iter().any(|time| {
            let marker = marker();
            let line = format!("{}; touch there; sleep {marker}", daemons(&marker));
            let run = world.stockade(&["run", "--timeout", time, "-c", &line]).output();
            run.exits(124);
            assert_no_process_left(&marker);
            there.exists()
        });
        assert!(got_there);
    }

    /// Times after which a command is ended. On a busy machine it may not have got anywhere in the first.
    const TIMES: [&str; 3] = ["1s", "10s", "100s"];

    fn ctrl_c_ends_the_tree_and_then_stockade(world: &Fixture) {
        let (marker, before) = (marker(), Snapshot::of(world));
        let running = busy(world, &marker);
        running.signal_group(Signal::SIGINT);
        running.wait().exits(130);
        assert_no_process_left(&marker);
        assert_nothing_left_behind(&before, world);
    }

    fn sigterm_ends_the_tree_and_then_stockade(world: &Fixture) {
        let (marker, before) = (marker(), Snapshot::of(world));
        let running = busy(world, &marker);
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
        assert_no_process_left(&marker);
        assert_nothing_left_behind(&before, world);
    }

    fn the_tree_dies_with_a_killed_parent(world: &Fixture) {
        let (marker, before) = (marker(), Snapshot::of(world));
        let running = busy(world, &marker);
        let helpers = descendants(running.pid());
        assert!(helpers.len() >= 4, "{helpers:?}");
        running.signal(Signal::SIGKILL);
        wait_until_gone(&marker);
        running.wait().exits(137);
        for helper in helpers {
            eventually(&format!("helper {helper} ends as its parent did"), || {
                !is_supervisor(helper)
            });
        }
        assert_nothing_left_behind(&before, world);
    }

    fn is_supervisor(pid: i32) -> bool {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Where bwrap makes namespaces it stands between the supervisor and the forker.
        let words: [&[u8]; 3] = [b"__supervisor", b"__forker", b"--die-with-parent"];
        words
            .iter()
            .any(|word| line.windows(word.len()).any(|part| part == *word))
    }

    /// Kills, in one run each, every process of Stockade's between the parent and the command.
    fn the_tree_dies_with_any_killed_helper(world: &Fixture) {
        let mut nth = 0;
        loop {
            let (marker, before) = (marker(), Snapshot::of(world));
            let running = busy(world, &marker);
            let helpers: Vec<_> = descendants(running.pid())
                .into_iter()
                .filter(|pid| is_supervisor(*pid))
                .collect();
            let Some(victim) = helpers.get(nth) else {
                assert!(nth > 0, "no helper was found");
                running.signal(Signal::SIGINT);
                running.wait();
                return;
            };
            kill(Pid::from_raw(*victim), Signal::SIGKILL).unwrap();
            let run = running.wait();
            assert_ne!(run.code(), 0, "helper {nth}");
            assert!(!run.stderr.is_empty(), "the failure of helper {nth} was not explained");
            wait_until_gone(&marker);
            assert_nothing_left_behind(&before, world);
            nth += 1;
        }
    }

    fn no_helper_knows_what_its_parent_was_started_with(world: &Fixture) {
        let (marker, secret) = (marker(), format!("secret-{}", self::marker()));
        let line = format!("{}; sleep {marker}", daemons(&marker));
        // The C library puts a copy of the first in its place.
        let tunables = "glibc.malloc.check=0:glibc.malloc.perturb=0";
        let command = world.shell(&line).env("GLIBC_TUNABLES", tunables).env("TOKEN", &secret);
        let running = command.spawn();
        wait_for_processes(&marker, 4);
        let environment = fs::read(format!("/proc/{}/environ", running.pid())).unwrap();
        assert!(contains(&environment, &secret), "the parent itself does");
        let helpers: Vec<_> = descendants(running.pid())
            .into_iter()
            .filter(|pid| is_supervisor(*pid))
            .collect();
        assert!(helpers.len() >= 3, "{helpers:?}");
        for helper in helpers {
            let line = fs::read(format!("/proc/{helper}/cmdline")).unwrap();
            assert_eq!(line, b"/proc/self/exe\0__supervisor\0", "{}", line.escape_ascii());
            assert!(!holds(helper, &secret), "helper {helper}");
        }
        running.signal(Signal::SIGINT);
        running.wait();
    }

    fn a_supervisor_has_no_library_that_somebody_led_the_loader_to(world: &Fixture) {
        let marker = marker();
        let running = world
            .shell(&format!("sleep {marker}"))
            .env("LD_LIBRARY_PATH", "/usr/lib")
            .spawn();
        wait_for_processes(&marker, 1);
        let supervisor = *descendants(running.pid())
            .iter()
            .find(|pid| is_supervisor(**pid))
            .unwrap();
        let line = fs::read(format!("/proc/{supervisor}/cmdline")).unwrap();
        assert_eq!(line, b"/proc/self/exe\0__supervisor\0", "it is not executed");
        running.signal(Signal::SIGINT);
        running.wait();
    }

    fn contains(bytes: &[u8], word: &str) -> bool {
        bytes.windows(word.len()).any(|part| part == word.as_bytes())
    }

    /// Whether anything in the memory of a process says `word`, as far as anybody but itself can look.
    fn holds(process: i32, word: &str) -> bool {
        let opened = File::open(format!("/proc/{process}/mem"));
        if !geteuid().is_root() {
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::PermissionDenied);
            return false;
        }
        let memory = opened.unwrap();
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
        let ranges = maps.lines().filter(|line| line.contains(" rw"));
        let held: Vec<Vec<u8>> = ranges
            .map(|line| {
                let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
                let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
                memory.read_exact_at(&mut bytes, start).unwrap();
                bytes
            })
            .collect();
        assert!(!held.is_empty());
        held.iter().any(|bytes| contains(bytes, word))
    }

    fn a_tree_that_ignores_signals_dies_all_the_same(world: &Fixture) {
        let marker = marker();
        let line = format!(
            "trap '' INT TERM HUP QUIT; {}; sleep {marker}; sleep {marker}",
            daemons(&marker)
        );
        let running = world.shell(&line).spawn();
        wait_for_processes(&marker, 4);
        running.signal_group(Signal::SIGINT);
        running.wait().exits(130);
        assert_no_process_left(&marker);
    }

    fn a_swarm_of_daemons_dies(world: &Fixture) {
        let marker = marker();
        let code = format!(
            "import os\nfor _ in range(100):\n if os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  os.execvp('sleep', ['sleep', '{marker}'])\n"
        );
        world.run(&["/usr/bin/python3", "-c", &code]).output().exits(0);
        assert_no_process_left(&marker);
    }

    /// Daemons that change modes until they are killed, or once. What is neither a change inside nor a refusal outside
    /// is noted.
    const CHANGE_MODES: &str = "\
import os, sys, time
inside, outside, notes, rounds, lingers = sys.argv[1:]
notes = os.open(notes, os.O_WRONLY | os.O_APPEND)
answered, tell = os.pipe()
for _ in range(8):
    if os.fork():
        continue
    os.setsid()
    for round in range(int(rounds)):
        for path, mode, wanted in (inside, 0o600, [0]), (outside, 0o4777, [1, 2]):
            try:
                os.chmod(path, mode)
                answer = 0
            except OSError as error:
                answer = error.errno
            if answer not in wanted:
                os.write(notes, b'%d ' % answer)
        if round == 0:
            os.write(tell, b'.')
    os._exit(0)
for _ in range(8):
    os.read(answered, 1)
time.sleep(int(lingers))
";

    fn attribute_calls_are_judged_until_the_last_daemon_is_dead(world: &Fixture) {
        let (outside, notes) = (world.outside().join("secret"), world.write("notes", ""));
        world.write("inside", "");
        let mode = || fs::metadata(&outside).unwrap().permissions().mode() & 0o7777;
        let python = |rounds, lingers| {
            let files = ["inside", outside.to_str().unwrap(), "notes"];
            [
                &["/usr/bin/python3", "-c", CHANGE_MODES],
                &files[..],
                &[rounds, lingers],
            ]
            .concat()
        };
        let before = mode();
        let inside = world.workspace().join("inside");
        // Whether the daemons changed anything before the command ended, or was ended, in the middle of their calls.
        let judged = |flags: &[&str], lingers, code| {
            fs::set_permissions(&inside, fs::Permissions::from_mode(0o644)).unwrap();
            let args = [&["run"], flags, &["--"], &python("1000000000", lingers)].concat();
            world.stockade(&args).output().exits(code);
            assert_eq!(fs::read_to_string(&notes).unwrap(), "", "{flags:?}");
            assert_eq!(mode(), before);
            fs::metadata(&inside).unwrap().permissions().mode() & 0o7777 == 0o600
        };
        assert!(judged(&[], "0", 0));
        assert!(TIMES.iter().any(|time| judged(&["--timeout", time], "86400", 124)));
        // The twin: nobody judges.
        let [program, args @ ..] = &python("1", "0")[..] else {
            unreachable!()
        };
        world.bare(program).args(args).output().exits(0);
        assert_eq!(fs::read_to_string(&notes).unwrap(), "0 ".repeat(8));
        assert_eq!(mode(), 0o4777);
    }

    fn a_closed_output_ends_the_tree(world: &Fixture) {
        let marker = marker();
        let pipeline = r#""$0" run -c "sleep $1 & yes" | head -1; echo "${PIPESTATUS[0]}""#;
        let run = world
            .bare("/bin/bash")
            .args(["-c", pipeline])
            .args([world.binary()])
            .args([&marker])
            .output();
        assert_eq!(run.out(), "y\n141\n");
        wait_until_gone(&marker);
    }

    fn a_command_that_ends_leaves_nothing_on_the_host(world: &Fixture) {
        let before = Snapshot::of(world);
        let line = "echo x > \"$TMPDIR/a\"; echo y > \"$HOME/b\"; mkdir -m 0 \"$TMPDIR/closed\"; touch kept";
        world.shell(line).output().exits(0);
        assert_nothing_left_behind(&before, world);
        assert!(world.workspace().join("kept").exists());
    }
}
