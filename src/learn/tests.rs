//! The law of an edit: it loads, and its policy is the old one with what was accepted.

use std::fs;

use proptest::prelude::*;

use super::remedy::{Remedy, remedy};
use super::*;
use crate::config::Context;
use crate::config::amend::{Change, NewRoot, Widened, Writing, amend, load_amended};
use crate::policy::{AbsPath, Destination, Rights, Scope};
use crate::tools::explain::{Blocked, Layer, Permitted, Subject, Wanted};

/// Texts in every form that people write, with comments in every place where one may stand.
const TEXTS: &[&str] = &[
    "extends: [system]\nsandbox:\n  paths:\n    a: {root: ./a, mode: ro}\nshell:\n  default: {allowed: true, approval: none}\n",
    "# top\nextends:\n- system # list\n\nsandbox: # here\n    paths:\n        a: # name\n            root: ./a\n            mode: ro # only\n            # end of a\n    # end of paths\n\n# end\n",
    "{extends: [system], sandbox: {paths: {a: {root: ./a}}}}",
    "extends: [system]\nshell: {network: false} # off\nsandbox: {paths: {\n  a: {root: ./a, execute: false}, # one\n  }\n}\n",
    "extends: [system]\nshell:\n  network:\n    allow:\n    - example.org:443 # one\n    # and no more\n  unix_sockets: none\nsandbox:\n  paths:\n    a:\n      root: \"./a\"\n      deny:\n      - x\n      - 'it''s'\n",
    "extends: [system]\r\nsandbox:\r\n  paths:\r\n    a: {root: ./a, mode: ro} # dos\r\n  base:\r\n    list: []\r\n",
    "---\nextends: [system]\nsandbox:\n  base: {list: [/opt]}\n  paths:\n    a: {\"root\": ./a, 'mode': \"ro\"}\n    b: {root: ./b, mode: rw, write_approval: true}",
];

const NAMES: &[&str] = &[
    "b",
    "c d",
    "e: {root: .}",
    "f\"g",
    "h#i",
    "j\nk",
    "l'm",
    "*n",
    "true",
    "0x1",
    "~",
    "$HOME",
    "ü\u{202e}",
    "-",
];

fn context() -> Context {
    Context::host()
}

fn change(kind: u8, name: &str, dir: &AbsPath, rights: u8) -> Change {
    let rights = match rights % 4 {
        0 => Rights::READ,
        1 => Rights::READ | Rights::WRITE,
        2 => Rights::READ | Rights::EXECUTE,
        _ => Rights::ALL,
    };
    let path = dir.child("c").and_then(|c| c.child(name)).unwrap();
    match kind % 4 {
        0 => Change::Root(NewRoot {
            name: "learned".to_owned(),
            path,
            scope: Scope::Tree,
            rights: rights | Rights::WRITE,
            writing: Writing::Asked,
        }),
        1 => Change::Widen(Widened {
            name: "a".to_owned(),
            path: dir.child("a").unwrap(),
            scope: Scope::Tree,
            rights: rights.without(Rights::READ) | Rights::EXECUTE,
            writing: Writing::Free,
        }),
        2 => Change::List(dir.child("d").and_then(|d| d.child(name)).unwrap()),
        _ => Change::Host(Destination::parse("*.example.net:80,443").unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn an_edit_loads_and_gives_what_was_accepted_and_nothing_else(
        text in prop::sample::select(TEXTS),
        kinds in prop::collection::vec((0_u8..4, 0_u8..4), 1..3),
        name in prop::sample::select(NAMES),
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(fs::canonicalize(temporary.path()).unwrap()).unwrap();
        fs::create_dir(temporary.path().join("a")).unwrap();
        fs::create_dir(temporary.path().join("b")).unwrap();
        fs::create_dir_all(temporary.path().join("c").join(name)).unwrap();
        fs::create_dir_all(temporary.path().join("d").join(name)).unwrap();
        let file = temporary.path().join("agent.yaml");
        let old = load_amended(&file, text, &context()).unwrap().policy;
        let mut changes: Vec<Change> = Vec::new();
        for (kind, rights) in kinds {
            let one = change(kind, name, &dir, rights);
            if !changes.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&one)) {
                changes.push(one);
            }
        }
        let amended = amend(text, &dir, &changes).unwrap();
        let new = load_amended(&file, &amended, &context()).unwrap().policy;
        let accepted: Vec<&Change> = changes.iter().collect();
        prop_assert_eq!(verify(&old, &new, &accepted), Ok(()), "{}", amended);
        // It is seen what was not accepted, and what is lost.
        for left in 0..accepted.len() {
            let mut fewer = accepted.clone();
            fewer.remove(left);
            prop_assert!(matches!(verify(&old, &new, &fewer), Err(Mismatch::More(_))), "{}", amended);
        }
        prop_assert!(matches!(verify(&new, &old, &[]), Err(Mismatch::Less(_))), "{}", amended);
        // Comments stay, and each line that is gone stands there with more in it.
        for comment in text.lines().filter_map(|line| line.split_once(" #").map(|(_, comment)| comment.trim())) {
            prop_assert!(amended.contains(comment), "{}", amended);
        }
    }
}

