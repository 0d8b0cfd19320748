//! Ceilings: the laws they keep, and what a confined command really gets under one.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod common;
#[cfg(test)]
#[allow(dead_code, reason = "the laws of profiles use the rest")]
#[path = "laws/make.rs"]
mod make;
#[cfg(test)]
#[allow(dead_code, reason = "the laws of profiles use the rest")]
#[path = "laws/naive.rs"]
mod naive;

#[cfg(test)]
mod laws {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::sample::select;
    use stockade::policy::{
        Ceiling, Host, HostAccess, HostList, HostRule, Limits, Lost, Mode, Network, Operation, Origin, OwnNetwork,
        Place, Policy, Residuals, ShellRule, UnixSockets,
    };
    use stockade::profile::{Asked, Call, FileReach, Profile, cuts, derive, files_within, within};
    use stockade::tools::Narrowing;
    use stockade::tools::inspect::Inspection;
    use stockade::tools::inspect::host::Who;

    use super::make;
    use super::naive;

    fn under(policy: &Policy, ceilings: &[Policy]) -> Policy {
        let mut policy = policy.clone();
        policy.ceilings.all = ceilings
            .iter()
            .enumerate()
            .map(|(i, ceiling)| Ceiling {
                file: Arc::new(format!("/c/{i}").into()),
                policy: ceiling.clone(),
            })
            .collect();
        policy
    }

    fn call(asked: Asked) -> Call {
        Call::of(asked)
    }

    /// The same profile, whichever of two equal clauses got to be named.
    fn alike(a: &Profile, b: &Profile) -> bool {
        within(a, b).is_ok() && within(b, a).is_ok() && a.identities == b.identities
    }

    fn settings() -> impl Strategy<Value = (Network, u8, u8, Option<u64>, bool)> {
        (
            make::network(),
            0..3_u8,
            0..3_u8,
            proptest::option::of(1..5_u64),
            any::<bool>(),
        )
    }

