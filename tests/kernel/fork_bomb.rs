//! A fork bomb. Where its processes are counted by looking, it takes those of the whole machine for a moment, and nothing else
//! could be started beside it: `.config/nextest.toml` has these tests run alone.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::common::{Fixture, assert_no_process_left, compiled, in_both_regimes, marker};

    in_both_regimes! {
        a_fork_bomb_ends_and_leaves_nothing ["bash"];
        children_that_end_faster_than_they_are_reaped_hold_up_no_end [];
        children_that_end_faster_than_they_are_reaped_hold_up_no_limit [];
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
        assert!([124, 137, 254].contains(&run.code()), "{} {}", run.code(), run.err());
        assert_no_process_left(&marker);
        // The machine is as usable as before.
        assert_eq!(world.shell("echo fine").output().exits(0).out(), "fine\n");
    }
}
