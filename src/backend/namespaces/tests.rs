//! One plan in full, and every way of weakening it by hand.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::backend::attributes::{self, AttributePlan};
use crate::backend::landlock::Beneath;
use crate::backend::status::{Refusal, Status};
use crate::backend::survey::{Kind, Link, Node, Survey};
use crate::backend::{MadeBy, NamespacePlan, NetworkExit};
use crate::policy::{
    AbsPath, Deny, DenyFallback, Environment, Grant, Identity, Limits, Network, Origin, Pattern, Residuals, Rights,
    Scope, Suffix, Target, UnixSockets,
};
use crate::profile::Profile;

fn path(text: impl AsRef<OsStr>) -> AbsPath {
    AbsPath::new(text.as_ref()).unwrap()
}

fn node(kind: Kind) -> Node {
    Node {
        kind,
        identity: Identity { device: 1, inode: 2 },
        links: 1,
    }
}

/// A machine with a workspace: a secret, a directory of keys, a git directory.
fn machine() -> Survey {
    let mut survey = Survey::default();
    let directories = [
        "/",
        "/dev",
        "/proc",
        "/proc/scsi",
        "/tmp",
        "/usr",
        "/w",
        "/w/.git",
        "/w/.git/hooks",
        "/w/keys",
        "/w/a",
        "/w/a/b",
        "/ro",
    ];
    for directory in directories {
        survey.insert(path(directory), node(Kind::Directory));
    }
    for file in [
        "/proc/keys",
        "/proc/timer_list",
        "/w/.env",
        "/w/.git/config",
        "/w/keys/id",
        "/w/a/b/lib",
        "/ro/x.pem",
        "/ro/y",
        "/ro/z.md",
    ] {
        survey.insert(path(file), node(Kind::File));
    }
    survey.insert(path("/dev/null"), node(Kind::Device));
    let lists: [(&str, &[&str]); 7] = [
        ("/w", &[".env", ".git", "keys", "a"]),
        ("/w/.git", &["hooks", "config"]),
        ("/w/.git/hooks", &[]),
        ("/w/keys", &["id"]),
        ("/w/a", &["b"]),
        ("/w/a/b", &["lib"]),
        ("/ro", &["x.pem", "y", "z.md"]),
    ];
    for (directory, names) in lists {
        survey.insert_entries(path(directory), names.iter().map(OsString::from).collect());
    }
    let link = Link {
        target: "usr/bin".into(),
        leads_to: path("/usr/bin"),
    };
    survey.insert_link(path("/bin"), link.clone());
    let hidden = Link {
        leads_to: path("/home/me"),
        ..link
    };
    survey.insert_link(path("/me"), hidden);
    survey
}

fn origin() -> Origin {
    Origin::Builtin("test")
}

fn profile() -> Profile {
    let deny = |at: &str, rights| Deny::tree(path(at), rights, origin());
    let grants = [
        ("/usr", Rights::READ | Rights::EXECUTE),
        ("/w", Rights::ALL),
        ("/ro", Rights::READ),
        ("/proc/version", Rights::READ),
        ("/proc/timer_list", Rights::READ),
        ("/dev/null", Rights::READ | Rights::WRITE),
    ];
    let pattern = Deny {
        target: Target::Pattern {
            root: path("/ro"),
            pattern: Pattern::Suffix(".pem".into()),
        },
        ..deny("/", Rights::ALL)
    };
    Profile {
        grants: grants
            .map(|(at, rights)| Grant::tree(path(at), rights, origin()))
            .into(),
        denies: vec![
            deny("/w/.env", Rights::ALL),
            deny("/w/keys", Rights::READ),
            deny("/w/a/b/lib", Rights::WRITE),
            pattern,
        ],
        identities: BTreeMap::new(),
        network: Network::Off,
        unix_sockets: UnixSockets::None,
        limits: Limits::default(),
        environment: Environment::default(),
    }
}

