//! What lowering and reading promise, each denial beside a twin that passes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::rights::{
    EXECUTE, IOCTL_DEV, MAKE_CHAR, MAKE_REG, READ_DIR, READ_FILE, REFER, RESOLVE_UNIX, TRUNCATE, WRITE_FILE,
};
use super::{Beneath, LandlockPlan, Lowered, Options, Rule, lower, validate};
use crate::backend::status::{Refusal, Status};
use crate::backend::survey::{Kind, Mount, Node, Survey};
use crate::policy::{
    AbsPath, Deny, DenyFallback, Environment, Grant, Identity, Limits, Network, Origin, Pattern, Residuals, Rights,
    Scope, Suffix, Target, UnixSockets,
};
use crate::profile::Profile;

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn here() -> Origin {
    Origin::Builtin("test")
}

fn grant(at: &str, rights: Rights) -> Grant {
    Grant::tree(path(at), rights, here())
}

fn deny(at: &str, rights: Rights) -> Deny {
    Deny::tree(path(at), rights, here())
}

fn profile(grants: Vec<Grant>, denies: Vec<Deny>) -> Profile {
    Profile {
        grants,
        denies,
        identities: BTreeMap::new(),
        network: Network::Off,
        unix_sockets: UnixSockets::None,
        limits: Limits::default(),
        environment: Environment::default(),
    }
}

fn identity(at: &AbsPath) -> Identity {
    let inode = at
        .as_bytes()
        .iter()
        .fold(1_u64, |sum, &b| sum * 31 % 1_000_003 + u64::from(b));
    Identity { device: 1, inode }
}

/// A disk of these paths; what ends in `/` is a directory, all others are files with one name.
fn disk(paths: &[&str]) -> Survey {
    let mut survey = Survey::default();
    let mut entries: BTreeMap<AbsPath, Vec<OsString>> = BTreeMap::new();
    for text in paths {
        let at = path(text);
        let kind = if text.ends_with('/') {
            Kind::Directory
        } else {
            Kind::File
        };
        survey.insert(
            at.clone(),
            Node {
                kind,
                identity: identity(&at),
                links: 1,
            },
        );
        if kind == Kind::Directory {
            entries.entry(at.clone()).or_default();
        }
        if let (Some(parent), Some(name)) = (at.parent(), at.name()) {
            entries.entry(parent).or_default().push(name.to_owned());
        }
    }
    for (directory, names) in entries {
        survey.insert_entries(directory, names);
    }
    survey
}

const OPTIONS: Options = Options {
    abi: 7,
    deny_fallback: DenyFallback::Refuse,
    residuals: Residuals::Report,
};
const DECOMPOSE: Options = Options {
    deny_fallback: DenyFallback::Decompose,
    ..OPTIONS
};

fn ruled(lowered: &Lowered, at: &str) -> Option<(Beneath, u64)> {
    let wanted = path(at).as_path().as_os_str().to_owned();
    let found = lowered.plan.rules.iter().find(|rule| rule.path == wanted);
    found.map(|rule| (rule.beneath, rule.access))
}

fn stricter(lowered: &Lowered) -> Vec<String> {
    let texts = lowered.statuses.iter().filter_map(|clause| match &clause.status {
        Status::Stricter(what) => Some(format!("{}: {what}", clause.clause)),
        Status::Enforced | Status::Undone | Status::Residual(_) => None,
    });
    texts.collect()
}

#[test]
fn a_plain_tree_is_one_rule() {
    let profile = profile(vec![grant("/w", Rights::READ | Rights::WRITE)], vec![]);
    let lowered = lower(&profile, &disk(&["/", "/w/"]), &OPTIONS).unwrap();
    assert_eq!(lowered.plan.rules.len(), 1);
    let (beneath, access) = ruled(&lowered, "/w").unwrap();
    assert_eq!(beneath, Beneath::Directory);
    let wanted = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_REG | REFER;
    assert_eq!(access & wanted, wanted);
    assert_eq!(access & (EXECUTE | IOCTL_DEV | MAKE_CHAR | RESOLVE_UNIX), 0);
    assert_eq!(stricter(&lowered), [""; 0]);
}

