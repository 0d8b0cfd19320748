//! The library as a program that embeds it finds it. This program calls no `init`.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use stockade::{
    ApprovalContext, ApprovalDecision, ApprovalRequest, Approver, ApproverError, AsyncApprover, DecidedBy, Demand,
    FunctionTool, Mode, Override, Presentation, Session, SessionError, TerminalApprover, ToolError, ToolSet,
    ToolSetBuilder,
};

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

/// A function that counts its calls.
fn function(name: &str, calls: &Arc<AtomicUsize>) -> Box<FunctionTool> {
    let calls = Arc::clone(calls);
    let function = FunctionTool::new(name, "", json!({"type": "object"}), move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!("done")) }
    });
    let name = name.to_owned();
    Box::new(function.described_by(move |args| format!("{name} {}", args["to"])))
}

/// A set with the functions `look` and `send`, and how often they were called.
fn set(builder: ToolSetBuilder) -> (ToolSet, Arc<AtomicUsize>) {
    let (mut tools, calls) = (builder.build(), Arc::new(AtomicUsize::new(0)));
    for name in ["look", "send"] {
        tools.add(function(name, &calls));
    }
    (tools, calls)
}

/// What a call of a set with this approver comes to, and whether the function was called.
fn one(approver: impl Approver + Send + 'static) -> (String, bool) {
    let (mut tools, calls) = set(ToolSet::builder().approver(approver));
    let done = run(tools.call("send", json!({"to": "a"})));
    let text = done.map_or_else(|error| error.to_string(), |output| output.text);
    (text, calls.load(Ordering::SeqCst) == 1)
}

/// Processes whose parent this one is.
fn children() -> usize {
    let own = std::process::id().to_string();
    let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned();
        Some(parent)
    });
    stats.filter(|parent| *parent == own).count()
}

// Sessions.

#[test]
fn a_program_that_did_not_call_init_first_opens_no_session_and_is_told_which_line_to_add() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::builder().preset("workspace-write").directory(directory.path());
    let error = session.approver(TerminalApprover::new()).open().unwrap_err();
    assert!(matches!(error, SessionError::NotInitialized), "{error:?}");
    assert!(error.to_string().contains("`stockade::init();`"), "{error}");
}

#[test]
fn a_config_with_a_root_to_create_creates_nothing_before_init() {
    let directory = tempfile::tempdir().unwrap();
    let root = json!({"root": "./new", "mode": "rw", "create": true});
    let session = Session::builder().directory(directory.path()).root("new", root);
    assert!(session.open().is_err());
    assert!(!directory.path().join("new").exists());
}

// Approvers.

#[test]
fn a_closure_answers() {
    let by_name = |request: &ApprovalRequest| match request.description.as_str() {
        "send \"a\"" => ApprovalDecision::approve(),
        _ => ApprovalDecision::deny("not this one"),
    };
    assert_eq!(one(by_name), ("done".to_owned(), true));
    let never = |_: &ApprovalRequest| ApprovalDecision::deny("not now");
    assert_eq!(
        one(never),
        ("permission denied: user denied send: not now".to_owned(), false)
    );
}

#[test]
fn a_closure_that_fails_denies() {
    let fails = |_: &ApprovalRequest| Err::<ApprovalDecision, _>(ApproverError::Nobody("it is night".to_owned()));
    let (text, called) = one(fails);
    assert!(text.contains("nobody can be asked: it is night") && !called, "{text}");
    let answers = |_: &ApprovalRequest| Ok::<_, ApproverError>(ApprovalDecision::approve());
    assert!(one(answers).1);
}

