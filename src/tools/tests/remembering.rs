//! A yes for the session: for the same tool and the same payload, and nothing else.

use super::super::function::FunctionTool;
use super::super::guarded::Guarded;
use super::super::set::ToolSet;
use super::*;

#[test]
fn memory_is_consulted_before_anything_is_made_to_be_shown() {
    let (approver, asked) = saying(true, Remember::Session);
    let (fake, log) = Fake::new("fake", Says::Needs);
    let mut guarded = Guarded::new(Box::new(fake), guard(Mode::Interactive, approver));
    run(async {
        for _ in 0..3 {
            guarded.call(&context("fake"), Prepared::nothing()).await.unwrap();
        }
    });
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(log.lock().unwrap().shown, 1);
    assert!(
        log.lock()
            .unwrap()
            .called
            .iter()
            .all(|(_, answer)| *answer == Answered::Yes)
    );
}

#[test]
fn nothing_is_made_to_be_shown_where_nobody_is_asked() {
    for mode in [Mode::Strict, Mode::ApproveAll] {
        let (approver, _) = saying(true, Remember::None);
        let (fake, log) = Fake::new("fake", Says::Needs);
        let mut guarded = Guarded::new(Box::new(fake), guard(mode, approver));
        let _done = run(guarded.call(&context("fake"), Prepared::nothing()));
        assert_eq!(log.lock().unwrap().shown, 0, "{mode}");
    }
}

#[test]
fn a_yes_for_the_session_covers_no_other_arguments_and_no_other_tool() {
    let (approver, asked) = saying(true, Remember::Session);
    let mut set = ToolSet::new(guard(Mode::Interactive, approver));
    set.add(Box::new(Fake::new("one", Says::Needs).0));
    set.add(Box::new(Fake::new("other", Says::Needs).0));
    run(async {
        set.call("one", json!({"x": 1})).await.unwrap();
        set.call("one", json!({"x": 1})).await.unwrap();
        assert_eq!(asked.lock().unwrap().len(), 1);
        set.call("one", json!({"x": 2})).await.unwrap();
        assert_eq!(asked.lock().unwrap().len(), 2);
        set.call("other", json!({"x": 1})).await.unwrap();
        assert_eq!(asked.lock().unwrap().len(), 3);
    });
}

#[test]
fn a_revoked_yes_is_asked_for_again() {
    let (approver, asked) = saying(true, Remember::Session);
    let guard = guard(Mode::Interactive, approver);
    let mut set = ToolSet::new(guard.clone());
    set.add(Box::new(Fake::new("fake", Says::Needs).0));
    run(async {
        set.call_in(&context("fake")).await.unwrap();
        let id = guard.deciding.controller.approvals()[0].id;
        assert!(guard.deciding.controller.revoke(id).is_some());
        set.call_in(&context("fake")).await.unwrap();
    });
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn once_per_session_asks_once_where_required_asks_each_time() {
    for (demand, questions) in [(Demand::OncePerSession, 1), (Demand::Required, 2)] {
        let (approver, asked) = saying(true, Remember::None);
        let guard = ruling(guard(Mode::Interactive, approver), "fake", demand);
        let (fake, _) = Fake::new("fake", Says::Nothing);
        let mut guarded = Guarded::new(Box::new(fake), guard);
        run(async {
            guarded.call(&context("fake"), Prepared::nothing()).await.unwrap();
            guarded.call(&context("fake"), Prepared::nothing()).await.unwrap();
        });
        assert_eq!(asked.lock().unwrap().len(), questions, "{demand}");
    }
}

fn login() -> FunctionTool {
    FunctionTool::new("login", "Log in", json!({"type": "object"}), |context| async move {
        Ok(json!(context.args["password"]))
    })
    .described_by(|args| format!("log in as {}", args["user"].as_str().unwrap_or_default()))
    .redacted_by(|args| json!({"user": args["user"]}))
}

#[test]
fn what_is_redacted_is_neither_asked_nor_kept() {
    const SECRET: &str = "hunter2";
    for demand in [None, Some(Demand::Required)] {
        let (approver, asked) = saying(true, Remember::Session);
        let mut guard = guard(Mode::Interactive, approver);
        if let Some(demand) = demand {
            guard = ruling(guard, "login", demand);
        }
        let mut guarded = Guarded::new(Box::new(login()), guard.clone());
        let args = json!({"user": "ada", "password": SECRET});
        let output = run(guarded.call(&ApprovalContext::new("login", args), Prepared::nothing())).unwrap();
        // The function itself gets all of it.
        assert_eq!(output.text, SECRET);
        let asked = asked.lock().unwrap();
        assert_eq!(asked[0].description, "log in as ada");
        assert!(!format!("{:?}", asked[0].presentation).contains(SECRET));
        assert!(
            !asked[0]
                .payload
                .windows(SECRET.len())
                .any(|bytes| bytes == SECRET.as_bytes())
        );
        let controller = &guard.deciding.controller;
        assert!(!format!("{controller:?}").contains(SECRET));
    }
}

#[test]
fn calls_that_differ_in_what_is_redacted_alone_are_the_same_to_a_yes() {
    let (approver, asked) = saying(true, Remember::Session);
    let mut guarded = Guarded::new(Box::new(login()), guard(Mode::Interactive, approver));
    run(async {
        for (user, password) in [("ada", "a"), ("ada", "b"), ("bob", "a")] {
            let args = json!({"user": user, "password": password});
            let context = ApprovalContext::new("login", args);
            guarded.call(&context, Prepared::nothing()).await.unwrap();
        }
    });
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn a_marker_of_a_function_is_its_opinion() {
    let made = || FunctionTool::new("f", "", json!({}), |_| async { Ok(Value::Null) });
    for (tool, questions) in [(made(), 1), (made().requires_approval(), 1), (made().pre_approved(), 0)] {
        let (approver, asked) = saying(true, Remember::None);
        let mut guarded = Guarded::new(Box::new(tool), guard(Mode::Interactive, approver));
        run(guarded.call(&context("f"), Prepared::nothing())).unwrap();
        assert_eq!(asked.lock().unwrap().len(), questions);
    }
}

#[test]
fn the_error_of_a_function_is_told_and_the_session_goes_on() {
    let counter = Arc::new(AtomicUsize::new(0));
    let count_calls = Arc::clone(&counter);
    let tool = FunctionTool::new("f", "", json!({}), move |_| {
        let first = count_calls.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                Err("the disk is full".to_owned())
            } else {
                Ok(Value::Null)
            }
        }
    })
    .pre_approved();
    let (approver, _) = saying(true, Remember::None);
    let mut guarded = Guarded::new(Box::new(tool), guard(Mode::Interactive, approver));
    run(async {
        let done = guarded.call(&context("f"), Prepared::nothing()).await;
        assert_eq!(done.unwrap_err().to_string(), "the disk is full");
        guarded.call(&context("f"), Prepared::nothing()).await.unwrap();
    });
    assert_eq!(count(&counter), 2);
}