#[test]
fn a_deny_of_reading_alone_says_that_nothing_runs_there_where_something_would() {
    let said = |rights| {
        let profile = profile(vec![grant("/w", rights)], vec![deny("/w/a", Rights::READ)]);
        let lowered = lower(&profile, &disk(&["/", "/w/", "/w/a"]), &DECOMPOSE).unwrap();
        stricter(&lowered)
            .join("\n")
            .contains("deny read /w/a: the kernel reads what it executes")
    };
    assert!(said(Rights::READ | Rights::EXECUTE));
    assert!(!said(Rights::READ | Rights::WRITE));
}

#[test]
fn a_tree_granted_on_what_is_a_file_carries_file_rights_only() {
    let profile = profile(vec![grant("/w/f", Rights::ALL)], vec![]);
    let lowered = lower(&profile, &disk(&["/", "/w/", "/w/f"]), &OPTIONS).unwrap();
    let access = READ_FILE | WRITE_FILE | TRUNCATE | EXECUTE;
    assert_eq!(ruled(&lowered, "/w/f"), Some((Beneath::File, access)));
}

#[test]
fn only_a_device_granted_by_name_takes_ioctl() {
    let mut survey = disk(&["/", "/dev/", "/dev/tty", "/dev/null", "/srv/", "/srv/tty"]);
    for at in ["/dev/tty", "/dev/null", "/srv/tty"] {
        survey.insert(
            path(at),
            Node {
                kind: Kind::Device,
                identity: identity(&path(at)),
                links: 1,
            },
        );
    }
    let file = |at, rights| Grant {
        scope: Scope::File,
        ..grant(at, rights)
    };
    let both = Rights::READ | Rights::WRITE;
    let grants = vec![
        file("/dev/tty", both),
        file("/dev/null", Rights::READ),
        file("/srv/tty", both),
    ];
    let profile = profile(grants, vec![]);
    let lowered = lower(&profile, &survey, &OPTIONS).unwrap();
    assert_eq!(
        ruled(&lowered, "/dev/tty"),
        Some((Beneath::File, READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV))
    );
    assert_eq!(ruled(&lowered, "/dev/null"), Some((Beneath::File, READ_FILE)));
    assert_eq!(
        ruled(&lowered, "/srv/tty"),
        Some((Beneath::File, READ_FILE | WRITE_FILE | TRUNCATE))
    );
    assert_eq!(validate(&lowered.plan, &profile), Ok(()));
}

