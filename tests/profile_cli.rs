//! `stockade profile` as an auditor meets it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod common;

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
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
        // Who counts the processes in namespaces depends on who runs this.
        let text = shown(&world, run);
        let kept = text.lines().filter(|line| !line.contains("limit processes"));
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
}
