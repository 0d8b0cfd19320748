//! `stockade check` says of a config what `run` and `mcp` would do with it on this machine.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use crate::common::{Backend, Fixture, Run, in_both_regimes};

    in_both_regimes! {
        check_refuses_what_run_refuses_and_in_its_words [];
        a_refusal_says_for_which_regime_it_speaks [];
        check_says_for_which_regime_it_speaks [];
        check_warns_of_commands_without_a_program_to_run [];
        check_warns_of_a_working_directory_in_no_root_with_the_line_that_shows_it [];
        check_warns_once_of_a_deny_that_freezes_directories [];
        check_names_the_presets_that_nobody_wrote [];
        check_counts_long_lists_of_variables [];
        warnings_about_the_config_come_from_check_and_mcp_and_not_before_each_run [];
        mcp_refuses_at_its_start_a_deny_that_the_regime_cannot_hold [];
        check_says_that_a_config_found_here_is_not_trusted_yet [];
    }

    fn write(world: &Fixture, text: &str) -> String {
        let file = world.write(world.base().join("agent.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn check(world: &Fixture, args: &[&str]) -> Run {
        world.stockade(&[&["check"], args].concat()).output()
    }

    fn warnings(world: &Fixture, file: &str) -> Vec<String> {
        let report: Value = serde_json::from_str(&check(world, &["--json", file]).exits(0).out()).unwrap();
        let warnings = report["warnings"].as_array().unwrap();
        warnings.iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    }

    /// The first line of what was said.
    fn words(run: &Run) -> String {
        run.err().lines().next().unwrap_or_default().to_owned()
    }

    fn root(world: &Fixture, more: &str) -> String {
        format!(
            "extends: [system]\nsandbox:\n  paths: {{w: {{root: {}, mode: rw, write_approval: false{more}}}}}\n",
            world.workspace().display()
        )
    }

    fn secret(world: &Fixture) {
        world.write("src/secret", "s");
    }

    fn check_refuses_what_run_refuses_and_in_its_words(world: &Fixture) {
        secret(world);
        let open = "shell: {default: {approval: none}}\n";
        let deny = root(world, ", deny: [src/secret]");
        let landlock = world.backend == Backend::Landlock;
        for (text, refused) in [
            (format!("{deny}{open}"), landlock),
            (format!("{deny}  deny_fallback: decompose\n{open}"), false),
            (
                format!("{}  deny_fallback: refuse\n{open}", root(world, ", deny: ['*.pem']")),
                true,
            ),
            (format!("{}{open}", root(world, ", deny: ['*.pem']")), landlock),
            (format!("{}  protect_fallback: refuse\n{open}", root(world, "")), true),
            (format!("{}  protect: prevent\n{open}", root(world, "")), landlock),
            (
                format!(
                    "{}shell: {{default: {{approval: none}}, network: {{allow: ['a.example:443']}}}}\n",
                    root(world, "")
                ),
                landlock,
            ),
            (
                format!("extends: [system]\nsandbox: {{base: {{read: [/]}}}}\n{open}"),
                true,
            ),
            (format!("{}{open}", root(world, "")), false),
        ] {
            let file = write(world, &text);
            let checked = check(world, &[&file]);
            let place = world.workspace();
            let args = ["run", "--config", &file, "--cwd", place.to_str().unwrap(), "--", "true"];
            let ran = world.stockade(&args).output();
            let codes = if refused { (125, 125) } else { (0, 0) };
            let context = format!("{text}: {}\n{}", checked.err(), ran.err());
            assert_eq!((checked.code(), ran.code()), codes, "{context}");
            if refused {
                assert!(
                    words(&checked).len() > 40 && ran.err().contains(&words(&checked)),
                    "{context}"
                );
            }
        }
    }

    fn a_refusal_says_for_which_regime_it_speaks(world: &Fixture) {
        let file = write(world, &format!("{}  protect_fallback: refuse\n", root(world, "")));
        let refused = check(world, &[&file]).exits(125).err();
        let named = format!("this is of `backend: {}` on this machine", world.backend.name());
        assert!(refused.contains(&named), "{refused}");
        // The twin: what is wrong in any regime.
        let file = write(world, "extends: [sistem]\n");
        let refused = check(world, &[&file]).exits(125).err();
        assert!(!refused.contains("on this machine"), "{refused}");
    }

    fn check_says_for_which_regime_it_speaks(world: &Fixture) {
        let file = write(world, &root(world, ""));
        let regime = match world.backend {
            Backend::Landlock => "landlock",
            _ => "namespaces",
        };
        let said = check(world, &[&file]).ok();
        let line = format!("  regime: {regime}, as `backend: {}` says\n", world.backend.name());
        assert!(said.contains(&line), "{said}");
        let report: Value = serde_json::from_str(&check(world, &["--json", &file]).exits(0).out()).unwrap();
        assert_eq!(report["regime"], regime);
        // The twin: nothing was asked for.
        let auto = world.bare(world.binary()).args(["check", &file]).output().ok();
        assert!(auto.contains(", which `auto` chooses on this machine"), "{auto}");
    }

    fn check_warns_of_commands_without_a_program_to_run(world: &Fixture) {
        let warning = "commands have no program to run";
        let none = root(world, "").replace("[system]", "[]");
        for (text, warned) in [
            (none.clone(), true),
            (none.replace("mode: rw", "mode: rw, execute: true"), false),
            (root(world, ""), false),
            // No command is offered.
            (format!("{none}tools: {{shell: {{approval: deny}}}}\n"), false),
        ] {
            let file = write(world, &text);
            let all = warnings(world, &file);
            let found = all.iter().filter(|one| one.contains(warning)).count();
            assert_eq!(found, usize::from(warned), "{text}: {all:?}");
        }
        let file = write(world, &none.replace("mode: rw", "mode: rw, execute: true"));
        let all = warnings(world, &file).join("\n");
        assert!(all.contains("shell lines have no shell to run them"), "{all}");
    }

    fn check_warns_of_a_working_directory_in_no_root_with_the_line_that_shows_it(world: &Fixture) {
        let other = world.base().join("other");
        fs::create_dir(&other).unwrap();
        let text = format!(
            "extends: [system]\nsandbox: {{paths: {{other: {{root: {}}}}}}}\n",
            other.display()
        );
        let file = write(world, &text);
        let line = format!("`here: {{root: {}, mode: ro}}`", world.workspace().display());
        let all = warnings(world, &file);
        let unseen = |all: &[String]| all.iter().filter(|one| one.contains("is in no root")).count();
        assert_eq!(unseen(&all), 1, "{all:?}");
        assert!(all.join("\n").contains(&line), "{all:?}");
        // Following it works.
        let followed = text.replace("{paths: {", &format!("{{paths: {{{}, ", line.trim_matches('`')));
        let file = write(world, &followed);
        assert_eq!(unseen(&warnings(world, &file)), 0);
    }

    fn check_warns_once_of_a_deny_that_freezes_directories(world: &Fixture) {
        secret(world);
        world.write("src/other", "o");
        let freezes = |deny: &str| {
            let decompose = match world.backend {
                Backend::Landlock => "  deny_fallback: decompose\n",
                _ => "",
            };
            let text = format!("{}{decompose}", root(world, &format!(", deny: [{deny}]")));
            let file = write(world, &text);
            let all = warnings(world, &file);
            all.into_iter()
                .filter(|one| one.contains("freezes directories"))
                .collect::<Vec<_>>()
        };
        let directory = world.workspace().join("src").display().to_string();
        for deny in ["src/secret", "src/secret, src/other"] {
            let found = freezes(deny);
            assert_eq!(found.len(), 1, "{deny}: {found:?}");
            assert!(
                found[0].contains(&directory) && found[0].contains("agent.yaml:3"),
                "{found:?}"
            );
        }
        if world.backend != Backend::Landlock {
            // The twins: no directory is on the way.
            assert_eq!(freezes("./src"), [""; 0]);
            assert_eq!(freezes("secret"), [""; 0]);
            is_so(world);
        }
    }

    /// What the warning says is so, and so is what its hint says.
    fn is_so(world: &Fixture) {
        for (deny, moved) in [("src/secret", false), ("secret", true)] {
            let text = format!(
                "{}shell: {{default: {{approval: none}}}}\n",
                root(world, &format!(", deny: [{deny}]"))
            );
            let file = write(world, &text);
            let run = world
                .stockade(&["run", "--config", &file, "-c", "mv src moved && mv moved src"])
                .output();
            assert_eq!(run.code() == 0, moved, "{deny}: {}", run.err());
        }
    }

    fn check_names_the_presets_that_nobody_wrote(world: &Fixture) {
        let line = "  presets: system, toolchains (by default: the config does not say `extends`)\n";
        let text = root(world, "");
        let file = write(world, &text);
        assert!(!check(world, &[&file]).ok().contains("presets:"));
        let file = write(world, text.trim_start_matches("extends: [system]\n"));
        let said = check(world, &[&file]).ok();
        assert!(said.contains(line), "{said}");
    }

    fn check_counts_long_lists_of_variables(world: &Fixture) {
        let file = write(
            world,
            &format!("{}shell: {{env: {{pass: [OWN_TOKEN]}}}}\n", root(world, "")),
        );
        let short = check(world, &[&file]).ok();
        assert!(
            short.contains(" variables, if they are set (`-v` lists them)"),
            "{short}"
        );
        for long in [&["-v", file.as_str()][..], &["--json", &file]] {
            let said = check(world, long).exits(0).out();
            assert!(said.contains("OWN_TOKEN") && said.contains("SSL_CERT_FILE"), "{said}");
        }
        // The twin: a short list is no riddle.
        let text = root(world, "").replace("[system]", "[]");
        let file = write(world, &format!("{text}shell: {{env: {{pass: [OWN_TOKEN]}}}}\n"));
        let said = check(world, &[&file]).ok();
        assert!(said.contains("  env_passed: OWN_TOKEN\n"), "{said}");
    }

    fn warnings_about_the_config_come_from_check_and_mcp_and_not_before_each_run(world: &Fixture) {
        let warning = "does not answer what root";
        let text = root(world, "").replace("write_approval: false", "write_approval: true");
        let file = write(world, &format!("{text}tools: {{write_file: {{approval: none}}}}\n"));
        let named: &[&str] = &["--config", &file];
        let said = |args: &[&str]| {
            let run = world.stockade(args).output();
            run.out() + &run.err()
        };
        for (args, warned) in [
            (vec!["check", &file], 1),
            (vec!["check", "-q", &file], 0),
            ([&["mcp"], named].concat(), 1),
            ([&["mcp", "-q"], named].concat(), 0),
            ([&["run"], named, &["--", "true"]].concat(), 0),
            ([&["call"], named].concat(), 0),
        ] {
            let said = said(&args);
            assert_eq!(said.matches(warning).count(), warned, "{args:?}: {said}");
        }
    }

    fn mcp_refuses_at_its_start_a_deny_that_the_regime_cannot_hold(world: &Fixture) {
        secret(world);
        let text = root(world, ", deny: [src/secret]");
        let landlock = world.backend == Backend::Landlock;
        let file = write(world, &text);
        let served = world.stockade(&["mcp", "--config", &file]).output();
        assert_eq!(served.code(), if landlock { 125 } else { 0 }, "{}", served.err());
        assert_eq!(
            served.err().contains("cannot forbid part of a granted tree"),
            landlock,
            "{}",
            served.err()
        );
        assert!(served.err().contains(&words(&check(world, &[&file]))));
        // The twin, whose config asks for a server that refuses each call.
        let file = write(world, &format!("{text}  os_sandbox_fallback: refuse_tools\n"));
        let served = world.stockade(&["mcp", "--config", &file]).output().exits(0);
        assert_eq!(
            served.err().contains("every call will be refused"),
            landlock,
            "{}",
            served.err()
        );
    }

    fn check_says_that_a_config_found_here_is_not_trusted_yet(world: &Fixture) {
        let here: &Path = &world.workspace();
        fs::write(here.join("stockade.yaml"), "extends: [system]\n").unwrap();
        let is_told = |args: &[&str]| check(world, args).ok().contains("  trusted: no");
        assert!(is_told(&[]));
        // The twins: a config that is named needs none.
        assert!(!is_told(&["stockade.yaml"]));
        world.stockade(&["trust"]).output().ok();
        assert!(!is_told(&[]));
    }
}
