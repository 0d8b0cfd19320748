//! One session, and those that an agent delegates to.

use std::fs;

use super::super::function::FunctionTool;
use super::super::session::Session;
use super::super::tool::Tool as _;
use super::*;

/// A session that confines nothing before a command comes; the directory must be kept.
fn session(approver: Box<dyn Approver + Send>) -> (tempfile::TempDir, Session) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stockade.yaml");
    fs::write(
        &config,
        "extends: [system]\nsandbox: {backend: landlock}\ntools: {shell: {approval: deny}}\n",
    )
    .unwrap();
    crate::confine::assume_initialized();
    let session = Session::builder()
        .config_file(&config)
        .directory(folder.path())
        .approver(approver)
        .open()
        .unwrap();
    (folder, session)
}

fn tool(name: &str) -> Box<FunctionTool> {
    Box::new(FunctionTool::new(name, "", json!({}), |_| async { Ok(Value::Null) }))
}

#[test]
fn delegates_are_named_one_after_the_other_and_share_memory_and_history() {
    let (approver, asked) = saying(true, Remember::Session);
    let (_folder, session) = session(approver);
    let reviewer = session.delegate("planner").delegate("reviewer");
    run(async {
        reviewer
            .guarded(tool("f"))
            .call(&context("f"), Prepared::nothing())
            .await
            .unwrap();
        session
            .guarded(tool("f"))
            .call(&context("f"), Prepared::nothing())
            .await
            .unwrap();
    });
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(asked.lock().unwrap()[0].caller.as_deref(), Some("planner › reviewer"));
    let callers: Vec<_> = session.history().into_iter().map(|record| record.caller).collect();
    assert_eq!(callers, [Some("planner › reviewer".to_owned()), None]);
    assert_eq!(reviewer.history(), session.history());
    let approvals = session.approvals();
    assert_eq!(approvals.len(), 1);
    assert!(reviewer.revoke(approvals[0].id).is_some());
    assert!(session.approvals().is_empty());
    assert!(session.revoke(approvals[0].id).is_none());
}

#[test]
fn whom_a_delegate_calls_stands_behind_it() {
    let (approver, asked) = saying(true, Remember::None);
    let (_folder, session) = session(approver);
    let planner = session.delegate("planner");
    let context = context("f").called_by("helper");
    run(planner.guarded(tool("f")).call(&context, Prepared::nothing())).unwrap();
    assert_eq!(asked.lock().unwrap()[0].caller.as_deref(), Some("planner › helper"));
}

#[test]
fn a_delegate_asks_what_the_agent_is_asked_and_is_blocked_where_it_is() {
    let (approver, asked) = saying(false, Remember::None);
    let (_folder, session) = session(approver);
    let planner = session.delegate("planner");
    run(async {
        let denied = planner
            .guarded(tool("f"))
            .call(&context("f"), Prepared::nothing())
            .await;
        assert!(matches!(denied, Err(ToolError::Denied(_))), "{denied:?}");
        let blocked = planner
            .guarded(tool("shell"))
            .call(&context("shell"), Prepared::nothing())
            .await;
        assert!(matches!(blocked, Err(ToolError::Blocked(_))), "{blocked:?}");
    });
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn forgotten_approvals_are_asked_for_again_by_everybody() {
    let (approver, asked) = saying(true, Remember::Session);
    let (_folder, session) = session(approver);
    let planner = session.delegate("planner");
    run(async {
        session
            .guarded(tool("f"))
            .call(&context("f"), Prepared::nothing())
            .await
            .unwrap();
        planner.forget_approvals();
        planner
            .guarded(tool("f"))
            .call(&context("f"), Prepared::nothing())
            .await
            .unwrap();
    });
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn where_the_approver_broke_down_nothing_more_is_approved() {
    let mut times = 0;
    let (approver, _) = person(move |_| {
        times += 1;
        assert!(times == 1, "an approver of the program's own");
        Ok(decided(true, Remember::Session))
    });
    let (_folder, session) = session(approver);
    run(async {
        let mut f = session.guarded(tool("f"));
        f.call(&context("f"), Prepared::nothing()).await.unwrap();
        let other = ApprovalContext::new("f", json!({"x": 2}));
        for _ in 0..2 {
            let done = f.call(&other, Prepared::nothing()).await;
            assert!(matches!(done, Err(ToolError::Denied(_))), "{done:?}");
        }
        // What was approved before, while somebody was there, still is.
        f.call(&context("f"), Prepared::nothing()).await.unwrap();
    });
    assert_eq!(session.approvals().len(), 1);
}
