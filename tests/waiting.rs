//! Commands that were made ready before there was one to run: from the third command of a session on.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod common;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, forms};
    use crate::common::{Actor, Fixture, as_root_and_as_user, descendants, in_namespaces};

    as_root_and_as_user! {
        each_command_has_its_own_words_streams_directory_and_end [];
        what_is_denied_to_the_first_command_is_denied_to_those_that_waited ["python3"];
        the_time_of_a_command_that_waited_begins_with_it [];
        when_who_waits_is_killed_the_next_command_runs_all_the_same [];
        nobody_waits_for_a_second_command [];
        when_the_session_ends_who_waits_ends [];
        who_waits_has_no_socket_of_the_worker [];
        a_command_reaches_nobody_who_waits [];
    }

    in_namespaces! {
        each_command_has_its_own_words_streams_directory_and_end [];
        what_is_denied_to_the_first_command_is_denied_to_those_that_waited ["python3"];
        the_time_of_a_command_that_waited_begins_with_it [];
        when_who_waits_is_killed_the_next_command_runs_all_the_same [];
        nobody_waits_for_a_second_command [];
        when_the_session_ends_who_waits_ends [];
        who_waits_has_no_socket_of_the_worker [];
        a_command_reaches_nobody_of_its_namespace_who_waits [];
        nobody_waits_where_the_kernel_counts_processes [];
    }

    const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    work: {root: ./work, mode: rw, write_approval: false}
shell:
  default: {allowed: true, approval: none}
