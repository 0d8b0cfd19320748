//! A machine that cannot confine, made by a real mechanism: a seccomp filter under which the kernel answers as one
//! without Landlock, without filters, or with an older Landlock.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::signal::Signal;
    use serde_json::Value;

    use crate::common::{
        Fixture, SECRET, as_root_and_as_user, assert_no_process_left, eventually, kill_marked, marker,
        wait_for_processes, wait_until_gone, without,
    };

    as_root_and_as_user! {
        nothing_runs_by_default_and_one_paragraph_says_why ["cc"];
        a_kernel_below_the_floor_is_told_which_clause_needs_what ["cc"];
        refused_tools_are_refused_with_the_reason ["cc"];
        a_config_may_permit_to_run_unconfined_and_then_every_outcome_says_so ["cc"];
        permission_to_run_unconfined_does_not_count_where_a_regime_works_that_was_not_asked_for ["cc"];
        what_was_asked_for_runs_unconfined_where_nothing_works_and_that_is_permitted ["cc"];
        no_flag_permits_to_run_unconfined ["cc"];
        permission_to_run_unconfined_does_not_lift_confinement_where_there_is_some [];
        approval_is_asked_for_in_the_regime_none_too ["cc"];
        daemons_die_with_the_command_in_the_regime_none ["cc", "setsid"];
        daemons_die_with_a_killed_parent_in_the_regime_none ["cc", "setsid"];
        protected_names_are_put_back_in_the_regime_none ["cc"];
        doctor_fails_and_names_what_is_missing ["cc"];
        doctor_follows_the_version_that_the_kernel_names ["cc"];
        between_the_two_floors_namespaces_run_commands ["cc", "bwrap"];
        where_no_namespace_is_made_landlock_runs_commands_and_says_why ["cc", "bwrap"];
        doctor_says_that_no_namespace_is_made ["cc", "bwrap"];
        namespaces_that_were_asked_for_are_not_replaced ["cc", "bwrap"];
        a_start_without_close_range_names_it ["cc"];
        a_mode_changes_without_fchmodat2 ["cc"];
        doctor_says_where_the_memory_of_commands_cannot_be_read ["cc"];
        bwrap_is_tried_with_the_rights_of_a_session ["cc", "bwrap"];
    }

    const REFUSE: &str = "os_sandbox_fallback: refuse_tools";
    const NOT_REQUIRED: &str = "require_os_sandbox: false";

    /// What the machine may lack, and a word by which the message must name it.
    const LACKS: [(&str, &str); 5] = [
        ("landlock", "the kernel has no Landlock"),
        ("enabled-landlock", "not enabled at boot"),
        ("seccomp", "seccomp"),
        ("2", "this kernel has 2"),
        ("openat2", "openat2: Function not implemented"),
    ];

    /// The versions of Landlock that are too old for `landlock`, and not for `namespaces`.
    const BETWEEN_THE_FLOORS: [&str; 3] = ["3", "4", "5"];

    /// A config beside the workspace, which it grants; `sandbox` says more of it.
    fn config(world: &Fixture, sandbox: &str, shell: &str) -> String {
        let text = format!(
            "extends: [system]\nsandbox:\n  {sandbox}\n  protect_fallback: undo\n  paths: {{w: {{root: {}, mode: rw, \
             approval: {{write: none}}}}}}\nshell: {{default: {{allowed: true, approval: {shell}}}}}\n",
            world.workspace().display()
        );
        let file = world.write(world.base().join("stockade-config.yaml"), text);
        file.to_str().unwrap().to_owned()
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn nothing_runs_by_default_and_one_paragraph_says_why(world: &Fixture) {
        for (what, named) in LACKS {
            let run = without(world, what, &["run", "-c", "echo ran; touch ran"])
                .output()
                .exits(125);
            assert_eq!(run.out(), "", "{what}");
            assert!(!world.workspace().join("ran").exists(), "{what}");
            let said = run.err();
            assert_eq!(said.lines().count(), 1, "{what}: {said}");
            for word in [
                "cannot confine commands, so nothing was run",
                named,
                "could read and write everything this user can",
                "Linux 6.12",
                "stockade doctor",
                "require_os_sandbox: false",
            ] {
                assert!(said.contains(word), "{what}: `{word}` is not in: {said}");
            }
            let run = without(world, what, &["run", "--json", "-c", "touch ran"])
                .output()
                .exits(125);
            let said = run.err() + &run.out();
            assert!(said.contains(named), "{what}: {said}");
        }
        world.shell("echo ran").output().exits(0);
    }

    fn a_kernel_below_the_floor_is_told_which_clause_needs_what(world: &Fixture) {
        let said = without(world, "2", &["run", "--", "true"]).output().exits(125).err();
        for clause in ["read-only roots", "network off", "devices", "processes"] {
            assert!(said.contains(clause), "{clause}: {said}");
        }
        // Version 2 has what writable roots need.
        assert!(!said.contains("writable roots"), "{said}");
    }

    fn refused_tools_are_refused_with_the_reason(world: &Fixture) {
        let config = config(world, REFUSE, "none");
        for (what, named) in LACKS {
            let run = without(world, what, &["run", "--config", &config, "-c", "touch ran"]);
            let run = run.output().exits(125);
            assert!(run.err().contains(named), "{what}: {}", run.err());
            let run = without(world, what, &["run", "--json", "--config", &config, "-c", "touch ran"]);
            let outcome = json(&run.output().exits(125).out());
            assert_eq!(outcome["status"], "refused", "{outcome}");
            assert!(outcome["reason"].as_str().unwrap().contains(named), "{outcome}");
        }
        assert!(!world.workspace().join("ran").exists());
        let run = world.stockade(&["run", "--config", &config, "-c", "touch ran"]);
        run.output().exits(0);
        assert!(world.workspace().join("ran").exists());
    }

    fn a_config_may_permit_to_run_unconfined_and_then_every_outcome_says_so(world: &Fixture) {
        let config = config(world, NOT_REQUIRED, "none");
        let secret = world.outside().join("secret");
        for (what, named) in LACKS {
            let argv = ["run", "--config", &config, "--", "cat", secret.to_str().unwrap()];
            let run = without(world, what, &argv).output().exits(0);
            assert_eq!(run.out(), SECRET, "{what}");
            // Standard error is no terminal here.
            assert!(run.err().contains("UNCONFINED"), "{what}: {}", run.err());
            assert!(run.err().contains(named), "{what}: {}", run.err());
            let run = without(world, what, &["run", "--json", "--config", &config, "--", "true"]);
            let outcome = json(&run.output().exits(0).out());
            assert!(
                outcome["regime"].as_str().unwrap().starts_with("none (UNCONFINED"),
                "{outcome}"
            );
            let quiet = ["run", "--quiet", "--config", &config, "--", "true"];
            let run = without(world, what, &quiet).output().exits(0);
            assert!(run.err().contains("UNCONFINED"), "--quiet hid it: {}", run.err());
        }
    }

    /// The words that name one backend: in the config, or by a flag beside it.
    fn asking_for<'a>(world: &Fixture, backend: &'a str) -> [(String, Vec<&'a str>); 2] {
        let named = config(world, &format!("backend: {backend}\n  {NOT_REQUIRED}"), "none");
        let named = fs::read_to_string(named).unwrap();
        let named = world.write(world.base().join("names-a-backend.yaml"), named);
        [
            (named.to_str().unwrap().to_owned(), Vec::new()),
            (config(world, NOT_REQUIRED, "none"), vec!["--backend", backend]),
        ]
    }

    fn permission_to_run_unconfined_does_not_count_where_a_regime_works_that_was_not_asked_for(world: &Fixture) {
        let refused = |what: &str, backend: &str, works: &str| {
            for (config, flags) in asking_for(world, backend) {
                let args = [
                    &["run", "--config", &config],
                    &flags[..],
                    &["-c", "echo ran; touch ran"],
                ]
                .concat();
                let mut said = String::new();
                // Another test of this user, under as many filters, may have left the memory that namespaces work. The start
                // that it misleads drops it.
                eventually("a start that tries for itself", || {
                    let run = without(world, what, &args).output().exits(125);
                    said = run.err();
                    assert!(
                        !said.contains("UNCONFINED") && run.out().is_empty(),
                        "{what}, {backend}: {said}"
                    );
                    !said.contains("failed to confine: entering namespaces")
                });
                let works = format!("the `{works}` regime works here");
                for word in [works.as_str(), "`sandbox.backend: auto`"] {
                    assert!(said.contains(word), "{what}, {backend}: `{word}` is not in: {said}");
                }
                assert!(!world.workspace().join("ran").exists(), "{what}, {backend}");
            }
        };
        for version in BETWEEN_THE_FLOORS {
            refused(version, "landlock", "namespaces");
        }
        refused("namespaces", "namespaces", "landlock");
    }

    fn what_was_asked_for_runs_unconfined_where_nothing_works_and_that_is_permitted(world: &Fixture) {
        for backend in ["landlock", "namespaces"] {
            for what in ["landlock", "1", "2"] {
                for (config, flags) in asking_for(world, backend) {
                    let args = [&["run", "--config", &config], &flags[..], &["--", "echo", "ran"]].concat();
                    let run = without(world, what, &args).output().exits(0);
                    assert_eq!(run.out(), "ran\n", "{what}, {backend}");
                    assert!(run.err().contains("UNCONFINED"), "{what}, {backend}: {}", run.err());
                }
            }
        }
    }

    fn no_flag_permits_to_run_unconfined(world: &Fixture) {
        for flags in [
            &["--preset", "workspace-write"][..],
            &["--rw", "."],
            &["--mode", "approve_all"],
            &["--backend", "landlock"],
        ] {
            let args = [&["run"], flags, &["--", "touch", "ran"]].concat();
            without(world, "landlock", &args).output().exits(125);
        }
        assert!(!world.workspace().join("ran").exists());
    }

    fn permission_to_run_unconfined_does_not_lift_confinement_where_there_is_some(world: &Fixture) {
        let config = config(world, NOT_REQUIRED, "none");
        let secret = world.outside().join("secret");
        let argv = ["run", "--config", &config, "--", "cat", secret.to_str().unwrap()];
        let run = world.stockade(&argv).output();
        assert!(!run.err().contains("UNCONFINED"), "{}", run.err());
        run.assert_denied();
        let run = world.stockade(&["run", "--json", "--config", &config, "--", "true"]);
        let outcome = json(&run.output().exits(0).out());
        assert!(outcome["regime"].as_str().unwrap().starts_with("landlock"), "{outcome}");
    }

    fn approval_is_asked_for_in_the_regime_none_too(world: &Fixture) {
        let config = config(world, NOT_REQUIRED, "required");
        let args = |mode| ["run", "--mode", mode, "--config", &config, "--", "touch", "ran"];
        without(world, "landlock", &args("strict")).output().exits(126);
        assert!(!world.workspace().join("ran").exists());
        without(world, "landlock", &args("approve_all")).output().exits(0);
        assert!(world.workspace().join("ran").exists());
    }

    /// A line that leaves three kinds of daemon behind, each `sleep MARKER`.
    fn daemons(marker: &str) -> String {
        format!("sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exit' &)")
    }

    fn daemons_die_with_the_command_in_the_regime_none(world: &Fixture) {
        let (config, marker) = (config(world, NOT_REQUIRED, "none"), marker());
        // What somebody else of the same user runs is not touched.
        let bystander = world.bare("/bin/sleep").args(["86400"]).spawn();
        let line = format!("{}; sleep 0.5; echo ended", daemons(&marker));
        let run = without(world, "landlock", &["run", "--config", &config, "-c", &line]);
        assert_eq!(run.output().exits(0).out(), "ended\n");
        assert_no_process_left(&marker);
        assert!(fs::exists(format!("/proc/{}", bystander.pid())).unwrap());
        bystander.signal(Signal::SIGTERM);
        bystander.wait().exits(143);
        // The twin: without Stockade they live on.
        world
            .bare("/bin/sh")
            .args(["-c", &format!("exec >/dev/null 2>&1; {}; sleep 0.3", daemons(&marker))])
            .output()
            .exits(0);
        wait_for_processes(&marker, 3);
        kill_marked(&marker);
    }

    fn daemons_die_with_a_killed_parent_in_the_regime_none(world: &Fixture) {
        let (config, marker) = (config(world, NOT_REQUIRED, "none"), marker());
        let line = format!("{}; sleep {marker}", daemons(&marker));
        let running = without(world, "landlock", &["run", "--config", &config, "-c", &line]).spawn();
        wait_for_processes(&marker, 4);
        // The helper has become Stockade's parent by exec, so this is Stockade itself.
        running.signal(Signal::SIGKILL);
        wait_until_gone(&marker);
        running.wait().exits(137);
    }

    fn protected_names_are_put_back_in_the_regime_none(world: &Fixture) {
        let config = config(world, NOT_REQUIRED, "none");
        let line = "echo 'curl evil' > .envrc; echo kept > kept";
        let run = without(world, "landlock", &["run", "--config", &config, "-c", line]);
        let run = run.output().exits(0);
        assert!(run.err().contains(".envrc"), "{}", run.err());
        assert!(!world.workspace().join(".envrc").exists());
        assert!(world.workspace().join("kept").exists());
    }

    fn doctor_fails_and_names_what_is_missing(world: &Fixture) {
        for (what, named) in LACKS {
            let run = without(world, what, &["doctor"]).output();
            assert_ne!(run.code(), 0, "{what}");
            assert!(run.out().contains("MISSING"), "{what}: {}", run.out());
            assert!(run.out().contains(named), "{what}: {}", run.out());
            let run = without(world, what, &["doctor", "--json"]).output();
            assert_ne!(run.code(), 0, "{what}");
            let report = json(&run.out());
            assert_eq!(report["regime"], "none", "{report}");
            let missing = match what {
                "seccomp" => "seccomp",
                "openat2" => "system_calls",
                _ => "landlock",
            };
            for finding in report["findings"].as_array().unwrap() {
                let (name, standing) = (finding["name"].as_str().unwrap(), finding["standing"].as_str().unwrap());
                assert_eq!(standing == "missing", name == missing, "{what}: {report}");
                assert!(standing != "missing" || finding["get"].is_string(), "{what}: {report}");
            }
        }
        let report = json(&world.stockade(&["doctor", "--json"]).output().ok());
        assert_ne!(report["regime"], "none", "{report}");
    }

    fn between_the_two_floors_namespaces_run_commands(world: &Fixture) {
        let report = json(&without(world, "5", &["doctor", "--json"]).output().exits(0).out());
        assert_eq!(report["regime"], "namespaces", "{report}");
        let ready = |number: usize| report["regimes"][number]["ready"].as_bool().unwrap();
        assert!(ready(0) && !ready(1), "{report}");
        // That a command then runs cannot be seen here: who names the version listens where the broker would.
        let args = ["run", "--backend", "landlock", "--", "true"];
        let said = without(world, "5", &args).output().exits(125).err();
        assert!(said.contains("this kernel has 5"), "{said}");
    }

    fn where_no_namespace_is_made_landlock_runs_commands_and_says_why(world: &Fixture) {
        // The twin: with them, they are taken.
        let with = world
            .bare(world.binary())
            .args(["run", "--json", "--", "true"])
            .output();
        assert!(
            json(&with.exits(0).out())["regime"]
                .as_str()
                .unwrap()
                .starts_with("namespaces (native")
        );
        let secret = world.outside().join("secret");
        for _ in 0..2 {
            let args = ["run", "--json", "--", "cat", secret.to_str().unwrap()];
            let run = without(world, "namespaces", &args).output();
            assert!(run.code() == 1 && !run.out().contains(SECRET), "{}", run.out());
            let regime = json(&run.out())["regime"].as_str().unwrap().to_owned();
            assert!(
                regime.starts_with("landlock (Landlock ABI")
                    && regime.contains("; namespaces unavailable: ")
                    && regime.contains("entering namespaces: "),
                "{regime}"
            );
        }
    }

    fn doctor_says_that_no_namespace_is_made(world: &Fixture) {
        let run = without(world, "namespaces", &["doctor"]).output().exits(0);
        let words = "in the `landlock` regime (`namespaces` is unavailable: entering namespaces: ";
        assert!(run.out().contains(words), "{}", run.out());
        let report = json(
            &without(world, "namespaces", &["doctor", "--json"])
                .output()
                .exits(0)
                .out(),
        );
        assert_eq!(report["regime"], "landlock");
        assert_eq!(report["regimes"][0]["ready"], false, "{report}");
    }

    fn namespaces_that_were_asked_for_are_not_replaced(world: &Fixture) {
        for backend in ["namespaces", "bwrap"] {
            let args = ["run", "--backend", backend, "--", "touch", "ran"];
            let said = without(world, "namespaces", &args).output().exits(125).err();
            assert!(said.contains("namespace"), "{backend}: {said}");
            assert!(!world.workspace().join("ran").exists());
        }
    }

    fn a_start_without_close_range_names_it(world: &Fixture) {
        for backend in ["auto", "namespaces", "landlock", "bwrap"] {
            let args = ["run", "--backend", backend, "--", "touch", "ran"];
            let said = without(world, "close-range", &args).output().exits(125).err();
            assert!(said.contains("close_range"), "{backend}: {said}");
            assert!(!world.workspace().join("ran").exists(), "{backend}");
        }
        let report = without(world, "close-range", &["doctor"]).output().exits(1).out();
        let line =
            "MISSING  system_calls: closing descriptors that were handed down: Function not implemented (close_range)";
        assert!(report.contains(line), "{report}");
    }

    fn a_mode_changes_without_fchmodat2(world: &Fixture) {
        let line =
            "touch f && chmod 640 f && stat -c %a f; ln -sf f l; chmod 600 l && stat -c %a f; chmod 777 /etc/passwd";
        for backend in ["namespaces", "landlock"] {
            for what in [Some("fchmodat2"), None] {
                let args = ["run", "--backend", backend, "-c", line];
                let bare = || world.bare(world.binary()).args(args);
                let run = what.map_or_else(bare, |what| without(world, what, &args));
                let run = run.output();
                assert_eq!(run.out(), "640\n600\n", "{backend}, {what:?}: {}", run.err());
                // The twin of what may change: it belongs to root, and this is no root.
                run.assert_denied();
            }
        }
    }

    fn doctor_says_where_the_memory_of_commands_cannot_be_read(world: &Fixture) {
        let report = without(world, "reading-memory", &["doctor"]).output().exits(0).out();
        for word in [
            "absent   command_memory: Operation not permitted",
            "kernel.yama.ptrace_scope",
            "cannot hold: chmod, chown, touch and extended attributes of a path",
        ] {
            assert!(report.contains(word), "`{word}` is not in: {report}");
        }
        // What doctor says is so: refused, never let through unseen.
        let args = ["run", "--backend", "landlock", "-c", "echo kept > f; chmod 640 f"];
        without(world, "reading-memory", &args).output().assert_denied();
        let report = world.stockade(&["doctor"]).output().exits(0).out();
        assert!(report.contains("works    command_memory: can be read"), "{report}");
        world.bare(world.binary()).args(args).output().exits(0);
    }

    fn bwrap_is_tried_with_the_rights_of_a_session(world: &Fixture) {
        let report = json(
            &without(world, "unprivileged-namespaces", &["doctor", "--json"])
                .output()
                .exits(0)
                .out(),
        );
        // Root has the right itself and gives it up before bwrap starts.
        assert_eq!(report["regime"], "landlock", "{report}");
        for finding in report["findings"].as_array().unwrap() {
            let name = finding["name"].as_str().unwrap();
            let standing = if name == "bwrap" || name == "user_namespaces" {
                "absent"
            } else {
                "works"
            };
            assert_eq!(finding["standing"], standing, "{finding}");
        }
        let run = without(world, "unprivileged-namespaces", &["run", "--json", "--", "true"])
            .output()
            .exits(0);
        assert!(run.out().contains("landlock (Landlock ABI"), "{}", run.out());
        let report = json(&world.stockade(&["doctor", "--json"]).output().exits(0).out());
        assert_eq!(report["regime"], "namespaces", "{report}");
    }

    fn doctor_follows_the_version_that_the_kernel_names(world: &Fixture) {
        for (version, code) in [("1", 1), ("2", 1), ("6", 0), ("7", 0)] {
            let run = without(world, version, &["doctor"]).output().exits(code);
            assert!(run.out().contains(&format!("ABI {version}")), "{}", run.out());
        }
    }
}
