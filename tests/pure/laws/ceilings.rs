//! The laws that ceilings keep.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use stockade::inspect::Inspection;
use stockade::inspect::host::Decider;
use stockade::policy::{
    Ceiling, Destination, Host, HostAccess, HostList, HostRule, Limits, Lost, Mode, Network, Operation, Origin,
    OwnNetwork, Policy, Residuals, ShellRule, UnixSockets,
};
use stockade::profile::{ApprovedRoots, Call, FileReach, Profile, cuts, derive, files_within, within};
use stockade::tools::Narrowing;

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

fn call(asked: ApprovedRoots) -> Call {
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
            let at_most = derive(ceiling, &Call::of(ApprovedRoots::All));
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
        prop_assert_eq!(within(&of(ApprovedRoots::None), &of(asked.clone())), Ok(()));
        prop_assert_eq!(within(&of(asked), &of(ApprovedRoots::All)), Ok(()));
    }

    #[test]
    fn nothing_is_named_exactly_where_nothing_is_taken(policy in make::policy(), ceiling in make::policy()) {
        let held = under(&policy, std::slice::from_ref(&ceiling));
        for (asked, unasked) in [(ApprovedRoots::All, false), (ApprovedRoots::None, true)] {
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
        let everything = call(ApprovedRoots::All);
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
        let kept: Vec<Network> = capped.requested_networks().cloned().collect();
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
        let sources = [own, most, flag];
        let given = sources.each_ref().map(|network| network.access(&Host::parse(host).unwrap(), port));
        let least = given.into_iter().min().unwrap();
        let answer = explained(&sources);
        prop_assert_eq!(answer.access, ["denied", "asked about", "free"][least as usize]);
        let decides = given.iter().position(|given| *given == least).unwrap();
        prop_assert_eq!(answer.decides, [Decider::Config, Decider::Ceiling, Decider::Flag][decides]);
        if least == HostAccess::Free {
            return Ok(());
        }
        let others = given.iter().filter(|given| **given == least).count() - 1;
        prop_assert_eq!(answer.notes.len(), others);
        // A line more in the config helps where nothing is said against that, and only there.
        let rule = HostRule::free(
            Destination::parse(&format!("{host}:{port}")).unwrap(),
            Origin::Builtin("a line more"),
        );
        let more = |network: &Network| match network {
            Network::Off => Network::hosts(HostList::new([rule.clone()])),
            Network::Hosts(list) => Network::hosts(HostList::new(list.rules().iter().chain([&rule]).cloned())),
            Network::Full => Network::Full,
        };
        let [own, most, flag] = &sources;
        let alone = explained(&[more(own), most.clone(), flag.clone()]);
        let helps = !answer.change.iter().any(|line| line.contains("no change to the config alone would"));
        prop_assert_eq!(alone.access != answer.access, helps, "{:?}", answer.change);
        // All that is named helps.
        let named = |who: usize| if given[who] == least { more(&sources[who]) } else { sources[who].clone() };
        let all = explained(&[named(0), named(1), named(2)]);
        prop_assert!(all.access != answer.access);
        let questioned = answer.change.iter().any(|line| line.contains("would permit it after a question"));
        prop_assert_eq!(all.access, if questioned { "asked about" } else { "free" });
    }
}
