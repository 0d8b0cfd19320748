//! The log of what was asked, decided and run: written by the real program, checked by it, and killed in between.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    use std::path::PathBuf;
    use std::time::Instant;

    use nix::sys::signal::Signal;
    use nix::sys::stat::Mode;
    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era, filled, forms};
    use crate::common::{Fixture, Invocation, Run, as_root_and_as_user, eventually};

    as_root_and_as_user! {
        a_run_is_on_record_from_its_call_to_its_end [];
        a_decision_and_a_start_are_on_record_while_the_command_runs [];
        nothing_is_recorded_without_a_word [];
        a_call_of_each_kind_of_tool_is_on_record_with_what_came_of_it [];
        a_log_that_was_changed_is_found_and_shown_all_the_same [];
        what_stands_in_the_place_of_a_log_is_named_by_all_that_read_it [];
        a_log_where_commands_could_reach_it_runs_nothing [];
        a_log_that_is_not_the_users_own_file_runs_nothing [];
        a_flag_neither_turns_off_nor_moves_a_log_that_is_demanded [];
        several_sessions_at_once_make_one_chain [];
        a_log_that_cannot_be_written_denies_and_runs_nothing [];
        no_kill_makes_a_log_that_is_wrongly_accepted_or_rejected [];
        a_change_of_a_protected_name_is_on_record [];
        what_was_denied_to_a_command_is_on_record_and_in_the_report [];
        a_log_that_a_power_cut_left_zeros_in_is_mended_by_the_next_start [];
        calls_of_a_client_are_on_record_with_their_requests [];
        a_third_partys_server_and_the_calls_of_its_tools_are_on_record ["python3"];
        the_end_of_a_third_partys_server_that_is_not_on_record_is_told ["python3"];
    }

    fn log(world: &Fixture) -> PathBuf {
        world.base().join("state/audit.jsonl")
    }

    /// `stockade run --audit LOG FLAGS -c LINE`.
    fn run(world: &Fixture, flags: &[&str], line: &str) -> Invocation {
        let log = log(world);
        let args = [&["run", "--audit", log.to_str().unwrap()], flags, &["-c", line]].concat();
        world.stockade(&args)
    }

    fn audit(world: &Fixture, args: &[&str]) -> Run {
        let log = log(world);
        let [action, rest @ ..] = args else {
            panic!("no action");
        };
        let args = [&["audit", action, "--log", log.to_str().unwrap()], rest].concat();
        world.stockade(&args).output()
    }

    /// All records of the log.
    fn records(world: &Fixture, flags: &[&str]) -> Vec<Value> {
        let shown = audit(world, &[&["show", "--json"], flags].concat()).ok();
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn events(records: &[Value]) -> Vec<&str> {
        records.iter().map(|record| record["event"].as_str().unwrap()).collect()
    }

    #[track_caller]
    fn is_whole(world: &Fixture) -> Value {
        let verified = audit(world, &["verify", "--json"]);
        let report: Value = serde_json::from_str(&verified.out()).unwrap();
        assert_eq!((&report["ok"], verified.code()), (&Value::Bool(true), 0), "{report}");
        report
    }

    /// A config that asks for everything and grants the workspace; outside every root.
    fn config(world: &Fixture, more: &str) -> String {
        let text = format!(
            "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {}, mode: rw, execute: true, write_approval: false}}
{more}",
            world.workspace().display()
        );
        let config = world.write(world.base().join("agent.yaml"), text);
        config.to_str().unwrap().to_owned()
    }

    fn approver(world: &Fixture, approved: bool) -> String {
        let body =
            format!("#!/bin/sh\ncat >/dev/null; echo '{{\"approved\": {approved}, \"note\": \"as you wish\"}}'\n");
        let program = world.program(world.base().join("approver"), body);
        program.to_str().unwrap().to_owned()
    }

    fn a_run_is_on_record_from_its_call_to_its_end(world: &Fixture) {
        let done: Value = serde_json::from_str(&run(world, &["--json"], "echo out; exit 3").output().out()).unwrap();
        let report = is_whole(world);
        let all = records(world, &[]);
        assert_eq!(report["records"], all.len());
        assert_eq!(
            events(&all),
            [
                "header",
                "session_start",
                "call",
                "assessment",
                "profile",
                "start",
                "end",
                "outcome",
                "session_end"
            ]
        );
        let of = |event: &str| all.iter().find(|record| record["event"] == event).unwrap();
        assert!(
            all.iter().all(|record| record["session"] == done["audit_session"]),
            "{done}"
        );
        assert_eq!(of("session_start")["process.real_user.id"], world.actor.uid());
        assert_eq!(of("call")["gen_ai.operation.name"], "execute_tool");
        assert_eq!(of("call")["gen_ai.tool.name"], "shell");
        assert_eq!(of("call")["gen_ai.tool.call.arguments"]["command"], "echo out; exit 3");
        assert_eq!(of("assessment")["needs"], "nothing");
        assert_eq!(of("profile")["self_test"], "passed");
        assert_eq!(of("start")["profile"], of("profile")["profile"]);
        assert_eq!(
            of("start")["process.working_directory"],
            world.workspace().to_str().unwrap()
        );
        assert_eq!(of("end")["process.exit.code"], 3);
        assert_eq!(of("end")["output_bytes"], 4);
        assert_eq!(of("outcome")["outcome"], "failed");
        for name in ["audit.jsonl", "audit.head", "audit.lock"] {
            let file = fs::metadata(world.base().join("state").join(name)).unwrap();
            assert_eq!((file.mode() & 0o777, file.uid()), (0o600, world.actor.uid()), "{name}");
        }
        assert_eq!(fs::metadata(world.base().join("state")).unwrap().mode() & 0o777, 0o700);
        let shown = audit(world, &["show", "--limit", "2"]).ok();
        assert!(shown.lines().count() == 2 && shown.contains("outcome"), "{shown}");
    }

    fn a_decision_and_a_start_are_on_record_while_the_command_runs(world: &Fixture) {
        let (config, program) = (config(world, ""), approver(world, true));
        let flags = ["--config", &config, "--approver-program", &program];
        let running = run(world, &flags, "touch started; sleep infinity").spawn();
        eventually("the start of the command", || {
            world.workspace().join("started").exists()
        });
        let all = records(world, &[]);
        let of = |event: &str| all.iter().find(|record| record["event"] == event).unwrap();
        let decision = of("decision");
        assert_eq!(decision["decision"], "approved");
        assert_eq!(
            (&decision["by"], &decision["channel"]),
            (&"approver".into(), &"program".into())
        );
        assert_eq!(decision["note"], "as you wish");
        assert_eq!(decision["gen_ai.tool.call.id"], of("call")["gen_ai.tool.call.id"]);
        assert!(
            decision["why"][0].as_str().unwrap().contains("needs a yes by default"),
            "{decision}"
        );
        assert_eq!(events(&all).last(), Some(&"start"));
        let head: Value = serde_json::from_slice(&fs::read(world.base().join("state/audit.head")).unwrap()).unwrap();
        assert_eq!(
            head["seq"], decision["seq"],
            "it was not certainly written before it took effect"
        );
        running.signal(Signal::SIGTERM);
        running.wait();
        let all = records(world, &["--session", all[0]["session"].as_str().unwrap()]);
        assert_eq!(
            all.iter().find(|record| record["event"] == "end").unwrap()["status"],
            "cancelled"
        );
        is_whole(world);
    }

    fn nothing_is_recorded_without_a_word(world: &Fixture) {
        let config = config(world, "audit: {log: off}\nshell: {default: {approval: none}}\n");
        for flags in [&[][..], &["--audit", "off"], &["--config", &config]] {
            let done = world
                .stockade(&[&["run", "--json"], flags, &["-c", "true"]].concat())
                .output();
            let done: Value = serde_json::from_str(&done.ok()).unwrap();
            assert!(done.get("audit_session").is_none(), "{done}");
        }
        let verified = audit(world, &["verify"]);
        assert_eq!(verified.code(), 125);
        assert!(verified.err().contains("no audit log"), "{}", verified.err());
    }

    fn a_call_of_each_kind_of_tool_is_on_record_with_what_came_of_it(world: &Fixture) {
        let custom = "shell: {default: {approval: none}, rules: [{pattern: rm, allowed: false}]}
custom_tools: {greet: {description: x, command: [echo, \"{whom}\"], args: {whom: {type: string}}, approval: none}}
";
        let text = format!("{}audit: {{log: {}}}\n", custom, log(world).display());
        let config = config(world, &text);
        let secret = "x".repeat(100_000);
        let calls = [
            ("read_file", json!({"path": "missing \u{1b}[2J"})),
            ("write_file", json!({"path": "a.txt", "content": secret})),
            ("shell", json!({"command": "rm a.txt"})),
            ("shell", json!({"command": "cat a.txt"})),
            ("greet", json!({"whom": "you"})),
            ("delete_file", json!({"path": "/etc/passwd"})),
        ];
        let mut lines = String::new();
        for (tool, args) in &calls {
            lines += &json!({"call": {"tool": tool, "args": args}}).to_string();
            lines.push('\n');
        }
        let args = ["call", "--stream", "--config", &config];
        world.stockade(&args).stdin(lines).output().ok();
        let all = records(world, &[]);
        let calls: Vec<&Value> = all.iter().filter(|record| record["event"] == "call").collect();
        let tools: Vec<&str> = calls
            .iter()
            .map(|call| call["gen_ai.tool.name"].as_str().unwrap())
            .collect();
        assert_eq!(
            tools,
            ["read_file", "write_file", "shell", "shell", "greet", "delete_file"]
        );
        let came = |number: usize| {
            let id = &calls[number]["gen_ai.tool.call.id"];
            let of = all.iter().filter(|record| record["gen_ai.tool.call.id"] == *id);
            of.map(|record| record["event"].as_str().unwrap()).collect::<Vec<_>>()
        };
        let outcome = |number: usize| {
            let id = &calls[number]["gen_ai.tool.call.id"];
            let mut of = all.iter().filter(|record| record["gen_ai.tool.call.id"] == *id);
            of.find(|record| record["event"] == "outcome").unwrap()["outcome"].clone()
        };
        assert_eq!(came(1), ["call", "assessment", "outcome"]);
        assert_eq!(came(2), ["call", "assessment", "outcome"]);
        assert_eq!(came(3), ["call", "assessment", "start", "end", "outcome"]);
        assert_eq!(came(4), ["call", "assessment", "start", "end", "outcome"]);
        let outcomes: Vec<Value> = (0..6).map(outcome).collect();
        assert_eq!(outcomes, ["error", "done", "blocked", "done", "done", "blocked"]);
        let content = &calls[1]["gen_ai.tool.call.arguments"]["content"];
        assert_eq!(
            (&content["bytes"], content["text"].as_str().unwrap().len()),
            (&100_000.into(), 4096)
        );
        let config_file = &all.iter().find(|record| record["event"] == "session_start").unwrap()["config"][0];
        assert_eq!(config_file["path"], config);
        assert_eq!(records(world, &["--tool", "greet"]).len(), 5);
        is_whole(world);
        let shown = audit(world, &["show"]).ok();
        assert!(!shown.contains('\u{1b}') && shown.contains("missing"), "{shown}");
        let bytes = fs::read(log(world)).unwrap();
        assert!(!bytes.contains(&0x1b));
    }

    fn a_log_that_was_changed_is_found_and_shown_all_the_same(world: &Fixture) {
        run(world, &[], "true").output().ok();
        run(world, &[], "echo innocent").output().ok();
        let whole = fs::read_to_string(log(world)).unwrap();
        let verified = is_whole(world);
        assert_eq!(verified["behind_head"], 0);
        let hash = verified["last"]["hash"].as_str().unwrap();
        assert_eq!(audit(world, &["verify", "--expect", hash]).code(), 0);
        assert_eq!(
            audit(world, &["verify", "--expect", &hash.replace(['0', '1'], "2")]).code(),
            1
        );
        // A slip is no sign of tampering.
        let slip = audit(world, &["verify", "--expect", &hash[..8]]).exits(125);
        assert!(slip.err().contains("64 hexadecimal digits"), "{}", slip.err());
        let lines: Vec<&str> = whole.split_inclusive('\n').collect();
        let change = |text: String, told: &str| {
            fs::write(log(world), text).unwrap();
            let verified = audit(world, &["verify"]);
            assert_eq!(verified.code(), 1);
            assert!(verified.out().contains(told), "{told}: {}", verified.out());
            let shown = audit(world, &["show"]);
            assert_eq!(shown.code(), 1);
            assert!(shown.err().contains("NOT AS IT WAS WRITTEN"), "{}", shown.err());
            assert!(shown.out().contains("session_start"), "{}", shown.out());
        };
        let head = log(world).with_file_name("audit.head");
        let kept = fs::read_to_string(&head).unwrap();
        let mut stored: Value = serde_json::from_str(&kept).unwrap();
        for end in ["start", "end"] {
            stored[end] = (stored[end].as_u64().unwrap() + 7).into();
        }
        fs::write(&head, stored.to_string()).unwrap();
        change(whole.clone(), "audit.head, record ");
        // What checks it says what a start says.
        let refused = run(world, &[], "touch made").output();
        assert!(
            refused.code() == 125 && refused.err().contains("stockade audit verify"),
            "{}",
            refused.err()
        );
        fs::write(&head, kept).unwrap();
        change(whole.replace("innocent", "evil"), "record 10: edited");
        change([&lines[..5], &lines[7..]].concat().concat(), "deleted: records 5 to 6");
        change(
            [&lines[..3], &[lines[4], lines[3]], &lines[5..]].concat().concat(),
            "reordered: record 4 stands where record 3 belongs",
        );
        change(lines[..lines.len() - 1].concat(), "truncated");
        // Nothing is added to it, and nothing runs.
        let refused = run(world, &[], "touch made").output();
        assert!(
            refused.code() == 125 && refused.err().contains("truncated"),
            "{}",
            refused.err()
        );
        assert!(!world.workspace().join("made").exists());
        fs::write(log(world), &whole).unwrap();
        is_whole(world);
        fs::remove_file(log(world)).unwrap();
        let verified = audit(world, &["verify"]);
        assert!(
            verified.code() == 1 && verified.out().contains("truncated"),
            "{}",
            verified.out()
        );
    }

    fn what_stands_in_the_place_of_a_log_is_named_by_all_that_read_it(world: &Fixture) {
        run(world, &[], "true").output().exits(0);
        let kept = log(world).with_extension("kept");
        fs::rename(log(world), &kept).unwrap();
        std::os::unix::fs::symlink(&kept, log(world)).unwrap();
        for action in [
            &["verify"][..],
            &["show"],
            &["show", "--limit", "1"],
            &["report", "--json"],
        ] {
            let told = audit(world, action).exits(1);
            let all = format!("{}{}", told.out(), told.err());
            assert!(
                all.contains("a symbolic link stands in the place of a file of the log"),
                "{all}"
            );
        }
        fs::rename(&kept, log(world)).unwrap();
        audit(world, &["show"]).exits(0);
    }

    fn a_log_where_commands_could_reach_it_runs_nothing(world: &Fixture) {
        let inside = world.workspace().join("audit.jsonl");
        let usr = PathBuf::from("/usr/audit.jsonl");
        symlink(world.workspace(), world.base().join("link")).unwrap();
        let linked = world.base().join("link/audit.jsonl");
        for place in [inside, usr, linked] {
            let args = ["run", "--audit", place.to_str().unwrap(), "-c", "touch made"];
            let refused = world.stockade(&args).output();
            assert_eq!(refused.code(), 125, "{}", place.display());
            assert!(refused.err().contains("in reach of commands"), "{}", refused.err());
            assert!(!world.workspace().join("made").exists() && !place.exists());
        }
    }

    fn a_log_that_is_not_the_users_own_file_runs_nothing(world: &Fixture) {
        let refused = |told: &str| {
            let refused = run(world, &[], "touch made").output();
            assert_eq!(refused.code(), 125, "{told}");
            assert!(refused.err().contains("audit log"), "{told}: {}", refused.err());
            assert!(!world.workspace().join("made").exists(), "{told}");
            fs::remove_file(log(world)).unwrap();
        };
        let private = |mode| fs::set_permissions(log(world), fs::Permissions::from_mode(mode)).unwrap();
        world.write(log(world), "");
        private(0o644);
        refused("others may read it");
        let notes = world.write(world.base().join("state/notes"), "mine");
        fs::set_permissions(&notes, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&notes, log(world)).unwrap();
        refused("a link");
        assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
        nix::unistd::mkfifo(&log(world), Mode::S_IRWXU).unwrap();
        refused("a pipe");
        world.write(log(world), "my notes\n");
        private(0o600);
        refused("something else");
        if nix::unistd::geteuid().is_root() {
            world.write(log(world), "");
            private(0o600);
            chown(log(world), Some(12_345), None).unwrap();
            refused("somebody else's");
        }
        run(world, &[], "touch made").output().ok();
    }

    fn a_flag_neither_turns_off_nor_moves_a_log_that_is_demanded(world: &Fixture) {
        let demanded = format!(
            "shell: {{default: {{approval: none}}}}\naudit: {{log: {}}}\n",
            log(world).display()
        );
        let config = config(world, &demanded);
        let other = world.base().join("other.jsonl");
        let other = other.to_str().unwrap();
        let with = |flags: &[&str]| world.stockade(&[&["run"], flags, &["-c", "true"]].concat()).output();
        for audit in ["off", "default", other] {
            let refused = with(&["--config", &config, "--audit", audit]);
            assert_eq!(refused.code(), 125, "{audit}");
            assert!(refused.err().contains("agent.yaml"), "{}", refused.err());
        }
        with(&["--config", &config]).ok();
        let ceiling = "extends: [workspace-write]\naudit: {log: required}\n".replace("workspace-write", "system");
        let ceiling = world.write(world.base().join("ceiling.yaml"), ceiling);
        let ceiling = ceiling.to_str().unwrap();
        let refused = with(&["--ceiling", ceiling, "--audit", "off", "--quiet"]);
        assert_eq!(refused.code(), 125);
        assert!(refused.err().contains("ceiling.yaml"), "{}", refused.err());
        is_whole(world);
    }

    fn several_sessions_at_once_make_one_chain(world: &Fixture) {
        run(world, &[], "true").output().ok();
        let running: Vec<_> = (0..12)
            .map(|number| run(world, &["--quiet"], &format!("echo {number}")).spawn())
            .collect();
        for run in running {
            run.wait().ok();
        }
        is_whole(world);
        let all = records(world, &[]);
        let ended = all.iter().filter(|record| record["event"] == "session_end").count();
        assert_eq!(ended, 13);
    }

    /// `stockade run`, whose files can grow no further than this.
    fn run_with_full_disk(world: &Fixture, blocks: u64, flags: &[&str]) -> Run {
        let log = log(world);
        let args = [
            &["run", "--quiet", "--audit", log.to_str().unwrap()],
            flags,
            &["-c", "touch made"],
        ]
        .concat();
        let binary = world.binary().to_str().unwrap().to_owned();
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let args = world.arguments(&args);
        let words = [&["-c", &script, &binary][..], &args].concat();
        world.bare("/bin/bash").args(words).output()
    }

    fn a_log_that_cannot_be_written_denies_and_runs_nothing(world: &Fixture) {
        let (config, program) = (config(world, ""), approver(world, true));
        let flags = ["--config", &config, "--approver-program", &program];
        let made = world.workspace().join("made");
        // Larger than anything else that is written, so that the log alone meets the end of the disk.
        let words = "x".repeat(4000);
        for _ in 0..4 {
            let log = log(world);
            let args = [
                &["run", "--audit", log.to_str().unwrap(), "--", "true"][..],
                &[words.as_str(); 15],
            ]
            .concat();
            world.stockade(&args).output().ok();
        }
        let (mut refused, mut denied, mut ran) = (0, 0, 0);
        for round in 0..8 {
            // Records of other lengths, so that the end of the disk falls on another one.
            run(world, &flags, &format!("true {}", "x".repeat(round * 130)))
                .output()
                .ok();
            let head = world.base().join("state/audit.head");
            let (before, head_before) = (fs::read(log(world)).unwrap(), fs::read(&head).unwrap());
            let size = before.len() as u64;
            let started = |records: &[Value]| records.iter().filter(|record| record["event"] == "start").count();
            let starts = started(&records(world, &[]));
            for blocks in size / 1024 + 1..size / 1024 + 20 {
                let done = run_with_full_disk(world, blocks, &flags);
                match done.code() {
                    0 => ran += 1,
                    126 => {
                        assert!(done.err().contains("could not be put on record"), "{}", done.err());
                        denied += 1;
                    }
                    125 => refused += 1,
                    code => panic!("{code}: {}", done.err()),
                }
                let verified = audit(world, &["verify"]);
                assert_eq!(verified.code(), 0, "{}", verified.out());
                if made.exists() {
                    // Then it is on record that it was to start.
                    assert_eq!(started(&records(world, &[])), starts + 1, "{}", done.err());
                    assert_ne!(done.code(), 126, "what was denied ran");
                    fs::remove_file(&made).unwrap();
                }
                fs::write(log(world), &before).unwrap();
                fs::write(&head, &head_before).unwrap();
            }
        }
        assert!(
            refused > 0 && denied > 0,
            "refused {refused}, denied {denied}, ran {ran}"
        );
    }

    fn no_kill_makes_a_log_that_is_wrongly_accepted_or_rejected(world: &Fixture) {
        let rounds = 200;
        let (config, program) = (config(world, ""), approver(world, true));
        let flags = ["--quiet", "--config", &config, "--approver-program", &program];
        let begun = Instant::now();
        run(world, &flags, "true").output().ok();
        let whole = begun.elapsed();
        let mut before = is_whole(world)["records"].as_u64().unwrap();
        for round in 0..rounds {
            let running = run(world, &flags, "true").spawn();
            std::thread::sleep(whole.mul_f64(f64::from(round) / f64::from(rounds)));
            running.signal(Signal::SIGKILL);
            running.wait();
            let verified = audit(world, &["verify", "--json"]);
            assert_eq!(verified.code(), 0, "round {round}: {}", verified.out());
            let report: Value = serde_json::from_str(&verified.out()).unwrap();
            let records = report["records"].as_u64().unwrap();
            assert!(records >= before, "round {round}: records are lost");
            before = records;
        }
        // What is cut off of it now is found.
        run(world, &flags, "true").output().ok();
        let bytes = fs::read(log(world)).unwrap();
        fs::write(log(world), &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(audit(world, &["verify"]).code(), 1);
        fs::write(log(world), &bytes).unwrap();
        is_whole(world);
    }

    fn a_change_of_a_protected_name_is_on_record(world: &Fixture) {
        let config = config(world, "shell: {default: {approval: none}}\n");
        run(world, &["--config", &config], "echo evil > .envrc").output();
        let all = records(world, &[]);
        let violation = all.iter().find(|record| record["event"] == "violation").unwrap();
        assert_eq!(
            violation["file.path"],
            world.workspace().join(".envrc").to_str().unwrap()
        );
        assert_eq!(violation["then"], "stayed_undone");
        is_whole(world);
    }

    fn what_was_denied_to_a_command_is_on_record_and_in_the_report(world: &Fixture) {
        let hostile = "\"><img src=x onerror=alert(1)>\u{202e}\u{1b}[2J\n'\"";
        let outside = world.outside().join(hostile);
        let line = |path: &std::path::Path| format!("echo x > '{}'", path.to_str().unwrap().replace('\'', "'\\''"));
        run(world, &["--explain"], &line(&outside)).output();
        run(world, &["--explain"], "echo x > here").output().ok();
        run(world, &[], &line(&outside)).output();
        assert!(!outside.exists() && world.workspace().join("here").exists());
        is_whole(world);
        let all = records(world, &[]);
        let denials: Vec<&Value> = all.iter().filter(|record| record["event"] == "denials").collect();
        assert_eq!(denials.len(), 2, "one for each that was explained");
        let blocked = &denials[0]["blocked"][0];
        assert_eq!(blocked["wanted"], "make", "{blocked}");
        assert!(
            blocked["what"].as_str().unwrap().contains("onerror=alert(1)"),
            "{blocked}"
        );
        assert!(
            !blocked["by"].as_str().unwrap().is_empty() && !blocked["change"][0].as_str().unwrap().is_empty(),
            "{blocked}"
        );
        assert_eq!(denials[1]["blocked"], json!([]));
        let end = all.iter().position(|record| record["event"] == "denials").unwrap();
        assert_eq!(events(&all)[end - 1..=end + 1], ["end", "denials", "outcome"]);
        let shown = audit(world, &["show"]).ok();
        assert!(
            shown.contains(" make ") && !shown.contains(['\u{1b}', '\u{202e}']),
            "{shown}"
        );
        assert_eq!(audit(world, &["show", "--decision", "denied"]).ok(), "");
        let page = audit(world, &["report", "--html"]).ok();
        assert!(
            page.contains("What was denied to its command") && page.contains("onerror=alert(1)"),
            "{page}"
        );
        assert!(!page.contains("<img") && !page.contains(['\u{1b}', '\u{202e}']));
        let report: Value = serde_json::from_str(&audit(world, &["report", "--json"]).ok()).unwrap();
        assert_eq!(report["counts"]["denials"], 1, "{report}");
    }

    fn a_log_that_a_power_cut_left_zeros_in_is_mended_by_the_next_start(world: &Fixture) {
        run(world, &[], "true").output().ok();
        let before = is_whole(world)["records"].as_u64().unwrap();
        let bytes = fs::read(log(world)).unwrap();
        let zeros = [&bytes[..], &[0; 4096], b"\n"].concat();
        fs::write(log(world), &zeros).unwrap();
        let verified = audit(world, &["verify"]);
        assert!(
            verified.code() == 0 && verified.out().contains("4097 bytes"),
            "{}",
            verified.out()
        );
        assert!(audit(world, &["show"]).ok().contains("session_end"));
        run(world, &[], "true").output().ok();
        assert!(is_whole(world)["records"].as_u64().unwrap() > before + 1);
        let shown = audit(world, &["show"]).ok();
        assert!(shown.contains("4097 bytes that a crash left"), "{shown}");
    }

    fn calls_of_a_client_are_on_record_with_their_requests(world: &Fixture) {
        let more = format!(
            "    asked: {{root: {}, mode: rw}}\naudit: {{log: {}}}\n",
            world.outside().display(),
            log(world).display()
        );
        let config = config(world, &more);
        let mut agent = Agent::start(world.stockade(&["mcp", "--config", &config]), Era::Session, forms());
        let write = json!({"path": "asked:new", "content": "x"});
        let (_, done) = agent.call_answering("write_file", &write, &filled("once"));
        assert_eq!(done["isError"], false, "{done}");
        // Several at once: each is a call of its own, in one session.
        let begun: Vec<u64> = (0..6)
            .map(|_| agent.begin_call("read_file", &json!({"path": "asked:new"})))
            .collect();
        for id in begun {
            agent.answer(id);
        }
        agent.end();
        is_whole(world);
        let all = records(world, &[]);
        let calls: Vec<&Value> = all.iter().filter(|record| record["event"] == "call").collect();
        assert_eq!(calls.len(), 7);
        let distinct = |name: &str| {
            let mut found: Vec<String> = calls.iter().map(|call| call[name].to_string()).collect();
            found.sort();
            found.dedup();
            found.len()
        };
        assert_eq!(
            (
                distinct("session"),
                distinct("gen_ai.tool.call.id"),
                distinct("jsonrpc.request.id")
            ),
            (1, 7, 7)
        );
        assert!(calls.iter().all(|call| call["mcp.method.name"] == "tools/call"));
        let decision = all.iter().find(|record| record["event"] == "decision").unwrap();
        assert_eq!(
            (&decision["decision"], &decision["channel"]),
            (&"approved".into(), &"elicitation".into())
        );
        assert_eq!(all.iter().filter(|record| record["event"] == "outcome").count(), 7);
        assert_eq!(all.iter().filter(|record| record["event"] == "session_end").count(), 1);
        assert_eq!(all.last().unwrap()["event"], "session_end");
    }

    const SERVER: &str = "import json, sys
GREET = {'name': 'greet', 'description': 'greets', 'inputSchema': {'type': 'object'}}
ABOUT = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
RESULTS = {
    'initialize': ABOUT,
    'tools/list': {'tools': [GREET]},
    'tools/call': {'content': [{'type': 'text', 'text': 'hello'}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message:
        continue
    answer = {'jsonrpc': '2.0', 'id': message['id']}
    if message['method'] in RESULTS:
        answer['result'] = RESULTS[message['method']]
    else:
        answer['error'] = {'code': -32601, 'message': 'Method not found'}
    print(json.dumps(answer), flush=True)
";

    /// An agent with somebody's server behind Stockade, and a log.
    fn with_server(world: &Fixture) -> Agent {
        let config = config(world, &format!("audit: {{log: {}}}\n", log(world).display()));
        world.write("server.py", SERVER);
        let args = [
            "mcp",
            "--config",
            &config,
            "--mode",
            "approve_all",
            "--upstream",
            "--",
            "python3",
            "server.py",
        ];
        Agent::start(world.stockade(&args), Era::Session, json!({}))
    }

    fn the_end_of_a_third_partys_server_that_is_not_on_record_is_told(world: &Fixture) {
        let told = "its end is not in the audit log";
        let mut agent = with_server(world);
        agent.call("greet", &json!({}));
        let (_, said) = agent.end();
        assert!(!said.contains(told), "{said}");
        is_whole(world);

        let mut agent = with_server(world);
        agent.call("greet", &json!({}));
        let state = log(world).parent().unwrap().to_owned();
        fs::rename(&state, state.with_extension("moved")).unwrap();
        let (_, said) = agent.end();
        assert!(said.contains(told), "{said}");
    }

    fn a_third_partys_server_and_the_calls_of_its_tools_are_on_record(world: &Fixture) {
        let mut agent = with_server(world);
        let done = agent.call("greet", &json!({"whom": "you"}));
        assert_eq!(done["content"][0]["text"], "hello", "{done}");
        agent.end();
        is_whole(world);
        let all = records(world, &[]);
        assert_eq!(
            events(&all),
            [
                "header",
                "session_start",
                "profile",
                "start",
                "call",
                "assessment",
                "decision",
                "outcome",
                "end",
                "session_end"
            ]
        );
        let of = |event: &str| all.iter().find(|record| record["event"] == event).unwrap();
        assert_eq!(of("start")["process.command_line"], "python3 server.py");
        assert_eq!(
            (&of("call")["gen_ai.tool.name"], &of("decision")["by"]),
            (&"greet".into(), &"mode".into())
        );
        assert_ne!(of("call")["gen_ai.tool.call.id"], of("start")["gen_ai.tool.call.id"]);
    }
}