#[test]
fn a_closure_that_panics_denies_this_question_and_every_later_one() {
    let (mut tools, calls) = set(ToolSet::builder().approver(|request: &ApprovalRequest| {
        assert!(request.tool_name != "send", "a bug of the program");
        ApprovalDecision::approve()
    }));
    run(async {
        tools.call("look", json!({})).await.unwrap();
        for name in ["send", "look"] {
            let error = tools.call(name, json!({})).await.unwrap_err();
            assert!(matches!(error, ToolError::Denied(_)), "{error}");
        }
    });
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn an_async_function_answers_once_it_is_done() {
    let slow = |approved: bool| {
        AsyncApprover::new(async move |request: &ApprovalRequest| {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if approved && request.tool_name == "send" {
                ApprovalDecision::approve()
            } else {
                ApprovalDecision::deny("too late")
            }
        })
    };
    assert!(one(slow(true)).1);
    let (text, called) = one(slow(false));
    assert!(text.ends_with("too late") && !called, "{text}");
}

#[test]
fn an_async_function_that_fails_or_panics_denies() {
    let fails = AsyncApprover::new(async |_: &ApprovalRequest| {
        Err::<ApprovalDecision, _>(ApproverError::NoDecision("the line is dead".to_owned()))
    });
    let (text, called) = one(fails);
    assert!(text.contains("the line is dead") && !called, "{text}");
    let panics = AsyncApprover::new(async |request: &ApprovalRequest| {
        assert!(!request.required, "a bug of the program");
        ApprovalDecision::approve()
    });
    assert!(!one(panics).1);
}

#[test]
fn a_closure_can_see_what_a_person_would_be_shown() {
    let reads = |request: &ApprovalRequest| match request.presentation.build() {
        Ok(shown) if format!("{shown:?}").contains("\"a\"") => ApprovalDecision::approve(),
        Ok(_) | Err(_) => ApprovalDecision::deny("unreadable"),
    };
    assert!(one(reads).1);
}

// Approval alone.

#[test]
fn approval_alone_asks_without_init_and_starts_no_process() {
    let before = children();
    let (text, called) = one(|_: &ApprovalRequest| match children() {
        0 => ApprovalDecision::approve(),
        some => ApprovalDecision::deny(format!("{some} children")),
    });
    assert_eq!((before, text.as_str(), called), (0, "done", true));
    let (text, called) = one(|_: &ApprovalRequest| ApprovalDecision::deny("no"));
    assert_eq!((children(), text.ends_with("no"), called), (0, true, false));
}

#[test]
fn without_an_approver_a_function_is_denied_with_the_calls_that_would_change_that() {
    let (mut tools, calls) = set(ToolSet::builder().tool("look", Demand::None));
    let error = run(tools.call("send", json!({}))).unwrap_err().to_string();
    assert!(
        error.contains("`.approver(…)`") && error.contains("`.tool(\"send\", Demand::None)`"),
        "{error}"
    );
    assert!(!error.contains("config"), "{error}");
    run(tools.call("look", json!({}))).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_set_alone_has_the_modes_of_a_session() {
    for (mode, runs) in [
        (Mode::Strict, false),
        (Mode::ApproveAll, true),
        (Mode::Interactive, false),
    ] {
        let (mut tools, calls) = set(ToolSet::builder().mode(mode));
        assert_eq!(run(tools.call("send", json!({}))).is_ok(), runs, "{mode}");
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(runs));
    }
}

#[test]
fn a_denial_in_strict_mode_says_what_would_allow_the_call() {
    let (mut tools, _) = set(ToolSet::builder().mode(Mode::Strict).tool("look", Demand::None));
    let error = run(tools.call("send", json!({}))).unwrap_err().to_string();
    assert!(
        error.contains("strict mode denied send") && error.contains("`.tool(\"send\", Demand::None)`"),
        "{error}"
    );
    run(tools.call("look", json!({}))).unwrap();
}

#[test]
fn what_the_program_forbids_stays_forbidden_in_every_mode_and_names_the_line() {
    let (mut tools, calls) = set(ToolSet::builder().mode(Mode::ApproveAll).tool("send", Demand::Deny));
    let error = run(tools.call("send", json!({}))).unwrap_err().to_string();
    assert!(error.contains("`.tool(\"send\", …)`"), "{error}");
    run(tools.call("look", json!({}))).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_hook_of_a_set_alone_may_tighten() {
    let hook = Arc::new(
        |call: &ApprovalContext, _: &stockade::Assessment| match call.args["to"].as_str() {
            Some("boss") => Override::Block("not the boss".to_owned()),
            _ => Override::PreApprove,
        },
    );
    let (mut tools, calls) = set(ToolSet::builder().overridden_by(hook));
    run(tools.call("send", json!({"to": "team"}))).unwrap();
    let error = run(tools.call("send", json!({"to": "boss"}))).unwrap_err();
    assert!(matches!(error, ToolError::Blocked(_)), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

type Seen = Arc<Mutex<Vec<(Option<String>, String)>>>;

/// An approver that approves for the session, and the callers and descriptions that it saw.
fn remembering() -> (impl Approver + Send + 'static, Seen) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let approver = {
        let seen = Arc::clone(&seen);
        move |request: &ApprovalRequest| {
            let asked = (request.caller.clone(), request.description.clone());
            seen.lock().unwrap().push(asked);
            ApprovalDecision::approve().for_session()
        }
    };
    (approver, seen)
}

#[test]
fn a_yes_for_the_session_is_listed_in_the_words_of_the_call_and_can_be_revoked() {
    let (approver, seen) = remembering();
    let (mut tools, calls) = set(ToolSet::builder().approver(approver));
    let args = || json!({"to": "team"});
    run(async {
        tools.call("send", args()).await.unwrap();
        tools.call("send", args()).await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), 1);
        let approvals = tools.approvals();
        assert_eq!(
            approvals.iter().map(|one| one.description.as_str()).collect::<Vec<_>>(),
            ["send \"team\""]
        );
        assert!(tools.revoke(approvals[0].id).is_some());
        assert!(tools.approvals().is_empty());
        tools.call("send", args()).await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), 2);
        tools.forget_approvals();
        assert!(tools.approvals().is_empty());
    });
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let by: Vec<DecidedBy> = tools.history().into_iter().map(|record| record.verdict.by).collect();
    assert_eq!(by, [DecidedBy::Approver, DecidedBy::Memory, DecidedBy::Approver]);
}

