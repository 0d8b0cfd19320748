//! Flags without a config: on which preset they stand, and what is refused.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::Value;

    use crate::common::{Actor, Backend, Fixture, Run};

    fn world() -> Fixture {
        Fixture::new(Actor::invoker(), Backend::Landlock)
    }

    #[track_caller]
    fn says(run: &Run, words: &[&str]) {
        let text = String::from_utf8_lossy(&run.stderr);
        for word in words {
            assert!(text.contains(word), "`{word}` is not in: {text}");
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 3, "{lines} lines: {text}");
    }

    fn table(world: &Fixture, flags: &[&str]) -> Value {
        let args = [&["profile", "show", "--json"], flags].concat();
        serde_json::from_str(&world.stockade(&args).output().ok()).unwrap()
    }

    #[test]
    fn flags_that_only_change_it_show_the_same_files_as_the_preset() {
        let world = world();
        let preset = table(&world, &[]);
        assert!(preset["files"].to_string().contains("preset workspace-write"));
        for flags in [
            &["--net", "on"][..],
            &["--net", "off"],
            &["--net", "example.org:443"],
            &["--strict"],
            &["--backend", "auto", "--deny-fallback", "decompose"],
        ] {
            let changed = table(&world, flags);
            assert_eq!(changed["files"], preset["files"], "{flags:?}");
            assert_eq!(changed["environment"], preset["environment"], "{flags:?}");
        }
        assert_eq!(table(&world, &["--net", "on"])["network"], "full");
    }

    #[test]
    fn a_deny_is_listed_with_its_flag() {
        let world = world();
        world.write("secrets/key", "x");
        let denies = table(&world, &["--deny", "secrets"])["denies"].to_string();
        assert!(denies.contains("--deny secrets"), "{denies}");
        let explained = world
            .stockade(&["profile", "explain", "secrets/key", "read", "--deny", "secrets"])
            .output()
            .exits(1);
        assert!(explained.out().contains("--deny secrets"), "{}", explained.out());
    }

    #[test]
    fn a_ceiling_bounds_the_network_of_a_flag() {
        let world = world();
        world.write(
            "ceiling.yaml",
            "sandbox: {paths: {w: {root: ., mode: rw, execute: true}}}\n",
        );
        assert_eq!(
            table(&world, &["--net", "on", "--ceiling", "ceiling.yaml"])["network"],
            "off"
        );
    }

    #[test]
    fn the_home_is_no_workspace_whatever_the_flags() {
        let world = world();
        for flags in [&[][..], &["--net", "on"], &["--strict"], &["--timeout", "5s"]] {
            let args = [&["run"], flags, &["--", "true"]].concat();
            let run = world.stockade(&args).cwd(world.home()).output().exits(125);
            assert!(run.err().contains("cannot be the workspace"), "{}", run.err());
        }
    }

    #[test]
    fn a_deny_that_denies_nothing_or_everything_is_refused() {
        let world = world();
        world.write("a/file", "x");
        symlink("a", world.workspace().join("door")).unwrap();
        for (path, words) in [
            ("", &["--deny", "a value is required"][..]),
            ("missing", &["--deny missing", "does not exist"]),
            (".", &["--deny .", "a deny always wins"]),
            ("..", &["--deny ..", "a deny always wins"]),
            ("door", &["--deny door", "symlink", "re-point"]),
            ("a\nb\"'", &["a\\nb\"'", "does not exist"]),
        ] {
            let run = world.stockade(&["run", "--deny", path, "--", "true"]).output();
            says(&run.exits(125), words);
        }
    }

    #[test]
    fn a_named_preset_or_config_is_not_denied_through_a_link_of_the_workspace_either() {
        let world = world();
        world.write("a/file", "x");
        symlink("a", world.workspace().join("door")).unwrap();
        world.write("agent.yaml", "sandbox: {paths: {w: {root: ., mode: rw}}}\n");
        for whose in [["--preset", "workspace-write"], ["--config", "agent.yaml"]] {
            for flag in ["--deny", "--ro"] {
                let run = [&["run"], &whose[..], &[flag, "door", "--", "true"]].concat();
                let run = world.stockade(&run).output().exits(125);
                assert!(run.err().contains("name where it leads"), "{}", run.err());
            }
        }
    }

    #[test]
    fn flags_that_change_the_preset_narrow_a_config_that_lies_here() {
        let world = world();
        let text =
            "sandbox: {paths: {w: {root: ./w, mode: rw, write_approval: false}}}\nshell: {default: {approval: none}}\n";
        world.write("w/file", "x");
        world.write("stockade.yaml", text);
        let run = |flags: &[&str], line: &str| {
            let args = [&["run"], flags, &["-c", line]].concat();
            world.stockade(&args).output()
        };
        // What lies here and is not trusted is neither used nor passed over.
        for flags in [&["--net", "on"][..], &["--net", "off"], &["--deny", "w"]] {
            let refused = run(flags, "true").exits(125);
            assert!(refused.err().contains("stockade trust"), "{}", refused.err());
        }
        world.stockade(&["trust"]).output().ok();
        let forget = || world.stockade(&["trust", "--forget"]).output().ok();
        let outcome = std::panic::catch_unwind(|| {
            run(&["--net", "off"], "cat w/file").exits(0);
            run(&["--deny", "w"], "cat w/file").assert_denied();
            run(&["--net", "off"], "cat stockade.yaml").assert_denied();
            let widened = run(&["--net", "on"], "true").exits(125);
            says(&widened, &["cannot widen what a config says", "network: true"]);
        });
        forget();
        outcome.unwrap();
    }

    #[test]
    fn trust_names_the_directory_it_is_started_in() {
        let world = world();
        let (here, out) = (world.workspace(), world.workspace().join("out"));
        fs::create_dir(&out).unwrap();
        let file = world.write(
            "stockade.yaml",
            "sandbox: {paths: {here: {root: $CWD, mode: rw}, out: {root: $CWD/out}}}\n",
        );
        // Whoever trusts it from elsewhere is shown where it will be used.
        let named = file.to_str().unwrap();
        let text = world.stockade(&["trust", named]).cwd(world.outside()).output().ok();
        world.stockade(&["trust", "--forget"]).output().ok();
        let lines = [
            format!("here: {} (`$CWD`, the directory it is started in)", here.display()),
            format!(
                "out: {} (`$CWD/out`, told from the directory it is started in)",
                out.display()
            ),
        ];
        for line in lines {
            assert!(text.contains(&line), "`{line}` is not in: {text}");
        }
    }

    #[test]
    fn what_a_file_that_is_extended_grants_is_shown_with_that_file() {
        let world = world();
        world.write("shared/data/there", "x");
        let base = world.write(
            "shared/base.yaml",
            "sandbox: {paths: {data: {root: ./data}}}\nshell:\n  netwrk: true\n",
        );
        world.write("agent.yaml", "extends: [./shared/base.yaml]\n");
        let named = |line: &str| format!("{}:{line}", base.display());
        for subcommand in [
            &["check", "agent.yaml"][..],
            &["profile", "show", "--config", "agent.yaml"],
        ] {
            let wrong = world.stockade(subcommand).output().exits(125);
            assert!(wrong.err().contains(&named("3:3")), "{}", wrong.err());
        }
        fs::write(&base, "sandbox: {paths: {data: {root: ./data}}}\n").unwrap();
        let shown = world
            .stockade(&["profile", "show", "--config", "agent.yaml"])
            .output()
            .ok();
        assert!(shown.contains(&named("1")), "{shown}");
        let checked = world.stockade(&["check", "agent.yaml"]).output().ok();
        assert!(checked.contains(&format!("files: {}", base.display())), "{checked}");
        // What is trusted is more than the file that lies here.
        fs::rename(
            world.workspace().join("agent.yaml"),
            world.workspace().join("stockade.yaml"),
        )
        .unwrap();
        let trusted = world.stockade(&["trust"]).output().ok();
        fs::write(&base, "sandbox: {paths: {data: {root: ./data, mode: rw}}}\n").unwrap();
        let changed = world.stockade(&["run", "--", "true"]).output();
        let listed = world.stockade(&["trust", "--list"]).output().ok();
        world.stockade(&["trust", "--forget"]).output().ok();
        assert!(trusted.contains(&format!("files: {}", base.display())), "{trusted}");
        assert!(changed.exits(125).err().contains("a file it names has changed"));
        let line = format!("changed {}/stockade.yaml", world.workspace().display());
        assert!(listed.contains(&line), "{listed}");
    }

    #[test]
    fn a_named_preset_is_not_widened_and_the_message_says_how_to_open_the_network() {
        let world = world();
        let run = |preset: &str| {
            let args = ["run", "--preset", preset, "--net", "on", "--", "true"];
            world.stockade(&args).output().exits(125)
        };
        says(
            &run("workspace-write"),
            &["cannot widen what a preset says", "leave out `--preset"],
        );
        says(
            &run("system"),
            &["cannot widen what a preset says", "extends: [system]"],
        );
    }

    #[test]
    fn a_learned_config_has_what_the_flags_changed() {
        let world = world();
        world.write("secrets/key", "x");
        let out = world.outside().join("new.yaml");
        let args = [
            "learn",
            "--deny",
            "secrets",
            "--net",
            "off",
            "--deny-fallback",
            "decompose",
            "--yes",
            "--out",
        ];
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).chain([out.as_os_str()]).collect();
        let words: Vec<&str> = args.iter().map(|word| word.to_str().unwrap()).collect();
        let run = world.stockade(&[&words[..], &["--", "true"]].concat()).output();
        assert!(run.code() == 0, "{}", run.err());
        let Ok(text) = fs::read_to_string(&out) else {
            // Nothing was to be learned.
            return;
        };
        assert!(
            text.contains("extends: [workspace-write]") && text.contains("secrets"),
            "{text}"
        );
    }
}
