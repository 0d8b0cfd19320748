//! What a rule that asks nobody lets a command do: write in the roots that it names, or whose demand is the default.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::common::{Fixture, in_both_regimes};

    in_both_regimes! {
        a_rule_without_roots_writes_where_the_demand_is_the_default [];
        a_rule_writes_where_a_line_demands_a_yes_only_if_it_names_the_root [];
        a_line_gets_what_all_of_its_parts_were_answered_for [];
        the_default_answers_for_nobody [];
        the_entry_of_the_shell_answers_for_the_default_alone [];
        a_safe_command_answers_as_a_rule_does [];
        a_custom_tool_writes_in_the_roots_that_it_names [];
        the_entry_of_a_file_tool_does_not_answer_what_a_root_demands [];
        a_planted_program_runs_unanswered_where_the_default_lets_it [];
        a_rule_does_not_ask_about_hosts_for_whom_somebody_would_be_asked ["bash"];
    }

    /// `plain` has the default demand, `asked` a written one, `closed` may not even be read unasked.
    const ROOTS: &str = "sandbox:\n  paths:\n    plain: {root: ./plain, mode: rw}\n    asked: {root: ./asked, mode: rw, write_approval: true}\n    closed: {root: ./closed, mode: rw, approval: {read: required}}\n";

    fn written(world: &Fixture, rest: &str) {
        for name in ["plain", "asked", "closed"] {
            world.write(world.workspace().join(name).join("there.txt"), "there\n");
        }
        world.write(world.workspace().join("agent.yaml"), format!("{ROOTS}{rest}"));
    }

    fn stockade(world: &Fixture, words: &[&str]) -> (i32, String) {
        let (first, rest) = words.split_first().unwrap();
        let all = [*first, "--config", "agent.yaml", "--backend", world.backend.name()];
        let run = world.bare(world.binary()).args(all.iter().chain(rest)).output();
        (run.code(), run.out() + &run.err())
    }

    fn shell(world: &Fixture, line: &str) -> (i32, String) {
        stockade(world, &["run", "-c", line])
    }

    fn is_there(world: &Fixture, name: &str) -> bool {
        world.workspace().join(name).exists()
    }

    /// What a line made of three files, one in each root.
    #[track_caller]
    fn makes(world: &Fixture, line: &str, expected: [bool; 3]) {
        let names = ["plain/new", "asked/new", "closed/new"];
        for name in names {
            drop(std::fs::remove_file(world.workspace().join(name)));
        }
        let (code, text) = shell(world, line);
        assert_eq!(names.map(|name| is_there(world, name)), expected, "{code}: {text}");
    }

    fn a_rule_without_roots_writes_where_the_demand_is_the_default(world: &Fixture) {
        written(
            world,
            "shell: {rules: [{pattern: touch, approval: none}, {pattern: cat, approval: none}]}\n",
        );
        makes(world, "touch plain/new asked/new closed/new", [true, false, false]);
        let (code, text) = shell(world, "cat asked/there.txt");
        assert!(code == 0 && text.contains("there"), "{code}: {text}");
        let (code, text) = shell(world, "cat closed/there.txt");
        assert!(code == 1 && !text.contains("there\n"), "{code}: {text}");
    }

    fn a_rule_writes_where_a_line_demands_a_yes_only_if_it_names_the_root(world: &Fixture) {
        written(
            world,
            "shell:\n  rules:\n    - {pattern: touch, approval: none, sandbox_paths: [asked, closed]}\n    - {pattern: cat, approval: none, sandbox_paths: [closed]}\n",
        );
        makes(world, "touch asked/new closed/new", [false, true, true]);
        let (code, text) = shell(world, "cat closed/there.txt");
        assert!(code == 0 && text.contains("there"), "{code}: {text}");
        // The rule is about commands whose paths lie in its roots.
        let (code, text) = shell(world, "touch plain/new");
        assert!(code == 126 && !is_there(world, "plain/new"), "{code}: {text}");
    }

    fn a_line_gets_what_all_of_its_parts_were_answered_for(world: &Fixture) {
        written(
            world,
            "shell:\n  default: {approval: none}\n  rules:\n    - {pattern: touch, approval: none}\n    - {pattern: cp, approval: none, sandbox_paths: [plain, asked]}\n    - {pattern: head, approval: none}\n",
        );
        makes(world, "touch plain/new && head plain/there.txt", [true, false, false]);
        makes(world, "touch plain/new && id", [false, false, false]);
        makes(
            world,
            "cp plain/there.txt asked/new; touch plain/new",
            [true, false, false],
        );
        makes(world, "cp plain/there.txt asked/new", [false, true, false]);
    }

    fn the_default_answers_for_nobody(world: &Fixture) {
        written(world, "shell: {default: {approval: none}}\n");
        makes(world, "touch plain/new asked/new closed/new", [false, false, false]);
    }

    fn the_entry_of_the_shell_answers_for_the_default_alone(world: &Fixture) {
        written(world, "tools: {shell: {approval: none}}\n");
        makes(world, "touch plain/new asked/new closed/new", [true, false, false]);
    }

    fn a_safe_command_answers_as_a_rule_does(world: &Fixture) {
        written(world, "tools: {shell: {safe_commands: [touch]}}\n");
        makes(world, "touch plain/new asked/new closed/new", [true, false, false]);
    }

    fn a_custom_tool_writes_in_the_roots_that_it_names(world: &Fixture) {
        written(
            world,
            "custom_tools:\n  mark: {description: Marks, command: [touch, plain/new, asked/new], approval: none, sandbox_paths: [asked]}\n  look: {description: Looks, command: [cat, closed/there.txt], approval: none}\n",
        );
        let (code, text) = stockade(world, &["call", "mark"]);
        assert!(
            code == 1 && is_there(world, "asked/new") && !is_there(world, "plain/new"),
            "{code}: {text}"
        );
        let (code, text) = stockade(world, &["call", "look"]);
        assert_eq!(code, 1, "{text}");
    }

    fn the_entry_of_a_file_tool_does_not_answer_what_a_root_demands(world: &Fixture) {
        written(
            world,
            "tools: {write_file: {approval: none}, read_file: {pre_approved: true}}\n",
        );
        let write = |path: &str| {
            let arguments = json!({"path": path, "content": "x"}).to_string();
            stockade(world, &["call", "write_file", &arguments]).0
        };
        assert_eq!(
            (write("plain/new"), write("asked/new"), write("closed/new")),
            (0, 126, 126)
        );
        assert!(!is_there(world, "asked/new") && !is_there(world, "closed/new"));
        let read = |path: &str| stockade(world, &["call", "read_file", &json!({"path": path}).to_string()]).0;
        assert_eq!((read("asked/there.txt"), read("closed/there.txt")), (0, 126));
    }

    fn a_planted_program_runs_unanswered_where_the_default_lets_it(world: &Fixture) {
        written(
            world,
            "    bin: {root: ./bin, mode: rw, execute: true, write_approval: false}\nshell: {default: {approval: none}, rules: [{pattern: tidy, approval: none}]}\n",
        );
        world.program(
            world.workspace().join("bin/tidy"),
            "#!/bin/sh\necho ran\n: > plain/new\n",
        );
        let path = format!("{}:/usr/bin:/bin", world.workspace().join("bin").display());
        let words = [
            "run",
            "--config",
            "agent.yaml",
            "--backend",
            world.backend.name(),
            "-c",
            "tidy",
        ];
        let run = world.bare(world.binary()).args(words).env("PATH", path).output();
        let (code, text) = (run.code(), run.out() + &run.err());
        assert!(text.contains("ran") && !is_there(world, "plain/new"), "{code}: {text}");
    }

    fn a_rule_does_not_ask_about_hosts_for_whom_somebody_would_be_asked(world: &Fixture) {
        written(
            world,
            "shell:\n  network: {allow: [\"127.0.0.1:9\"], ask: true}\n  rules: [{pattern: touch, approval: none}]\n",
        );
        if world.backend.name() == "landlock" {
            // No list of hosts is held there.
            assert_eq!(shell(world, "touch plain/new").0, 125);
        } else {
            makes(world, "touch plain/new", [true, false, false]);
        }
    }
}