#[test]
fn a_deny_inside_a_granted_tree_is_refused_and_both_ways_out_are_named() {
    let profile = profile(vec![grant("/w", Rights::READ)], vec![deny("/w/.env", Rights::READ)]);
    let refusal = lower(&profile, &disk(&["/", "/w/", "/w/a"]), &OPTIONS)
        .unwrap_err()
        .to_string();
    for part in [
        "deny read /w/.env",
        "built in: test",
        "outside that tree",
        "deny_fallback: decompose",
    ] {
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn a_decomposed_tree_gives_the_siblings_and_not_the_denied() {
    let profile = profile(
        vec![grant("/w", Rights::READ | Rights::EXECUTE)],
        vec![deny("/w/d/key", Rights::READ)],
    );
    let survey = disk(&["/", "/w/", "/w/a", "/w/d/", "/w/d/key", "/w/d/open", "/w/e/"]);
    let lowered = lower(&profile, &survey, &DECOMPOSE).unwrap();
    // Execution is untouched by the deny, so one rule still says it.
    assert_eq!(ruled(&lowered, "/w"), Some((Beneath::Directory, EXECUTE)));
    assert_eq!(ruled(&lowered, "/w/a"), Some((Beneath::File, READ_FILE)));
    assert_eq!(
        ruled(&lowered, "/w/e"),
        Some((Beneath::Directory, READ_FILE | READ_DIR))
    );
    assert_eq!(ruled(&lowered, "/w/d/open"), Some((Beneath::File, READ_FILE)));
    assert_eq!(ruled(&lowered, "/w/d/key"), None);
    assert_eq!(ruled(&lowered, "/w/d"), None);
    assert_eq!(validate(&lowered.plan, &profile), Ok(()));
    assert!(
        stricter(&lowered)[0].contains("entries created later are not reachable"),
        "{:?}",
        stricter(&lowered)
    );
}

#[test]
fn a_read_only_corner_leaves_the_rest_readable_by_one_rule() {
    let both = Rights::READ | Rights::WRITE;
    let profile = profile(vec![grant("/w", both)], vec![deny("/w/vendor", Rights::WRITE)]);
    let survey = disk(&["/", "/w/", "/w/src/", "/w/vendor/", "/w/vendor/x"]);
    let lowered = lower(&profile, &survey, &DECOMPOSE).unwrap();
    assert_eq!(ruled(&lowered, "/w"), Some((Beneath::Directory, READ_FILE | READ_DIR)));
    assert!(ruled(&lowered, "/w/src").unwrap().1 & MAKE_REG != 0);
    assert_eq!(ruled(&lowered, "/w/vendor"), None);
}

#[test]
fn a_suffix_root_gives_the_files_that_match_now() {
    let suffixes = [Suffix::new(".md").unwrap()].into_iter().collect();
    let notes = Grant {
        suffixes: Some(suffixes),
        ..grant("/n", Rights::READ | Rights::WRITE)
    };
    let profile = profile(vec![notes], vec![]);
    let survey = disk(&["/", "/n/", "/n/a.md", "/n/a.txt", "/n/.md", "/n/d/", "/n/d/b.md"]);
    let lowered = lower(&profile, &survey, &OPTIONS).unwrap();
    assert_eq!(ruled(&lowered, "/n"), Some((Beneath::Directory, READ_DIR)));
    for at in ["/n/a.md", "/n/d/b.md"] {
        assert_eq!(
            ruled(&lowered, at),
            Some((Beneath::File, READ_FILE | WRITE_FILE | TRUNCATE))
        );
    }
    assert_eq!(ruled(&lowered, "/n/a.txt"), None);
    assert_eq!(ruled(&lowered, "/n/.md"), None);
    assert_eq!(validate(&lowered.plan, &profile), Ok(()));
    assert_eq!(stricter(&lowered).len(), 1);
}

#[test]
fn a_sized_root_is_read_only_for_commands() {
    let sized = Grant {
        max_file_bytes: Some(10),
        ..grant("/n", Rights::READ | Rights::WRITE)
    };
    let lowered = lower(&profile(vec![sized], vec![]), &disk(&["/", "/n/"]), &OPTIONS).unwrap();
    assert_eq!(ruled(&lowered, "/n"), Some((Beneath::Directory, READ_FILE | READ_DIR)));
    assert_eq!(stricter(&lowered).len(), 1);
}

#[test]
fn a_pattern_deny_holds_for_hostile_names_and_links_are_never_ruled() {
    let pattern = Pattern::Suffix(OsString::from_vec(b"'\n\xff".to_vec()));
    let target = Target::Pattern {
        root: path("/w"),
        pattern,
    };
    let pattern = Deny {
        target,
        ..deny("/w", Rights::READ)
    };
    let profile = profile(vec![grant("/w", Rights::READ)], vec![pattern]);
    let mut survey = disk(&["/", "/w/", "/w/a"]);
    let hostile = path("/w").child(OsString::from_vec(b"x'\n\xff".to_vec())).unwrap();
    let link = path("/w/link");
    survey.insert(
        hostile.clone(),
        Node {
            kind: Kind::File,
            identity: identity(&hostile),
            links: 1,
        },
    );
    survey.insert(
        link.clone(),
        Node {
            kind: Kind::Symlink,
            identity: identity(&link),
            links: 1,
        },
    );
    let names = ["a".into(), "link".into(), hostile.name().unwrap().to_owned()];
    survey.insert_entries(path("/w"), names.to_vec());
    let lowered = lower(&profile, &survey, &DECOMPOSE).unwrap();
    let paths: Vec<OsString> = lowered.plan.rules.iter().map(|rule| rule.path.clone()).collect();
    assert_eq!(paths, ["/w/a"]);
    assert!(matches!(
        lower(&profile, &survey, &OPTIONS),
        Err(Refusal::DenyBelowGrant { .. })
    ));
}

#[test]
fn a_denied_file_with_two_names_is_refused_and_one_with_one_is_not() {
    let profile = profile(vec![grant("/w", Rights::READ)], vec![deny("/w/d", Rights::READ)]);
    let mut survey = disk(&["/", "/w/", "/w/a", "/w/d/", "/w/d/e/", "/w/d/e/key"]);
    assert!(lower(&profile, &survey, &DECOMPOSE).is_ok());
    let key = path("/w/d/e/key");
    survey.insert(
        key.clone(),
        Node {
            kind: Kind::File,
            identity: identity(&key),
            links: 2,
        },
    );
    let refused = lower(&profile, &survey, &DECOMPOSE);
    assert!(matches!(refused, Err(Refusal::HardLink { path, .. }) if path == key));
}

#[test]
fn a_file_with_two_names_is_refused_where_a_deny_takes_a_grant_back_whole() {
    let mut survey = disk(&["/", "/w/", "/w/d/", "/w/d/key", "/v/", "/v/twin"]);
    let key = path("/w/d/key");
    let grants = || vec![grant("/w", Rights::READ), grant("/v", Rights::READ)];
    let profile = profile(grants(), vec![deny("/w", Rights::READ)]);
    for options in [OPTIONS, DECOMPOSE] {
        assert!(lower(&profile, &survey, &options).is_ok());
    }
    survey.insert(
        key.clone(),
        Node {
            kind: Kind::File,
            identity: identity(&key),
            links: 2,
        },
    );
    for options in [OPTIONS, DECOMPOSE] {
        let refused = lower(&profile, &survey, &options);
        assert!(
            matches!(&refused, Err(Refusal::HardLink { path, .. }) if *path == key),
            "{refused:?}"
        );
    }
}

#[test]
fn a_denied_file_outside_every_grant_may_not_have_two_names_either() {
    let profile = profile(vec![grant("/w", Rights::READ)], vec![deny("/s/key", Rights::READ)]);
    let mut survey = disk(&["/", "/w/", "/s/", "/s/key"]);
    assert!(lower(&profile, &survey, &OPTIONS).is_ok());
    let key = path("/s/key");
    survey.insert(
        key.clone(),
        Node {
            kind: Kind::File,
            identity: identity(&key),
            links: 2,
        },
    );
    assert!(matches!(
        lower(&profile, &survey, &OPTIONS),
        Err(Refusal::HardLink { .. })
    ));
}

#[test]
fn a_mount_that_shows_a_denied_path_under_a_grant_is_refused() {
    let mount = |root: &str, point: &str| Mount {
        device: "8:1".into(),
        root: path(root),
        point: path(point),
    };
    let mut survey = disk(&["/", "/g/"]);
    let profile = profile(vec![grant("/g", Rights::READ)], vec![deny("/secret", Rights::READ)]);
    survey.set_mounts([mount("/", "/"), mount("/other", "/g/in")].into_iter().collect());
    assert!(lower(&profile, &survey, &OPTIONS).is_ok());
    survey.set_mounts([mount("/", "/"), mount("/secret", "/g/in")].into_iter().collect());
    let refused = lower(&profile, &survey, &OPTIONS);
    assert!(matches!(refused, Err(Refusal::Alias { alias, .. }) if alias == path("/g/in")));
}

#[test]
fn a_path_that_leads_elsewhere_than_before_is_refused() {
    let mut profile = profile(vec![grant("/w", Rights::READ)], vec![]);
    profile.identities.insert(path("/w"), identity(&path("/w")));
    assert!(lower(&profile, &disk(&["/", "/w/"]), &OPTIONS).is_ok());
    profile.identities.insert(path("/w"), Identity { device: 1, inode: 0 });
    assert!(matches!(
        lower(&profile, &disk(&["/", "/w/"]), &OPTIONS),
        Err(Refusal::Replaced(_))
    ));
}

#[test]
fn an_old_kernel_and_refused_residuals_refuse() {
    let profile = profile(vec![], vec![]);
    assert!(lower(&profile, &disk(&["/"]), &OPTIONS).is_ok());
    let old = Options { abi: 5, ..OPTIONS };
    assert!(matches!(
        lower(&profile, &disk(&["/"]), &old),
        Err(Refusal::Abi { have: 5, need: 6 })
    ));
    let strict = Options {
        residuals: Residuals::Refuse,
        ..OPTIONS
    };
    assert!(matches!(
        lower(&profile, &disk(&["/"]), &strict),
        Err(Refusal::Residual { .. })
    ));
}

#[test]
fn pathname_sockets_need_abi_nine() {
    let mut profile = profile(vec![grant("/w", Rights::WRITE), grant("/r", Rights::READ)], vec![]);
    profile.unix_sockets = UnixSockets::WithinRoots;
    let survey = disk(&["/", "/w/", "/r/"]);
    let old = lower(&profile, &survey, &OPTIONS).unwrap();
    assert!(stricter(&old)[0].contains("all are refused"));
    let new = lower(&profile, &survey, &Options { abi: 9, ..OPTIONS }).unwrap();
    assert!(ruled(&new, "/w").unwrap().1 & RESOLVE_UNIX != 0);
    assert!(ruled(&new, "/r").unwrap().1 & RESOLVE_UNIX == 0);
    assert_eq!(validate(&new.plan, &profile), Ok(()));
    profile.unix_sockets = UnixSockets::None;
    assert!(validate(&new.plan, &profile).is_err());
}

#[test]
fn a_weakened_plan_is_always_caught() {
    let file = Grant {
        scope: Scope::File,
        ..grant("/w/ro/f", Rights::READ)
    };
    let grants = vec![
        grant("/w/rw", Rights::READ | Rights::WRITE),
        grant("/w/x", Rights::EXECUTE),
        file,
    ];
    let profile = profile(grants, vec![]);
    let survey = disk(&["/", "/w/", "/w/rw/", "/w/x/", "/w/ro/", "/w/ro/f"]);
    let honest = lower(&profile, &survey, &OPTIONS).unwrap().plan;
    assert_eq!(validate(&honest, &profile), Ok(()));

    let caught = |what: &str, weaken: &dyn Fn(&mut LandlockPlan)| {
        let mut plan = honest.clone();
        weaken(&mut plan);
        assert_ne!(plan, honest, "{what}");
        assert!(validate(&plan, &profile).is_err(), "{what}");
    };
    let more = |at: &'static str, access| {
        move |plan: &mut LandlockPlan| {
            let beneath = Beneath::Directory;
            plan.rules.push(Rule {
                path: at.into(),
                device: 1,
                inode: 1,
                beneath,
                access,
            });
        }
    };
    caught("a rule more", &more("/etc", READ_FILE));
    caught("a listing more", &more("/", READ_DIR));
    caught(
        "a rule on a path that is not normal",
        &more("/w/rw/../../etc", READ_FILE),
    );
    caught("a relative path", &more("etc", READ_FILE));
    for bit in (0..17).map(|bit| 1_u64 << bit) {
        for rule in 0..honest.rules.len() {
            if honest.rules[rule].access & bit == 0 {
                caught("a bit more", &|plan| plan.rules[rule].access |= bit);
            }
        }
    }
    caught("a file rule made a directory's", &|plan| {
        plan.rules[0].beneath = Beneath::Directory;
    });
    caught("truncation not handled", &|plan| plan.abi = 2);
    caught("scopes not handled", &|plan| plan.abi = 5);
    caught("TCP not handled", &|plan| plan.handle_tcp = false);
}
