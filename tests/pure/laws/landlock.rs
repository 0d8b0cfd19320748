//! A Landlock plan never permits more than its profile, whatever lies on the disk.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use stockade::backend::landlock::{self, Options, lower, validate};
use stockade::backend::status::Refusal;
use stockade::backend::survey::{Kind, Node, Survey};
use stockade::policy::{AbsPath, Access, DenyFallback, Operation, Residuals, Scope, Target, UnixSockets};
use stockade::profile::{FileReach, Profile};

use crate::laws::make::{self, NAMES, identity};
use crate::laws::naive::{self, names};

pub(crate) fn node(path: &AbsPath, kind: Kind, links: u64) -> Node {
    Node {
        kind,
        identity: identity(path),
        links,
    }
}

/// A disk of three levels; `dice` decides what each name is.
pub(crate) fn disk(dice: &[u8], links: bool) -> (Survey, Vec<AbsPath>) {
    let mut survey = Survey::default();
    let mut files = Vec::new();
    let root = AbsPath::root();
    survey.insert(root.clone(), node(&root, Kind::Directory, 2));
    let mut todo = vec![(root, 0)];
    let mut dice = dice.iter().cycle();
    while let Some((dir, depth)) = todo.pop() {
        let mut entries = Vec::new();
        for name in NAMES {
            let (Some(path), Some(fall)) = (dir.child(OsStr::from_bytes(name)), dice.next()) else {
                continue;
            };
            let kind = match fall % 8 {
                0 => continue,
                1 => Kind::Symlink,
                2 if depth == 2 => Kind::Fifo,
                3 | 4 => Kind::File,
                _ if depth == 2 => Kind::File,
                _ => Kind::Directory,
            };
            entries.push(OsStr::from_bytes(name).to_owned());
            let many = links && fall % 16 == 3;
            survey.insert(path.clone(), node(&path, kind, if many { 2 } else { 1 }));
            match kind {
                Kind::Directory => todo.push((path, depth + 1)),
                Kind::File => files.push(path),
                Kind::Device | Kind::Symlink | Kind::Fifo | Kind::Socket => {}
            }
        }
        survey.insert_entries(dir, entries);
    }
    (survey, files)
}

fn options(abi: u32, deny_fallback: DenyFallback) -> Options {
    Options {
        abi,
        deny_fallback,
        residuals: Residuals::Report,
    }
}

pub(crate) fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else {
        1_000
    };
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..default
    }
}

