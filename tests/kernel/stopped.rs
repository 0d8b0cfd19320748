//! The process that stands over a command, stopped by somebody outside who may signal it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};
    use std::thread::{JoinHandle, sleep, spawn};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use rustix::io::ioctl_fionread;
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, forms};
    use crate::common::{
        Fixture, Run, Running, descendants, eventually, in_both_regimes, in_bwrap, marker, stop, wait_until_gone,
    };

    in_both_regimes! {
        a_keeper_that_is_stopped_goes_on_and_puts_back_what_it_has_to [];
        one_that_is_stopped_again_and_again_is_killed_with_all_below_it_and_what_it_did_not_put_back_is_told [];
        a_session_ends_whose_keeper_is_stopped_again_and_again [];
        a_stop_that_is_heard_of_after_the_end_changes_nothing_of_it [];
        a_stop_ends_a_command_all_of_whose_processes_are_stopped [];
        what_is_put_back_when_the_forker_of_a_file_tool_dies_is_named_by_the_tool [];
        ctrl_c_is_not_lost_at_any_moment_of_a_start [];
    }

    in_bwrap! {
        one_that_is_stopped_again_and_again_is_killed_with_all_below_it_and_what_it_did_not_put_back_is_told [];
    }

    fn supervisor_among(all: &[i32]) -> Option<Pid> {
        let found = all.iter().find(|pid| name(**pid) == "stockade-super");
        found.map(|pid| Pid::from_raw(*pid))
    }

    fn supervisor(stockade: i32) -> Pid {
        supervisor_among(&descendants(stockade)).expect("there is no supervisor")
    }

    /// How many bytes wait in the sockets of a process.
    fn unread_by(process: Pid) -> u64 {
        let pid = rustix::process::Pid::from_raw(process.as_raw()).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let fds = fs::read_dir(format!("/proc/{process}/fd")).unwrap().map(Result::unwrap);
        let sockets = fds.filter(|fd| {
            fs::read_link(fd.path())
                .unwrap()
                .as_os_str()
                .as_bytes()
                .starts_with(b"socket:")
        });
        let waiting = sockets.map(|fd| {
            let number = fd.file_name().to_str().unwrap().parse().unwrap();
            ioctl_fionread(pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()).unwrap()).unwrap()
        });
        waiting.sum()
    }

    /// Stops it as long as it is there.
    fn stop_again_and_again(supervisor: Pid) -> JoinHandle<()> {
        spawn(move || {
            while kill(supervisor, Signal::SIGSTOP).is_ok() {
                std::thread::yield_now();
            }
        })
    }

    /// The letter that says what a process does; none of one that is gone.
    fn state(pid: Pid) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    /// A command that its time ends, with `count` processes `sleep MARKER` in it, its supervisor, the marker, and the time that is
    /// left at least. A machine may be too busy for it to get there in time; then it has more time.
    fn in_time(count: usize, start: impl Fn(&str, &str) -> Running) -> (Running, Pid, String, Duration) {
        for seconds in [2, 20, 120] {
            let (begun, time) = (Instant::now(), format!("{seconds}s"));
            let marker = marker();
            let wanted = format!("sleep\0{marker}\0");
            let mut running = start(&time, &marker);
            while running.is_alive() {
                let all = descendants(running.pid());
                let line = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let sleeping = all.iter().filter(|pid| line(pid) == wanted.as_bytes()).count();
                if let (true, Some(supervisor)) = (sleeping >= count, supervisor_among(&all)) {
                    let left = Duration::from_secs(seconds).saturating_sub(begun.elapsed());
                    return (running, supervisor, marker, left);
                }
                sleep(Duration::from_millis(5));
            }
            running.wait().exits(124);
        }
        panic!("the command never got there");
    }

    fn config(world: &Fixture) -> (PathBuf, PathBuf) {
        let log = world.base().join("log/audit.jsonl");
        let text = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw, write_approval: false}}}}}}\n\
             shell: {{default: {{allowed: true, approval: none}}}}\naudit: {{log: {}}}\n",
            world.workspace().display(),
            log.display(),
        );
        (world.write(world.base().join("recorded.yaml"), text), log)
    }

    fn a_stop_that_is_heard_of_after_the_end_changes_nothing_of_it(world: &Fixture) {
        let (config, _) = config(world);
        let [note, go] = ["begun", "go"].map(|name| world.workspace().join(name));
        let line = "touch begun; until [ -e go ]; do sleep 0.02; done; echo said; exit 7";
        let args = ["run", "--config", config.to_str().unwrap(), "-c", line];
        let turn = || {
            for file in [&note, &go] {
                let _gone = fs::remove_file(file);
            }
            let running = world.stockade(&args).spawn();
            eventually("the command runs", || note.exists());
            let parent = Pid::from_raw(running.pid());
            stop(parent);
            let unread = unread_by(parent);
            fs::write(&go, "").unwrap();
            // The command's process may be gone for a while before its end is told.
            let is_over = (0..2_000).any(|_| {
                sleep(Duration::from_millis(5));
                unread_by(parent) > unread
            });
            let signals: &[Signal] = if is_over {
                &[Signal::SIGTERM, Signal::SIGCONT]
            } else {
                &[Signal::SIGCONT]
            };
            for signal in signals {
                kill(parent, *signal).unwrap();
            }
            let run = running.wait();
            assert_eq!((run.code(), run.out()), (7, "said\n".to_owned()), "{}", run.err());
            is_over
        };
        // Which of the two is looked at first is a matter of chance where nothing says it.
        for _ in 0..8 {
            eventually("a command is over before its parent hears of the stop", turn);
        }
    }

    fn a_stop_ends_a_command_all_of_whose_processes_are_stopped(world: &Fixture) {
        let (config, _) = config(world);
        let marker = marker();
        let line = format!("echo evil > .envrc; exec sleep {marker}");
        let running = world
            .stockade(&["run", "--config", config.to_str().unwrap(), "-c", &line])
            .spawn();
        crate::common::wait_for_processes(&marker, 1);
        for pid in descendants(running.pid()) {
            // It may have been one for a moment.
            let _stopped = kill(Pid::from_raw(pid), Signal::SIGSTOP);
        }
        running.signal(Signal::SIGTERM);
        let run = running.wait();
        assert!([125, 143].contains(&run.code()), "{}", run.err());
        wait_until_gone(&marker);
        assert!(!world.workspace().join(".envrc").exists(), "{}", run.err());
    }

    /// Without a stop the command goes on for longer than a test waits.
    fn ctrl_c_is_not_lost_at_any_moment_of_a_start(world: &Fixture) {
        let marker = marker();
        for moment in (0..100).step_by(7) {
            let running = world.stockade(&["run", "--", "sleep", &marker]).spawn();
            sleep(Duration::from_millis(moment));
            running.signal_group(Signal::SIGINT);
            let run = running.wait();
            assert_eq!(run.code(), 130, "after {moment} ms: {}", run.err());
        }
        wait_until_gone(&marker);
    }

    fn a_keeper_that_is_stopped_goes_on_and_puts_back_what_it_has_to(world: &Fixture) {
        let (config, _) = config(world);
        let (running, supervisor, marker, _) = in_time(1, |time, marker| {
            let line = format!("echo evil > .envrc; exec sleep {marker}");
            let args = ["run", "--config", config.to_str().unwrap(), "--timeout", time];
            world.stockade(&args).args(["-c", &line]).spawn()
        });
        // It is gone where the time was over meanwhile.
        let _stopped = kill(supervisor, Signal::SIGSTOP);
        let run = running.wait().exits(124);
        assert!(
            run.err().contains(".envrc is protected and was created"),
            "{}",
            run.err()
        );
        assert!(!world.workspace().join(".envrc").exists());
        wait_until_gone(&marker);
    }

    fn one_that_is_stopped_again_and_again_is_killed_with_all_below_it_and_what_it_did_not_put_back_is_told(
        world: &Fixture,
    ) {
        let (config, log) = config(world);
        let mut killed = 0;
        for as_json in [false, true] {
            // Now and then one gets enough done between two stops, and ends as if there had been none, or is killed before
            // the time is over.
            let mut last = None;
            eventually("a supervisor is killed when the time is over", || {
                let run = stopped_all_along(world, &config, as_json);
                killed += usize::from(run.code() == 125);
                let said = run.out() + &run.err();
                last = Some(run);
                said.contains("was killed") && ["timed_out", "timed out"].iter().any(|words| said.contains(words))
            });
            let run = last.unwrap().exits(125);
            if as_json {
                let outcome: Value = serde_json::from_str(&run.out()).unwrap();
                assert_eq!(outcome["status"], "timed_out", "{outcome}");
                let told = outcome["unsettled"].as_str().unwrap();
                assert!(told.contains("the process that puts them back was killed"), "{outcome}");
            } else {
                let told = run.err();
                assert!(told.contains("stockade: timed out"), "{told}");
                assert!(
                    told.contains("could not be restored: the process that puts them back was killed"),
                    "{told}"
                );
            }
            // Any start may have put it back by now; after this one it is.
            let again = ["run", "--config", config.to_str().unwrap(), "-c", "true"];
            world.stockade(&again).output().exits(0);
            assert!(!world.workspace().join(".envrc").exists());
        }
        let recorded = fs::read_to_string(log).unwrap();
        let told = recorded.matches("the process that puts them back was killed");
        assert_eq!(told.count(), killed, "{recorded}");
    }

    /// A command whose supervisor is stopped from its first moment on. Whatever came of it, nothing of it is alive.
    fn stopped_all_along(world: &Fixture, config: &Path, as_json: bool) -> Run {
        let flags: &[&str] = if as_json { &["--json"] } else { &[] };
        // More than is put back between two stops.
        let plant = "for i in $(seq 200); do mkdir -p d$i; echo evil > d$i/.envrc; done; echo evil > .envrc";
        let (running, supervisor, marker, left) = in_time(2, |time, marker| {
            // One that left its session and its parent as well.
            let line = format!("{plant}; (setsid sleep {marker} &); exec sleep {marker}");
            let head = ["run", "--config", config.to_str().unwrap(), "--timeout", time];
            world.stockade(&[&head[..], flags, &["-c", &line]].concat()).spawn()
        });
        // It is killed after a few seconds. The time of the command is to be over by then.
        sleep(left.saturating_sub(Duration::from_secs(1)));
        let stopping = stop_again_and_again(supervisor);
        let run = running.wait();
        wait_until_gone(&marker);
        stopping.join().unwrap();
        assert!([124, 125].contains(&run.code()), "{}", run.err());
        run
    }

    fn a_session_ends_whose_keeper_is_stopped_again_and_again(world: &Fixture) {
        let (config, _) = config(world);
        let args = ["mcp", "--config", config.to_str().unwrap()];
        let mut agent = Agent::start(world.stockade(&args), Era::Session, forms());
        let done = agent.call("shell", &json!({"command": "true"}));
        assert_eq!(done["structuredContent"]["code"], 0, "{done}");
        let stopping = stop_again_and_again(supervisor(i32::try_from(agent.pid()).unwrap()));
        let (code, told) = agent.end();
        assert_eq!(code, Some(0), "{told}");
        stopping.join().unwrap();
    }

    fn name(pid: i32) -> String {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim().to_owned()
    }

    /// The child of the supervisor, once all is there that is there before anything is asked for.
    fn forker(stockade: i32) -> Pid {
        let mut last = Vec::new();
        eventually("there is a forker, and nothing new beside it", || {
            let supervisor = supervisor_among(&descendants(stockade));
            let all = supervisor.map_or_else(Vec::new, |supervisor| below(supervisor.as_raw()));
            let is_there = all.iter().any(|pid| name(*pid) == "stockade-fork");
            let is_settled = is_there && all == last;
            last = all;
            sleep(Duration::from_millis(100));
            is_settled
        });
        Pid::from_raw(below(supervisor(stockade).as_raw())[0])
    }

    /// What `pid` started, and what that started: faster than a look at all there is.
    fn below(pid: i32) -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
        let children = lists.flat_map(|list| {
            let pids = list.split_whitespace().map(|pid| pid.parse().unwrap());
            pids.collect::<Vec<i32>>()
        });
        children
            .flat_map(|child| [vec![child], below(child)].concat())
            .collect()
    }

    fn what_is_put_back_when_the_forker_of_a_file_tool_dies_is_named_by_the_tool(world: &Fixture) {
        let (config, log) = config(world);
        world.write("there.txt", "there\n");
        let asked = world.base().join("asked");
        let go = world.base().join("go");
        // While it is asked, there is a forker, and nothing is under way.
        let line = format!(
            "#!/bin/sh\ncat > /dev/null; echo > {}; while [ ! -e {} ]; do sleep 0.02; done; echo '{{\"approved\": true}}'\n",
            asked.display(),
            go.display()
        );
        let approver = world.program(world.base().join("approver"), line);
        let text = fs::read_to_string(&config).unwrap();
        fs::write(
            &config,
            format!("{text}tools: {{write_file: {{approval: required}}, read_file: {{approval: required}}}}\n"),
        )
        .unwrap();
        let envrc = world.workspace().join(".envrc");
        let made = world.workspace().join("new.txt");
        let call = |tool: &str, arguments: &Value| {
            for file in [&asked, &go, &made] {
                let _gone = fs::remove_file(file);
            }
            let arguments = arguments.to_string();
            let words = ["call", "--json", "--config", config.to_str().unwrap()];
            let asks = ["--approver-program", approver.to_str().unwrap(), tool, &arguments];
            let running = world.stockade(&[&words[..], &asks].concat()).spawn();
            eventually(&format!("{tool} is asked about"), || asked.exists());
            let forker = forker(running.pid());
            (running, forker)
        };
        // What only reads changes nothing: what has changed meanwhile, a person changed.
        eventually("a forker dies that was to read", || {
            let (running, idle) = call("read_file", &json!({"path": "there.txt"}));
            let all: Vec<i32> = descendants(idle.as_raw()).into_iter().chain([idle.as_raw()]).collect();
            for pid in &all {
                kill(Pid::from_raw(*pid), Signal::SIGSTOP).unwrap();
            }
            fs::write(&envrc, "a person's").unwrap();
            fs::write(&go, "").unwrap();
            eventually("whoever is asked has answered", || {
                let mut all = descendants(running.pid()).into_iter();
                all.all(|pid| name(pid) != "approver")
            });
            // What was answered is heard, and the forker told; if it was not yet, another forker reads.
            sleep(Duration::from_millis(500));
            kill(idle, Signal::SIGKILL).unwrap();
            let run = running.wait();
            assert_eq!(fs::read_to_string(&envrc).unwrap(), "a person's");
            fs::remove_file(&envrc).unwrap();
            run.code() != 0
        });
        // The process that writes is stopped as soon as it is there, if it is still there then.
        let mut ended = None;
        eventually("a process that writes is stopped", || {
            let (running, forker) = call("write_file", &json!({"path": "new.txt", "content": "new\n"}));
            let before = below(forker.as_raw());
            fs::write(&go, "").unwrap();
            let mut writer = None;
            eventually("somebody writes", || {
                // Without a pause: it is there for a moment.
                for _ in 0..2_000 {
                    writer = below(forker.as_raw()).into_iter().find(|pid| !before.contains(pid));
                    if writer.is_some() || made.exists() {
                        return true;
                    }
                }
                false
            });
            let writer = writer.map(Pid::from_raw);
            if let Some(writer) = writer {
                let _gone = kill(writer, Signal::SIGSTOP);
                eventually("it is stopped, or over", || {
                    matches!(state(writer), None | Some('T' | 'Z'))
                });
            }
            let is_stopped = writer.is_some_and(|writer| state(writer) == Some('T'));
            if !is_stopped || made.exists() {
                let _goes_on = writer.map(|writer| kill(writer, Signal::SIGCONT));
                running.wait();
                return false;
            }
            fs::write(&envrc, "evil").unwrap();
            kill(forker, Signal::SIGKILL).unwrap();
            ended = Some(running.wait());
            true
        });
        let run = ended.unwrap();
        assert_ne!(run.code(), 0, "{}", run.out());
        let outcome: Value = serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{}", run.err()));
        let ours = |one: &&Value| one["path"].as_str().unwrap().ends_with("/.envrc");
        // It may have answered before it was stopped.
        let [told, said] = [("restored", "reason"), ("data", "text")].map(|(list, words)| {
            let list = outcome[list].get("restored").unwrap_or(&outcome[list]);
            let told = list.as_array().is_some_and(|all| all.iter().any(|one| ours(&one)));
            let said = outcome[words].as_str().unwrap_or_default();
            (told, said.contains(".envrc is protected and was created"))
        });
        assert!((true, true) == told || (true, true) == said, "{outcome}");
        assert!(!envrc.exists());
        let recorded = fs::read_to_string(log).unwrap();
        assert!(recorded.contains("\"violation\""), "{recorded}");
    }
}