";

    fn agent(world: &Fixture, more: &str) -> Agent {
        world.write("work/below/there.txt", "there\n");
        let here = format!("{}/", world.workspace().display());
        let text = format!("{CONFIG}{more}").replace("./", &here);
        let file = world.write(world.base().join("agent.yaml"), text);
        let args = ["mcp", "--config", file.to_str().unwrap(), "--cwd", "work"];
        Agent::start(world.stockade(&args), Era::Session, forms())
    }

    fn run(agent: &mut Agent, line: &str) -> Value {
        agent.call("shell", &json!({"command": line}))["structuredContent"].clone()
    }

    /// A session in which somebody waits.
    fn warm(world: &Fixture) -> Agent {
        let mut agent = agent(world, "");
        for _ in 0..3 {
            assert_eq!(run(&mut agent, "true")["code"], 0);
        }
        assert_eq!(waiting(&agent).len(), 2, "nobody waits");
        agent
    }

    /// A runner and its child that have run nothing.
    fn waiting(agent: &Agent) -> Vec<i32> {
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let all = descendants(i32::try_from(agent.pid()).unwrap());
            let found: Vec<i32> = all
                .into_iter()
                .filter(|pid| name(pid).trim() == "stockade-run")
                .collect();
            if found.len() >= 2 || Instant::now() > until {
                return found;
            }
            sleep(Duration::from_millis(5));
        }
    }

    fn each_command_has_its_own_words_streams_directory_and_end(world: &Fixture) {
        let mut agent = agent(world, "");
        for call in 0..8 {
            let line = format!("echo out{call}; echo err{call} >&2; pwd; [ -z \"$(cat)\" ]; exit {call}");
            let directory = if call % 2 == 0 { "." } else { "below" };
            let result = agent.call("shell", &json!({"command": line, "directory": directory}));
            let result = &result["structuredContent"];
            let out = result["stdout"].as_str().unwrap();
            assert_eq!(result["code"], call, "{result}");
            assert!(out.starts_with(&format!("out{call}\n")), "{result}");
            assert_eq!(result["stderr"], format!("err{call}\n"));
            assert_eq!(out.trim_end().ends_with("below"), call % 2 == 1, "{result}");
        }
    }

    fn what_is_denied_to_the_first_command_is_denied_to_those_that_waited(world: &Fixture) {
        let outside = world.write(world.base().join("outside.txt"), "mine\n");
        let outside = outside.display();
        let mut agent = agent(world, "");
        for call in 0..6 {
            for denied in [
                format!("echo x >> {outside}"),
                format!("chmod 600 {outside}"),
                format!("rm -f {outside} && [ ! -e {outside} ] && false"),
                "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect((\"192.0.2.1\", 1))'"
                    .to_owned(),
                "unshare -Ur true".to_owned(),
            ] {
                let result = run(&mut agent, &denied);
                assert_ne!(result["code"], 0, "command {call}: {denied}: {result}");
            }
            let result = run(&mut agent, "echo x > twin && chmod 600 twin && rm twin");
            assert_eq!(result["code"], 0, "command {call}: {result}");
        }
        assert_eq!(fs::read_to_string(world.base().join("outside.txt")).unwrap(), "mine\n");
    }

    fn the_time_of_a_command_that_waited_begins_with_it(world: &Fixture) {
        let mut agent = warm(world);
        sleep(Duration::from_millis(1500));
        let limited = |line: &str| json!({"command": line, "timeout_seconds": 1});
        let result = agent.call("shell", &limited("sleep 0.3"));
        assert_eq!(result["structuredContent"]["code"], 0, "{result}");
        let begun = Instant::now();
        let result = agent.call("shell", &limited("sleep 30"));
        assert_eq!(result["structuredContent"]["status"], "timed_out", "{result}");
        assert!(begun.elapsed() < Duration::from_secs(15));
    }

    fn a_command_reaches_nobody_who_waits(world: &Fixture) {
        let mut agent = warm(world);
        let first = waiting(&agent);
        let line = "until [ -e go ]; do sleep 0.05; done; for p in $(cat go); do kill -9 $p 2>/dev/null && echo $p; \
                    cat /proc/$p/environ 2>/dev/null && echo $p; done; sleep 9 & kill -9 $!";
        let call = agent.begin_call("shell", &json!({"command": line}));
        sleep(Duration::from_millis(300));
        // Those of before are this very command and its runner.
        let others: Vec<i32> = waiting(&agent).into_iter().filter(|pid| !first.contains(pid)).collect();
        assert_eq!(others.len(), 2, "{others:?}");
        let text: Vec<String> = others.iter().map(i32::to_string).collect();
        world.write("work/go", text.join(" "));
        let result = agent.answer(call)["result"]["structuredContent"].clone();
        assert_eq!(
            (&result["stdout"], &result["code"]),
            (&json!(""), &json!(0)),
            "{result}"
        );
        let still = waiting(&agent);
        assert!(others.iter().all(|pid| still.contains(pid)), "{others:?}, {still:?}");
    }

    /// The sockets that a process has open, by inode. Only root sees those of who does not want to be looked into.
    fn sockets(pid: i32) -> BTreeSet<PathBuf> {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let targets = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        targets
            .filter(|target| target.as_os_str().as_bytes().starts_with(b"socket:"))
            .collect()
    }

    fn who_waits_has_no_socket_of_the_worker(world: &Fixture) {
        let agent = warm(world);
        let both = waiting(&agent);
        if !Actor::Root.is_possible() {
            for pid in both {
                let refused = fs::read_dir(format!("/proc/{pid}/fd")).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            }
            return;
        }
        let parent = |pid: i32| -> i32 {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
            line.trim().parse().unwrap()
        };
        let runner = *both
            .iter()
            .find(|pid| both.iter().any(|child| parent(*child) == **pid))
            .unwrap();
        let worker = sockets(parent(runner));
        assert!(worker.len() >= 4, "{worker:?}");
        for pid in both {
            let own = sockets(pid);
            assert!(!own.is_empty());
            assert_eq!(own.intersection(&worker).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
        }
    }

    fn a_command_reaches_nobody_of_its_namespace_who_waits(world: &Fixture) {
        let mut agent = warm(world);
        let mine =
            "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || { kill -9 $p 2>/dev/null && echo $p; }; done";
        for _ in 0..3 {
            let result = run(&mut agent, mine);
            assert_eq!(result["stdout"], "", "{result}");
            assert_eq!(run(&mut agent, "sleep 9 & kill -9 $!")["code"], 0);
        }
    }

    fn when_who_waits_is_killed_the_next_command_runs_all_the_same(world: &Fixture) {
        for first in [0, 1] {
            let mut agent = warm(world);
            // Its command by itself, or the runner, which takes its command along.
            let mut pids = waiting(&agent);
            pids.sort_unstable();
            kill(Pid::from_raw(pids[first]), Signal::SIGKILL).unwrap();
            // What is killed when it has been told its command ends as that command.
            sleep(Duration::from_millis(300));
            for call in 0..5 {
                let result = run(&mut agent, "echo there");
                assert_eq!(result["stdout"], "there\n", "command {call}: {result}");
            }
        }
    }

    fn nobody_waits_where_the_kernel_counts_processes(world: &Fixture) {
        let mut agent = agent(world, "  limits: {processes: 12}\n");
        for call in 0..5 {
            let result = run(&mut agent, "for i in 1 2 3 4 5 6; do sleep 0.2 & done; wait");
            assert_eq!(result["code"], 0, "command {call}: {result}");
        }
        let result = run(&mut agent, "for i in $(seq 20); do sleep 2 & done; wait");
        let refused = result["stderr"]
            .as_str()
            .unwrap()
            .contains("Resource temporarily unavailable");
        assert!(refused || result["status"] == "over_limit", "{result}");
    }

    fn nobody_waits_for_a_second_command(world: &Fixture) {
        let mut agent = agent(world, "");
        assert_eq!(run(&mut agent, "true")["code"], 0);
        sleep(Duration::from_millis(200));
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let all = descendants(i32::try_from(agent.pid()).unwrap());
        assert!(all.iter().all(|pid| name(pid).trim() != "stockade-run"));
    }

    fn when_the_session_ends_who_waits_ends(world: &Fixture) {
        let agent = warm(world);
        let all = descendants(i32::try_from(agent.pid()).unwrap());
        assert_eq!(agent.end().0, Some(0));
        for pid in all {
            assert!(kill(Pid::from_raw(pid), None).is_err(), "{pid}");
        }
    }
}