fn options() -> Options {
    Options {
        abi: 7,
        deny_fallback: DenyFallback::Refuse,
        residuals: Residuals::Refuse,
        tmp_bytes: 4096,
        protect: vec![path("/w/.git/config"), path("/w/.git/hooks"), path("/w/.envrc")],
        copies: Vec::new(),
        loader: Vec::new(),
        veiled: Vec::new(),
        start: None,
    }
}

fn lowered() -> Lowered {
    lower(&profile(), &machine(), &options()).unwrap()
}

fn check(lowered: &Lowered, argv: &[OsString]) -> Result<(), String> {
    check_against(&profile(), &machine(), lowered, argv)
}

fn check_against(profile: &Profile, survey: &Survey, lowered: &Lowered, argv: &[OsString]) -> Result<(), String> {
    let layered_plan = LayeredPlan {
        argv,
        layer: &lowered.layer,
        own: &lowered.own,
        copies: &[],
        loader: &[],
        new_names: NewNames::Refused,
    };
    validate(&layered_plan, &AttributePlan::default(), profile, survey).map_err(|witness| witness.to_string())
}

/// One option a line.
fn shown(argv: &[OsString]) -> String {
    let words = argv.iter().map(|word| word.to_str().unwrap());
    words.fold(String::new(), |text, word| {
        let gap = match (text.is_empty(), word.starts_with("--")) {
            (true, _) => "",
            (false, true) => "\n",
            (false, false) => " ",
        };
        text + gap + word
    })
}

