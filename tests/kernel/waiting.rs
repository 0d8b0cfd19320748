//! Commands that were made ready before there was one to run: from the third command of a session on.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::thread::sleep;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, filled, forms};
    use crate::common::{Actor, Fixture, as_root_and_as_user, descendants, eventually, in_namespaces};

    as_root_and_as_user! {
        each_command_has_its_own_words_streams_directory_and_end [];
        what_is_denied_to_the_first_command_is_denied_to_those_that_waited ["python3"];
        the_time_of_a_command_that_waited_begins_with_it [];
        when_who_waits_is_killed_the_next_command_runs_all_the_same [];
        nobody_waits_for_a_second_command [];
        when_the_session_ends_who_waits_ends [];
        who_waits_has_no_socket_of_the_forker [];
        a_command_reaches_nobody_who_waits [];
        each_command_has_a_runner_and_a_process_of_its_own [];
        changes_of_files_and_commands_by_turns_have_each_what_confines_it [];
        many_changes_of_files_one_after_the_other_are_all_made [];
        who_waits_has_no_stream_of_a_command_or_a_change [];
        nothing_that_a_command_left_running_is_there_when_the_next_one_runs [];
        a_stop_that_comes_too_late_does_not_end_the_next_command [];
        the_time_of_the_last_command_does_not_end_the_next [];
        a_command_over_its_limit_leaves_the_next_one_alone [];
        when_a_runner_is_killed_with_its_command_the_next_ones_run_all_the_same [];
        what_a_person_changes_between_two_commands_or_while_asked_stays_and_what_a_command_changes_goes [];
    }

    in_namespaces! {
        each_command_has_its_own_words_streams_directory_and_end [];
        what_is_denied_to_the_first_command_is_denied_to_those_that_waited ["python3"];
        the_time_of_a_command_that_waited_begins_with_it [];
        when_who_waits_is_killed_the_next_command_runs_all_the_same [];
        nobody_waits_for_a_second_command [];
        when_the_session_ends_who_waits_ends [];
        who_waits_has_no_socket_of_the_forker [];
        a_command_reaches_nobody_of_its_namespace_who_waits [];
        nobody_waits_where_the_kernel_counts_processes [];
        changes_of_files_and_commands_by_turns_have_each_what_confines_it [];
        many_changes_of_files_one_after_the_other_are_all_made [];
        nothing_that_a_command_left_running_is_there_when_the_next_one_runs [];
        a_stop_that_comes_too_late_does_not_end_the_next_command [];
        the_time_of_the_last_command_does_not_end_the_next [];
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
        warm_up(&mut agent);
        agent
    }

    /// Has commands until somebody waits for the next.
    fn warm_up(agent: &mut Agent) {
        for _ in 0..3 {
            assert_eq!(run(agent, "true")["code"], 0);
        }
        waiting(agent);
    }

    /// The processes of this agent that are runners, or have not become their command yet, with their parents.
    fn ours(agent: &Agent) -> BTreeMap<i32, i32> {
        let field = |pid: i32, name: &str| -> Option<String> {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            status
                .lines()
                .find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let all = descendants(i32::try_from(agent.pid()).unwrap()).into_iter();
        let named = all.filter(|pid| field(*pid, "Name:").is_some_and(|name| name == "stockade-run"));
        named
            .filter_map(|pid| Some((pid, field(pid, "PPid:")?.parse().ok()?)))
            .collect()
    }

    /// Looks until there is what is looked for.
    #[track_caller]
    fn until_there<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let mut found = None;
        eventually(what, || {
            found = look();
            found.is_some()
        });
        found.unwrap()
    }

    /// A runner, and its child that has run nothing.
    #[track_caller]
    fn waiting(agent: &Agent) -> Vec<i32> {
        waiting_beside(agent, &[])
    }

    /// The same, where it is none of these.
    #[track_caller]
    fn waiting_beside(agent: &Agent, others: &[i32]) -> Vec<i32> {
        until_there("somebody waits", || {
            let ours = ours(agent);
            let mut pairs = ours.iter().filter(|(child, runner)| {
                ours.contains_key(runner) && !others.contains(child) && !others.contains(runner)
            });
            pairs.next().map(|(child, runner)| vec![*runner, *child])
        })
    }

    /// What comes of a command that may take so many seconds.
    fn limited(agent: &mut Agent, line: &str, seconds: u64) -> Value {
        let arguments = json!({"command": line, "timeout_seconds": seconds});
        agent.call("shell", &arguments)["structuredContent"].clone()
    }

    /// Seconds that a command may take: the last is enough on the busiest machine.
    const SECONDS: [u64; 3] = [1, 8, 40];

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
        let in_time = SECONDS.into_iter().any(|seconds| {
            warm_up(&mut agent);
            // It waits longer than it may take.
            sleep(Duration::from_millis(seconds * 1_500));
            limited(&mut agent, "true", seconds)["code"] == 0
        });
        assert!(in_time);
        let result = limited(&mut agent, "sleep 86400", 1);
        assert_eq!(result["status"], "timed_out", "{result}");
    }

    fn a_command_reaches_nobody_who_waits(world: &Fixture) {
        let mut agent = warm(world);
        let first = waiting(&agent);
        let line = "until [ -e go ]; do sleep 0.05; done; for p in $(cat go); do kill -9 $p 2>/dev/null && echo $p; \
                    cat /proc/$p/environ 2>/dev/null && echo $p; done; sleep 9 & kill -9 $!";
        let call = agent.begin_call("shell", &json!({"command": line}));
        // Those of before are this very command and its runner.
        let others = waiting_beside(&agent, &first);
        let text: Vec<String> = others.iter().map(i32::to_string).collect();
        world.write("work/go", text.join(" "));
        let result = agent.answer(call)["result"]["structuredContent"].clone();
        assert_eq!(
            (&result["stdout"], &result["code"]),
            (&json!(""), &json!(0)),
            "{result}"
        );
        let still = ours(&agent);
        assert!(
            others.iter().all(|pid| still.contains_key(pid)),
            "{others:?}, {still:?}"
        );
    }

    /// What a process has open. Only root sees that of who does not want to be looked into.
    fn opened(pid: i32) -> std::io::Result<Vec<PathBuf>> {
        let open = fs::read_dir(format!("/proc/{pid}/fd"))?;
        Ok(open
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .collect())
    }

    fn is_a(target: &Path, kind: &[u8]) -> bool {
        target.as_os_str().as_bytes().starts_with(kind)
    }

    /// The sockets among it, by inode.
    fn sockets(pid: i32) -> BTreeSet<PathBuf> {
        let open = opened(pid).unwrap().into_iter();
        open.filter(|target| is_a(target, b"socket:")).collect()
    }

    fn who_waits_has_no_socket_of_the_forker(world: &Fixture) {
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
        let forker = sockets(parent(runner));
        assert!(forker.len() >= 4, "{forker:?}");
        for pid in both {
            let own = sockets(pid);
            assert!(!own.is_empty());
            assert_eq!(own.intersection(&forker).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
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
            // The runner, which takes its command along, or its command by itself.
            let pids = waiting(&agent);
            kill(Pid::from_raw(pids[first]), Signal::SIGKILL).unwrap();
            // What is killed when it has been told its command ends as that command.
            eventually("who was killed is missed", || !ours(&agent).contains_key(&pids[0]));
            for call in 0..5 {
                let result = run(&mut agent, "echo there");
                assert_eq!(result["stdout"], "there\n", "command {call}: {result}");
            }
        }
    }

    fn each_command_has_a_runner_and_a_process_of_its_own(world: &Fixture) {
        let mut agent = warm(world);
        let (mut runners, mut commands) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..12 {
            let result = run(&mut agent, "echo $PPID $$");
            let text = result["stdout"].as_str().unwrap().to_owned();
            let mut numbers = text
                .split_ascii_whitespace()
                .map(|number| number.parse::<i32>().unwrap());
            runners.insert(numbers.next().unwrap());
            commands.insert(numbers.next().unwrap());
        }
        assert_eq!((runners.len(), commands.len()), (12, 12), "{runners:?} {commands:?}");
    }

    fn write(agent: &mut Agent, path: &str, content: &str) -> bool {
        let result = agent.call("write_file", &json!({"path": path, "content": content}));
        result["isError"] != json!(true)
    }

    fn changes_of_files_and_commands_by_turns_have_each_what_confines_it(world: &Fixture) {
        let outside = world.write(world.base().join("outside.txt"), "mine\n");
        let mut agent = agent(world, "");
        for turn in 0..9 {
            for change in 0..turn % 4 {
                let content = format!("{turn} {change}\n");
                assert!(write(&mut agent, "work:written.txt", &content));
                let written = world.workspace().join("work/written.txt");
                assert_eq!(fs::read_to_string(written).unwrap(), content);
                assert!(!write(&mut agent, outside.to_str().unwrap(), "other"));
            }
            for command in 0..turn % 3 {
                for denied in ["echo x >>", "chmod 600", "touch -d 2001-01-01"] {
                    let result = run(&mut agent, &format!("{denied} {}", outside.display()));
                    assert_ne!(result["code"], 0, "turn {turn}, command {command}: {denied}: {result}");
                }
                let result = run(
                    &mut agent,
                    "echo x > twin && chmod 600 twin && touch -d 2001-01-01 twin && rm twin",
                );
                assert_eq!(result["code"], 0, "turn {turn}, command {command}: {result}");
            }
        }
        assert_eq!(fs::read_to_string(outside).unwrap(), "mine\n");
    }

    fn many_changes_of_files_one_after_the_other_are_all_made(world: &Fixture) {
        let mut agent = agent(world, "");
        for change in 0..40 {
            // What a person does between two changes is not undone with the next.
            let mine = format!("{change}\n");
            world.write("work/.envrc", &mine);
            assert!(write(&mut agent, &format!("work:new{}.txt", change % 7), &mine));
            let envrc = fs::read_to_string(world.workspace().join("work/.envrc")).unwrap();
            assert_eq!(envrc, mine);
        }
        for name in 33..40 {
            let file = world.workspace().join(format!("work/new{}.txt", name % 7));
            assert_eq!(fs::read_to_string(file).unwrap(), format!("{name}\n"));
        }
    }

    fn who_waits_has_no_stream_of_a_command_or_a_change(world: &Fixture) {
        for changes_come_first in [false, true] {
            let mut agent = agent(world, "");
            for turn in 0..6 {
                if (turn < 2) == changes_come_first {
                    assert!(write(&mut agent, "work:written.txt", "x\n"));
                } else {
                    assert_eq!(run(&mut agent, "echo there")["stdout"], "there\n");
                }
                // Its own standard streams, and nobody's beside. Who is being made has not closed those of others yet.
                let has_its_own = |pid: &i32| {
                    let Ok(open) = opened(*pid) else { return true };
                    let count = |kind: &[u8]| open.iter().filter(|target| is_a(target, kind)).count();
                    (count(b"/dev/null"), count(b"pipe:")) == (3, 0)
                };
                eventually(&format!("turn {turn}: no runner has a stream of another"), || {
                    ours(&agent).keys().all(has_its_own)
                });
            }
        }
    }

    fn nothing_that_a_command_left_running_is_there_when_the_next_one_runs(world: &Fixture) {
        let mut agent = warm(world);
        let marks = [
            "(setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.02; echo x >> left; done' &) >/dev/null 2>&1",
            "(sh -c 'sleep 30 & sleep 30 & sleep 30 & wait' &) >/dev/null 2>&1",
            "true",
        ];
        for call in 0..9 {
            let result = run(&mut agent, marks[call % marks.len()]);
            assert_eq!(result["code"], 0, "{result}");
            let named = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let all = descendants(i32::try_from(agent.pid()).unwrap()).into_iter();
            let others: Vec<i32> = all.filter(|pid| matches!(named(pid).trim(), "sh" | "sleep")).collect();
            assert_eq!(others, Vec::<i32>::new(), "command {call}");
            let length = || fs::metadata(world.workspace().join("work/left")).map_or(0, |left| left.len());
            let before = length();
            sleep(Duration::from_millis(60));
            assert_eq!(length(), before, "command {call}");
        }
    }

    fn a_stop_that_comes_too_late_does_not_end_the_next_command(world: &Fixture) {
        let mut agent = warm(world);
        for turn in 0..30_u64 {
            let call = agent.begin_call("shell", &json!({"command": "true"}));
            // From before its beginning to after its end.
            sleep(Duration::from_micros(turn * 200));
            let cancelled =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}});
            agent.send(&cancelled);
            for _ in 0..2 {
                let result = run(&mut agent, "sleep 0.02; echo there");
                assert_eq!(result["stdout"], "there\n", "turn {turn}: {result}");
            }
        }
    }

    fn the_time_of_the_last_command_does_not_end_the_next(world: &Fixture) {
        let mut agent = warm(world);
        let enough = SECONDS.into_iter().find(|seconds| {
            let mut both = (0..2).map(|_| limited(&mut agent, "true", *seconds));
            both.all(|result| result["code"] == 0)
        });
        let longer = enough.expect("the command ends in its time") * 13 / 10 + 1;
        for _ in 0..2 {
            let result = run(&mut agent, &format!("sleep {longer}; echo there"));
            assert_eq!(result["stdout"], "there\n", "{result}");
        }
        for _ in 0..2 {
            let late = limited(&mut agent, "sleep 86400", 1);
            assert_eq!(late["status"], "timed_out", "{late}");
        }
        assert_eq!(run(&mut agent, "echo there")["stdout"], "there\n");
    }

    fn a_command_over_its_limit_leaves_the_next_one_alone(world: &Fixture) {
        let mut agent = agent(world, "  limits: {memory: 150MiB}\n");
        // Below twice the limit, which one process cannot go beyond, and held until it was looked at.
        let over = "{ head -c 240M /dev/zero; sleep 600; } | tail -c 240M | wc -c";
        for call in 0..6 {
            let result = run(&mut agent, over);
            assert_eq!(result["status"], "over_limit", "command {call}: {result}");
            let result = run(&mut agent, "sleep 0.2; echo there");
            assert_eq!(result["stdout"], "there\n", "command {call}: {result}");
        }
    }

    fn when_a_runner_is_killed_with_its_command_the_next_ones_run_all_the_same(world: &Fixture) {
        let mut agent = warm(world);
        for _ in 0..3 {
            let line = "echo $PPID > new; mv new runner; sleep 86400";
            let call = agent.begin_call("shell", &json!({"command": line}));
            let runner = until_there("the command runs", || {
                let text = fs::read_to_string(world.workspace().join("work/runner")).ok()?;
                text.trim().parse::<i32>().ok()
            });
            kill(Pid::from_raw(runner), Signal::SIGKILL).unwrap();
            let result = agent.answer(call)["result"]["structuredContent"].clone();
            assert_eq!(result["status"], "failed", "{result}");
            fs::remove_file(world.workspace().join("work/runner")).unwrap();
            for _ in 0..4 {
                assert_eq!(run(&mut agent, "echo there")["stdout"], "there\n");
            }
        }
    }

    fn what_a_person_changes_between_two_commands_or_while_asked_stays_and_what_a_command_changes_goes(
        world: &Fixture,
    ) {
        let mut agent = agent(world, "  rules: [{pattern: echo, approval: required}]\n");
        let says = || fs::read_to_string(world.workspace().join("work/.envrc")).unwrap_or_default();
        for turn in 0..8 {
            let mine = format!("mine {turn}\n");
            world.write("work/.envrc", &mine);
            assert_eq!(run(&mut agent, "true")["code"], 0);
            assert_eq!(says(), mine);
            let result = run(&mut agent, "printf evil > .envrc");
            assert_eq!((says(), &result["code"]), (mine, &json!(0)), "turn {turn}");
            // Changed while somebody thinks about the next command, which has not been recorded for yet.
            let call = agent.begin_call("shell", &json!({"command": "echo there"}));
            let question = agent.first(|message| message["method"] == "elicitation/create");
            let thought = format!("thought {turn}\n");
            world.write("work/.envrc", &thought);
            agent.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": filled("once")}));
            let result = agent.answer(call)["result"]["structuredContent"].clone();
            assert_eq!((says(), &result["stdout"]), (thought, &json!("there\n")), "turn {turn}");
        }
    }

    fn nobody_waits_where_the_kernel_counts_processes(world: &Fixture) {
        let mut agent = agent(world, "  limits: {processes: 12}\n");
        for call in 0..5 {
            let result = run(&mut agent, "for i in 1 2 3 4 5 6; do sleep 0.2 & done; wait");
            assert_eq!(result["code"], 0, "command {call}: {result}");
        }
        // Where this is dash, it does not try again and again.
        let result = run(&mut agent, "exec sh -c 'for i in $(seq 20); do sleep 600 & done; wait'");
        let said = result["stderr"].as_str().unwrap();
        let refusals = ["Cannot fork", "Resource temporarily unavailable"];
        let refused = refusals.iter().any(|refusal| said.contains(refusal));
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
