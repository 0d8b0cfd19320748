//! A fork bomb. Where its processes are counted by looking, it takes those of the whole machine for a moment, and nothing else
//! could be started beside it: `.config/nextest.toml` has these tests run alone.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::common::{
        Fixture, assert_no_process_left, compiled, descendants, eventually, in_both_regimes, marker,
        may_lower_nice_values, may_starve_its_runner, without,
    };

    in_both_regimes! {
        a_fork_bomb_ends_and_leaves_nothing ["bash"];
        children_that_end_faster_than_they_are_reaped_hold_up_no_end [];
        children_that_end_faster_than_they_are_reaped_hold_up_no_limit [];
        who_ends_a_fork_bomb_comes_before_it_where_the_caller_may_say_so ["nice", "chrt"];
        a_command_runs_where_scheduling_cannot_be_changed ["cc"];
        a_command_keeps_the_nice_value_that_its_caller_chose ["nice"];
    }

    /// Its policy and its nice value (`proc_pid_stat(5)`).
    fn scheduled(stat: &str) -> (i32, i32) {
        let after_the_name: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        (after_the_name[38].parse().unwrap(), after_the_name[16].parse().unwrap())
    }

    fn who_ends_a_fork_bomb_comes_before_it_where_the_caller_may_say_so(world: &Fixture) {
        const ROUND_ROBIN: i32 = 2;
        let [note, go] = ["note", "go"].map(|name| world.workspace().join(name));
        let line = "chrt -p $$ >new; nice >>new; mv new note; until [ -e go ]; do sleep 0.02; done";
        let running = world.stockade(&["run", "-c", line]).spawn();
        eventually("the command runs", || note.exists());
        let first = if may_lower_nice_values(world.actor) {
            // Some control groups have no real time to give away.
            let real_time = world.bare("/usr/bin/chrt").args(["-r", "1", "true"]).output();
            if real_time.code() == 0 {
                (ROUND_ROBIN, 0)
            } else {
                (0, -20)
            }
        } else {
            (0, 0)
        };
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let all = descendants(running.pid());
        for who in ["stockade-super\n", "stockade-run\n"] {
            let pid = all.iter().find(|pid| name(pid) == who).unwrap();
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            assert_eq!(scheduled(&stat), first, "{who}");
        }
        // What it judges is scheduled as ever.
        let own = fs::read_to_string(&note).unwrap();
        assert!(own.contains("policy: SCHED_OTHER\n") && own.ends_with("\n0\n"), "{own}");
        fs::write(go, "").unwrap();
        running.wait().exits(0);
    }

    fn a_command_runs_where_scheduling_cannot_be_changed(world: &Fixture) {
        for what in ["scheduling", "setting-scheduling"] {
            let run = without(
                world,
                what,
                &["run", "--backend", world.backend.name(), "-c", "echo ran"],
            );
            assert_eq!(run.output().exits(0).out(), "ran\n", "{what}");
        }
    }

    fn a_command_keeps_the_nice_value_that_its_caller_chose(world: &Fixture) {
        let args = ["run", "--backend", world.backend.name(), "--", "nice"];
        let run = world
            .bare("/usr/bin/nice")
            .args(["-n", "5"])
            .args([world.binary()])
            .args(args);
        assert_eq!(run.output().exits(0).out(), "5\n");
    }

    /// The helper in the workspace, and a config under which it runs.
    fn swarm(world: &Fixture, limits: &str) -> String {
        world.program("swarm", fs::read(compiled("swarm")).unwrap());
        let text = format!("extends: [workspace-write]\nshell:\n  limits: {{{limits}}}\n");
        let config = world.write(world.workspace().join("stockade-limits.yaml"), text);
        config.to_str().unwrap().to_owned()
    }

    fn children_that_end_faster_than_they_are_reaped_hold_up_no_end(world: &Fixture) {
        let config = swarm(world, "");
        // They would go on for longer than a test may.
        let run = world.stockade(&["run", "--config", &config, "--", "./swarm", "2500", "600", "0.3"]);
        assert_eq!(run.output().code(), 7);
        assert_no_process_left("./swarm");
    }

    fn children_that_end_faster_than_they_are_reaped_hold_up_no_limit(world: &Fixture) {
        let config = swarm(world, "timeout: 1s");
        let run = world.stockade(&["run", "--config", &config, "--", "./swarm", "2500", "600", "600"]);
        assert_eq!(run.output().code(), 124);
        assert_no_process_left("./swarm");
    }

    fn a_fork_bomb_ends_and_leaves_nothing(world: &Fixture) {
        let marker = marker();
        let text = "extends: [workspace-write]\nshell:\n  limits: {processes: 64, timeout: 10s}\n";
        let config = world.write(world.workspace().join("stockade-limits.yaml"), text);
        let line = format!("bomb() {{ bomb | bomb & }}; bomb 2>/dev/null; exec sleep {marker}");
        let args = ["run", "--config", config.to_str().unwrap(), "-c", &line];
        let run = world.stockade(&args).output();
        // A bomb that cannot grow goes out by itself, and the foreground runs into its time.
        let ends: &[i32] = if may_starve_its_runner(world) {
            &[124, 125, 137, 254]
        } else {
            &[124, 137, 254]
        };
        assert!(ends.contains(&run.code()), "{} {}", run.code(), run.err());
        assert_no_process_left(&marker);
        // The machine is as usable as before.
        assert_eq!(world.shell("echo fine").output().exits(0).out(), "fine\n");
    }
}
