//! The process that stands over a command, stopped by somebody outside who may signal it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod common;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::thread::{JoinHandle, sleep, spawn};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, forms};
    use crate::common::{
        Fixture, Run, assert_gone_within, descendants, in_both_regimes, in_bwrap, marker, wait_for_processes,
    };

    in_both_regimes! {
        a_keeper_that_is_stopped_goes_on_and_puts_back_what_it_has_to [];
        one_that_is_stopped_again_and_again_is_killed_with_all_below_it_and_what_it_did_not_put_back_is_told [];
        a_session_ends_whose_keeper_is_stopped_again_and_again [];
        a_stop_that_is_heard_of_after_the_end_changes_nothing_of_it [];
        what_is_put_back_when_the_worker_of_a_file_tool_dies_is_named_by_the_tool [];
    }

    in_bwrap! {
        one_that_is_stopped_again_and_again_is_killed_with_all_below_it_and_what_it_did_not_put_back_is_told [];
    }

    /// How long any of these may take; without a mend they take for ever.
    const LONG: Duration = Duration::from_secs(40);

    fn keeper(stockade: i32) -> Pid {
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let all = descendants(stockade);
        let found = all.iter().find(|pid| name(pid).trim() == "stockade-keep");
        Pid::from_raw(*found.expect("there is no keeper"))
    }

    /// Stops it as long as it is there.
    fn stop_again_and_again(keeper: Pid) -> JoinHandle<()> {
        kill(keeper, Signal::SIGSTOP).unwrap();
        spawn(move || {
            let begun = Instant::now();
            while begun.elapsed() < LONG && kill(keeper, Signal::SIGSTOP).is_ok() {
                std::thread::yield_now();
            }
        })
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
        let note = world.workspace().join("home");
        let line = "echo $HOME >note; mv note home; sleep 0.3; echo said; exit 7";
        let args = ["run", "--config", config.to_str().unwrap(), "-c", line];
        // Which of the two is looked at first is a matter of chance where nothing says it.
        for turn in 0..8 {
            let running = world.stockade(&args).spawn();
            until(|| note.exists());
            let parent = Pid::from_raw(running.pid());
            kill(parent, Signal::SIGSTOP).unwrap();
            let home = PathBuf::from(fs::read_to_string(&note).unwrap().trim_end());
            until(|| !home.exists());
            for signal in [Signal::SIGTERM, Signal::SIGCONT] {
                kill(parent, signal).unwrap();
            }
            let run = running.wait();
            assert_eq!(
                (run.code(), run.out()),
                (7, "said\n".to_owned()),
                "turn {turn}: {}",
                run.err()
            );
            fs::remove_file(&note).unwrap();
        }
    }

    #[track_caller]
    fn until(met: impl Fn() -> bool) {
        let begun = Instant::now();
        while !met() {
            assert!(begun.elapsed() < LONG);
            sleep(Duration::from_millis(5));
        }
    }

    fn a_keeper_that_is_stopped_goes_on_and_puts_back_what_it_has_to(world: &Fixture) {
        let (config, _) = config(world);
        let marker = marker();
        let line = format!("echo evil > .envrc; exec sleep {marker}");
        let args = [
            "run",
            "--config",
            config.to_str().unwrap(),
            "--timeout",
            "2s",
            "-c",
            &line,
        ];
        let running = world.stockade(&args).spawn();
        wait_for_processes(&marker, 1);
        let begun = Instant::now();
        kill(keeper(running.pid()), Signal::SIGSTOP).unwrap();
        let run = running.wait().exits(124);
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
        assert!(
            run.err().contains(".envrc is protected and was created"),
            "{}",
            run.err()
        );
        assert!(!world.workspace().join(".envrc").exists());
        assert_gone_within(&marker, Duration::from_secs(1));
    }

    fn one_that_is_stopped_again_and_again_is_killed_with_all_below_it_and_what_it_did_not_put_back_is_told(
        world: &Fixture,
    ) {
        let (config, log) = config(world);
        let mut killed = 0;
        for as_json in [false, true] {
            // Now and then one gets enough done between two stops, and ends as if there had been none.
            let mut tries = (0..6).map(|_| stopped_all_along(world, &config, as_json));
            let run = tries.find(|run| run.code() == 125).expect("no keeper was killed");
            killed += 1;
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

    /// A command whose keeper is stopped from its first moment on. Whatever came of it, nothing of it is alive.
    fn stopped_all_along(world: &Fixture, config: &Path, as_json: bool) -> Run {
        let marker = marker();
        // One that left its session and its parent as well.
        let line = format!("echo evil > .envrc; (setsid sleep {marker} &); exec sleep {marker}");
        let flags: &[&str] = if as_json { &["--json"] } else { &[] };
        let head = ["run", "--config", config.to_str().unwrap(), "--timeout", "3s"];
        let running = world.stockade(&[&head[..], flags, &["-c", &line]].concat()).spawn();
        wait_for_processes(&marker, 2);
        let begun = Instant::now();
        let stopping = stop_again_and_again(keeper(running.pid()));
        let run = running.wait();
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
        assert_gone_within(&marker, Duration::from_secs(1));
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
        let begun = Instant::now();
        let stopping = stop_again_and_again(keeper(i32::try_from(agent.pid()).unwrap()));
        let (code, told) = agent.end();
        assert_eq!(code, Some(0), "{told}");
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
        stopping.join().unwrap();
    }

    /// The child of the keeper.
    fn worker(stockade: i32) -> Pid {
        let keeper = keeper(stockade).to_string();
        let parent = |pid: &i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            line.unwrap_or_default().trim().to_owned()
        };
        let all = descendants(stockade);
        Pid::from_raw(
            *all.iter()
                .find(|pid| parent(pid) == keeper)
                .expect("there is no worker"),
        )
    }

    fn what_is_put_back_when_the_worker_of_a_file_tool_dies_is_named_by_the_tool(world: &Fixture) {
        let (config, log) = config(world);
        world.write("there.txt", "there\n");
        let asked = world.base().join("asked");
        let go = world.base().join("go");
        // While it is asked, there is a worker, and nothing is under way.
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
            let begun = Instant::now();
            while !asked.exists() {
                assert!(begun.elapsed() < LONG, "{tool} was not asked about");
                sleep(Duration::from_millis(10));
            }
            let worker = worker(running.pid());
            (running, worker)
        };
        // What only reads changes nothing: what has changed meanwhile, a person changed.
        let (running, idle) = call("read_file", &json!({"path": "there.txt"}));
        let all: Vec<i32> = descendants(idle.as_raw()).into_iter().chain([idle.as_raw()]).collect();
        for pid in &all {
            kill(Pid::from_raw(*pid), Signal::SIGSTOP).unwrap();
        }
        fs::write(&envrc, "a person's").unwrap();
        fs::write(&go, "").unwrap();
        sleep(Duration::from_millis(700));
        kill(idle, Signal::SIGKILL).unwrap();
        let run = running.wait();
        assert_ne!(run.code(), 0, "{}", run.out());
        assert_eq!(fs::read_to_string(&envrc).unwrap(), "a person's");
        fs::remove_file(&envrc).unwrap();
        // The process that writes is stopped as soon as it is there, if it is still there then.
        for _ in 0..50 {
            let (running, worker) = call("write_file", &json!({"path": "new.txt", "content": "new\n"}));
            let before = descendants(worker.as_raw());
            fs::write(&go, "").unwrap();
            let begun = Instant::now();
            let writer = loop {
                let new = descendants(worker.as_raw())
                    .into_iter()
                    .find(|pid| !before.contains(pid));
                if new.is_some() || made.exists() || begun.elapsed() > LONG {
                    break new;
                }
            };
            let writer = writer.map(Pid::from_raw);
            let is_stopped = writer.is_some_and(|writer| kill(writer, Signal::SIGSTOP).is_ok());
            if !is_stopped || made.exists() {
                let _goes_on = writer.map(|writer| kill(writer, Signal::SIGCONT));
                running.wait();
                continue;
            }
            fs::write(&envrc, "evil").unwrap();
            kill(worker, Signal::SIGKILL).unwrap();
            let run = running.wait();
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
            return;
        }
        panic!("it was never seen to write");
    }
}
