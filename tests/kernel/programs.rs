//! A name of a program is not the program: what the session may write can take any name.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use crate::common::{Fixture, Invocation, in_both_regimes};

    in_both_regimes! {
        a_name_that_a_rule_allows_is_never_a_program_that_the_session_may_write [];
        where_nobody_has_to_answer_the_path_is_the_callers [];
        what_is_passed_over_is_named [];
        the_advice_for_what_is_not_understood_names_no_rule [];
        a_program_that_only_the_session_s_own_files_have_is_asked_about [];
        the_rule_that_the_message_names_allows_it [];
        a_rule_that_names_a_directory_has_programs_searched_there [];
        a_directory_that_a_rule_names_gives_no_other_name_away [];
        a_yes_has_the_program_run_that_was_shown [];
        a_path_that_leads_through_what_the_session_may_write_is_not_searched [];
        a_directory_that_cannot_be_written_stays_whatever_lies_around_it [];
        the_program_of_a_custom_tool_is_found_outside_and_run_as_that_file [];
        a_custom_tool_whose_program_the_session_may_write_says_what_would_name_it [];
        very_many_names_find_nothing_that_the_session_may_write [];
        where_nothing_of_the_path_is_left_nothing_in_reach_is_searched_instead [];
        what_gives_up_the_path_is_asked_about [];
    }

    const RULES: &str = "
  rules:
    - {pattern: ls, approval: none}
    - {pattern: env, approval: none}
    - {pattern: sh, approval: none}
    - {pattern: find, approval: none}
    - {pattern: xargs, approval: none}
    - {pattern: echo, approval: none}
    - {pattern: tool, approval: none}
