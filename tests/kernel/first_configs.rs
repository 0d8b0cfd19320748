//! Configs that people wrote from the idea alone: each works as it stands.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use crate::common::{Fixture, Invocation, in_both_regimes};

    in_both_regimes! {
        a_root_for_files_of_a_kind_and_one_that_asks_nothing [];
        rules_answer_for_what_they_name_and_forbid_what_they_forbid ["git"];
        a_machine_that_confines_needs_no_fallback [];
        functions_of_a_program_need_no_command [];
        safe_commands_paths_and_patterns_stand_with_their_tool [];
    }

    const NOTES: &str = "sandbox:\n  paths:\n    notes: {root: ./notes, mode: rw, suffixes: [.txt, .log], write_approval: true, read_approval: false}\n    cache: {root: ./cache, mode: rw, write_approval: false}\n";

    const RULES: &str = "sandbox: {paths: {output: {root: ./output, mode: rw}}}\nshell:\n  default: {allowed: true, approval: true}\n  rules:\n    - {pattern: git status, approval: false}\n    - {pattern: git add, approval: true, description: Stage files}\n    - {pattern: rm, allowed: false}\n    - {pattern: pytest, approval: false, sandbox_paths: [output]}\n";

    const FALLBACK: &str = "sandbox:\n  paths: {data: {root: ./data, mode: rw}}\n  require_os_sandbox: true\n  os_sandbox_fallback: refuse_tools\n";

    const FUNCTIONS: &str = "custom_tools:\n  calculate_stats: {approval: required}\n  send_notification: {approval: none}\n  format_output: {}\n";

    const TOOLS: &str = "tools:\n  delete_file: {}\n  read_file: {pre_approved: true}\n  write_file: {safe_paths: [./cache/, ./tmp/]}\n  get_time: {pre_approved: true}\n  shell: {safe_commands: [ls, pwd, echo, date], dangerous_patterns: ['\\brm\\b', '\\bsudo\\b', '\\|', '>']}\n";

    /// The config in a directory with the four that it may name.
    fn written(world: &Fixture, text: &str) {
        for name in ["notes", "cache", "output", "data"] {
            world.write(world.workspace().join(name).join("there.txt"), "there\n");
        }
        world.write(world.workspace().join("agent.yaml"), text);
    }

    /// `stockade WORDS` in that directory, in the regime of the test.
    fn stockade(world: &Fixture, words: &[&str], rest: &[&str]) -> Invocation {
        let mut all = words.to_vec();
        all.extend(["--config", "agent.yaml", "--backend", world.backend.name()]);
        all.extend(rest);
        world.bare(world.binary()).args(all)
    }

    fn checks(world: &Fixture) {
        let run = world.bare(world.binary()).args(["check", "agent.yaml"]).output();
        assert_eq!(run.code(), 0, "{}", run.err());
    }

    /// The outcome of one call with nobody there to ask.
    fn call(world: &Fixture, tool: &str, arguments: &Value) -> (i32, String) {
        let run = stockade(world, &["call"], &[tool, &arguments.to_string()]).output();
        (run.code(), run.out() + &run.err())
    }

    fn shell(world: &Fixture, line: &str) -> (i32, String) {
        let run = stockade(world, &["run"], &["-c", line]).output();
        (run.code(), run.out() + &run.err())
    }

    #[track_caller]
    fn needs_a_yes((code, text): (i32, String)) {
        assert!(code == 126 && text.contains("nobody"), "{code}: {text}");
    }

    fn a_root_for_files_of_a_kind_and_one_that_asks_nothing(world: &Fixture) {
        written(world, NOTES);
        checks(world);
        assert_eq!(call(world, "read_file", &json!({"path": "notes/there.txt"})).0, 0);
        needs_a_yes(call(
            world,
            "write_file",
            &json!({"path": "notes/new.txt", "content": "x"}),
        ));
        let (code, text) = call(world, "write_file", &json!({"path": "cache/new.bin", "content": "x"}));
        assert_eq!(code, 0, "{text}");
        let (code, text) = call(world, "write_file", &json!({"path": "notes/new.md", "content": "x"}));
        assert!(code == 126 && text.contains(".log"), "{code}: {text}");
    }

    fn rules_answer_for_what_they_name_and_forbid_what_they_forbid(world: &Fixture) {
        written(world, RULES);
        checks(world);
        world.write(world.workspace().join("output/pytest"), "");
        let (code, text) = shell(world, "git status");
        // It sees no repository: the directory is in no root.
        assert!(code == 128 && text.contains("not a git repository"), "{code}: {text}");
        needs_a_yes(shell(world, "git add x"));
        let (code, text) = shell(world, "id; rm x");
        assert!(code == 126 && text.contains("`rm`"), "{code}: {text}");
        needs_a_yes(shell(world, "id"));
    }

    fn a_machine_that_confines_needs_no_fallback(world: &Fixture) {
        written(world, FALLBACK);
        checks(world);
        let (code, text) = call(world, "read_file", &json!({"path": "data/there.txt"}));
        assert!(code == 0 && text.contains("there"), "{code}: {text}");
    }

    fn functions_of_a_program_need_no_command(world: &Fixture) {
        written(world, FUNCTIONS);
        checks(world);
    }

    fn safe_commands_paths_and_patterns_stand_with_their_tool(world: &Fixture) {
        written(world, TOOLS);
        let run = world.bare(world.binary()).args(["check", "agent.yaml"]).output();
        assert!(
            run.code() == 0 && run.out().contains("{cache: {root: ./cache, mode: rw}}"),
            "{}",
            run.err()
        );
        // Without a root a command starts where Stockade was started, and sees nothing of it.
        let run = stockade(world, &["run"], &["-c", "pwd; echo hi; ls"]).output();
        let here = world.workspace();
        assert_eq!(run.out(), format!("{}\nhi\n", here.display()), "{}", run.err());
        assert!(
            run.err()
                .contains("is in no root: commands start there and see nothing of it"),
            "{}",
            run.err()
        );
        let line = json!({"command": "cat cache/there.txt; ls -a; echo x"}).to_string();
        let run = stockade(world, &["call", "--mode", "approve_all"], &["shell", &line]).output();
        let text = run.out();
        let is_read = text.lines().any(|line| line == "there");
        assert!(!is_read && text.contains("cat: cache/there.txt: "), "{text}");
        assert!(!here.join("x").exists());
        // With a root all of it works.
        world.write(
            world.workspace().join("agent.yaml"),
            format!("sandbox: {{paths: {{cache: {{root: ./cache, mode: rw}}}}}}\n{TOOLS}"),
        );
        let (code, text) = call(world, "write_file", &json!({"path": "cache/new", "content": "x"}));
        assert_eq!(code, 0, "{text}");
        assert_eq!(fs::read(world.workspace().join("cache/new")).unwrap(), b"x");
        needs_a_yes(call(world, "delete_file", &json!({"path": "cache/new"})));
        let (code, text) = call(world, "read_file", &json!({"path": "cache/new"}));
        assert!(code == 0 && text.contains('x'), "{code}: {text}");
        world.write(world.workspace().join("cache/sub/f"), "");
        let (code, text) = shell(world, "cd cache; echo hello; ls sub");
        assert!(code == 0 && text.contains("hello\nf"), "{code}: {text}");
        // It answers for writing, and not for reading that needs a yes.
        let asks_to_read = TOOLS.replace("write_file:", "edit_file:");
        world.write(
            world.workspace().join("read.yaml"),
            format!(
                "sandbox: {{paths: {{cache: {{root: ./cache, mode: rw, approval: {{read: required, write: required}}}}}}}}\n{asks_to_read}"
            ),
        );
        let edit = json!({"path": "cache/there.txt", "edits": [{"old": "there", "new": "here"}]}).to_string();
        let run = world.bare(world.binary()).args([
            "call",
            "--config",
            "read.yaml",
            "--backend",
            world.backend.name(),
            "edit_file",
            &edit,
        ]);
        needs_a_yes({
            let run = run.output();
            (run.code(), run.out() + &run.err())
        });
        // A pattern asks where a rule answers, and nothing is said of a word that only contains it.
        needs_a_yes(shell(world, "echo rm"));
        needs_a_yes(shell(world, "ls | ls"));
        assert_eq!(shell(world, "echo farm").0, 0);
        let (_, text) = shell(world, "echo x > cache/y");
        assert!(
            text.contains("dangerous_patterns") || text.contains("no rule allows a line that"),
            "{text}"
        );
        // Words that are quoted for a shell are searched as they are, too.
        let argv = |words: &[&str]| {
            let run = stockade(world, &["run"], &[&["--"], words].concat()).output();
            (run.code(), run.out() + &run.err())
        };
        needs_a_yes(argv(&["echo", "a|b"]));
        needs_a_yes(argv(&["echo", "it's", "rm"]));
        assert_eq!(argv(&["echo", "it's"]).0, 0);
        // It may start anywhere, at the top too.
        for start in ["/", "/proc", "/tmp"] {
            let run = stockade(world, &["run"], &["--cwd", start, "--", "pwd"]).output();
            assert_eq!(run.out(), format!("{start}\n"), "{}", run.err());
        }
        // An override of the tool does not silence the patterns.
        world.write(
            world.workspace().join("agent.yaml"),
            "sandbox: {paths: {cache: {root: ./cache, mode: rw}}}\ntools: {shell: {approval: none, dangerous_patterns: ['\\brm\\b']}}\n",
        );
        assert_eq!(shell(world, "id -u").0, 0);
        needs_a_yes(shell(world, "id; rm cache/new"));
        needs_a_yes(call(world, "shell", &json!({"command": "rm cache/new"})));
        assert_eq!(call(world, "shell", &json!({"command": "id"})).0, 0);
        // Nor does one that asks once: the message names the pattern.
        world.write(
            world.workspace().join("agent.yaml"),
            "tools: {shell: {approval: once_per_session, dangerous_patterns: ['\\brm\\b']}}\n",
        );
        let (code, text) = shell(world, "id; rm x");
        assert!(
            code == 126 && text.contains("no rule allows a line that"),
            "{code}: {text}"
        );
    }
}
