//! What the launcher starts, and what it does not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use stockade::backend::seatbelt::{Options, SeatbeltPlan, lower};
use stockade::backend::survey::Survey;
use stockade::confine::seatbelt::{Confined, LaunchError, Launcher};
use stockade::policy::{
    AbsPath, Access, Deny, Environment, Grant, Limits, Network, Operation, Origin, Residuals, Rights, UnixSockets,
};
use stockade::profile::{FileReach, Profile};

use crate::libtest::Trial;

pub(crate) const TRIALS: &[Trial] = &[
    (
        "seatbelt_launch::a_command_may_do_what_its_profile_says_and_no_more",
        |_| answers(),
    ),
    ("seatbelt_launch::paths_of_any_kind_stay_paths", |_| hostile_names()),
    ("seatbelt_launch::the_environment_is_only_what_was_given", |_| {
        environment();
    }),
    (
        "seatbelt_launch::a_plan_that_is_weaker_than_the_profile_is_not_started",
        |_| weaker(),
    ),
    ("seatbelt_launch::nothing_is_started_inside_of_another_sandbox", |_| {
        nested();
    }),
    (
        "seatbelt_launch::nothing_is_started_where_the_program_does_not_work",
        |_| broken(),
    ),
    (
        "seatbelt_launch::nothing_is_started_where_there_is_no_such_program",
        |_| missing(),
    ),
    ("seatbelt_launch::an_empty_command_is_refused", |_| empty()),
];

const PROGRAM: &str = "/usr/bin/probe";

fn at(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap()
}

fn profile(roots: &[&str], denies: &[&str]) -> Profile {
    let origin = || Origin::Builtin("test");
    let roots = roots
        .iter()
        .map(|path| Grant::tree(at(path), Rights::READ | Rights::WRITE, origin()));
    let usr = Grant::tree(at("/usr"), Rights::READ | Rights::EXECUTE, origin());
    Profile {
        grants: roots.chain([usr]).collect(),
        denies: denies
            .iter()
            .map(|path| Deny::tree(at(path), Rights::ALL, origin()))
            .collect(),
        identities: BTreeMap::default(),
        network: Network::Off,
        unix_sockets: UnixSockets::None,
        limits: Limits::default(),
        environment: Environment::default(),
    }
}

fn plan(profile: &Profile) -> SeatbeltPlan {
    let options = Options {
        residuals: Residuals::Report,
    };
    lower(profile, &Survey::default(), &options).unwrap().plan
}

fn confined(probes: &[(&str, &str)]) -> Confined {
    let words = probes.iter().flat_map(|(what, on)| [*what, *on]);
    Confined {
        argv: [PROGRAM].into_iter().chain(words).map(OsString::from).collect(),
        environment: vec![("GIVEN".into(), "1".into())],
        directory: PathBuf::from("/"),
    }
}

fn stand_in() -> Launcher {
    Launcher::with_program(&std::env::current_exe().unwrap())
}

