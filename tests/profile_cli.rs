//! `stockade profile` as an auditor meets it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod common;

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use serde_json::Value;
    use stockade::backend::seatbelt::{self, Parameter, SeatbeltPlan};
    use stockade::policy::{AbsPath, Access, Operation};

    use crate::common::{Actor, Backend, Fixture, Run, Snapshot, assert_nothing_left_behind, find_program, world_with};

    /// A config of which every kind of line is in; its roots are in the workspace.
    const CONFIG: &str = "\
sandbox:
  protect_fallback: undo
  deny_fallback: decompose
  paths:
    notes: {root: ./notes, mode: rw, suffixes: [.md], max_file_bytes: 1MiB, approval: {write: required, read: none}}
    src: {root: ./src, mode: rw, write_approval: false, deny: [.env, ./secret]}
    tools: {root: ./tools, execute: true}
    private: {root: ./private, approval: {read: once_per_session}}
shell:
  network: true
  limits: {timeout: 90s, memory: 2GiB, processes: 64, output: 1500}
  env: {pass: [TZ], set: {CI: \"a b\"}}
  rules:
    - {pattern: git status, approval: none}
    - {pattern: rm, allowed: false}
";

    fn world() -> Fixture {
        let world = Fixture::new(Actor::invoker(), Backend::Landlock);
        for folder in ["notes", "src/secret", "tools", "private"] {
            fs::create_dir_all(world.workspace().join(folder)).unwrap();
        }
        world.write(world.workspace().join("agent.yaml"), CONFIG);
        world
    }

    /// `stockade profile WORDS…` in the workspace, beside agent.yaml.
    fn profile(world: &Fixture, words: &[&str]) -> Run {
        let words: Vec<&str> = [&["profile"], words].concat();
        world.stockade(&words).cwd(world.workspace()).output()
    }

    /// The output with what differs from run to run taken out.
    fn shown(world: &Fixture, run: Run) -> String {
        plain(world, &run.ok())
    }

    /// The same of text. How wide a column is depends on where the workspace is, so blanks count as one.
    fn plain(world: &Fixture, text: &str) -> String {
        let text = text.replace(world.workspace().to_str().unwrap(), "<workspace>");
        let line = |line: &str| {
            let indent = &line[..line.len() - line.trim_start().len()];
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{indent}{}\n", words.join(" "))
        };
        text.lines().map(line).collect()
    }

    fn json(run: &Run) -> Value {
        serde_json::from_str(&run.out()).unwrap_or_else(|error| panic!("{error}: {} {}", run.out(), run.err()))
    }

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
        let config = "sandbox: {protect_fallback: undo, paths: {s: {root: ./src, mode: rw, write_approval: false}}}\n";
        world.write(world.workspace().join("open.yaml"), config);
        world.write(world.workspace().join("src/.envrc"), "");
        let ask = |path: &str| {
            let words = ["explain", "--config", "open.yaml", "--json", path, "write"];
            backend_says(&json(&profile(&world, &words)), "bwrap")
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
        let (status, detail) = backend_says(&json(&profile(&world, &words)), "bwrap");
        assert_eq!(status, "enforced");
        assert!(detail.contains("sandbox's own"), "{detail}");
        let words = ["explain", "--config", "agent.yaml", "--json", "/var/x", "read"];
        assert_eq!(backend_says(&json(&profile(&world, &words)), "bwrap").1, "");
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
        assert_eq!(backend_says(&report, "bwrap").0, "enforced");
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
        assert_eq!(names(&[]), ["landlock", "bwrap"]);
        assert_eq!(names(&["--backend", "auto"]), ["landlock", "bwrap"]);
        for one in ["landlock", "bwrap", "seatbelt"] {
            assert_eq!(names(&["--backend", one]), [one]);
            let words = ["explain", "--config", "agent.yaml", "--json", "src/a", "--backend", one];
            let report = json(&profile(&world, &words));
            let asked = report["answers"][0]["backends"].as_array().unwrap();
            assert_eq!((asked.len(), &asked[0]["backend"]), (1, &one.into()));
        }
        let config = CONFIG.replace("sandbox:\n", "sandbox:\n  backend: bwrap\n");
        world.write(world.workspace().join("agent.yaml"), config);
        assert_eq!(names(&[]), ["bwrap"]);
        for words in [&["show"][..], &["export", "--format", "json"]] {
            let words = [words, &["--config", "agent.yaml", "--backend", "bwrap"]].concat();
            let run = profile(&world, &words).exits(125);
            assert!(run.err().contains("`--backend` has no meaning here"), "{}", run.err());
        }
    }

    #[test]
    fn no_command_runs_in_a_backend_that_is_only_looked_at() {
        let world = world();
        let run = world.stockade(&["run", "--backend", "seatbelt", "--", "true"]).output();
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
        insta::assert_snapshot!("check", shown(&world, run));
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
    // Export.

    /// The config with nothing in it that some form has no words for.
    fn plain_config(world: &Fixture) {
        let text = CONFIG.replace("deny: [.env, ./secret]", "deny: [./secret]");
        world.write(world.workspace().join("plain.yaml"), text);
    }

    fn exported(world: &Fixture, format: &str) -> Run {
        profile(world, &["export", "--config", "plain.yaml", "--format", format])
    }

    #[test]
    fn an_exported_profile_is_stable_and_permits_what_its_config_permits() {
        let world = world();
        insta::assert_snapshot!("export_json", {
            plain_config(&world);
            shown(&world, exported(&world, "json"))
        });
        let words = [
            "export",
            "--config",
            "agent.yaml",
            "--format",
            "json",
            "--output",
            "agent.json",
        ];
        assert_eq!(profile(&world, &words).ok(), "");
        assert_eq!(
            profile(&world, &["diff", "agent.json", "agent.yaml"]).ok(),
            "they permit the same\n"
        );
        assert_eq!(profile(&world, &["diff", "agent.json", "plain.yaml"]).code(), 1);
    }

    #[test]
    fn a_profile_with_names_that_are_not_text_survives_its_export() {
        let world = world();
        let name = OsStr::from_bytes(b"n\xff\n'");
        fs::create_dir(world.workspace().join(name)).unwrap();
        let run = world
            .stockade(&["profile", "export", "--format", "json", "--output", "odd.json", "--rw"])
            .args([name])
            .cwd(world.workspace())
            .output();
        run.ok();
        let report = profile(&world, &["diff", "odd.json", "system"]).exits(1);
        assert!(report.out().contains("n\\xff\\n'"), "{}", report.out());
    }

    #[test]
    fn what_is_no_exported_profile_is_refused() {
        let world = world();
        world.write(world.workspace().join("new.json"), "{\"stockade_profile\": 99}");
        assert!(
            profile(&world, &["diff", "new.json", "system"])
                .exits(125)
                .err()
                .contains("new.json")
        );
    }

    #[test]
    fn landlock_rules_are_exported_with_the_names_of_their_rights() {
        let world = world();
        plain_config(&world);
        let rules = json(&exported(&world, "landlock"));
        let handled = rules["ruleset"][0]["handledAccessFs"].as_array().unwrap();
        let tools = world.workspace().join("tools");
        let of_tools = rules["pathBeneath"]
            .as_array()
            .unwrap()
            .iter()
            .find(|rule| rule["parent"][0] == tools.to_str().unwrap())
            .unwrap();
        assert_eq!(
            of_tools["allowedAccess"],
            serde_json::json!(["execute", "read_file", "read_dir"])
        );
        for rule in rules["pathBeneath"].as_array().unwrap() {
            let allowed = rule["allowedAccess"].as_array().unwrap();
            assert!(allowed.iter().all(|right| handled.contains(right)), "{rule}");
        }
    }

    #[test]
    fn the_oci_filter_is_what_the_schema_of_the_runtime_spec_asks_for() {
        let world = world();
        plain_config(&world);
        let filter = json(&exported(&world, "seccomp-oci"));
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.set_default_draft(boon::Draft::V4);
        for file in ["config-linux.json", "defs.json", "defs-linux.json"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oci").join(file);
            let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            compiler.add_resource(&format!("file:///oci/{file}"), schema).unwrap();
        }
        let schema = compiler
            .compile("file:///oci/config-linux.json#/linux", &mut schemas)
            .unwrap();
        let config = serde_json::json!({"seccomp": filter});
        schemas.validate(&config, schema).unwrap();
        let mut wrong = config;
        wrong["seccomp"]["defaultAction"] = "SCMP_ACT_PERHAPS".into();
        assert!(schemas.validate(&wrong, schema).is_err());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_oci_filter_is_stable_and_small_enough_for_a_kernel() {
        let world = world();
        plain_config(&world);
        let filter = json(&exported(&world, "seccomp-oci"));
        let rules = filter["syscalls"].as_array().unwrap();
        // A condition takes a handful of instructions, and a filter has at most 4,096.
        assert!(rules.len() < 500, "{}", rules.len());
        let line = |rule: &Value| {
            let args: Vec<String> = rule["args"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|a| {
                    format!(
                        "{}&{:#x}={:#x}",
                        a["index"],
                        a["value"].as_u64().unwrap(),
                        a["valueTwo"].as_u64().unwrap()
                    )
                })
                .collect();
            let names: Vec<&str> = rule["names"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_str().unwrap())
                .collect();
            format!(
                "{} {} {} {}\n",
                rule["action"],
                rule["errnoRet"],
                names.join(" "),
                args.join(" ")
            )
        };
        insta::assert_snapshot!("export_seccomp", rules.iter().map(line).collect::<String>());
    }

    #[test]
    fn the_drop_in_is_accepted_by_systemd() {
        let Some(world) = world_with(Actor::invoker(), Backend::Landlock, &["systemd-analyze"]) else {
            return;
        };
        for folder in ["notes", "src/secret", "tools", "private", "50% a  b"] {
            fs::create_dir_all(world.workspace().join(folder)).unwrap();
        }
        plain_config(&world);
        let drop_in = exported(&world, "systemd");
        insta::assert_snapshot!("export_systemd", shown(&world, exported(&world, "systemd")));
        let odd = profile(&world, &["export", "--format", "systemd", "--rw", "50% a  b"]).ok();
        assert!(odd.contains("/50%% a  b\""), "{odd}");
        for text in [drop_in.ok(), odd] {
            let unit = world.workspace().join("agent.service");
            world.write(&unit, format!("{text}\nExecStart=/usr/bin/true\n"));
            let judged = world
                .bare(find_program(world.actor, "systemd-analyze").unwrap())
                .args(["security", "--offline=true", "--no-pager", unit.to_str().unwrap()])
                .output();
            let (out, err) = (judged.out(), judged.err());
            judged.exits(0);
            assert!(out.contains("Overall exposure level"), "{out}");
            // Calls younger than this systemd are the one thing that it may not know.
            let unknown = |line: &&str| !line.contains("Failed to parse system call");
            assert_eq!(err.lines().find(unknown), None);
        }
    }

    /// The export in this form, of what flags say, and what is said beside it.
    fn exported_flags(world: &Fixture, format: &str, flags: &[&OsStr]) -> Run {
        let run = world.stockade(&["profile", "export", "--format", format]).args(flags);
        run.cwd(world.workspace()).output()
    }

    #[test]
    fn the_arguments_of_bwrap_are_stable_and_interpreted_by_a_reader() {
        let world = world();
        plain_config(&world);
        world.write(world.workspace().join("src/.envrc"), "");
        let run = exported(&world, "bwrap");
        assert!(run.err().contains("not held by bwrap"), "{}", run.err());
        // What the machine has for a system differs; what the config says does not.
        let own = world.workspace().to_str().unwrap().to_owned();
        let text = run.ok();
        let arguments: Vec<&str> = text.split_terminator('\0').collect();
        let mut kept = String::new();
        let mut at = 0;
        while let Some(option) = arguments.get(at) {
            let values = arguments[at + 1..].iter().take_while(|word| !word.starts_with("--"));
            let values: Vec<&str> = values.copied().collect();
            at += 1 + values.len();
            if values.is_empty()
                || values
                    .iter()
                    .all(|value| !value.starts_with('/') || value.starts_with(&own))
            {
                kept.extend([*option, " ", &values.join(" "), "\n"]);
            }
        }
        insta::assert_snapshot!("export_bwrap", plain(&world, &kept));
    }

    crate::common::in_namespaces! {
        the_exported_arguments_hold_in_the_real_bwrap [];
        hostile_names_survive_the_export_to_bwrap [];
    }

    /// `bwrap --args 3 -- sh -c LINE`, with what was exported.
    fn under_bwrap(world: &Fixture, flags: &[&OsStr], line: &str) -> Run {
        let file = world.workspace().join("arguments");
        let output = [OsStr::new("--output"), file.as_os_str()];
        exported_flags(world, "bwrap", &[flags, &output].concat()).ok();
        let sh = world
            .bare(Path::new("/bin/sh"))
            .args(["-c", "exec bwrap --args 3 -- /bin/sh -c \"$1\" 3<\"$0\""]);
        sh.args([file.as_os_str(), OsStr::new(line)])
            .cwd(world.workspace())
            .output()
    }

    fn the_exported_arguments_hold_in_the_real_bwrap(world: &Fixture) {
        for file in ["w/in/secret", "r/text", "w/.envrc", "beside"] {
            world.write(world.workspace().join(file), "old\n");
        }
        let flags = ["--rw", "w", "--ro", "r", "--deny", "w/in"].map(OsStr::new);
        let at = |line: &str| line.replace('@', world.workspace().to_str().unwrap());
        for (line, may) in [
            ("echo new > @/w/made", true),
            ("cat @/r/text", true),
            ("echo new > @/r/text", false),
            ("cat @/w/in/secret", false),
            ("mv @/w/in @/w/out", false),
            ("echo new > @/w/.envrc", false),
            ("mv @/w/.envrc @/w/aside", false),
            ("cat @/beside", false),
        ] {
            let run = under_bwrap(world, &flags, &at(line));
            assert_eq!(run.code() == 0, may, "{line}: {}", run.err());
            assert!(!run.err().contains("bwrap:"), "{line}: {}", run.err());
        }
        assert_eq!(fs::read_to_string(world.workspace().join("w/made")).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(world.workspace().join("w/.envrc")).unwrap(), "old\n");
    }

    fn hostile_names_survive_the_export_to_bwrap(world: &Fixture) {
        for name in [&b"-x"[..], b"a b", b"a'\"\n", b"n\xff", "e\u{202e}\u{2028}x".as_bytes()] {
            let name = OsStr::from_bytes(name);
            let folder = world.workspace().join(name);
            world.write(folder.join("here"), "");
            // The name is not put into the line: the place is found by what is in it.
            let mut flag = OsStr::new("--rw=").to_owned();
            flag.push(name);
            let up = world.workspace().to_str().unwrap().to_owned();
            let run = under_bwrap(
                world,
                &[&flag],
                &format!("cd {up} && for each in ./*/; do ls \"$each/here\" && echo > \"$each/new\" || exit; done"),
            );
            assert_eq!(run.code(), 0, "{name:?}: {}", run.err());
            assert!(folder.join("new").exists(), "{name:?}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn what_mounts_alone_cannot_hold_is_refused_by_name_and_what_they_need_not_show_is_left_out() {
        let world = world();
        let words = ["export", "--format", "bwrap", "--config", "agent.yaml"];
        let run = profile(&world, &words).exits(125);
        assert!(
            run.err()
                .contains("agent.yaml:6: a bwrap without Landlock inside cannot hold `deny all .env"),
            "{}",
            run.err()
        );
        plain_config(&world);
        let text = exported(&world, "bwrap").ok();
        assert!(text.contains("/src\0") && !text.contains("/notes\0"), "{text}");
    }

    #[test]
    fn the_script_for_sandbox_exec_hands_over_a_text_that_permits_what_the_config_permits() {
        let world = world();
        plain_config(&world);
        let script = exported(&world, "seatbelt").ok();
        insta::assert_snapshot!("export_seatbelt", {
            // Where the workspace lies decides about the rest; the text has tests of its own.
            let kept = |line: &&str| line.starts_with(['#', 'e']) || line.contains("/src'") || line.starts_with("  --");
            let kept: Vec<&str> = script.lines().filter(kept).collect();
            plain(&world, &kept.join("\n")).replace("/private<workspace>", "<workspace>")
        });
        // A stand-in that says what it was told.
        let told = world.workspace().join("told");
        let stand_in = world.workspace().join("stand-in");
        world.write(
            &stand_in,
            format!("#!/bin/sh\nprintf '%s\\0' \"$@\" > '{}'\n", told.display()),
        );
        let script = script.replace("/usr/bin/sandbox-exec", &format!("sh {}", stand_in.display()));
        world.write(world.workspace().join("script"), script);
        let sh = world
            .bare(Path::new("/bin/sh"))
            .args(["script", "make", "a b", "$(false)"]);
        sh.cwd(world.workspace()).output().ok();
        let told = fs::read_to_string(told).unwrap();
        let mut words = told.split_terminator('\0');
        assert_eq!(words.next(), Some("-p"));
        let text = words.next().unwrap().to_owned();
        let words: Vec<&str> = words.collect();
        let (command, parameters) = (&words[words.len() - 4..], &words[..words.len() - 4]);
        assert_eq!(command, ["--", "make", "a b", "$(false)"]);
        let pair = |pair: &[&str]| match pair {
            ["-D", parameter] => {
                let (name, value) = parameter.split_once('=').unwrap();
                Parameter {
                    name: name.to_owned(),
                    value: value.to_owned(),
                }
            }
            other => panic!("{other:?}"),
        };
        let plan = SeatbeltPlan {
            text,
            parameters: parameters.chunks(2).map(pair).collect(),
        };
        let script = seatbelt::parse(&plan).unwrap();
        let may = |operation, path: &str| {
            let path = AbsPath::new(world.workspace().join(path)).unwrap();
            seatbelt::view::widest(&script, operation, &path) != Access::Denied
        };
        assert!(may(Operation::Write, "src/a") && may(Operation::Read, "private/a"));
        assert!(
            !may(Operation::Read, "src/secret/a") && !may(Operation::Write, "private/a") && !may(Operation::Read, "x")
        );
    }

    #[test]
    fn a_name_with_a_quote_survives_in_the_script_and_one_that_cannot_be_seen_is_refused() {
        let world = world();
        let name = "it's; $(x) \"`y`";
        fs::create_dir(world.workspace().join(name)).unwrap();
        let script = exported_flags(&world, "seatbelt", &["--rw", name].map(OsStr::new)).ok();
        assert!(script.contains("it'\\''s; $(x) \"`y`'"), "{script}");
        for name in ["a\nb", "a\u{202e}b", "a\u{2028}b", "a\u{200b}"] {
            fs::create_dir(world.workspace().join(name)).unwrap();
            let run = exported_flags(&world, "seatbelt", &["--rw", name].map(OsStr::new)).exits(125);
            assert!(run.err().contains("a character that cannot be seen"), "{}", run.err());
        }
    }

    #[test]
    fn what_cannot_be_seen_is_escaped_in_json_and_reads_back() {
        let world = world();
        let name = "a\u{202e}b\u{2028}c";
        fs::create_dir(world.workspace().join(name)).unwrap();
        for format in ["json", "landlock"] {
            let text = exported_flags(&world, format, &["--rw", name].map(OsStr::new)).ok();
            assert!(
                text.contains("a\\u202eb\\u2028c") && !text.contains('\u{202e}'),
                "{text}"
            );
            assert!(serde_json::from_str::<Value>(&text).unwrap().to_string().contains(name));
        }
    }

    #[test]
    fn what_systemd_has_no_words_for_is_refused_by_name() {
        let world = world();
        let refused = |words: &[&str], said: &str| {
            let run = profile(&world, &[&["export", "--format", "systemd"], words].concat()).exits(125);
            assert!(run.err().contains(said), "{}", run.err());
        };
        refused(
            &["--config", "agent.yaml"],
            "agent.yaml:6: a systemd drop-in cannot hold `deny all .env",
        );
        for name in ["a:b", "a\"b", "a\\b", "a\nb", "a\u{202e}b", "a\u{2028}b", "a\u{ad}b"] {
            fs::create_dir(world.workspace().join(name)).unwrap();
            refused(&["--rw", name], "cannot name");
        }
    }
}
