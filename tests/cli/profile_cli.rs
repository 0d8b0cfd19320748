//! `stockade profile` as an auditor meets it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use serde_json::Value;

    use crate::common::audited::{CONFIG, json, plain, profile, shown, world};
    use crate::common::{Fixture, Snapshot, assert_nothing_left_behind};

    fn explained(world: &Fixture, path: &str) -> Value {
        json(&profile(world, &["explain", "--config", "agent.yaml", "--json", path]))
    }

    fn permitted(report: &Value, operation: &str) -> String {
        let answers = report["answers"].as_array().unwrap();
        let answer = answers.iter().find(|answer| answer["operation"] == operation).unwrap();
        answer["permitted"].as_str().unwrap().to_owned()
    }

    // Show.

    #[test]
    fn the_table_has_every_kind_of_line_with_its_origin() {
        let world = world();
        insta::assert_snapshot!(
            "show",
            shown(&world, profile(&world, &["show", "--config", "agent.yaml"]))
        );
    }

    #[test]
    fn the_table_is_the_same_as_json() {
        let world = world();
        let run = profile(&world, &["show", "--config", "agent.yaml", "--json"]);
        let table = json(&run);
        let line = format!("{}/agent.yaml:5", world.workspace().display());
        let notes = table["files"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["origin"] == line);
        let notes = notes.unwrap();
        assert_eq!(
            (&notes["may"], &notes["unasked"]),
            (&"read+write".into(), &"read".into())
        );
        assert_eq!(table["network"], "full");
    }

    #[test]
    fn looking_at_a_config_makes_none_of_its_roots() {
        let world = world();
        let config = "sandbox: {paths: {new: {root: ./new, create: true}}}\n";
        world.write(world.workspace().join("new.yaml"), config);
        for view in [&["show"][..], &["explain", "new"]] {
            let words: Vec<&str> = [view, &["--config", "new.yaml"]].concat();
            profile(&world, &words).ok();
        }
        assert!(!world.workspace().join("new").exists());
    }

    #[test]
    fn a_root_that_is_yet_to_be_made_is_judged_as_what_it_will_be() {
        let world = world();
        let config = "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    new: {root: ./above/new, mode: rw, create: true, write_approval: false}
    other: {root: ./other, mode: ro, create: true}
shell: {default: {allowed: true, approval: none}}
";
        world.write(world.workspace().join("new.yaml"), config);
        for backend in ["landlock", "namespaces"] {
            let words = ["check", "new.yaml", "--backend", backend, "--json"];
            let check = json(&profile(&world, &words));
            assert_eq!(check["ok"], true, "{check}");
            let rows = check["backends"][0]["clauses"].as_array().unwrap();
            let root = rows
                .iter()
                .find(|row| row["clause"].as_str().unwrap().ends_with("/above/new"));
            assert_eq!(root.unwrap()["status"], "enforced", "{rows:?}");
            let tried = &check["arrows"].as_array().unwrap().last().unwrap()["detail"];
            assert!(tried.as_str().unwrap().contains("is not there yet"), "{tried}");
            let words = [
                "explain",
                "above/new/x",
                "write",
                "--config",
                "new.yaml",
                "--backend",
                backend,
            ];
            let told = profile(&world, &words).ok();
            let held = format!("in {backend}: enforced");
            assert!(told.contains("write: permitted") && told.contains(&held), "{told}");
        }
        let run = profile(&world, &["export", "--config", "new.yaml", "--format", "bwrap"]).exits(0);
        assert!(
            run.out().contains("/above/new\0") && run.err().contains("make its directory before"),
            "{}",
            run.err()
        );
        assert!(!world.workspace().join("above").exists());
        // It is what a start makes of it.
        let line = "echo x > x";
        world
            .stockade(&["run", "-q", "--config", "new.yaml", "--cwd", "above/new", "-c", line])
            .output()
            .exits(0);
    }

    #[test]
    fn configs_that_permit_the_same_differ_in_nothing_where_neither_could_be_written() {
        let world = world();
        let config = "sandbox:
  protect_fallback: undo
  paths: {w: {root: ./w, mode: rw, create: true, write_approval: false}}
";
        for name in ["one.yaml", "two.yaml"] {
            world.write(world.workspace().join(name), config);
        }
        profile(&world, &["diff", "one.yaml", "two.yaml"]).exits(0);
        // Where commands write, each protects itself alone.
        let config = config.replace("./w,", "./,");
        for name in ["one.yaml", "two.yaml"] {
            world.write(world.workspace().join(name), &config);
        }
        let told = profile(&world, &["diff", "one.yaml", "two.yaml"]).exits(1).out();
        assert!(told.contains("protected_files"), "{told}");
    }

    #[test]
    fn a_found_config_is_shown_untrusted() {
        let world = world();
        world.write(
            world.workspace().join("stockade.yaml"),
            "sandbox: {paths: {s: {root: ./src}}}\n",
        );
        let text = profile(&world, &["show"]).ok();
        assert!(text.contains("stockade.yaml:1"), "{text}");
    }

    #[test]
    fn flags_narrow_what_is_shown() {
        let world = world();
        let words = [
            "show",
            "--config",
            "agent.yaml",
            "--net",
            "off",
            "--ro",
            "src",
            "--json",
        ];
        let table = json(&profile(&world, &words));
        assert_eq!(table["network"], "off");
        let denies = table["denies"].as_array().unwrap();
        assert!(denies.iter().any(|deny| deny["origin"] == "--ro"), "{denies:?}");
    }

    #[test]
    fn what_a_ceiling_cuts_is_shown_with_both_lines() {
        let world = world();
        let text = "sandbox: {paths: {s: {root: ./src, mode: rw, write_approval: false}}}\n";
        world.write(world.workspace().join("ceiling.yaml"), text);
        let words = ["show", "--config", "agent.yaml", "--ceiling", "ceiling.yaml", "--json"];
        let table = json(&profile(&world, &words));
        let cuts: Vec<&str> = table["cuts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cut| cut.as_str().unwrap())
            .collect();
        assert!(
            cuts.iter()
                .any(|cut| cut.contains("agent.yaml:7") && cut.contains("ceiling.yaml")),
            "{cuts:?}"
        );
        let words = [
            "explain",
            "--config",
            "agent.yaml",
            "--ceiling",
            "ceiling.yaml",
            "tools/lint",
            "execute",
        ];
        let run = profile(&world, &words).exits(1);
        assert!(run.out().contains("ceiling.yaml does not give it"), "{}", run.out());
    }

    // Explain.

    #[test]
    fn an_explanation_names_clause_line_backend_and_remedy() {
        let world = world();
        let text = profile(&world, &["explain", "--config", "agent.yaml", "src/secret/key", "read"]).exits(1);
        insta::assert_snapshot!("explain_denied", plain(&world, &text.out()));
        let run = profile(&world, &["explain", "--config", "agent.yaml", "notes/a.md", "write"]);
        insta::assert_snapshot!("explain_approved", shown(&world, run));
    }

    #[test]
    fn a_name_that_looks_like_settings_is_no_settings_in_what_is_proposed() {
        let world = world();
        for name in [
            "f, mode: rw, execute: true",
            "q'\"#: x",
            "[z]",
            " sp ",
            "a\nb",
            "{a: b}",
            "*x",
            "&y",
        ] {
            let path = world.base().join(name);
            fs::write(&path, "").unwrap();
            let text = profile(
                &world,
                &[
                    "explain",
                    "--config",
                    "agent.yaml",
                    path.to_str().unwrap(),
                    "read",
                    "--json",
                ],
            );
            let report: Value = serde_json::from_str(&text.exits(1).out()).unwrap();
            let said = report["answers"][0]["change"].to_string();
            let said: String = serde_json::from_str::<Vec<String>>(&said).unwrap().join(" ");
            let root = said.split('`').find(|part| part.starts_with("{root: ")).unwrap();
            let config = world.write("proposed.yaml", format!("sandbox: {{paths: {{x: {root}}}}}\n"));
            let shown = profile(&world, &["show", "--json", "--config", config.to_str().unwrap()]);
            let table = json(&shown);
            let given = table["files"].as_array().unwrap().iter();
            let given: Vec<&Value> = given
                .filter(|row| {
                    row["path"]
                        .as_str()
                        .unwrap()
                        .starts_with(world.base().to_str().unwrap())
                })
                .collect();
            assert_eq!(given.len(), 1, "{name:?}: {root}: {table:#}");
            assert_eq!(given[0]["may"], "read", "{name:?}: {root}");
        }
    }

    #[test]
    fn each_way_of_being_permitted_is_told_apart() {
        let world = world();
        let src = explained(&world, "src/main.rs");
        assert_eq!(permitted(&src, "write"), "yes");
        assert_eq!(permitted(&src, "execute"), "no");
        assert_eq!(permitted(&explained(&world, "notes/a.md"), "write"), "approved");
        assert_eq!(permitted(&explained(&world, "private/a"), "read"), "approved");
        assert_eq!(permitted(&explained(&world, "tools/lint"), "execute"), "yes");
        assert_eq!(permitted(&explained(&world, "/etc/shadow"), "read"), "no");
    }

    // Explain a host.

    /// A config that lists a host, a rule with a network of its own, and two ceilings.
    fn hosts() -> Fixture {
        let world = world();
        let write = |name: &str, text: &str| world.write(world.workspace().join(name), text);
        write(
            "hosts.yaml",
            "extends: [system]\nshell:\n  network:\n    allow: [a.example.org:443, \"*.example.net\"]\n  rules:\n    - {pattern: npm, network: {allow: [npm.example.org:443]}}\n",
        );
        write("off.yaml", "extends: [system]\nshell:\n  network: false\n");
        write("silent.yaml", "extends: [system]\n");
        write(
            "some.yaml",
            "extends: [system]\nshell:\n  network:\n    allow: [npm.example.org]\n    ask: true\n",
        );
        world
    }

    fn reached(world: &Fixture, words: &[&str]) -> String {
        let run = profile(world, &[&["explain", "--config", "hosts.yaml"], words].concat());
        plain(world, &run.out())
    }

    #[test]
    fn a_host_that_a_ceiling_takes_is_put_to_the_line_of_the_ceiling() {
        let world = hosts();
        insta::assert_snapshot!(
            "explain_host_ceiling",
            reached(&world, &["--ceiling", "off.yaml", "a.example.org:443"])
        );
        let silent = reached(&world, &["--ceiling", "silent.yaml", "a.example.org:443"]);
        assert!(
            silent.contains("decided by: `network off` (the ceiling <workspace>/silent.yaml)"),
            "{silent}"
        );
        assert!(
            silent.contains("`shell: {network: {allow: [\"a.example.org:443\"]}}` in the ceiling"),
            "{silent}"
        );
        let own = reached(&world, &["a.example.org:443"]);
        assert!(
            own.contains("decided by: `a.example.org:443` (<workspace>/hosts.yaml:4)"),
            "{own}"
        );
    }

    #[test]
    fn a_host_that_neither_the_config_nor_a_ceiling_gives_takes_a_change_in_both() {
        let world = hosts();
        insta::assert_snapshot!(
            "explain_host_both",
            reached(
                &world,
                &["--ceiling", "off.yaml", "--ceiling", "some.yaml", "b.example.org:443"]
            )
        );
    }

    #[test]
    fn a_ceiling_of_the_config_s_own_and_what_asks_only_are_named_too() {
        let world = hosts();
        let text = fs::read_to_string(world.workspace().join("hosts.yaml")).unwrap();
        world.write(
            world.workspace().join("under.yaml"),
            format!("sandbox: {{os_profile: ./some.yaml}}\n{text}"),
        );
        let report = json(&profile(
            &world,
            &["explain", "--config", "under.yaml", "a.example.org:443", "--json"],
        ));
        let (all, npm) = (&report["answers"][0], &report["answers"][1]);
        let ceiling = |line: u32| format!("{}/some.yaml:{line}", world.workspace().display());
        assert_eq!(
            (&all["access"], &all["decides"], &all["origin"]),
            (&"asked about".into(), &"ceiling".into(), &ceiling(5).into())
        );
        let change = all["change"][0].as_str().unwrap();
        let entry = format!("`\"a.example.org:443\"` under `allow` in the ceiling {}", ceiling(4));
        assert_eq!(
            change,
            format!("{entry} would permit it without a question; no change to the config alone would")
        );
        // What the rule does not name is no matter of the ceiling alone.
        assert_eq!((&npm["access"], &npm["decides"]), (&"denied".into(), &"config".into()));
        let change = npm["change"][0].as_str().unwrap();
        assert!(
            change.ends_with("under.yaml:7) would permit it after a question"),
            "{change}"
        );
    }

    #[test]
    fn a_host_that_a_flag_takes_is_put_to_the_flag() {
        let world = hosts();
        insta::assert_snapshot!(
            "explain_host_flag",
            reached(&world, &["--net", "off", "a.example.org:443"])
        );
        let other = reached(&world, &["--net", "b.example.net:443", "a.example.org:443"]);
        for line in [
            "every command: denied",
            "decided by: no entry names it (--net)",
            "to change it: `--net a.example.org:443` beside the others would permit it; no change to the config alone would",
        ] {
            assert!(other.contains(line), "`{line}` is not in:\n{other}");
        }
        let named = reached(&world, &["--net", "b.example.net:443", "b.example.net:443"]);
        assert!(named.contains("every command: free"), "{named}");
    }

    #[test]
    fn flags_in_place_of_a_config_are_told_as_flags() {
        let world = hosts();
        let explained = |words: &[&str]| {
            let run = profile(
                &world,
                &[&["explain", "--rw", "src", "a.example.org:443"], words].concat(),
            );
            plain(&world, &run.out())
        };
        let text = explained(&["--net", "off"]);
        assert!(
            text.contains("to change it: `--net a.example.org:443` would permit it\n"),
            "{text}"
        );
        let bound = explained(&["--net", "on", "--ceiling", "off.yaml"]);
        for line in [
            "decided by: `network off` (the ceiling <workspace>/off.yaml:3)",
            "in the ceiling <workspace>/off.yaml:3 would permit it; `--net` alone would not",
        ] {
            assert!(bound.contains(line), "`{line}` is not in:\n{bound}");
        }
    }

    #[test]
    fn a_write_to_a_protected_name_is_said_to_be_restored() {
        let world = world();
        world.write(
            world.workspace().join("open.yaml"),
            "sandbox: {protect_fallback: undo, paths: {s: {root: ./src, mode: rw, write_approval: false}}}\n",
        );
        let run = profile(
            &world,
            &["explain", "--config", "open.yaml", "--json", "src/.envrc", "write"],
        );
        let backend = &json(&run)["answers"][0]["backends"][0];
        assert_eq!(
            (&backend["backend"], &backend["status"]),
            (&"landlock".into(), &"undone".into())
        );
        // That it is permitted is not all that is said, and it does not last.
        let run = profile(&world, &["explain", "--config", "open.yaml", "src/.envrc", "write"]).exits(1);
        let head =
            "write: permitted by its grant, but the name is protected (direnv: commands on entering the directory)";
        assert!(run.out().contains(head), "{}", run.out());
        let run = profile(
            &world,
            &["explain", "--config", "open.yaml", "--json", "src/main.rs", "write"],
        );
        assert_eq!(json(&run)["answers"][0]["backends"][0]["status"], "enforced");
    }

    /// What a backend answers about the first operation that was asked about: status and detail.
    fn backend_says(report: &Value, name: &str) -> (String, String) {
        let backends = report["answers"][0]["backends"].as_array().unwrap();
        let backend = backends.iter().find(|backend| backend["backend"] == name).unwrap();
        let text = |key: &str| backend[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("detail"))
    }

    #[test]
    fn a_protected_name_that_is_there_is_held_by_mounts_and_one_that_is_not_is_restored() {
        let world = world();
        let config = "sandbox: {protect: prevent, protect_fallback: undo, \
                      paths: {s: {root: ./src, mode: rw, write_approval: false}}}\n";
        world.write(world.workspace().join("open.yaml"), config);
        world.write(world.workspace().join("src/.envrc"), "");
        let ask = |path: &str| {
            let words = ["explain", "--config", "open.yaml", "--json", path, "write"];
            backend_says(&json(&profile(&world, &words)), "namespaces")
        };
        let (status, detail) = ask("src/.envrc");
        assert_eq!(status, "enforced");
        assert!(detail.contains("no command can write it"), "{detail}");
        assert_eq!(ask("src/.bashrc").0, "undone");
        assert_eq!(ask("src/main.rs"), ("enforced".to_owned(), String::new()));
        let check = profile(&world, &["check", "open.yaml", "--no-selftest", "--json"]);
        let check = json(&check);
        let rows = check["backends"][1]["clauses"].as_array().unwrap();
        let there = format!("protect {}/src/.envrc", world.workspace().display());
        let row = rows.iter().find(|row| row["clause"] == there.as_str()).unwrap();
        assert_eq!(row["status"], "enforced");
    }

    #[test]
    fn what_mounts_bring_along_is_told_from_the_host_s() {
        let world = world();
        let words = ["explain", "--config", "agent.yaml", "--json", "/proc/1/status", "read"];
        let (status, detail) = backend_says(&json(&profile(&world, &words)), "namespaces");
        assert_eq!(status, "enforced");
        assert!(detail.contains("sandbox's own"), "{detail}");
        let words = ["explain", "--config", "agent.yaml", "--json", "/var/x", "read"];
        assert_eq!(backend_says(&json(&profile(&world, &words)), "namespaces").1, "");
    }

    #[test]
    fn a_deny_is_stricter_or_refused_in_one_backend_and_exact_in_another() {
        let world = world();
        let text = CONFIG
            .replace("deny: [.env, ./secret]", "deny: [./secret]")
            .replace("decompose", "refuse");
        world.write(world.workspace().join("refusing.yaml"), text);
        let words = ["explain", "--config", "refusing.yaml", "--json", "src/a", "write"];
        let report = json(&profile(&world, &words));
        assert_eq!(backend_says(&report, "landlock").0, "refused");
        assert_eq!(backend_says(&report, "namespaces").0, "enforced");
    }

    #[test]
    fn one_backend_can_be_looked_at_alone() {
        let world = world();
        let names = |words: &[&str]| {
            let words = [&["check", "agent.yaml", "--no-selftest", "--json"], words].concat();
            let check = json(&profile(&world, &words));
            let backends = check["backends"].as_array().unwrap().iter();
            backends
                .map(|b| b["backend"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["landlock", "namespaces"]);
        assert_eq!(names(&["--backend", "auto"]), ["landlock", "namespaces"]);
        assert_eq!(names(&["--backend", "bwrap"]), ["namespaces"]);
        for one in ["landlock", "namespaces", "seatbelt"] {
            assert_eq!(names(&["--backend", one]), [one]);
            let words = ["explain", "--config", "agent.yaml", "--json", "src/a", "--backend", one];
            let report = json(&profile(&world, &words));
            let asked = report["answers"][0]["backends"].as_array().unwrap();
            assert_eq!((asked.len(), &asked[0]["backend"]), (1, &one.into()));
        }
        let config = CONFIG.replace("sandbox:\n", "sandbox:\n  backend: bwrap\n");
        world.write(world.workspace().join("agent.yaml"), config);
        assert_eq!(names(&[]), ["namespaces"]);
        for words in [&["show"][..], &["export", "--format", "json"]] {
            let words = [words, &["--config", "agent.yaml", "--backend", "bwrap"]].concat();
            let run = profile(&world, &words).exits(125);
            assert!(run.err().contains("`--backend` has no meaning here"), "{}", run.err());
        }
    }

    #[test]
    fn a_view_that_looks_at_no_backend_offers_none() {
        let world = world();
        let offers = |view: &str| profile(&world, &[view, "--help"]).exits(0).out().contains("--backend");
        assert_eq!(["show", "export"].map(offers), [false, false]);
        assert_eq!(["check", "explain"].map(offers), [true, true]);
    }

    #[test]
    fn doctor_says_that_the_seatbelt_backend_is_untested_on_a_mac() {
        let world = world();
        let doctor = |args: &[&str]| world.bare(world.binary()).args(["doctor"]).args(args).output().out();
        let said = "untested on a Mac";
        assert!(doctor(&[]).contains(&format!("regime seatbelt: the Seatbelt backend for macOS is {said}")));
        let report: Value = serde_json::from_str(&doctor(&["--json"])).unwrap();
        let untested = &report["untested"][0];
        assert_eq!(untested["regime"], "seatbelt");
        assert!(untested["detail"].as_str().unwrap().contains(said), "{untested}");
    }

    #[test]
    fn no_command_runs_in_a_backend_that_is_only_looked_at() {
        let world = world();
        let run = world
            .bare(world.binary())
            .args(["run", "--backend", "seatbelt", "--", "true"])
            .output();
        let run = run.exits(125);
        assert!(run.err().contains("not offered"), "{}", run.err());
        let check = profile(&world, &["check", "agent.yaml", "--backend", "seatbelt", "--json"]).exits(1);
        let check = json(&check);
        let seatbelt = &check["backends"][0];
        assert_eq!((&check["ok"], &seatbelt["used"]), (&false.into(), &false.into()));
        assert!(seatbelt["caveat"].as_str().unwrap().contains("untested on a Mac"));
        let results: Vec<&Value> = check["arrows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arrow| &arrow["result"])
            .collect();
        assert_eq!(results, ["holds", "holds", "holds", "holds", "untried"]);
    }

    #[test]
    fn what_refuses_the_start_is_said_for_its_backend() {
        let world = world();
        let text = CONFIG.replace("decompose", "refuse");
        world.write(world.workspace().join("refusing.yaml"), text);
        let run = profile(
            &world,
            &["explain", "--config", "refusing.yaml", "--json", "src/a", "read"],
        );
        let backend = &json(&run)["answers"][0]["backends"][0];
        assert_eq!(backend["status"], "refused");
        assert!(backend["detail"].as_str().unwrap().contains("refusing.yaml:6"));
    }

    #[test]
    fn a_link_is_explained_where_it_leads() {
        let world = world();
        symlink("/etc/shadow", world.workspace().join("src/link")).unwrap();
        let report = explained(&world, "src/link");
        assert_eq!(report["path"], "/etc/shadow");
        assert_eq!(permitted(&report, "read"), "no");
    }

    #[test]
    fn hostile_names_are_explained_and_shown_escaped() {
        let world = world();
        for name in [&b"src/-x"[..], b"src/'\"\n\x1b[2J", b"src/\xff"] {
            let run = world
                .stockade(&["profile", "explain", "--config", "agent.yaml", "--"])
                .args([Path::new(OsStr::from_bytes(name))])
                .cwd(world.workspace())
                .output();
            let text = run.ok();
            assert!(text.starts_with('/') && !text.contains('\x1b'), "{text}");
            assert_eq!(text.lines().next().unwrap().matches("/src/").count(), 1, "{text}");
        }
    }

    #[test]
    fn the_exit_code_of_an_explanation_says_whether_anything_is_permitted() {
        let world = world();
        let code = |words: &[&str]| profile(&world, words).code();
        assert_eq!(code(&["explain", "--config", "agent.yaml", "src/a"]), 0);
        assert_eq!(code(&["explain", "--config", "agent.yaml", "src/a", "execute"]), 1);
        assert_eq!(code(&["explain", "--config", "agent.yaml", "/nowhere/at/all"]), 1);
        assert_eq!(code(&["explain", "--config", "missing.yaml", "src"]), 125);
    }
    // Check.

    #[test]
    fn a_check_gives_every_arrow_and_every_clause_with_its_status() {
        let world = world();
        let run = profile(&world, &["check", "agent.yaml", "--no-selftest"]);
        // Who holds the limits of a whole tree depends on who runs this, and where.
        let text = shown(&world, run);
        let of_the_tree = |line: &&str| line.contains("limit processes") || line.contains("limit memory");
        let kept = text.lines().filter(|line| !of_the_tree(line));
        insta::assert_snapshot!("check", kept.collect::<Vec<_>>().join("\n"));
        let run = profile(
            &world,
            &["check", "agent.yaml", "--no-selftest", "--backend", "seatbelt"],
        )
        .exits(1);
        insta::assert_snapshot!("check_seatbelt", plain(&world, &run.out()));
    }

    #[test]
    fn a_check_really_starts_a_worker_and_leaves_nothing() {
        let world = world();
        let before = Snapshot::of(&world);
        let run = profile(&world, &["check", "agent.yaml", "--json"]).exits(0);
        let check = json(&run);
        let last = check["arrows"].as_array().unwrap().last().unwrap();
        assert_eq!(last["claim"], "plan ⊒ observed (self-test)");
        assert_eq!((&last["result"], &check["ok"]), (&"holds".into(), &true.into()));
        assert_nothing_left_behind(&before, &world);
    }

    #[test]
    fn a_policy_that_the_backend_refuses_does_not_pass() {
        let world = world();
        world.write(
            world.workspace().join("refusing.yaml"),
            CONFIG.replace("decompose", "refuse"),
        );
        let run = profile(&world, &["check", "refusing.yaml", "--json"]).exits(1);
        let check = json(&run);
        assert_eq!(check["ok"], false);
        let why = check["backends"][0]["refuses"].as_str().unwrap();
        assert!(why.contains("refusing.yaml:6") && why.contains("decompose"), "{why}");
        // And run refuses for the same reason.
        let run = world.stockade(&[
            "run",
            "--config",
            "../refusing.yaml",
            "--mode",
            "approve_all",
            "--",
            "true",
        ]);
        let run = run.cwd(world.workspace().join("src")).output().exits(125);
        assert!(run.err().contains("refusing.yaml:6"), "{}", run.err());
    }

    #[test]
    fn a_broken_config_is_an_error_and_not_a_finding() {
        let world = world();
        world.write(world.workspace().join("broken.yaml"), "sandbox: {pathz: {}}\n");
        for words in [&["check", "broken.yaml"][..], &["diff", "system", "broken.yaml"]] {
            let run = profile(&world, words).exits(125);
            assert!(run.err().contains("pathz"), "{}", run.err());
        }
    }

    // Diff.

    #[test]
    fn a_config_does_not_differ_from_itself() {
        let world = world();
        assert_eq!(
            profile(&world, &["diff", "agent.yaml", "agent.yaml"]).ok(),
            "they permit the same\n"
        );
        assert_eq!(profile(&world, &["diff", "system", "system"]).code(), 0);
    }

    #[test]
    fn a_difference_names_what_only_one_side_permits_from_both_sides() {
        let world = world();
        let other = CONFIG
            .replace("deny: [.env, ./secret]", "deny: [.env]")
            .replace("network: true", "network: false")
            .replace("memory: 2GiB", "memory: 1GiB")
            .replace("CI: \"a b\"", "CI: c")
            .replace("approval: {read: once_per_session}", "approval: {read: none}")
            .replace("protect_fallback: undo", "protect: none");
        world.write(world.workspace().join("other.yaml"), other);
        let run = profile(&world, &["diff", "agent.yaml", "other.yaml"]).exits(1);
        insta::assert_snapshot!("diff", plain(&world, &run.out()));
        let there = json(&profile(&world, &["diff", "agent.yaml", "other.yaml", "--json"]));
        let back = json(&profile(&world, &["diff", "other.yaml", "agent.yaml", "--json"]));
        for part in ["approved", "unasked", "rules"] {
            assert_eq!(there[part]["only_a"], back[part]["only_b"], "{part}");
            assert_eq!(there[part]["only_b"], back[part]["only_a"], "{part}");
        }
    }

    #[test]
    fn a_long_difference_is_cut_and_says_so() {
        let world = world();
        let run = profile(&world, &["diff", "agent.yaml", "system", "--most", "1"]).exits(1);
        assert!(run.out().contains("… and "), "{}", run.out());
    }

    // Hosts.

    /// A config with lists of hosts: for all commands, a rule and a tool.
    const HOSTS: &str = "\
sandbox: {protect: none, paths: {src: {root: ./src}}}
shell:
  network:
    allow:
      - api.example.org:443
      - \"*.example.net\"
      - 10.0.0.0/8:22
    ask: true
  rules:
    - {pattern: npm ci, approval: none, network: {allow: [registry.example:443]}}
    - {pattern: make, network: false}
custom_tools:
  fetch: {description: d, command: [curl], network: true}
";

    fn with_hosts() -> Fixture {
        let world = world();
        world.write(world.workspace().join("agent.yaml"), HOSTS);
        world
    }

    #[test]
    fn each_host_is_shown_with_its_line_and_what_it_takes() {
        let world = with_hosts();
        let table = json(&profile(&world, &["show", "--config", "agent.yaml", "--json"]));
        let networks = table["networks"].as_array().unwrap();
        let of: Vec<&str> = networks.iter().map(|row| row["of"].as_str().unwrap()).collect();
        assert_eq!(
            of,
            ["every command", "command `npm ci`", "command `make`", "tool `fetch`"]
        );
        let row = |hosts: &str| {
            let rows = networks[0]["hosts"].as_array().unwrap();
            let row = rows.iter().find(|row| row["hosts"] == hosts).unwrap();
            let origin = plain(&world, row["origin"].as_str().unwrap());
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("access"), text("unasked"), origin.trim_end().to_owned())
        };
        let line = |line: u8| format!("<workspace>/agent.yaml:{line}");
        assert_eq!(row("api.example.org:443"), ("free".into(), "free".into(), line(5)));
        assert_eq!(row("*.example.net:80,443"), ("free".into(), "free".into(), line(6)));
        assert_eq!(row("*:*"), ("asked about".into(), "denied".into(), line(8)));
        let held = |row: &Value| -> Vec<String> {
            let backends = row["backends"].as_array().unwrap().iter();
            backends
                .map(|held| {
                    format!(
                        "{} {}",
                        held["backend"].as_str().unwrap(),
                        held["status"].as_str().unwrap()
                    )
                })
                .collect()
        };
        assert_eq!(
            held(&networks[0]),
            ["landlock refused", "namespaces enforced", "seatbelt refused"]
        );
        assert_eq!(
            held(&networks[2]),
            ["landlock stricter", "namespaces enforced", "seatbelt enforced"]
        );
        let text = profile(&world, &["show", "--config", "agent.yaml"]).ok();
        for word in [
            "asked about, unasked: denied",
            "network of tool `fetch`",
            "enforced in namespaces",
            "landlock refuses such calls",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_flag_narrows_every_network_to_what_both_name() {
        let world = with_hosts();
        let words = [
            "show",
            "--config",
            "agent.yaml",
            "--net",
            "api.example.org:443,444",
            "--net",
            "10.1.0.0/16",
            "--json",
        ];
        let table = json(&profile(&world, &words));
        let networks = table["networks"].as_array().unwrap().iter();
        let all: Vec<&str> = networks.map(|row| row["network"].as_str().unwrap()).collect();
        assert_eq!(
            all,
            [
                "api.example.org:443; asks for api.example.org:443-444",
                "off",
                "off",
                "api.example.org:443-444, 10.1.0.0/16:80,443"
            ]
        );
    }

    #[test]
    fn a_host_is_explained_by_what_decides_and_what_would_change_it() {
        let world = with_hosts();
        let explained = |place: &str, status: u8| {
            let run = profile(&world, &["explain", "--config", "agent.yaml", place]).exits(status.into());
            plain(&world, &run.out())
        };
        for (place, status, said) in [
            (
                "API.example.org.:443",
                0,
                "every command: free\n decided by: `api.example.org:443` (<workspace>/agent.yaml:5)",
            ),
            ("api.example.org:443", 0, "in landlock: refused"),
            (
                "api.example.org:443",
                0,
                "command `make`: denied\n decided by: `network off`",
            ),
            (
                "evil.example:9",
                0,
                "every command: asked about, and denied to a command that nobody was asked about",
            ),
            (
                "evil.example:9",
                0,
                "`\"evil.example:9\"` under `allow` (<workspace>/agent.yaml:4) would permit it without a question",
            ),
            ("example.net:443", 0, "names what lies below it, not itself"),
            ("10.1.1.1:22", 0, "not of the internet (private)"),
            (
                "127.0.0.1:22",
                0,
                "every command: denied\n decided by: no entry names it",
            ),
            ("127.0.0.1:22", 0, "names public addresses only"),
            (
                "[::1]:80",
                0,
                "tool `fetch`: free\n decided by: `network full` (<workspace>/agent.yaml:13)",
            ),
        ] {
            let text = explained(place, status).replace("\n    ", "\n ");
            assert!(text.contains(said), "{place} {said}: {text}");
        }
        // What is there is a path, and so is what names a right or begins with `./`.
        world.write(world.workspace().join("src:80"), "");
        for words in [&["src:80"][..], &["./a.example:80"], &["a.example:80", "read"]] {
            let words: Vec<&str> = [&["explain", "--config", "agent.yaml"], words].concat();
            assert!(profile(&world, &words).out().contains("  read: "), "{words:?}");
        }
    }

    #[test]
    fn nothing_permits_a_host_that_a_ceiling_does_not_give() {
        let world = with_hosts();
        let text = "extends: [system]\nshell: {network: {allow: ['*.example.net:443']}}\n";
        world.write(world.workspace().join("ceiling.yaml"), text);
        let words = [
            "explain",
            "--config",
            "agent.yaml",
            "--ceiling",
            "ceiling.yaml",
            "api.example.org:443",
        ];
        let run = profile(&world, &words).exits(1);
        for said in [
            "decided by: no entry names it (the ceiling <workspace>/ceiling.yaml:2)",
            "note: the ceiling <workspace>/ceiling.yaml:2 does not give it either",
        ] {
            let text = plain(&world, &run.out());
            assert!(text.contains(said), "{said}: {text}");
        }
        let run = profile(&world, &["show", "--config", "agent.yaml", "--ceiling", "ceiling.yaml"]).ok();
        for cut in [
            "agent.yaml:5: connect api.example.org:443: not given",
            "agent.yaml:13: network full: not given",
        ] {
            assert!(run.contains(cut), "{cut}: {run}");
        }
    }

    #[test]
    fn networks_of_rules_and_tools_are_checked_too() {
        let world = with_hosts();
        let run = profile(&world, &["check", "--config", "agent.yaml", "--no-selftest", "--json"]);
        let check: Value = serde_json::from_str(&run.out()).unwrap();
        let arrows = check["arrows"].as_array().unwrap();
        for of in ["command `npm ci`", "command `make`", "tool `fetch`"] {
            let claim = format!("config ⊒ profile (network of {of})");
            assert!(
                arrows
                    .iter()
                    .any(|arrow| arrow["claim"] == claim && arrow["result"] == "holds"),
                "{of}"
            );
        }
        let landlock = &check["backends"][0];
        assert!(
            landlock["refuses"]
                .as_str()
                .unwrap()
                .contains("cannot be held in the `landlock` regime")
        );
    }

    #[test]
    fn two_lists_differ_by_hosts() {
        let world = with_hosts();
        let other = HOSTS
            .replace("api.example.org:443", "api.example.org:8443")
            .replace("registry", "mirror");
        world.write(
            world.workspace().join("other.yaml"),
            other.replace("network: true", "network: false"),
        );
        let run = profile(&world, &["diff", "agent.yaml", "other.yaml"]).exits(1);
        for line in [
            "connect api.example.org:443 without a question",
            "connect api.example.org:8443 without a question",
            "connect api.example.org:443\n",
            "command `npm ci` (network registry.example:443): none",
            "network of tool fetch: full | off",
        ] {
            assert!(run.out().contains(line), "{line}: {}", run.out());
        }
        let export = profile(&world, &["export", "--config", "agent.yaml", "--format", "json"]).ok();
        world.write(world.workspace().join("exported.json"), &export);
        profile(&world, &["diff", "exported.json", "agent.yaml"]).exits(0);
    }

    #[test]
    fn a_form_without_a_proxy_reaches_nothing_and_says_so() {
        let world = with_hosts();
        let run = |format: &str| profile(&world, &["export", "--config", "agent.yaml", "--format", format]);
        let systemd = run("systemd");
        assert!(systemd.err().contains("nothing is reached"), "{}", systemd.err());
        assert!(systemd.out().contains("PrivateNetwork=yes"));
        assert!(run("seccomp-oci").err().contains("nothing is reached"));
        for format in ["landlock", "seatbelt"] {
            assert!(run(format).exits(125).err().contains("the list of hosts"), "{format}");
        }
    }
}