/// Clauses on paths that became links are refused; these tests are about the others.
pub(crate) fn without_links(mut profile: Profile, survey: &Survey) -> Profile {
    profile
        .grants
        .retain(|grant| survey.node(&grant.path).is_none_or(|node| node.kind != Kind::Symlink));
    profile
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_plan_is_never_weaker_than_its_profile(
        profile in make::profile(),
        dice in vec(any::<u8>(), 400),
        links in any::<bool>(),
        decompose in any::<bool>(),
        abi in 6_u32..10,
    ) {
        let (survey, _) = disk(&dice, links);
        let fallback = if decompose { DenyFallback::Decompose } else { DenyFallback::Refuse };
        if let Ok(lowered) = lower(&without_links(profile.clone(), &survey), &survey, &options(abi, fallback)) {
            prop_assert_eq!(validate(&lowered.plan, &profile), Ok(()));
        }
    }

    #[test]
    fn files_that_exist_lose_nothing(profile in make::profile(), dice in vec(any::<u8>(), 400)) {
        let (survey, files) = disk(&dice, false);
        let profile = without_links(profile, &survey);
        let lowered = lower(&profile, &survey, &options(7, DenyFallback::Decompose));
        let plan = lowered.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?.plan;
        prop_assert_eq!(validate(&plan, &profile), Ok(()));
        for file in files {
            for operation in [Operation::Read, Operation::Write, Operation::Execute] {
                let expected = naive::profile(&profile, operation, &names(&file)) == Access::Full;
                let got = plan.access(operation, &file) == Access::Full;
                prop_assert_eq!(got, expected, "{} {}", operation, file);
            }
        }
    }

    #[test]
    fn plain_trees_are_exact(mut profile in make::profile()) {
        profile.denies.clear();
        for grant in &mut profile.grants {
            grant.scope = Scope::Tree;
            grant.suffixes = None;
            grant.max_file_bytes = None;
        }
        let mut survey = Survey::default();
        for path in profile.identities.keys().chain([&AbsPath::root()]) {
            survey.insert(path.clone(), node(path, Kind::Directory, 2));
        }
        let plan = lower(&profile, &survey, &options(7, DenyFallback::Refuse)).unwrap().plan;
        for (path, names) in make::universe() {
            for operation in Operation::ALL {
                let expected = naive::profile(&profile, operation, &names);
                prop_assert_eq!(plan.access(operation, &path), expected, "{} {}", operation, path);
            }
        }
    }

    #[test]
    fn one_rule_more_is_caught_unless_the_profile_has_it(
        profile in make::profile(),
        dice in vec(any::<u8>(), 400),
        at in make::path(),
        bit in 0_u32..17,
        file in any::<bool>(),
    ) {
        let (survey, _) = disk(&dice, false);
        let profile = without_links(profile, &survey);
        let lowered = lower(&profile, &survey, &options(9, DenyFallback::Decompose));
        let mut plan = lowered.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?.plan;
        let beneath = if file { landlock::Beneath::File } else { landlock::Beneath::Directory };
        let id = identity(&at);
        plan.rules.push(landlock::Rule {
            path: at.as_path().into(),
            device: id.device,
            inode: id.inode,
            beneath,
            access: 1 << bit,
        });
        if validate(&plan, &profile).is_ok() {
            // Then the profile must give, at the path and everywhere below it, what the bit is for.
            for (path, names) in make::universe() {
                let reached = path == at || !file && path.is_within(&at);
                let operation = match bit {
                    0 => Operation::Execute,
                    2 => Operation::Read,
                    3 => Operation::List,
                    16 if profile.unix_sockets == UnixSockets::All => continue,
                    _ => Operation::Write,
                };
                if reached {
                    prop_assert_eq!(naive::profile(&profile, operation, &names), Access::Full, "{}", path);
                }
            }
        }
    }

    #[test]
    fn the_survey_of_a_real_disk_holds_all_that_lowering_asks_about(mut profile in make::profile(), at in any::<bool>()) {
        static DISK: LazyLock<tempfile::TempDir> = LazyLock::new(real_disk);
        let root = AbsPath::new(DISK.path().canonicalize().unwrap()).unwrap();
        let moved = |path: &AbsPath| AbsPath::new(root.as_path().join(path.as_path().strip_prefix("/").unwrap())).unwrap();
        profile.identities.clear();
        profile.grants.iter_mut().for_each(|grant| grant.path = moved(&grant.path));
        for deny in &mut profile.denies {
            let (Target::Path(path) | Target::Pattern { root: path, .. }) = &mut deny.target;
            *path = moved(path);
        }
        let fallback = if at { DenyFallback::Decompose } else { DenyFallback::Refuse };
        let options = options(7, fallback);
        let survey = landlock::survey(&profile, &options).unwrap();
        match lower(&profile, &survey, &options) {
            Ok(lowered) => prop_assert_eq!(validate(&lowered.plan, &profile), Ok(())),
            Err(refusal) => prop_assert!(matches!(refusal, Refusal::DenyBelowGrant { .. }), "{}", refusal),
        }
    }
}

/// Two levels of every name, a directory or a file by turns.
fn real_disk() -> tempfile::TempDir {
    let disk = tempfile::tempdir().unwrap();
    for (i, name) in NAMES.iter().enumerate() {
        let outer = disk.path().join(OsStr::from_bytes(name));
        if i % 3 == 2 {
            fs::write(&outer, "x").unwrap();
            continue;
        }
        for (j, name) in NAMES.iter().enumerate() {
            let inner = outer.join(OsStr::from_bytes(name));
            if (i + j) % 2 == 0 {
                fs::create_dir_all(inner).unwrap();
            } else {
                fs::create_dir_all(&outer).unwrap();
                fs::write(inner, "x").unwrap();
            }
        }
    }
    disk
}