    fn set(policy: &mut Policy, (network, sockets, mode, processes, residuals): (Network, u8, u8, Option<u64>, bool)) {
        policy.network = network;
        policy.unix_sockets = [UnixSockets::None, UnixSockets::WithinRoots, UnixSockets::All][usize::from(sockets)];
        policy.mode = [Mode::Strict, Mode::Interactive, Mode::ApproveAll][usize::from(mode)];
        policy.limits = Limits {
            processes,
            ..Limits::default()
        };
        policy.residuals = if residuals {
            Residuals::Refuse
        } else {
            Residuals::Report
        };
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_effective_profile_is_within_the_config_and_within_each_ceiling(
            policy in make::policy(), a in make::policy(), b in make::policy(), call in make::call(),
        ) {
            let effective = derive(&under(&policy, &[a.clone(), b.clone()]), &call);
            prop_assert_eq!(within(&effective, &derive(&policy, &call)), Ok(()));
            prop_assert_eq!(files_within(&effective, &policy), Ok(()));
            for ceiling in [&a, &b] {
                prop_assert_eq!(files_within(&effective, ceiling), Ok(()));
                let at_most = derive(ceiling, &Call::of(Asked::Everything));
                prop_assert_eq!(within(&effective, &at_most), Ok(()));
                prop_assert_eq!(effective.network.within(&ceiling.network), Ok(()));
            }
            prop_assert_eq!(files_within(&effective, &under(&policy, &[a, b])), Ok(()));
        }

        #[test]
        fn a_policy_under_ceilings_answers_as_the_least_of_them(
            policy in make::policy(), a in make::policy(), b in make::policy(), path in make::path(),
        ) {
            let held = under(&policy, &[a.clone(), b.clone()]);
            let prepared = held.prepared();
            let names = naive::names(&path);
            for operation in Operation::ALL {
                let least = [&policy, &a, &b].map(|p| naive::policy(p, operation, &names)).into_iter().min().unwrap();
                prop_assert_eq!(held.access(operation, &path), least, "{} {}", operation, path);
                prop_assert_eq!(prepared(&path).get(operation), least, "{} {}", operation, path);
            }
        }

        #[test]
        fn one_ceiling_more_never_widens(
            policy in make::policy(), a in make::policy(), b in make::policy(), call in make::call(),
        ) {
            let fewer = derive(&under(&policy, std::slice::from_ref(&a)), &call);
            prop_assert_eq!(within(&derive(&under(&policy, &[a, b]), &call), &fewer), Ok(()));
        }

        #[test]
        fn the_order_of_ceilings_means_nothing_and_neither_does_a_repetition(
            policy in make::policy(), a in make::policy(), b in make::policy(), call in make::call(),
        ) {
            let both = derive(&under(&policy, &[a.clone(), b.clone()]), &call);
            prop_assert!(alike(&both, &derive(&under(&policy, &[b.clone(), a.clone()]), &call)));
            prop_assert!(alike(&both, &derive(&under(&policy, &[a.clone(), b, a]), &call)));
        }

        #[test]
        fn a_yes_only_widens_under_a_ceiling_too(
            policy in make::policy(), ceiling in make::policy(), asked in make::asked(),
        ) {
            let held = under(&policy, &[ceiling]);
            let of = |asked| derive(&held, &call(asked));
            prop_assert_eq!(within(&of(Asked::Nobody), &of(asked.clone())), Ok(()));
            prop_assert_eq!(within(&of(asked), &of(Asked::Everything)), Ok(()));
        }

        #[test]
        fn nothing_is_named_exactly_where_nothing_is_taken(policy in make::policy(), ceiling in make::policy()) {
            let held = under(&policy, std::slice::from_ref(&ceiling));
            for (asked, unasked) in [(Asked::Everything, false), (Asked::Nobody, true)] {
                let named = cuts(&held).into_iter().any(|cut| match cut.what {
                    Lost::Files { .. } => true,
                    Lost::Unasked { .. } => unasked,
                    _ => false,
                });
                let taken = files_within(&derive(&policy, &call(asked.clone())), &derive(&ceiling, &call(asked)));
                // What no yes gives may be named although nobody had it unasked.
                prop_assert!(named || taken.is_ok());
                prop_assert!(unasked || !named || taken.is_err());
            }
        }

        #[test]
        fn every_named_path_really_loses_what_is_named(policy in make::policy(), ceiling in make::policy()) {
            let held = under(&policy, std::slice::from_ref(&ceiling));
            let everything = call(Asked::Everything);
            let (wide, tight) = (derive(&policy, &everything), derive(&ceiling, &everything));
            for cut in cuts(&held) {
                if let Lost::Files { rights, path, witness } = cut.what {
                    prop_assert!(witness.is_within(&path));
                    let lost = |op: &Operation| {
                        rights.has(op.right()) && wide.access(*op, &witness) > tight.access(*op, &witness)
                    };
                    prop_assert!(Operation::ALL.iter().any(lost), "{}", witness);
                }
            }
        }

        #[test]
        fn settings_are_the_strictest_of_all_whatever_the_order(
            own in settings(), a in settings(), b in settings(),
        ) {
            let made = |with: &_| {
                let mut policy = make::with(Vec::new(), Vec::new());
                set(&mut policy, Clone::clone(with));
                policy
            };
            let capped = |ceilings: &[Policy]| { let mut policy = under(&made(&own), ceilings); policy.cap(); policy };
            let one = capped(&[made(&a), made(&b)]);
            let other = capped(&[made(&b), made(&a)]);
            let all = [made(&own), made(&a), made(&b)];
            prop_assert_eq!(one.network.clone(), all.iter().map(|p| p.network.clone()).reduce(|a, b| a.and(&b)).unwrap());
            prop_assert_eq!(one.unix_sockets, all.iter().map(|p| p.unix_sockets).min().unwrap());
            prop_assert_eq!(one.mode, all.iter().map(|p| p.mode).min().unwrap());
            prop_assert_eq!(one.residuals, all.iter().map(|p| p.residuals).min().unwrap());
            prop_assert_eq!(one.limits.processes, all.iter().filter_map(|p| p.limits.processes).min());
            let said = |policy: &Policy| (policy.network.clone(), policy.unix_sockets, policy.mode, policy.limits.clone());
            prop_assert_eq!(said(&one), said(&other));
            let mut twice = one.clone();
            twice.cap();
            prop_assert_eq!(twice, one);
        }

        #[test]
        fn ceilings_cap_the_networks_of_rules_and_tools_and_name_what_they_take(
            all in make::network(), own in make::network(), of_tool in make::network(), most in make::network(),
        ) {
            let mut policy = make::with(Vec::new(), Vec::new());
            let origin = |line| Origin::Preset { name: "p".into(), line };
            let network = |network: &Network, line| OwnNetwork { network: network.clone(), origin: origin(line) };
            policy.network = all.clone();
            policy.rules = vec![ShellRule { network: Some(network(&own, 1)), ..policy.default_rule.clone() }];
            policy.tool_networks = [("t".to_owned(), network(&of_tool, 2))].into();
            let ceiling = Policy { network: most.clone(), ..make::with(Vec::new(), Vec::new()) };
            let mut capped = under(&policy, &[ceiling]);
            capped.cap();
            let asked = [&all, &own, &of_tool];
            for (capped, asked) in capped.networks().zip(asked) {
                prop_assert_eq!(capped, &asked.and(&most));
            }
            let kept: Vec<Network> = capped.asked_networks().cloned().collect();
            prop_assert_eq!(kept, asked.map(Clone::clone));
            let taken = asked.iter().any(|asked| asked.within(&most).is_err());
            let cuts = capped.ceilings.cuts.iter();
            let told = cuts.filter(|cut| matches!(cut.what, Lost::Network(_))).count();
            prop_assert_eq!(taken, told > 0);
        }

        #[test]
        fn what_is_explained_of_a_host_is_who_decides_and_what_would_help(
            own in make::network(), most in make::network(), flag in make::network(),
            host in select(&["a.example", "b.a.example", "other.org", "8.8.8.8", "10.1.2.3", "127.0.0.1", "[::1]"][..]),
            port in select(&[1_u16, 80, 443][..]),
        ) {
            let explained = |all: &[Network; 3]| {
                let [own, most, flag] = all.clone();
                let policy = Policy { network: own, ..make::with(Vec::new(), Vec::new()) };
                let ceiling = Policy { network: most, ..make::with(Vec::new(), Vec::new()) };
                let mut policy = under(&policy, &[ceiling]);
                policy.cap();
                let narrowing = Narrowing { network: Some(flag), ..Narrowing::default() };
                let report = Inspection::of(policy, narrowing).explain_host(&Host::parse(host).unwrap(), port);
                report.answers.into_iter().next().unwrap()
            };
            let says = [own, most, flag];
            let given = says.each_ref().map(|network| network.access(&Host::parse(host).unwrap(), port));
            let least = given.into_iter().min().unwrap();
            let answer = explained(&says);
            prop_assert_eq!(answer.access, ["denied", "asked about", "free"][least as usize]);
            let decides = given.iter().position(|given| *given == least).unwrap();
            prop_assert_eq!(answer.decides, [Who::Config, Who::Ceiling, Who::Flag][decides]);
            if least == HostAccess::Free {
                return Ok(());
            }
            let others = given.iter().filter(|given| **given == least).count() - 1;
            prop_assert_eq!(answer.notes.len(), others);
            // A line more in the config helps where nothing is said against that, and only there.
            let rule = HostRule::free(
                Place::parse(&format!("{host}:{port}")).unwrap(),
                Origin::Builtin("a line more"),
            );
            let more = |network: &Network| match network {
                Network::Off => Network::hosts(HostList::new([rule.clone()])),
                Network::Hosts(list) => Network::hosts(HostList::new(list.rules().iter().chain([&rule]).cloned())),
                Network::Full => Network::Full,
            };
            let [own, most, flag] = &says;
            let alone = explained(&[more(own), most.clone(), flag.clone()]);
            let helps = !answer.change.iter().any(|line| line.contains("no change to the config alone would"));
            prop_assert_eq!(alone.access != answer.access, helps, "{:?}", answer.change);
            // All that is named helps.
            let named = |who: usize| if given[who] == least { more(&says[who]) } else { says[who].clone() };
            let all = explained(&[named(0), named(1), named(2)]);
            prop_assert!(all.access != answer.access);
            let questioned = answer.change.iter().any(|line| line.contains("would permit it after a question"));
            prop_assert_eq!(all.access, if questioned { "asked about" } else { "free" });
        }
    }
}

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
        let denied = world
            .stockade(&yes)
            .args(["--ceiling", &ceiling, "-c", "true"])
            .output();
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