#[test]
fn a_plan_in_full() {
    insta::assert_snapshot!(shown(&lowered().plan.render()), @r"
    --unshare-user
    --unshare-ipc
    --unshare-pid
    --unshare-uts
    --unshare-cgroup
    --unshare-net
    --cap-drop ALL
    --chdir /
    --dev /dev
    --proc /proc
    --ro-bind /dev/null /proc/keys
    --perms 0000
    --tmpfs /proc/scsi
    --remount-ro /proc/scsi
    --ro-bind /ro /ro
    --ro-bind /dev/null /ro/x.pem
    --size 4096
    --perms 1777
    --tmpfs /tmp
    --ro-bind /usr /usr
    --bind /w /w
    --ro-bind /dev/null /w/.env
    --bind /w/.git /w/.git
    --ro-bind /w/.git/config /w/.git/config
    --ro-bind /w/.git/hooks /w/.git/hooks
    --bind /w/a /w/a
    --bind /w/a/b /w/a/b
    --ro-bind /w/a/b/lib /w/a/b/lib
    --perms 0000
    --tmpfs /w/keys
    --remount-ro /w/keys
    --symlink usr/bin /bin
    --remount-ro /proc
    --remount-ro /dev
    --remount-ro /
    ");
}

#[test]
fn statuses_say_what_becomes_of_each_clause() {
    let said: Vec<String> = lowered()
        .statuses
        .iter()
        .map(|clause| format!("{} — {}", clause.clause, clause.status))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    metadata of files outside the grants (only the names of the directories on the way to what is granted can be seen, the links of system directories that lead to it, and that something is masked) — enforced
    grant read /proc/version — enforced
    grant read /proc/timer_list — enforced
    grant read+execute /usr — enforced
    grant all /w — enforced
    grant read /ro — enforced
    grant read+write /dev/null — enforced
    unix sockets none — enforced
    deny all /w/.env — enforced
    deny read /w/keys — stricter: what may not be read is masked: nothing at all can be done there
    deny write /w/a/b/lib — enforced
    deny all *.pem below /ro — enforced
    writable roots and private directories — stricter: each of them, and each directory on the way to what is held apart in them, is a mount of its own: it is neither moved nor removed, and between two of them renaming and linking is copying
    ");
}

#[test]
fn what_is_rendered_is_what_the_descriptor_carries() {
    let plan = lowered().plan;
    let bytes = plan.bytes();
    let parts: Vec<&[u8]> = bytes.split(|&b| b == 0).collect();
    let (last, arguments) = parts.split_last().unwrap();
    assert!(last.is_empty());
    assert!(
        plan.render()
            .iter()
            .map(|word| word.as_bytes())
            .eq(arguments.iter().copied())
    );
}

/// What mounts leave to be changed of attributes, beyond what the plan for a profile with these grants more permits.
fn attributes_left(steps: impl FnOnce(&mut Vec<Step>), grants: &[Grant]) -> Result<(), String> {
    let mut profile = profile();
    profile.grants.extend_from_slice(grants);
    let mut mounts = lower(&profile, &machine(), &options()).unwrap().plan;
    steps(&mut mounts.steps);
    let attributes = attributes::lower(&profile.grants, &profile.denies, Some(&path("/tmp")));
    let namespace_plan = NamespacePlan {
        made_by: MadeBy::Stockade,
        mounts,
        own: Vec::new(),
        protected: Vec::new(),
        matched: Vec::new(),
        exit: NetworkExit::None,
    };
    attributes_within(Some(&namespace_plan), UnixSockets::None, &[], &attributes, &machine())
        .map_err(|left| left.to_string())
}

#[test]
fn mounts_keep_attributes_where_nothing_else_is_left_to_be_changed() {
    assert_eq!(attributes_left(|_| (), &[]), Ok(()));
    let bind = |at: &str, access, beneath| Step::Bind {
        path: at.into(),
        access,
        device: 1,
        inode: 2,
        beneath,
    };
    let writable = |at: &'static str| {
        move |steps: &mut Vec<Step>| {
            let found = steps
                .iter_mut()
                .find(|step| matches!(step, Step::Bind { path, .. } if path == at));
            *found.unwrap() = bind(at, BindAccess::Writable, Beneath::Directory);
        }
    };
    for at in ["/ro", "/usr", "/w/a/b/lib"] {
        assert!(attributes_left(writable(at), &[]).unwrap_err().contains(at), "{at}");
    }
    let thawed = |steps: &mut Vec<Step>| steps.retain(|step| !matches!(step, Step::Freeze { path } if path == "/proc"));
    assert!(attributes_left(thawed, &[]).unwrap_err().contains("/proc"));
    // A rule of Landlock narrows what is written there, and says nothing of attributes.
    let narrow = Grant {
        suffixes: Some([Suffix::new(".md").unwrap()].into_iter().collect()),
        ..Grant::tree(path("/ro"), Rights::ALL, origin())
    };
    assert!(attributes_left(|_| (), &[narrow]).unwrap_err().contains("/ro/z.md"));
}

#[test]
fn the_broker_keeps_attributes_where_mounts_are_not_enough() {
    let attributes = attributes::lower(&profile().grants, &profile().denies, Some(&path("/tmp")));
    let namespace_plan = |made_by| NamespacePlan {
        made_by,
        mounts: lowered().plan,
        own: Vec::new(),
        protected: Vec::new(),
        matched: Vec::new(),
        exit: NetworkExit::None,
    };
    let kept = |namespace_plan: Option<NamespacePlan>, sockets| {
        attributes_within(namespace_plan.as_ref(), sockets, &[], &attributes, &machine()).is_ok()
    };
    assert!(kept(Some(namespace_plan(MadeBy::Stockade)), UnixSockets::None));
    assert!(!kept(
        Some(namespace_plan(MadeBy::Bwrap("/usr/bin/bwrap".into()))),
        UnixSockets::None
    ));
    assert!(!kept(Some(namespace_plan(MadeBy::Stockade)), UnixSockets::All));
    assert!(!kept(Some(namespace_plan(MadeBy::Stockade)), UnixSockets::WithinRoots));
    assert!(!kept(None, UnixSockets::None));
}

#[test]
fn protected_paths_that_exist_are_named_as_held() {
    assert_eq!(lowered().protected, [path("/w/.git/config"), path("/w/.git/hooks")]);
}