";

    fn config(world: &Fixture, default: &str, more: &str) -> String {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, execute: true, write_approval: false}}\n\
             shell:\n  default: {{allowed: true, approval: {default}}}{more}",
            world.workspace().display()
        );
        let file = world.write(world.base().join("agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    /// Writes a program into the virtual environment that says its name, and that it ran.
    fn plant(world: &Fixture, name: &str) {
        let text = format!("#!/bin/sh\necho planted {name} >> {}\necho planted\n", marks(world));
        world.program(format!(".venv/bin/{name}"), text);
    }

    fn marks(world: &Fixture) -> String {
        world.workspace().join("marks").to_str().unwrap().to_owned()
    }

    fn path(world: &Fixture) -> String {
        format!("{}/.venv/bin:/usr/local/bin:/usr/bin:/bin", world.workspace().display())
    }

    fn run(world: &Fixture, args: &[&str]) -> Invocation {
        world.stockade(args).env("PATH", path(world))
    }

    fn is_unmarked(world: &Fixture) {
        assert!(!world.workspace().join("marks").exists(), "a planted program ran");
    }

    fn a_name_that_a_rule_allows_is_never_a_program_that_the_session_may_write(world: &Fixture) {
        let config = config(world, "required", RULES);
        for name in ["ls", "sh", "env", "find", "xargs"] {
            plant(world, name);
        }
        for line in [
            "ls /usr",
            "env ls /usr",
            "sh -c 'ls /usr'",
            "find /usr -maxdepth 0 -exec ls {} ;",
            "echo /usr | xargs ls",
            "ls /usr | sh -c 'ls /usr; ls /usr'",
        ] {
            let args = [
                "run",
                "--mode",
                "strict",
                "--config",
                &config,
                "-c",
                &line.replace(';', "\\;"),
            ];
            let run = run(world, &args).output();
            assert!(run.out().contains("bin"), "{line}: {}", run.err());
            is_unmarked(world);
        }
        let run = run(
            world,
            &["run", "--mode", "strict", "--config", &config, "--", "ls", "/usr"],
        )
        .output();
        assert!(run.exits(0).out().contains("bin"));
        is_unmarked(world);
    }

    fn what_is_passed_over_is_named(world: &Fixture) {
        let config = config(world, "required", RULES);
        let args = [
            "run", "--mode", "strict", "--json", "--config", &config, "-c", "ls /usr",
        ];
        let hint = |run: crate::common::Run| {
            let outcome: serde_json::Value = serde_json::from_str(&run.exits(0).out()).unwrap();
            outcome["hint"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(hint(run(world, &args).output()), "");
        plant(world, "ls");
        let said = hint(run(world, &args).output());
        assert!(said.contains(".venv/bin/ls") && said.contains("`mode: ro`"), "{said}");
    }

    fn the_advice_for_what_is_not_understood_names_no_rule(world: &Fixture) {
        let config = config(world, "required", RULES);
        plant(world, "tool");
        let args = ["run", "--mode", "strict", "--config", &config, "-c", ". ./x; tool"];
        let said = run(world, &args).output().exits(126).err();
        assert!(said.contains("no rule can allow what is not understood"), "{said}");
    }

    fn where_nobody_has_to_answer_the_path_is_the_callers(world: &Fixture) {
        plant(world, "ls");
        for more in ["\n", "\n  rules:\n    - {pattern: rm, allowed: false}\n"] {
            let config = config(world, "none", more);
            let run = run(world, &["run", "--config", &config, "-c", "ls; echo $PATH"]);
            let out = run.output().exits(0).out();
            assert_eq!(out, format!("planted\n{}\n", path(world)));
        }
    }

    fn a_program_that_only_the_session_s_own_files_have_is_asked_about(world: &Fixture) {
        let config = config(world, "required", RULES);
        plant(world, "tool");
        for args in [
            &["-c", "tool x"][..],
            &["-c", "ls; tool x"],
            &["--", "tool", "x"],
            &["--", "env", "tool"],
        ] {
            let args = [&["run", "--mode", "strict", "--config", &config], args].concat();
            let said = run(world, &args).output().exits(126).err();
            let program = world.workspace().join(".venv/bin/tool");
            assert!(
                said.contains(program.to_str().unwrap()) && said.contains("which this session may write"),
                "{args:?}: {said}"
            );
            is_unmarked(world);
        }
    }

    fn the_rule_that_the_message_names_allows_it(world: &Fixture) {
        plant(world, "tool");
        let program = world.workspace().join(".venv/bin/tool");
        let program = program.to_str().unwrap();
        let rule = format!("{RULES}    - {{pattern: {program}, approval: none}}\n");
        let config = config(world, "required", &rule);
        let args = ["run", "--mode", "strict", "--config", &config, "--", program];
        assert_eq!(run(world, &args).output().exits(0).out(), "planted\n");
        // For the bare name it does not speak.
        let args = ["run", "--mode", "strict", "--config", &config, "--", "tool"];
        let said = run(world, &args).output().exits(126).err();
        assert!(
            said.contains(&format!("{{pattern: {program}, approval: none}}")),
            "{said}"
        );
    }

    fn a_rule_that_names_a_directory_has_programs_searched_there(world: &Fixture) {
        let rule = "\n  rules:\n    - {pattern: ./.venv/bin/outer, approval: none}\n";
        let config = config(world, "required", rule);
        world.program(".venv/bin/outer", "#!/bin/sh\ninner\n");
        world.program(".venv/bin/inner", "#!/bin/sh\necho found\n");
        let args = [
            "run",
            "--mode",
            "strict",
            "--config",
            &config,
            "-c",
            "./.venv/bin/outer",
        ];
        assert_eq!(run(world, &args).output().exits(0).out(), "found\n");
    }

    fn a_directory_that_a_rule_names_gives_no_other_name_away(world: &Fixture) {
        let rule = format!("{RULES}    - {{pattern: ./.venv/bin/outer, approval: none}}\n");
        let config = config(world, "required", &rule);
        world.program(".venv/bin/outer", "#!/bin/sh\necho outer\n");
        let both = [
            "run",
            "--mode",
            "strict",
            "--config",
            &config,
            "-c",
            "./.venv/bin/outer; ls /usr",
        ];
        // The twin: as long as no other has the name.
        assert!(run(world, &both).output().exits(0).out().contains("bin"));
        plant(world, "ls");
        run(world, &both).output().exits(126);
        is_unmarked(world);
    }

    fn a_yes_has_the_program_run_that_was_shown(world: &Fixture) {
        let config = config(world, "required", "\n");
        plant(world, "tool");
        let args = [
            "run",
            "--mode",
            "approve_all",
            "--config",
            &config,
            "-c",
            "tool; ls /usr >/dev/null; echo $PATH",
        ];
        let out = run(world, &args).output().exits(0).out();
        assert!(out.starts_with("planted\n") && out.contains(".venv/bin"), "{out}");
        let args = [
            "run",
            "--mode",
            "approve_all",
            "--config",
            &config,
            "-c",
            "ls /usr >/dev/null; echo $PATH",
        ];
        let out = run(world, &args).output().exits(0).out();
        assert!(!out.contains(".venv"), "{out}");
    }

    fn a_path_that_leads_through_what_the_session_may_write_is_not_searched(world: &Fixture) {
        let config = config(world, "required", RULES);
        let tools = world.workspace().join("tools");
        // Whoever may write the link may lead it elsewhere while the command runs.
        std::os::unix::fs::symlink("/usr/bin", &tools).unwrap();
        let path = format!("{}:/usr/bin:/bin", tools.display());
        let args = [
            "run",
            "--mode",
            "strict",
            "--config",
            &config,
            "-c",
            "echo $PATH; ls /usr",
        ];
        let run = world.stockade(&args).env("PATH", path).output();
        // `echo $PATH` is the shell's own word.
        assert!(!run.exits(0).out().contains("tools"));
    }

    fn a_directory_that_cannot_be_written_stays_whatever_lies_around_it(world: &Fixture) {
        let read_only = world.outside().join("bin");
        world.program(read_only.join("tool"), "#!/bin/sh\necho found\n");
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, execute: true, write_approval: false}}\n    \
             bin: {{root: {}, mode: ro, execute: true}}\nshell:\n  default: {{allowed: true, approval: required}}{RULES}",
            world.workspace().display(),
            read_only.display()
        );
        let config = world.write(world.base().join("agent.yaml"), text);
        let args = [
            "run",
            "--mode",
            "strict",
            "--config",
            config.to_str().unwrap(),
            "--",
            "tool",
        ];
        let path = format!("{}:/usr/bin:/bin", read_only.display());
        assert_eq!(
            world.stockade(&args).env("PATH", path).output().exits(0).out(),
            "found\n"
        );
    }

    fn very_many_names_find_nothing_that_the_session_may_write(world: &Fixture) {
        let names: Vec<String> = (0..70).map(|number| format!("c{number}")).collect();
        let free = |name: &String| format!("    - {{pattern: {name}, approval: none}}\n");
        let more: String = names.iter().map(free).collect();
        let rules = format!("{RULES}    - {{pattern: ./.venv/bin/outer, approval: none}}\n{more}");
        let config = config(world, "required", &rules);
        world.program(".venv/bin/outer", "#!/bin/sh\necho outer\n");
        plant(world, "ls");
        let line = format!("./.venv/bin/outer; ls /usr; {}", names.join("; "));
        let run = run(world, &["run", "--mode", "strict", "--config", &config, "-c", &line]).output();
        assert!(run.out().contains("bin"), "{}", run.err());
        is_unmarked(world);
    }

    fn where_nothing_of_the_path_is_left_nothing_in_reach_is_searched_instead(world: &Fixture) {
        let config = config(world, "required", RULES);
        plant(world, "ls");
        for path in [
            "",
            "/nowhere",
            ".",
            &format!("{}/.venv/bin", world.workspace().display()),
        ] {
            let args = ["run", "--mode", "strict", "--config", &config, "--", "ls", "/usr"];
            let run = world.stockade(&args).env("PATH", path).output();
            assert!(run.out().contains("bin") || run.code() != 0, "{path}: {}", run.out());
            is_unmarked(world);
        }
    }

    fn what_gives_up_the_path_is_asked_about(world: &Fixture) {
        let config = config(world, "required", RULES);
        for line in ["env -i sh -c ls", "env - sh -c ls", "env -u PATH sh -c ls", "sh -lc ls"] {
            let args = ["run", "--mode", "strict", "--config", &config, "-c", line];
            run(world, &args).output().exits(126);
        }
        // The twin.
        let args = [
            "run",
            "--mode",
            "strict",
            "--config",
            &config,
            "-c",
            "env -u OTHER sh -c 'ls /usr'",
        ];
        run(world, &args).output().exits(0);
    }

    fn the_program_of_a_custom_tool_is_found_outside_and_run_as_that_file(world: &Fixture) {
        let tools = "\ncustom_tools:\n  who: {description: Say who, command: [ls, /usr], approval: none}\n";
        let config = config(world, "required", tools);
        plant(world, "ls");
        let run = run(world, &["call", "--mode", "strict", "--config", &config, "who", "{}"]).output();
        assert!(run.exits(0).out().contains("bin"));
        is_unmarked(world);
    }

    fn a_custom_tool_whose_program_the_session_may_write_says_what_would_name_it(world: &Fixture) {
        let tool = |command: &str| {
            format!("\ncustom_tools:\n  mine: {{description: Mine, command: [{command}], approval: none}}\n")
        };
        let program = world.workspace().join(".venv/bin/mine");
        let program = program.to_str().unwrap();
        plant(world, "mine");
        let bare = config(world, "required", &tool("mine"));
        let run_it =
            |config: &str| run(world, &["call", "--mode", "strict", "--config", config, "mine", "{}"]).output();
        let refused = run_it(&bare).exits(126);
        let said = refused.err() + &refused.out();
        assert!(
            said.contains(program) && said.contains("which this session may write"),
            "{said}"
        );
        is_unmarked(world);
        let named = config(world, "required", &tool(program));
        assert!(run_it(&named).exits(0).out().starts_with("planted\n"));
    }
}
