//! Ways around what the file tools and the questions promise, each tried for real beside what is permitted.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};

    use crate::common::{Fixture, in_both_regimes};

    in_both_regimes! {
        a_change_that_fails_tells_nothing_of_a_root_that_asks_for_reads [];
        a_directory_takes_no_files_into_or_out_of_a_root_of_other_suffixes [];
        a_patch_removes_only_files_whose_content_it_has [];
        a_yes_for_the_session_covers_no_other_content_of_a_file_however_it_is_named [];
        a_yes_for_the_session_to_take_something_away_covers_nothing_else_of_that_name [];
        once_per_session_is_once_per_tool_and_path_whatever_is_there [];
        a_file_that_appears_while_a_command_is_asked_about_is_asked_about_too [];
    }

    const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    work: {root: ./work, mode: rw, write_approval: false}
    inner: {root: ./work/inner, mode: rw, write_approval: false}
    notes: {root: ./notes, mode: rw, write_approval: false, suffixes: [.md]}
    hidden: {root: ./hidden, mode: rw, approval: {read: required, write: none}}
shell: {default: {allowed: true, approval: none}}
";

    /// A workspace whose roots are there, and a config that names them.
    fn prepare(world: &Fixture) {
        for folder in ["work/inner", "notes", "hidden"] {
            directory(world, folder);
        }
        world.write("stockade-test.yaml", CONFIG);
    }

    /// An empty directory of the actor's own.
    fn directory(world: &Fixture, path: &str) {
        fs::remove_file(world.write(format!("{path}/.keep"), "")).unwrap();
    }

    /// The answers to these calls, made in one session.
    #[track_caller]
    fn answers(world: &Fixture, flags: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
        let lines: Vec<String> = calls
            .iter()
            .map(|(tool, args)| json!({"call": {"tool": tool, "args": args}}).to_string())
            .collect();
        let named = ["call", "-q", "--config", "stockade-test.yaml", "--stream"];
        let run = world
            .stockade(&[&named[..], flags].concat())
            .stdin(lines.join("\n").into_bytes())
            .output();
        let answers: Vec<Value> = run
            .out()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), calls.len(), "{}\n{}", run.out(), run.err());
        answers
    }

    #[track_caller]
    fn answer(world: &Fixture, flags: &[&str], tool: &str, args: Value) -> Value {
        answers(world, flags, &[(tool, args)]).remove(0)
    }

    fn text(world: &Fixture, path: &str) -> String {
        fs::read_to_string(world.workspace().join(path)).unwrap()
    }

    fn a_change_that_fails_tells_nothing_of_a_root_that_asks_for_reads(world: &Fixture) {
        prepare(world);
        world.write("hidden/secret", "password = hunter2\n");
        let edit = |old: &str| json!({"path": "hidden:secret", "edits": [{"old": old, "new": "x"}]});
        let calls = [
            ("edit_file", edit("password = hunter3")),
            ("edit_file", edit("s")),
            (
                "patch_file",
                json!({"patch": "--- a/hidden/secret\n+++ b/hidden/secret\n@@ -1 +1 @@\n-password = hunter3\n+x\n"}),
            ),
            (
                "edit_file",
                json!({"path": "hidden:none", "edits": [{"old": "a", "new": "b"}]}),
            ),
            ("delete_file", json!({"path": "hidden:none"})),
            ("read_file", json!({"path": "hidden:secret/below"})),
            ("write_file", json!({"path": "hidden:secret/below", "content": ""})),
            ("edit_file", edit("password = hunter2")),
        ];
        // Whether it could be done or not, the agent is told the same.
        for (answer, call) in answers(world, &["--mode", "strict"], &calls).iter().zip(&calls) {
            assert_eq!(answer["status"], "denied", "{call:?}: {answer}");
            let reason = answer["reason"].as_str().unwrap();
            assert!(reason.contains("strict mode denied"), "{call:?}: {answer}");
            assert!(!reason.contains("hunter2"), "{call:?}: {answer}");
        }
        assert_eq!(text(world, "hidden/secret"), "password = hunter2\n");
        let told = answers(world, &["--mode", "approve_all"], &calls);
        assert!(told[0]["reason"].as_str().unwrap().contains("hunter2"), "{}", told[0]);
        assert_eq!(told[7]["status"], "done", "{}", told[7]);
        assert_eq!(text(world, "hidden/secret"), "x\n");
    }

    fn a_directory_takes_no_files_into_or_out_of_a_root_of_other_suffixes(world: &Fixture) {
        prepare(world);
        world.write("work/in.md/x.sh", "a script");
        world.write("notes/out.md/key.pem", "a key");
        world.write("notes/own.md/key.pem", "a key");
        for (from, to) in [("work:in.md", "notes:in.md"), ("notes:out.md", "work:out.md")] {
            let answer = answer(world, &[], "move_file", json!({"from": from, "to": to}));
            assert_eq!(answer["status"], "blocked", "{answer}");
            assert!(answer["reason"].as_str().unwrap().contains("[.md]"), "{answer}");
        }
        assert_eq!(text(world, "work/in.md/x.sh"), "a script");
        assert_eq!(text(world, "notes/out.md/key.pem"), "a key");
        let own = answer(
            world,
            &[],
            "move_file",
            json!({"from": "notes:own.md", "to": "notes:new.md"}),
        );
        assert_eq!(own["status"], "done", "{own}");
        assert_eq!(text(world, "notes/new.md/key.pem"), "a key");
    }

    fn a_patch_removes_only_files_whose_content_it_has(world: &Fixture) {
        prepare(world);
        world.write("work/kept", "one\ntwo\n");
        world.write("work/gone", "one\ntwo\n");
        world.write("work/empty", "");
        directory(world, "work/folder");
        let removal = |path: &str, hunk: &str| json!({"patch": format!("--- a/work/{path}\n+++ /dev/null\n{hunk}")});
        let bare = |path: &str| json!({"patch": format!("diff --git a/work/{path} b/work/{path}\ndeleted file mode 100644\nindex e69de29..0000000\n")});
        for args in [
            removal("kept", "@@ -1,2 +0,0 @@\n-other\n-lines\n"),
            removal("kept", "@@ -1 +0,0 @@\n-one\n"),
            removal("inner", "@@ -1 +0,0 @@\n-one\n"),
            removal("folder", "@@ -1 +0,0 @@\n-one\n"),
            bare("kept"),
            bare("inner"),
        ] {
            let answer = answer(world, &[], "patch_file", args.clone());
            assert_eq!(answer["status"], "failed", "{args}: {answer}");
        }
        assert_eq!(text(world, "work/kept"), "one\ntwo\n");
        for folder in ["work/inner", "work/folder"] {
            assert!(world.workspace().join(folder).is_dir(), "{folder}");
        }
        for (path, args) in [
            ("gone", removal("gone", "@@ -1,2 +0,0 @@\n-one\n-two\n")),
            ("empty", bare("empty")),
        ] {
            let answer = answer(world, &[], "patch_file", args);
            assert_eq!(answer["status"], "done", "{answer}");
            assert!(!world.workspace().join("work").join(path).exists(), "{path}");
        }
    }

    /// An approver outside of every root that says yes and notes each question; `more` is done before it answers.
    fn approver(world: &Fixture, more: &str) -> String {
        approver_saying(world, more, r#"{"approved": true}"#)
    }

    fn approver_saying(world: &Fixture, more: &str, decision: &str) -> String {
        let asked = world.write(world.base().join("asked"), "");
        let text = format!(
            "#!/bin/sh\ncat >/dev/null; echo x >> {}\n{more}\necho '{decision}'\n",
            asked.display()
        );
        let file = world.program(world.base().join("approver"), text);
        file.to_str().unwrap().to_owned()
    }

    fn questions(world: &Fixture) -> usize {
        fs::read_to_string(world.base().join("asked")).unwrap().lines().count()
    }

    const ASKS: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths: {w: {root: ., mode: rw, execute: true, write_approval: false}}
shell: {default: {allowed: true, approval: once_per_session}}
";

    fn a_yes_for_the_session_covers_no_other_content_of_a_file_however_it_is_named(world: &Fixture) {
        let run = |words: &[&str]| json!({"argv": words});
        let line = |text: &str| json!({"command": text});
        for (command, path) in [
            (line("sh d/x.sh"), "d/x.sh"),
            (line("sh d/a=x.sh"), "d/a=x.sh"),
            (line("cd d && sh x.sh"), "d/x.sh"),
            (line("cd d; cd deep; sh y.sh"), "d/deep/y.sh"),
            (run(&["env", "-C", "d", "sh", "x.sh"]), "d/x.sh"),
            (run(&["env", "--chdir=d", "sh", "x.sh"]), "d/x.sh"),
            (run(&["sh", "link/../x.sh"]), "d/x.sh"),
            (run(&["sed", "-fd/sed"]), "d/sed"),
        ] {
            world.write("stockade-test.yaml", ASKS);
            world.write("d/deep/y.sh", "echo good\n");
            for path in ["d/x.sh", "d/a=x.sh", "x.sh", "d/sed"] {
                world.write(path, "a good\n");
            }
            let _made = symlink("d/deep", world.workspace().join("link"));
            let flags = ["--approver-program", &approver(world, "")];
            let again = [("shell", command.clone()), ("shell", command.clone())];
            answers(world, &flags, &again);
            assert_eq!(questions(world), 1, "{command}");
            let flags = ["--approver-program", &approver(world, "")];
            let write = json!({"path": path, "content": "a bad\n"});
            let answers = answers(
                world,
                &flags,
                &[
                    ("shell", command.clone()),
                    ("write_file", write),
                    ("shell", command.clone()),
                ],
            );
            assert_eq!(answers[1]["status"], "done", "{}", answers[1]);
            assert_eq!(questions(world), 2, "{command}");
        }
    }

    fn a_file_that_appears_while_a_command_is_asked_about_is_asked_about_too(world: &Fixture) {
        world.write("stockade-test.yaml", ASKS);
        let script = world.workspace().join("late.sh");
        let appears = format!("[ -e {0} ] || echo 'echo ran' > {0}", script.display());
        let flags = ["--approver-program", &approver(world, &appears)];
        let answer = answer(world, &flags, "shell", json!({"argv": ["sh", "late.sh"]}));
        assert_eq!(answer["text"], "ran\n", "{answer}");
        assert_eq!(questions(world), 2);
    }

    fn a_yes_for_the_session_to_take_something_away_covers_nothing_else_of_that_name(world: &Fixture) {
        let config = ASKS.replace("write_approval: false", "approval: {write: required}");
        world.write("stockade-test.yaml", config);
        world.write("folder/file", "");
        let session = r#"{"approved": true, "remember": "session"}"#;
        let made = |line: &str| ("shell", json!({"command": line}));
        let delete = |path: &str| ("delete_file", json!({"path": path}));
        let moved = ("move_file", json!({"from": "folder", "to": "there"}));
        let calls = [
            made("ln -s one link; head -c 17000000 /dev/zero > large"),
            delete("link"),
            made("ln -s two link"),
            delete("link"),
            delete("large"),
            made("head -c 17000000 /dev/urandom > large"),
            delete("large"),
            moved.clone(),
            made("mv there folder; touch folder/more"),
            moved,
        ];
        let flags = ["--approver-program", &approver_saying(world, "", session)];
        for answer in answers(world, &flags, &calls) {
            assert!(
                ["done", "exited"].contains(&answer["status"].as_str().unwrap()),
                "{answer}"
            );
        }
        assert_eq!(questions(world), calls.len());
        // The very same is not asked about again.
        let again = [
            made("ln -s one link"),
            delete("link"),
            made("ln -s one link"),
            delete("link"),
        ];
        let flags = ["--approver-program", &approver_saying(world, "", session)];
        answers(world, &flags, &again);
        assert_eq!(questions(world), 2);
    }

    fn once_per_session_is_once_per_tool_and_path_whatever_is_there(world: &Fixture) {
        let config = ASKS.replace("write_approval: false", "approval: {write: once_per_session}");
        world.write("stockade-test.yaml", config);
        world.write("folder/file", "");
        let made = |line: &str| ("shell", json!({"command": line}));
        let delete = |path: &str| ("delete_file", json!({"path": path}));
        let moved = ("move_file", json!({"from": "folder", "to": "there"}));
        let calls = [
            made("ln -s one link; ln -s one other"),
            delete("link"),
            made("ln -s two link"),
            delete("link"),
            delete("other"),
            moved.clone(),
            made("mv there folder; touch folder/more"),
            moved,
        ];
        let flags = ["--approver-program", &approver(world, "")];
        answers(world, &flags, &calls);
        // All but the second `delete_file link`. What a directory loses is something else each time.
        assert_eq!(questions(world), calls.len() - 1);
    }
}
