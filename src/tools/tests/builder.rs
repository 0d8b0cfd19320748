//! Sessions whose policy comes from code: the same parser, the same policy, the same refusals as a file's.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::super::function::FunctionTool;
use super::super::session::Session;
use super::super::session_builder::SessionBuilder;
use super::super::session_error::SessionError;
use super::*;
use crate::approval::ProgramApprover;
use crate::policy::{AbsPath, Access, Operation};
use crate::profile::FileReach as _;

/// A session to be, in a directory with `notes` and `cache`.
fn world() -> (tempfile::TempDir, SessionBuilder) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["notes", "cache"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    crate::confine::assume_initialized();
    let builder = Session::builder().directory(folder.path());
    (folder, builder.set("sandbox.backend", "landlock"))
}

fn error(builder: SessionBuilder) -> String {
    builder.open().unwrap_err().to_string()
}

fn names(session: &Session) -> Vec<String> {
    session.tools().list().into_iter().map(|tool| tool.name).collect()
}

/// What a call comes to, without an approver.
fn called(session: &Session, tool: &str, args: Value) -> String {
    match run(session.tools().call(tool, args)) {
        Ok(output) => output.text,
        Err(error) => error.to_string(),
    }
}

#[test]
fn settings_are_in_force_as_the_same_lines_of_a_file_are() {
    let (code, builder) = world();
    let by_code = builder
        .set("extends", json!(["system"]))
        .root(
            "notes",
            json!({"root": "./notes", "mode": "rw", "write_approval": false}),
        )
        .rule(json!({"pattern": "git status", "approval": "none"}))
        .rule(json!({"pattern": "rm", "allowed": false, "reason": "delete with delete_file"}))
        .tool("delete_file", Demand::Deny)
        .mode(Mode::Strict)
        .open()
        .unwrap();
    let (folder, builder) = world();
    let text = "extends: [system]
sandbox: {paths: {notes: {root: ./notes, mode: rw, write_approval: false}}}
shell:
  rules:
    - {pattern: git status, approval: none}
    - {pattern: rm, allowed: false, reason: delete with delete_file}
tools: {delete_file: {approval: deny}}
approval: {mode: strict}
";
    let file = folder.path().join("agent.yaml");
    fs::write(&file, text).unwrap();
    let by_file = builder.config_file(&file).open().unwrap();
    let (_folder, builder) = world();
    let by_text = builder.config_text(text).open().unwrap();
    for session in [&by_file, &by_text] {
        assert_eq!(names(session), names(&by_code));
        assert_eq!(session.mode(), by_code.mode());
        for line in ["rm x", "git commit"] {
            let of = |session| called(session, "shell", json!({"command": line}));
            // But for the line that says so.
            let place = |text: String| {
                let names = [file.to_str().unwrap(), "the config text", "Session::builder()"];
                let text = names.iter().fold(text, |text, name| text.replace(name, "config"));
                text.replace(|c: char| c.is_ascii_digit(), "")
            };
            assert_eq!(place(of(session)), place(of(&by_code)));
        }
    }
    assert!(names(&by_code).contains(&"write_file".to_owned()));
    assert!(!names(&by_code).contains(&"delete_file".to_owned()));
    assert!(called(&by_code, "shell", json!({"command": "rm x"})).contains("delete with delete_file"));
    let envelope = |session: &Session| run(session.shared().executor.lock()).session().envelope.clone();
    let here = |folder: &tempfile::TempDir| fs::canonicalize(folder.path().join("notes")).unwrap();
    let writes = |session: &Session, folder: &tempfile::TempDir| {
        let path = AbsPath::new(here(folder).join("x")).unwrap();
        envelope(session).access(Operation::Write, &path)
    };
    assert_eq!(writes(&by_code, &code), Access::Full);
    assert_eq!(writes(&by_file, &folder), Access::Full);
    assert_eq!(envelope(&by_code).grants.len(), envelope(&by_file).grants.len());
}

