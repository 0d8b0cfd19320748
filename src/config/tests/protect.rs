//! `sandbox.protect` with names.

use super::Fixture;
use crate::policy::{NameChanges, NamePattern, Policy, Protect};

fn names(policy: &Policy) -> (Vec<&str>, Vec<&str>) {
    let NameChanges { add, except } = &policy.names;
    (
        add.iter().map(NamePattern::as_str).collect(),
        except.iter().map(NamePattern::as_str).collect(),
    )
}

#[test]
fn names_are_added_to_the_list_and_taken_off_it() {
    let world = Fixture::new();
    let loaded = world.ok("sandbox: {protect: {add: [deploy.sh, 'ops/**'], except: [.idea/**, .Envrc]}}\n");
    assert_eq!(
        names(&loaded.policy),
        (vec!["deploy.sh", "ops/**"], vec![".Envrc", ".idea/**"])
    );
    assert!(matches!(loaded.policy.protect, Protect::Default(_)));
}

#[test]
fn names_stand_beside_the_word_of_a_preset() {
    let world = Fixture::new();
    let loaded = world.ok("extends: [workspace-write]\nsandbox: {protect: {add: [deploy.sh]}}\n");
    assert_eq!(names(&loaded.policy).0, ["deploy.sh"]);
    assert!(matches!(loaded.policy.protect, Protect::Default(_)));
}

#[test]
fn a_ceiling_adds_names_and_gives_back_those_that_a_config_takes_off() {
    let world = Fixture::new();
    world.system("sandbox: {protect: {add: [release.sh]}}\n");
    let loaded = world.ok("extends: []\nsandbox: {protect: {add: [deploy.sh], except: [.idea/**]}}\n");
    assert_eq!(names(&loaded.policy), (vec!["deploy.sh", "release.sh"], vec![]));
    let loaded = world.ok("extends: []\nsandbox: {protect: none}\n");
    assert_eq!(names(&loaded.policy).0, ["release.sh"]);
    assert!(matches!(loaded.policy.protect, Protect::Default(_)));
    let world = Fixture::new();
    world.system("sandbox: {protect: default}\n");
    let loaded = world.ok("extends: []\nsandbox: {protect: {except: [.idea/**]}}\n");
    assert_eq!(names(&loaded.policy), (vec![], vec![]));
    assert_eq!(loaded.policy.ceilings.cuts.len(), 1);
}

#[test]
fn a_ceiling_that_says_nothing_of_names_leaves_them() {
    let world = Fixture::new();
    world.system("sandbox: {residuals: report}\n");
    let loaded = world.ok("sandbox: {protect: {except: [.idea/**]}}\n");
    assert_eq!(names(&loaded.policy).1, [".idea/**"]);
}

#[test]
fn what_is_no_pattern_or_cannot_be_taken_off_is_an_error_with_its_line() {
    for (text, line, message) in [
        (
            "sandbox:\n  protect:\n    add: [ok, '/etc/x']\n",
            3,
            "no pattern of names",
        ),
        (
            "sandbox:\n  protect:\n    add:\n      - ok\n      - '**'\n",
            5,
            "may stand once",
        ),
        ("sandbox:\n  protect:\n    add: ['../x']\n", 3, "without `.` and `..`"),
        (
            "sandbox:\n  protect:\n    except: [.git/hooks/**]\n",
            3,
            "git directories are always protected",
        ),
        (
            "sandbox:\n  protect:\n    except: [stockade.yaml]\n",
            3,
            "how the next command is confined",
        ),
        ("sandbox:\n  protect:\n    except: [deploy.sh]\n", 3, "profile show"),
        (
            "sandbox:\n  protect:\n    except: [.claude/commands/**]\n",
            3,
            "`.claude/**` is on the list",
        ),
        ("sandbox:\n  protect: defualt\n", 2, "did you mean `default`"),
        ("sandbox:\n  protect: {adds: [x]}\n", 2, "adds"),
    ] {
        let world = Fixture::new();
        let error = world.error(text);
        assert!(
            error.contains(message) && error.contains(&format!("stockade.yaml:{line}:")),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_name_that_is_added_and_taken_off_is_an_error_with_both_places() {
    for (text, line) in [
        (
            "sandbox:\n  protect:\n    add: [deploy.sh, .envrc]\n    except: [.envrc]\n",
            4,
        ),
        ("sandbox:\n  protect:\n    except: [.idea]\n    add: [.IDEA/**]\n", 3),
    ] {
        let world = Fixture::new();
        let error = world.error(text);
        assert!(
            error.contains("is to be added to the protected names, and to be taken off them")
                && error.contains(&format!("stockade.yaml:{line}:"))
                && error.contains("added here"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_ceiling_takes_no_name_off_the_list() {
    let world = Fixture::new();
    world.system("sandbox: {protect: {except: [.idea/**]}}\n");
    let error = world.error("extends: [system]\n");
    assert!(error.contains("a ceiling takes no name off the list"), "{error}");
}