#[test]
fn delegates_of_a_set_alone_name_themselves_and_share_memory_and_history() {
    let (approver, seen) = remembering();
    let (mut tools, calls) = set(ToolSet::builder().approver(approver));
    let mut worker = tools.delegate("planner").delegate("worker");
    assert!(worker.list().is_empty());
    worker.add(function("send", &calls));
    run(async {
        worker.call("send", json!({"to": "team"})).await.unwrap();
        tools.call("send", json!({"to": "team"})).await.unwrap();
    });
    let caller = Some("planner › worker".to_owned());
    assert_eq!(*seen.lock().unwrap(), [(caller.clone(), "send \"team\"".to_owned())]);
    let callers: Vec<_> = tools.history().into_iter().map(|record| record.caller).collect();
    assert_eq!(callers, [caller, None]);
    assert_eq!(worker.history(), tools.history());
}

#[test]
fn a_tool_of_a_tool_asks_through_the_same_memory_and_names_itself() {
    let (approver, seen) = remembering();
    let (mut tools, calls) = set(ToolSet::builder().tool("outer", Demand::None).approver(approver));
    let mut inner = tools.delegate("outer");
    inner.add(function("send", &calls));
    let inner = Arc::new(tokio::sync::Mutex::new(inner));
    let outer = FunctionTool::new("outer", "", json!({}), move |call| {
        let inner = Arc::clone(&inner);
        async move {
            let done = inner.lock().await.call("send", call.args).await;
            done.map(|output| json!(output.text)).map_err(|error| error.to_string())
        }
    });
    tools.add(Box::new(outer));
    run(async {
        assert_eq!(tools.call("outer", json!({"to": "a"})).await.unwrap().text, "done");
        tools.call("send", json!({"to": "a"})).await.unwrap();
    });
    assert_eq!(
        *seen.lock().unwrap(),
        [(Some("outer".to_owned()), "send \"a\"".to_owned())]
    );
}

#[test]
fn calls_of_one_group_are_one_question() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let (mut tools, calls) =
        set(
            ToolSet::builder().approver(move |_: &ApprovalRequest| match count.fetch_add(1, Ordering::SeqCst) {
                0 => ApprovalDecision::approve(),
                _ => ApprovalDecision::deny("enough"),
            }),
        );
    let call = |to: &str, group: &str| ApprovalContext {
        group_id: Some(group.to_owned()),
        ..ApprovalContext::new("send", json!({"to": to}))
    };
    let together = |tools: &mut ToolSet, group: &str| -> Vec<bool> {
        let done = run(tools.call_together(&[call("a", group), call("b", group)]));
        done.iter().map(Result::is_ok).collect()
    };
    assert_eq!(together(&mut tools, "first"), [true, true]);
    assert_eq!(together(&mut tools, "second"), [false, false]);
    assert_eq!((asked.load(Ordering::SeqCst), calls.load(Ordering::SeqCst)), (2, 2));
}

#[test]
fn a_request_made_of_a_tool_and_a_line_is_required_and_shown_and_remembered_by_that_line() {
    let request = ApprovalRequest::new("publish", "publish report 7");
    assert!(request.required);
    assert_eq!(request.payload, b"publish report 7");
    assert_eq!(
        request.presentation.build(),
        Ok(Presentation::Text("publish report 7".to_owned()))
    );
}
