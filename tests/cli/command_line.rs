//! The command line as a person meets it: every subcommand, every flag, every refusal and what it says.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use crate::common::{Actor, Backend, Fixture, Run, SECRET, as_root_and_as_user};

    as_root_and_as_user! {
        a_found_config_must_be_trusted_and_trusted_again_after_each_change [];
        a_found_config_that_is_a_link_is_refused [];
        a_named_config_needs_no_trust [];
        a_config_inside_its_own_root_is_put_back [];
        names_that_are_not_text_work [];
    }

    fn world() -> Fixture {
        Fixture::new(Actor::invoker(), Backend::Landlock)
    }

    fn json(run: &Run) -> Value {
        serde_json::from_str(&run.out()).unwrap_or_else(|error| panic!("{error}: {} {}", run.out(), run.err()))
    }

    /// Fails unless standard error has every word.
    #[track_caller]
    fn says(run: &Run, words: &[&str]) {
        for word in words {
            assert!(run.err().contains(word), "`{word}` is not in: {}", run.err());
        }
    }

    /// A config that grants `roots` as lines of `paths:` and asks nothing.
    fn config(world: &Fixture, name: &str, roots: &str, more: &str) -> String {
        let text = format!(
            "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n{roots}\nshell:\n  default: {{allowed: true, \
             approval: none}}\n{more}"
        );
        world
            .write(world.outside().join(name), text)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// One whose only root is the workspace, writable.
    fn open_config(world: &Fixture, more: &str) -> String {
        let root = format!(
            "    w: {{root: {}, mode: rw, write_approval: false}}",
            world.workspace().display()
        );
        config(world, "open.yaml", &root, more)
    }

    // Help, completions, manual.

    #[test]
    fn every_subcommand_has_help_with_an_example() {
        let world = world();
        let listed = world.stockade(&["--help"]).output().ok();
        for subcommand in [
            "run",
            "check",
            "init",
            "schema",
            "trust",
            "doctor",
            "profile",
            "audit",
            "completions",
            "man",
        ] {
            assert!(listed.contains(&format!("\n  {subcommand}")), "{listed}");
            let help = world.stockade(&[subcommand, "--help"]).output().ok();
            assert!(help.contains("Example"), "{subcommand}: {help}");
            assert!(
                help.contains(&format!("  stockade {subcommand}")),
                "{subcommand}: {help}"
            );
        }
    }

    #[test]
    fn completions_are_scripts_that_the_shell_accepts() {
        let world = world();
        for shell in ["bash", "zsh", "fish"] {
            let script = world.stockade(&["completions", shell]).output().ok();
            assert!(
                script.contains("deny-fallback") && script.contains("doctor"),
                "{shell}: {script}"
            );
        }
        let script = world.stockade(&["completions", "bash"]).output().ok();
        let script = world.write("completions.bash", script);
        world
            .bare("/bin/bash")
            .args([OsStr::new("-n"), script.as_os_str()])
            .output()
            .ok();
    }

    #[test]
    fn the_manual_is_printed_and_a_page_for_each_subcommand_written() {
        let world = world();
        let page = world.stockade(&["man"]).output().ok();
        assert!(page.contains(".TH stockade 1"), "{page}");
        fs::create_dir(world.base().join("man")).unwrap();
        let folder = world.base().join("man");
        let owned = world.write(folder.join("mine"), "");
        std::os::unix::fs::chown(&folder, None, None).unwrap();
        world
            .stockade(&["man", "--out", folder.to_str().unwrap()])
            .output()
            .ok();
        fs::remove_file(owned).unwrap();
        assert!(folder.join("stockade-run.1").exists());
    }

    // Bad usage.

    #[test]
    fn bad_usage_is_125_and_says_what_is_wrong() {
        let world = world();
        for (args, word) in [
            (&[][..], "Usage"),
            (&["frobnicate"], "frobnicate"),
            (&["run"], "(-- ARGV... | -c LINE)"),
            (&["run", "-c", "true", "--", "true"], "cannot be used with"),
            (&["run", "--timeout", "soon", "--", "true"], "soon"),
            (&["run", "--env", "NOVALUE", "--", "true"], "NAME=VALUE"),
            (&["run", "--env", "=x", "--", "true"], "NAME=VALUE"),
            (&["run", "--mode", "maybe", "--", "true"], "approve_all"),
            (&["run", "--backend", "seatbelt", "--", "true"], "not offered"),
            (&["run", "--preset", "nonsense", "--", "true"], "nonsense"),
            (
                &["run", "--preset", "system", "--config", "x", "--", "true"],
                "cannot be used with",
            ),
            (&["run", "--cwd", "/nonexistent", "--", "true"], "/nonexistent"),
            (&["run", "--rw", "/nonexistent", "--", "true"], "/nonexistent"),
            (&["check", "/nonexistent.yaml"], "/nonexistent.yaml"),
            (&["check"], "stockade init"),
            (&["trust"], "stockade init"),
            (&["completions", "tcl"], "bash"),
        ] {
            let run = world.bare(world.binary()).args(args).output().exits(125);
            assert!(run.err().contains(word), "{args:?}: {}", run.err());
            assert_eq!(run.out(), "", "{args:?}");
        }
    }

    #[test]
    fn a_wrong_net_is_refused_clearly() {
        let world = world();
        let run = |flags: &[&str]| {
            let args = [&["run"], flags, &["-c", "echo ran"]].concat();
            world.stockade(&args).output().exits(125)
        };
        for word in [
            "yes",
            "TRUE",
            "https://example.org",
            "a:0",
            "*a",
            "0x7f.1",
            "10.1.1.1/8",
        ] {
            says(&run(&["--net", word]), &[word, "`off`, `on`, or HOST:PORTS"]);
        }
        says(&run(&["--net", "off", "--net", "example.org"]), &["stand alone"]);
        says(&run(&["--net", "a.example", "--net", "on"]), &["stand alone"]);
    }

    #[test]
    fn a_list_of_hosts_is_refused_where_it_cannot_be_held() {
        let world = world();
        let config = open_config(&world, "  network: {allow: [example.org:443]}\n");
        let run = world
            .stockade(&["run", "--config", &config, "-c", "echo ran"])
            .output()
            .exits(125);
        says(&run, &["example.org:443", "landlock"]);
        assert_eq!(run.out(), "");
    }

    // check, init, schema.

    #[test]
    fn check_accepts_a_good_config_and_says_what_it_grants() {
        let world = world();
        let config = open_config(&world, "");
        let said = world.stockade(&["check", &config]).output().ok();
        assert!(
            said.contains(world.workspace().to_str().unwrap()) && said.ends_with(": ok\n"),
            "{said}"
        );
        let run = world.stockade(&["check", "--json", &config]).output().exits(0);
        assert_eq!(json(&run)["ok"], true);
    }

    #[test]
    fn check_shows_the_line_of_each_mistake_and_a_hint() {
        let world = world();
        for (text, place, words) in [
            (
                "extends: [system]\nsandbox:\n  paths:\n    w: {root: ., sufixes: [.md]}\n",
                "4:18",
                &["unknown key `sufixes`", "did you mean `suffixes`"][..],
            ),
            (
                "extends: [system]\nextends: [git]\n",
                "2:1",
                &["extends", "stands a second time"],
            ),
            (
                "extends: [system]\nsandbox: {require_os_sandbox: yes}\n",
                "2:31",
                &["true", "false"],
            ),
            (
                "sandbox:\n  paths:\n    w: {root: ./nowhere}\n",
                "3:15",
                &["nowhere", "create: true"],
            ),
            ("shell:\n  limits: {timeout: 5 parsecs}\n", "2:21", &["5 parsecs"]),
            (
                "shell:\n  rules:\n    - {pattern: git status, approval: none, match: [git push]}\n",
                "3:53",
                &["git push"],
            ),
        ] {
            let file = world.write("bad.yaml", text);
            let run = world.stockade(&["check", "bad.yaml"]).output().exits(125);
            let line: usize = place.split(':').next().unwrap().parse().unwrap();
            says(&run, words);
            says(
                &run,
                &[&format!("bad.yaml:{place}"), text.lines().nth(line - 1).unwrap().trim()],
            );
            let run = world
                .stockade(&["check", "--json", file.to_str().unwrap()])
                .output()
                .exits(125);
            let report = json(&run);
            assert_eq!(report["ok"], false);
            let at = &report["diagnostic"]["place"];
            assert_eq!(format!("{}:{}", at["line"], at["column"]), place, "{report}");
            // The twin: `run` says the same.
            let run = world
                .stockade(&["run", "--config", "bad.yaml", "--", "true"])
                .output()
                .exits(125);
            says(&run, words);
        }
    }

    #[test]
    fn check_refuses_a_log_that_commands_could_reach_as_a_start_does() {
        let world = world();
        symlink(world.workspace(), world.base().join("link")).unwrap();
        let refused = "in reach of commands";
        for (log, is_refused) in [
            (world.workspace().join("logs/audit.jsonl"), true),
            (world.workspace().join("audit.jsonl"), true),
            (world.base().join("link/audit.jsonl"), true),
            (PathBuf::from("/usr/audit.jsonl"), true),
            (world.base().join("state/audit.jsonl"), false),
        ] {
            let text = format!(
                "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    w: {{root: {}, mode: rw, write_approval: false}}\n\
                 shell: {{default: {{allowed: true, approval: none}}}}\naudit: {{log: {}}}\n",
                world.workspace().display(),
                log.display()
            );
            let file = world.write(world.base().join("logged.yaml"), text);
            let file = file.to_str().unwrap();
            let check = |args: &[&str]| world.stockade(&[args, &[file]].concat()).output();
            let (said, report) = (check(&["check"]), json(&check(&["check", "--json"])));
            let made = log.parent().unwrap().join("audit.lock");
            assert!(!made.exists() && !world.workspace().join("logs").exists(), "{report}");
            let run = world.stockade(&["run", "--config", file, "--", "true"]).output();
            if is_refused {
                says(&said.exits(125), &[refused, "logged.yaml:7:14"]);
                let at = &report["diagnostic"]["place"];
                assert_eq!((&at["line"], &at["column"]), (&7.into(), &14.into()), "{report}");
                says(&run.exits(125), &[refused]);
            } else {
                assert!(said.ok().ends_with(": ok\n"));
                run.exits(0);
            }
        }
    }

    #[test]
    fn a_config_that_flags_stand_in_place_of_is_named() {
        let world = world();
        let file = world.write(world.workspace().join("stockade.yaml"), "extends: [system]\n");
        world.write("w/file", "");
        let run = |args: &[&str]| world.stockade(&[&["run"], args, &["--", "true"]].concat()).output();
        let passed_over = "./stockade.yaml is not used";
        says(&run(&["--rw", "."]).exits(0), &[passed_over]);
        assert!(!run(&["-q", "--rw", "."]).exits(0).err().contains(passed_over));
        let named = file.to_str().unwrap();
        assert!(!run(&["--config", named, "--net", "off"]).err().contains(passed_over));
        says(
            &run(&["--rw", "w", "--deny", "stockade.yaml"]).exits(125),
            &["lies in no --rw or --ro", "alone stands on `workspace-write`"],
        );
        fs::remove_file(file).unwrap();
        assert!(!run(&["--rw", "."]).exits(0).err().contains(passed_over));
    }

    #[test]
    fn check_refuses_a_deny_that_keeps_commands_that_write_from_starting() {
        let world = world();
        let workspace = world.workspace().display().to_string();
        for (more, refused) in [("deny_fallback: refuse", true), ("deny_fallback: decompose", false)] {
            let text = format!(
                "extends: [system]\nsandbox:\n  protect_fallback: undo\n  {more}\n  paths: {{w: {{root: {workspace}, mode: rw, \
                 approval: {{write: none}}, deny: ['*.pem']}}}}\nshell: {{default: {{approval: none}}}}\n"
            );
            let file = world.write(world.base().join("denied.yaml"), &text);
            let file = file.to_str().unwrap();
            for args in [&["check", file][..], &["run", "--config", file, "--", "true"]] {
                let run = world.stockade(args).output();
                assert_eq!(run.code(), if refused { 125 } else { 0 }, "{args:?}: {}", run.err());
            }
        }
    }

    #[test]
    fn check_refuses_what_the_backend_it_names_can_never_hold() {
        let world = world();
        fs::create_dir_all(world.workspace().join("secret")).unwrap();
        let workspace = world.workspace().display().to_string();
        let root = format!("paths: {{w: {{root: {workspace}, mode: rw}}}}");
        let deny = format!("protect_fallback: undo\n  paths: {{w: {{root: {workspace}, mode: rw, deny: [./secret]}}}}");
        let hosts = format!(
            "backend: landlock\n  paths: {{w: {{root: {workspace}}}}}\nshell: {{network: {{allow: [example.org:443]}}}}"
        );
        for (sandbox, refused) in [
            (
                format!("backend: landlock\n  protect_fallback: refuse\n  {root}"),
                Some("sandbox.protect_fallback: undo"),
            ),
            (
                format!("backend: namespaces\n  protect_fallback: refuse\n  {root}"),
                Some("sandbox.protect_fallback: undo"),
            ),
            (
                format!("backend: landlock\n  {deny}"),
                Some("cannot forbid part of a granted tree"),
            ),
            (hosts, Some("the list of hosts")),
            // The twins, one change away.
            (format!("backend: landlock\n  protect_fallback: undo\n  {root}"), None),
            (format!("backend: landlock\n  protect: none\n  {root}"), None),
            (format!("backend: landlock\n  deny_fallback: decompose\n  {deny}"), None),
        ] {
            let text = format!("extends: [system]\nsandbox:\n  {sandbox}\n");
            let file = world.write(world.base().join("held.yaml"), &text);
            let file = file.to_str().unwrap();
            let said = world.stockade(&["check", file]).output();
            let report = json(&world.stockade(&["check", "--json", file]).output());
            let run = world.stockade(&["run", "--mode", "approve_all", "--config", file, "--", "true"]);
            let Some(refused) = refused else {
                assert!(said.ok().ends_with(": ok\n"), "{text}");
                assert_eq!(report["ok"], true, "{report}");
                run.output().exits(0);
                continue;
            };
            says(&said.exits(125), &[refused]);
            assert_eq!(report["ok"], false, "{report}");
            assert!(report["error"].as_str().unwrap().contains(refused), "{report}");
            says(&run.output().exits(125), &[refused]);
        }
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let world = world();
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb = format!("{bomb}a{level}: &a{level} [{}]\n", vec![before; 10].join(", "));
        }
        world.write("bomb.yaml", bomb);
        // Unfolded it were 10^12 words: no machine would come to the end of them.
        world.stockade(&["check", "bomb.yaml"]).output().exits(125);
    }

    #[test]
    fn init_writes_a_config_that_passes_and_works_and_overwrites_nothing() {
        let world = world();
        world.stockade(&["init"]).output().ok();
        let written = fs::read_to_string(world.workspace().join("stockade.yaml")).unwrap();
        let said = world.stockade(&["check"]).output().ok();
        assert!(!said.contains("warning"), "{said}");
        let run = world.stockade(&["init"]).output().exits(125);
        says(&run, &["exists already", "stockade.yaml"]);
        let target = world.write(world.outside().join("target"), "mine");
        symlink(&target, world.workspace().join("link.yaml")).unwrap();
        world.stockade(&["init", "link.yaml"]).output().exits(125);
        assert_eq!(fs::read_to_string(target).unwrap(), "mine");
        assert_eq!(
            fs::read_to_string(world.workspace().join("stockade.yaml")).unwrap(),
            written
        );
        world.write("data", "here");
        let named = |args: &[&str]| {
            world
                .stockade(&[&["run", "--config", "stockade.yaml"], args].concat())
                .output()
        };
        // What its rules let through runs, and the project can be worked in after a yes.
        assert!(named(&["-c", "ls"]).ok().contains("data"));
        named(&["--mode", "strict", "-c", "touch new"]).exits(126);
        named(&["--mode", "approve_all", "-c", "touch new && cat data && ls"]).exits(0);
        named(&["--mode", "approve_all", "-c", "sudo true"]).exits(126);
    }

    #[test]
    fn the_schema_is_one_of_json_and_knows_every_key_of_the_template() {
        let world = world();
        let run = world.stockade(&["schema"]).output().exits(0);
        let schema = json(&run);
        assert!(
            schema["$schema"]
                .as_str()
                .unwrap()
                .starts_with("https://json-schema.org/"),
            "{schema}"
        );
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        world.stockade(&["init"]).output().ok();
        let template = fs::read_to_string(world.workspace().join("stockade.yaml")).unwrap();
        let keys = template
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
        for key in keys.map(|line| line.split(':').next().unwrap()) {
            assert!(schema["properties"][key].is_object(), "{key}");
        }
    }

    #[test]
    fn doctor_says_which_regime_runs_commands() {
        let world = world();
        let run = world.stockade(&["doctor", "--json"]).output().exits(0);
        let used = world
            .bare(world.binary())
            .args(["run", "--json", "--", "true"])
            .output();
        let used = json(&used.exits(0))["regime"].as_str().unwrap().to_owned();
        let regime = used.split(' ').next().unwrap();
        assert_eq!(json(&run)["regime"], regime);
        let text = world.stockade(&["doctor"]).output().ok();
        let words = format!("commands would run confined, in the `{regime}` regime");
        assert!(text.contains(&words), "{text}");
    }

    // Trust.

    fn a_found_config_must_be_trusted_and_trusted_again_after_each_change(world: &Fixture) {
        let text = "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths: {w: {root: ., mode: rw, write_approval: \
                    false}}\nshell: {default: {allowed: true, approval: none}}\n";
        let config = world.write("stockade.yaml", text);
        let run = || world.shell("echo ran").output();
        let refused = |why: &str| {
            let run = run().exits(125);
            says(
                &run,
                &["stockade.yaml is not trusted", why, "stockade trust", "Read it"],
            );
            assert_eq!(run.out(), "");
        };
        refused("nobody has said");
        let said = world.stockade(&["trust"]).output().ok();
        assert!(said.contains(world.workspace().to_str().unwrap()), "{said}");
        assert_eq!(run().ok(), "ran\n");
        world.write("stockade.yaml", format!("{text}# changed\n"));
        refused("changed");
        // What was trusted is the content: it may come back.
        world.write("stockade.yaml", text);
        assert_eq!(run().ok(), "ran\n");
        // Another file of the same content elsewhere is not it.
        let copy = world.write("elsewhere/stockade.yaml", text);
        let run = world.shell("echo ran").cwd(copy.parent().unwrap()).output().exits(125);
        says(&run, &["not trusted"]);
        // A broken one is not recorded.
        world.write("stockade.yaml", "sandboxx: {}\n");
        world.stockade(&["trust", config.to_str().unwrap()]).output().exits(125);
        refused("changed");
    }

    fn a_found_config_that_is_a_link_is_refused(world: &Fixture) {
        let real = world.write(world.outside().join("real.yaml"), "extends: [workspace-write]\n");
        symlink(&real, world.workspace().join("stockade.yaml")).unwrap();
        let run = world.shell("echo ran").output().exits(125);
        says(&run, &["stockade.yaml is a symbolic link"]);
        let run = world.stockade(&["trust"]).output().exits(125);
        says(&run, &["stockade.yaml is a symbolic link"]);
        // A link to nothing is not no config.
        fs::remove_file(&real).unwrap();
        world.shell("echo ran").output().exits(125);
        fs::remove_file(world.workspace().join("stockade.yaml")).unwrap();
        world.shell("echo ran").output().exits(0);
    }

    fn a_named_config_needs_no_trust(world: &Fixture) {
        let text = "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths: {w: {root: ., mode: rw, write_approval: \
                    false}}\nshell: {default: {allowed: true, approval: none}}\n";
        world.write("stockade.yaml", text);
        world.shell("echo ran").output().exits(125);
        let run = world
            .stockade(&["run", "--config", "stockade.yaml", "-c", "echo ran > here"])
            .output()
            .exits(0);
        assert_eq!(run.out(), "");
        assert!(world.workspace().join("here").exists());
    }

    fn a_config_inside_its_own_root_is_put_back(world: &Fixture) {
        let text = "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths: {w: {root: ., mode: rw, write_approval: \
                    false}}\nshell: {default: {allowed: true, approval: none}}\n";
        let config = world.write("agent.yaml", text);
        for line in [
            "echo '# more' >> agent.yaml",
            "rm agent.yaml",
            "mv agent.yaml other.yaml; echo x > agent.yaml",
            "cp agent.yaml x; sed -i s/false/true/ x; mv x agent.yaml",
        ] {
            let run = world
                .stockade(&["run", "--config", "agent.yaml", "-c", line])
                .output()
                .exits(0);
            says(&run, &["agent.yaml", "protected", "restored"]);
            assert_eq!(fs::read_to_string(&config).unwrap(), text, "{line}");
        }
        let run = world
            .stockade(&["run", "--config", "agent.yaml", "-c", "cat agent.yaml; echo x > other"])
            .output()
            .exits(0);
        assert_eq!(run.out(), text);
        assert!(!run.err().contains("protected"), "{}", run.err());
    }

    // Flags.

    #[test]
    fn rw_and_ro_without_a_config_stand_on_the_system_and_the_toolchains() {
        let world = world();
        for folder in ["in", "out", "other"] {
            world.write(format!("{folder}/file"), "text");
        }
        let run = |line: &str| {
            let args = ["run", "--ro", "in", "--rw", "out", "--cwd", "out", "-c", line];
            world.stockade(&args).output()
        };
        run("cat ../in/file && echo x > new && cat /etc/passwd").exits(0);
        run("echo x > ../in/new").assert_denied();
        run("cat ../other/file").assert_denied();
        run("ls ..").assert_denied();
        // The directory it is started in is not granted by itself.
        let run = world
            .stockade(&["run", "--ro", "in", "-c", "cat other/file; ls other"])
            .output();
        says(&run, &["is in no root", "`--ro "]);
        run.assert_denied();
    }

    #[test]
    fn flags_beside_a_config_only_narrow() {
        let world = world();
        for folder in ["a", "b"] {
            world.write(format!("{folder}/file"), "text");
        }
        let config = open_config(&world, "");
        let outside = world.outside().to_str().unwrap().to_owned();
        let run = |flags: &[&str], line: &str| {
            let args = [&["run", "--config", &config], flags, &["-c", line]].concat();
            world.stockade(&args).output()
        };
        run(&[], "echo x > a/x && echo x > b/x").exits(0);
        run(&["--rw", "a"], "echo x > a/x && cat b/file").exits(0);
        run(&["--rw", "a"], "echo x > b/x").assert_denied();
        // What the config does not give, no flag gives.
        run(&["--rw", &outside], &format!("echo x > {outside}/x")).assert_denied();
        run(&["--ro", &outside], &format!("cat {outside}/secret")).assert_denied();
        let widened = run(&["--net", "on"], "true").exits(125);
        says(&widened, &["cannot widen", "network: true"]);
        // A deny inside a granted tree is refused, or held at its price.
        let refused = run(&["--deny", "a"], "true").exits(125);
        says(&refused, &["--deny", "--deny-fallback decompose"]);
        run(&["--deny", "a", "--deny-fallback", "decompose"], "cat a/file").assert_denied();
        run(&["--deny", "a", "--deny-fallback", "decompose"], "cat b/file").exits(0);
        assert!(!Path::new(&outside).join("x").exists());
    }

    #[test]
    fn net_on_opens_and_net_off_closes() {
        let world = world();
        let open = open_config(&world, "  network: true\n");
        let code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)";
        let run = |flags: &[&str]| {
            let args = [&["run"], flags, &["--", "/usr/bin/python3", "-c", code]].concat();
            world.stockade(&args).output()
        };
        if !Path::new("/usr/bin/python3").exists() {
            return;
        }
        run(&["--rw", ".", "--net", "on"]).exits(0);
        run(&[]).assert_denied();
        run(&["--rw", ".", "--net", "off"]).assert_denied();
        run(&["--net", "on"]).exits(0);
        run(&["--config", &open]).exits(0);
        run(&["--config", &open, "--net", "off"]).assert_denied();
    }

    #[test]
    fn a_rule_has_a_network_of_its_own() {
        if !Path::new("/usr/bin/python3").exists() {
            return;
        }
        let world = world();
        let code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)";
        let run = |shell: &str, flags: &[&str], words: &[&str]| {
            let rules = "  rules:\n    - {pattern: /usr/bin/python3 -S, approval: none, network: ";
            let config = open_config(&world, &format!("{shell}{rules}"));
            let text = std::fs::read_to_string(&config).unwrap();
            let own = if shell.contains("true") { "false}" } else { "true}" };
            std::fs::write(&config, format!("{text}{own}\n    - {{pattern: /usr/bin/python3 -E, approval: none, network: {{allow: [a.example]}}}}\n")).unwrap();
            let args = [&["run", "--config", &config], flags, words].concat();
            world.stockade(&args).output()
        };
        let line = format!("/usr/bin/python3 -S -c '{code}'");
        let plain = ["--", "/usr/bin/python3", "-c", code];
        let own = ["--", "/usr/bin/python3", "-S", "-c", code];
        let hosts = ["--", "/usr/bin/python3", "-E", "-c", code];
        run("  network: false\n", &[], &plain).assert_denied();
        run("  network: false\n", &[], &own).exits(0);
        run("  network: false\n", &["--net", "off"], &own).assert_denied();
        // One sandbox for a whole line: it reaches what each command in it may.
        run("  network: false\n", &[], &["-c", &line]).exits(0);
        run("  network: false\n", &[], &["-c", &format!("ls >/dev/null; {line}")]).assert_denied();
        // What only steers the shell needs none.
        run("  network: false\n", &[], &["-c", &format!("cd . && true; {line}")]).exits(0);
        run("  network: true\n", &[], &plain).exits(0);
        run("  network: true\n", &[], &own).assert_denied();
        // A list is not held by Landlock alone; what has none runs all the same.
        let refused = run("  network: false\n", &[], &hosts).exits(125);
        says(&refused, &["the list of hosts (a.example:80,443)", "landlock"]);
    }

    #[test]
    fn a_mode_flag_wins_over_the_config() {
        let world = world();
        let config = open_config(
            &world,
            "tools: {shell: {approval: required}}\napproval: {mode: approve_all}\n",
        );
        let run = |flags: &[&str]| {
            let args = [&["run", "--config", &config], flags, &["--", "echo", "ran"]].concat();
            world.stockade(&args).output()
        };
        run(&[]).exits(0);
        run(&["--mode", "strict"]).exits(126);
        run(&["--mode", "approve_all"]).exits(0);
    }

    #[test]
    fn cwd_env_and_timeout_reach_the_command() {
        let world = world();
        world.write("sub/file", "");
        let run = world.stockade(&["run", "--cwd", "sub", "-c", "pwd; ls"]).output().ok();
        assert_eq!(run, format!("{}/sub\nfile\n", world.workspace().display()));
        // In no root it is there, and nothing of it is seen.
        let outside = world.outside();
        let run = world
            .stockade(&["run", "--cwd", outside.to_str().unwrap(), "-c", "pwd; cat secret; ls"])
            .output();
        assert_eq!(run.out(), format!("{}\n", outside.display()), "{}", run.err());
        says(&run, &["is in no root: commands start there and see nothing of it"]);
        let line = "printf '%s|%s|%s' \"$A\" \"$B\" \"$HIDDEN\"";
        let args = ["run", "--env", "A=1=2", "--env", "B=", "-c", line];
        assert_eq!(world.stockade(&args).env("HIDDEN", "x").output().ok(), "1=2||");
        let run = world
            .stockade(&["run", "--timeout", "1s", "--", "sleep", "infinity"])
            .output()
            .exits(124);
        says(&run, &["timed out after "]);
        // A flag does not lift the config's own limit.
        let short = open_config(&world, "  limits: {timeout: 1s}\n");
        world
            .stockade(&["run", "--config", &short, "--timeout", "1h", "--", "sleep", "infinity"])
            .output()
            .exits(124);
    }

    // JSON.

    #[test]
    fn the_json_outcome_says_how_it_ended() {
        let world = world();
        let rules = "  rules:\n    - {pattern: touch, allowed: false, reason: none of that}\n    - {pattern: mkdir, \
                     approval: required}\n";
        let config = open_config(&world, rules);
        let run = |flags: &[&str], line: &str, code: i32| {
            let args = [&["run", "--json", "--config", &config], flags, &["-c", line]].concat();
            let run = world.stockade(&args).output().exits(code);
            assert_eq!(run.out().lines().count(), 1, "{}", run.out());
            json(&run)
        };
        let done = run(&[], "echo out; echo err >&2", 0);
        assert_eq!(
            (&done["status"], &done["code"]),
            (&Value::from("exited"), &Value::from(0))
        );
        assert_eq!(
            (&done["stdout"], &done["stderr"]),
            (&Value::from("out\n"), &Value::from("err\n"))
        );
        assert!(done["regime"].as_str().unwrap().starts_with("landlock"), "{done}");
        assert!(done["duration"].as_f64().unwrap() > 0.0);
        assert_eq!(run(&[], "exit 7", 7)["code"], 7);
        let killed = run(&[], "kill -TERM $$", 143);
        assert_eq!(
            (&killed["status"], &killed["signal"]),
            (&Value::from("signaled"), &Value::from(15))
        );
        let blocked = run(&[], "touch x", 126);
        assert_eq!(blocked["status"], "blocked");
        let reason = blocked["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("blocked: ") && reason.ends_with(": none of that"),
            "{reason}"
        );
        let denied = run(&["--mode", "strict"], "mkdir x", 126);
        assert_eq!(denied["status"], "denied");
        assert!(denied["reason"].as_str().unwrap().contains("open.yaml:"), "{denied}");
        assert_eq!(run(&["--timeout", "1s"], "sleep infinity", 124)["status"], "timed_out");
        assert_eq!(run(&["--net", "on"], "true", 125)["status"], "refused");
        let secret = world.outside().join("secret");
        let outcome = run(&[], &format!("cat {}", secret.display()), 1);
        assert!(!outcome.to_string().contains(SECRET));
        let run = world.stockade(&["run", "--json", "--config", &config, "--", "no-such-command"]);
        assert_eq!(json(&run.output().exits(127))["status"], "not_found");
        let run = world.stockade(&["run", "--json", "--config", "/nonexistent", "--", "true"]);
        assert_eq!(json(&run.output().exits(125))["status"], "refused");
    }

    #[test]
    fn the_regime_line_says_which_roots_are_written_after_a_yes_only() {
        let world = world();
        let root = world.workspace().join("r");
        std::fs::create_dir(&root).unwrap();
        let config = |read: &str, write: &str| {
            format!(
                "extends: [system]\nsandbox:\n  protect_fallback: undo\n  paths:\n    r: {{root: ./r, mode: rw, approval: {{read: {read}, write: {write}}}}}\n"
            )
        };
        let line = |flags: &[&str], text: String| {
            world.write("r.yaml", text);
            let args = [
                &["run", "--json", "--mode", "approve_all", "--config", "r.yaml"],
                flags,
                &["--cwd", "/usr", "-c", "true"],
            ];
            json(&world.stockade(&args.concat()).output().exits(0))["regime"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let (free, asked) = (
            format!("writes {} ·", root.display()),
            format!("writes {} after a yes ·", root.display()),
        );
        let shown = line(&[], config("none", "none"));
        assert!(shown.contains(&free), "{shown}");
        // What cannot be read unasked is not there for a command that nobody was asked about.
        for (read, write) in [("none", "required"), ("required", "none"), ("required", "required")] {
            let shown = line(&[], config(read, write));
            assert!(shown.contains(&asked), "{read} {write}: {shown}");
        }
        world.write("ceiling.yaml", config("none", "required"));
        let shown = line(&["--ceiling", "ceiling.yaml"], config("none", "none"));
        assert!(shown.contains(&asked), "{shown}");
    }

    #[test]
    fn who_asks_for_json_is_told_in_json_what_failed_and_nothing_else() {
        let world = world();
        world.write("there.yaml", "extends: [system]\n");
        world.write("bad.yaml", "extends: [no-such-preset]\n");
        let failing: [&[&str]; 10] = [
            &["check"],
            &["check", "bad.yaml"],
            &["init", "there.yaml"],
            &["trust", "nowhere.yaml"],
            &["profile", "show", "--config", "nowhere.yaml"],
            &["profile", "explain", "--config", "nowhere.yaml", "x"],
            &["profile", "check", "nowhere.yaml"],
            &["profile", "diff", "there.yaml", "nowhere.yaml"],
            &["audit", "verify", "--log", "nowhere.jsonl"],
            &["approvals", "list"],
        ];
        for args in failing {
            let run = world.stockade(&[args, &["--json"]].concat()).output().exits(125);
            let told = json(&run);
            assert_eq!((&told["ok"], run.err().as_str()), (&Value::Bool(false), ""), "{args:?}");
            // The twin: a person is told the same.
            let said = world.stockade(args).output().exits(125);
            let error = told["error"].as_str().unwrap();
            assert!(
                said.err().starts_with(&format!("stockade: {error}")),
                "{args:?}: {}",
                said.err()
            );
            for remedy in told["remedies"].as_array().unwrap() {
                // As far as the fixture shows it unescaped.
                says(&said, &[remedy.as_str().unwrap().split('…').next().unwrap()]);
            }
            assert_eq!(said.out(), "", "{args:?}");
        }
    }

    // Hostile names.

    fn names_that_are_not_text_work(world: &Fixture) {
        let names: [&[u8]; 4] = [b"a\xff\xfeb", b"quote's \"here\"", b"new\nline", b"-dash\x1b[31m"];
        for name in names {
            let name = OsStr::from_bytes(name);
            let folder = world.write(Path::new(name).join(name), "content");
            let folder = folder.parent().unwrap();
            let run = |args: &[&OsStr]| world.bare(world.binary()).args(args).cwd(folder).output();
            let out = run(&[OsStr::new("run"), OsStr::new("--"), "cat".as_ref(), "--".as_ref(), name]);
            assert_eq!(out.exits(0).out(), "content", "{name:?}");
            let set = [b"V=".as_slice(), name.as_bytes()].concat();
            let set = OsStr::from_bytes(&set);
            let out = run(&[
                "run".as_ref(),
                "--env".as_ref(),
                set,
                "-c".as_ref(),
                "printf %s \"$V\"".as_ref(),
            ]);
            assert_eq!(out.exits(0).stdout, name.as_bytes());
            let out = run(&[
                "run".as_ref(),
                "--rw".as_ref(),
                folder.as_os_str(),
                "-c".as_ref(),
                "echo x > new".as_ref(),
            ]);
            out.exits(0);
            assert!(folder.join("new").exists());
            let out = run(&["run".as_ref(), "--json".as_ref(), "--".as_ref(), "true".as_ref()]).exits(0);
            assert_eq!(json(&out)["status"], "exited");
            // Nothing that was named reaches the terminal raw.
            let missing = [b"/nonexistent/".as_slice(), name.as_bytes()].concat();
            let out = run(&[
                "run".as_ref(),
                "--config".as_ref(),
                OsStr::from_bytes(&missing),
                "--".as_ref(),
                "true".as_ref(),
            ]);
            let out = out.exits(125);
            assert!(
                !out.stderr.contains(&0x1b) && !out.stderr.contains(&0xff),
                "{}",
                out.err()
            );
        }
        let line = OsStr::from_bytes(b"printf '\xff'");
        let run = world
            .bare(world.binary())
            .args([OsStr::new("run"), OsStr::new("-c"), line])
            .output();
        assert_eq!(run.exits(0).stdout, b"\xff");
    }
}
