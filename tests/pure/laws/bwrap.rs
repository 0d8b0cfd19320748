//! Mounts and the layer inside them never permit more than their profile, whatever lies on the disk.

use std::ffi::OsString;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use stockade::backend::attributes::{self, AttributePlan};
use stockade::backend::namespaces::reader::read;
use stockade::backend::namespaces::{LayeredPlan, Lowered, NewNames, Options, lower, validate};
use stockade::backend::status::{Refusal, Status};
use stockade::backend::survey::{Kind, Survey};
use stockade::policy::{AbsPath, Access, Deny, DenyFallback, Grant, Operation, Pattern, Residuals, Rights, Target};
use stockade::profile::{FileReach, Profile};

use crate::laws::landlock::{cases, disk, node, without_links};
use crate::laws::make;
use crate::laws::naive::{self, names};

/// A disk as the `landlock` laws have it, with what a mount namespace needs of a machine.
fn machine(dice: &[u8], links: bool) -> (Survey, Vec<AbsPath>) {
    let (mut survey, files) = disk(dice, links);
    for (path, kind) in [
        ("/proc", Kind::Directory),
        ("/dev", Kind::Directory),
        ("/tmp", Kind::Directory),
        ("/dev/null", Kind::Device),
    ] {
        let path = AbsPath::new(path).unwrap();
        survey.insert(path.clone(), node(&path, kind, 1));
    }
    (survey, files)
}

fn options(deny_fallback: DenyFallback, protect: Vec<AbsPath>) -> Options {
    Options {
        abi: 7,
        deny_fallback,
        residuals: Residuals::Refuse,
        tmp_bytes: 1 << 20,
        protect,
        copies: Vec::new(),
        loader: Vec::new(),
        veiled: Vec::new(),
        start: None,
    }
}

fn layered_plan<'a>(lowered: &'a Lowered, argv: &'a [OsString]) -> LayeredPlan<'a> {
    LayeredPlan {
        argv,
        layer: &lowered.layer,
        own: &lowered.own,
        copies: &[],
        loader: &[],
        new_names: NewNames::Refused,
    }
}

fn fallback(decompose: bool) -> DenyFallback {
    if decompose {
        DenyFallback::Decompose
    } else {
        DenyFallback::Refuse
    }
}