#[test]
fn a_setting_that_was_not_accepted_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("agent.yaml");
    let policy = |settings: &str| {
        let text = format!("sandbox:\n  paths: {{}}\n{settings}\n");
        load_amended(&file, &text, &context()).unwrap().policy
    };
    let rule = |network: &str| format!("shell:\n  rules: [{{pattern: curl, allowed: true, network: {network}}}]");
    let one = rule("{allow: ['example.org:443']}");
    for (old, new) in [
        (one.clone(), rule("{allow: ['example.org:443', 'example.net:443']}")),
        (rule("{allow: ['example.org:443', 'example.net:443']}"), one.clone()),
        (one.clone(), rule("true")),
        (
            one.clone(),
            "shell:\n  rules: [{pattern: curl, allowed: true}]".to_owned(),
        ),
        ("  backend: namespaces".to_owned(), "  backend: landlock".to_owned()),
        (
            "  protect_fallback: refuse".to_owned(),
            "  protect_fallback: undo".to_owned(),
        ),
        (
            "approval: {mode: strict}".to_owned(),
            "approval: {mode: approve_all}".to_owned(),
        ),
        (
            "tools: {write_file: {safe_paths: [a]}}".to_owned(),
            "tools: {write_file: {safe_paths: [a, b]}}".to_owned(),
        ),
        (
            "tools: {shell: {dangerous_patterns: [rm, dd]}}".to_owned(),
            "tools: {shell: {dangerous_patterns: [rm]}}".to_owned(),
        ),
    ] {
        let strayed = verify(&policy(&old), &policy(&new), &[]);
        assert!(matches!(strayed, Err(Mismatch::More(_))), "{old} -> {new}: {strayed:?}");
    }
    // Where in the file it stands says nothing.
    assert_eq!(
        verify(&policy(&one), &policy(&format!("# a line more\n{one}")), &[]),
        Ok(())
    );
}

