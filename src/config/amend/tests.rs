use super::*;
use crate::policy::{Destination, Rights, Scope};

fn dir() -> AbsPath {
    AbsPath::new("/work/project").unwrap()
}

fn root(name: &str, path: &str, rights: Rights) -> Change {
    Change::Root(NewRoot {
        name: name.to_owned(),
        path: AbsPath::new(path).unwrap(),
        scope: Scope::Tree,
        rights,
        writing: Writing::Free,
    })
}

fn widen(name: &str, rights: Rights) -> Change {
    Change::Widen(Widened {
        name: name.to_owned(),
        path: dir(),
        scope: Scope::Tree,
        rights,
        writing: Writing::Free,
    })
}

fn host(place: &str) -> Change {
    Change::Host(Destination::parse(place).unwrap())
}

#[track_caller]
fn edited(text: &str, changes: &[Change]) -> String {
    amend(text, &dir(), changes).unwrap()
}

#[test]
fn a_block_keeps_its_comments_and_gets_an_entry_behind_the_others() {
    let text = "# mine\nextends: [system] # base\n\nsandbox:\n  # roots\n  paths:\n    src: {root: ., mode: ro} # source\n    # about what follows\n\nshell:\n  network: false   # nothing\n";
    let rw = Rights::READ | Rights::WRITE;
    insta::assert_snapshot!(edited(text, &[root("git", "/work/project/.git", rw), widen("src", Rights::WRITE), host("example.org:443"), host("*.example.net:80,443")]), @r#"
    # mine
    extends: [system] # base

    sandbox:
      # roots
      paths:
        src: {root: ., mode: rw, write_approval: false} # source
        git: {root: ./.git, mode: rw, write_approval: false}
        # about what follows

    shell:
      network: {allow: ["example.org:443", "*.example.net:80,443"]}   # nothing
    "#);
}

#[test]
fn what_is_missing_on_the_way_is_made_and_a_mapping_on_one_line_gets_it_on_that_line() {
    let read = Rights::READ;
    assert_eq!(
        edited("extends: [system]", &[root("x", "/opt/x", read), host("a.example:443")]),
        "extends: [system]\nsandbox:\n  paths:\n    x: {root: /opt/x}\nshell:\n  network: {allow: [\"a.example:443\"]}"
    );
    assert_eq!(
        edited(
            "{extends: [system] }\n",
            &[root("x", "/opt/x", read), host("a.example:443")]
        ),
        "{extends: [system], sandbox: {paths: {x: {root: /opt/x}}}, shell: {network: {allow: [\"a.example:443\"]}} }\n"
    );
    assert_eq!(
        edited("sandbox:\n  paths: {}\n", &[root("x", "/work/project", read)]),
        "sandbox:\n  paths: {x: {root: .}}\n"
    );
}

#[test]
fn a_name_is_nothing_but_a_name() {
    for name in [
        "a: {root: /}",
        "b\"",
        "c\\",
        "d\ne: f",
        "#g",
        "h\u{202e}\u{85}",
        "i'j",
        "k, mode: rw",
        "yes",
        "~/x",
        "$HOME",
    ] {
        let change = root("x", &format!("/srv/{name}"), Rights::READ);
        let text = edited("sandbox:\n  paths: {}\n", &[change]);
        let content = content::parse(&text).unwrap();
        assert_eq!(
            content["sandbox"]["paths"]["x"]["root"],
            format!("/srv/{name}"),
            "{text}"
        );
        assert!(!text.contains('\u{202e}') && text.lines().count() == 2, "{text:?}");
        let within = root("x", &format!("/work/project/{name}"), Rights::READ);
        let content = content::parse(&edited("sandbox:\n  paths: {}\n", &[within])).unwrap();
        assert_eq!(content["sandbox"]["paths"]["x"]["root"], format!("./{name}"));
    }
}

#[test]
fn a_text_that_cannot_be_edited_for_certain_is_refused_with_what_to_write() {
    for (text, change) in [
        // Another key would change with it.
        (
            "sandbox:\n  paths:\n    a: {root: ., mode: &m ro}\n    b: {root: ./b, mode: *m}\n",
            widen("a", Rights::WRITE),
        ),
        (
            "sandbox:\n  paths:\n    a: &a {root: .}\n    b: *a\n",
            widen("b", Rights::WRITE),
        ),
        // Something else stands there.
        ("sandbox: [a]\n", root("x", "/x", Rights::READ)),
        ("sandbox:\n  paths:\n    x: {root: .}\n", root("x", "/x", Rights::READ)),
        ("sandbox:\n  paths:\n    a: {root: .}\n...\n", widen("b", Rights::WRITE)),
    ] {
        match amend(text, &dir(), std::slice::from_ref(&change)) {
            Err(AmendError::Form { what, .. }) => assert!(!what.is_empty()),
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn a_path_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let path = AbsPath::new(std::ffi::OsStr::from_bytes(b"/srv/a\xff")).unwrap();
    let refused = amend("sandbox:\n  paths: {}\n", &dir(), &[Change::List(path)]);
    assert!(matches!(refused, Err(AmendError::NotText(_))), "{refused:?}");
}

#[test]
fn a_file_is_replaced_only_while_it_is_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.yaml");
    let before = "extends: [system]\n";
    std::fs::write(&file, before).unwrap();
    let world = crate::config::tests::Fixture::new();
    let context = &world.context;
    let loaded = crate::config::examine(&file, context).unwrap();
    let original = Original::of(&loaded).unwrap().unwrap();
    original.replace("extends: [system, git]\n").unwrap();
    assert!(matches!(original.replace("x"), Err(AmendError::Changed(_))));
    assert!(matches!(Original::of(&loaded), Err(AmendError::Changed(_))));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "extends: [system, git]\n");
    assert!(matches!(create(&file, "x"), Err(AmendError::NotReplaced { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
