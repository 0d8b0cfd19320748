use super::*;
use crate::policy::{Place, Rights, Scope, UnixSockets};

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
    Change::Host(Place::parse(place).unwrap())
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
      network: {allow: ["example.org:443", "*.example.net"]}   # nothing
    "#);
}