/// The names that a config adds count, and those that it takes off do not.
#[test]
fn what_is_proposed_keeps_to_the_names_that_the_config_protects() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = AbsPath::new(fs::canonicalize(temporary.path()).unwrap()).unwrap();
    for name in [".envrc", "deploy.sh", "plain"] {
        fs::write(temporary.path().join(name), "x").unwrap();
    }
    let proposes = |protect: &str, name: &str, permitted: Permitted| {
        let text = format!("extends: [system]\nsandbox:\n  protect: {protect}\n  paths: {{}}\n");
        let file = temporary.path().join("agent.yaml");
        let policy = load_amended(&file, &text, &context()).unwrap().policy;
        let path = dir.child(name).unwrap();
        let blocked = Blocked {
            wanted: Wanted::Write,
            what: path.to_string(),
            times: 1,
            by: Layer::Landlock,
            clause: None,
            origin: None,
            change: Vec::new(),
            notes: vec!["in the notes".to_owned()],
            subject: Subject::File(path, permitted),
        };
        match remedy(&policy, &blocked) {
            Remedy::File(..) => "a root".to_owned(),
            Remedy::Nothing(why) => why,
            other => format!("{other:?}"),
        }
    };
    let changed = "{add: [deploy.sh], except: [.envrc]}";
    for (protect, name, expected) in [
        ("default", ".envrc", "it is protected: "),
        ("default", "deploy.sh", "a root"),
        (changed, ".envrc", "a root"),
        (changed, "deploy.sh", "it is protected: the config protects it"),
        (changed, "plain", "a root"),
        ("none", ".envrc", "a root"),
    ] {
        let found = proposes(protect, name, Permitted::No);
        assert!(found.starts_with(expected), "{protect} {name}: {found}");
    }
    // What the config permits, and something else holds.
    for (protect, name, expected) in [
        ("default", ".envrc", "it is protected: "),
        (changed, ".envrc", "in the notes"),
        (changed, "deploy.sh", "it is protected: "),
        ("none", ".envrc", "in the notes"),
    ] {
        assert!(
            proposes(protect, name, Permitted::Yes).starts_with(expected),
            "{protect} {name}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_root_that_was_accepted_lies_in_another_that_gives_as_much(
        old in prop::collection::btree_map(0_usize..14, 0_u8..4, 0..3),
        new in prop::collection::btree_map(0_usize..14, 0_u8..4, 1..6),
        widened in prop::collection::btree_map(0_usize..14, 0_u8..4, 0..3),
    ) {
        let temporary = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(fs::canonicalize(temporary.path()).unwrap()).unwrap();
        let mut directories: Vec<AbsPath> = vec![dir.clone()];
        for depth in 0..3 {
            let deepest: Vec<AbsPath> = directories.iter().rev().take(1 << depth).cloned().collect();
            for above in deepest {
                directories.extend(["a", "b"].map(|name| above.child(name).unwrap()));
            }
        }
        directories.remove(0);
        for directory in &directories {
            fs::create_dir_all(directory).unwrap();
        }
        let rights = |number: u8| [
            Rights::READ,
            Rights::READ | Rights::WRITE,
            Rights::READ | Rights::EXECUTE,
            Rights::ALL,
        ][usize::from(number)];
        let mode = |number: u8| ["mode: ro", "mode: rw", "mode: ro, execute: true", "mode: rw, execute: true"][usize::from(number)];
        let roots: Vec<String> = old
            .iter()
            .map(|(at, number)| format!("    old-{at}: {{root: {}, {}, write_approval: false}}\n", directories[*at], mode(*number)))
            .collect();
        let roots = roots.concat();
        let paths = if roots.is_empty() { "  paths: {}\n".to_owned() } else { format!("  paths:\n{roots}") };
        let text = format!("sandbox:\n  protect_fallback: undo\n{paths}");
        let file = temporary.path().join("agent.yaml");
        let scope = Scope::Tree;
        let mut all: Vec<Change> = Vec::new();
        for (at, number) in new.iter().filter(|(at, _)| !old.contains_key(at)) {
            let (path, rights) = (directories[*at].clone(), rights(*number));
            all.push(Change::Root(NewRoot { name: format!("new-{at}"), path, scope, rights, writing: Writing::Free }));
        }
        for (at, number) in &widened {
            let (path, more) = (directories[*at].clone(), rights(*number));
            let (name, has) = match (old.get(at), new.get(at)) {
                (Some(old), _) => (format!("old-{at}"), rights(*old)),
                (None, Some(new)) => (format!("new-{at}"), rights(*new)),
                (None, None) => continue,
            };
            let more = more.without(has);
            if !more.is_empty() {
                all.push(Change::Widen(Widened { name, path, scope, rights: more, writing: Writing::Free }));
            }
        }
        let before = load_amended(&file, &text, &context()).unwrap().policy;
        let mut kept = all.clone();
        outermost(&mut kept, &before, |change| change);
        let after = load_amended(&file, &amend(&text, &dir, &kept).unwrap(), &context()).unwrap().policy;
        for change in &all {
            let (path, rights) = match change {
                Change::Root(root) => (&root.path, root.rights),
                Change::Widen(root) => (&root.path, root.rights),
                other => unreachable!("{other:?}"),
            };
            let given = super::remedy::granted(&after, path, scope);
            prop_assert!(given.contains(rights), "{change:?}: {given} of {kept:?}");
        }
        for root in after.roots.iter().filter(|root| root.name.starts_with("new-")) {
            let mut around = root.path.ancestors().filter(|above| *above != root.path);
            let outer = around.find_map(|above| after.roots.iter().find(|outer| outer.path == above));
            let outer = outer.filter(|outer| kept.iter().any(|change| match change {
                Change::Root(root) => root.name == outer.name,
                Change::Widen(root) => root.name == outer.name,
                other => unreachable!("{other:?}"),
            }));
            prop_assert!(outer.is_none_or(|outer| !outer.rights.contains(root.rights)), "{} in {:?}", root.name, outer);
        }
        // What is left out twice is left out once.
        let mut again = kept.clone();
        outermost(&mut again, &before, |change| change);
        prop_assert_eq!(again, kept);
    }
}
