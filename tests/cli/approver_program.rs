//! A program in the place of the person at the terminal: real scripts that answer, and that do everything but answer.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use nix::sys::signal::Signal;
    use serde_json::Value;

    use crate::common::{Fixture, Invocation, Run, as_root_and_as_user, marker, wait_for_processes, wait_until_gone};

    as_root_and_as_user! {
        a_yes_of_the_program_runs_the_command_and_a_no_does_not [];
        the_program_is_told_all_of_the_question [];
        what_is_no_decision_denies [];
        a_program_that_writes_without_end_is_killed_and_denies [];
        a_program_that_does_not_answer_in_time_is_killed_with_its_group_and_denies [];
        a_program_that_fails_after_a_yes_denies [];
        a_program_that_does_not_read_its_question_is_understood [];
        what_the_program_leaves_running_holds_nothing_up_and_is_killed [];
        the_program_gets_four_variables_and_no_descriptor [];
        what_the_program_says_on_standard_error_is_passed_on_escaped [];
        a_note_reaches_the_agent_escaped [];
        a_program_that_commands_could_write_is_refused [];
        a_program_that_others_could_write_is_refused [];
        a_folder_on_the_path_that_commands_could_write_is_left_out [];
        a_home_that_commands_could_write_is_not_the_programs [];
        a_signal_kills_the_program_and_runs_nothing [];
        a_mode_that_asks_nobody_does_not_run_the_program [];
    }

    const YES: &str = "cat >/dev/null; echo '{\"approved\": true}'";

    /// A config that asks for everything and grants the workspace; outside every root.
    fn config(world: &Fixture) -> PathBuf {
        let text = format!(
            "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {}, mode: rw, execute: true, write_approval: false}}
",
            world.workspace().display()
        );
        world.write(world.base().join("agent.yaml"), text)
    }

    fn script(world: &Fixture, file: PathBuf, body: &str) -> PathBuf {
        world.program(file, format!("#!/bin/sh\n{body}\n"))
    }

    fn program(world: &Fixture, body: &str) -> PathBuf {
        script(world, world.base().join("approver"), body)
    }

    fn run(world: &Fixture, program: &Path, flags: &[&str], line: &str) -> Invocation {
        let config = config(world);
        let named = ["--config", config.to_str().unwrap(), "--approver-program"];
        let args = [&["run"], &named[..], &[program.to_str().unwrap()], flags, &["-c", line]].concat();
        world.stockade(&args)
    }

    /// `touch made`, asked of a program with this body.
    fn asked(world: &Fixture, body: &str) -> Run {
        run(world, &program(world, body), &[], "touch made").output()
    }

    #[track_caller]
    fn assert_denied(world: &Fixture, run: Run, why: &str) {
        let run = run.exits(126);
        assert!(run.err().contains("permission denied"), "{}", run.err());
        assert!(run.err().contains(why), "{why} in {}", run.err());
        assert!(!world.workspace().join("made").exists());
    }

    fn a_yes_of_the_program_runs_the_command_and_a_no_does_not(world: &Fixture) {
        let no = "cat >/dev/null; echo '{\"approved\": false, \"note\": \"not now\", \"remember\": \"none\"}'";
        assert_denied(world, asked(world, no), "user denied shell: not now");
        asked(world, YES).ok();
        assert!(world.workspace().join("made").exists());
    }

    fn the_program_is_told_all_of_the_question(world: &Fixture) {
        let told = world.base().join("told.json");
        let body = format!("cat >{}; echo '{{\"approved\": true}}'", told.display());
        let line = "touch 'a\u{202e}b'; echo done";
        run(world, &program(world, &body), &[], line).output().ok();
        let text = fs::read_to_string(told).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["tool"], "shell");
        assert_eq!(json["fingerprint"].as_str().unwrap().len(), 64);
        let command = &json["presentation"]["command"];
        assert_eq!(command["command"], line);
        assert_eq!(command["directory"], world.workspace().to_str().unwrap());
        assert_eq!(command["may_write"][0], world.workspace().to_str().unwrap());
        assert_eq!(command["may_reach"], "nothing");
    }

    fn what_is_no_decision_denies(world: &Fixture) {
        for (answer, why) in [
            ("", "no JSON object"),
            ("yes", "no JSON object"),
            ("[true]", "no JSON object"),
            ("{\"approved\": 1}", "no decision"),
            ("{\"approved\": true, \"more\": 1}", "unknown field"),
            ("{\"approved\": true}{\"approved\": true}", "no decision"),
            ("{\"approved\": true}\nand more", "no decision"),
        ] {
            let body = format!("cat >/dev/null; cat <<'END'\n{answer}\nEND");
            assert_denied(world, asked(world, &body), why);
        }
    }

    fn a_program_that_writes_without_end_is_killed_and_denies(world: &Fixture) {
        let body = "echo '{\"approved\": true}'; while :; do echo '                              '; done";
        assert_denied(world, asked(world, body), "wrote more than 65536 bytes");
        let body = format!("while :; do echo noise; done >&2 & {YES}");
        asked(world, &body).ok();
        // One that has ended by itself by the time that it was too much.
        fs::remove_file(world.workspace().join("made")).unwrap();
        let marker = marker();
        let body = format!("sleep {marker} & head -c 65000 /dev/zero; head -c 60000 /dev/zero");
        assert_denied(world, asked(world, &body), "wrote more than 65536 bytes");
        wait_until_gone(&marker);
    }

    fn a_program_that_does_not_answer_in_time_is_killed_with_its_group_and_denies(world: &Fixture) {
        let marker = marker();
        let body = format!("sleep {marker} & sleep {marker}");
        let run = run(
            world,
            &program(world, &body),
            &["--approval-timeout", "1s"],
            "touch made",
        )
        .output();
        assert_denied(world, run, "no answer within 1s");
        wait_until_gone(&marker);
    }

    fn a_program_that_fails_after_a_yes_denies(world: &Fixture) {
        assert_denied(world, asked(world, &format!("{YES}; exit 1")), "exit status: 1");
        assert_denied(world, asked(world, &format!("{YES}; kill -9 $$")), "signal: 9");
    }

    fn a_program_that_does_not_read_its_question_is_understood(world: &Fixture) {
        // More than a pipe holds.
        let line = format!("touch made; : {}", "x".repeat(100_000));
        let program = program(world, "exec <&-; echo '{\"approved\": true}'");
        run(world, &program, &[], &line).output().ok();
        assert!(world.workspace().join("made").exists());
    }

    fn what_the_program_leaves_running_holds_nothing_up_and_is_killed(world: &Fixture) {
        let marker = marker();
        // The marker is a sleep of years.
        asked(world, &format!("sleep {marker} & {YES}")).ok();
        wait_until_gone(&marker);
    }

    fn the_program_gets_four_variables_and_no_descriptor(world: &Fixture) {
        let told = world.base().join("told");
        let body = format!("(env; ls /proc/self/fd) >{}; {YES}", told.display());
        let program = program(world, &body);
        let config = config(world);
        let words = [config.to_str().unwrap(), program.to_str().unwrap()];
        let shell = "exec 7</etc/passwd; exec \"$0\" run --config \"$1\" --approver-program \"$2\" -c id";
        let run = world
            .bare("/bin/sh")
            .args(["-c", shell, world.binary().to_str().unwrap()]);
        run.args(words).env("SECRET", "in the environment").output().ok();
        let told = fs::read_to_string(told).unwrap();
        let variable = |name: &str| told.lines().any(|line| line.starts_with(name));
        assert!(
            variable("PATH=") && variable("HOME=") && variable("LANG=") && variable("TERM="),
            "{told}"
        );
        assert!(!variable("SECRET=") && !variable("XDG_RUNTIME_DIR="), "{told}");
        let open: Vec<&str> = told.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
        assert!(!open.contains(&"7") && open.contains(&"0"), "{open:?}");
    }

    fn what_the_program_says_on_standard_error_is_passed_on_escaped(world: &Fixture) {
        let run = asked(world, &format!("printf 'look\\033[2J\\nhere' >&2; {YES}"));
        let told = String::from_utf8(run.stderr.clone()).unwrap();
        assert!(told.contains("the approver program says: look\\u{1b}[2J\n"), "{told}");
        assert!(told.contains("says: here\n") && !told.contains('\u{1b}'), "{told}");
        run.ok();
    }

    fn a_note_reaches_the_agent_escaped(world: &Fixture) {
        let body = "cat >/dev/null; echo '{\"approved\": false, \"note\": \"a\\u001b[2J\\u202eb\"}'";
        let run = asked(world, body);
        let told = String::from_utf8(run.stderr.clone()).unwrap();
        assert!(told.contains("denied shell: a\\u{1b}[2J\\u{202e}b"), "{told}");
        assert_denied(world, run, "user denied shell");
    }

    fn a_program_that_commands_could_write_is_refused(world: &Fixture) {
        let inside = script(world, world.workspace().join("approver"), YES);
        let refused = run(world, &inside, &[], "touch made").output().exits(125);
        assert!(refused.err().contains("could approve themselves"), "{}", refused.err());
        let link = world.base().join("link");
        symlink(&inside, &link).unwrap();
        let refused = run(world, &link, &[], "touch made").output().exits(125);
        assert!(refused.err().contains("could approve themselves"), "{}", refused.err());
        // A link that a command could re-point, to a program that it could not write.
        let there = program(world, YES);
        let link = world.workspace().join("link");
        symlink(&there, &link).unwrap();
        let refused = run(world, &link, &[], "touch made").output().exits(125);
        assert!(refused.err().contains("could approve themselves"), "{}", refused.err());
        assert!(!world.workspace().join("made").exists());
        run(world, &there, &[], "touch made").output().ok();
    }

    fn a_program_that_others_could_write_is_refused(world: &Fixture) {
        let program = program(world, YES);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = run(world, &program, &[], "touch made").output().exits(125);
        assert!(refused.err().contains("others can write"), "{}", refused.err());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = run(world, &program, &[], "touch made").output().exits(125);
        assert!(refused.err().contains("cannot be executed"), "{}", refused.err());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        run(world, &program, &[], "touch made").output().ok();
    }

    fn a_folder_on_the_path_that_commands_could_write_is_left_out(world: &Fixture) {
        let planted = world.base().join("planted");
        script(
            world,
            world.workspace().join("bin/cat"),
            &format!("touch {}", planted.display()),
        );
        let path = |first: PathBuf| format!("{}::{}", first.display(), world.actor.path());
        let ask = |first: PathBuf| {
            let run = run(world, &program(world, YES), &[], "touch made");
            run.env("PATH", path(first)).output().ok();
        };
        ask(world.workspace().join("bin"));
        assert!(!planted.exists());
        // Where no command writes, the user's own choice holds.
        script(
            world,
            world.base().join("bin/cat"),
            &format!("touch {}", planted.display()),
        );
        ask(world.base().join("bin"));
        assert!(planted.exists());
    }

    fn a_home_that_commands_could_write_is_not_the_programs(world: &Fixture) {
        let told = world.base().join("told");
        let program = program(
            world,
            &format!("echo \"home: ${{HOME-none}}\" >{}; {YES}", told.display()),
        );
        let ask = |home: PathBuf| {
            run(world, &program, &[], "id").env("HOME", home).output().ok();
            fs::read_to_string(&told).unwrap()
        };
        assert_eq!(ask(world.workspace()), "home: none\n");
        assert_eq!(ask(world.home()), format!("home: {}\n", world.home().display()));
    }

    fn a_signal_kills_the_program_and_runs_nothing(world: &Fixture) {
        let marker = marker();
        let body = format!("sleep {marker} & wait; {YES}");
        let running = run(world, &program(world, &body), &[], "touch made").spawn();
        wait_for_processes(&marker, 1);
        running.signal(Signal::SIGTERM);
        running.wait().exits(143);
        wait_until_gone(&marker);
        assert!(!world.workspace().join("made").exists());
    }

    fn a_mode_that_asks_nobody_does_not_run_the_program(world: &Fixture) {
        let told = world.base().join("told");
        let program = program(world, &format!("touch {}; {YES}", told.display()));
        run(world, &program, &["--mode", "strict"], "touch made")
            .output()
            .exits(126);
        run(world, &program, &["--mode", "approve_all"], "touch made")
            .output()
            .ok();
        assert!(!told.exists());
        run(world, &program, &[], "touch made").output().ok();
        assert!(told.exists());
    }
}