/// One way to hurt a plan by hand.
fn hurt(argv: &mut Vec<OsString>, at: Index, how: u8, path: &AbsPath) {
    let i = at.index(argv.len());
    let path = || OsString::from(path.as_path());
    match how {
        0 => drop(argv.remove(i)),
        1 => drop(argv.drain(i..(i + 3).min(argv.len()))),
        2 => argv.swap(i, 0),
        3 if argv[i] == "--ro-bind" => argv[i] = "--bind".into(),
        4 => argv.extend(["--bind".into(), path(), path()]),
        5 => argv.extend(["--ro-bind".into(), path(), path()]),
        6 => argv.extend(["--tmpfs".into(), path()]),
        _ => argv.truncate(i),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn mounts_and_layer_are_never_weaker_than_their_profile(
        profile in make::profile(),
        dice in vec(any::<u8>(), 400),
        links in any::<bool>(),
        decompose in any::<bool>(),
        protect in vec(make::path(), 0..2),
    ) {
        let (survey, _) = machine(&dice, links);
        let options = options(fallback(decompose), protect);
        if let Ok(lowered) = lower(&without_links(profile.clone(), &survey), &survey, &options) {
            let argv = lowered.plan.render();
            let private = lowered.plan.private_directory().map(|at| AbsPath::new(at).unwrap());
            let attributes = attributes::lower(&profile.grants, &profile.denies, private.as_ref());
            prop_assert_eq!(validate(&layered_plan(&lowered, &argv), &attributes, &profile, &survey), Ok(()), "{:?}", argv);
            let view = read(&argv, &[], &survey).unwrap();
            for path in &lowered.protected {
                prop_assert_eq!(view.access(Operation::Write, path), Access::Denied, "{}", path);
            }
        }
    }

    #[test]
    fn of_patterns_whose_new_names_are_admitted_all_that_exists_is_covered(
        profile in make::profile(),
        dice in vec(any::<u8>(), 400),
    ) {
        let (survey, files) = machine(&dice, false);
        let profile = without_links(profile, &survey);
        let covering = Options { residuals: Residuals::Report, ..options(DenyFallback::CoverExisting, Vec::new()) };
        if let Ok(lowered) = lower(&profile, &survey, &covering) {
            let argv = lowered.plan.render();
            let admitting = LayeredPlan { new_names: NewNames::Admitted, ..layered_plan(&lowered, &argv) };
            prop_assert_eq!(validate(&admitting, &AttributePlan::default(), &profile, &survey), Ok(()), "{:?}", argv);
            still_within(&argv, &lowered, &profile, &survey, &files)?;
            // Whoever does not admit them catches it, unless nothing is left open.
            let residual = |status: &Status| matches!(status, Status::Residual(_));
            let left_open = lowered.statuses.iter().any(|clause| residual(&clause.status));
            let strict = LayeredPlan { new_names: NewNames::Refused, ..admitting };
            let held = validate(&strict, &AttributePlan::default(), &profile, &survey).is_ok();
            prop_assert!(held || left_open);
        }
    }

    #[test]
    fn files_that_exist_lose_nothing_where_no_deny_holds(profile in make::profile(), dice in vec(any::<u8>(), 400)) {
        let (survey, files) = machine(&dice, false);
        let profile = without_links(profile, &survey);
        let lowered = lower(&profile, &survey, &options(DenyFallback::Decompose, Vec::new()))
            .map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let view = read(&lowered.plan.render(), &[], &survey).map_err(|w| TestCaseError::fail(w.to_string()))?;
        for file in files {
            if profile.denies.iter().any(|deny| deny.target.covers(&file)) {
                continue;
            }
            for operation in [Operation::Read, Operation::Write, Operation::Execute] {
                let wanted = naive::profile(&profile, operation, &names(&file)) == Access::Full;
                let got = [view.access(operation, &file), lowered.layer.access(operation, &file)];
                prop_assert_eq!(got == [Access::Full; 2], wanted, "{} {} {:?}", operation, file, got);
            }
        }
    }

    #[test]
    fn read_denies_of_what_exists_are_never_refused(mut profile in make::profile(), dice in vec(any::<u8>(), 400)) {
        let (survey, _) = machine(&dice, false);
        profile = without_links(profile, &survey);
        for deny in &mut profile.denies {
            deny.except = None;
            deny.beyond = None;
            deny.ends.clear();
            deny.rights = stockade::policy::Rights::ALL;
        }
        profile.denies.retain(|deny| match &deny.target {
            Target::Path(path) => survey.node(path).is_some_and(|node| node.kind != Kind::Symlink),
            Target::Pattern { .. } => false,
        });
        let lowered = lower(&profile, &survey, &options(DenyFallback::Refuse, Vec::new()));
        prop_assert!(lowered.is_ok(), "{}", lowered.unwrap_err());
    }

    #[test]
    fn a_plan_hurt_by_hand_is_caught_unless_the_profile_permits_what_it_does(
        profile in make::profile(),
        dice in vec(any::<u8>(), 400),
        edits in vec((any::<Index>(), 0_u8..8, make::path()), 1..3),
    ) {
        let (survey, files) = machine(&dice, false);
        let profile = without_links(profile, &survey);
        let lowered = lower(&profile, &survey, &options(DenyFallback::Decompose, Vec::new()))
            .map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let mut argv = lowered.plan.render();
        for (at, how, path) in &edits {
            if !argv.is_empty() {
                hurt(&mut argv, *at, *how, path);
            }
        }
        if validate(&layered_plan(&lowered, &argv), &AttributePlan::default(), &profile, &survey).is_ok() {
            still_within(&argv, &lowered, &profile, &survey, &files)?;
        }
    }
}

/// What exists, asked one by one of an oracle that shares no code with the check.
fn still_within(
    argv: &[OsString],
    lowered: &Lowered,
    profile: &Profile,
    survey: &Survey,
    files: &[AbsPath],
) -> Result<(), TestCaseError> {
    let view = read(argv, &[], survey).map_err(|witness| TestCaseError::fail(witness.to_string()))?;
    for file in files {
        for operation in Operation::ALL {
            let both = view.access(operation, file).min(lowered.layer.access(operation, file));
            let permitted = naive::profile(profile, operation, &names(file));
            prop_assert!(both <= permitted, "{} {} in {:?}", operation, file, argv);
        }
    }
    for namespace in ["user", "ipc", "pid", "uts", "cgroup"] {
        prop_assert!(view.namespaces.contains(std::ffi::OsStr::new(namespace)));
    }
    Ok(())
}

#[test]
fn a_kernel_without_truncation_is_refused() {
    let (survey, _) = machine(&[5], false);
    let profile = Profile {
        grants: Vec::new(),
        denies: Vec::new(),
        identities: std::collections::BTreeMap::new(),
        network: stockade::policy::Network::Off,
        unix_sockets: stockade::policy::UnixSockets::None,
        limits: stockade::policy::Limits::default(),
        environment: stockade::policy::Environment::default(),
    };
    let old = Options {
        abi: 2,
        ..options(DenyFallback::Refuse, Vec::new())
    };
    assert!(matches!(
        lower(&profile, &survey, &old),
        Err(Refusal::AbiInside { have: 2, need: 3 })
    ));
    let enough = Options { abi: 3, ..old };
    let lowered = lower(&profile, &survey, &enough).unwrap();
    let argv = lowered.plan.render();
    assert_eq!(
        validate(
            &layered_plan(&lowered, &argv),
            &AttributePlan::default(),
            &profile,
            &survey
        ),
        Ok(())
    );
}

/// The cover could be moved with the directory, to where that clause says nothing.
#[test]
fn a_directory_above_a_cover_stays_where_another_clause_speaks_of_it_too() {
    let (mut survey, _) = machine(&[0; 8], false);
    let [top, inner, file] = ["/a", "/a/b", "/a/b/or.gz"].map(|path| AbsPath::new(path).unwrap());
    survey.insert(top.clone(), node(&top, Kind::Directory, 1));
    survey.insert(inner.clone(), node(&inner, Kind::Directory, 1));
    survey.insert(file.clone(), node(&file, Kind::File, 1));
    let entries = [(AbsPath::root(), "a"), (top.clone(), "b"), (inner.clone(), "or.gz")];
    for (directory, entry) in entries {
        survey.insert_entries(directory, vec![OsString::from(entry)]);
    }
    let deny = |target, rights| Deny {
        target,
        ..Deny::tree(AbsPath::root(), rights, make::origin())
    };
    let pattern = Target::Pattern {
        root: top.clone(),
        pattern: Pattern::Name("or.gz".into()),
    };
    let other = deny(Target::Path(top), Rights::EXECUTE);
    for denies in [
        vec![deny(pattern.clone(), Rights::READ)],
        vec![deny(pattern, Rights::READ), other],
    ] {
        let profile = Profile {
            grants: vec![Grant::tree(
                AbsPath::root(),
                Rights::READ | Rights::WRITE,
                make::origin(),
            )],
            denies,
            identities: std::collections::BTreeMap::new(),
            network: stockade::policy::Network::Off,
            unix_sockets: stockade::policy::UnixSockets::None,
            limits: stockade::policy::Limits::default(),
            environment: stockade::policy::Environment::default(),
        };
        let covering = Options {
            residuals: Residuals::Report,
            ..options(DenyFallback::CoverExisting, Vec::new())
        };
        let lowered = lower(&profile, &survey, &covering).unwrap();
        let argv = lowered.plan.render();
        let admitting = LayeredPlan {
            new_names: NewNames::Admitted,
            ..layered_plan(&lowered, &argv)
        };
        let held = validate(&admitting, &AttributePlan::default(), &profile, &survey);
        assert_eq!(held, Ok(()), "{argv:?}");
        assert!(lowered.matched.contains(&file), "{argv:?}");
    }
}
