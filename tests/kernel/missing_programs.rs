//! A program that the caller has in PATH and the sandbox has not: the message says where it is, and following it works.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::common::{Fixture, Invocation, in_both_regimes};

    in_both_regimes! {
        the_flags_that_the_message_names_have_the_program_run [];
        the_lines_that_the_message_names_have_the_program_run [];
        a_program_behind_links_is_granted_with_all_that_they_lead_through [];
        a_program_of_an_installation_is_granted_with_the_installation [];
        another_program_beside_a_single_file_is_named_as_well [];
        a_directory_of_path_that_is_a_link_is_named_as_it_is_written [];
        names_that_a_shell_or_yaml_would_read_otherwise_are_quoted [];
        nothing_is_offered_that_would_give_a_home_or_what_is_private_in_it [];
        nothing_is_offered_that_is_denied [];
        a_program_that_nobody_has_is_not_found_and_no_more_is_told [];
        what_the_session_may_write_is_not_looked_into [];
        the_first_missing_program_of_a_line_is_named [];
        an_agent_is_told_as_well [];
    }

    const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

    /// Writes a program below the home that says its name.
    fn program(world: &Fixture, below: &str) {
        let name = Path::new(below).file_name().unwrap().to_str().unwrap();
        world.program(world.home().join(below), format!("#!/bin/sh\necho \"{name} ran\"\n"));
    }

    fn with_path(world: &Fixture, directory: &Path, args: &[&str]) -> Invocation {
        world
            .stockade(args)
            .env("PATH", format!("{}:{SYSTEM}", directory.display()))
    }

    /// The hint of a command that did not find a program.
    fn hint(world: &Fixture, directory: &Path, flags: &[&str], command: &[&str]) -> String {
        let args = [&["run", "--json"], flags, command].concat();
        let run = with_path(world, directory, &args).output();
        let outcome: Value = serde_json::from_str(&run.out()).unwrap();
        assert!(run.code() != 0, "{outcome}");
        let hint = outcome["hint"].as_str().unwrap_or_default().to_owned();
        assert!(hint.lines().count() <= 2, "{hint}");
        hint
    }

    /// What stands between backticks after a word.
    fn offered(hint: &str, after: &str) -> Vec<String> {
        let (_, rest) = hint
            .split_once(after)
            .unwrap_or_else(|| panic!("no {after} in: {hint}"));
        rest.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Follows the flags of a hint, as a shell reads them.
    fn follow_flags(world: &Fixture, directory: &Path, hint: &str, line: &str) -> String {
        let flags = offered(hint, "→").remove(0);
        let script = format!(
            "\"$STOCKADE\" run --backend {} {flags} -c '{line}'",
            world.backend.name()
        );
        let run = world
            .bare("/bin/sh")
            .args(["-c", &script])
            .env("STOCKADE", world.binary());
        let run = run.env("PATH", format!("{}:{SYSTEM}", directory.display())).output();
        assert_eq!(run.code(), 0, "{script}\n{hint}\n{}", run.err());
        run.out()
    }

    /// A config elsewhere with these lines as roots.
    fn config(world: &Fixture, roots: &[String]) -> String {
        let roots = roots.join("\n    ");
        let text =
            format!("extends: [system]\nsandbox:\n  paths:\n    {roots}\nshell: {{default: {{approval: none}}}}\n");
        let file = world.write(world.outside().join("agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn here(world: &Fixture) -> String {
        format!(
            "here: {{root: {}, mode: rw, write_approval: false}}",
            world.workspace().display()
        )
    }

    /// Follows the lines of a hint that was given under these roots.
    fn follow_lines(world: &Fixture, directory: &Path, hint: &str, roots: &[String], line: &str) -> String {
        let lines = offered(hint, "sandbox.paths`");
        let config = config(world, &[roots, &lines].concat());
        let run = with_path(world, directory, &["run", "--config", &config, "-c", line]).output();
        assert_eq!(run.code(), 0, "{hint}\n{}", run.err());
        run.out()
    }

    fn the_flags_that_the_message_names_have_the_program_run(world: &Fixture) {
        program(world, ".local/bin/tool");
        let bin = world.home().join(".local/bin");
        for command in [&["--", "tool", "x"][..], &["-c", "tool x"]] {
            let hint = hint(world, &bin, &[], command);
            assert!(hint.contains(&format!("`tool` is {}/tool", bin.display())), "{hint}");
            let flags = offered(&hint, "→").remove(0);
            assert_eq!(flags, format!("--rw . --ro {}", bin.display()));
            assert_eq!(follow_flags(world, &bin, &hint, "tool; echo x > made"), "tool ran\n");
        }
        // Beside flags that grant something, these stay.
        let beside = hint(world, &bin, &["--ro", "."], &["--", "tool"]);
        let flags = offered(&beside, "→").remove(0);
        assert_eq!(flags, format!("--ro {}", bin.display()));
        let args = ["run", "--ro", ".", "--ro", bin.to_str().unwrap(), "--", "tool"];
        with_path(world, &bin, &args).output().exits(0);
    }

    fn the_lines_that_the_message_names_have_the_program_run(world: &Fixture) {
        program(world, ".local/bin/tool");
        let bin = world.home().join(".local/bin");
        let roots = [here(world), "tool: {root: /usr/share, execute: true}".to_owned()];
        let config = config(world, &roots);
        let said = hint(world, &bin, &["--config", &config], &["-c", "tool"]);
        assert!(!said.contains("--ro"), "{said}");
        let line = format!("tool-2: {{root: {}, mode: ro, execute: true}}", bin.display());
        assert_eq!(offered(&said, "sandbox.paths`"), [line]);
        assert_eq!(follow_lines(world, &bin, &said, &roots, "tool"), "tool ran\n");
        // A root of that directory that only lacks the right is not named a second time.
        let roots = [here(world), format!("own: {{root: {}}}", bin.display())];
        let said = hint(
            world,
            &bin,
            &["--config", &self::config(world, &roots)],
            &["-c", "tool"],
        );
        assert_eq!(offered(&said, "sandbox.paths`"), ["execute: true", "own"]);
        let roots = [here(world), format!("own: {{root: {}, execute: true}}", bin.display())];
        let run = with_path(
            world,
            &bin,
            &["run", "--config", &self::config(world, &roots), "-c", "tool"],
        );
        run.output().exits(0);
    }

    fn a_program_behind_links_is_granted_with_all_that_they_lead_through(world: &Fixture) {
        let home = world.home();
        program(world, ".local/share/app/versions/1.2/tool");
        program(world, ".local/bin/beside");
        symlink("versions/1.2", home.join(".local/share/app/current")).unwrap();
        symlink("../share/app/current/tool", home.join(".local/bin/tool")).unwrap();
        program(world, "downloads/other");
        symlink(home.join("downloads/other"), home.join(".local/bin/other")).unwrap();
        let bin = home.join(".local/bin");
        let roots = [here(world)];
        for name in ["tool", "other"] {
            let config = config(world, &roots);
            let said = hint(world, &bin, &[], &["--", name]);
            assert!(said.contains("which leads to"), "{said}");
            assert_eq!(follow_flags(world, &bin, &said, name), format!("{name} ran\n"));
            let said = hint(world, &bin, &["--config", &config], &["-c", name]);
            assert_eq!(follow_lines(world, &bin, &said, &roots, name), format!("{name} ran\n"));
        }
        // No more than the file of a directory that holds who knows what.
        let said = hint(world, &bin, &[], &["--", "other"]);
        assert!(said.contains("downloads/other`"), "{said}");
    }

    fn a_program_of_an_installation_is_granted_with_the_installation(world: &Fixture) {
        let home = world.home();
        world.write(home.join("apps/lint/lib/text"), "from its library\n");
        let text = "#!/bin/sh\ncat \"$(dirname \"$(readlink -f \"$0\")\")/../lib/text\"\n";
        world.program(home.join("apps/lint/bin/lint"), text);
        fs::create_dir_all(home.join(".local/bin")).unwrap();
        symlink("../../apps/lint/bin/lint", home.join(".local/bin/lint")).unwrap();
        let bin = home.join(".local/bin");
        let said = hint(world, &bin, &[], &["--", "lint"]);
        assert_eq!(follow_flags(world, &bin, &said, "lint"), "from its library\n");
    }

    fn another_program_beside_a_single_file_is_named_as_well(world: &Fixture) {
        program(world, "tools/one");
        program(world, "tools/two");
        let bin = world.home().join("tools");
        let one = bin.join("one");
        let flags = ["--rw", ".", "--ro", one.to_str().unwrap()];
        let args = [&["run"], &flags[..], &["--", "one"]].concat();
        with_path(world, &bin, &args).output().exits(0);
        let said = hint(world, &bin, &flags, &["--", "two"]);
        assert!(said.contains(&format!("--ro {}`", bin.display())), "{said}");
        let args = ["run", "--rw", ".", "--ro", bin.to_str().unwrap(), "-c", "one; two"];
        assert_eq!(
            with_path(world, &bin, &args).output().exits(0).out(),
            "one ran\ntwo ran\n"
        );
        let roots = [here(world), format!("one: {{root: {}, execute: true}}", one.display())];
        let said = hint(world, &bin, &["--config", &config(world, &roots)], &["-c", "two"]);
        assert_eq!(
            follow_lines(world, &bin, &said, &roots, "one; two"),
            "one ran\ntwo ran\n"
        );
    }

    fn a_directory_of_path_that_is_a_link_is_named_as_it_is_written(world: &Fixture) {
        program(world, "dotfiles/bin/tool");
        symlink("dotfiles/bin", world.home().join("bin")).unwrap();
        let bin = world.home().join("bin");
        let said = hint(world, &bin, &[], &["--", "tool"]);
        assert_eq!(follow_flags(world, &bin, &said, "tool"), "tool ran\n");
        let roots = [here(world)];
        let said = hint(world, &bin, &["--config", &config(world, &roots)], &["-c", "tool"]);
        assert_eq!(follow_lines(world, &bin, &said, &roots, "tool"), "tool ran\n");
    }

    fn names_that_a_shell_or_yaml_would_read_otherwise_are_quoted(world: &Fixture) {
        let roots = [here(world)];
        for folder in ["a b", "it's", "$HOME", "key {x}", "-rf"] {
            program(world, &format!("{folder}/tool"));
            let config = config(world, &roots);
            let bin = world.home().join(folder);
            let said = hint(world, &bin, &[], &["--", "tool"]);
            assert_eq!(follow_flags(world, &bin, &said, "tool"), "tool ran\n", "{folder}");
            let said = hint(world, &bin, &["--config", &config], &["-c", "tool"]);
            assert_eq!(
                follow_lines(world, &bin, &said, &roots, "tool"),
                "tool ran\n",
                "{folder}"
            );
        }
        program(world, "new\nline/tool");
        let said = hint(world, &world.home().join("new\nline"), &[], &["--", "tool"]);
        assert!(!said.contains("--ro"), "{said}");
    }

    fn nothing_is_offered_that_would_give_a_home_or_what_is_private_in_it(world: &Fixture) {
        program(world, "tool");
        program(world, ".ssh/tool");
        program(world, ".local/share/app/tool");
        symlink("../.ssh/tool", world.home().join(".local/tool")).unwrap();
        for directory in ["", ".ssh", ".local"] {
            let said = hint(world, &world.home().join(directory), &[], &["--", "tool"]);
            assert!(!said.contains("--ro"), "{directory}: {said}");
        }
    }

    fn nothing_is_offered_that_is_denied(world: &Fixture) {
        program(world, "tools/bin/tool");
        let bin = world.home().join("tools/bin");
        let ceiling = "extends: [system]\nsandbox: {paths: {w: {root: /, optional: true}}}\n";
        let ceiling = ceiling.replace("/,", &format!("{},", world.workspace().display()));
        let ceiling = world.write(world.outside().join("ceiling.yaml"), ceiling);
        let said = hint(world, &bin, &["--ceiling", ceiling.to_str().unwrap()], &["--", "tool"]);
        assert!(!said.contains("--ro"), "{said}");
        let roots = format!("t: {{root: {}/tools, deny: [./bin]}}", world.home().display());
        let flags = [
            "--config",
            &config(world, &[here(world), roots]),
            "--deny-fallback",
            "decompose",
        ];
        let said = hint(world, &bin, &flags, &["-c", "tool"]);
        assert!(!said.contains("sandbox.paths"), "{said}");
    }

    fn a_program_that_nobody_has_is_not_found_and_no_more_is_told(world: &Fixture) {
        program(world, "tools/other");
        world.write(world.home().join("tools/plain"), "not a program\n");
        let bin = world.home().join("tools");
        for command in [
            &["--", "no-such-program"][..],
            &["-c", "no-such-program"],
            &["--", "plain"],
            &["-c", "../home/tools/other"],
            &["-c", "exit 127"],
            &["-c", "other/../other"],
        ] {
            let said = hint(world, &bin, &[], command);
            assert!(!said.contains("tools"), "{command:?}: {said}");
        }
    }

    fn what_the_session_may_write_is_not_looked_into(world: &Fixture) {
        // Whoever writes there could ask with a link whether a file is there.
        fs::create_dir(world.workspace().join("bin")).unwrap();
        program(world, "private-tools/probe");
        symlink(
            world.home().join("private-tools/probe"),
            world.workspace().join("bin/probe"),
        )
        .unwrap();
        symlink(world.home().join("private-tools"), world.workspace().join("door")).unwrap();
        for directory in ["bin", "door"] {
            let said = hint(world, &world.workspace().join(directory), &[], &["--", "probe"]);
            assert!(!said.contains("private-tools"), "{directory}: {said}");
        }
    }

    fn the_first_missing_program_of_a_line_is_named(world: &Fixture) {
        program(world, "tools/tool");
        let bin = world.home().join("tools");
        for line in [
            "tool",
            "FOO=1 tool --flag",
            "cd . && tool",
            "echo x; tool",
            "echo x | tool",
            "env tool",
            "sh -c tool",
            "if true; then tool; fi",
        ] {
            let said = hint(world, &bin, &[], &["-c", line]);
            assert!(said.starts_with("`tool` is "), "{line}: {said}");
        }
        // One that ran is not named, whatever the line ended with.
        let said = hint(world, &bin, &[], &["-c", "true; no-such-program"]);
        assert!(!said.contains("tools"), "{said}");
    }

    fn an_agent_is_told_as_well(world: &Fixture) {
        program(world, "tools/tool");
        let bin = world.home().join("tools");
        let arguments = json!({"command": "tool"}).to_string();
        let run = with_path(world, &bin, &["call", "shell", &arguments]).output();
        assert_eq!(run.code(), 127, "{}", run.err());
        let told = run.out() + &run.err();
        assert!(told.contains(&format!("--rw . --ro {}", bin.display())), "{told}");
    }
}
