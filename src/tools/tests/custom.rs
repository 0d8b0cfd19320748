//! The arguments of a custom tool: each of its type, all of them, and none an option that was not meant.

use std::fs;

use super::super::session::Session;
use super::*;

/// What comes of assessing a call of a tool with one argument of each type but a path.
fn assessed(args: Value) -> Result<Assessed, ToolError> {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stockade.yaml");
    let text = r#"
extends: [system]
sandbox: {backend: landlock, paths: {here: {root: .}}}
custom_tools:
  say:
    description: Say something
    command: [echo, "{text}", "--level={level}", "{count}", "{loud}", "--", "{rest}"]
    args:
      text: {type: string}
      level: {type: choice, choices: [low, high]}
      count: {type: integer}
      loud: {type: boolean}
      rest: {type: string}
    approval: none
"#;
    fs::write(&config, text).unwrap();
    let (approver, _) = saying(false, Remember::None);
    crate::confine::assume_initialized();
    let session = Session::builder()
        .config_file(&config)
        .directory(folder.path())
        .approver(approver)
        .open()
        .unwrap();
    let mut tools = session.bare_tools();
    let say = tools.iter_mut().find(|tool| tool.name() == "say").unwrap();
    run(say.assess(&ApprovalContext::new("say", args)))
}

fn fitting() -> Value {
    json!({"text": "a", "level": "low", "count": 1, "loud": true, "rest": "b"})
}

fn with(name: &str, value: Value) -> Value {
    let mut args = fitting();
    args[name] = value;
    args
}

#[test]
fn arguments_that_fit_are_taken() {
    for args in [
        fitting(),
        with("text", json!("{rest} {text} $(id) -x")),
        with("text", json!("naïve \u{202e}")),
        with("level", json!("high")),
        with("rest", json!("-n --anything")),
    ] {
        let taken = assessed(args.clone());
        assert!(
            matches!(&taken, Ok(assessed) if matches!(assessed.assessment, Assessment::PreApproved(_))),
            "{args}: {taken:?}"
        );
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_named() {
    let mut missing = fitting();
    missing.as_object_mut().unwrap().remove("loud");
    for (args, named) in [
        (missing, "`loud` is missing"),
        (with("more", json!(1)), "unknown argument `more`"),
        (with("mo\u{1b}re", json!(1)), "unknown argument"),
        (with("text", json!(1)), "`text` must be text"),
        (with("text", json!("a\0b")), "without NUL bytes"),
        (with("text", Value::Null), "`text` must be text"),
        (with("level", json!("middle")), "one of low, high"),
        (with("level", json!(["low"])), "one of low, high"),
        (with("count", json!("1")), "a whole number"),
        (with("count", json!(1.5)), "a whole number"),
        (with("loud", json!("true")), "true or false"),
        (json!(["a"]), "must be an object"),
        (json!("a"), "must be an object"),
        (Value::Null, "is missing"),
    ] {
        let refused = assessed(args.clone());
        let Err(ToolError::Arguments { tool, why }) = refused else {
            panic!("{args}: {refused:?}");
        };
        assert_eq!(tool, "say");
        assert!(why.contains(named) && !why.contains('\u{1b}'), "{args}: {why}");
    }
}

#[test]
fn an_argument_becomes_no_option_where_the_program_would_take_it_for_one() {
    for args in [
        with("text", json!("-n")),
        with("text", json!("--")),
        with("text", json!("-")),
        with("count", json!(-1)),
    ] {
        let refused = assessed(args.clone());
        assert!(
            matches!(refused, Err(ToolError::Arguments { .. })),
            "{args}: {refused:?}"
        );
    }
}
