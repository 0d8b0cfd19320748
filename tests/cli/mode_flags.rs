//! `--mode` and its short forms, which mean the same wherever a policy is chosen.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod tests {
    use crate::common::{Actor, Backend, Fixture, Run};

    fn world() -> Fixture {
        Fixture::new(Actor::invoker(), Backend::Landlock)
    }

    const ASKS: &str = "sandbox: {paths: {w: {root: ., mode: rw}}}\n";

    /// `stockade SUBCOMMAND FLAGS REST` with a config under which writing needs a yes.
    fn stockade(world: &Fixture, subcommand: &[&str], flags: &[&str], rest: &[&str]) -> Run {
        world.write("agent.yaml", ASKS);
        let named = ["--config", "agent.yaml"];
        world.stockade(&[subcommand, &named, flags, rest].concat()).output()
    }

    const WRITE: &[&str] = &["write_file", r#"{"path": "new.txt", "content": "x"}"#];

    #[test]
    fn strict_denies_what_needs_approval() {
        let world = world();
        for flags in [&["--strict"][..], &["--mode", "strict"]] {
            let run = stockade(&world, &["call"], flags, WRITE).exits(126);
            assert!(run.err().contains("strict mode denied write_file"), "{}", run.err());
            stockade(&world, &["run"], flags, &["--", "touch", "new.txt"]).exits(126);
        }
        assert!(!world.workspace().join("new.txt").exists());
    }

    #[test]
    fn approve_all_approves_however_it_is_spelled() {
        let world = world();
        let spellings = [
            &["--approve-all"][..],
            &["--mode", "approve-all"],
            &["--mode", "approve_all"],
        ];
        for flags in spellings {
            stockade(&world, &["call"], flags, WRITE).exits(0);
            std::fs::remove_file(world.workspace().join("new.txt")).unwrap();
            stockade(&world, &["run"], flags, &["--", "touch", "new.txt"]).exits(0);
            std::fs::remove_file(world.workspace().join("new.txt")).unwrap();
        }
    }

    #[test]
    fn what_is_only_inspected_has_the_mode_of_the_short_form() {
        let world = world();
        for (flags, mode) in [
            (&["--strict"][..], "strict"),
            (&["--approve-all"], "approve_all"),
            (&["--mode", "approve-all"], "approve_all"),
            (&[], "interactive"),
        ] {
            let run = stockade(&world, &["profile", "show"], flags, &["--json"]);
            let table: serde_json::Value = serde_json::from_str(&run.ok()).unwrap();
            assert_eq!(table["mode"], mode, "{flags:?}");
        }
    }

    #[test]
    fn two_flags_that_name_a_mode_are_an_error_that_names_both() {
        let world = world();
        let subcommands = [
            (&["run"][..], &["--", "true"][..]),
            (&["call"], WRITE),
            (&["mcp"], &[]),
            (&["learn"], &["--", "true"]),
            (&["profile", "show"], &[]),
            (&["profile", "check"], &[]),
            (&["profile", "explain"], &["x"]),
        ];
        for (subcommand, rest) in subcommands {
            for flags in [
                &["--strict", "--approve-all"][..],
                &["--approve-all", "--strict"],
                &["--strict", "--mode", "strict"],
                &["--mode", "interactive", "--approve-all"],
            ] {
                let run = stockade(&world, subcommand, flags, rest).exits(125);
                let named = flags.iter().filter(|flag| flag.starts_with("--"));
                for flag in named {
                    assert!(run.err().contains(flag), "{subcommand:?} {flags:?}: {}", run.err());
                }
            }
            let run = stockade(&world, subcommand, &["--strict", "--strict"], rest).exits(125);
            assert!(run.err().contains("multiple times"), "{}", run.err());
        }
    }

    #[test]
    fn no_short_form_exceeds_a_ceiling() {
        let world = world();
        world.write(
            "ceiling.yaml",
            "sandbox: {paths: {w: {root: ., mode: rw}}}\napproval: {mode: interactive}\n",
        );
        let flags = ["--approve-all", "--ceiling", "ceiling.yaml"];
        let run = stockade(&world, &["call"], &flags, WRITE).exits(126);
        assert!(run.err().contains("--approve-all"), "{}", run.err());
    }

    #[test]
    fn a_mode_that_does_not_exist_lists_those_that_do() {
        let world = world();
        for word in ["", "APPROVE-ALL", "yes", "approve all"] {
            let run = stockade(&world, &["run"], &["--mode", word], &["--", "true"]).exits(125);
            for mode in ["interactive", "approve_all", "strict"] {
                assert!(run.err().contains(mode), "{word}: {}", run.err());
            }
        }
    }
}
