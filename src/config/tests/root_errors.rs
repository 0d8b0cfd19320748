//! Each way a root or a deny can be wrong, as a person sees it.

use super::Fixture;
use insta::assert_snapshot;

#[test]
fn a_duplicate_root_name_is_an_error() {
    assert_snapshot!(Fixture::new().error("sandbox:\n  paths:\n    a: {root: .}\n    a: {root: /usr}\n"), @r#"
    error: duplicate key `a`
     --> /dir/project/stockade.yaml:4:5
      |
    4 |     a: {root: /usr}
      |     ^ stands a second time
      |
      = help: each key may stand once: merge the two, or drop one
    "#);
}

#[test]
fn a_missing_root_is_an_error_unless_it_is_to_be_made() {
    let world = Fixture::new();
    assert_snapshot!(world.error("sandbox:\n  paths:\n    notes: {root: ./notes}\n"), @r#"
    error: root `notes` does not exist: /dir/project/notes
     --> /dir/project/stockade.yaml:3:19
      |
    3 |     notes: {root: ./notes}
      |                   ^^^^^^^ nothing there
      |
      = help: make it, or add `create: true` (make it at start) or `optional: true` (do without it)
    "#);
    let loaded = world.ok("sandbox: {paths: {notes: {root: ./notes, create: true}}}\n");
    assert_eq!(loaded.made, ["notes"]);
    assert!(world.project().join("notes").is_dir());
    assert!(
        world
            .ok("sandbox: {paths: {gone: {root: ./gone, optional: true}}}\n")
            .policy
            .roots
            .is_empty()
    );
}

#[test]
fn nothing_is_made_for_a_config_that_is_wrong_elsewhere() {
    let world = Fixture::new();
    world.error("sandbox: {paths: {notes: {root: ./notes, create: true}}}\nshell: {network: maybe}\n");
    assert!(!world.project().join("notes").exists());
}

#[test]
fn two_roots_with_one_path_are_an_error() {
    let world = Fixture::new();
    world.mkdir("a");
    assert_snapshot!(world.error("sandbox:\n  paths:\n    one: {root: a}\n    two: {root: ./a/../a/, mode: rw}\n"), @r#"
    error: two roots lead to /dir/project/a
     --> /dir/project/stockade.yaml:4:17
      |
    3 |     one: {root: a}
      |                 - `one` leads there
    4 |     two: {root: ./a/../a/, mode: rw}
      |                 ^^^^^^^^^ `two` is the same place
      |
      = help: one place has one root: merge them
    "#);
}

#[test]
fn a_grant_under_a_deny_is_an_error() {
    let world = Fixture::new();
    world.mkdir("a/secret/b");
    assert_snapshot!(world.error("sandbox:\n  paths:\n    outer: {root: a, deny: [secret/]}\n    inner: {root: a/secret/b}\n"), @r#"
    error: root `inner` lies under a deny: a deny always wins
     --> /dir/project/stockade.yaml:4:19
      |
    3 |     outer: {root: a, deny: [secret/]}
      |                             ------- denies /dir/project/a/secret
    4 |     inner: {root: a/secret/b}
      |                   ^^^^^^^^^^ grants read on /dir/project/a/secret/b
      |
      = help: drop the root, or narrow the deny
    "#);
    let error = world.error("sandbox: {paths: {outer: {root: a, deny: [secret]}, inner: {root: a/secret/b}}}\n");
    assert!(error.contains("lies under a deny"), "{error}");
    world.ok("sandbox: {paths: {outer: {root: a, deny: [other/]}, inner: {root: a/secret/b}}}\n");
}

#[test]
fn a_deny_outside_its_root_or_with_a_wildcard_inside_is_an_error() {
    let world = Fixture::new();
    world.mkdir("a");
    assert_snapshot!(world.error("sandbox:\n  paths:\n    a: {root: a, deny: [../b]}\n"), @r#"
    error: `../b` leads to /dir/project/b, outside the root /dir/project/a
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     a: {root: a, deny: [../b]}
      |                         ^^^^ denies nothing here
      |
      = help: a deny takes from its own root; move it to the root it is about
    "#);
    assert_snapshot!(world.error("sandbox:\n  paths:\n    a: {root: a, deny: [\"id_*\"]}\n"), @r#"
    error: `id_*` is not a deny
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     a: {root: a, deny: ["id_*"]}
      |                         ^^^^^^ not a name
      |
      = help: without a slash an entry is a `name` or a `*suffix` at any depth; with one it is a path, such as `secrets/` or `./secrets`
    "#);
    for wrong in ["*", "**", "a*b", "x/*.pem", "a?", "[ab]", ".", "..", "~"] {
        let error = world.error(format!("sandbox: {{paths: {{a: {{root: a, deny: ['{wrong}']}}}}}}\n"));
        assert!(error.contains("is not a deny"), "{wrong}: {error}");
    }
}

#[test]
fn a_symlink_beside_the_config_is_an_error() {
    let world = Fixture::new();
    world.mkdir("real");
    world.link("real", "door");
    assert_snapshot!(world.error("sandbox:\n  paths:\n    a: {root: door}\n"), @r#"
    error: `door` goes through the symlink /dir/project/door
     --> /dir/project/stockade.yaml:3:15
      |
    3 |     a: {root: door}
      |               ^^^^ leads where the link says today
      |
      = help: the link lies beside this config, where whoever writes the project could re-point it: write the path it leads to
    "#);
    world.ok("sandbox: {paths: {a: {root: real}}}\n");
}

#[test]
fn a_symlink_in_a_deny_is_an_error() {
    let world = Fixture::new();
    world.mkdir("a/real");
    world.link("real", "a/door");
    assert_snapshot!(world.error("sandbox:\n  paths:\n    a: {root: a, deny: [door/x]}\n"), @r#"
    error: `door/x` goes through the symlink /dir/project/a/door
     --> /dir/project/stockade.yaml:3:25
      |
    3 |     a: {root: a, deny: [door/x]}
      |                         ^^^^^^ leads where the link says today
      |
      = help: the link lies beside this config, where whoever writes the project could re-point it: write the path it leads to
    "#);
    world.ok("sandbox: {paths: {a: {root: a, deny: [real/x]}}}\n");
}

#[test]
fn a_symlink_inside_a_writable_root_is_an_error_wherever_the_way_begins() {
    let world = Fixture::new();
    let (home, project) = (world.home(), world.project());
    std::fs::create_dir_all(home.join("rw/real")).unwrap();
    std::os::unix::fs::symlink("real", home.join("rw/door")).unwrap();
    // Outside, and it leads through the link inside.
    std::os::unix::fs::symlink(home.join("rw/door"), home.join("outer")).unwrap();
    let text = "sandbox: {paths: {rw: {root: ~/rw, mode: rw}, a: {root: ~/outer, mode: ro}}}\n";
    assert_snapshot!(world.error(text), @r#"
    error: `~/outer` goes through the symlink /dir/home/rw/door
     --> /dir/project/stockade.yaml:1:57
      |
    1 | sandbox: {paths: {rw: {root: ~/rw, mode: rw}, a: {root: ~/outer, mode: ro}}}
      |                                                         ^^^^^^^ leads where the link says today
      |
      = help: the link lies inside the writable root `rw`, where the agent could re-point it: write the path it leads to
    "#);
    // Without the writable root nobody can re-point it.
    world.ok("sandbox: {paths: {a: {root: ~/outer, mode: ro}}}\n");
    assert!(project.exists());
}

#[test]
fn an_approval_given_twice_is_an_error() {
    let world = Fixture::new();
    assert_snapshot!(world.error("sandbox:\n  paths:\n    a: {root: ., write_approval: true, approval: {write: none}}\n"), @r#"
    error: the write approval is given twice
     --> /dir/project/stockade.yaml:3:34
      |
    3 |     a: {root: ., write_approval: true, approval: {write: none}}
      |                                  ^^^^ the short form     ---- the long form
      |
      = help: keep one of them
    "#);
    assert_snapshot!(world.error("sandbox:\n  paths:\n    a: {root: ., approval: {write: never}}\n"), @r#"
    error: unknown value `never`
     --> /dir/project/stockade.yaml:3:36
      |
    3 |     a: {root: ., approval: {write: never}}
      |                                    ^^^^^ not a value here
      |
      = help: known here: required, none, once_per_session, deny
    "#);
}

#[test]
fn a_root_that_holds_the_trust_store_is_an_error() {
    assert_snapshot!(Fixture::new().error("sandbox:\n  paths:\n    all: {root: ~/, mode: rw}\n"), @r#"
    error: root `all` would make stockade's own state writable: /dir/home/.local/state/stockade
     --> /dir/project/stockade.yaml:3:17
      |
    3 |     all: {root: ~/, mode: rw}
      |                 ^^ the agent could write its own trust
      |
      = help: use `mode: ro`, or name narrower roots
    "#);
    Fixture::new().ok("sandbox: {paths: {all: {root: ~/, mode: ro}}}\n");
}

#[test]
fn a_device_or_fifo_is_no_root() {
    assert_snapshot!(Fixture::new().error("sandbox:\n  paths:\n    dev: {root: /dev/null}\n"), @r#"
    error: root `dev`: /dev/null is neither a file nor a directory
     --> /dir/project/stockade.yaml:3:17
      |
    3 |     dev: {root: /dev/null}
      |                 ^^^^^^^^^ cannot be a root
    "#);
}

#[test]
fn a_variable_in_a_config_is_an_error() {
    assert_snapshot!(Fixture::new().error("sandbox:\n  paths:\n    a: {root: $HOME/x}\n"), @r#"
    error: root `a`: `$HOME/x`: variables are not expanded here
     --> /dir/project/stockade.yaml:3:15
      |
    3 |     a: {root: $HOME/x}
      |               ^^^^^^^ leads nowhere
      |
      = help: write the path out, or begin it with `~/` or `$CWD/`; `./$x` means a file of that name
    "#);
}