#[test]
fn a_setting_wins_over_the_text_and_its_rules_come_first() {
    let text = "extends: [system]\ntools: {shell: {approval: deny}}\napproval: {mode: approve_all}\nshell: {rules: [{pattern: ls, allowed: true}]}\n";
    let (_folder, builder) = world();
    let alone = builder.config_text(text).open().unwrap();
    let (_folder, builder) = world();
    let changed = builder
        .config_text(text)
        .tool("shell", Demand::Required)
        .mode(Mode::Strict)
        .rule(json!({"pattern": "ls", "approval": "required", "description": "look around"}))
        .open()
        .unwrap();
    assert_eq!((alone.mode(), changed.mode()), (Mode::ApproveAll, Mode::Strict));
    assert!(!names(&alone).contains(&"shell".to_owned()));
    assert!(names(&changed).contains(&"shell".to_owned()));
}

#[test]
fn roots_of_code_and_of_a_file_stand_beside_each_other() {
    let (folder, builder) = world();
    let file = folder.path().join("agent.yaml");
    fs::write(
        &file,
        "sandbox: {paths: {notes: {root: ./notes, mode: rw}}}\nextends: [system]\n",
    )
    .unwrap();
    let root = json!({"root": "./cache", "mode": "ro"});
    let session = builder.config_file(&file).root("cache", root).open().unwrap();
    let roots = run(session.shared().executor.lock()).session().policy.roots.clone();
    let names: Vec<&str> = roots.iter().map(|root| root.name.as_str()).collect();
    assert_eq!(names, ["cache", "notes"]);
}

#[test]
fn an_error_in_a_setting_quotes_the_call() {
    for (wrong, call, what) in [
        (
            world().1.root("notes", json!({"root": "./notes", "mod": "rw"})),
            "root(\"notes\", …)",
            "unknown key `mod`",
        ),
        (
            world().1.rule(json!({"pattern": "ls", "approval": "never"})),
            "rule(…)",
            "never",
        ),
        (
            world().1.set("shell.netwrk", true),
            "set(\"shell.netwrk\", …)",
            "did you mean `network`?",
        ),
        (
            world().1.rule(json!({"pattern": "git status", "match": ["ls"]})),
            "rule(…)",
            "does not match its own example",
        ),
        (
            world().1.tool("delet_file", Demand::None),
            "Demand::None",
            "did you mean `delete_file`?",
        ),
    ] {
        let error = error(wrong);
        assert!(error.contains(call) && error.contains(what), "{error}");
        assert!(error.contains("Session::builder()"), "{error}");
    }
}

#[test]
fn the_audit_log_tells_other_settings_from_these_by_their_hash() {
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("audit.jsonl");
    let logged = |approval: Demand| {
        let (_folder, builder) = world();
        let builder = builder.set("audit.log", log.to_str().unwrap());
        let session = builder.tool("shell", approval).open().unwrap();
        run(session.begin_record()).unwrap();
        let text = fs::read_to_string(&log).unwrap();
        let (_, own) = text.rsplit_once("Session::builder()").unwrap();
        let (_, hash) = own.split_once("sha256").unwrap();
        hash.chars()
            .filter(char::is_ascii_hexdigit)
            .take(64)
            .collect::<String>()
    };
    assert_eq!(logged(Demand::Required), logged(Demand::Required));
    assert_ne!(logged(Demand::Required), logged(Demand::None));
}

#[test]
fn a_key_or_a_policy_that_is_given_twice_is_an_error() {
    let twice = error(world().1.mode(Mode::Strict).set("approval.mode", "approve_all"));
    assert!(twice.contains("`mode` is set twice"), "{twice}");
    let within = error(world().1.set("approval", json!({"mode": "strict"})).mode(Mode::Strict));
    assert!(within.contains("`approval` is set twice"), "{within}");
    let policies = error(world().1.preset("workspace-write").config_text("extends: []"));
    assert!(policies.contains("a second policy"), "{policies}");
    world().1.mode(Mode::Strict).open().unwrap();
}

