//! Ceilings: what a confined command really gets under one.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::Value;

    use crate::common::{Actor, Backend, Fixture, Run, as_root_and_as_user};

    as_root_and_as_user! {
        a_write_that_a_ceiling_does_not_give_is_denied_by_the_kernel [];
        an_os_profile_in_the_project_holds_and_stays [];
        a_directory_that_holds_an_os_profile_cannot_be_swapped [];
        trust_is_listed_and_forgotten [];
    }

    fn world() -> Fixture {
        Fixture::new(Actor::invoker(), Backend::Landlock)
    }

    #[track_caller]
    fn says(run: &Run, words: &[&str]) {
        for word in words {
            assert!(run.err().contains(word), "`{word}` is not in: {}", run.err());
        }
    }

    /// A config whose only root is the workspace, writable, and which asks nothing. The root is its sixth line.
    fn config(world: &Fixture, more: &str) -> String {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n{more}  paths:\n    w: {{root: {}, mode: rw, \
             write_approval: false}}\nshell: {{default: {{allowed: true, approval: none}}}}\n",
            world.workspace().display()
        );
        path(&world.write(world.outside().join("agent.yaml"), text))
    }

    /// A ceiling under which the workspace may be read.
    fn read_only(world: &Fixture, name: &str, more: &str) -> PathBuf {
        let text = format!(
            "extends: [system]\nsandbox:\n  paths:\n    seen: {{root: {}}}\n{more}",
            world.workspace().display()
        );
        world.write(world.outside().join(name), text)
    }

    fn path(path: &std::path::Path) -> String {
        path.to_str().unwrap().to_owned()
    }

    fn a_write_that_a_ceiling_does_not_give_is_denied_by_the_kernel(world: &Fixture) {
        let config = config(world, "");
        let ceiling = path(&read_only(world, "it's \"most\".yaml", ""));
        world.write("there", "kept\n");
        let line = "cat there && echo new > made";
        let under = world
            .stockade(&["run", "--config", &config, "--ceiling", &ceiling, "-c", line])
            .output();
        assert_ne!(under.code(), 0, "{}", under.err());
        assert_eq!(under.out(), "kept\n");
        assert!(!world.workspace().join("made").exists());
        says(
            &under,
            &[
                "ermission denied",
                "agent.yaml:5: write ",
                "not given by the ceiling ",
                "most\\\".yaml:4\n",
            ],
        );
        // The twin.
        world.stockade(&["run", "--config", &config, "-c", line]).output().ok();
        assert_eq!(fs::read_to_string(world.workspace().join("made")).unwrap(), "new\n");
        // Flags and presets are cut alike, and quiet is quiet.
        let rw = path(&world.workspace());
        for policy in [&["--rw", &rw][..], &["--preset", "workspace-write"], &[]] {
            let mut args = vec!["run", "-q", "--ceiling", &ceiling];
            args.extend(policy);
            args.extend(["-c", "echo again > made"]);
            let run = world.stockade(&args).output();
            assert_ne!(run.code(), 0, "{policy:?}");
            assert!(!run.err().contains("ceiling"), "{policy:?}: {}", run.err());
        }
        assert_eq!(fs::read_to_string(world.workspace().join("made")).unwrap(), "new\n");
    }

    fn an_os_profile_in_the_project_holds_and_stays(world: &Fixture) {
        let text = format!(
            "extends: [system]\nsandbox:\n  paths: {{w: {{root: {0}, mode: rw}}, locked: {{root: {0}/locked}}}}\n",
            world.workspace().display()
        );
        world.write("locked/there", "kept\n");
        let profile = world.write("most.yaml", &text);
        let config = config(world, &format!("  os_profile: {}\n", profile.display()));
        let line = "echo x > free; echo x > locked/there; rm most.yaml; echo 'sandbox: {paths: {all: {root: /, mode: rw}}}' > most.yaml";
        let run = world
            .stockade(&["run", "--config", &config, "--deny-fallback", "decompose", "-c", line])
            .output();
        assert_eq!(
            fs::read_to_string(world.workspace().join("locked/there")).unwrap(),
            "kept\n",
            "{}",
            run.err()
        );
        assert_eq!(fs::read_to_string(&profile).unwrap(), text, "{}", run.err());
    }

    fn a_directory_that_holds_an_os_profile_cannot_be_swapped(world: &Fixture) {
        let text = format!(
            "extends: [system]\nsandbox: {{paths: {{w: {{root: {}, mode: rw}}}}}}\n",
            world.workspace().display()
        );
        let profile = world.write("deep/most.yaml", &text);
        let config = config(world, &format!("  os_profile: {}\n", profile.display()));
        let line = "mv deep old; mkdir deep; echo 'sandbox: {paths: {all: {root: /, mode: rw}}}' > deep/most.yaml; echo x > free";
        let run = world.stockade(&["run", "--config", &config, "-c", line]).output();
        assert_eq!(fs::read_to_string(&profile).unwrap(), text, "{}", run.err());
        assert!(world.workspace().join("free").exists(), "{}", run.err());
    }

    #[test]
    fn no_flag_goes_beyond_a_ceiling() {
        let world = world();
        let text = format!(
            "extends: [system]\nsandbox: {{paths: {{w: {{root: {}, mode: rw, execute: true}}}}}}\nshell: {{env: {{pass: \
             [GIVEN]}}}}\napproval: {{mode: strict}}\n",
            world.workspace().display()
        );
        let ceiling = path(&world.write(world.outside().join("most.yaml"), text));
        let rw = path(&world.workspace());
        let open = [
            "run",
            "--ceiling",
            &ceiling,
            "--rw",
            &rw,
            "--net",
            "on",
            "--env",
            "GIVEN=1",
            "--env",
            "KEPT=1",
        ];
        let run = world.stockade(&open).args(["-c", "echo $GIVEN$KEPT."]).output().ok();
        assert_eq!(run, "1.\n");
        let run = world.stockade(&open).args(["-c", "true"]).output();
        says(&run, &["variable KEPT: not given", "--net: network full: not given"]);
        let asking = world.write(
            world.outside().join("asking.yaml"),
            format!(
                "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw}}}}}}\n",
                world.workspace().display()
            ),
        );
        let asking = path(&asking);
        let yes = ["run", "--config", &asking, "--mode", "approve_all"];
        let denied = world.stockade(&yes).args(["--ceiling", &ceiling, "-c", "id"]).output();
        assert_eq!(denied.code(), 126, "{}", denied.err());
        says(
            &denied,
            &[
                "--mode: `approval.mode: approve_all`: not given by the ceiling",
                "most.yaml:4\n",
            ],
        );
        world.stockade(&yes).args(["-c", "true"]).output().ok();
    }

    #[test]
    fn a_write_that_a_ceiling_wants_asked_about_needs_a_yes() {
        let world = world();
        let text = format!(
            "extends: [system]\nsandbox: {{paths: {{w: {{root: {}, mode: rw, write_approval: true}}}}}}\n",
            world.workspace().display()
        );
        let ceiling = path(&world.write(world.outside().join("most.yaml"), text));
        let run = |config: &str, more: &[&str]| {
            let args = ["run", "--config", config, "--ceiling", &ceiling];
            world.stockade(&args).args(more).args(["-c", "echo x > made"]).output()
        };
        let free = run(&config(&world, ""), &[]);
        assert_ne!(free.code(), 0, "{}", free.err());
        says(&free, &["without a question: not given by the ceiling"]);
        let asks = format!(
            "extends: [system]\nsandbox: {{protect_fallback: undo, paths: {{w: {{root: {}, mode: rw}}}}}}\n",
            world.workspace().display()
        );
        let asks = path(&world.write(world.outside().join("asks.yaml"), asks));
        run(&asks, &["--mode", "approve_all"]).ok();
        assert!(world.workspace().join("made").exists());
    }

    #[test]
    fn a_ceiling_that_cannot_be_held_is_125() {
        let world = world();
        let missing = path(&world.outside().join("missing.yaml"));
        let run = world.stockade(&["run", "--ceiling", &missing, "--", "true"]).output();
        assert_eq!(run.code(), 125);
        says(
            &run,
            &["missing.yaml cannot be held to", "nothing is started without it"],
        );
        let rules = path(&world.write(world.outside().join("rules.yaml"), "shell: {rules: [{pattern: rm}]}\n"));
        let run = world.stockade(&["run", "--ceiling", &rules, "--", "true"]).output();
        assert_eq!(run.code(), 125);
        says(&run, &["rules.yaml:1:", "`shell.rules` says nothing in a ceiling"]);
    }

    #[test]
    fn check_names_every_cut() {
        let world = world();
        let config = config(&world, "");
        let ceiling = path(&read_only(&world, "most.yaml", "shell: {network: false}\n"));
        let text = world.stockade(&["check", &config, "--ceiling", &ceiling]).output().ok();
        assert!(
            text.contains("warning: ") && text.contains("agent.yaml:5: write "),
            "{text}"
        );
        let json = world
            .stockade(&["check", "--json", &config, "--ceiling", &ceiling])
            .output()
            .ok();
        let json: Value = serde_json::from_str(&json).unwrap();
        let cut = &json["cuts"][0];
        assert_eq!(cut["ceiling"], ceiling);
        assert!(cut["origin"].as_str().unwrap().ends_with("agent.yaml:5"), "{json}");
        assert!(cut["clause"].as_str().unwrap().ends_with("most.yaml:4"), "{json}");
        let text = world.stockade(&["check", &config]).output().ok();
        assert!(!text.contains("warning"), "{text}");
    }

    #[test]
    fn a_run_tells_a_few_cuts_and_counts_the_rest() {
        let world = world();
        let ceiling = path(&world.write(world.outside().join("most.yaml"), "extends: [system]\n"));
        let root = |i: u32| {
            world.write(format!("r{i}/x"), "");
            format!("    r{i}: {{root: {}/r{i}}}\n", world.workspace().display())
        };
        let roots: String = (0..6).map(root).collect();
        let text = format!("extends: [system]\nsandbox:\n  paths:\n{roots}");
        let config = path(&world.write(world.outside().join("many.yaml"), text));
        let args = [
            "run",
            "--config",
            &config,
            "--ceiling",
            &ceiling,
            "--cwd",
            "/usr",
            "--mode",
            "approve_all",
        ];
        let run = world.stockade(&args).args(["--", "true"]).output();
        assert_eq!(
            run.err().matches("not given by the ceiling").count(),
            3,
            "{}",
            run.err()
        );
        says(&run, &["and 3 more that a ceiling does not give"]);
    }

    fn trust_is_listed_and_forgotten(world: &Fixture) {
        let file = world.write("stockade.yaml", "extends: [system]\nsandbox: {paths: {w: {root: .}}}\n");
        let listed = || world.stockade(&["trust", "--list"]).output().ok();
        let line = |state: &str| format!("{state} {}\n", file.display());
        world.stockade(&["trust"]).output().ok();
        assert!(listed().contains(&line("trusted")));
        fs::write(&file, "sandbox: {}\n").unwrap();
        assert!(listed().contains(&line("changed")));
        fs::remove_file(&file).unwrap();
        let json: Value = serde_json::from_str(&world.stockade(&["trust", "--list", "--json"]).output().ok()).unwrap();
        let own = |entry: &&Value| entry["file"] == path(&file);
        assert_eq!(
            json["configs"].as_array().unwrap().iter().find(own).unwrap()["state"],
            "gone"
        );
        world.stockade(&["trust", "--forget"]).output().ok();
        assert!(!listed().contains(&line("gone")));
        let again = world.stockade(&["trust", "--forget"]).output();
        assert_eq!(again.code(), 125);
        says(&again, &["was not trusted", "--list"]);
    }
}
