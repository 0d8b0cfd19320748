//! Many calls: at once, and one after the other.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::path::Path;
    use std::time::Duration;

    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, forms};
    use crate::common::{Actor, Backend, Fixture, PATIENCE, as_root_and_as_user, descendants, eventually, world_with};
    use crate::own_mounts;

    as_root_and_as_user! {
        ten_thousand_calls_one_after_the_other_leave_nothing_behind [];
        sixty_four_commands_run_at_once [];
        a_thousand_queued_calls_are_answered_in_turn_and_memory_stays_bounded [];
    }

    #[test]
    fn a_command_that_makes_four_million_directories_is_stopped_while_it_runs() {
        stops_a_command_that_makes_four_million_directories(Backend::Landlock, "landlock");
    }

    /// Behind covers, and what watches git meanwhile.
    #[test]
    fn a_command_that_makes_four_million_directories_is_stopped_while_it_runs_in_namespaces() {
        stops_a_command_that_makes_four_million_directories(Backend::Namespaces, "namespaces");
    }

    /// In a file system of memory, which takes some gigabytes of it.
    fn stops_a_command_that_makes_four_million_directories(backend: Backend, name: &str) {
        let Some(world) = world_with(Actor::Root, backend, &["python3", "git"]) else {
            return;
        };
        let script = "\
import itertools, os
open('.envrc', 'w').write('evil')
for outer in itertools.count():
    os.mkdir(str(outer))
    os.chdir(str(outer))
    for inner in range(2048):
        os.mkdir(str(inner))
    os.chdir('..')
";
        world.write("script.py", script);
        let line = format!(
            "mount --bind \"$HOME\" ~root && mkdir big && mount -t tmpfs -o size=90%,nr_inodes=14000000 none {there} && cp script.py {there} && cd {there} && git init -q && \
             {{ {program} run --backend {name} --json -c 'python3 script.py'; ls -A | grep -v '^[0-9]*$'; }}",
            there = "/srv/workspace/big",
            program = own_mounts::PROGRAM,
        );
        let run = own_mounts::among(&world, &line).output();
        let (outcome, left) = run
            .out()
            .split_once('\n')
            .map(|(one, two)| (one.to_owned(), two.to_owned()))
            .unwrap();
        let outcome: Value = serde_json::from_str(&outcome).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()));
        assert_eq!(outcome["status"], "failed", "{outcome:#}");
        let why = outcome["reason"].as_str().or(outcome["why"].as_str()).unwrap();
        assert!(why.contains("more directories than"), "{why}");
        // It came to no end, and what it planted first is gone.
        assert_eq!(left, ".git\nscript.py\n");
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

    fn agent(world: &Fixture, flags: &[&str]) -> Agent {
        world.write("work/there.txt", "there\n");
        let here = format!("{}/", world.workspace().display());
        let file = world.write(world.base().join("agent.yaml"), CONFIG.replace("./", &here));
        let args = [&["mcp", "--config", file.to_str().unwrap(), "--cwd", "work"], flags].concat();
        Agent::start(world.stockade(&args), Era::Session, forms())
    }

    #[track_caller]
    fn is_done(result: &Value) {
        assert_eq!(result["isError"], false, "{result}");
    }

    fn read() -> Value {
        json!({"path": "work:there.txt"})
    }

    /// What a server and all it started hold.
    #[derive(Debug, PartialEq, Eq)]
    struct Held {
        processes: usize,
        descriptors: usize,
        files: usize,
    }

    fn tree(agent: &Agent) -> Vec<i32> {
        let server = i32::try_from(agent.pid()).unwrap();
        let mut all = descendants(server);
        all.push(server);
        all
    }

    fn entries(folder: &Path) -> usize {
        let found = fs::read_dir(folder).map_or_else(|_| Vec::new(), |found| found.map(Result::unwrap).collect());
        let below = found
            .iter()
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entries(&entry.path()));
        found.len() + below.sum::<usize>()
    }

    fn held(world: &Fixture, agent: &Agent) -> Held {
        let tree = tree(agent);
        // What confines shows them to nobody but root, who runs this too.
        let open = |pid: &i32| match fs::read_dir(format!("/proc/{pid}/fd")) {
            Err(error) if [ErrorKind::PermissionDenied, ErrorKind::NotFound].contains(&error.kind()) => 0,
            found => found.unwrap().count(),
        };
        Held {
            processes: tree.len(),
            descriptors: tree.iter().map(open).sum(),
            files: entries(&world.home()) + entries(&world.workspace()),
        }
    }

    /// The same, once nothing is made ready any more: it is so twice, a while apart.
    fn settled(world: &Fixture, agent: &Agent) -> Held {
        let mut last = held(world, agent);
        eventually("nothing changes", || {
            std::thread::sleep(Duration::from_millis(300));
            let now = held(world, agent);
            let is_settled = now == last;
            last = now;
            is_settled
        });
        last
    }

    fn kibibytes(pid: i32, what: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn ten_thousand_calls_one_after_the_other_leave_nothing_behind(world: &Fixture) {
        /// In KiB: less than if each call kept the smallest allocation that there is, 32 bytes.
        const NOTHING: u64 = 300;
        let mut agent = agent(world, &[]);
        let mut calls = |count: usize| {
            for call in 0..count {
                is_done(&match call % 25 {
                    0 => agent.call("shell", &json!({"argv": ["true"]})),
                    _ => agent.call("read_file", &read()),
                });
            }
            (
                settled(world, &agent),
                tree(&agent)
                    .into_iter()
                    .map(|pid| kibibytes(pid, "RssAnon:"))
                    .sum::<u64>(),
            )
        };
        let (before, small) = calls(1_000);
        let (after, large) = calls(10_000);
        assert_eq!(after, before);
        assert!(
            large <= small + NOTHING,
            "{small} KiB, and {large} after ten thousand calls more"
        );
    }

    fn sixty_four_commands_run_at_once(world: &Fixture) {
        let mut agent = agent(world, &["--at-once", "64"]);
        // None ends before all of them are there.
        let line = "touch here.$PPID.$$; until [ $(ls -d here.* | wc -l) -ge 64 ]; do sleep 0.1; done";
        let ids: Vec<u64> = (0..64)
            .map(|_| agent.begin_call("shell", &json!({"command": line})))
            .collect();
        for id in ids {
            is_done(&agent.answer(id)["result"]);
        }
    }

    fn a_thousand_queued_calls_are_answered_in_turn_and_memory_stays_bounded(world: &Fixture) {
        let mut agent = agent(world, &[]);
        is_done(&agent.call("shell", &json!({"argv": ["true"]})));
        let server = i32::try_from(agent.pid()).unwrap();
        let small = kibibytes(server, "VmHWM:");
        let commands: Vec<u64> = (0..500)
            .map(|_| agent.begin_call("shell", &json!({"argv": ["true"]})))
            .collect();
        let reads: Vec<u64> = (0..500).map(|_| agent.begin_call("read_file", &read())).collect();
        let mut order = Vec::new();
        while order.len() < 1_000 {
            let message = agent.next_within(PATIENCE).unwrap();
            is_done(&message["result"]);
            order.push(message["id"].as_u64().unwrap());
        }
        let place = |id: &u64| order.iter().position(|answered| answered == id).unwrap();
        let last_read = reads.iter().map(place).max().unwrap();
        let last_command = commands.iter().map(place).max().unwrap();
        assert!(
            last_read < last_command,
            "the reads waited for every command: {last_read}"
        );
        // Each waits for those before it, and for few that came later.
        for (turn, id) in commands.iter().enumerate() {
            let answered = commands.iter().filter(|other| place(other) < place(id)).count();
            assert!(
                answered.abs_diff(turn) <= 64,
                "command {turn} was answered as number {answered}"
            );
        }
        let grown = kibibytes(server, "VmHWM:") - small;
        assert!(grown < 32 * 1024, "the server grew by {grown} KiB");
    }
}
