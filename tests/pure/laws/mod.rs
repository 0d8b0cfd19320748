//! The laws of the access model, held against an oracle that is written independently.

#[cfg(test)]
mod attributes;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod bwrap;
#[cfg(test)]
mod ceilings;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod landlock;
#[cfg(test)]
mod links;
#[cfg(test)]
mod make;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod seatbelt;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use stockade::policy::{
        AbsPath, Access, Demand, DemandSource, Identity, Operation, Origin, Policy, Rights, Root, Scope,
    };
    use stockade::profile::order::Permission;
    use stockade::profile::{
        ApprovedRoots, Call, FileReach, InAdvance, Profile, derive, files_within, intersect, within,
    };

    use stockade::tools::plan::check_against;

    use super::make;
    use super::naive::{self, Names, names};

    static UNIVERSE: LazyLock<Vec<(AbsPath, Names)>> = LazyLock::new(make::universe);

    /// The first question of the universe that `a` answers more freely than `b`.
    fn freer(a: impl Fn(Operation, &Names) -> Access, b: impl Fn(Operation, &Names) -> Access) -> Option<String> {
        for (path, names) in UNIVERSE.iter() {
            for operation in Operation::ALL {
                let (wide, tight) = (a(operation, names), b(operation, names));
                if wide > tight {
                    return Some(format!("{operation} {path}: {wide:?} > {tight:?}"));
                }
            }
        }
        None
    }

    fn of(profile: &Profile) -> impl Fn(Operation, &Names) -> Access + '_ {
        |operation, path| naive::profile(profile, operation, path)
    }

    fn said(policy: &Policy) -> impl Fn(Operation, &Names) -> Access + '_ {
        |operation, path| naive::policy(policy, operation, path)
    }

    /// The verdict must agree with the universe, and a witness must really be one.
    fn check_order(
        verdict: Result<(), stockade::profile::Witness>,
        a: impl Fn(Operation, &Names) -> Access,
        b: impl Fn(Operation, &Names) -> Access,
    ) -> Result<(), TestCaseError> {
        match verdict {
            Ok(()) => prop_assert_eq!(freer(a, b), None),
            Err(witness) => {
                let Permission::File {
                    operation,
                    path,
                    access,
                } = &witness.what
                else {
                    return Err(TestCaseError::fail(witness.to_string()));
                };
                let path = names(path);
                prop_assert_eq!(a(*operation, &path), *access);
                prop_assert!(a(*operation, &path) > b(*operation, &path), "{}", witness);
            }
        }
        Ok(())
    }

    /// Which of two equal clauses is named as the origin is nobody's promise.
    fn without_origins(profile: Profile) -> Profile {
        let mut profile = profile.canonical();
        let nowhere = Origin::Builtin("nowhere");
        profile
            .grants
            .iter_mut()
            .for_each(|grant| grant.origin = nowhere.clone());
        profile.denies.iter_mut().for_each(|deny| deny.origin = nowhere.clone());
        profile.canonical()
    }

    // Together at least 20,000 cases; PROPTEST_CASES changes the number per law.
    const CASES: u32 = 1_100;

    fn cases() -> ProptestConfig {
        let default = ProptestConfig::default();
        let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
            default.cases
        } else {
            CASES
        };
        ProptestConfig {
            cases,
            failure_persistence: None,
            ..default
        }
    }

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn the_profile_answers_as_the_oracle_does(profile in make::profile(), path in make::path()) {
            let prepared = profile.prepared();
            for operation in Operation::ALL {
                let expected = naive::profile(&profile, operation, &names(&path));
                prop_assert_eq!(profile.access(operation, &path), expected);
                prop_assert_eq!(prepared(&path).get(operation), expected);
            }
        }

        #[test]
        fn the_policy_answers_as_the_oracle_does(policy in make::policy()) {
            let prepared = policy.prepared();
            for (path, names) in UNIVERSE.iter() {
                for operation in Operation::ALL {
                    let expected = naive::policy(&policy, operation, names);
                    prop_assert_eq!(policy.access(operation, path), expected, "{} {}", operation, path);
                    prop_assert_eq!(prepared(path).get(operation), expected, "{} {}", operation, path);
                }
            }
        }

        #[test]
        fn the_order_agrees_with_every_path_of_the_universe(a in make::profile(), b in make::profile()) {
            check_order(files_within(&a, &b), of(&a), of(&b))?;
        }

        #[test]
        fn the_order_tells_one_clause_more_or_less(
            a in make::profile(),
            grant in make::grant(),
            deny in make::deny(),
            other in make::deny(),
        ) {
            let mut wider = a.clone();
            wider.grants.push(grant);
            prop_assert!(files_within(&a, &wider).is_ok());
            check_order(files_within(&wider, &a), of(&wider), of(&a))?;
            let mut tighter = a.clone();
            tighter.denies.push(deny);
            prop_assert!(files_within(&tighter, &a).is_ok());
            check_order(files_within(&a, &tighter), of(&a), of(&tighter))?;
            let mut another = a.clone();
            another.denies.push(other);
            check_order(files_within(&another, &tighter), of(&another), of(&tighter))?;
        }

        #[test]
        fn the_order_is_reflexive(a in make::networked()) {
            prop_assert_eq!(within(&a, &a), Ok(()));
        }

        #[test]
        fn the_order_is_transitive(a in make::networked(), b in make::networked(), c in make::networked()) {
            // Random triples are seldom ordered; meets are.
            let low = intersect(&intersect(&a, &b), &c);
            let middle = intersect(&a, &b);
            prop_assert_eq!(within(&low, &middle), Ok(()));
            prop_assert_eq!(within(&middle, &a), Ok(()));
            prop_assert_eq!(within(&low, &a), Ok(()));
            if within(&a, &b).is_ok() && within(&b, &c).is_ok() {
                prop_assert_eq!(within(&a, &c), Ok(()));
            }
        }

        #[test]
        fn the_meet_is_the_greatest_lower_bound(a in make::networked(), b in make::networked()) {
            let meet = intersect(&a, &b);
            prop_assert_eq!(within(&meet, &a), Ok(()));
            prop_assert_eq!(within(&meet, &b), Ok(()));
            for (path, names) in UNIVERSE.iter() {
                for operation in Operation::ALL {
                    let both = of(&a)(operation, names).min(of(&b)(operation, names));
                    prop_assert_eq!(of(&meet)(operation, names), both, "{} {}", operation, path);
                }
            }
        }

        #[test]
        fn the_meet_is_idempotent(a in make::networked()) {
            prop_assert_eq!(without_origins(intersect(&a, &a)), without_origins(a));
        }

        #[test]
        fn the_meet_is_commutative(a in make::networked(), b in make::networked()) {
            prop_assert_eq!(intersect(&a, &b), intersect(&b, &a));
        }

        #[test]
        fn the_meet_is_associative(a in make::networked(), b in make::networked(), c in make::networked()) {
            let left = intersect(&intersect(&a, &b), &c);
            let right = intersect(&a, &intersect(&b, &c));
            prop_assert_eq!(without_origins(left), without_origins(right));
        }

        #[test]
        fn canonical_form_changes_no_answer(a in make::networked()) {
            let canonical = a.clone().canonical();
            for (path, names) in UNIVERSE.iter() {
                for operation in Operation::ALL {
                    prop_assert_eq!(of(&canonical)(operation, names), of(&a)(operation, names), "{} {}", operation, path);
                }
            }
            prop_assert_eq!(canonical.clone().canonical(), canonical);
        }

        #[test]
        fn a_derived_profile_is_never_weaker_than_its_policy(policy in make::policy(), call in make::call()) {
            let profile = derive(&policy, &call);
            prop_assert_eq!(freer(of(&profile), said(&policy)), None);
            prop_assert_eq!(files_within(&profile, &policy), Ok(()));
            prop_assert_eq!(profile.network.within(call.network.as_ref().unwrap_or(&policy.network)), Ok(()));
            prop_assert!(check_against(&policy, &call, &profile).is_ok());
        }

        #[test]
        fn what_was_asked_only_widens(policy in make::policy(), asked in make::asked(), narrow in make::narrow()) {
            let of = |asked| derive(&policy, &Call { narrow: narrow.clone(), ..Call::of(asked) });
            prop_assert_eq!(within(&of(ApprovedRoots::None), &of(asked.clone())), Ok(()));
            prop_assert_eq!(within(&of(asked), &of(ApprovedRoots::All)), Ok(()));
        }

        #[test]
        fn sandbox_paths_only_narrow(policy in make::policy(), asked in make::asked(), narrow in make::narrow()) {
            let wide = derive(&policy, &Call::of(asked.clone()));
            prop_assert_eq!(within(&derive(&policy, &Call { narrow, ..Call::of(asked) }), &wide), Ok(()));
        }

        #[test]
        fn writes_of_a_narrowed_call_reach_the_named_roots_only(policy in make::policy(), call in make::call()) {
            let profile = derive(&policy, &call);
            let Some(named) = &call.narrow else { return Ok(()) };
            for (path, names) in UNIVERSE.iter() {
                if naive::profile(&profile, Operation::Write, names) > Access::Denied {
                    let root = naive::speaker(&policy, Operation::Write, names);
                    prop_assert!(root.is_some_and(|root| named.contains(&root.name)), "write {}", path);
                }
            }
        }

        #[test]
        fn rules_answer_for_what_each_of_them_answers_for(policy in make::policy(), a in make::in_advance(), b in make::in_advance()) {
            let of = |answered: &InAdvance| derive(&policy, &Call::of(ApprovedRoots::InAdvance(answered.clone())));
            let both = of(&a.and(&b));
            prop_assert_eq!(within(&both, &of(&a)), Ok(()));
            prop_assert_eq!(within(&both, &of(&b)), Ok(()));
            prop_assert_eq!(&both, &of(&b.and(&a)));
        }

        #[test]
        fn a_rule_that_names_no_root_opens_none_whose_demand_is_written(policy in make::policy(), named in make::in_advance()) {
            let answered = InAdvance::by(None).and(&named);
            let profile = derive(&policy, &Call::of(ApprovedRoots::InAdvance(answered)));
            for (path, names) in UNIVERSE.iter() {
                let Some(root) = naive::speaker(&policy, Operation::Write, names) else { continue };
                let is_written = root.write_approval != Demand::None && root.write_demand_source == DemandSource::Config;
                if root.read_approval != Demand::None || is_written {
                    prop_assert_eq!(naive::profile(&profile, Operation::Write, names), Access::Denied, "{}", path);
                }
            }
        }

        #[test]
        fn what_nobody_was_asked_about_needs_no_asking(policy in make::policy()) {
            let profile = derive(&policy, &Call::of(ApprovedRoots::None));
            for (path, names) in UNIVERSE.iter() {
                for operation in Operation::ALL {
                    let Some(root) = naive::speaker(&policy, operation, names) else { continue };
                    let asks = root.read_approval != Demand::None
                        || operation == Operation::Write && root.write_approval != Demand::None;
                    if asks {
                        let access = naive::profile(&profile, operation, names);
                        prop_assert_eq!(access, Access::Denied, "{} {}", operation, path);
                    }
                }
            }
        }

        #[test]
        fn what_is_always_denied_is_denied_to_everyone(policy in make::policy()) {
            let profile = derive(&policy, &Call::of(ApprovedRoots::All));
            for (path, names) in UNIVERSE.iter() {
                if naive::speaker(&policy, Operation::Write, names).is_some_and(|r| r.write_approval == Demand::Deny) {
                    prop_assert_eq!(naive::profile(&profile, Operation::Write, names), Access::Denied, "{}", path);
                }
            }
        }

        #[test]
        fn a_policy_whose_clauses_do_not_nest_is_derived_exactly(mut policy in make::policy()) {
            let paths: Vec<AbsPath> = policy.roots.iter().map(|root| root.path.clone()).collect();
            policy.roots.retain(|root| !paths.iter().any(|other| root.path.is_below(other)));
            policy.roots.iter_mut().for_each(|root| {
                root.read_approval = Demand::None;
                root.write_approval = Demand::None;
            });
            let roots = policy.roots.clone();
            policy.base.retain(|base| !roots.iter().any(|root| root.path.is_within(&base.grant.path)));
            let profile = derive(&policy, &Call::of(ApprovedRoots::None));
            for (path, names) in UNIVERSE.iter() {
                for operation in Operation::ALL {
                    let (got, said) = (of(&profile)(operation, names), said(&policy)(operation, names));
                    prop_assert_eq!(got, said, "{} {}", operation, path);
                }
            }
        }

        #[test]
        fn roots_that_can_all_be_read_are_derived_exactly_however_they_nest(mut policy in make::policy()) {
            policy.base.clear();
            policy.roots.retain(|root| root.scope != Scope::Names);
            policy.roots.iter_mut().for_each(|root| {
                root.rights = root.rights | Rights::READ;
                root.read_approval = Demand::None;
                root.write_approval = Demand::None;
            });
            let profile = derive(&policy, &Call::of(ApprovedRoots::None));
            let file = |path: &AbsPath| policy.roots.iter().any(|root| root.scope == Scope::File && path.is_within(&root.path));
            for (path, names) in UNIVERSE.iter().filter(|(path, _)| !file(path)) {
                for operation in Operation::ALL {
                    let (got, said) = (of(&profile)(operation, names), said(&policy)(operation, names));
                    prop_assert_eq!(got, said, "{} {}", operation, path);
                }
            }
            for root in policy.roots.iter().filter(|root| root.scope == Scope::File) {
                for operation in [Operation::Write, Operation::Execute] {
                    let names = names(&root.path);
                    let (got, said) = (of(&profile)(operation, &names), said(&policy)(operation, &names));
                    prop_assert_eq!(got, said, "{} {}", operation, root.path);
                }
            }
        }

        #[test]
        fn a_path_that_led_to_two_files_is_lost(mut a in make::profile(), b in make::profile()) {
            let Some(path) = b.identities.keys().next().cloned() else { return Ok(()) };
            a.identities.insert(path.clone(), Identity { device: 9, inode: 9 });
            let meet = intersect(&a, &b);
            for operation in Operation::ALL {
                prop_assert_eq!(naive::profile(&meet, operation, &names(&path)), Access::Denied);
            }
            prop_assert_eq!(within(&meet, &b), Ok(()));
        }
    }

    fn root(name: &str, path: &str, rights: Rights) -> Root {
        let path = AbsPath::new(path).unwrap();
        Root {
            name: name.to_owned(),
            identity: make::identity(&path),
            path,
            scope: Scope::Tree,
            rights,
            suffixes: None,
            max_file_bytes: None,
            read_approval: Demand::None,
            write_approval: Demand::None,
            write_demand_source: DemandSource::Config,
            denies: Vec::new(),
            origin: Origin::Builtin("test"),
        }
    }

    fn access(policy: &Policy, call: &Call, operation: Operation, path: &str) -> Access {
        derive(policy, call).access(operation, &AbsPath::new(path).unwrap())
    }

    #[test]
    fn a_nested_root_replaces_the_outer_one_below_it() {
        let roots = vec![
            root("out", "/w", Rights::READ | Rights::WRITE),
            root("in", "/w/vendor", Rights::READ),
        ];
        let policy = make::with(roots, Vec::new());
        let asked = Call::of(ApprovedRoots::None);
        assert_eq!(access(&policy, &asked, Operation::Write, "/w/a"), Access::Full);
        assert_eq!(access(&policy, &asked, Operation::Write, "/w/vendor/a"), Access::Denied);
        assert_eq!(access(&policy, &asked, Operation::Read, "/w/vendor/a"), Access::Full);
    }

    #[test]
    fn a_nested_root_may_give_what_the_outer_one_does_not() {
        let roots = vec![
            root("src", "/w", Rights::READ),
            root("cache", "/w/cache", Rights::READ | Rights::WRITE),
        ];
        let policy = make::with(roots, Vec::new());
        let asked = Call::of(ApprovedRoots::None);
        assert_eq!(access(&policy, &asked, Operation::Write, "/w/cache/a"), Access::Full);
        assert_eq!(access(&policy, &asked, Operation::Write, "/w/a"), Access::Denied);
        assert_eq!(derive(&policy, &asked).denies, []);
    }

    #[test]
    fn a_root_that_was_asked_about_by_name_is_open_and_its_neighbour_is_not() {
        let mut roots = vec![root("a", "/a", Rights::ALL), root("b", "/b", Rights::ALL)];
        for root in &mut roots {
            root.write_approval = Demand::Required;
        }
        let policy = make::with(roots, Vec::new());
        let asked = Call::of(ApprovedRoots::Named(["a".to_owned()].into()));
        assert_eq!(access(&policy, &asked, Operation::Write, "/a/x"), Access::Full);
        assert_eq!(access(&policy, &asked, Operation::Write, "/b/x"), Access::Denied);
        assert_eq!(access(&policy, &asked, Operation::Read, "/b/x"), Access::Full);
    }

    #[test]
    fn a_witness_says_who_permits_what() {
        let asked = Call::of(ApprovedRoots::None);
        let policy = make::with(vec![root("a", "/srv", Rights::READ)], Vec::new());
        let mut profile = derive(&policy, &asked);
        profile.grants[0].rights = Rights::READ | Rights::WRITE;
        let witness = files_within(&profile, &policy).unwrap_err();
        assert_eq!(
            witness.to_string(),
            "write /srv: permitted by the profile, not by the config"
        );
    }

    #[test]
    fn the_private_directories_are_open_whatever_was_narrowed() {
        let policy = make::with(vec![root("a", "/a", Rights::ALL)], Vec::new());
        let narrowed = Call {
            narrow: Some(Vec::new()),
            ..Call::of(ApprovedRoots::None)
        };
        let home = AbsPath::new("/run/s/home").unwrap();
        let profile = derive(&policy, &narrowed).with_private([(home.clone(), make::identity(&home))]);
        assert_eq!(
            profile.access(Operation::Write, &home.child("x").unwrap()),
            Access::Full
        );
        assert_eq!(
            profile.access(Operation::Write, &AbsPath::new("/a/x").unwrap()),
            Access::Denied
        );
    }

    #[test]
    #[ignore = "a measurement: run it with --release --nocapture"]
    fn twenty_thousand_roots() {
        use stockade::backend::landlock::{Options, lower, validate};
        use stockade::backend::survey::{Kind, Node, Survey};
        let roots = (0..20_000).map(|i| root(&format!("r{i}"), &format!("/srv/d{}/r{i}", i % 200), Rights::ALL));
        let policy = make::with(roots.collect(), Vec::new());
        let mut survey = Survey::default();
        for root in &policy.roots {
            let node = Node {
                kind: Kind::Directory,
                identity: root.identity,
                links: 2,
            };
            survey.insert(root.path.clone(), node);
        }
        let options = Options {
            abi: 7,
            deny_fallback: policy.deny_fallback,
            residuals: policy.residuals,
        };
        let start = std::time::Instant::now();
        let profile = derive(&policy, &Call::of(ApprovedRoots::None));
        println!("derive {:?}", start.elapsed());
        files_within(&profile, &policy).unwrap();
        println!("check {:?}", start.elapsed());
        let lowered = lower(&profile, &survey, &options).unwrap();
        println!("lower {:?}", start.elapsed());
        validate(&lowered.plan, &profile).unwrap();
        println!("validate {:?}", start.elapsed());
    }
}