fn run(profile: &Profile, probes: &[(&str, &str)]) -> Vec<String> {
    let mut command = stand_in().command(&plan(profile), profile, &confined(probes)).unwrap();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn expect(profile: &Profile, expected: &[(&str, &str, &str)]) {
    let probes: Vec<(&str, &str)> = expected.iter().map(|(what, on, _)| (*what, *on)).collect();
    let answers = run(profile, &probes);
    let said: Vec<(&str, &str, &str)> = probes
        .iter()
        .zip(&answers)
        .map(|((what, on), answer)| (*what, *on, answer.as_str()))
        .collect();
    assert_eq!(said, expected);
}

fn answers() {
    expect(
        &profile(&["/Users/me/w"], &["/Users/me/w/a/secret"]),
        &[
            ("read", "/Users/me/w/a/file", "allow"),
            ("list", "/Users/me/w", "allow"),
            ("write", "/Users/me/w/a/file", "allow"),
            ("execute", "/Users/me/w/a/file", "deny"),
            ("execute", "/usr/bin/cc", "allow"),
            ("write", "/usr/bin/cc", "deny"),
            ("read", "/Users/me/w/a/secret", "deny"),
            ("read", "/Users/me/w/a/SECRET/x", "deny"),
            ("write", "/Users/me/w/a/secret/x", "deny"),
            ("remove", "/Users/me/w/a", "deny"),
            ("remove", "/Users/me/w/b", "allow"),
            ("read", "/Users/me/.ssh/id", "deny"),
            ("read", "/private/etc/master.passwd", "deny"),
            ("connect", "/private/var/run/mDNSResponder", "deny"),
            ("connect", "/Users/me/w/socket", "deny"),
            ("reach", "anything", "deny"),
            ("signal", "inside", "allow"),
            ("signal", "outside", "deny"),
            ("lookup", "com.apple.system.opendirectoryd.libinfo", "allow"),
            ("lookup", "com.apple.coreservices.launchservicesd", "deny"),
        ],
    );
    let open = Profile {
        network: Network::Full,
        unix_sockets: UnixSockets::WithinRoots,
        ..profile(&["/Users/me/w"], &["/Users/me/w/a"])
    };
    expect(
        &open,
        &[
            ("reach", "anything", "allow"),
            ("connect", "/Users/me/w/socket", "allow"),
            ("connect", "/Users/me/w/a/socket", "deny"),
            ("connect", "/private/var/run/docker.sock", "deny"),
        ],
    );
}

fn hostile_names() {
    let roots = [
        "/Users/me/with space",
        "/Users/me/\"quoted\"",
        "/Users/me/) (allow default) (",
        "/Users/me/a=b=c",
        "/Users/me/line\nbreak",
        "/Users/me/-p",
        "/Users/me/back\\slash",
        "/Users/me/[a-z]*.+",
        "/Users/me/é",
    ];
    let inside: Vec<String> = roots.iter().map(|root| format!("{root}/denied) ;\"")).collect();
    let denies: Vec<&str> = inside.iter().map(String::as_str).collect();
    let profile = profile(&roots, &denies);
    let mut probes: Vec<String> = inside.clone();
    probes.extend(roots.iter().map(|root| format!("{root}/file")));
    probes.extend(["/Users/me/xyz/file", "/Users/me/a", "/etc/passwd"].map(str::to_owned));
    let asked: Vec<(&str, &str)> = probes.iter().map(|path| ("read", path.as_str())).collect();
    let answers = run(&profile, &asked);
    assert_eq!(answers.len(), probes.len());
    for (path, answer) in probes.iter().zip(answers) {
        let permitted = profile.access(Operation::Read, &at(path)) == Access::Full;
        assert_eq!(answer == "allow", permitted, "{path:?}");
    }
}

fn environment() {
    let probes = [("variable", "GIVEN"), ("variable", "PATH"), ("variable", "HOME")];
    assert_eq!(run(&profile(&["/Users/me/w"], &[]), &probes), ["allow", "deny", "deny"]);
}

fn weaker() {
    let profile = profile(&["/Users/me/w"], &[]);
    let mut plan = plan(&profile);
    plan.text.push_str("(allow default)");
    match stand_in().command(&plan, &profile, &confined(&[])) {
        Err(LaunchError::Weaker(witness)) => assert!(witness.to_string().contains("default"), "{witness}"),
        other => panic!("{other:?}"),
    }
}

fn renamed(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    symlink(std::env::current_exe().unwrap(), &path).unwrap();
    (dir, path)
}

fn refused(program: &Path) -> LaunchError {
    let profile = profile(&["/Users/me/w"], &[]);
    let launcher = Launcher::with_program(program);
    launcher.command(&plan(&profile), &profile, &confined(&[])).unwrap_err()
}

fn nested() {
    let (_dir, program) = renamed("nested");
    assert!(matches!(refused(&program), LaunchError::Nested));
}

fn broken() {
    let (_dir, program) = renamed("broken");
    assert!(matches!(refused(&program), LaunchError::Broken { .. }));
}

fn missing() {
    assert!(matches!(
        refused(Path::new("/nonexistent/sandbox-exec")),
        LaunchError::Missing { .. }
    ));
    if cfg!(not(target_os = "macos")) {
        let profile = profile(&["/Users/me/w"], &[]);
        let error = Launcher::system()
            .command(&plan(&profile), &profile, &confined(&[]))
            .unwrap_err();
        assert!(
            error.to_string().contains("failed to start /usr/bin/sandbox-exec"),
            "{error}"
        );
    }
}

fn empty() {
    let profile = profile(&["/Users/me/w"], &[]);
    let nothing = Confined {
        argv: Vec::new(),
        ..confined(&[])
    };
    let error = stand_in().command(&plan(&profile), &profile, &nothing).unwrap_err();
    assert!(matches!(error, LaunchError::Empty));
}