#[test]
fn values_cannot_become_other_lines() {
    let (_folder, builder) = world();
    let session = builder
        .rule(json!({"pattern": "ls", "description": "a\n    - {pattern: rm, approval: none} # '\"{}"}))
        .open()
        .unwrap();
    let rules = run(session.shared().executor.lock()).session().policy.rules.clone();
    let patterns: Vec<_> = rules.iter().map(|rule| rule.pattern.join(" ")).collect();
    assert_eq!(patterns, ["ls"]);
}

#[test]
fn a_root_of_code_that_goes_through_a_link_of_the_directory_is_refused() {
    let (folder, builder) = world();
    symlink("notes", folder.path().join("link")).unwrap();
    let refused = error(builder.root("a", json!({"root": "./link", "mode": "rw"})));
    assert!(refused.contains("goes through the symlink"), "{refused}");
    let (_folder, builder) = world();
    builder
        .root("a", json!({"root": "./notes", "mode": "rw"}))
        .open()
        .unwrap();
}

#[test]
fn a_ceiling_bounds_what_code_grants() {
    let (folder, builder) = world();
    let ceiling = folder.path().join("ceiling.yaml");
    fs::write(
        &ceiling,
        "extends: [system]\nsandbox: {paths: {notes: {root: ./notes, mode: ro}}}\n",
    )
    .unwrap();
    let notes = json!({"root": "./notes", "mode": "rw"});
    let free = names(&builder.root("notes", notes.clone()).open().unwrap());
    assert!(free.contains(&"write_file".to_owned()));
    let builder = Session::builder()
        .directory(folder.path())
        .set("sandbox.backend", "landlock");
    let bounded = builder.root("notes", notes).ceiling(&ceiling).open().unwrap();
    assert!(!names(&bounded).contains(&"write_file".to_owned()));
    assert!(names(&bounded).contains(&"read_file".to_owned()));
    let missing = Session::builder()
        .directory(folder.path())
        .ceiling("/nonexistent/ceiling.yaml");
    assert!(matches!(missing.open(), Err(SessionError::Config(_))));
}

#[test]
fn a_preset_takes_settings_and_a_workspace() {
    let (_folder, builder) = world();
    let session = builder
        .preset("workspace-write")
        .tool("shell", Demand::Deny)
        .open()
        .unwrap();
    let names = names(&session);
    assert!(names.contains(&"write_file".to_owned()) && !names.contains(&"shell".to_owned()));
    let (_folder, builder) = world();
    let unknown = error(builder.preset("workspace-writ"));
    assert!(unknown.contains("did you mean `workspace-write`?"), "{unknown}");
}

#[test]
fn without_a_policy_nothing_of_the_directory_is_reachable() {
    let (_folder, builder) = world();
    let session = builder.open().unwrap();
    assert_eq!(names(&session), ["shell"]);
    let missing = Session::builder().directory("/nonexistent");
    assert!(matches!(missing.open(), Err(SessionError::Directory { .. })));
}

#[test]
fn without_an_approver_every_question_is_denied_with_the_call_that_takes_one() {
    let (_folder, builder) = world();
    let session = builder.open().unwrap();
    let function = FunctionTool::new("f", "", json!({}), |_| async { Ok(json!("done")) });
    let denied = run(session.tools().add(Box::new(function)).call("f", json!({})));
    let denied = denied.unwrap_err().to_string();
    assert!(denied.contains("`.approver(…)`"), "{denied}");
}

#[test]
fn a_program_that_commands_may_write_cannot_answer_for_the_user() {
    let program = |directory: &Path| {
        let path = directory.join("approve");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        ProgramApprover::new(&path).unwrap()
    };
    let root = json!({"root": "./notes", "mode": "rw"});
    let (folder, builder) = world();
    let within = builder.root("notes", root.clone());
    let refused = error(within.approver(program(&folder.path().join("notes"))));
    assert!(refused.contains("they could approve themselves"), "{refused}");
    let (folder, builder) = world();
    let beside = builder.root("notes", root);
    beside.approver(program(&folder.path().join("cache"))).open().unwrap();
}