/// The index of the option whose last value is `at`.
fn option_at(argv: &[OsString], name: &str, at: &str) -> usize {
    let found = (0..argv.len()).find(|&i| {
        let values = argv[i + 1..]
            .iter()
            .take_while(|word| !word.as_bytes().starts_with(b"--"));
        argv[i] == name && values.last().is_some_and(|last| last == at)
    });
    found.unwrap_or_else(|| panic!("no {name} {at} in {argv:?}"))
}

#[test]
fn every_hand_weakened_plan_is_caught_with_a_witness() {
    let plan = lowered();
    let sound = plan.plan.render();
    assert_eq!(check(&plan, &sound), Ok(()));
    let witnesses = hurt(&sound).into_iter().map(|(what, argv)| {
        let witness = check(&plan, &argv).expect_err(what);
        format!("{what}: {witness}")
    });
    insta::assert_snapshot!(witnesses.collect::<Vec<_>>().join("\n"), @r"
    a tree becomes writable: write /ro: permitted by the mounts, not by the profile
    a write-deny is dropped: write /w/a/b/lib: permitted by the mounts and the Landlock plan, not by the profile
    a write-deny becomes writable: write /w/a/b/lib: permitted by the mounts and the Landlock plan, not by the profile
    a file's mask is dropped: read /w/.env: permitted by the mounts and the Landlock plan, not by the profile
    a file's mask acts as a device: /dev/null shown at /w/.env: permitted by the mounts, not by the profile
    a mask of the kernel's own is dropped: read /proc/keys: permitted by the mounts and the Landlock plan, not by the profile
    the host shown in /proc: /usr shown at /proc/scsi: permitted by the mounts, not by the profile
    a pattern's mask is dropped: read /ro/x.pem: permitted by the mounts and the Landlock plan, not by the profile
    a directory's mask is dropped: read /w/keys: permitted by the mounts and the Landlock plan, not by the profile
    a pin is dropped: renaming /w/a/b, and with it the mount at /w/a/b/lib: permitted by the mounts, not by the profile
    a bind comes after what covers it: a mount at /w, where none can be made: permitted by the mounts, not by the profile
    a bind more: a mount at /dev/null, where none can be made: permitted by the mounts, not by the profile
    a tree more: a rule on /tmp, which is no mount of the regime's own: permitted by the mounts, not by the profile
    another source: /usr shown at /w: permitted by the mounts, not by the profile
    a mount point made on the host: memory without a bound at /w/new: permitted by the mounts, not by the profile
    memory without a bound: the option 4096: permitted by the mounts, not by the profile
    an option nobody knows: the option --share-net: permitted by the mounts, not by the profile
    a link over a mount: a link made at /w: permitted by the mounts, not by the profile
    a directory made on the host: a directory made at /w/new: permitted by the mounts, not by the profile
    a directory over the private one: a directory made at /tmp: permitted by the mounts, not by the profile
    the root is left open: a root directory to write in: permitted by the mounts, not by the profile
    /dev is left open: another /dev: permitted by the mounts, not by the profile
    /proc is left open: changing what the kernel tells in /proc: permitted by the mounts, not by the profile
    the host's /proc: --remount-ro of /proc, which is no mount: permitted by the mounts, not by the profile
    capabilities: capabilities over the mounts: permitted by the mounts, not by the profile
    the host's network: the host's net namespace: permitted by the mounts, not by the profile
    the host's processes: the host's pid namespace: permitted by the mounts, not by the profile
    the host's users: the host's user namespace: permitted by the mounts, not by the profile
    the host's queues: the host's ipc namespace: permitted by the mounts, not by the profile
    ");
}

/// A machine and a profile with so many files granted as well.
fn with_many(count: usize) -> (Survey, Profile) {
    let (mut survey, mut many) = (machine(), profile());
    for i in 0..count {
        let file = path(format!("/many/{i}"));
        survey.insert(file.clone(), node(Kind::File));
        many.grants.push(Grant::tree(file, Rights::READ, origin()));
    }
    (survey, many)
}

#[test]
fn every_hand_weakened_plan_of_many_mounts_is_caught_with_a_witness() {
    let (survey, profile) = with_many(400);
    let plan = lower(&profile, &survey, &options()).unwrap();
    let sound = plan.plan.render();
    assert_eq!(check_against(&profile, &survey, &plan, &sound), Ok(()));
    let few = |wanted: &str| {
        let few = lowered();
        let mut each = hurt(&few.plan.render()).into_iter();
        let (_, argv) = each.find(|(what, _)| *what == wanted).unwrap();
        check(&few, &argv).unwrap_err()
    };
    for (what, argv) in hurt(&sound) {
        let witness = check_against(&profile, &survey, &plan, &argv).expect_err(what);
        // Whatever else there is, the witness is the same.
        assert_eq!(witness, few(what), "{what}: {}", shown(&argv));
    }
}

#[test]
fn every_hand_weakened_plan_is_caught_with_no_layer_inside() {
    let mut profile = profile();
    for grant in &mut profile.grants {
        grant.rights = grant.rights | Rights::EXECUTE;
    }
    let sound = lower(&profile, &machine(), &options()).unwrap().plan.render();
    let check = |argv: &[OsString]| mounts_within(argv, &profile, &machine());
    assert_eq!(check(&sound), Ok(()));
    for (what, argv) in hurt(&sound) {
        assert!(check(&argv).is_err(), "{what}: {}", shown(&argv));
    }
}

#[test]
fn what_only_a_layer_would_hold_is_caught_where_there_is_none() {
    let files = Grant {
        suffixes: Some([Suffix::new(".md").unwrap()].into_iter().collect()),
        ..Grant::tree(path("/ro"), Rights::READ, origin())
    };
    let mut profile = profile();
    profile.grants.retain(|grant| grant.path != path("/ro"));
    profile.grants.push(files);
    let argv = lower(&profile, &machine(), &options()).unwrap().plan.render();
    let witness = mounts_within(&argv, &profile, &machine()).unwrap_err();
    assert!(witness.to_string().contains("/ro"), "{witness}");
}

/// Every way in which the plan is weakened.
fn hurt(sound: &[OsString]) -> Vec<(&'static str, Vec<OsString>)> {
    let without = |name: &str, at: &str, count: usize| {
        let mut argv = sound.to_vec();
        let i = option_at(&argv, name, at);
        argv.drain(i..i + count);
        argv
    };
    let instead = |name: &str, at: &str, new: &str| {
        let mut argv = sound.to_vec();
        let i = option_at(&argv, name, at);
        argv[i] = new.into();
        argv
    };
    let more = |words: &[&str]| {
        sound
            .iter()
            .cloned()
            .chain(words.iter().map(OsString::from))
            .collect::<Vec<_>>()
    };
    let moved = |name: &str, at: &str| {
        let mut argv = sound.to_vec();
        let i = option_at(&argv, name, at);
        let step: Vec<_> = argv.drain(i..i + 3).collect();
        argv.extend(step);
        argv
    };
    let flag = |name: &str| sound.iter().filter(|word| *word != name).cloned().collect::<Vec<_>>();
    vec![
        ("a tree becomes writable", instead("--ro-bind", "/ro", "--bind")),
        ("a write-deny is dropped", without("--ro-bind", "/w/a/b/lib", 3)),
        (
            "a write-deny becomes writable",
            instead("--ro-bind", "/w/a/b/lib", "--bind"),
        ),
        ("a file's mask is dropped", without("--ro-bind", "/w/.env", 3)),
        (
            "a file's mask acts as a device",
            instead("--ro-bind", "/w/.env", "--dev-bind"),
        ),
        (
            "a mask of the kernel's own is dropped",
            without("--ro-bind", "/proc/keys", 3),
        ),
        ("the host shown in /proc", more(&["--ro-bind", "/usr", "/proc/scsi"])),
        ("a pattern's mask is dropped", without("--ro-bind", "/ro/x.pem", 3)),
        ("a directory's mask is dropped", {
            let mut argv = without("--remount-ro", "/w/keys", 2);
            let i = option_at(&argv, "--tmpfs", "/w/keys");
            argv.drain(i - 2..i + 2);
            argv
        }),
        ("a pin is dropped", without("--bind", "/w/a/b", 3)),
        ("a bind comes after what covers it", moved("--bind", "/w")),
        ("a bind more", more(&["--bind", "/dev/null", "/dev/null"])),
        ("a tree more", {
            let mut argv = sound.to_vec();
            let i = option_at(&argv, "--remount-ro", "/");
            argv.splice(i..i, ["--ro-bind", "/tmp", "/tmp"].map(OsString::from));
            argv
        }),
        ("another source", {
            let mut argv = sound.to_vec();
            let i = option_at(&argv, "--bind", "/w");
            argv[i + 1] = "/usr".into();
            argv
        }),
        ("a mount point made on the host", more(&["--tmpfs", "/w/new"])),
        ("memory without a bound", flag("--size")),
        ("an option nobody knows", more(&["--share-net"])),
        ("a link over a mount", more(&["--symlink", "/", "/w"])),
        ("a directory made on the host", more(&["--dir", "/w/new"])),
        ("a directory over the private one", more(&["--dir", "/tmp"])),
        ("the root is left open", without("--remount-ro", "/", 2)),
        ("/dev is left open", without("--remount-ro", "/dev", 2)),
        ("/proc is left open", without("--remount-ro", "/proc", 2)),
        ("the host's /proc", without("--proc", "/proc", 2)),
        ("capabilities", without("--cap-drop", "ALL", 2)),
        ("the host's network", flag("--unshare-net")),
        ("the host's processes", flag("--unshare-pid")),
        ("the host's users", flag("--unshare-user")),
        ("the host's queues", flag("--unshare-ipc")),
    ]
}

#[test]
fn a_file_that_is_written_inside_a_tree_that_is_only_executed_has_nothing_below_it() {
    let (mut survey, mut profile) = (machine(), profile());
    let file = path("/ro/written");
    survey.insert(file.clone(), node(Kind::File));
    for grant in profile.grants.iter_mut().filter(|grant| grant.path == path("/ro")) {
        grant.rights = Rights::READ | Rights::EXECUTE;
    }
    profile.denies.retain(|deny| !deny.to_string().contains("/ro"));
    profile.grants.push(Grant {
        scope: Scope::File,
        ..Grant::tree(file, Rights::ALL, origin())
    });
    let plan = lower(&profile, &survey, &options()).unwrap();
    let sound = plan.plan.render();
    assert_eq!(check_against(&profile, &survey, &plan, &sound), Ok(()));
    // The twin: a directory there has.
    survey.insert(path("/ro/written"), node(Kind::Directory));
    assert!(check_against(&profile, &survey, &plan, &sound).is_err());
}

#[test]
fn a_rule_of_the_layer_on_what_is_no_own_mount_is_caught() {
    let mut plan = lowered();
    let argv = plan.plan.render();
    plan.own.push(OwnRule {
        path: "/ro".into(),
        file_system: OwnFileSystem::Tmpfs,
        access: 1,
    });
    assert!(check(&plan, &argv).is_err());
}

#[test]
fn a_name_that_could_still_appear_where_a_command_writes_is_refused() {
    let mut absent = profile();
    absent.denies.push(Deny::tree(path("/w/secret"), Rights::ALL, origin()));
    let refused = lower(&absent, &machine(), &options()).unwrap_err();
    assert!(matches!(refused, Refusal::DenyBesideMounts { .. }), "{refused}");
    let decomposing = Options {
        deny_fallback: DenyFallback::Decompose,
        ..options()
    };
    let lowered = lower(&absent, &machine(), &decomposing).unwrap();
    assert!(
        lowered
            .statuses
            .iter()
            .any(|clause| matches!(&clause.status, Status::Stricter(_)) && clause.clause.ends_with("/w"))
    );
}

#[test]
fn a_refused_deny_is_told_in_the_words_of_mounts() {
    let pattern = Deny {
        target: Target::Pattern {
            root: path("/w"),
            pattern: Pattern::Suffix(".pem".into()),
        },
        ..Deny::tree(path("/w"), Rights::READ, origin())
    };
    let suffixes = Deny {
        except: Some(Suffix::new(".md").into_iter().collect()),
        ..Deny::tree(path("/w/a"), Rights::READ, origin())
    };
    let cases = [
        (pattern, "such a name could still be made"),
        (
            Deny::tree(path("/w/absent"), Rights::ALL, origin()),
            "such a name could still be made",
        ),
        (
            Deny::tree(path("/w/a"), Rights::EXECUTE, origin()),
            "executing from reading",
        ),
        (suffixes, "by their suffix"),
    ];
    for (deny, why) in cases {
        let mut denied = profile();
        let clause = deny.to_string();
        denied.denies = vec![deny];
        let refused = lower(&denied, &machine(), &options()).unwrap_err().to_string();
        assert!(refused.contains(why) && refused.contains(&clause), "{refused}");
        assert!(!refused.contains("Landlock"), "{refused}");
    }
}

#[test]
fn a_name_that_cannot_appear_needs_nothing() {
    let mut absent = profile();
    absent
        .denies
        .push(Deny::tree(path("/ro/secret"), Rights::ALL, origin()));
    let lowered = lower(&absent, &machine(), &options()).unwrap();
    assert_eq!(lowered.plan, self::lowered().plan);
}

#[test]
fn a_deny_that_is_left_to_the_layer_says_what_the_layer_loses() {
    let mut unread = profile();
    let pattern = Target::Pattern {
        root: path("/w"),
        pattern: Pattern::Suffix(".sh".into()),
    };
    unread.denies.push(Deny {
        target: pattern,
        ..Deny::tree(AbsPath::root(), Rights::READ, origin())
    });
    let decomposing = Options {
        deny_fallback: DenyFallback::Decompose,
        ..options()
    };
    let lowered = lower(&unread, &machine(), &decomposing).unwrap();
    let said = lowered
        .statuses
        .iter()
        .find(|clause| clause.clause.contains(".sh"))
        .unwrap();
    assert_eq!(
        said.status,
        Status::Stricter("the kernel reads what it executes: nothing there runs".to_owned())
    );
}

#[test]
fn what_mounts_take_from_unix_sockets_is_said() {
    let said = |unix_sockets, denies| {
        let profile = Profile {
            denies,
            unix_sockets,
            ..profile()
        };
        let governing = Options {
            abi: 9,
            protect: Vec::new(),
            ..options()
        };
        let statuses = lower(&profile, &machine(), &governing).unwrap().statuses;
        let clause = statuses
            .into_iter()
            .find(|clause| clause.clause.starts_with("unix sockets"));
        clause.unwrap().status.to_string()
    };
    assert!(said(UnixSockets::All, Vec::new()).starts_with("stricter: only sockets that are mounted"));
    assert_eq!(said(UnixSockets::WithinRoots, Vec::new()), "enforced");
    assert!(said(UnixSockets::WithinRoots, profile().denies).ends_with("all are refused"));
    assert_eq!(said(UnixSockets::None, profile().denies), "enforced");
}

#[test]
fn abstract_sockets_of_the_host_are_kept_out_by_a_scope_or_a_network_namespace_or_refused() {
    let all = |network| Profile {
        network,
        unix_sockets: UnixSockets::All,
        ..profile()
    };
    let on = |abi| Options { abi, ..options() };
    for abi in [3, 4, 5] {
        let refused = lower(&all(Network::Full), &machine(), &on(abi));
        assert!(
            matches!(refused, Err(Refusal::AbstractSockets { need: 6, .. })),
            "{abi}"
        );
        assert!(lower(&all(Network::Off), &machine(), &on(abi)).is_ok(), "{abi}");
        let none = Profile {
            network: Network::Full,
            ..profile()
        };
        assert!(lower(&none, &machine(), &on(abi)).is_ok(), "{abi}");
    }
    let open = all(Network::Full);
    let Lowered {
        plan, mut layer, own, ..
    } = lower(&open, &machine(), &on(6)).unwrap();
    let argv = plan.render();
    let mut valid = |abi| {
        layer.abi = abi;
        let layered_plan = LayeredPlan {
            argv: &argv,
            layer: &layer,
            own: &own,
            copies: &[],
            loader: &[],
            new_names: NewNames::Refused,
        };
        validate(&layered_plan, &AttributePlan::default(), &open, &machine())
    };
    assert_eq!(valid(6), Ok(()));
    // The proof refuses it by itself.
    assert!(
        valid(5)
            .unwrap_err()
            .to_string()
            .contains("the host's abstract sockets")
    );
}

#[test]
fn a_single_file_in_tmp_is_granted_and_the_rest_stays_private() {
    let (mut survey, mut single) = (machine(), profile());
    survey.insert(path("/tmp/tool"), node(Kind::File));
    single.grants.push(Grant {
        scope: Scope::File,
        ..Grant::tree(path("/tmp/tool"), Rights::READ | Rights::EXECUTE, origin())
    });
    let lowered = lower(&single, &survey, &options()).unwrap();
    let argv = lowered.plan.render();
    let holds = |argv: &[OsString]| {
        let layered_plan = LayeredPlan {
            argv,
            layer: &lowered.layer,
            own: &lowered.own,
            copies: &[],
            loader: &[],
            new_names: NewNames::Refused,
        };
        validate(&layered_plan, &AttributePlan::default(), &single, &survey)
    };
    assert_eq!(holds(&argv), Ok(()));
    assert!(lowered.own.iter().any(|rule| rule.path == "/tmp"));
    let mut written = argv.clone();
    let at = option_at(&argv, "--ro-bind", "/tmp/tool");
    written[at] = "--bind".into();
    assert!(holds(&written).is_err());
}

#[test]
fn a_protected_file_with_a_second_name_is_refused() {
    let mut survey = machine();
    let twice = Node {
        links: 2,
        ..node(Kind::File)
    };
    survey.insert(path("/w/.git/config"), twice);
    let refused = lower(&profile(), &survey, &options()).unwrap_err();
    assert!(matches!(refused, Refusal::HardLink { .. }), "{refused}");
}

#[test]
fn more_mounts_than_bwrap_takes_are_refused() {
    let (survey, many) = with_many(4_000);
    let refused = lower(&many, &survey, &options()).unwrap_err();
    assert!(matches!(refused, Refusal::TooManyMounts { .. }), "{refused}");
}

#[test]
fn names_of_any_bytes_pass_through_unchanged() {
    let hostile = OsStr::from_bytes(b"/w/-- a\n'\"\\\xff");
    let (mut survey, mut hidden) = (machine(), profile());
    survey.insert(path(hostile), node(Kind::File));
    hidden.denies.push(Deny::tree(path(hostile), Rights::ALL, origin()));
    let lowered = lower(&hidden, &survey, &options()).unwrap();
    let argv = lowered.plan.render();
    assert!(
        argv.windows(3)
            .any(|step| step[0] == "--ro-bind" && step[1] == "/dev/null" && step[2] == hostile)
    );
    let layered_plan = LayeredPlan {
        argv: &argv,
        layer: &lowered.layer,
        own: &lowered.own,
        copies: &[],
        loader: &[],
        new_names: NewNames::Refused,
    };
    assert_eq!(
        validate(&layered_plan, &AttributePlan::default(), &hidden, &survey),
        Ok(())
    );
}
