//! Names that a pattern denies where commands write: covered as they are found before each command.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use crate::common::agent::{Agent, Era};
    use crate::common::{Fixture, Run, SECRET, as_root_and_as_user, eventually, in_all_namespaces};

    in_all_namespaces! {
        what_a_pattern_matches_is_covered_at_any_depth_and_what_lies_beside_it_is_written [];
        a_covered_name_is_not_moved_linked_removed_or_changed_in_its_mode [];
        a_directory_that_holds_a_covered_name_is_moved_and_takes_its_cover_along [];
        nothing_covered_is_moved_out_of_the_root_that_denies_it [];
        a_directory_of_a_denied_name_is_covered_whole [];
        what_a_command_makes_is_named_and_covered_from_the_next_one_on [];
        in_a_session_a_new_name_is_covered_from_the_next_command_on [];
        what_a_person_saves_while_a_command_runs_is_kept_and_covered_for_the_next [];
        file_tools_refuse_a_new_name_at_once [];
        a_link_to_a_denied_name_opens_nothing [];
        a_symlink_of_a_denied_name_is_named_and_refused_unless_it_leads_to_what_is_denied [];
        what_is_moved_to_and_fro_while_a_command_starts_is_not_read ["python3"];
        a_denied_file_with_a_second_name_refuses_the_start [];
        more_matches_than_mounts_can_cover_refuse_the_start [];
        a_config_or_a_ceiling_that_admits_no_new_names_refuses_the_start [];
        git_works_in_a_root_with_denied_names ["git"];
        what_is_left_open_is_said [];
    }

    as_root_and_as_user! {
        in_landlock_the_start_is_refused_with_what_to_do [];
    }

    fn config(world: &Fixture, more: &str) -> String {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n{more}  paths:\n    w: {{root: {}, mode: rw, execute: \
             true, approval: {{write: none}}, deny: [.env, '*.pem']}}\nshell: {{default: {{approval: none}}}}\n",
            world.workspace().display()
        );
        let file = world.write(world.base().join("agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn run_with(world: &Fixture, more: &str, line: &str) -> Run {
        let config = config(world, more);
        world.stockade(&["run", "--config", &config, "-c", line]).output()
    }

    fn run(world: &Fixture, line: &str) -> Run {
        run_with(world, "", line)
    }

    fn agent(world: &Fixture) -> Agent {
        let config = config(world, "");
        Agent::start(world.stockade(&["mcp", "--config", &config]), Era::Session, json!({}))
    }

    fn shell(agent: &mut Agent, line: &str) -> Value {
        agent.call("shell", &json!({"command": line}))
    }

    fn text(result: &Value) -> &str {
        result["content"][0]["text"].as_str().unwrap()
    }

    fn secrets(world: &Fixture) -> Vec<PathBuf> {
        let paths = [".env", "a/.env", "a/b/c/key.pem"];
        paths.map(|path| world.write(path, SECRET)).into()
    }

    fn what_a_pattern_matches_is_covered_at_any_depth_and_what_lies_beside_it_is_written(world: &Fixture) {
        secrets(world);
        world.write("a/b/c/key.pub", "public\n");
        for path in [".env", "a/.env", "a/b/c/key.pem"] {
            run(world, &format!("cat {path}")).assert_denied();
            run(world, &format!("echo x > {path}")).assert_denied();
        }
        let beside = "cat a/b/c/key.pub; echo x > a/b/c/new; echo y > a/.env2; cat a/b/c/new; ls -A a";
        assert_eq!(run(world, beside).ok(), "public\nx\n.env\n.env2\nb\n");
        for secret in secrets(world) {
            assert_eq!(fs::read_to_string(secret).unwrap(), SECRET);
        }
    }

    fn a_symlink_of_a_denied_name_is_named_and_refused_unless_it_leads_to_what_is_denied(world: &Fixture) {
        world.write("a/.env", SECRET);
        world.write("plain", "plain\n");
        for (path, target) in [(".env", "nothing"), ("b/.env", "../plain")] {
            let planted = run(world, &format!("mkdir -p b && ln -s {target} {path}")).exits(0);
            assert!(planted.err().contains("new denied names"), "{}", planted.err());
            let refused = run(world, "cat plain").exits(125);
            let told = refused.err();
            assert!(told.contains(path) && told.contains("is a symlink"), "{told}");
            fs::remove_file(world.workspace().join(path)).unwrap();
        }
        symlink("a/.env", world.workspace().join(".env")).unwrap();
        assert_eq!(run(world, "cat plain").ok(), "plain\n");
        run(world, "cat .env").assert_denied();
    }

    /// A listing of one directory after the other can miss what is moved meanwhile. Commands start with it covered, or not at all.
    fn what_is_moved_to_and_fro_while_a_command_starts_is_not_read(world: &Fixture) {
        world.write("x/d/.env", SECRET);
        world.write("y/plain", "");
        for many in 0..300 {
            world.write(format!("m/f{many}"), "");
        }
        let mover = "import os, time\nwhile not os.path.exists('stop'):\n  os.rename('x/d', 'y/d')\n  os.rename('y/d', 'x/d')\n";
        world.write("mover.py", mover);
        let config = config(world, "");
        let moving = world
            .stockade(&["run", "--config", &config, "--", "python3", "mover.py"])
            .spawn();
        for _ in 0..15 {
            let ran = run(world, "for p in x y; do cat $p/d/.env; mv $p/d/.env $p/d/plain; done");
            assert!(!ran.out().contains(SECRET), "{}", ran.err());
            assert!(!world.workspace().join("x/d/plain").exists() && !world.workspace().join("y/d/plain").exists());
        }
        world.write("stop", "");
        moving.wait().exits(0);
        run(world, "cat x/d/.env").assert_denied();
        assert_eq!(run(world, "cat x/d/.en? || echo beside").out(), "beside\n");
    }

    fn a_covered_name_is_not_moved_linked_removed_or_changed_in_its_mode(world: &Fixture) {
        let secrets = secrets(world);
        world.write("plain", "plain\n");
        for (change, its) in [
            ("mv F other; cat other", "mv plain other; cat other; mv other plain"),
            ("ln F other; cat other", "ln plain other; cat other; rm other"),
            ("rm -f F", "cp plain p && rm -f p"),
            ("chmod 666 F", "chmod 644 plain"),
            ("mv plain F", "cp plain p && mv p q && rm q"),
        ] {
            let denied = run(world, &change.replace('F', "a/.env"));
            assert_ne!(denied.code(), 0, "{change}: {}", denied.err());
            assert!(!denied.out().contains(SECRET), "{change}: {}", denied.out());
            run(world, its).exits(0);
        }
        for secret in secrets {
            assert_eq!(fs::read_to_string(secret).unwrap(), SECRET);
        }
    }

    fn a_directory_that_holds_a_covered_name_is_moved_and_takes_its_cover_along(world: &Fixture) {
        secrets(world);
        let run = run(world, "mv a moved && cat moved/.env");
        assert!(run.err().contains("moved/.env"), "{}", run.err());
        run.assert_denied();
        let moved = world.workspace().join("moved/.env");
        assert_eq!(fs::read_to_string(moved).unwrap(), SECRET);
        // It is no new name, and the next command finds it covered where it is now.
        let again = self::run(world, "echo x > made; cat moved/.env");
        assert!(!again.err().contains("new denied names"), "{}", again.err());
        again.assert_denied();
    }

    fn nothing_covered_is_moved_out_of_the_root_that_denies_it(world: &Fixture) {
        world.write("sub/in/.env", SECRET);
        world.write("sub/plain/file", "plain\n");
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {0}, mode: rw, approval: {{write: \
             none}}}}\n    s: {{root: {0}/sub, mode: rw, approval: {{write: none}}, deny: [.env]}}\nshell: {{default: \
             {{approval: none}}}}\n",
            world.workspace().display()
        );
        let file = world.write(world.base().join("nested.yaml"), text);
        let run = |line: &str| {
            let args = ["run", "--config", file.to_str().unwrap(), "-c", line];
            world.stockade(&args).output()
        };
        let moved = run("mv sub/in out; cat out/.env");
        assert!(!moved.out().contains(SECRET) && moved.code() != 0, "{}", moved.err());
        assert!(!run("cat out/.env").out().contains(SECRET));
        assert_eq!(
            fs::read_to_string(world.workspace().join("sub/in/.env")).unwrap(),
            SECRET
        );
        // What is not denied leaves, by copying.
        assert_eq!(run("mv sub/plain out2 && cat out2/file").ok(), "plain\n");
        // Neither does the root move with what is in it.
        run("mv sub elsewhere; cat elsewhere/in/.env").assert_denied();
    }

    fn a_directory_of_a_denied_name_is_covered_whole(world: &Fixture) {
        world.write("x/.env/inner/key", SECRET);
        world.write("x/other/inner/key", "open\n");
        run(world, "cat x/.env/inner/key").assert_denied();
        run(world, "ls x/.env").assert_denied();
        run(world, "echo x > x/.env/new").assert_denied();
        assert_eq!(run(world, "cat x/other/inner/key; ls x/other").ok(), "open\ninner\n");
    }

    fn what_a_command_makes_is_named_and_covered_from_the_next_one_on(world: &Fixture) {
        secrets(world);
        let made = run(
            world,
            "mkdir n; echo mine > n/.env; cat n/.env; echo x > n/key; mv n/key n/b.pem",
        );
        assert_eq!(made.out(), "mine\n");
        let line = made.err();
        let line = line.lines().find(|line| line.contains("new denied names")).unwrap();
        assert!(line.contains("n/.env") && line.contains("n/b.pem"), "{line}");
        assert!(!line.contains("a/.env"), "{line}");
        run(world, "cat n/.env").assert_denied();
        run(world, "cat n/b.pem").assert_denied();
        assert_eq!(fs::read_to_string(world.workspace().join("n/.env")).unwrap(), "mine\n");
        let config = config(world, "");
        let json = |line: &str| -> Value {
            let args = ["run", "--json", "--config", &config, "-c", line];
            serde_json::from_str(&world.stockade(&args).output().exits(0).out()).unwrap()
        };
        let named = json("echo y > late.pem");
        let path = world.workspace().join("late.pem");
        assert_eq!(named["new_denied_names"], json!([path.to_str().unwrap()]), "{named}");
        let nothing = json("echo y > late");
        assert_eq!(nothing.get("new_denied_names"), None, "{nothing}");
    }

    fn in_a_session_a_new_name_is_covered_from_the_next_command_on(world: &Fixture) {
        let mut agent = agent(world);
        let made = shell(&mut agent, "mkdir n; echo mine > n/.env; cat n/.env");
        assert_eq!(made["isError"], false, "{made}");
        assert!(text(&made).contains("new denied names"), "{made}");
        assert_eq!(
            made["structuredContent"]["new_denied_names"].as_array().unwrap().len(),
            1,
            "{made}"
        );
        let denied = shell(&mut agent, "cat n/.env");
        assert!(denied["isError"] == true && !text(&denied).contains("mine"), "{denied}");
        // The same of what a person makes between two commands.
        world.write("theirs/.env", SECRET);
        let denied = shell(&mut agent, "cat theirs/.env");
        assert!(denied["isError"] == true && !text(&denied).contains(SECRET), "{denied}");
        assert_eq!(text(&shell(&mut agent, "echo on")), "on\n");
    }

    fn what_a_person_saves_while_a_command_runs_is_kept_and_covered_for_the_next(world: &Fixture) {
        let secret = world.write(".env", SECRET);
        let mut agent = agent(world);
        let line = "echo x > ready; until [ -e go ]; do sleep 0.02; done; echo done";
        let call = agent.begin_call("shell", &json!({"command": line}));
        let ready = world.workspace().join("ready");
        eventually("the command runs", || ready.exists());
        // As editors save: a new file in the place of the old one.
        let saved = world.write("saved", format!("{SECRET} again"));
        fs::rename(saved, &secret).unwrap();
        world.write("go", "");
        let ran = agent.answer(call)["result"].clone();
        assert_eq!(ran["isError"], false, "{ran}");
        assert!(text(&ran).starts_with("done\n"), "{ran}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), format!("{SECRET} again"));
        let denied = shell(&mut agent, "cat .env");
        assert!(denied["isError"] == true && !text(&denied).contains(SECRET), "{denied}");
        assert_eq!(text(&shell(&mut agent, "echo on")), "on\n");
        // And while nothing runs.
        let saved = world.write("saved", SECRET);
        fs::rename(saved, &secret).unwrap();
        let denied = shell(&mut agent, "cat .env");
        assert!(denied["isError"] == true && !text(&denied).contains(SECRET), "{denied}");
    }

    fn file_tools_refuse_a_new_name_at_once(world: &Fixture) {
        let mut agent = agent(world);
        let made = shell(&mut agent, "mkdir n; echo needle > n/.env; echo needle > n/plain");
        assert_eq!(made["isError"], false, "{made}");
        let read = agent.call("read_file", &json!({"path": "n/.env"}));
        assert!(read["isError"] == true && text(&read).contains("a deny at"), "{read}");
        let written = agent.call("write_file", &json!({"path": "new/.env", "content": "x"}));
        assert_eq!(written["isError"], true, "{written}");
        let found = agent.call(
            "search_files",
            &json!({"path": ".", "pattern": "needle", "hidden": true}),
        );
        assert!(
            text(&found).contains("n/plain") && !text(&found).contains("n/.env:"),
            "{found}"
        );
        let plain = agent.call("read_file", &json!({"path": "n/plain"}));
        assert!(text(&plain).contains("needle"), "{plain}");
    }

    fn a_link_to_a_denied_name_opens_nothing(world: &Fixture) {
        world.write("real", "open\n");
        world.write("keys/id.pem", SECRET);
        symlink("keys/id.pem", world.workspace().join("plain")).unwrap();
        run(world, "cat plain").assert_denied();
        assert_eq!(run(world, "cat real").ok(), "open\n");
    }

    fn a_denied_file_with_a_second_name_refuses_the_start(world: &Fixture) {
        let secret = world.write("a/.env", SECRET);
        let twin = world.workspace().join("twin");
        fs::hard_link(&secret, &twin).unwrap();
        let refused = run(world, "cat twin").exits(125);
        assert!(refused.err().contains("more than one hard link"), "{}", refused.err());
        fs::remove_file(twin).unwrap();
        run(world, "true").exits(0);
    }

    fn more_matches_than_mounts_can_cover_refuse_the_start(world: &Fixture) {
        for number in 0..10_000 {
            world.write(format!("many/{}/{number}.pem", number % 50), SECRET);
        }
        let refused = run(world, "true").exits(125);
        assert!(refused.err().contains("names that match less"), "{}", refused.err());
        fs::remove_dir_all(world.workspace().join("many")).unwrap();
        run(world, "true").exits(0);
    }

    fn a_config_or_a_ceiling_that_admits_no_new_names_refuses_the_start(world: &Fixture) {
        for more in ["  deny_fallback: refuse\n", "  protect: none\n  residuals: refuse\n"] {
            let refused = run_with(world, more, "true").exits(125);
            assert!(refused.err().contains(".env"), "{more}: {}", refused.err());
        }
        let config = config(world, "");
        let with = |bound: &str| {
            let text = format!(
                "extends: [system]\nsandbox:\n  protect_fallback: undo\n{bound}  paths: {{w: {{root: {}, mode: rw, execute: \
                 true}}}}\n",
                world.workspace().display()
            );
            let ceiling = world.write(world.base().join("ceiling.yaml"), text);
            let args = [
                "run",
                "--config",
                &config,
                "--ceiling",
                ceiling.to_str().unwrap(),
                "-c",
                "true",
            ];
            world.stockade(&args).output()
        };
        with("  deny_fallback: refuse\n").exits(125);
        with("").exits(0);
        run(world, "true").exits(0);
    }

    fn git_works_in_a_root_with_denied_names(world: &Fixture) {
        secrets(world);
        let line = "git init -q . && git config user.name n && git config user.email e && echo x > f && git add f && \
                    git commit -q -m one && git config color.ui auto && git status --short f";
        world.bare("/bin/sh").args(["-c", "git init -q ."]).output().ok();
        let run = run(world, line);
        assert!(!run.err().contains("protected"), "{}", run.err());
        run.exits(0);
        let config = fs::read_to_string(world.workspace().join(".git/config")).unwrap();
        assert!(config.contains("ui = auto"), "{config}");
    }

    fn what_is_left_open_is_said(world: &Fixture) {
        let config = config(world, "");
        let check = world.stockade(&["profile", "check", "--config", &config]).output();
        let rows = check.out();
        let row = rows
            .lines()
            .find(|line| line.contains("deny all .env") && line.contains("residual"));
        assert!(row.is_some_and(|row| row.contains("from the next one on")), "{rows}");
        let explain = world.stockade(&["profile", "explain", "--config", &config, "new/.env", "write"]);
        assert!(explain.output().out().contains("in namespaces: residual"));
        let run = world
            .stockade(&["run", "--json", "--config", &config, "-c", "true"])
            .output();
        assert!(run.out().contains("new names that a deny matches"), "{}", run.out());
    }

    fn in_landlock_the_start_is_refused_with_what_to_do(world: &Fixture) {
        secrets(world);
        let refused = run(world, "true").exits(125);
        for said in [".env", "deny_fallback: decompose", "`namespaces` regime"] {
            assert!(refused.err().contains(said), "{said}: {}", refused.err());
        }
        run_with(world, "  deny_fallback: decompose\n", "cat .env").assert_denied();
        world.write("plain", "plain\n");
        let plain = run_with(world, "  deny_fallback: decompose\n", "cat plain");
        assert_eq!(plain.ok(), "plain\n");
    }
}
