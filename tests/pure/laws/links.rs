//! Links of both kinds: no rule leads through a symbolic link, no second name gives what a deny takes, and the roots of
//! a config are where they say.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use stockade::backend::landlock::{self, Options};
use stockade::config::{ConfigError, Context, examine};
use stockade::policy::{AbsPath, Access, DenyFallback, Operation, Residuals, Target};
use stockade::profile::{FileReach, Profile};
use tempfile::TempDir;

use crate::laws::make::{self, NAMES};
use crate::laws::naive::{self, names};

/// A disk whose names are folders, files, second names and links by turns, and every path on it.
struct Disk {
    root: PathBuf,
    paths: Vec<AbsPath>,
    _kept: TempDir,
}

static DISK: LazyLock<Disk> = LazyLock::new(|| {
    let kept = tempfile::tempdir().unwrap();
    let root = kept.path().canonicalize().unwrap();
    let name = |number: usize| OsStr::from_bytes(NAMES[number % NAMES.len()]);
    let mut paths = Vec::new();
    // A folder of folders; in each something of every kind.
    for outer in 0..NAMES.len() {
        let folder = root.join(name(outer));
        if outer == 5 {
            symlink(root.join(name(1)), &folder).unwrap();
            continue;
        }
        fs::create_dir(&folder).unwrap();
        paths.push(folder.clone());
        for inner in 0..NAMES.len() {
            let path = folder.join(name(inner));
            match (outer + inner) % 5 {
                0 => fs::create_dir(&path).unwrap(),
                // A link to a file, to a folder, to nothing, by turns; some lead out of their folder.
                1 => symlink(root.join(name(outer + 1)).join(name(inner + 2)), &path).unwrap(),
                2 if outer > 0 => {
                    let first = paths
                        .iter()
                        .find(|path: &&PathBuf| path.is_file() && !path.starts_with(&folder));
                    fs::hard_link(first.unwrap(), &path).unwrap();
                }
                _ => fs::write(&path, "x").unwrap(),
            }
            paths.push(path);
        }
    }
    let paths = paths.into_iter().map(|path| AbsPath::new(path).unwrap()).collect();
    Disk {
        root,
        paths,
        _kept: kept,
    }
});

/// The profile, its paths moved to the disk.
fn moved(mut profile: Profile) -> Profile {
    let to = |path: &AbsPath| AbsPath::new(DISK.root.join(path.as_path().strip_prefix("/").unwrap())).unwrap();
    profile.identities.clear();
    profile.grants.iter_mut().for_each(|grant| grant.path = to(&grant.path));
    for deny in &mut profile.denies {
        let (Target::Path(path) | Target::Pattern { root: path, .. }) = &mut deny.target;
        *path = to(path);
    }
    profile
}

fn options(decompose: bool) -> Options {
    Options {
        abi: 7,
        deny_fallback: if decompose {
            DenyFallback::Decompose
        } else {
            DenyFallback::Refuse
        },
        residuals: Residuals::Report,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_is_tied_to_what_lies_at_its_path_and_leads_through_no_link(
        profile in make::profile(),
        decompose in any::<bool>(),
    ) {
        let profile = moved(profile);
        let options = options(decompose);
        let Ok(survey) = landlock::survey(&profile, &options) else { return Ok(()) };
        let Ok(lowered) = landlock::lower(&profile, &survey, &options) else { return Ok(()) };
        prop_assert_eq!(landlock::validate(&lowered.plan, &profile), Ok(()));
        for rule in &lowered.plan.rules {
            let path = PathBuf::from(&rule.path);
            prop_assert_eq!(path.canonicalize().unwrap(), path.clone());
            let there = fs::symlink_metadata(&path).unwrap();
            prop_assert_eq!((rule.device, rule.inode), (there.dev(), there.ino()), "{:?}", path);
        }
    }

    #[test]
    fn what_a_deny_takes_from_a_file_is_given_by_none_of_its_names(profile in make::profile()) {
        let profile = moved(profile);
        let options = options(true);
        let Ok(survey) = landlock::survey(&profile, &options) else { return Ok(()) };
        let Ok(lowered) = landlock::lower(&profile, &survey, &options) else { return Ok(()) };
        let mut of_object: BTreeMap<u64, Vec<&AbsPath>> = BTreeMap::new();
        for path in &DISK.paths {
            let there = fs::symlink_metadata(path.as_path()).unwrap();
            if there.is_file() {
                of_object.entry(there.ino()).or_default().push(path);
            }
        }
        let without_denies = Profile { denies: Vec::new(), ..profile.clone() };
        for operation in [Operation::Read, Operation::Write, Operation::Execute] {
            for all in of_object.values() {
                let taken = all.iter().find(|name| {
                    naive::profile(&without_denies, operation, &names(name)) == Access::Full
                        && naive::profile(&profile, operation, &names(name)) == Access::Denied
                });
                let given = all.iter().find(|name| lowered.plan.access(operation, name) == Access::Full);
                prop_assert!(taken.is_none() || given.is_none(), "{} {:?} and {:?}", operation, taken, given);
            }
        }
    }

    #[test]
    fn a_root_of_a_config_is_where_it_says_or_is_refused(
        typed in prop::collection::vec(prop::sample::select(&["in", "deep", "link", "out", "loop", "gone", "..", "."][..]), 1..5),
        rw in any::<bool>(),
    ) {
        static PROJECT: LazyLock<(TempDir, Context)> = LazyLock::new(|| {
            let kept = tempfile::tempdir().unwrap();
            let root = kept.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("project/in/deep/in")).unwrap();
            fs::create_dir_all(root.join("elsewhere/in")).unwrap();
            for (target, link) in [("in", "link"), ("../elsewhere", "out"), ("loop", "loop"), ("..", "in/link")] {
                symlink(target, root.join("project").join(link)).unwrap();
            }
            let mut context = Context::host();
            context.variables.clear();
            context.home = None;
            (kept, context)
        });
        let (kept, context) = &*PROJECT;
        let project = kept.path().canonicalize().unwrap().join("project");
        let config = project.join("stockade.yaml");
        let mode = if rw { "rw" } else { "ro" };
        let (text, typed) = (typed.join("/"), project.join(typed.join("/")));
        fs::write(&config, format!("sandbox: {{protect: none, paths: {{a: {{root: {text}, mode: {mode}}}}}}}\n")).unwrap();
        match examine(&config, context) {
            Ok(loaded) => {
                let root = &loaded.policy.roots[0];
                prop_assert_eq!(root.path.as_path(), typed.canonicalize().unwrap());
                // No link on the way, however it is spelled: the agent could turn it before the next start.
                let mut way = project.clone();
                for part in text.split('/') {
                    way.push(part);
                    prop_assert!(!fs::symlink_metadata(&way).unwrap().is_symlink(), "{}", text);
                }
                let there = fs::metadata(root.path.as_path()).unwrap();
                prop_assert_eq!((root.identity.device, root.identity.inode), (there.dev(), there.ino()));
            }
            Err(ConfigError::Invalid(diagnostic)) => {
                let plain = typed.canonicalize().is_ok_and(|real| {
                    real.starts_with(&project) && !text.contains("link") && !text.contains("out")
                });
                prop_assert!(!plain, "{}", diagnostic);
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
