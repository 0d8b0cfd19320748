//! The exit codes of `stockade run`: the command's own, 124, 125, 126, 127, 128+N.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use crate::common::{Fixture, Snapshot, assert_nothing_left_behind, in_both_regimes, without};

    in_both_regimes! {
        the_commands_own_code_is_passed_on [];
        output_goes_where_the_command_sent_it_and_nothing_is_added_to_stdout [];
        input_reaches_the_command [];
        a_timeout_is_124 [];
        a_command_that_ends_in_time_keeps_its_code [];
        a_config_that_does_not_exist_is_125 [];
        a_config_with_an_unknown_key_is_125_and_the_line_is_named [];
        an_unknown_flag_is_125 [];
        a_command_that_is_not_found_is_127 [];
        a_file_that_may_not_be_executed_is_126 [];
        a_blocked_command_is_126_and_its_neighbour_runs [];
        a_command_that_needs_a_yes_is_126_where_nobody_can_be_asked [];
        a_command_killed_by_a_signal_is_128_and_its_number [];
        home_and_the_root_folder_are_refused_as_a_workspace [];
        too_few_files_or_too_little_stack_are_125_and_told [];
        a_step_that_fails_before_anything_can_run_is_125_and_told_and_leaves_nothing ["cc"];
    }

    fn the_commands_own_code_is_passed_on(world: &Fixture) {
        for code in [0, 1, 42, 123, 255] {
            world.shell(&format!("exit {code}")).output().exits(code);
        }
    }

    fn output_goes_where_the_command_sent_it_and_nothing_is_added_to_stdout(world: &Fixture) {
        let run = world.shell("echo out; echo err >&2").output().exits(0);
        assert_eq!(run.out(), "out\n");
        assert!(run.err().contains("err\n"));
    }

    fn input_reaches_the_command(world: &Fixture) {
        assert_eq!(world.run(&["cat"]).stdin("from outside").output().ok(), "from outside");
    }

    fn a_timeout_is_124(world: &Fixture) {
        world
            .stockade(&["run", "--timeout", "1s", "--", "sleep", "infinity"])
            .output()
            .exits(124);
    }

    fn a_command_that_ends_in_time_keeps_its_code(world: &Fixture) {
        world
            .stockade(&["run", "--timeout", "1h", "-c", "exit 3"])
            .output()
            .exits(3);
    }

    fn a_config_that_does_not_exist_is_125(world: &Fixture) {
        let run = world
            .stockade(&["run", "--config", "/nonexistent/stockade.yaml", "--", "true"])
            .output()
            .exits(125);
        assert!(run.err().contains("/nonexistent/stockade.yaml"));
    }

    fn a_config_with_an_unknown_key_is_125_and_the_line_is_named(world: &Fixture) {
        let config = world.write(
            world.outside().join("bad.yaml"),
            "extends: [workspace-write]\nsandboxx: {}\n",
        );
        let run = world
            .stockade(&["run", "--config", config.to_str().unwrap(), "--", "true"])
            .output()
            .exits(125);
        assert!(run.err().contains("bad.yaml:2"), "{}", run.err());
    }

    fn an_unknown_flag_is_125(world: &Fixture) {
        world
            .stockade(&["run", "--no-such-flag", "--", "true"])
            .output()
            .exits(125);
    }

    fn a_command_that_is_not_found_is_127(world: &Fixture) {
        world.run(&["no-such-command-anywhere"]).output().exits(127);
    }

    fn a_file_that_may_not_be_executed_is_126(world: &Fixture) {
        world.write("plain.txt", "not a program");
        world.run(&["./plain.txt"]).output().exits(126);
    }

    fn a_blocked_command_is_126_and_its_neighbour_runs(world: &Fixture) {
        let rules = "extends: [workspace-write]\nshell:\n  default: {allowed: true, approval: none}\n  rules:\n    - {pattern: touch, allowed: false, reason: none of that}\n";
        let config = world.write("rules.yaml", rules);
        let config = config.to_str().unwrap();
        let run = world
            .stockade(&["run", "--config", config, "-c", "touch x"])
            .output()
            .exits(126);
        assert!(run.err().contains("none of that"), "{}", run.err());
        assert!(!world.workspace().join("x").exists());
        world
            .stockade(&["run", "--config", config, "-c", "echo y"])
            .output()
            .exits(0);
    }

    fn a_command_that_needs_a_yes_is_126_where_nobody_can_be_asked(world: &Fixture) {
        let config = world.write(
            "ask.yaml",
            "extends: [workspace-write]\nshell:\n  default: {allowed: true, approval: required}\n",
        );
        let config = config.to_str().unwrap();
        world
            .stockade(&["run", "--config", config, "--mode", "strict", "-c", "echo x"])
            .output()
            .exits(126);
        world
            .stockade(&["run", "--config", config, "--mode", "approve_all", "-c", "echo x"])
            .output()
            .exits(0);
    }

    fn a_command_killed_by_a_signal_is_128_and_its_number(world: &Fixture) {
        for (signal, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("INT", 130)] {
            world.shell(&format!("kill -{signal} $$")).output().exits(code);
        }
    }

    fn home_and_the_root_folder_are_refused_as_a_workspace(world: &Fixture) {
        world.run(&["true"]).cwd("/").output().exits(125);
        world.run(&["true"]).output().exits(0);
    }

    fn too_few_files_or_too_little_stack_are_125_and_told(world: &Fixture) {
        let limited = |limit: &str| {
            let line = format!("ulimit {limit} && exec \"$@\"");
            let stockade = world.binary().to_str().unwrap();
            let run = world.arguments(&["run", "-c", "touch ran"]);
            let shell = world.bare("/bin/bash").args(["-c", &line, "bash", stockade]);
            shell.args(run).output()
        };
        for (limit, what) in [
            ("-n 7", "7 open files"),
            ("-n 31", "31 open files"),
            ("-s 64", "65536 bytes of stack"),
        ] {
            let run = limited(limit).exits(125);
            assert!(
                run.err().contains(what) && run.err().contains("raise the limit"),
                "{}",
                run.err()
            );
            assert!(!world.workspace().join("ran").exists());
        }
        // It is what is left of them that counts.
        let taken = limited("-n 32 && exec 3<. 4<. 5<. 6<. 7<. 8<. 9<.").exits(125);
        assert!(taken.err().contains("24 more files"), "{}", taken.err());
        let checked = world
            .bare("/bin/bash")
            .args(["-c", "ulimit -n 8 && exec \"$@\"", "bash"]);
        let checked = checked
            .args([world.binary().to_str().unwrap(), "profile", "check", "--json"])
            .output();
        let told: serde_json::Value = serde_json::from_str(&checked.exits(125).out()).unwrap();
        assert_eq!(
            (&told["ok"], told["remedies"].as_array().unwrap().len()),
            (&false.into(), 1),
            "{told}"
        );
        limited("-n 32 -s 512").exits(0);
        assert!(world.workspace().join("ran").exists());
    }

    // It fails at once, and it is a matter of luck what of the session there is by then.
    fn a_step_that_fails_before_anything_can_run_is_125_and_told_and_leaves_nothing(world: &Fixture) {
        let own = world.base().join("run");
        let before = Snapshot::of(world);
        for _ in 0..30 {
            let words = world.arguments(&["run", "-c", "touch ran"]);
            // Nobody else sweeps there.
            let run = without(world, "sessions", &words)
                .env("TMPDIR", &own)
                .output()
                .exits(125);
            let told = "session: Operation not permitted";
            assert!(run.err().contains(told), "{}", run.err());
        }
        assert_nothing_left_behind(&before, world);
        assert!(!world.workspace().join("ran").exists());
    }
}
